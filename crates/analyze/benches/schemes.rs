//! Time of an analysis by schemes and threads, as ratios, since times vary with machine and load.
//!
//! `cargo bench -p thinair-analyze --bench schemes` analyzes 100,000 CoAP GETs over UDP and IPv4 in 64 flows by turns, and
//! prints medians and quartiles of
//!
//! - the time with SCHC in times of that with ROHC, its rules included;
//! - the time with four schemes in two threads in times of that in one thread.

use std::time::Instant as Clock;

use thinair_analyze::{Analysis, SchemeSpec, Settings, Survey};
use thinair_capture::{LinkType, Timestamp, Writer};
use thinair_rohc::{Channel, CidSpace, Mode, ProfileSet};
use thinair_wire::header::ipv4::Ipv4;

/// Number of packets, and of flows that send them by turns.
const PACKETS: u32 = 100_000;
const FLOWS: u32 = 64;

/// Pairs of analyses for one ratio.
const PAIRS: usize = 7;

fn main() {
    let capture = capture();
    let channel = Channel::new(CidSpace::Large, 127, ProfileSet::v1()).expect("CIDs for all flows");
    let rohc = |name, mode| SchemeSpec::Rohc { name, channel, mode, learned: false };
    let optimistic = rohc("rohc-v1", Mode::Optimistic);
    let all = [
        optimistic,
        rohc("rohc-v1", Mode::Unidirectional),
        rohc("rohc-v1", Mode::Reliable),
        SchemeSpec::Schc,
    ];
    let time = |schemes: &[SchemeSpec], threads| time(&Settings::new(channel, schemes), threads, &capture);
    ratio("SCHC in times of ROHC", || time(&[SchemeSpec::Schc], 1) / time(&[optimistic], 1));
    ratio("two threads in times of one", || time(&all, 2) / time(&all, 1));
}

/// Seconds of one analysis, with its survey.
fn time(settings: &Settings, threads: usize, capture: &[u8]) -> f64 {
    let start = Clock::now();
    let mut survey = Survey::default();
    survey.read(settings, capture, |_| ()).expect("a capture");
    let mut analysis = Analysis::new(settings.clone(), survey).with_threads(threads);
    analysis.read("gets.pcap", capture, |_| ()).expect("a capture");
    assert_eq!(analysis.finish().mismatches(), 0);
    start.elapsed().as_secs_f64()
}

fn ratio(what: &str, pair: impl Fn() -> f64) {
    let mut ratios: Vec<_> = (0..PAIRS).map(|_| pair()).collect();
    ratios.sort_by(f64::total_cmp);
    let [first, median, third] = [1, 2, 3].map(|quarter| ratios[quarter * (PAIRS - 1) / 4]);
    println!("{what:30} {median:.2} ({first:.2}, {third:.2})");
}

fn capture() -> Vec<u8> {
    let mut file = Writer::new(Vec::new(), LinkType::RAW).expect("memory");
    for at in 0..PACKETS {
        let (flow, number) = ((at % FLOWS) as u8, (at / FLOWS) as u16);
        let mut packet = *b"\x45\0\0\x25\0\0\x40\0\x40\x11\0\0\x0a\0\0\0\x0a\x09\0\x01\x9c\0\x16\x33\0\x11\0\0\x40\x01\0\0\xb4time";
        packet[4..6].copy_from_slice(&number.to_be_bytes());
        (packet[15], packet[21]) = (flow, flow);
        packet[30..32].copy_from_slice(&number.wrapping_mul(7).to_be_bytes());
        let checksum = Ipv4::checksum_of(&packet[..Ipv4::LEN]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        file.write(Timestamp::from_nanos(u64::from(at) * 1_000_000), &packet).expect("memory");
    }
    file.into_inner()
}
