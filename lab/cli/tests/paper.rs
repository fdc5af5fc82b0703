//! `thinair-lab paper`, as a user runs it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs it without shared captures, so that the output is reproducible.
fn thinair(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thinair-lab"));
    command.env_remove("THINAIR_VECTORS").arg("paper").args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Recomputes the comparison that `met` reports.
fn is_met(row: &Value) -> bool {
    let (ours, bar) = (row["ours"].as_f64(), &row["bar"]);
    bar.is_null()
        || ours.is_some_and(|ours| {
            bar["max"].as_f64().is_none_or(|max| ours <= max)
                && bar["min"].as_f64().is_none_or(|min| ours >= min)
        })
}

#[test]
fn every_evaluation_is_listed() {
    let output = thinair(&["list"]);
    assert_eq!(output.status.code(), Some(0));
    for name in [
        "coap-delay",
        "coap-energy",
        "coap-robustness",
        "coap-sizes",
        "coap-tunnel-rtt",
        "ntn-voice",
        "ule-throughput",
    ] {
        assert!(stdout(&output).contains(name), "{name}");
    }
}

#[test]
fn json_has_every_cell_of_the_size_table_and_met_is_the_comparison() {
    let output = thinair(&["run", "coap-sizes", "--quick", "--seed", "5", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["schema"], &found["paper"]), (&"thinair.paper/1".into(), &"coap-sizes".into()));
    let rows = found["rows"].as_array().unwrap();
    let keys = ["bar", "id", "met", "ours", "peers", "theirs", "unit", "what"];
    for row in rows {
        assert!(row.as_object().unwrap().keys().map(String::as_str).collect::<BTreeSet<_>>() == keys.into());
        assert_eq!(row["met"], is_met(row), "{row}");
    }
    let flows = "a b c2 c4 c-count d e-req e-rsp f-req f-rsp g h h-rsp";
    for flow in flows.split(' ') {
        for version in ["v4", "v6"] {
            for way in ["elided-pt0", "elided-pt1", "carried"] {
                let id = format!("{flow}/{version}/{way}");
                let row = rows.iter().find(|row| row["id"] == id.as_str()).unwrap();
                assert!(row["ours"].is_number() && row["bar"]["max"].is_number(), "{row}");
                assert!(row["peers"]["schc"].is_number() && row["peers"]["udp"].is_number(), "{row}");
            }
        }
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn delays_are_told_and_held_to_no_bar() {
    let output = thinair(&["run", "coap-delay", "--quick", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = found["rows"].as_array().unwrap();
    for kind in ["ir-1", "ir-2", "ir-3", "ir-dyn", "uor-2", "uo-0"] {
        for (half, side) in [("get", "compress"), ("get", "total"), ("rsp", "decompress"), ("rsp", "total")] {
            let id = format!("coap-2015/{kind}/{half}/{side}/ns");
            let row = rows.iter().find(|row| row["id"] == id.as_str()).unwrap();
            assert!(row["ours"].is_number() && row["theirs"].is_number() && row["bar"].is_null(), "{row}");
            assert!(row["peers"]["raspberry-pi"].is_number(), "{row}");
        }
    }
}

#[test]
fn a_page_has_all_five_parts_and_needs_no_network() {
    let page = std::env::temp_dir().join(format!("thinair-paper-{}.html", std::process::id()));
    let output = thinair(&["run", "coap-sizes", "--html", page.to_str().unwrap()]);
    let html = fs::read_to_string(&page).unwrap();
    fs::remove_file(&page).unwrap();
    for part in ["Claim", "Method", "Theirs", "Ours", "Why different"] {
        assert!(html.contains(&format!(">{part}</h2>")), "{part}");
        assert!(stdout(&output).contains(&format!("\n{part}\n")), "{part}");
    }
    assert!(html.contains("<svg") && !html.contains("<script src") && !html.contains("<link"));
    assert!(stdout(&output).lines().all(|line| line.chars().count() <= 100));
    assert!(stderr(&output).contains("Left out: the rows leshan/"), "{}", stderr(&output));
}

#[test]
fn wrong_arguments_are_status_2_and_say_why() {
    for (arguments, why) in [
        (&["run", "bogus"][..], "coap-robustness, coap-sizes"),
        (&["run"], "<NAME>"),
        (&["run", "coap-sizes", "--seed", "x"], "invalid digit"),
    ] {
        let output = thinair(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn what_cannot_be_written_or_read_is_status_1() {
    let output = thinair(&["run", "coap-sizes", "--html", "/nowhere/page.html"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot write /nowhere/page.html"));

    let shared = std::env::temp_dir().join(format!("thinair-paper-{}", std::process::id()));
    let folder = shared.join("captures/open");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("leshan-thermostat-readings.pcapng"), "no capture").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_thinair-lab"));
    let output =
        command.env("THINAIR_VECTORS", &shared).args(["paper", "run", "coap-sizes"]).output().unwrap();
    fs::remove_dir_all(&shared).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot read"), "{}", stderr(&output));
}

#[test]
fn throughput_over_dvb_s_meets_its_bars_in_virtual_time() {
    let output = thinair(&["run", "ule-throughput", "--quick", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = found["rows"].as_array().unwrap();
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("{id}"));
    for payload in [40, 80, 120, 160, 200, 300, 512, 1_024] {
        for figure in ["model", "simulated", "padding"] {
            for column in ["unc", "cmp", "gain"] {
                assert!(row(&format!("{figure}/{payload}/{column}"))["bar"].is_object());
            }
        }
    }
    assert_eq!(row("simulated/40/cmp")["theirs"], 828.0);
    assert_eq!(row("headers/ir")["ours"], 50.0);
    assert_eq!(row("wrong")["ours"], 0.0);
    // Rows of runs in real time are absent, as they were not requested.
    assert!(rows.iter().all(|row| !row["id"].as_str().unwrap().starts_with("real/")));
    assert!(stderr(&output).contains("Left out: the rows real/"), "{}", stderr(&output));
}

#[test]
fn what_is_measured_in_real_time_alone_can_be_left_out() {
    let output = thinair(&["run", "coap-tunnel-rtt", "--quick", "--no-real-time", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["rows"], Value::Array(Vec::new()));
    assert!(stderr(&output).contains("Left out: all rows"), "{}", stderr(&output));
}

/// Runs as an unprivileged user if started by root, from a folder that nobody may read.
#[cfg(target_os = "linux")]
#[test]
fn services_without_root_are_measured_in_virtual_time_and_it_is_said_why() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65_534;

    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("thinair");
    fs::copy(env!("CARGO_BIN_EXE_thinair-lab"), &program).unwrap();
    for path in [folder.path(), &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(&program);
    command.current_dir(folder.path()).env("HOME", folder.path()).env_remove("THINAIR_VECTORS");
    command.args(["paper", "run", "transports", "--quick", "--json"]);
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("Left out: what is measured in real time") && text.contains("root"), "{text}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = found["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    assert!(rows.iter().all(|row| {
        let id = row["id"].as_str().unwrap();
        ["virtual/", "headers/"].iter().any(|kind| id.starts_with(kind))
    }));
}
