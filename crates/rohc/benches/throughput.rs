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
//! - `compress/ipv6`, `compress/rtp`, `compress/esp` and the like with `decompress`: one flow of UDP over IPv6, of voice,
//!   of a VPN;
//!
//! and prints at the end how many times the time of one flow 16,384 flows take. Times are those of a machine and an
//! hour; the ratio is measured by turns, batch by batch, and survives both. Its bar, for flows that take turns, is 2.5.
//!
//! Where `THINAIR_PEER_TIMES` names a program that measures another implementation, it is run by turns with ours. Called
//! as `PROGRAM CASE`, it prints `CASE COMPRESS DECOMPRESS`: nanoseconds of processor time per packet, medians of many
//! batches, in U-mode without refreshes, with large CIDs and room for 16,384 contexts. The packets of a case are those
//! that `Traffic::packet` makes, in that order:
//!
//! | case | packets |
//! |---|---|
//! | `udp-ipv4` | a 9-octet GET over UDP and IPv4; the IP-ID counts from 0 (`get::over_ipv4`) |
//! | `udp-ipv6` | the same over IPv6 (`get::IPV6`) |
//! | `rtp-ipv4` | voice (`flows::rtp`) |
//! | `esp-ipv4` | a VPN (`flows::esp`) |
//! | `udp-ipv4-16384` | the GET of 16,384 hosts that take turns |
//! | `new-flow-16384` | the GET of a host never seen before, while every context is in use |

use std::hint::black_box;
use std::time::{Duration, Instant as Clock};

use criterion::Criterion;
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Format, Instant, ProfileId, ProfileSet, Refresh,
};

mod flows;
mod get;
mod peer;

/// Contexts of the channel: all that large CIDs can name.
const CONTEXTS: u32 = 16_384;

/// From one scattered flow to the next. Odd, so that a power of two of flows all have their turn.
const STRIDE: usize = 5_167;

/// Packets between two looks at the clock. Those to compress are written before, and few, to stay in the cache.
const BATCH: usize = 1_024;

/// Packets decompressed in a row. Many, for the compressor that made them left the caches full of its own.
const DECOMPRESSED_AT_ONCE: usize = 65_536;

/// Octets for a packet, compressed or not.
const ROOM: usize = 96;

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
    peer::compare();
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
    measure("ipv6", Traffic::Ipv6);
    measure("rtp", Traffic::Rtp);
    measure("esp", Traffic::Esp);
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
    /// One flow over IPv6.
    Ipv6,
    /// One flow of voice.
    Rtp,
    /// One flow of a VPN.
    Esp,
}

/// An IP packet of at most 64 octets.
struct Packet {
    octets: [u8; 64],
    len: usize,
}

impl Packet {
    fn new(packet: &[u8]) -> Self {
        let mut octets = [0; 64];
        octets[..packet.len()].copy_from_slice(packet);
        Self { octets, len: packet.len() }
    }

    fn octets(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

impl Traffic {
    fn packet(self, count: usize) -> Packet {
        let get = |host: usize, ip_id: usize| Packet::new(&get::over_ipv4(host as u32, ip_id as u16));
        match self {
            Self::InTurn(flows) => get(count % flows as usize, count / flows as usize),
            Self::Scattered(flows) => {
                let flows = flows as usize;
                let stride = if count < self.settling() { 1 } else { STRIDE };
                get(count * stride % flows, count / flows)
            }
            Self::OnePacketFlows => get(count, 0),
            Self::Ipv6 => Packet::new(&get::IPV6),
            Self::Rtp => Packet::new(&flows::rtp(count as u32)),
            Self::Esp => Packet::new(&flows::esp(count as u32)),
        }
    }

    /// The format of every packet once contexts are there.
    fn format(self) -> Format {
        match self {
            Self::InTurn(_) | Self::Scattered(_) | Self::Ipv6 | Self::Rtp | Self::Esp => Format::Uo0,
            Self::OnePacketFlows => Format::Ir,
        }
    }

    /// Packets until then: 8 of each flow, or one of each context; a flow alone is given more.
    fn settling(self) -> usize {
        match self {
            Self::InTurn(flows) | Self::Scattered(flows) => 8 * flows as usize,
            Self::OnePacketFlows => CONTEXTS as usize,
            Self::Ipv6 | Self::Rtp | Self::Esp => 64,
        }
    }

    /// Whether so many of a batch have the format. TS that wraps around, once in 26,843,545 packets, leads to a few
    /// others.
    fn is_steady(self, as_expected: usize, batch: usize) -> bool {
        match self {
            Self::Rtp => as_expected + 16 >= batch,
            Self::InTurn(_) | Self::Scattered(_) | Self::OnePacketFlows | Self::Ipv6 | Self::Esp => {
                as_expected == batch
            }
        }
    }
}

/// A compressor or a decompressor whose contexts are established.
trait Side {
    fn new(traffic: Traffic) -> Self;

    /// The time that each batch of the next packets of the traffic takes.
    fn batches(&mut self, packets: usize) -> Vec<Duration>;

    /// The time that they take together.
    fn time(&mut self, packets: usize) -> Duration {
        self.batches(packets).iter().sum()
    }
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

impl Sender {
    /// The profile that the next packet goes by.
    fn profile(&mut self) -> ProfileId {
        let packet = self.traffic.packet(self.count);
        self.count += 1;
        let done = self.compressor.compress(Instant::ZERO, packet.octets(), &mut [0; ROOM]);
        done.expect("there is room").profile
    }

    /// Compresses the next packets and gives each.
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

fn channel() -> Channel {
    let highest = CidSpace::Large.highest();
    Channel::new(CidSpace::Large, highest, ProfileSet::v1()).expect("the highest CID is a CID")
}
