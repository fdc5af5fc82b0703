//! The profiles of RFC 3095 (set `v1`) beside those of RFC 5225 (set `v2`), a flow a row.
//!
//! `cargo bench -p thinair-rohc --bench profile_sets` prints
//!
//! - the mean header of a packet in O-mode, one packet in 20 ms, first packets and refreshes included;
//! - nanoseconds to compress and to decompress a packet in steady state: medians of batches, on this machine at this time;
//! - packets of 1,000 that arrive and are not delivered, where 5 % of them are late by up to 3 others, and where all are;
//! - octets of memory for a context of a channel with 16, without extension headers of RFC 3095.
//!
//! `v2, 1/4` has a reorder ratio of a quarter, `v2` none.

use std::hint::black_box;
use std::time::{Duration, Instant as Clock};

use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Instant, Mode, ProfileSet, Refresh, ReorderRatio, RtpDetection,
};

#[path = "../tests/common/mod.rs"]
mod common;

use common::journey::{Fates, JourneyOutcome, JourneySetup, PacketFate, PacketPace, run};
use common::source::{ChecksumUse, PacketSource, SourceKind};
use common::{IdKind, SplitMix64};

/// Packets of a row for headers and late packets.
const PACKETS: u64 = 20_000;

/// Packets between two readings of the clock, and the number of such batches.
const BATCH: usize = 1_024;
const BATCHES: usize = 101;

/// Packets that a late one may come behind.
const DEPTH: u64 = 3;

/// Contexts of a channel, for the memory of one.
const CONTEXTS: u16 = 16;

const ROWS: [(&str, SourceKind, bool); 7] = [
    ("UDP/IPv4", SourceKind::Udp, false),
    ("UDP/IPv6", SourceKind::Udp, true),
    ("UDP-Lite/IPv4", SourceKind::UdpLite, false),
    ("RTP/UDP/IPv4", SourceKind::Rtp, false),
    ("RTP/UDP/IPv6", SourceKind::Rtp, true),
    ("ESP/IPv4", SourceKind::Esp, false),
    ("IPv4 alone", SourceKind::Ip, false),
];

fn main() {
    println!("{:<14}{:>27}{:>22}{:>32}", "", "octets of headers", "ns, both ends", "undelivered of 1,000");
    println!(
        "{:<14}{:>6}{:>6}{:>6}{:>9}{:>11}{:>11}{:>16}{:>16}",
        "", "plain", "v1", "v2", "v2, 1/4", "v1", "v2", "v1", "v2, 1/4"
    );
    let quarter = Some(ReorderRatio::Quarter);
    for (name, kind, six) in ROWS {
        print!("{name:<14}{:>6}", plain(kind, six));
        for v2 in [None, Some(ReorderRatio::None), quarter] {
            let done = carried(kind, six, v2, &mut InOrder);
            assert_eq!((done.wrong, done.undelivered), (0, 0));
            print!("{:>6.1}", done.octets as f64 / done.sent as f64);
        }
        for profiles in [ProfileSet::v1(), ProfileSet::v2()] {
            let [compress, decompress] = times(kind, six, profiles);
            print!("{:>11}", format!("{compress}/{decompress}"));
        }
        for v2 in [None, quarter] {
            let undelivered = [20, 1].map(|one_in| {
                let done = carried(kind, six, v2, &mut Late { one_in });
                format!("{:.1}", 1_000.0 * done.undelivered as f64 / done.arrived as f64)
            });
            print!("{:>16}", undelivered.join(" / "));
        }
        println!();
    }
    print!("octets of a context, compressor/decompressor:");
    for (name, profiles) in [("v1", ProfileSet::v1()), ("v2", ProfileSet::v2())] {
        let channel = channel(profiles);
        let ends = [
            CompressorMemory::owned(channel.sizes().blocks(0)).octets(),
            DecompressorMemory::owned(channel.sizes().blocks(0)).octets(),
        ];
        let [compressor, decompressor] = ends.map(|octets| octets / usize::from(CONTEXTS));
        print!("  {name} {compressor}/{decompressor}");
    }
    println!();
}

