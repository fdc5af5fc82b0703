//! Bursts of losses, as after an outage of a link: 1 to 1,024 packets, at every phase of the LSBs. Feedback has the delay
//! of the packets.
//!
//! Each cell has wrong packets (and, where only a CRC proves a candidate, the number that the formats accept), the average
//! number of packets not delivered after a gap, and the longest outage in packets. In full, with other seeds:
//!
//! ```text
//! THINAIR_PACKETS=1000000 THINAIR_SEED=2 cargo test --profile optimized -p thinair-rohc --test silence -- --nocapture
//! ```

#![allow(clippy::unwrap_used)]

mod common;

use common::SplitMix64;
use common::journey::{Fates, JourneyOutcome, JourneySetup, PacketFate, PacketPace, run};
use common::source::{ChecksumUse, PacketSource, SourceKind};
use common::table::{OutcomeTable, Size, wrong};
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Instant, Mode, ProfileSet, RtpDetection,
};

/// Lengths of bursts, by column.
const COLUMNS: [(&str, &[u64]); 6] = [
    ("1 to 14", &[1, 2, 4, 8, 12, 13, 14]),
    ("15 to 32", &[15, 16, 17, 24, 31, 32]),
    ("33 to 64", &[33, 48, 63, 64]),
    ("65 to 255", &[65, 100, 127, 128, 129, 255]),
    ("256", &[256]),
    ("257 to 1,024", &[257, 384, 511, 512, 768, 1_023, 1_024]),
];

/// Number of packets after a burst that are considered.
const BEHIND: u64 = 64;

/// Number of packets of a cell in a short run.
const SMALL: u64 = 1_000;

/// One burst after that many packets.
struct Burst {
    first: u64,
    packets: u64,
}

impl Fates for Burst {
    fn of(&mut self, number: u64, _random: &mut SplitMix64) -> PacketFate {
        let is_lost = (self.first..self.first + self.packets).contains(&number);
        PacketFate { is_lost, ..PacketFate::default() }
    }
}

fn cell(setup: &JourneySetup, bursts: &[u64], size: &Size) -> JourneyOutcome {
    let mut all = JourneyOutcome::default();
    // In a short run the bursts share the phases.
    let packets = size.packets(setup, SMALL);
    let mut random = SplitMix64(size.seed);
    for i in 0.. {
        let lost = bursts[i % bursts.len()];
        let first = 80 + random.below(64);
        let seed = random.next();
        // Two endpoints take turns in a mix.
        let turns = if setup.kind.is_coap_mix() { 2 } else { 1 };
        all.add(&run(setup, &mut Burst { first, packets: lost }, seed, turns * (first + lost + BEHIND)));
        if all.sent >= packets && i >= bursts.len() {
            return all;
        }
    }
    all
}

/// Largest mean number of packets that arrive behind a gap of a paced flow and are not delivered. Where no checksum proves a candidate, the
/// time does not either, as the sender may have been silent: a request for repair takes a round trip, and without feedback a packet is
/// awaited that leaves one candidate, a refresh at the latest.
fn most_undelivered(setup: &JourneySetup) -> f64 {
    let PacketPace::Every(interval) = setup.pace else { return 1.0 };
    match setup.mode {
        _ if !setup.kind.is_unproved(setup.six, setup.checksum) || setup.counts => 1.0,
        Mode::Unidirectional => BEHIND as f64,
        Mode::Optimistic | Mode::Reliable => 1.0 + (2 * setup.delay).div_ceil(interval) as f64,
    }
}

/// Cells that miss their limit. Timestamps of voice jump here without time for it, in lost packets too: a checksum may then be right with a
/// wrong number, one in 2^16 for each number that comes into question.
const OPEN: &[&str] = &["Rtp count wrong", "RtpTalk wrong", "RtpPause wrong", "CoapMix elided wrong"];

