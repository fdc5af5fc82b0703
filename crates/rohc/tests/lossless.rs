//! Flows at the pace of people and programs, with bursts and pauses, on channels that lose nothing and keep the order: every packet
//! is delivered, and right.
//!
//! ```text
//! THINAIR_PACKETS=100000 THINAIR_SEED=2 cargo test --release -p thinair-rohc --test lossless -- --nocapture
//! ```

#![allow(clippy::unwrap_used)]

mod common;

use common::Random;
use common::journey::{Fate, Fates, Outcome, Pace, Setup, run};
use common::source::Kind;
use common::table::{Size, Table};

/// Nothing is lost.
struct Arrives;

impl Fates for Arrives {
    fn of(&mut self, _number: u64, _random: &mut Random) -> Fate {
        Fate::default()
    }
}

#[test]
fn every_packet_is_delivered_at_any_pace() {
    let size = Size::from_environment();
    let packets = size.packets.unwrap_or(2_000);
    let paces =
        [Pace::Erratic(2_000), Pace::Erratic(50_000), Pace::Erratic(3_000_000), Pace::NONE, Pace::MS_20];
    let chat =
        |setup: &Setup| (setup.kind == Kind::TcpAck).then_some(Setup { kind: Kind::TcpChat, ..*setup });
    let mut setups = Setup::all(&paces, 500);
    setups.extend(setups.clone().iter().filter_map(chat));
    let table = Table::measure(setups, &["wrong, not delivered"], &size, |setup, _| {
        let mut all = Outcome::default();
        let mut random = Random(size.seed + 2_000);
        while all.sent < packets {
            let part = (packets - all.sent).min(400);
            all.add(&run(setup, &mut Arrives, random.next(), part));
        }
        all
    });
    table.print(|_, outcome| format!("{} {}", outcome.wrong, outcome.undelivered));
    table.hold(&[], |_, _, outcome| {
        let Outcome { wrong, undelivered, sent, .. } = outcome;
        (wrong + undelivered > 0).then(|| format!("{wrong} wrong and {undelivered} not delivered of {sent}"))
    });
}
