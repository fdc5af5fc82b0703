//! Bursts of losses, as after an outage of a link: 1 to 1,024 packets, at every phase of the LSBs. Feedback has the delay
//! of the packets.
//!
//! Each cell has wrong packets (and, where only a CRC proves a candidate, the number that the formats accept), the average
//! number of packets not delivered after a gap, and the longest outage in packets. In full, with other seeds:
//!
//! ```text
//! THINAIR_PACKETS=1000000 THINAIR_SEED=2 cargo test --release -p thinair-rohc --test silence -- --nocapture
//! ```

#![allow(clippy::unwrap_used)]

mod common;

use common::SplitMix64;
use common::journey::{Fates, JourneyOutcome, JourneySetup, PacketFate, PacketPace, run};
use common::source::SourceKind;
use common::table::{OutcomeTable, Size, wrong};

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
    let behind = size.packets.unwrap_or(BEHIND * 24);
    let mut random = SplitMix64(size.seed);
    for i in 0.. {
        let packets = bursts[i % bursts.len()];
        let first = 80 + random.below(64);
        let seed = random.next();
        // Two endpoints take turns in a mix.
        let turns = if setup.kind == SourceKind::CoapMix { 2 } else { 1 };
        all.add(&run(setup, &mut Burst { first, packets }, seed, turns * (first + packets + BEHIND)));
        if all.behind >= behind && i >= bursts.len() {
            return all;
        }
    }
    all
}

/// Cells that miss their limit.
const OPEN: &[&str] = &["Rtp count wrong", "CoapMix elided wrong"];

#[test]
fn packets_behind_a_silence_are_right() {
    let size = Size::from_environment();
    let setups = JourneySetup::all(&[PacketPace::MS_20, PacketPace::MS_160, PacketPace::NONE], 280_000);
    let columns = COLUMNS.map(|(name, _)| name);
    let table =
        OutcomeTable::measure(setups, &columns, &size, |setup, column| cell(setup, COLUMNS[column].1, &size));
    table.print(|setup, outcome| {
        let bound = if setup.is_unproved() { format!("/{:.0}", outcome.bound) } else { String::new() };
        format!("{}{bound} {:.1} {}", outcome.wrong, outcome.undelivered_a_gap(), outcome.outage)
    });
    table.hold(OPEN, |setup, _, outcome| {
        let undelivered = outcome.undelivered_a_gap();
        let is_slow = setup.is_paced() && undelivered > 1.0;
        wrong(outcome).or_else(|| is_slow.then(|| format!("{undelivered:.2} undelivered behind a gap")))
    });
}
