//! Checks that the README shows the output of its commands.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::process::Command;

use common::{command, root};

#[test]
fn the_readme_shows_what_the_demo_prints() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, behind) = readme.split_once("`make demo` takes").unwrap();
    let (_, shown) = behind.split_once("```text\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    assert!(!shown.is_empty());

    let output = Command::new(command())
        .args(["analyze", "captures/coap_udp6_get_con.pcap"])
        .current_dir(root())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for line in shown.lines() {
        assert!(printed.lines().any(|other| other == line), "not printed:\n{line}\nprinted:\n{printed}");
    }
}