#[test]
fn packets_behind_a_silence_are_right() {
    let size = Size::from_environment();
    let mut paces = vec![PacketPace::MS_20, PacketPace::NONE];
    if size.packets.is_some() {
        paces.insert(1, PacketPace::MS_160);
    }
    let setups = JourneySetup::all(&paces, 280_000);
    let columns = COLUMNS.map(|(name, _)| name);
    let table = OutcomeTable::measure("silence", setups, &columns, &size, |setup, column| {
        cell(setup, COLUMNS[column].1, &size)
    });
    table.print(|setup, outcome| {
        let bound = if setup.is_unproved() { format!("/{:.0}", outcome.bound) } else { String::new() };
        format!("{}{bound} {:.1} {}", outcome.wrong, outcome.undelivered_a_gap(), outcome.outage)
    });
    table.hold(OPEN, |setup, _, outcome| {
        let undelivered = outcome.undelivered_a_gap();
        let most = most_undelivered(setup);
        let is_slow = setup.is_paced() && undelivered > most;
        wrong(outcome).or_else(|| is_slow.then(|| format!("{undelivered:.2} undelivered behind a gap")))
    });
}

/// What becomes of the packets of a flow with two outages, of which a refresh ends the first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Settled,
    /// More than 64 packets are lost.
    Outage,
    /// 16 packets are lost: the LSBs of the next one are those of the packet behind the refresh.
    BehindRefresh(u8),
    Behind(u8),
}

/// Returns how many packets were delivered with wrong octets, and how many in all.
fn refresh_between_outages(kind: SourceKind, six: bool, profiles: ProfileSet, seed: u64) -> [u32; 2] {
    let channel = Channel::new(CidSpace::Small, 0, profiles).unwrap();
    let ports: &[u16] = if kind.is_rtp() { &[5004] } else { &[] };
    let config =
        CompressorConfig { rtp: RtpDetection::of_ports(ports).unwrap(), ..CompressorConfig::new(channel) };
    let mut compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(0)));
    let config = DecompressorConfig { mode: Mode::Unidirectional, ..DecompressorConfig::new(channel) };
    let mut decompressor = Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(0)));
    let mut source = PacketSource::new(kind, six, ChecksumUse::Carried, 160, seed);
    let (mut random, mut rohc, mut back) = (SplitMix64(seed), [0; 400], [0; 400]);
    let (mut phase, mut wrong, mut delivered) = (Phase::Settled, 0, 0);
    for number in 0_u64.. {
        let now = Instant::from_millis(20 * number);
        let packet = source.next(&mut random).remove(0).1;
        let sent = compressor.compress(now, &packet, &mut rohc).unwrap();
        let arrives = match &mut phase {
            Phase::Settled if number < 300 => true,
            Phase::Settled => {
                phase = Phase::Outage;
                false
            }
            Phase::Outage if number > 365 && sent.format.is_initialization() => {
                phase = Phase::BehindRefresh(16);
                true
            }
            Phase::Outage => false,
            Phase::BehindRefresh(1) => {
                phase = Phase::Behind(4);
                false
            }
            Phase::BehindRefresh(left) => {
                *left -= 1;
                false
            }
            Phase::Behind(0) => return [wrong, delivered],
            Phase::Behind(left) => {
                *left -= 1;
                true
            }
        };
        if arrives && let Ok(done) = decompressor.decompress(now, &rohc[..sent.len], &mut back) {
            delivered += 1;
            wrong += u32::from(back[..done.len] != packet);
        }
    }
    unreachable!("every number was tried")
}

/// A refresh behind an outage is no leap of a compressor that has restarted: the decompressor keeps the pace of the flow, and does not
/// take a packet behind 16 lost ones for the next one.
#[test]
fn packets_lost_behind_a_refresh_that_ends_an_outage_are_noticed() {
    let cells = [
        (SourceKind::Rtp, ProfileSet::v1()),
        (SourceKind::Udp, ProfileSet::v1()),
        (SourceKind::Ip, ProfileSet::v1()),
        (SourceKind::Rtp, ProfileSet::v2()),
        (SourceKind::Udp, ProfileSet::v2()),
        (SourceKind::TcpData, SourceKind::TcpData.profiles()),
        (SourceKind::TcpAck, SourceKind::TcpAck.profiles()),
        (SourceKind::CoapGet, SourceKind::CoapGet.profiles()),
        (SourceKind::CoapNotify, SourceKind::CoapNotify.profiles()),
    ];
    for (kind, profiles) in cells {
        for six in [false, true] {
            let runs = (0..16).map(|seed| refresh_between_outages(kind, six, profiles, seed));
            let [wrong, delivered] = runs.fold([0; 2], |sum, run| [sum[0] + run[0], sum[1] + run[1]]);
            assert_eq!(wrong, 0, "{kind:?} six: {six}, of {delivered}");
            assert!(delivered > 16 * 304, "{kind:?} six: {six}: {delivered}");
        }
    }
}
