//! Time per packet with few and with many flows.
//!
//! `cargo bench -p thinair-rohc --bench throughput` measures, on UDP over IPv4 with large CIDs and room for 16,384
//! contexts,
//!
//! - `compress/N` and `decompress/N`: one packet in steady state (UO-0), of `N` flows that take turns;
//! - `compress/16384-scattered` and `decompress/16384-scattered`: likewise, but not in the order of their contexts in
//!   memory, so that the processor cannot predict the next one: the worst case;
//! - `compress/one-packet` and `decompress/one-packet`: one packet of a new flow, while every context is in use. The first ones are
//!   IR packets, for which the least recently used context is replaced; later ones are sent without compression;
//! - `compress/ipv6`, `compress/rtp`, `compress/esp`, `compress/v2` and the like with `decompress`: one flow of UDP over IPv6, of
//!   voice, of a VPN, and of UDP over IPv4 with ROHCv2;
//!
//! and prints at the end the ratio of the times for 16,384 flows and for one flow. Times depend on the machine and its
//! load; the ratio is measured by turns, batch by batch, and does not. Its limit, for flows that take turns, is 2.5.
//!
//! The benchmark `beside` compares the times with those of rohc-lib.

use std::hint::black_box;
use std::time::{Duration, Instant as Clock};

use criterion::Criterion;
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Format, Instant, ProfileSet, Refresh,
};

mod flows;
mod get;

/// Number of contexts of the channel: the largest with large CIDs.
const CONTEXTS: u32 = 16_384;

/// Distance from one scattered flow to the next. Odd, so that each of a power of two of flows has its turn.
const STRIDE: usize = 5_167;

/// Number of packets between two readings of the clock. Packets to compress are created before, and few, to stay in the
/// cache.
const BATCH: usize = 1_024;

/// Number of packets that are decompressed in a row. Many, since the compressor that made them has filled the caches.
const DECOMPRESSED_AT_ONCE: usize = 65_536;

/// Octets for a packet, compressed or not.
const ROOM: usize = 96;

/// Number of pairs of batches per ratio.
const PAIRS: usize = 31;

/// Largest ratio of the times for 16,384 flows and for one flow.
const BAR: f64 = 2.5;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    measure::<TimedSender>(&mut criterion, "compress");
    measure::<TimedReceiver>(&mut criterion, "decompress");
    criterion.final_summary();
    println!("16,384 flows take so many times the time of one; median of {PAIRS}, quartiles");
    for (order, traffic) in
        [("in turn", BenchTraffic::InTurn(CONTEXTS)), ("scattered", BenchTraffic::Scattered(CONTEXTS))]
    {
        ratio::<TimedSender>("compress", order, traffic);
        ratio::<TimedReceiver>("decompress", order, traffic);
    }
    println!("The bar for flows in turn is {BAR}.");
}

fn measure<S: TimedSide>(criterion: &mut Criterion, name: &str) {
    let mut group = criterion.benchmark_group(name);
    let mut measure = |id: &str, traffic: BenchTraffic| {
        group.bench_function(id, |bench| {
            let mut side = S::new(traffic);
            bench.iter_custom(|packets| side.time(packets as usize));
        });
    };
    for flows in [1, 256, 4_096, CONTEXTS] {
        measure(&flows.to_string(), BenchTraffic::InTurn(flows));
    }
    measure("16384-scattered", BenchTraffic::Scattered(CONTEXTS));
    measure("one-packet", BenchTraffic::OnePacketFlows);
    measure("ipv6", BenchTraffic::Ipv6);
    measure("rtp", BenchTraffic::Rtp);
    measure("esp", BenchTraffic::Esp);
    measure("v2", BenchTraffic::V2);
}

fn ratio<S: TimedSide>(name: &str, order: &str, traffic: BenchTraffic) {
    let mut one = S::new(BenchTraffic::InTurn(1));
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

/// Traffic of a measurement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BenchTraffic {
    /// This many flows, one packet of each in turn.
    InTurn(u32),
    /// This many flows, in another order than that in which they were opened.
    Scattered(u32),
    /// Each packet opens a flow.
    OnePacketFlows,
    /// One flow over IPv6.
    Ipv6,
    /// One flow of voice.
    Rtp,
    /// One flow of a VPN.
    Esp,
    /// One flow of UDP over IPv4, with ROHCv2.
    V2,
}

/// An IP packet of at most 64 octets.
struct BenchPacket {
    octets: [u8; 64],
    len: usize,
}

impl BenchPacket {
    fn new(packet: &[u8]) -> Self {
        let mut octets = [0; 64];
        octets[..packet.len()].copy_from_slice(packet);
        Self { octets, len: packet.len() }
    }

