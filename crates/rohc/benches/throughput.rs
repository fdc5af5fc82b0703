//! Time per packet with few and with many flows.
//!
//! `cargo bench -p thinair-rohc --bench throughput` measures, on UDP over IPv4 with large CIDs and room for 16,384
//! contexts,
//!
//! - `compress/N` and `decompress/N`: one packet in steady state (UO-0), of `N` flows that take turns;
//! - `compress/16384-scattered` and `decompress/16384-scattered`: likewise, but not in the order in which their contexts
//!   lie in memory, so that the processor cannot guess which one comes next: the worst case;
//! - `compress/one-packet` and `decompress/one-packet`: one IR packet of a flow never seen before, while every
//!   context is in use, so that the one not used for longest is replaced;
//!
//! and prints at the end how many times the time of one flow 16,384 flows take. Times are those of a machine and an
//! hour; the ratio is measured by turns, batch by batch, and survives both. Its bar, for flows that take turns, is 2.5.

use std::hint::black_box;
use std::time::{Duration, Instant as Clock};

use criterion::Criterion;
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Format, Instant, ProfileSet, Refresh,
};

mod get;

/// Contexts of the channel: all that large CIDs can name.
const CONTEXTS: u32 = 16_384;

/// From one scattered flow to the next. Odd, so that a power of two of flows all have their turn.
const STRIDE: usize = 5_167;

/// Packets compressed in a row. They are written before the clock starts, and few, to stay in the cache.
const COMPRESSED_AT_ONCE: usize = 1_024;

/// Packets decompressed in a row. Many, for the compressor that made them left the caches full of its own.
const DECOMPRESSED_AT_ONCE: usize = 65_536;

/// Pairs of batches behind a ratio.
const PAIRS: usize = 31;

/// Times the time of one flow that 16,384 flows may take.
const BAR: f64 = 2.5;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    measure::<Sender>(&mut criterion, "compress");
    measure::<Receiver>(&mut criterion, "decompress");
    criterion.final_summary();
    println!("16,384 flows take so many times the time of one; median of {PAIRS}, quartiles");
    for (order, traffic) in
        [("in turn", Traffic::InTurn(CONTEXTS)), ("scattered", Traffic::Scattered(CONTEXTS))]
    {
        ratio::<Sender>("compress", order, traffic);
        ratio::<Receiver>("decompress", order, traffic);
    }
    println!("The bar for flows in turn is {BAR}.");
}

fn measure<S: Side>(criterion: &mut Criterion, name: &str) {
    let mut group = criterion.benchmark_group(name);
    let mut measure = |id: &str, traffic: Traffic| {
        group.bench_function(id, |bench| {
            let mut side = S::new(traffic);
            bench.iter_custom(|packets| side.time(packets as usize));
        });
    };
    for flows in [1, 256, 4_096, CONTEXTS] {
        measure(&flows.to_string(), Traffic::InTurn(flows));
    }
    measure("16384-scattered", Traffic::Scattered(CONTEXTS));
    measure("one-packet", Traffic::OnePacketFlows);
}

fn ratio<S: Side>(name: &str, order: &str, traffic: Traffic) {
    let mut one = S::new(Traffic::InTurn(1));
    let mut all = S::new(traffic);
    let mut ratio = || {
        let base = one.time(DECOMPRESSED_AT_ONCE).as_secs_f64();
        all.time(DECOMPRESSED_AT_ONCE).as_secs_f64() / base
    };
    let mut ratios: Vec<f64> = (0..PAIRS).map(|_| ratio()).collect();
    ratios.sort_by(f64::total_cmp);
    let [low, median, high] = [PAIRS / 4, PAIRS / 2, PAIRS * 3 / 4].map(|at| ratios[at]);
    println!("{name:<12}{order:<12}{median:>6.2} ({low:.2} to {high:.2})");
}

/// What is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Traffic {
    /// So many flows, one packet of each in turn.
    InTurn(u32),
    /// So many flows, in another order than they were opened.
    Scattered(u32),
    /// Each packet opens a flow.
    OnePacketFlows,
}

impl Traffic {
    fn packet(self, count: usize) -> [u8; 37] {
        let (flows, stride) = match self {
            Self::InTurn(flows) => (flows as usize, 1),
            Self::Scattered(flows) if count < self.settling() => (flows as usize, 1),
            Self::Scattered(flows) => (flows as usize, STRIDE),
            Self::OnePacketFlows => return get::over_ipv4(count as u32, 0),
        };
        get::over_ipv4((count * stride % flows) as u32, (count / flows) as u16)
    }

