//! Template files, used as a user uses them: learned from a capture, given to both ends, and edited by hand.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use thinair_capture::Reader;

const NEW_PORTS: &str = "coap_udp4_libcoap_new_port_each.pcap";

#[test]
fn the_flows_of_a_client_begin_with_ir_cr() {
    let folder = TestFolder::new("new_ports");
    let (capture, template) = (capture(NEW_PORTS), folder.learn(NEW_PORTS, &[]));
    let told = |options: &[&str]| {
        let files = [text(&capture), folder.path("rohc.pcap")];
        let done = ok(thinair(&[&["rohc", "compress", &files[0], &files[1], "--json"], options].concat()));
        serde_json::from_slice::<Value>(&done.stdout).unwrap()
    };
    let (without, with) = (told(&[]), told(&["--coap-template", &template]));
    let of_type = |told: &Value, name: &str| told["packet_types"][name].as_u64().unwrap_or(0);
    // One in each direction. The next flows take over the contexts, with a base or without.
    assert_eq!([of_type(&with, "IR-CR"), of_type(&without, "IR-CR")], [2, 0], "{with} {without}");
    assert!(of_type(&with, "IR") < of_type(&without, "IR"), "{with} {without}");
    let octets = |told: &Value| told["octets_out"].as_u64().unwrap();
    assert!(octets(&with) + 100 < octets(&without), "{with} {without}");
    // Both ends report equal names.
    let name = with["channel"]["template"].as_str().unwrap();
    assert_eq!(name.len(), 16);
    assert!(fs::read_to_string(&template).unwrap().contains(&format!("# template {name}\n")));
    assert!(without["channel"]["template"].is_null());
}

#[test]
fn file_and_template_are_enough_elsewhere() {
    let (here, elsewhere) = (TestFolder::new("here"), TestFolder::new("elsewhere"));
    let (capture, template) = (capture(NEW_PORTS), here.learn(NEW_PORTS, &[]));
    let rohc = here.path("rohc.pcap");
    ok(thinair(&["rohc", "compress", &text(&capture), &rohc, "--coap-template", &template]));
    fs::rename(rohc, elsewhere.path("moved.pcap")).unwrap();
    fs::rename(template, elsewhere.path("moved.toml")).unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_thinair"))
        .args(["rohc", "decompress", "moved.pcap", "back.pcap", "--coap-template", "moved.toml"])
        .current_dir(&elsewhere.0)
        .env_clear()
        .output()
        .unwrap();
    ok(done);
    assert!(packets(&capture) == packets(elsewhere.path("back.pcap").as_ref()));
}

#[test]
fn every_capture_comes_back_with_a_template_of_its_own() {
    let folder = TestFolder::new("each");
    let all = fs::read_dir(captures()).unwrap().map(|entry| entry.unwrap().path());
    let coap = all.filter(|path| text(path).contains("/coap_udp"));
    let mut seen = 0;
    for capture in coap {
        let name = capture.file_name().unwrap().to_str().unwrap();
        for checksum in ["carry", "elide"] {
            let template = folder.learn(name, &["--coap-checksum", checksum]);
            for mode in ["u", "o"] {
                let (rohc, back) = (folder.path("rohc.pcap"), folder.path("back.pcap"));
                let options = ["--mode", mode, "--coap-checksum", checksum, "--coap-template", &template];
                ok(thinair(&[&["rohc", "compress", &text(&capture), &rohc], &options[..]].concat()));
                ok(thinair(&[&["rohc", "decompress", &rohc, &back], &options[..]].concat()));
                assert!(packets(&capture) == packets(back.as_ref()), "{name} {options:?}");
                seen += 1;
            }
        }
        let template = folder.learn(name, &[]);
        ok(thinair(&["analyze", &text(&capture), "--schemes", "coap", "--coap-template", &template]));
    }
    assert!(seen >= 40);
}

/// At most 9 octets with elided and 13 with carried checksums, and two octets of token, which no base can
/// predict.
#[test]
fn the_first_packet_of_a_known_flow_is_small() {
    let folder = TestFolder::new("first");
    let name = "coap_udp6_get_con.pcap";
    for (checksum, learned, edited) in [("elide", 11, 9), ("carry", 13, 11)] {
        let template = folder.learn(name, &["--coap-checksum", checksum]);
        let first = |template: &str| {
            let rohc = folder.path("rohc.pcap");
            let files = ["rohc", "compress", &text(&capture(name)), &rohc];
            let options = ["--coap-checksum", checksum, "--coap-template", template];
            ok(thinair(&[&files[..], &options].concat()));
            packets(rohc.as_ref())[0].len()
        };
        assert_eq!(first(&template), learned, "{checksum}");
        // A token that every packet sends has no length in front.
        let counted = "{ mode = \"counted-uint\" }";
        let irregular = "{ mode = \"irregular\", length = 2 }";
        let file = folder.edited(&template, counted, irregular);
        assert_eq!(first(&file), edited, "{checksum}");
    }
}

