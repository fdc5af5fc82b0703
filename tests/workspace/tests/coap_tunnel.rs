//! `thinair-lab paper run coap-tunnel-rtt`: libcoap through tunnels in separate processes, and cleanup afterwards.
//!
//! Needs root, libcoap's programs and tcpdump; without them the tests are skipped with a message. Times are printed but
//! not asserted; packets and octets are exact.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use thinair_tests::{metadata, text};

/// Time limit of a run, in seconds.
const LIMIT: &str = "300";

/// Folder of one test for all temporary files, whose path is among the arguments of its processes.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(&text(&metadata(), "target_directory")).join("coap-tunnel").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn start(folder: &Path) -> Child {
    Command::new("timeout")
        .args([
            "--foreground",
            LIMIT,
            &thinair_tests::laboratory(),
            "paper",
            "run",
            "coap-tunnel-rtt",
            "--quick",
            "--json",
        ])
        .env("TMPDIR", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Processes with this folder among their arguments.
fn processes(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let arguments = fs::read(entry.unwrap().path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&arguments).replace('\0', " "))
    });
    all.filter(|arguments| arguments.contains(folder)).collect()
}

/// Namespaces of the process with this parent.
fn namespaces(pid: u32) -> Vec<String> {
    let Ok(entries) = fs::read_dir("/run/netns") else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("thinair-load-{pid}-"))).collect()
}

/// Process of the command, which `timeout` has started.
fn command_of(timeout: &Child) -> Option<u32> {
    let id = timeout.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

fn nothing_is_left(folder: &Path, pid: u32) {
    assert_eq!(processes(folder), [""; 0]);
    assert_eq!(namespaces(pid), [""; 0]);
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "{}", folder.display());
}

/// Output of the command; `None`, and a message with the reason, if nothing could be tested.
fn report(output: &Output) -> Option<String> {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if text.contains("Left out") {
        println!("skipped: {}", text.trim());
        return None;
    }
    Some(text)
}

#[test]
fn every_request_goes_through_its_tunnel_in_as_many_octets_as_its_profile_takes() {
    let folder = folder("rows");
    let child = start(&folder);
    let pid = loop {
        // It exists as soon as `timeout` has started it.
        match command_of(&child) {
            Some(pid) => break pid,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let output = child.wait_with_output().unwrap();
    let Some(text) = report(&output) else { return };
    // 3: a busy machine misses bars on times.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}: {text}", output.status);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = found["rows"].as_array().unwrap();
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("{id}"));
    let ours = |id: &str| row(id)["ours"].as_f64().unwrap_or_else(|| panic!("{id}: {}", row(id)));
    println!("lost {}, link late by {} us", ours("lost"), ours("late/link"));
    assert_eq!(ours("other-profile"), 0.0);
    for version in ["ipv4", "ipv6"] {
        for place in ["veth", "link"] {
            let tunnels = ["coap", "udp", "ip", "uncompressed"];
            for way in tunnels.iter().chain(&["insecure", "none"]) {
                let median = ours(&format!("{way}/{version}/{place}/median"));
                println!("{way} {version} {place}: {median} ms");
                assert!(median >= if place == "link" { 10.6 } else { 0.0 }, "{way} {version}: {median}");
            }
            for half in ["get", "rsp"] {
                let octets = tunnels.map(|way| ours(&format!("{way}/{version}/{place}/octets/{half}")));
                println!("{version} {place} {half}: {octets:?}");
                // Profile coap needs more packets than a quick run has to establish its context.
                let [coap, others @ ..] = octets;
                assert!(others.is_sorted_by(|less, more| less < more) && coap < others[0], "{octets:?}");
            }
            // 20 or 40 of IP, 8 of UDP, 10 of CoAP.
            let plain = if version == "ipv4" { 38.0 } else { 58.0 };
            assert_eq!(ours(&format!("uncompressed/{version}/{place}/inside/get")), plain);
        }
        assert!(row(&format!("coap/{version}/link/mean"))["theirs"].is_number());
        assert!(row(&format!("coap/{version}/veth/added"))["bar"]["max"].is_number());
    }
    nothing_is_left(&folder, pid);
}

#[test]
fn an_interrupt_ends_all_and_leaves_nothing() {
    let folder = folder("interrupt");
    let mut child = start(&folder);
    // Waits until there are tunnels.
    let pid = loop {
        if let Some(pid) = command_of(&child)
            && !processes(&folder).is_empty()
        {
            break pid;
        }
        if child.try_wait().unwrap().is_some() {
            assert_eq!(report(&child.wait_with_output().unwrap()), None);
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(!namespaces(pid).is_empty());
    let begin = Instant::now();
    Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    println!("it took {} ms to end", begin.elapsed().as_millis());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"), "{output:?}");
    nothing_is_left(&folder, pid);
}
