//! Tables and outputs in README.md and docs/ are those that their commands print: `make docs` would change nothing.

#![allow(clippy::unwrap_used)]

mod common;

use std::process::Command;

#[test]
fn no_table_of_the_pages_is_stale() {
    let output = Command::new(common::root().join("scripts/docs"))
        .arg("--check")
        .env("THINAIR", common::command())
        .output()
        .unwrap();
    let texts = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "`make docs` renews these pages:\n{}{}", texts[0], texts[1]);
}
