//! Flows of RTP, ESP and UDP-Lite in the output of `thinair`.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};
use thinair_capture::{LinkType, Timestamp, Writer};
use thinair_wire::header::ipv4::Ipv4;

const UDP: u8 = 17;
const ESP: u8 = 50;
const UDP_LITE: u8 = 136;

fn thinair(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_thinair")).args(arguments).output().unwrap()
}

fn ok(arguments: &[&str]) -> String {
    let output = thinair(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// An IPv4 packet between two fixed hosts.
fn ip(protocol: u8, id: u16, inside: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; Ipv4::LEN];
    let header = Ipv4 {
        total_length: (Ipv4::LEN + inside.len()) as u16,
        identification: id,
        ttl: 64,
        protocol,
        source: [192, 0, 2, 1],
        destination: [192, 0, 2, 2],
        ..Ipv4::default()
    };
    header.write(&mut packet, 0).unwrap();
    let header_checksum = Ipv4::checksum_of(&packet);
    Ipv4 { header_checksum, ..header }.write(&mut packet, 0).unwrap();
    packet.extend_from_slice(inside);
    packet
}

/// A UDP or UDP-Lite datagram; the Checksum Coverage of the latter is its length.
fn datagram(protocol: u8, port: u16, id: u16, payload: &[u8]) -> Vec<u8> {
    let words = [port, port, 8 + payload.len() as u16, 0x1234 ^ id];
    let mut inside: Vec<_> = words.into_iter().flat_map(u16::to_be_bytes).collect();
    inside.extend_from_slice(payload);
    ip(protocol, id, &inside)
}

fn rtp(ssrc: u32, sn: u16) -> Vec<u8> {
    let mut payload = vec![0x80, 0];
    payload.extend_from_slice(&sn.to_be_bytes());
    payload.extend_from_slice(&(u32::from(sn) * 160).to_be_bytes());
    payload.extend_from_slice(&ssrc.to_be_bytes());
    payload.resize(32, 0x55);
    payload
}

fn esp(spi: u32, sn: u16) -> Vec<u8> {
    let mut inside = spi.to_be_bytes().to_vec();
    inside.extend_from_slice(&u32::from(sn).to_be_bytes());
    inside.resize(40, sn as u8);
    ip(ESP, sn, &inside)
}

/// A capture with 40 packets each of RTP on port 5004, two SSRCs of RTP over UDP-Lite on port 5006, UDP-Lite,
/// and ESP with two SPIs.
fn capture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut file = Writer::new(File::create(&path).unwrap(), LinkType::RAW).unwrap();
    for sn in 0..40_u16 {
        let packets = [
            datagram(UDP, 5004, sn, &rtp(0xC0FFEE, sn)),
            datagram(UDP_LITE, 5006, sn, &rtp(7 + u32::from(sn % 2), sn / 2)),
            datagram(UDP_LITE, 9, sn, &[sn as u8; 20]),
            esp(0x1001, sn),
            esp(0x1002, sn),
        ];
        for packet in packets {
            file.write(Timestamp::from_nanos(u64::from(sn) * 20_000_000), &packet).unwrap();
        }
    }
    file.into_inner();
    path.to_str().unwrap().to_owned()
}

fn flows(arguments: &[&str]) -> Vec<Value> {
    let found: Value = serde_json::from_str(&ok(&[&["analyze", "--json"], arguments].concat())).unwrap();
    for scheme in found["totals"]["schemes"].as_array().unwrap() {
        assert_eq!(scheme["roundtrip_mismatches"], 0, "{scheme}");
    }
    found["flows"].as_array().unwrap().clone()
}

#[test]
fn each_flow_names_the_profiles_that_carried_it_and_what_tells_it_apart() {
    let told = |flow: &Value| {
        json!([
            flow["protocol"],
            flow["profile"],
            flow["profiles"],
            flow["spi"],
            flow["ssrcs"],
            flow["packets"]
        ])
    };
    let none = Value::Null;
    let path = capture("names.pcap");
    assert_eq!(
        flows(&[&path]).iter().map(told).collect::<Vec<_>>(),
        [
            json!(["udp", "rtp", ["rtp", "udp"], none, [0xC0FFEE], 40]),
            json!(["udp-lite", "rtp-udp-lite", ["rtp-udp-lite", "udp-lite"], none, [7, 8], 40]),
            json!(["udp-lite", "udp-lite", ["udp-lite"], none, none, 40]),
            json!(["esp", "esp", ["esp"], 0x1001, none, 40]),
            json!(["esp", "esp", ["esp"], 0x1002, none, 40]),
        ]
    );
}

