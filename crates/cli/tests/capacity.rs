//! `thinair link capacity`, run as a user runs it.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

use serde_json::Value;

fn capacity(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thinair"));
    command.args(["link", "capacity"]).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = capacity(&[arguments, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn close(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap();
    assert!((found / expected - 1.0).abs() < 1e-4, "{found} is not {expected}");
}

/// Link, headers and refreshes of the published evaluation are the defaults.
#[test]
fn the_published_model_is_the_default() {
    let found = json(&[]);
    assert_eq!(found["schema"], "thinair.capacity/1");
    let payloads = found["payloads"].as_array().unwrap();
    assert_eq!(payloads.len(), 8);
    let first = &payloads[0];
    close(&first["model"]["uncompressed"]["throughput"], 1_430_160.0);
    close(&first["model"]["compressed"]["throughput"], 2_558_600.0);
    close(&first["packing"]["compressed"]["throughput"], 2_544_650.0);
    close(&first["mpe"]["throughput"], 1_320_150.0);
    close(&payloads[3]["padding"]["gain"], 100.0 * (106.0 / 56.0 - 1.0));
    let steps: Vec<_> =
        found["padding_steps"].as_array().unwrap().iter().map(|step| &step["uncompressed"]).collect();
    assert_eq!(steps, [127, 311, 495, 679, 863, 1_047]);
}

#[test]
fn options_change_what_they_say() {
    let voice =
        json(&["--stack", "ipv4/udp0/rtp", "--payload", "20", "--refresh", "off", "--bitrate", "3.507M"]);
    assert_eq!((&voice["headers"], &voice["compressed_headers"][0]["octets"]), (&40.into(), &1.into()));
    let calls = |way: &str| voice["payloads"][0]["model"][way]["packets_per_second"].as_f64().unwrap() / 50.0;
    assert_eq!((calls("uncompressed").floor(), calls("compressed").floor()), (126.0, 295.0));

    let concat = json(&["--payload", "40", "--refresh", "off", "--concat", "8"]);
    close(&concat["payloads"][0]["model"]["compressed"]["throughput"], 2_968_547.0);
    let npa = json(&["--payload", "40", "--npa"]);
    close(&npa["payloads"][0]["model"]["compressed"]["throughput"], 2_301_293.0);
}

#[test]
fn tables_fit_a_page_and_name_what_they_show() {
    let output = capacity(&["--bitrate", "512k", "--payload", "40,1200", "--stack", "ipv6/udp/coap"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for words in ["512 kbit/s", "Packing", "Padding", "ipv6/udp/coap: headers of 58 octets"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 120));
}

#[test]
fn what_cannot_be_is_status_2_and_says_why() {
    for (arguments, why) in [
        (&["--stack", "ipx"][..], "expected one of ipv6/udp"),
        (&["--payload", "0"], "1.."),
        (&["--payload", "65508", "--stack", "ipv4/udp"], "exceeds the maximum of ipv4/udp, 65507"),
        (&["--refresh", "time=3"], "ir=N,so=N"),
        (&["--bitrate", "fast"], "invalid float"),
        (&["--bitrate", "0"], "1 to 10^12"),
    ] {
        let output = capacity(arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(why), "{arguments:?}: {told}");
    }
}
