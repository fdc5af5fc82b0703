//! What the tests of the whole share: files and metadata of the workspace, its commands, other programs, namespaces. The examples in its
//! documents are compiled and run here, too.

#![allow(missing_docs, clippy::unwrap_used, reason = "code of tests")]

#[cfg(target_os = "linux")]
pub mod memory;
pub mod peer;
#[cfg(target_os = "linux")]
pub mod secure_coap;
#[cfg(target_os = "linux")]
pub mod site;
pub mod tshark;
#[cfg(target_os = "linux")]
pub mod world;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Output of `cargo metadata` for the workspace.
pub fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// String member of an object.
pub fn text(object: &Value, name: &str) -> String {
    object[name].as_str().unwrap().to_owned()
}

/// Every file below `folder` whose name ends with `end`, in alphabetical order.
pub fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        if entry.is_dir() {
            found.extend(files(&entry, end));
        } else if entry.to_string_lossy().ends_with(end) {
            found.push(entry);
        }
    }
    found
}

/// Path of the command: the value of `THINAIR`, or a new build.
pub fn command() -> String {
    program("thinair", "THINAIR")
}

/// Path of the command of the laboratory: the value of `THINAIR_LAB`, or a new build.
pub fn laboratory() -> String {
    program("thinair-lab", "THINAIR_LAB")
}

fn program(name: &str, variable: &str) -> String {
    if let Ok(program) = std::env::var(variable) {
        return program;
    }
    let output = Command::new(env!("CARGO"))
        .args(["build", "--workspace", "--bin", name, "--locked", "--message-format", "json"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).unwrap();
    let mut messages = messages.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let built = messages.rfind(|message| message["executable"].is_string());
    text(&built.expect("a command was built"), "executable")
}

/// Measures until the outcome is the expected one, at most five times, and returns the last one: where a process has waited for a processor,
/// its kernel acknowledges in a packet of its own.
pub fn measured_until<T: PartialEq>(expected: &T, mut measure: impl FnMut() -> T) -> T {
    let mut outcome = measure();
    for _ in 1..5 {
        if outcome == *expected {
            break;
        }
        outcome = measure();
    }
    outcome
}

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/firmware.md")]
struct Firmware;
