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
