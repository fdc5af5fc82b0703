//! `thinair chart`, on captures of this repository.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn chart(arguments: &[&str]) -> Output {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    Command::new(env!("CARGO_BIN_EXE_thinair"))
        .current_dir(captures)
        .arg("chart")
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn fails(arguments: &[&str], status: i32, says: &str) {
    let output = chart(arguments);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(status) && told.contains(says), "{:?}: {told}", output.status);
}

#[test]
fn requests_and_responses_go_to_and_fro() {
    let text = stdout(&chart(&["coap_udp6_get_con.pcap", "--count", "2"]));
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[2].contains("fd00:ec0::2") && lines[2].contains("fd00:ec0::1"), "{text}");
    assert!(
        lines[3].contains("CON GET /sensors/temp [a5d1]") && lines[3].ends_with(">|  67 octets"),
        "{text}"
    );
    assert!(
        lines[4].contains("|<-") && lines[4].contains("ACK 2.05 [a5d1]") && lines[4].ends_with("61 octets"),
        "{text}"
    );
    assert!(text.contains("598 more packets"), "{text}");
}

/// The segments of the first connection, with relative sequence numbers; and octets as in the file.
#[test]
fn a_connection_is_told_segment_by_segment() {
    let json: Value =
        serde_json::from_str(&stdout(&chart(&["http11_tcp4_get_each.pcap", "--count", "12", "--json"])))
            .unwrap();
    assert_eq!(json["schema"], "thinair.chart/1");
    let labels: Vec<_> =
        json["messages"].as_array().unwrap().iter().map(|m| m["label"].as_str().unwrap()).collect();
    assert_eq!(
        labels[..6],
        [
            "SYN",
            "SYN ACK 1",
            "ACK 1",
            "1:75 (74) ACK 1 GET /t HTTP/1.1",
            "ACK 75",
            "1:200 (199) ACK 75 HTTP/1.0 200 OK",
        ]
    );
    let layers = json["messages"][3]["octets"].clone();
    assert_eq!(layers, serde_json::json!({"ip": 20, "transport": 32, "application": 0, "payload": 74}));
    let sum = |name: &str| {
        json["ways"].as_array().unwrap().iter().map(|way| way[name].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((sum("packets"), sum("again"), &json["more"]), (12, 0, &599.into()));
}

#[test]
fn what_is_asked_for_is_shown() {
    let all = ["bulk_tcp4_snap128.pcap", "--json", "--count", "100000"];
    let count = |more: &[&str]| {
        let json: Value = serde_json::from_str(&stdout(&chart(&[&all[..], more].concat()))).unwrap();
        (
            json["messages"].as_array().unwrap().len(),
            json["hosts"].clone(),
            json["messages"][0]["time_ns"].clone(),
        )
    };
    let (whole, hosts, _) = count(&[]);
    let hosts: Vec<&str> = hosts.as_array().unwrap().iter().map(|host| host.as_str().unwrap()).collect();
    let between = hosts.iter().flat_map(|host| ["--host", host]).collect::<Vec<_>>();
    assert_eq!(count(&between).0, whole);
    let (some, _, first) = count(&["--skip", "10"]);
    assert_eq!((some, first), (whole - 10, 0.into()));
    fails(&["bulk_tcp4_snap128.pcap", "--port", "1"], 1, "contains no packet that matches the options");
    fails(&["bulk_tcp4_snap128.pcap", "--host", "10.0.0.1"], 2, "the other one, too");
    fails(&["bulk_tcp4_snap128.pcap", "--count", "0"], 2, "--count");
    fails(&["README.md"], 1, "README.md");
    fails(&["no-such-file"], 1, "no-such-file");
}

#[test]
fn the_drawing_has_every_arrow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chart.svg");
    stdout(&chart(&["coap_udp4_observe.pcap", "--count", "30", "--svg", path.to_str().unwrap()]));
    let svg = std::fs::read_to_string(path).unwrap();
    assert_eq!(svg.matches("<polygon").count(), 30);
    assert!(svg.contains("Observe"));
}