#[test]
fn with_another_template_packets_are_lost_and_none_is_wrong() {
    let folder = TestFolder::new("other");
    let (capture, template) = (capture(NEW_PORTS), folder.learn(NEW_PORTS, &[]));
    let (rohc, back) = (folder.path("rohc.pcap"), folder.path("back.pcap"));
    ok(thinair(&["rohc", "compress", &text(&capture), &rohc, "--coap-template", &template]));
    let sent = packets(&capture);
    let edits = [
        ("value = \"time\"", "value = \"tide\""),
        ("value = \"01\"", "value = \"02\""),
        ("ttl = 64", "ttl = 63"),
        ("tos = 0", "tos = 1"),
        ("df = true", "df = false"),
        ("destination_port = 5683", "destination_port = 5684"),
        ("10.99.0.1", "10.99.0.3"),
        ("uint = 1", "uint = 2"),
        ("\"0.01\"", "\"0.02\""),
        ("\"CON\"", "\"NON\""),
    ];
    for (from, to) in edits {
        let other = folder.edited(&template, from, to);
        let done = thinair(&["rohc", "decompress", &rohc, &back, "--coap-template", &other]);
        let delivered = packets(back.as_ref());
        let is_lost = |packet: &Vec<u8>| !delivered.contains(packet);
        assert!(sent[..2].iter().any(is_lost), "{to}: {}", stderr(&done));
        assert!(delivered.iter().all(|packet| sent.contains(packet)), "{to}: a packet that was never sent");
    }
    let done = thinair(&["rohc", "decompress", &rohc, &back]);
    assert!(stderr(&done).contains("not delivered  malformed 2 (first: record 1)"), "{}", stderr(&done));
    assert!(!packets(back.as_ref()).contains(&sent[0]));
}

#[test]
fn errors_say_where_and_what_to_do() {
    let folder = TestFolder::new("errors");
    let (capture, template) = (text(&capture(NEW_PORTS)), folder.learn(NEW_PORTS, &[]));
    let out = folder.path("out.pcap");
    let refused = |file: &str, options: &[&str], code, message: &str| {
        let done =
            thinair(&[&["rohc", "compress", &capture, &out, "--coap-template", file], options].concat());
        let told = stderr(&done);
        assert_eq!(done.status.code(), Some(code), "{told}");
        assert!(told.contains(message), "{message}: {told}");
        assert!(!Path::new(&out).exists());
    };
    let edits = [
        ("version = 1", "version = 2", "unsupported version 2; this program reads version 1"),
        ("version = 1", "", "missing field `version`"),
        ("ttl = 64", "tll = 64", "base 1: unknown field `tll`, expected one of"),
        ("ttl = 64", "ttl = 640", "base 1: "),
        ("ttl = 64", "ttl = 64\nhop_limit = 64", "base 1: a field of IPv6 in a base with IPv4 addresses"),
        (
            "ttl = 64",
            "",
            "base 1: a field is missing; a base with IPv4 addresses needs `tos`, `ttl`, `df` and `ip_id`",
        ),
        ("\"10.99.0.2\"", "\"fd00::1\"", "base 1: `source` and `destination` must both be IPv4 or both IPv6"),
        (
            "\"carried\"",
            "\"raw\"",
            "base 1: invalid `checksum` \"raw\"; expected one of carried, elided, zero",
        ),
        ("\"carried\"", "\"elided\"", "base 1 elides UDP checksums, but the channel sends them"),
        (
            "\"CON\"",
            "\"con\"",
            "base 1: template 1: invalid `type` \"con\"; expected one of CON, NON, ACK, RST",
        ),
        ("\"0.01\"", "\"0.1\"", "base 1: template 1: invalid `code` \"0.1\"; expected a code such as"),
        ("value = \"01\"", "value = \"1\"", "base 1: template 1: `token`: invalid octets \"1\""),
        ("\"static\"", "\"random\"", "base 1: template 1: unknown variant `random`"),
        (
            "\"Uri-Path\"",
            "\"Uri-path\"",
            "base 1: template 1: option 1: unknown option name; give the number of the option",
        ),
        (
            "class = \"static\"",
            "class = \"prefix\", length = 4",
            "option 1: `length` is that of the whole value",
        ),
        ("class = \"static\"", "class = \"counted\"", "option 1: unknown field `value`"),
        ("value = \"time\"", "hex = \"7\"", "option 1: invalid octets \"7\""),
    ];
    for (from, to, message) in edits {
        refused(&folder.edited(&template, from, to), &[], 1, message);
    }
    refused(
        &template,
        &["--coap-checksum", "elide"],
        1,
        "base 1 sends UDP checksums, but the channel elides them",
    );
    refused(&folder.path("missing.toml"), &[], 1, "cannot read");
    refused(&template, &["--profiles", "v1"], 2, "--coap-template needs profile coap");

    let done = thinair(&["rohc", "learn", &text(&captures().join("mqtt311_tcp4_qos1.pcap"))]);
    assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
    let done = thinair(&["rohc", "learn", &capture, "-o", &capture]);
    assert_eq!(done.status.code(), Some(2), "{}", stderr(&done));
}

/// A folder, removed when its test ends.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("thinair-template-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        text(&self.0.join(name))
    }

    /// Learns a template file from a capture; returns its path.
    fn learn(&self, name: &str, options: &[&str]) -> String {
        let path = self.path("learned.toml");
        ok(thinair(&[&["rohc", "learn", &text(&capture(name)), "-o", &path], options].concat()));
        path
    }

    /// Copies a template file, with the first `from` replaced by `to`; returns the path of the copy.
    fn edited(&self, template: &str, from: &str, to: &str) -> String {
        let file = fs::read_to_string(template).unwrap();
        assert!(file.contains(from), "{from}");
        let path = self.path("edited.toml");
        fs::write(&path, file.replacen(from, to, 1)).unwrap();
        path
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures")
}

fn capture(name: &str) -> PathBuf {
    captures().join(name)
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn thinair(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_thinair")).args(arguments).output().unwrap()
}

fn ok(done: Output) -> Output {
    assert!(done.status.success(), "{}", stderr(&done));
    done
}

fn stderr(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// IP packets of a capture, or ROHC packets.
fn packets(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = reader.next_record() {
        let record = record.unwrap();
        let found = record.network_packet().map(|found| found.packet);
        let found = found.or_else(|_| record.rohc_packet().map(|found| found.packet));
        packets.push(found.unwrap().to_vec());
    }
    packets
}
