//! Flows of `thinair analyze`: none gets larger than it came, and many of them take little memory and output.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::tshark::{Folder, datagram, write};
use common::{command, files, root};
use serde_json::Value;
use thinair_capture::LinkType;

/// The profile of 2015, which exists for comparisons: it gives notifications an IR packet each, and O-mode answers every one
/// of them.
const AS_PUBLISHED: &str = "coap-2015";

fn captures() -> Vec<PathBuf> {
    let mut folders = vec![root().join("captures")];
    match std::env::var_os("THINAIR_SHARED") {
        Some(shared) => folders.push(Path::new(&shared).join("captures")),
        None => println!("skipped: THINAIR_SHARED is not set (its captures)"),
    }
    let of = |folder: &PathBuf| [".pcap", ".pcapng"].map(|end| files(folder, end)).concat();
    folders.iter().flat_map(of).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn no_flow_of_any_capture_is_lost_wrong_or_larger() {
    let captures = captures();
    assert!(captures.len() >= 35, "{captures:?}");
    for mode in [None, Some("r")] {
        for capture in &captures {
            let mode = mode.map(|mode| ["--mode", mode]);
            let output = Command::new(command())
                .args(["analyze", "--json"])
                .args(mode.iter().flatten())
                .arg(capture)
                .output()
                .unwrap();
            let name = capture.display();
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            let found: Value = serde_json::from_slice(&output.stdout).unwrap();
            let schemes = found["totals"]["schemes"].as_array().unwrap();
            assert!(schemes.iter().any(|scheme| scheme["larger_flows"] == 0), "{name}");
            for scheme in schemes {
                let id = format!("{name}: {} {} {}", scheme["scheme"], scheme["mode"], scheme["contexts"]);
                assert_eq!(
                    (&scheme["roundtrip_mismatches"], &scheme["lost"]),
                    (&0.into(), &0.into()),
                    "{id}"
                );
                if scheme["scheme"] != AS_PUBLISHED {
                    assert_eq!(scheme.get("larger_flows").map_or(0, number), 0, "{id}");
                }
            }
        }
    }
}

/// As many as ports: a scan.
const FLOWS: usize = 60_000;

/// Flows that are listed with every figure.
const LISTED: usize = 1_000;

/// Address space of the command, in KiB: 10 KB for each flow would be more.
const SPACE: usize = 500_000;

#[test]
fn a_scan_takes_little_memory_and_output() {
    let folder = Folder::new("flows");
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
