//! `thinair lab`, as a user runs it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const PLAN: &str = "title = 'loss'\n[link]\npreset = 'gprs'\n[requests]\ncount = 3\n[runs]\ncount = 3\n\
    [sweep]\n'link.down.loss' = [0, 30]\n'clients.congestion' = ['rfc7252', 'fasor']\n";

fn thinair(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_thinair"))
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
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(status) && told.contains(says), "{:?}: {told}", output.status);
}

#[test]
fn json_has_every_cell_and_figure() {
    let folder = folder();
    let told: Value =
        serde_json::from_str(&stdout(&thinair(folder.path(), &["run", "plan.toml", "--json"]))).unwrap();
    assert_eq!((&told["schema"], &told["title"]), (&"thinair.lab/1".into(), &"loss".into()));
    assert_eq!(told["keys"], serde_json::json!(["link.down.loss", "clients.congestion"]));
    let cells = told["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in cells {
        assert_eq!(cell["runs"], 3);
        let figures = cell["figures"].as_object().unwrap();
        assert_eq!(figures.len(), 8);
        assert!(figures.values().all(|figure| figure["mean"].is_f64() && figure["half"].is_f64()), "{cell}");
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
        let mut told: Value = serde_json::from_str(text).unwrap();
        told["title"] = Value::Null;
        told
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

    // Another plan does not touch it.
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
    let mut child = Command::new(env!("CARGO_BIN_EXE_thinair"))
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
