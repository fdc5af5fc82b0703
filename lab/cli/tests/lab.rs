//! `thinair-lab lab`, as a user runs it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const PLAN: &str = "title = 'loss'\n[link]\npreset = 'gprs'\n[requests]\ncount = 3\n[runs]\ncount = 3\n\
    [sweep]\n'link.down.loss' = [0, 30]\n'clients.congestion' = ['rfc7252', 'fasor']\n";

fn thinair(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_thinair-lab"))
        .current_dir(folder)
        .arg("lab")
        .args(arguments)
        .output()
        .unwrap()
}

/// A folder with the plan in it.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("plan.toml"), PLAN).unwrap();
    folder
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn fails(output: &Output, status: i32, says: &str) {
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(status) && report.contains(says), "{:?}: {report}", output.status);
}

/// 17 clients share 16 contexts: on standard error, and the figures stay as they are.
#[test]
fn clients_without_a_context_of_their_own_are_noted() {
    let folder = folder();
    let plan = |count| {
        format!("[rohc]\nmode = 'o'\n[clients]\ncount = {count}\n[requests]\ncount = 1\n[runs]\ncount = 1\n")
    };
    for (count, is_noted) in [(16, false), (17, true)] {
        fs::write(folder.path().join("many.toml"), plan(count)).unwrap();
        let output = thinair(folder.path(), &["run", "many.toml", "--json"]);
        let noted = String::from_utf8_lossy(&output.stderr);
        let wanted = "note: many.toml: ROHC has 16 contexts for 17 flows";
        assert_eq!(noted.contains(wanted), is_noted, "{noted}");
        assert!(serde_json::from_str::<Value>(&stdout(&output)).is_ok());
    }
}

#[test]
fn json_has_every_cell_and_figure() {
    let folder = folder();
    let report: Value =
        serde_json::from_str(&stdout(&thinair(folder.path(), &["run", "plan.toml", "--json"]))).unwrap();
    assert_eq!(
        (&report["schema"], &report["title"], &report["time"]),
        (&"thinair.lab/1".into(), &"loss".into(), &"virtual".into())
    );
    assert_eq!(report["keys"], serde_json::json!(["link.down.loss", "clients.congestion"]));
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in cells {
        assert_eq!(cell["runs"], 3);
        let figures = cell["figures"].as_object().unwrap();
        assert_eq!(figures.len(), 9);
        let is_there = |(key, figure): (&String, &Value)| match key.as_str() {
            "download_ms" => figure.is_null(),
            _ => figure["mean"].is_f64() && figure["half"].is_f64(),
        };
        assert!(figures.iter().all(is_there), "{cell}");
    }
    assert_eq!(cells[3]["sweep"], serde_json::json!({ "link.down.loss": 30, "clients.congestion": "fasor" }));
}

#[test]
fn shards_and_a_file_that_was_cut_off_come_to_the_same() {
    let folder = folder();
    let at = folder.path();
    let whole = stdout(&thinair(at, &["run", "plan.toml", "--json", "--out", "whole.jsonl"]));
    for shard in ["1/2", "2/2"] {
        let out = format!("{}.jsonl", &shard[..1]);
        stdout(&thinair(at, &["run", "plan.toml", "--shard", shard, "--out", &out]));
    }
    let without_title = |text: &str| {
        let mut report: Value = serde_json::from_str(text).unwrap();
        report["title"] = Value::Null;
        report
    };
    let shown = stdout(&thinair(at, &["show", "2.jsonl", "1.jsonl", "--json"]));
    assert_eq!(without_title(&shown), without_title(&whole));

    let lines = fs::read(at.join("whole.jsonl")).unwrap();
    fs::write(at.join("cut.jsonl"), &lines[..lines.len() / 2]).unwrap();
    fails(&thinair(at, &["run", "plan.toml", "--out", "cut.jsonl"]), 1, "--resume");
    assert_eq!(
        stdout(&thinair(at, &["run", "plan.toml", "--json", "--out", "cut.jsonl", "--resume"])),
        whole
    );
    let text = fs::read_to_string(at.join("cut.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 12);

    // Another plan leaves the file unchanged.
    fs::write(at.join("plan.toml"), PLAN.replace("gprs", "wifi")).unwrap();
    fails(&thinair(at, &["run", "plan.toml", "--out", "cut.jsonl", "--resume"]), 1, "another plan");
    assert_eq!(fs::read_to_string(at.join("cut.jsonl")).unwrap(), text);
}

#[test]
fn what_is_wrong_is_told_with_its_status() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("wrong.toml"), "[link]\npreset = 'gsm'\n").unwrap();
    fails(&thinair(at, &["run", "wrong.toml"]), 2, "wrong.toml: line 2: link.preset");
    fails(&thinair(at, &["run", "missing.toml"]), 1, "missing.toml");
    fails(&thinair(at, &["run", "plan.toml", "--shard", "3/2"]), 2, "I/N");
    fails(&thinair(at, &["run", "plan.toml", "--resume"]), 2, "--out");
    fails(&thinair(at, &["show", "plan.toml"]), 1, "plan.toml:1 is no result");
}

