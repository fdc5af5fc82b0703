//! `thinair analyze`, as a user runs it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const ONE: &str = "../../captures/coap_udp4_observe.pcap";

fn thinair(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_thinair")).arg("analyze").args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = thinair(&[arguments, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The captures of a folder, in order.
fn captures(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut captures: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "pcap" || end == "pcapng")).collect();
    captures.sort();
    captures
}

/// What must hold for any captures: nothing aborted, every packet accounted for and proven.
fn assert_sound(paths: &[PathBuf]) -> Value {
    let arguments: Vec<_> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    let found = json(&arguments);
    assert_eq!(found["schema"], "thinair.analyze/1");
    let inputs = found["inputs"].as_array().unwrap();
    assert_eq!(inputs.len(), paths.len());
    for input in inputs {
        let skipped: u64 = input["skipped"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(input["ip_packets"].as_u64().unwrap() + skipped, input["packets"], "{input}");
        assert_eq!(input["ended_by"], Value::Null);
    }
    let totals = &found["totals"];
    assert_eq!(sum(&found["inputs"], "ip_packets"), totals["packets"]);
    for key in ["packets", "bytes_in", "header_bytes_in"] {
        assert_eq!(sum(&found["flows"], key), totals[key], "{key}");
    }
    for (at, mode) in ["u", "o"].into_iter().enumerate() {
        let scheme = &totals["schemes"][at];
        assert_eq!((&scheme["scheme"], &scheme["mode"]), (&"rohc-v1".into(), &mode.into()));
        assert_eq!((&scheme["roundtrip_mismatches"], &scheme["lost"]), (&0.into(), &0.into()));
        let types: u64 =
            scheme["packet_types"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(types, totals["packets"]);
        let layers: u64 =
            scheme["layers_out"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(layers, scheme["bytes_out"]);
        // What is no header goes as it is.
        let rest = |bytes: &Value, headers: &Value| bytes.as_u64().unwrap() - headers.as_u64().unwrap();
        assert_eq!(
            rest(&scheme["bytes_out"], &scheme["header_bytes_out"]),
            rest(&totals["bytes_in"], &totals["header_bytes_in"])
        );
    }
    found
}

fn sum(list: &Value, key: &str) -> u64 {
    list.as_array().unwrap().iter().map(|one| one[key].as_u64().unwrap()).sum()
}

#[test]
fn every_packet_of_our_captures_comes_back() {
    let found = assert_sound(&captures(Path::new("../../captures")));
    assert_eq!(sum(&found["inputs"], "packets"), 14_362);
}

#[test]
fn every_packet_of_the_shared_captures_comes_back() {
    let Some(shared) = std::env::var_os("THINAIR_SHARED") else {
        println!("skipped: THINAIR_SHARED is not set (20 captures, 24,401 records)");
        return;
    };
    let folder = Path::new(&shared).join("captures");
    let paths = [captures(&folder.join("own")), captures(&folder.join("open"))].concat();
    assert_eq!(paths.len(), 20);
    let found = assert_sound(&paths);
    assert_eq!(sum(&found["inputs"], "packets"), 24_401);
}

#[test]
fn a_damaged_octet_is_noticed() {
    let output = thinair(&[ONE, "--break"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("1 packet did NOT come back bit for bit"));
    assert!(stderr(&output).contains("first differs at octet 47"), "{}", stderr(&output));
}

#[test]
fn less_than_asked_for_is_status_3() {
    assert_eq!(thinair(&[ONE, "--fail-under", "50"]).status.code(), Some(0));
    let output = thinair(&[ONE, "--fail-under", "99"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("less than the 99 % asked for"));
}

#[test]
fn wrong_arguments_are_status_2_and_say_why() {
    for (arguments, why) in [
        (&[ONE, "--mode", "r"][..], "R-mode is not available yet"),
        (&[ONE, "--profiles", "udp,bogus"], "no profile `bogus`"),
        (&[ONE, "--max-cid", "16"], "MAX_CID 16 is beyond"),
        (&[ONE, "--refresh", "often"], "expected `packets=N"),
        (&[ONE, "--loss", "101"], "from 0 to 100"),
        (&[ONE, "--price", "1"], "--billing-unit"),
        (&[ONE, "--billing-unit", "0"], "--billing-unit"),
        (&["-", "-"], "only once"),
        (&[], "<FILE>"),
    ] {
        let output = thinair(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn files_that_cannot_be_read_are_status_1_and_named() {
    for (path, why) in
        [("absent.pcap", "cannot open absent.pcap"), ("Cargo.toml", "Cargo.toml: not a capture")]
    {
        let output = thinair(&[ONE, path]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
}

#[test]
fn the_same_run_gives_the_same_octets() {
    for arguments in [&[ONE][..], &[ONE, "--json"], &[ONE, "--loss", "10", "--json"], &[ONE, "--csv"]] {
        assert_eq!(thinair(arguments).stdout, thinair(arguments).stdout, "{arguments:?}");
    }
}

#[test]
fn standard_input_is_a_capture() {
    let piped = Command::new(env!("CARGO_BIN_EXE_thinair"))
        .args(["analyze", "-", "--json"])
        .stdin(Stdio::from(fs::File::open(ONE).unwrap()))
        .output()
        .unwrap();
    let piped: Value = serde_json::from_slice(&piped.stdout).unwrap();
    let named = json(&[ONE]);
    assert_eq!(piped["inputs"][0]["path"], "-");
    assert_eq!((&piped["totals"], &piped["flows"]), (&named["totals"], &named["flows"]));
}

#[test]
fn a_reader_that_stops_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_thinair"))
        .args(["analyze", ONE, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn lost_packets_are_counted_and_do_not_corrupt_others() {
    let found = json(&[ONE, "--loss", "10", "--seed", "3"]);
    for scheme in found["totals"]["schemes"].as_array().unwrap() {
        let lost = scheme["lost"].as_u64().unwrap();
        assert!((20..80).contains(&lost), "{lost}");
        assert_eq!(scheme["roundtrip_mismatches"], 0);
    }
    let all = json(&[ONE, "--loss", "100"]);
    assert_eq!(all["totals"]["schemes"][0]["lost"], all["totals"]["packets"]);
}

#[test]
fn two_captures_are_two_links() {
    let (one, two) = (json(&[ONE]), json(&[ONE, ONE]));
    assert_eq!(two["flows"].as_array().unwrap().len(), 2 * one["flows"].as_array().unwrap().len());
    for (at, scheme) in one["totals"]["schemes"].as_array().unwrap().iter().enumerate() {
        let twice = &two["totals"]["schemes"][at]["bytes_out"];
        assert_eq!(twice.as_u64().unwrap(), 2 * scheme["bytes_out"].as_u64().unwrap());
    }
}

#[test]
fn what_cannot_be_compressed_is_carried_and_counted() {
    let found = json(&[ONE, "--profiles", "uncompressed", "--mode", "u"]);
    let scheme = &found["totals"]["schemes"][0];
    assert_eq!(found["flows"][0]["profile"], "uncompressed");
    assert_eq!(found["totals"]["schemes"].as_array().unwrap().len(), 1);
    assert!(scheme["bytes_out"].as_u64() >= found["totals"]["bytes_in"].as_u64());
    assert!(scheme["saved_ratio"].as_f64().unwrap() <= 0.0);
}

#[test]
fn a_link_has_units_and_an_mtu() {
    let arguments = ["--mode", "u", "--billing-unit", "10", "--price", "0.5", "--link-mtu", "30"];
    let totals = json(&[&[ONE][..], &arguments].concat())["totals"].take();
    // Whole units: at least as much as the octets by themselves would cost.
    assert!(totals["cost_in"].as_f64().unwrap() >= totals["bytes_in"].as_f64().unwrap() / 10.0 * 0.5);
    assert!(totals["schemes"][0]["cost_out"].as_f64() < totals["cost_in"].as_f64());
    assert_eq!(totals["over_mtu_in"], totals["packets"]);
    assert!(totals["schemes"][0]["over_mtu_out"].as_u64() < totals["over_mtu_in"].as_u64());
}

#[test]
fn a_capture_that_was_interrupted_is_told() {
    let whole = fs::read(ONE).unwrap();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interrupted.pcap");
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let output = thinair(&[path.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["inputs"][0]["packets"], 402);
    assert!(found["inputs"][0]["ended_by"].as_str().unwrap().contains("truncated file"));
    assert!(stderr(&output).contains("truncated file"));
}

#[test]
fn the_page_needs_no_network_and_the_csv_has_every_flow() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report.html");
    let output = thinair(&[ONE, "--csv", "--html", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let csv = stdout(&output);
    assert!(csv.starts_with("path,src,dst,protocol,profile,packets,bytes_in,header_bytes_in,bytes_out_u,"));
    assert_eq!(csv.lines().count(), 1 + 2);
    let page = fs::read_to_string(path).unwrap();
    assert!(page.contains("Header size over time") && page.contains("10.99.0.1:5683"));
    assert!(!page.contains("src=\"http") && !page.contains("<link"));
}

#[test]
fn output_to_a_file_has_no_colour() {
    let text = stdout(&thinair(&[ONE]));
    assert!(!text.contains('\u{1b}'));
    assert!(text.contains("ROHC v1 in U-mode: 15,133 -> "));
    assert!(text.trim_end().ends_with("every packet came back bit for bit."));
}
