//! Flows of `thinair analyze`: none becomes larger by compression, and many of them take little memory and output.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use thinair_capture::LinkType;
use thinair_tests::tshark::{self, OutputFolder, datagram, write};
use thinair_tests::{command, files, root};

fn captures() -> Vec<PathBuf> {
    let mut folders = vec![root().join("captures")];
    match std::env::var_os("THINAIR_VECTORS") {
        Some(shared) => folders.push(Path::new(&shared).join("captures")),
        None => println!("skipped: THINAIR_VECTORS is not set (its captures)"),
    }
    let of = |folder: &PathBuf| [".pcap", ".pcapng"].map(|end| files(folder, end)).concat();
    folders.iter().flat_map(of).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// Asserts that `thinair analyze` loses, alters or enlarges no packet of a capture.
fn assert_sound(capture: &Path, name: &str, mode: Option<&str>) {
    let output = Command::new(command())
        .args(["analyze", "--json"])
        .args(mode.iter().flat_map(|mode| ["--mode", mode]))
        .arg(capture)
        .output()
        .unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let schemes = found["totals"]["schemes"].as_array().unwrap();
    assert!(schemes.iter().any(|scheme| scheme["larger_flows"] == 0), "{name}");
    for scheme in schemes {
        let id = format!("{name}: {} {} {}", scheme["scheme"], scheme["mode"], scheme["contexts"]);
        assert_eq!((&scheme["roundtrip_mismatches"], &scheme["lost"]), (&0.into(), &0.into()), "{id}");
        assert_eq!(scheme.get("larger_flows").map_or(0, number), 0, "{id}");
    }
}

#[test]
fn no_flow_of_any_capture_is_lost_wrong_or_larger() {
    let captures = captures();
    assert!(captures.len() >= 42, "{captures:?}");
    for mode in [None, Some("r")] {
        for capture in &captures {
            assert_sound(capture, &capture.display().to_string(), mode);
        }
    }
}

/// Octets of what the bill of a capture has as retransmissions of TCP, beside tshark's analysis of sequence numbers.
#[test]
fn retransmissions_of_the_bill_are_those_of_tshark() {
    if !tshark::is_there() {
        return;
    }
    let filter = ["-Y", "tcp.analysis.retransmission || tcp.analysis.out_of_order"];
    let mut with_some = 0;
    for capture in files(&root().join("crates/analyze/tests/causes"), ".pcap") {
        let output = Command::new(command()).args(["analyze", "--json"]).arg(&capture).output().unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let is_it = |row: &&Value| row["cause"] == "retransmissions" && row["protocol"] == "tcp";
        let ours = found["bill"].as_array().unwrap().iter().find(is_it);
        let ours = ours.map_or((0, 0), |row| (number(&row["packets"]), number(&row["bytes"])));
        let theirs = tshark::fields_of(&[], &capture, &filter, &["frame.len"]);
        let octets = theirs.iter().map(|fields| fields[0].parse::<u64>().unwrap()).sum();
        assert_eq!(ours, (theirs.len() as u64, octets), "{}", capture.display());
        with_some += u32::from(ours.0 > 0);
    }
    assert!(with_some >= 3, "{with_some}");
}

/// Random numbers: SplitMix64.
struct SplitMix64(u64);

impl SplitMix64 {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % limit
    }
}

/// Change of the times between the packets of a capture. Times are in microseconds.
#[derive(Clone, Copy, Debug)]
enum TimingChange {
    /// All times scaled by one factor: slower links, and sensors that report rarely.
    Slower,
    /// Pauses of up to a minute, once in 20 packets.
    Pauses,
    /// Constant intervals, with rare pauses of up to 400 of them.
    Paced,
    /// Random times, in bursts and with pauses.
    Erratic,
}

impl TimingChange {
    fn gap(self, gap: u64, unit: u64, random: &mut SplitMix64) -> u64 {
        let is_one_in = |n, random: &mut SplitMix64| random.below(n) == 0;
        match self {
            Self::Slower => gap * unit / 1_000,
            Self::Pauses if is_one_in(20, random) => gap + 50_000 * (1 + random.below(1_200)),
            Self::Pauses => gap,
            Self::Paced if is_one_in(50, random) => unit * (2 + random.below(400)),
            Self::Paced => unit,
            Self::Erratic => {
                let longest = (unit << random.below(12)) / 64;
                random.below(1 + longest)
            }
        }
    }
}

