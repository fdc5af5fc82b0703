//! Time per packet beside that of another implementation, by turns in one run, for equal packets.

use std::process::Command;

use crate::{BATCH, BenchTraffic, CONTEXTS, DECOMPRESSED_AT_ONCE, TimedReceiver, TimedSender, TimedSide};

/// Cases that are compared, by the names that the program gets.
const CASES: [(&str, BenchTraffic); 7] = [
    ("udp-ipv4", BenchTraffic::InTurn(1)),
    ("udp-ipv6", BenchTraffic::Ipv6),
    ("rtp-ipv4", BenchTraffic::Rtp),
    ("esp-ipv4", BenchTraffic::Esp),
    ("udp-v2-ipv4", BenchTraffic::V2),
    ("udp-ipv4-16384", BenchTraffic::InTurn(CONTEXTS)),
    ("new-flow-16384", BenchTraffic::OnePacketFlows),
];

/// Number of turns of each case.
const TURNS: usize = 5;

/// Runs the program in `THINAIR_PEER_TIMES`, if it is set, by turns with ours.
pub(crate) fn compare() {
    let Some(program) = std::env::var_os("THINAIR_PEER_TIMES") else {
        println!("Not compared with another implementation: THINAIR_PEER_TIMES is not set.");
        return;
    };
    println!("ns per packet, ours and theirs, and how many times theirs ours is; medians of {TURNS} turns");
    println!(
        "{:<16}{:>9}{:>9}{:>7}   {:>10}{:>9}{:>7}   ours goes by",
        "", "compress", "theirs", "ratio", "decompress", "theirs", "ratio"
    );
    for (name, traffic) in CASES {
        let (mut sender, mut receiver) = (TimedSender::new(traffic), TimedReceiver::new(traffic));
        let mut turns: [Vec<f64>; 6] = Default::default();
        for _ in 0..TURNS {
            let output = Command::new(&program).arg(name).output().expect("THINAIR_PEER_TIMES is a program");
            let text = String::from_utf8_lossy(&output.stdout);
            let theirs: Vec<f64> =
                text.split_whitespace().skip(1).take(2).filter_map(|word| word.parse().ok()).collect();
            let [compress, decompress] = theirs[..] else { panic!("{name}: {text}") };
            let [a, b] = [typical(&mut sender), typical(&mut receiver)];
            for (turns, value) in
                turns.iter_mut().zip([a, compress, a / compress, b, decompress, b / decompress])
            {
                turns.push(value);
            }
        }
        let [a, compress, x, b, decompress, y] = turns.map(median);
        let profile = sender.profile().name();
        println!(
            "{name:<16}{a:>9.1}{compress:>9.1}{x:>7.3}   {b:>10.1}{decompress:>9.1}{y:>7.3}   {profile}"
        );
    }
}

/// Number of packets per time.
const PACKETS: usize = 2 * DECOMPRESSED_AT_ONCE;

/// Median of the nanoseconds per packet over batches, to exclude other load of the machine.
fn typical(side: &mut impl TimedSide) -> f64 {
    let batches = side.batches(PACKETS);
    median(batches.iter().map(|time| time.as_secs_f64() * 1e9 / BATCH as f64).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
