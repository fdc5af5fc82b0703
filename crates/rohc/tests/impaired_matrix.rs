//! Loss, reordering and duplicates, for every profile in one matrix: a delivered packet equals the one sent.
//!
//! Each cell has wrong packets (and, where only a CRC proves a candidate, the number that the formats accept), packets of
//! 1,000 that arrive and are not delivered, and the longest outage in packets. In full, with other seeds:
//!
//! ```text
//! THINAIR_PACKETS=1000000 THINAIR_SEED=2 cargo test --profile optimized -p thinair-rohc --test impaired_matrix -- --nocapture
//! ```

#![allow(clippy::unwrap_used)]

mod common;

use common::SplitMix64;
use common::journey::{Fates, JourneySetup, PacketFate, PacketPace, run_flows};
use common::table::{OutcomeTable, Size, wrong};

const COLUMNS: [&str; 7] =
    ["loss 5 %", "loss 20 %", "bursts 2 to 40", "5 % late", "5 % twice", "late, twice", "all late"];

/// Impairments of a column.
struct ColumnFates {
    column: usize,
    losing: u64,
}

impl Fates for ColumnFates {
    fn of(&mut self, number: u64, random: &mut SplitMix64) -> PacketFate {
        let mut fate = PacketFate::default();
        // The context is established before anything is lost.
        if number <= 20 {
            return fate;
        }
        match self.column {
            0 => fate.is_lost = random.once_in(20),
            1 => fate.is_lost = random.once_in(5),
            2 => {
                if self.losing == 0 && random.once_in(100) {
                    self.losing = 2 + random.below(39);
                }
                fate.is_lost = self.losing > 0;
                self.losing = self.losing.saturating_sub(1);
            }
            _ => {}
        }
        if matches!(self.column, 3 | 5) && random.once_in(20) {
            fate.late = 1 + random.below(8);
        }
        if self.column == 6 {
            fate.late = random.below(9);
        }
        if matches!(self.column, 4 | 5) && random.once_in(20) {
            fate.again = Some(random.below(9));
        }
        fate
    }

    fn loses_feedback(&mut self, random: &mut SplitMix64) -> bool {
        self.column == 0 && random.once_in(20) || self.column == 1 && random.once_in(5)
    }
}

/// Cells that miss their limit.
const OPEN: &[&str] = &[
    "RtpTalk outage",
    "RtpPause outage",
    "RtpTalk all wrong",
    "RtpPause all wrong",
    "moves outage",
    "elided all wrong",
    "Esp all wrong",
    "Udp all wrong",
    "UdpLite all wrong",
    "all outage",
    "CoapMix outage",
    "CoapClients outage",
    "DtlsMix outage",
];

#[test]
fn packets_are_right_whatever_the_channel_does() {
    let size = Size::from_environment();
    let mut setups = JourneySetup::all(&[PacketPace::MS_20, PacketPace::NONE], 50_000);
    setups.extend(JourneySetup::moving(PacketPace::MS_20, 50_000));
    let table = OutcomeTable::measure("impaired", setups, &COLUMNS, &size, |setup, column| {
        run_flows(setup, size.seed + 1_000, size.packets(setup, 1_200), 20_000, || ColumnFates {
            column,
            losing: 0,
        })
    });
    table.print(|setup, outcome| {
        let bound = if setup.is_unproved() { format!("/{:.0}", outcome.bound) } else { String::new() };
        let undelivered = 1_000.0 * outcome.undelivered as f64 / outcome.arrived as f64;
        format!("{}{bound} {undelivered:.1} {}", outcome.wrong, outcome.outage)
    });
    table.hold(OPEN, |_, column, outcome| {
        let has_loss = column.starts_with("loss") || column.starts_with("bursts");
        let is_long = !has_loss && outcome.outage > 5;
        wrong(outcome).or_else(|| is_long.then(|| format!("an outage of {} packets", outcome.outage)))
    });
}