    fn octets(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

impl BenchTraffic {
    fn packet(self, count: usize) -> BenchPacket {
        let get = |host: usize, ip_id: usize| BenchPacket::new(&get::over_ipv4(host as u32, ip_id as u16));
        match self {
            Self::InTurn(flows) => get(count % flows as usize, count / flows as usize),
            Self::Scattered(flows) => {
                let flows = flows as usize;
                let stride = if count < self.settling() { 1 } else { STRIDE };
                get(count * stride % flows, count / flows)
            }
            Self::OnePacketFlows => get(count, 0),
            Self::V2 => get(0, count),
            Self::Ipv6 => BenchPacket::new(&get::IPV6),
            Self::Rtp => BenchPacket::new(&flows::rtp(count as u32)),
            Self::Esp => BenchPacket::new(&flows::esp(count as u32)),
        }
    }

    /// Format of every packet after the contexts are established.
    fn format(self) -> Format {
        match self {
            Self::InTurn(_) | Self::Scattered(_) | Self::Ipv6 | Self::Rtp | Self::Esp => Format::Uo0,
            Self::OnePacketFlows => Format::Ir,
            Self::V2 => Format::Pt0Crc3,
        }
    }

    fn channel(self) -> Channel {
        let profiles = if self == Self::V2 { ProfileSet::v2() } else { ProfileSet::v1() };
        Channel::new(CidSpace::Large, CidSpace::Large.highest(), profiles).expect("the highest CID is a CID")
    }

    /// Number of packets until then: 8 of each flow, or one of each context; more for a single flow.
    fn settling(self) -> usize {
        match self {
            Self::InTurn(flows) | Self::Scattered(flows) => 8 * flows as usize,
            Self::OnePacketFlows => CONTEXTS as usize,
            Self::Ipv6 | Self::Rtp | Self::Esp | Self::V2 => 64,
        }
    }

    /// True if enough packets of a batch have the format. TS wraps around once in 26,843,545 packets, which causes a few
    /// others. Flows of one packet are sent without compression after a while, which costs fewer octets than IR packets.
    fn is_steady(self, as_expected: usize, batch: usize) -> bool {
        match self {
            Self::Rtp => as_expected + 16 >= batch,
            Self::OnePacketFlows => true,
            _ => as_expected == batch,
        }
    }
}

/// A compressor or a decompressor whose contexts are established.
trait TimedSide {
    fn new(traffic: BenchTraffic) -> Self;

    /// Returns the time for each batch of the next packets of the traffic.
    fn batches(&mut self, packets: usize) -> Vec<Duration>;

    /// Returns the time for all of these packets.
    fn time(&mut self, packets: usize) -> Duration {
        self.batches(packets).iter().sum()
    }
}

struct TimedSender {
    traffic: BenchTraffic,
    compressor: Compressor<'static>,
    /// Number of packets sent.
    count: usize,
}

impl TimedSide for TimedSender {
    fn new(traffic: BenchTraffic) -> Self {
        let channel = traffic.channel();
        let config = CompressorConfig { refresh: Refresh::Off, ..CompressorConfig::new(channel) };
        let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(0)));
        let mut sender = Self { traffic, compressor, count: 0 };
        sender.send(traffic.settling(), |_| ());
        sender
    }

    fn batches(&mut self, packets: usize) -> Vec<Duration> {
        let (mut times, mut sent) = (Vec::new(), 0);
        let mut out = [0; ROOM];
        while sent < packets {
            let batch = BATCH.min(packets - sent);
            let packets: Vec<_> = (self.count..self.count + batch).map(|i| self.traffic.packet(i)).collect();
            let mut as_expected = 0;
            let start = Clock::now();
            for packet in &packets {
                let done = self.compressor.compress(Instant::ZERO, black_box(packet.octets()), &mut out);
                as_expected += usize::from(done.is_ok_and(|done| done.format == self.traffic.format()));
                black_box(&out);
            }
            times.push(start.elapsed());
            assert!(self.traffic.is_steady(as_expected, batch));
            self.count += batch;
            sent += batch;
        }
        times
    }
}

impl TimedSender {
    /// Compresses the next packets and passes each to `give`.
    fn send(&mut self, packets: usize, mut give: impl FnMut(&[u8])) {
        let mut out = [0; ROOM];
        for _ in 0..packets {
            let packet = self.traffic.packet(self.count);
            let done =
                self.compressor.compress(Instant::ZERO, packet.octets(), &mut out).expect("there is room");
            give(&out[..done.len]);
            self.count += 1;
        }
    }
}

struct TimedReceiver {
    sender: TimedSender,
    decompressor: Decompressor<'static>,
}

impl TimedSide for TimedReceiver {
    fn new(traffic: BenchTraffic) -> Self {
        let channel = traffic.channel();
        let config = CompressorConfig { refresh: Refresh::Off, ..CompressorConfig::new(channel) };
        let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(0)));
        let mut decompressor = Decompressor::new(
            DecompressorConfig::new(channel),
            DecompressorMemory::owned(channel.sizes().blocks(0)),
        );
        let mut sender = TimedSender { traffic, compressor, count: 0 };
        let mut out = [0; ROOM];
        sender.send(traffic.settling(), |rohc| {
            decompressor.decompress(Instant::ZERO, rohc, &mut out).expect("nothing is lost");
        });
        Self { sender, decompressor }
    }

    fn batches(&mut self, packets: usize) -> Vec<Duration> {
        let (mut times, mut received) = (Vec::new(), 0);
        let mut out = [0; ROOM];
        while received < packets {
            let many = DECOMPRESSED_AT_ONCE.min(packets - received);
            let (mut octets, mut ends) = (Vec::new(), vec![0]);
            self.sender.send(many, |rohc| {
                octets.extend_from_slice(rohc);
                ends.push(octets.len());
            });
            let bounds: Vec<(usize, usize)> = ends.windows(2).map(|ends| (ends[0], ends[1])).collect();
            for batch in bounds.chunks(BATCH) {
                let mut as_expected = 0;
                let start = Clock::now();
                for &(start, end) in batch {
                    let rohc = black_box(&octets[start..end]);
                    let done = self.decompressor.decompress(Instant::ZERO, rohc, &mut out);
                    as_expected +=
                        usize::from(done.is_ok_and(|done| done.format == self.sender.traffic.format()));
                    black_box(&out);
                }
                times.push(start.elapsed());
                assert!(self.sender.traffic.is_steady(as_expected, batch.len()));
            }
            received += many;
        }
        times
    }
}