#[test]
fn rtp_is_found_as_the_options_say() {
    let path = capture("found.pcap");
    let profiles = |arguments: &[&str]| {
        let flows = flows(&[&[path.as_str(), "--mode", "o", "--schemes", "rohc-v1"], arguments].concat());
        [0, 1].map(|at| flows[at]["schemes"][0]["profiles"].clone())
    };
    let guessed = json!({"udp-lite": 6, "rtp-udp-lite": 34});
    assert_eq!(profiles(&[]), [json!({"udp": 3, "rtp": 37}), guessed.clone()]);
    assert_eq!(profiles(&["--rtp", "never"]), [json!({"udp": 40}), json!({"udp-lite": 40})]);
    assert_eq!(profiles(&["--rtp-ports", "1234,5004"]), [json!({"rtp": 40}), guessed]);
    assert_eq!(
        profiles(&["--rtp", "ports", "--rtp-ports", "5004"]),
        [json!({"rtp": 40}), json!({"udp-lite": 40})]
    );
    assert_eq!(profiles(&["--rtp-ports", "5004,5006"])[1], json!({"rtp-udp-lite": 40}));
}

#[test]
fn text_page_and_csv_name_profiles_spi_and_ssrc() {
    let path = capture("shown.pcap");
    let page = format!("{path}.html");
    let text = ok(&["analyze", &path, "--html", &page]);
    for part in
        ["udp / rtp, udp", "udp-lite / rtp-udp-lite, udp-lite", "192.0.2.2 SPI 0x00001002", "0x00c0ffee"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = fs::read_to_string(page).unwrap();
    for part in ["udp / rtp, udp", "192.0.2.2 SPI 0x00001001", "0x00000007, 1 more"] {
        assert!(page.contains(part), "{part}");
    }
    let csv = ok(&["analyze", &path, "--csv"]);
    let lines: Vec<_> = csv.lines().collect();
    assert!(lines[0].ends_with(",profiles,spi,ssrcs"), "{}", lines[0]);
    assert!(lines[1].ends_with(",rtp udp,,12648430") && lines[4].ends_with(",esp,4097,"), "{csv}");
}

#[test]
fn headers_of_rtp_and_esp_are_headers() {
    let path = capture("layers.pcap");
    let layers =
        |flow: &Value| [&flow["layers_in"]["transport"], &flow["layers_in"]["application"]].map(Value::clone);
    let flows = flows(&[&path]);
    // The first packet of a stream is not recognized as RTP yet.
    assert_eq!(layers(&flows[0]), [json!(40 * 8), json!(39 * 12)]);
    assert_eq!(layers(&flows[1]), [json!(40 * 8), json!(38 * 12)]);
    assert_eq!(layers(&flows[3]), [json!(40 * 8), json!(0)]);
}

#[test]
fn dissection_tells_the_fields_of_rtp_and_of_coverage() {
    let path = capture("dissected.pcap");
    let rohc = format!("{path}.rohc");
    ok(&["rohc", "compress", &path, &rohc, "--rtp-ports", "5004,5006"]);
    let told = ok(&["rohc", "dissect", &rohc]);
    assert!(!told.contains("not delivered"));
    for part in [
        "rtp  IR",
        "rtp  UO-0",
        "rtp-udp-lite  IR",
        "udp-lite  ",
        "esp  IR",
        "    SSRC",
        "    Checksum Coverage",
    ] {
        assert!(told.contains(part), "{part}");
    }
    for part in ["RTP Timestamp              32", "RTP Sequence Number        16", "SPI"] {
        assert!(told.contains(part), "{part}");
    }
    let back = format!("{path}.back");
    ok(&["rohc", "decompress", &rohc, &back]);
    let (before, after) = (fs::read(&path).unwrap(), fs::read(&back).unwrap());
    assert_eq!(before[24..], after[24..]);
}