fn channel(profiles: ProfileSet) -> Channel {
    Channel::new(CidSpace::Small, CONTEXTS - 1, profiles).expect("the CID is small")
}

fn source(kind: SourceKind, six: bool) -> PacketSource {
    // Timestamps of 20 ms at 8 kHz.
    PacketSource::new(kind, six, ChecksumUse::Carried, 160, 1)
}

/// Octets of the headers before compression.
fn plain(kind: SourceKind, six: bool) -> usize {
    let ip = if six { 40 } else { 20 };
    match kind {
        SourceKind::Rtp => ip + 8 + 12,
        SourceKind::Udp | SourceKind::UdpLite | SourceKind::Esp => ip + 8,
        _ => ip,
    }
}

/// What becomes of the packets of a flow, one in 20 ms.
fn carried(kind: SourceKind, six: bool, v2: Option<ReorderRatio>, fates: &mut dyn Fates) -> JourneyOutcome {
    let setup = JourneySetup {
        kind,
        six,
        checksum: ChecksumUse::Carried,
        mode: Mode::Optimistic,
        pace: PacketPace::MS_20,
        counts: false,
        moves: false,
        delay: 50_000,
        v2,
        ids: IdKind::Counts,
    };
    run(&setup, fates, 1, PACKETS)
}

struct InOrder;

impl Fates for InOrder {
    fn of(&mut self, _: u64, _: &mut SplitMix64) -> PacketFate {
        PacketFate::default()
    }

    fn keeps_pace(&self) -> bool {
        true
    }
}

/// One packet in so many is late; with one in one each is, by 0 to `DEPTH`.
struct Late {
    one_in: u64,
}

impl Fates for Late {
    fn of(&mut self, number: u64, random: &mut SplitMix64) -> PacketFate {
        let late = match self.one_in {
            // The context is there before anything is late.
            _ if number <= 20 => 0,
            1 => random.below(DEPTH + 1),
            one_in if random.once_in(one_in) => 1 + random.below(DEPTH),
            _ => 0,
        };
        PacketFate { late, ..PacketFate::default() }
    }

    fn keeps_pace(&self) -> bool {
        self.one_in > 1
    }
}

/// Nanoseconds to compress and to decompress a packet.
fn times(kind: SourceKind, six: bool, profiles: ProfileSet) -> [u32; 2] {
    let channel = channel(profiles);
    let rtp = RtpDetection::of_ports(if kind.is_rtp() { &[5004] } else { &[] }).expect("a port");
    let config = CompressorConfig { refresh: Refresh::Off, rtp, ..CompressorConfig::new(channel) };
    let mut compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(0)));
    let mut decompressor = Decompressor::new(
        DecompressorConfig::new(channel),
        DecompressorMemory::owned(channel.sizes().blocks(0)),
    );
    let (mut source, mut random, mut now) = (source(kind, six), SplitMix64(2), Instant::ZERO);
    let mut times = [const { Vec::new() }; 2];
    for batch in 0..=BATCHES {
        let packets: Vec<_> =
            (0..BATCH).flat_map(|_| source.next(&mut random)).map(|(_, packet)| packet).collect();
        let start = now;
        let tick = Duration::from_millis(20);
        let mut rohc = vec![([0; 128], 0); packets.len()];
        let clock = Clock::now();
        for (packet, (out, len)) in packets.iter().zip(&mut rohc) {
            now = now + tick;
            *len = compressor.compress(now, black_box(packet), out).expect("there is room").len;
        }
        let compressed = clock.elapsed();
        let (mut back, mut delivered) = ([0; 128], 0);
        now = start;
        let clock = Clock::now();
        for (rohc, len) in &rohc {
            now = now + tick;
            let done = decompressor.decompress(now, black_box(&rohc[..*len]), &mut back);
            delivered += usize::from(done.is_ok());
            black_box(&back);
        }
        let decompressed = clock.elapsed();
        assert_eq!(delivered, packets.len());
        // The first batch opens the flow.
        if batch > 0 {
            times[0].push(compressed);
            times[1].push(decompressed);
        }
    }
    times.map(|mut times| {
        times.sort();
        (times[BATCHES / 2].as_nanos() / BATCH as u128) as u32
    })
}
