//! Flows at the pace of people and programs, with bursts and pauses, on channels that lose nothing and keep the order: every
//! packet is delivered correctly.
//!
//! ```text
//! THINAIR_PACKETS=100000 THINAIR_SEED=2 cargo test --profile optimized -p thinair-rohc --test all lossless -- --nocapture
//! ```

use crate::common::SplitMix64;
use crate::common::journey::{Fates, JourneyOutcome, JourneySetup, PacketFate, PacketPace, run_flows};
use crate::common::source::SourceKind;
use crate::common::table::{OutcomeTable, Size};

/// No impairment.
struct Arrives;

impl Fates for Arrives {
    fn of(&mut self, _number: u64, _random: &mut SplitMix64) -> PacketFate {
        PacketFate::default()
    }
}

#[test]
fn every_packet_is_delivered_at_any_pace() {
    let size = Size::from_environment();
    let packets = size.packets.unwrap_or(800);
    let paces = [
        PacketPace::Erratic(2_000),
        PacketPace::Erratic(50_000),
        PacketPace::Erratic(3_000_000),
        PacketPace::NONE,
        PacketPace::MS_20,
    ];
    let chat = |setup: &JourneySetup| {
        (setup.kind == SourceKind::TcpAck).then_some(JourneySetup { kind: SourceKind::TcpChat, ..*setup })
    };
    let mut setups = JourneySetup::all(&paces, 500);
    setups.extend(setups.clone().iter().filter_map(chat));
    let table = OutcomeTable::measure("lossless", setups, &["wrong, not delivered"], &size, |setup, _| {
        run_flows(setup, size.seed + 2_000, packets, 400, || Arrives)
    });
    table.print(|_, outcome| format!("{} {}", outcome.wrong, outcome.undelivered));
    table.hold(&[], |_, _, outcome| {
        let JourneyOutcome { wrong, undelivered, sent, .. } = outcome;
        (wrong + undelivered > 0).then(|| format!("{wrong} wrong and {undelivered} not delivered of {sent}"))
    });
}
