//! A channel that loses nearly everything, in the profiles of RFC 3095, TCP and CoAP: a delivered packet equals the one sent. Either
//! 90 % of the packets are lost, or bursts of them, longer than the bits of a sequence number can tell, with few packets between
//! two bursts. Each cell has wrong packets, and of 1,000 packets that arrive those that are not delivered. `THINAIR_PACKETS` and
//! `THINAIR_SEED` as in `impaired_matrix`.

#![allow(clippy::unwrap_used)]

mod common;

use common::SplitMix64;
use common::journey::{Fates, JourneySetup, PacketFate, PacketPace, run_flows};
use common::table::{OutcomeTable, Size, wrong};

const COLUMNS: [&str; 2] = ["loss 90 %", "bursts 14 to 1,026"];

/// Cells that miss their limit: after a long burst so many sequence numbers and timestamps are possible that the checksum of a wrong
/// one may be right.
const OPEN: &[&str] = &["RtpTalk bursts wrong", "RtpPause bursts wrong"];

/// Losses of a column.
struct HeavyLosses {
    is_in_bursts: bool,
    /// Packets left of a burst, and of those that arrive behind it.
    losing: u64,
    arriving: u64,
}

impl HeavyLosses {
    /// Begins a burst about as long as the numbers of packets at which 4 to 10 bits repeat.
    fn begin_burst(&mut self, random: &mut SplitMix64) {
        self.losing = (1 << (4 + random.below(7))) - 2 + random.below(5);
        let most = if random.once_in(2) { 4 } else { 200 };
        self.arriving = 1 + random.below(most);
    }
}

impl Fates for HeavyLosses {
    fn of(&mut self, number: u64, random: &mut SplitMix64) -> PacketFate {
        // The context is established before anything is lost.
        if number <= 20 {
            return PacketFate::default();
        }
        if !self.is_in_bursts {
            return PacketFate { is_lost: !random.once_in(10), ..PacketFate::default() };
        }
        if self.losing + self.arriving == 0 {
            self.begin_burst(random);
        }
        let is_lost = self.losing > 0;
        *(if is_lost { &mut self.losing } else { &mut self.arriving }) -= 1;
        PacketFate { is_lost, ..PacketFate::default() }
    }

    fn loses_feedback(&mut self, random: &mut SplitMix64) -> bool {
        self.losing > 0 || random.once_in(10)
    }
}

#[test]
fn packets_are_right_where_few_arrive() {
    let size = Size::from_environment();
    let setups = JourneySetup::all(&[PacketPace::MS_20, PacketPace::MS_160, PacketPace::NONE], 50_000);
    let table = OutcomeTable::measure("heavy_loss", setups, &COLUMNS, &size, |setup, column| {
        let fates = || HeavyLosses { is_in_bursts: column == 1, losing: 0, arriving: 0 };
        run_flows(setup, size.seed + 1_000, size.packets(setup, 1_500), 20_000, fates)
    });
    table.print(|setup, outcome| {
        let bound = if setup.is_unproved() { format!("/{:.0}", outcome.bound) } else { String::new() };
        let undelivered = 1_000.0 * outcome.undelivered as f64 / outcome.arrived as f64;
        format!("{}{bound} {undelivered:.0}", outcome.wrong)
    });
    table.hold(OPEN, |_, _, outcome| wrong(outcome));
}
