//! The recommendation of `thinair analyze`, used at both ends: it saves as much as promised, and every packet is
//! restored.
//!
//! The test uses every available capture, and checks the configuration with `thinair tunnel check`.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use thinair_analyze::Directions;
use thinair_capture::Reader;
use thinair_lowpan::Contexts;
use thinair_tests::{command, files, root};

/// Maximum relative difference between the promised octets and those on the link.
const TOLERANCE: f64 = 0.01;

/// Capture, with its recommendation.
struct Advised {
    folder: PathBuf,
    text: String,
    json: Value,
}

impl Advised {
    fn of(capture: &Path, folder: &Path, options: &[&str]) -> Self {
        let run = |more: &[&str]| {
            let arguments = ["analyze".as_ref(), capture.as_os_str()];
            let output =
                Command::new(command()).args(arguments).args(options).args(more).current_dir(folder).output();
            String::from_utf8(output.unwrap().stdout).unwrap()
        };
        let json = serde_json::from_str(&run(&["--json"])).unwrap();
        Self { folder: folder.to_owned(), text: run(&[]), json }
    }

    fn recommendation(&self) -> &Value {
        &self.json["recommendation"]
    }

    /// Lines of the text that begin with these words.
    fn lines(&self, words: &str) -> Vec<&str> {
        self.text.lines().map(str::trim).filter(|line| line.starts_with(words)).collect()
    }

    /// Runs a command line.
    fn typed(&self, line: &str) -> Output {
        let line = line.strip_prefix("thinair").unwrap();
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{}{line}", command()));
        shell.current_dir(&self.folder).output().unwrap()
    }

    /// Configuration of an end with the recommended section.
    fn config(&self, carrier: &str, address: &str) -> String {
        let (_, channel) = self.text.split_once("  [channel]\n").unwrap();
        let lines = channel.lines().map(str::trim).take_while(|line| !line.is_empty());
        let channel: Vec<_> = lines.collect();
        format!(
            "[inside]\naddress = [\"{address}\"]\n[carrier]\nurl = \"{carrier}\"\n[security]\nkey = \"sat.key\"\n\
             [channel]\n{}\n",
            channel.join("\n")
        )
    }
}

