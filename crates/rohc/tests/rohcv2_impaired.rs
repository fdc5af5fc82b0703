//! ROHCv2 (RFC 5225) over channels that lose, reorder and repeat packets: a packet that is delivered is the one that was sent, and
//! packets that are late by no more than the ratio allows are delivered.
//!
//! Each cell has wrong packets (and, where nothing but a CRC proves a candidate, the number that the formats let through),
//! packets of 1,000 that arrive and are not delivered, and the longest outage in packets. In full, with other seeds:
//!
//! ```text
//! THINAIR_PACKETS=1000000 THINAIR_SEED=2 cargo test --release -p thinair-rohc --test rohcv2_impaired -- --nocapture
//! ```

#![cfg(feature = "v2")]
#![allow(clippy::unwrap_used)]

mod common;

use common::SplitMix64;
use common::journey::{Fates, JourneyOutcome, JourneySetup, PacketFate, PacketPace, run};
use common::table::{OutcomeTable, Size, wrong};
use thinair_rohc::ReorderRatio;

const COLUMNS: [&str; 5] = ["5 % late", "all late", "loss 20 %", "bursts 2 to 40", "5 % twice"];

/// Ratios, and packets by which a packet is late at most.
const RATIOS: [(ReorderRatio, u64); 4] = [
    (ReorderRatio::None, 1),
    (ReorderRatio::Quarter, 3),
    (ReorderRatio::Half, 7),
    (ReorderRatio::ThreeQuarters, 11),
];

/// The fates of a column.
struct Cell {
    column: usize,
    depth: u64,
    losing: u64,
}

impl Fates for Cell {
    fn of(&mut self, number: u64, random: &mut SplitMix64) -> PacketFate {
        let mut fate = PacketFate::default();
        // The context is there before anything is lost.
        if number <= 20 {
            return fate;
        }
        match self.column {
            0 if random.once_in(20) => fate.late = 1 + random.below(self.depth),
            1 => fate.late = random.below(self.depth + 1),
            2 => fate.is_lost = random.once_in(5),
            3 => {
                if self.losing == 0 && random.once_in(100) {
                    self.losing = 2 + random.below(39);
                }
                fate.is_lost = self.losing > 0;
                self.losing = self.losing.saturating_sub(1);
            }
            4 if random.once_in(20) => fate.again = Some(random.below(self.depth + 1)),
            _ => {}
        }
        fate
    }
}

/// Cells that miss their bar.
const OPEN: &[&str] = &[];

#[test]
fn packets_are_right_whatever_the_channel_does() {
    let size = Size::from_environment();
    let packets = size.packets.unwrap_or(2_000);
    for (ratio, depth) in RATIOS {
        println!("{ratio:?}, late by {depth} at most");
        let setups = JourneySetup::of_v2(&[PacketPace::MS_20, PacketPace::NONE], 50_000, ratio);
        let table = OutcomeTable::measure(setups, &COLUMNS, &size, |setup, column| {
            let mut all = JourneyOutcome::default();
            let mut random = SplitMix64(size.seed + 1_000);
            while all.sent < packets {
                let mut fates = Cell { column, depth, losing: 0 };
                all.add(&run(setup, &mut fates, random.next(), (packets - all.sent).min(20_000)));
            }
            all
        });
        table.print(|setup, outcome| {
            let bound = if setup.is_unproved() { format!("/{:.0}", outcome.bound) } else { String::new() };
            let undelivered = 1_000.0 * outcome.undelivered as f64 / outcome.arrived as f64;
            format!("{}{bound} {undelivered:.1} {}", outcome.wrong, outcome.outage)
        });
        table.hold(OPEN, |_, _, outcome| wrong(outcome));
    }
}