    /// The format of every packet once contexts are there.
    fn format(self) -> Format {
        match self {
            Self::InTurn(_) | Self::Scattered(_) => Format::Uo0,
            Self::OnePacketFlows => Format::Ir,
        }
    }

    /// Packets until then: 8 of each flow, or one of each context.
    fn settling(self) -> usize {
        match self {
            Self::InTurn(flows) | Self::Scattered(flows) => 8 * flows as usize,
            Self::OnePacketFlows => CONTEXTS as usize,
        }
    }
}

/// A compressor or a decompressor whose contexts are established.
trait Side {
    fn new(traffic: Traffic) -> Self;

    /// The time that the next packets of the traffic take.
    fn time(&mut self, packets: usize) -> Duration;
}

struct Sender {
    traffic: Traffic,
    compressor: Compressor<'static>,
    /// Packets sent.
    count: usize,
}

impl Side for Sender {
    fn new(traffic: Traffic) -> Self {
        let mut config = CompressorConfig::new(channel());
        config.refresh = Refresh::Off;
        let compressor = Compressor::new(config, CompressorMemory::owned(&channel(), 0));
        let mut sender = Self { traffic, compressor, count: 0 };
        sender.send(traffic.settling(), |_| ());
        sender
    }

    fn time(&mut self, packets: usize) -> Duration {
        let (mut time, mut sent) = (Duration::ZERO, 0);
        let mut out = [0; 64];
        while sent < packets {
            let batch = COMPRESSED_AT_ONCE.min(packets - sent);
            let packets: Vec<_> = (self.count..self.count + batch).map(|i| self.traffic.packet(i)).collect();
            let mut as_expected = 0;
            let start = Clock::now();
            for packet in &packets {
                let done = self.compressor.compress(Instant::ZERO, black_box(packet), &mut out);
                as_expected += usize::from(done.is_ok_and(|done| done.format == self.traffic.format()));
                black_box(&out);
            }
            time += start.elapsed();
            assert_eq!(as_expected, batch);
            self.count += batch;
            sent += batch;
        }
        time
    }
}

impl Sender {
    /// Compresses the next packets and gives each.
    fn send(&mut self, packets: usize, mut give: impl FnMut(&[u8])) {
        let mut out = [0; 64];
        for _ in 0..packets {
            let packet = self.traffic.packet(self.count);
            let done = self.compressor.compress(Instant::ZERO, &packet, &mut out).expect("there is room");
            give(&out[..done.len]);
            self.count += 1;
        }
    }
}

struct Receiver {
    sender: Sender,
    decompressor: Decompressor<'static>,
}

impl Side for Receiver {
    fn new(traffic: Traffic) -> Self {
        let mut config = CompressorConfig::new(channel());
        config.refresh = Refresh::Off;
        let compressor = Compressor::new(config, CompressorMemory::owned(&channel(), 0));
        let mut decompressor =
            Decompressor::new(DecompressorConfig::new(channel()), DecompressorMemory::owned(&channel(), 0));
        let mut sender = Sender { traffic, compressor, count: 0 };
        let mut out = [0; 64];
        sender.send(traffic.settling(), |rohc| {
            decompressor.decompress(Instant::ZERO, rohc, &mut out).expect("nothing is lost");
        });
        Self { sender, decompressor }
    }

    fn time(&mut self, packets: usize) -> Duration {
        let (mut time, mut received) = (Duration::ZERO, 0);
        let mut out = [0; 64];
        while received < packets {
            let batch = DECOMPRESSED_AT_ONCE.min(packets - received);
            let (mut octets, mut ends) = (Vec::new(), vec![0]);
            self.sender.send(batch, |rohc| {
                octets.extend_from_slice(rohc);
                ends.push(octets.len());
            });
            let mut as_expected = 0;
            let start = Clock::now();
            for ends in ends.windows(2) {
                let rohc = black_box(&octets[ends[0]..ends[1]]);
                let done = self.decompressor.decompress(Instant::ZERO, rohc, &mut out);
                as_expected +=
                    usize::from(done.is_ok_and(|done| done.format == self.sender.traffic.format()));
                black_box(&out);
            }
            time += start.elapsed();
            assert_eq!(as_expected, batch);
            received += batch;
        }
        time
    }
}

fn channel() -> Channel {
    let highest = CidSpace::Large.highest();
    Channel::new(CidSpace::Large, highest, ProfileSet::v1()).expect("the highest CID is a CID")
}
