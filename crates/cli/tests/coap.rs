//! `thinair coap`, run as a user runs it.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::net::UdpSocket;
use std::process::Command;

#[test]
fn the_option_that_ended_the_wait_is_named() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("coap://{}/time", silent.local_addr().unwrap());
    for (options, named, other) in [
        (["--for", "100ms", "--timeout", "60s"], "--for", "--timeout"),
        (["--for", "60s", "--timeout", "100ms"], "--timeout", "--for"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thinair"));
        let output = command.args(["coap", "observe", &uri]).args(options).output().unwrap();
        let report = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{report}");
        assert!(report.contains(&format!("Raise the limit with {named}")), "{report}");
        assert!(!report.contains(other), "{report}");
    }
}

/// RFC 7252, section 8.1: no Confirmable request to a group. Where there is no member, the wait ends.
#[test]
fn a_request_to_a_group_is_asked_for() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_thinair"))
            .args(["coap", "get"])
            .args(arguments)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let group = "coap://[ff02::4343%25lo]:59/x";
    let (status, report) = run(&[group]);
    assert!(status == Some(1) && report.contains("multicast") && report.contains("--group"), "{report}");
    // Or no route to it.
    let (status, report) = run(&[group, "--group=100ms"]);
    assert!(status == Some(1) && !report.contains("Omit"), "{report}");
    let (status, report) = run(&["coap://127.0.0.1/x", "--group=100ms"]);
    assert!(status == Some(1) && report.contains("no multicast address"), "{report}");
    let (status, report) = run(&["coap+tcp://127.0.0.1/x", "--group"]);
    assert!(status == Some(2) && report.contains("over UDP"), "{report}");
}