/// Every IP packet of a capture, as `analyze` finds it.
fn packets(capture: &Path) -> Vec<Vec<u8>> {
    let mut directions = Directions::new(Contexts::NONE);
    let mut reader = Reader::new(File::open(capture).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = reader.next_record() {
        if let Ok(record) = record
            && let Ok((_, packet)) = directions.packet(&record)
        {
            packets.push(packet.to_vec());
        }
    }
    packets
}

/// Octets of all ROHC packets and of feedback in a capture of both directions.
fn octets_on_the_link(capture: &Path) -> u64 {
    let mut reader = Reader::new(File::open(capture).unwrap()).unwrap();
    let mut octets = 0;
    while let Some(record) = reader.next_record() {
        octets += record.unwrap().rohc_packet().unwrap().packet.len() as u64;
    }
    octets
}

fn fresh_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recommendation").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Captures of the project, and further ones where available.
fn captures() -> Vec<PathBuf> {
    let mut found = files(&root().join("captures"), ".pcap");
    if let Some(shared) = std::env::var_os("THINAIR_VECTORS") {
        let shared = Path::new(&shared);
        for folder in ["captures/open", "captures/repro"] {
            found.extend([".pcap", ".pcapng"].iter().flat_map(|end| files(&shared.join(folder), end)));
        }
        found.extend(files(&shared.join("vectors"), "source.pcap"));
    }
    found
}

#[test]
fn both_ends_set_as_recommended_save_what_was_promised() {
    let folder = fresh_folder("captures");
    let (mut recommended, mut none, mut cut) = (0, 0, 0);
    for capture in captures() {
        let name = capture.display();
        let advised = Advised::of(&capture, &folder, &[]);
        // The promise is for whole packets, but the commands only write packets that were captured whole.
        if advised.json["inputs"][0]["cut"] != 0 {
            cut += 1;
            continue;
        }
        let recommendation = advised.recommendation();
        if recommendation.is_null() {
            none += 1;
            assert!(advised.lines("thinair rohc").is_empty(), "{name}");
            continue;
        }
        for line in advised.lines("thinair rohc") {
            let output = advised.typed(line);
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let promised = recommendation["bytes_out"].as_u64().unwrap();
        let sent = octets_on_the_link(&folder.join("OUT"));
        let off = (sent as f64 - promised as f64).abs() / promised as f64;
        assert!(off <= TOLERANCE, "{name}: {promised} octets promised, {sent} on the link");
        assert!(packets(&folder.join("BACK")) == packets(&capture), "{name}: packets differ");
        recommended += 1;
    }
    println!("{recommended} recommendations hold; for {none} captures there is none; {cut} were cut");
    assert!(recommended >= 40, "{recommended}");
}

#[test]
fn a_tunnel_takes_the_recommended_configuration() {
    let folder = fresh_folder("tunnel");
    for (capture, options) in [
        ("coap_udp6_get_con.pcap", [].as_slice()),
        ("mqtt311_tcp4_qos1.pcap", &["--mode", "u", "--refresh", "packets=100,time=60"]),
        ("coap_udp4_libcoap_new_port_each.pcap", &[]),
        (
            "rtp_udp4_pcmu.pcap",
            &["--cid", "large", "--max-cid", "200", "--rtp", "ports", "--rtp-ports", "5004,5006"],
        ),
    ] {
        let advised = Advised::of(&root().join("captures").join(capture), &folder, options);
        for line in advised.lines("thinair rohc learn") {
            assert!(advised.typed(line).status.success());
        }
        if !folder.join("sat.key").exists() {
            assert!(advised.typed("thinair tunnel keygen sat.key").status.success());
        }
        fs::write(folder.join("a.toml"), advised.config("udp://127.0.0.1:7000", "10.9.0.1/30")).unwrap();
        fs::write(folder.join("b.toml"), advised.config("udp://127.0.0.2:7000", "10.9.0.2/30")).unwrap();
        let checked = advised.typed("thinair tunnel check a.toml --against b.toml");
        assert!(checked.status.success(), "{capture}: {}", String::from_utf8_lossy(&checked.stderr));
        let text = String::from_utf8(checked.stdout).unwrap();
        let mode = advised.recommendation()["mode"].as_str().unwrap();
        assert!(text.contains(&format!("{mode}-mode")), "{text}");
    }
}

#[test]
fn money_of_a_month_follows_the_price() {
    let folder = fresh_folder("money");
    let capture = root().join("captures/mqtt311_tcp4_qos1.pcap");
    let advised = Advised::of(&capture, &folder, &["--price", "2.5"]);
    let recommendation = advised.recommendation();
    let number = |value: &Value| value.as_f64().unwrap();
    let month = &recommendation["month"];
    let seconds = number(&recommendation["seconds"]);
    let octets = number(&recommendation["bytes_in"]) * 30.0 * 86_400.0 / seconds;
    assert!((number(&month["bytes_in"]) - octets).abs() < 1.0, "{month}");
    assert!((number(&month["cost_in"]) - octets * 2.5 / 1e6).abs() < 0.01, "{month}");
    assert!(number(&month["cost_out"]) < number(&month["cost_in"]));
}

#[test]
fn traffic_that_compression_only_enlarges_is_left_as_it_is() {
    // One packet in all: an IR packet is larger than the headers it encodes.
    let folder = fresh_folder("none");
    let mut file = thinair_capture::Writer::new(Vec::new(), thinair_capture::LinkType::RAW).unwrap();
    let packet =
        *b"\x45\0\0\x1c\0\0\0\0\x40\xfd\x66\xdc\xc0\0\x02\x01\xc0\0\x02\x02\x01\x02\x03\x04\x05\x06\x07\x08";
    file.write(thinair_capture::Timestamp::from_nanos(1), &packet).unwrap();
    let capture = folder.join("one.pcap");
    fs::write(&capture, file.into_inner()).unwrap();
    let advised = Advised::of(&capture, &folder, &[]);
    assert!(advised.recommendation().is_null(), "{}", advised.recommendation());
    assert!(advised.text.contains("Recommendation: leave headers as they are"), "{}", advised.text);
}