/// Capture in the format of pcap with other times; `None` for another format.
fn retimed(capture: &[u8], pace: TimingChange, random: &mut SplitMix64) -> Option<Vec<u8>> {
    let per_second = match capture.get(..4)? {
        [0xD4, 0xC3, 0xB2, 0xA1] => 1_000_000,
        [0x4D, 0x3C, 0xB2, 0xA1] => 1_000_000_000,
        _ => return None,
    };
    let mut retimed = capture.to_vec();
    let unit = 1_000 << random.below(14);
    let (mut at, mut now, mut before) = (24, 1_700_000_000_000_000, None);
    while let Some(record) = retimed.get_mut(at..at + 16) {
        let word = |i: usize| u64::from(u32::from_le_bytes(record[i..i + 4].try_into().unwrap()));
        let time = word(0) * 1_000_000 + word(4) * 1_000_000 / per_second;
        let len = word(8);
        now += before.map_or(0, |before| pace.gap(time.saturating_sub(before), unit, random));
        before = Some(time);
        let fraction = now % 1_000_000 * (per_second / 1_000_000);
        record[..4].copy_from_slice(&u32::try_from(now / 1_000_000).unwrap().to_le_bytes());
        record[4..8].copy_from_slice(&u32::try_from(fraction).unwrap().to_le_bytes());
        at += 16 + usize::try_from(len).unwrap();
    }
    Some(retimed)
}

/// On a lossless channel every packet is restored, and no flow becomes larger, for any intervals between packets.
#[test]
fn captures_come_back_at_any_pace() {
    let folder = OutputFolder::new("paces");
    let mut random = SplitMix64(1);
    let mut count = 0;
    for capture in captures() {
        let octets = std::fs::read(&capture).unwrap();
        for pace in [TimingChange::Slower, TimingChange::Pauses, TimingChange::Paced, TimingChange::Erratic] {
            let Some(retimed) = retimed(&octets, pace, &mut random) else { continue };
            let path = folder.path("retimed.pcap");
            std::fs::write(&path, retimed).unwrap();
            assert_sound(&path, &format!("{} {pace:?}", capture.display()), None);
            count += 1;
        }
    }
    println!("{count} captures with other times");
    assert!(count > 100, "{count}");
}

/// As many as ports: a scan.
const FLOWS: usize = 60_000;

/// Number of flows that are listed with every figure.
const LISTED: usize = 1_000;

/// Address space of the command in KiB: 10 KB per flow would exceed it.
const SPACE: usize = 500_000;

#[test]
fn a_scan_takes_little_memory_and_output() {
    let folder = OutputFolder::new("flows");
    let path = folder.path("scan.pcap");
    let packets: Vec<_> = (0..FLOWS).map(|port| datagram(u16::try_from(port).unwrap(), b"a probe")).collect();
    write(LinkType::RAW, &path, &packets);
    let script = format!("ulimit -v {SPACE}; exec \"$@\"");
    let output = Command::new("sh")
        .args(["-c", &script, "sh", &command(), "analyze", "--json", "--most-flows", &LISTED.to_string()])
        .arg(&path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.len() <= 1_000 * FLOWS, "{} octets", output.stdout.len());

    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (flows, others) = (found["flows"].as_array().unwrap(), found["other_flows"].as_array().unwrap());
    assert_eq!((flows.len(), others.len()), (LISTED, FLOWS - LISTED));
    let totals = &found["totals"];
    assert_eq!(number(&totals["flows"]), FLOWS as u64);
    for key in ["packets", "bytes_in"] {
        let sum: u64 = flows.iter().chain(others).map(|flow| number(&flow[key])).sum();
        assert_eq!(sum, number(&totals[key]), "{key}");
    }
    for (at, scheme) in totals["schemes"].as_array().unwrap().iter().enumerate() {
        for key in ["bytes_out", "feedback_bytes"] {
            let listed: u64 = flows.iter().map(|flow| number(&flow["schemes"][at][key])).sum();
            let other: u64 = others.iter().map(|flow| flow.get(key).map_or(0, |all| number(&all[at]))).sum();
            assert_eq!(listed + other, number(&scheme[key]), "{key} of {scheme}");
        }
    }
}
