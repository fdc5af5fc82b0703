//! Senders that pause, and lose the first packets behind a pause; and the same streams with and without the count of a carrier.
//!
//! Each cell has wrong packets (and, where only a CRC proves a candidate, the number that the formats accept), packets that
//! arrive and are not delivered, the longest outage in packets and in seconds, and octets of headers a packet. In full:
//!
//! ```text
//! THINAIR_PACKETS=100000 THINAIR_SEED=2 cargo test --release -p thinair-rohc --test pause_matrix -- --nocapture
//! ```

#![allow(clippy::unwrap_used)]

mod common;

use common::journey::{JourneyOutcome, JourneySetup, PacketPace, run_flows};
use common::losses::{LossFates, Losses};
use common::pauses::{PauseShape, PausedClock, Pauses};
use common::source::{ChecksumUse, SourceKind};
use common::table::Size;
use common::{IdKind, SplitMix64};
use thinair_rohc::{Mode, ReorderRatio};

/// Delay in one direction, in microseconds.
const DELAY: u64 = 50_000;

fn modes(kind: SourceKind, v2: bool) -> &'static [Mode] {
    if v2 || kind.is_coap() || kind.is_tcp() {
        &[Mode::Unidirectional, Mode::Optimistic]
    } else {
        &[Mode::Unidirectional, Mode::Optimistic, Mode::Reliable]
    }
}

fn setup(kind: SourceKind, six: bool, checksum: ChecksumUse, mode: Mode, v2: Option<ReorderRatio>) -> JourneySetup {
    let (pace, ids) = (PacketPace::MS_20, IdKind::Counts);
    JourneySetup { kind, six, checksum, mode, pace, counts: false, moves: false, delay: DELAY, v2, ids }
}

fn text(outcome: &JourneyOutcome) -> String {
    let JourneyOutcome { wrong, bound, undelivered, arrived, gaps, outage, wait, overdue, .. } = *outcome;
    format!(
        "{wrong:>6}/{bound:<8.0} {undelivered:>7} of {arrived:<8} {gaps:>6} {outage:>6} {:>8.2} {overdue:>5} {:>6.3}",
        wait as f64 / 1e6,
        outcome.octets as f64 / outcome.sent as f64
    )
}

const HEAD: &str =
    " wrong/bound    undelivered of arrived    gaps outage  seconds  late octets a packet";

/// Runs `run` for each row on all cores, and returns the rows in order.
fn measure<R: Sync, T: Send>(rows: &[R], run: impl Fn(&R) -> T + Sync) -> Vec<T> {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(row) = rows.get(at) else { return };
                    let outcome = run(row);
                    done.lock().unwrap().push((at, outcome));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Flows with a pause of 1 to 25 s, and packets lost behind it.
#[test]
fn first_packets_behind_a_pause_are_lost() {
    let size = Size::from_environment();
    let packets = size.packets.unwrap_or(2_000);
    let mut rows = Vec::new();
    let v1 = [
        (SourceKind::Udp, ChecksumUse::Carried),
        (SourceKind::Esp, ChecksumUse::Carried),
        (SourceKind::Ip, ChecksumUse::Carried),
        (SourceKind::UdpLite, ChecksumUse::Carried),
        (SourceKind::Rtp, ChecksumUse::Carried),
        (SourceKind::Rtp, ChecksumUse::Elided),
        (SourceKind::RtpTalk, ChecksumUse::Carried),
        (SourceKind::TcpData, ChecksumUse::Carried),
        (SourceKind::TcpAck, ChecksumUse::Carried),
        (SourceKind::CoapGet, ChecksumUse::Carried),
        (SourceKind::CoapNotify, ChecksumUse::Carried),
        (SourceKind::CoapExchange, ChecksumUse::Carried),
    ];
    let v2 = v1[..6].iter().map(|row| (*row, Some(ReorderRatio::None)));
    for ((kind, checksum), v2) in v1.iter().map(|row| (*row, None)).chain(v2) {
        for six in [false, true] {
            for &mode in modes(kind, v2.is_some()) {
                for clock in [PausedClock::GoesOn, PausedClock::Stops] {
                    if clock == PausedClock::Stops && !kind.is_rtp() {
                        continue;
                    }
                    for lost in [3, 6, 16, 64] {
                        let pauses = Pauses { micros: 1_000_000, shape: PauseShape::Uniform, clock, lost };
                        let setup =
                            JourneySetup { pace: pauses.pace(), ..setup(kind, six, checksum, mode, v2) };
                        rows.push((setup, pauses));
                    }
                }
            }
        }
    }
    rows.retain(|(setup, pauses)| size.has(&format!("{} lost={}", setup.name(), pauses.lost)));
    let outcomes = measure(&rows, |(setup, pauses)| pauses.run(setup, packets, size.seed + 2_000));
    println!("{:<62}{HEAD}", "silent for 1 to 25 s by the sender, losses behind it");
    for ((setup, pauses), outcome) in rows.iter().zip(&outcomes) {
        let v2 = if setup.v2.is_some() { "v2" } else { "v1" };
        let clock = if pauses.clock == PausedClock::Stops { "stops" } else { "" };
        println!("{:<43} {v2} {clock:<6} lost={:<5}{}", setup.name(), pauses.lost, text(outcome));
    }
}

/// One stream without and with the count of a carrier.
#[test]
fn a_count_never_delivers_less() {
    let size = Size::from_environment();
    let packets = size.packets.unwrap_or(2_000);
    let columns = [
        Losses::Behind(64),
        Losses::Behind(256),
        Losses::Bursts,
        Losses::NineTenths,
        Losses::LongBursts,
    ];
    let mut rows = Vec::new();
    for kind in SourceKind::ALL.into_iter().filter(|kind| *kind != SourceKind::CoapMix) {
        for six in [false, true] {
            for &checksum in kind.checksums() {
                for &mode in modes(kind, false) {
                    for losses in columns {
                        rows.push((setup(kind, six, checksum, mode, None), losses));
                    }
                }
            }
        }
    }
    rows.retain(|(setup, losses)| size.has(&format!("{} {losses:?}", setup.name())));
    let outcomes = measure(&rows, |(setup, losses)| {
        [false, true].map(|counts| {
            let mut seeds = SplitMix64(size.seed + 3_000);
            let setup = JourneySetup { counts, ..*setup };
            run_flows(&setup, size.seed + 1_000, packets, 20_000, || LossFates::new(*losses, seeds.next()))
        })
    });
    println!("{:<57}{HEAD}", "without the count of a carrier, and with it");
    let mut worse = 0;
    for ((setup, losses), [without, with]) in rows.iter().zip(&outcomes) {
        let is_worse = with.wrong > without.wrong
            || with.wrong + with.undelivered > without.wrong + without.undelivered;
        worse += u32::from(is_worse);
        println!("{:<43} {:<13}{}", setup.name(), format!("{losses:?}"), text(without));
        let verdict = if is_worse { "  worse" } else { "" };
        println!("{:<43} {:<13}{}{verdict}", "", "count", text(with));
    }
    println!("{worse} of {} cells are worse with a count", rows.len());
}