#[test]
fn the_table_and_the_page_say_the_swept_keys() {
    let folder = folder();
    let at = folder.path();
    let table =
        stdout(&thinair(at, &["run", "plan.toml", "--runs", "1", "--seed", "4", "--html", "page.html"]));
    assert!(table.contains("fasor") && table.contains("C-RTT"), "{table}");
    let page = fs::read_to_string(at.join("page.html")).unwrap();
    assert!(page.contains("Over link.down.loss") && page.contains("<svg"));
    fs::write(at.join("own.toml"), stdout(&thinair(at, &["plan"]))).unwrap();
    stdout(&thinair(at, &["run", "own.toml", "--runs", "1"]));
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupt_keeps_what_is_done() {
    let folder = folder();
    let at = folder.path();
    let mut child = Command::new(env!("CARGO_BIN_EXE_thinair-lab"))
        .current_dir(at)
        .args(["lab", "run", "plan.toml", "--runs", "1000000", "--out", "runs.jsonl"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while fs::metadata(at.join("runs.jsonl")).map_or(0, |file| file.len()) < 1_000 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let lines = fs::read_to_string(at.join("runs.jsonl")).unwrap();
    assert!(lines.ends_with('\n'));
    assert!(
        stdout(&thinair(at, &["show", "runs.jsonl"])).contains("fasor") || lines.lines().count() < 1_000_000
    );
}

/// A download and some exchanges, with losses on the link.
const BOTH_WAYS: &str = "[link]\npreset = 'gprs'\n[link.down]\nloss = 10\n[clients]\nack_timeout = '500ms'\nnstart = 4\n\
    [requests]\ncount = 6\nstart = '500ms'\ninterval = '150ms'\n[download]\noctets = 6000\nwindow = 4\n\
    [runs]\nend = '20s'\n";

/// Runs a plan in real time; `None`, and a message with the reason, where there can be no namespaces.
#[cfg(target_os = "linux")]
fn in_real_time(folder: &Path, arguments: &[&str]) -> Option<Output> {
    let done = thinair(folder, &[&["run", "plan.toml", "--real"], arguments].concat());
    let report = String::from_utf8_lossy(&done.stderr);
    if done.status.code() == Some(1) && (report.contains("this needs root") || report.contains("CONFIG_TUN"))
    {
        println!("skipped: {}", report.trim());
        return None;
    }
    Some(done)
}

/// Tests that count leftover namespaces must be the only ones to create some.
#[cfg(target_os = "linux")]
static NAMESPACES: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Hosts and losses as in virtual time, and the time of the link: longer only by what the packets were late.
#[test]
#[cfg(target_os = "linux")]
fn real_time_loses_the_same_packets_and_takes_as_long() {
    let _alone = NAMESPACES.lock();
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("plan.toml"), BOTH_WAYS).unwrap();
    let Some(real) = in_real_time(at, &["--runs", "1", "--seed", "5", "--json", "--out", "real.jsonl"])
    else {
        return;
    };
    let whole = ["run", "plan.toml", "--runs", "1", "--seed", "5", "--json", "--out", "virtual.jsonl"];
    let [real, planned]: [Value; 2] =
        [real, thinair(at, &whole)].map(|output| serde_json::from_str(&stdout(&output)).unwrap());
    assert_eq!((&real["time"], &planned["time"]), (&"real".into(), &"virtual".into()));
    let mean = |report: &Value, key: &str| report["cells"][0]["figures"][key]["mean"].as_f64().unwrap();
    for key in ["download_ms", "crtt_ms", "rtr_percent", "octets", "transmissions"] {
        println!("{key}: {} in real time, {} in virtual time", mean(&real, key), mean(&planned, key));
    }
    println!("late: {}", real["lateness"]);
    assert!(mean(&planned, "rtr_percent") > 0.0, "nothing was lost that was seen");
    for key in ["rtr_percent", "octets", "transmissions", "given_up"] {
        assert_eq!(mean(&real, key), mean(&planned, key), "{key}");
    }
    for key in ["download_ms", "crtt_ms"] {
        // Each packet in turn, of 30 at most, is late by what the run reports at most, and hosts take 5 % of the time.
        let most = 30.0 * real["lateness"]["max_us"].as_f64().unwrap() / 1e3 + 0.05 * mean(&planned, key);
        let late = mean(&real, key) - mean(&planned, key);
        assert!((-0.1..most).contains(&late), "{key}: {late} ms, of at most {most}");
    }

    // Times of both kinds are not mixed.
    let mixed = ["run", "plan.toml", "--runs", "2", "--seed", "5", "--out", "real.jsonl", "--resume"];
    fails(&thinair(at, &mixed), 1, "real time");
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupt_ends_a_run_in_real_time_and_leaves_nothing() {
    let _alone = NAMESPACES.lock();
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("plan.toml"), "[link]\npreset = 'gprs'\n[requests]\ncount = 1\nstart = '0s'\n")
        .unwrap();
    if in_real_time(at, &["--runs", "1"]).is_none() {
        return;
    }
    let namespaces = || fs::read_dir("/run/netns").map_or(0, Iterator::count);
    let before = namespaces();
    fs::write(
        at.join("plan.toml"),
        "[link]\npreset = 'gprs'\n[requests]\nstart = '1h'\n[runs]\nend = '2h'\n",
    )
    .unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_thinair-lab"))
        .current_dir(at)
        .args(["lab", "run", "plan.toml", "--real"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    assert!(text.any(|line| line.unwrap().contains("in real time")));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(text.any(|line| line.unwrap().contains("interrupted")));
    // Tests beside this one have namespaces, too, for a time.
    let is_soon = (0..300).any(|_| {
        namespaces() <= before || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            false
        }
    });
    assert!(is_soon, "{} namespaces, {before} before", namespaces());
}

#[test]
#[cfg(target_os = "linux")]
fn too_many_hosts_for_real_time_are_refused() {
    let folder = folder();
    fs::write(folder.path().join("plan.toml"), "[clients]\ncount = 101\n").unwrap();
    fails(&thinair(folder.path(), &["run", "plan.toml", "--real"]), 2, "clients.count is 101");
}
