//! Live CoAP traffic of other implementations: libcoap and aiocoap communicate over the loopback interface, and every
//! packet is compressed, stored in a file, and decompressed by another process.
//!
//! The programs around them are in `tests/workspace/peers`. Where they cannot run, the tests print the missing part and
//! the skipped tests. Message IDs, tokens and ports are the peers' choice and differ from run to run; the assertions
//! hold for all values. The captures are kept in `coap-peers` of the target folder.
//! asserted holds for all of them. The captures stay in `coap-peers` of the target folder.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use thinair_capture::{LinkType, Reader, Timestamp, Writer};
use thinair_tests::{command, metadata, root, text};
use thinair_wire::checksum::{Sum, checksum};
use thinair_wire::header::chain::{HeaderChain, IpHeader};
use thinair_wire::header::coap::{Coap, Code, Type};

/// Options of the channel for `compress`, `decompress` and `analyze`.
const OPTIONS: &[&[&str]] = &[&[]];

/// Numbers of records removed from the start of a compressed file: fewer than the four IR packets that establish each
/// of a conversation's two contexts, and all of these.
const REMOVED: [usize; 2] = [5, 8];

/// Number of concurrent runs of the peers, where each has its own loopback interface. They mostly wait.
const LANES: usize = 4;

/// Exit status of `run.py` on a machine that does not permit its operations.
const IMPOSSIBLE: i32 = 77;

const PORT: u16 = 5683;

/// Minimum number of messages in a capture, by kind.
type MinimumCounts = &'static [(&'static str, usize)];

struct PeerScenario {
    name: &'static str,
    shown: MinimumCounts,
}

// A busy machine responds late: with fewer piggybacked responses and notifications than an idle one, but not with fewer
// requests.
const LIBCOAP: &[PeerScenario] = &[
    PeerScenario { name: "get", shown: &[("CON", 16), ("piggybacked", 14), ("separate", 1), ("error", 2)] },
    PeerScenario { name: "put", shown: &[("PUT", 12), ("piggybacked", 20)] },
    PeerScenario { name: "non", shown: &[("NON", 28), ("PUT", 5)] },
    PeerScenario { name: "observe", shown: &[("notification", 10), ("PUT", 20), ("Empty ACK", 8)] },
    PeerScenario { name: "block", shown: &[("Block1", 60), ("Block2", 60)] },
];

const AIOCOAP: &[PeerScenario] = &[
    PeerScenario { name: "get", shown: &[("CON", 52), ("piggybacked", 20), ("separate", 1), ("error", 1)] },
    PeerScenario { name: "put", shown: &[("PUT", 25), ("piggybacked", 20)] },
    PeerScenario { name: "non", shown: &[("NON", 100), ("PUT", 25)] },
    PeerScenario { name: "observe", shown: &[("notification", 40), ("Empty ACK", 30), ("RST", 1)] },
    PeerScenario { name: "block", shown: &[("Block1", 60), ("Block2", 60)] },
    PeerScenario {
        name: "concurrent",
        shown: &[("CON", 48), ("NON", 96), ("separate", 12), ("overtaking", 4)],
    },
    PeerScenario { name: "oscore", shown: &[("OSCORE", 200), ("notification", 40), ("separate", 1)] },
];

const HOSTS: [(&str, &str); 2] = [("127.0.0.1", "ipv4"), ("::1", "ipv6")];

#[test]
fn traffic_of_libcoap_comes_back_bit_for_bit() {
    for program in ["coap-client-notls", "coap-server-notls"] {
        if Command::new(program).arg("-h").output().is_err() {
            println!("skipped: libcoap, because there is no {program} (Debian: libcoap3-bin)");
            return;
        }
    }
    hold("libcoap", LIBCOAP);
}

#[test]
fn traffic_of_aiocoap_comes_back_bit_for_bit() {
    if !folder().join("python/installed").exists() {
        println!("skipped: aiocoap, because it is not installed (`make test` does that, with pip)");
        return;
    }
    hold("aiocoap", AIOCOAP);
}

/// Runs the peers, and checks their packets.
fn hold(stack: &str, scenarios: &[PeerScenario]) {
    let Some(namespace) = namespace() else {
        println!("skipped: {stack}, because nobody may capture here (python3, and root or `unshare -rn`)");
        return;
    };
    // Without separate namespaces, one run at a time uses the port of CoAP.
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = namespace.is_empty().then(|| ALONE.lock().unwrap_or_else(PoisonError::into_inner));
    let lanes = if alone.is_some() { HOSTS.len() } else { LANES };
    let runs = || scenarios.iter().flat_map(|scenario| HOSTS.map(|host| (scenario, host)));
    let done = Mutex::new(BTreeMap::new());
    fs::create_dir_all(folder().join("captures")).unwrap();
    std::thread::scope(|scope| {
        for lane in 0..lanes {
            let done = &done;
            scope.spawn(move || {
                for (scenario, (host, version)) in runs().skip(lane).step_by(lanes) {
                    let name = format!("{stack}-{}-{version}", scenario.name);
                    let capture = folder().join("captures").join(name.clone() + ".pcap");
                    let run = talk(namespace, stack, scenario.name, host, &capture);
                    done.lock().unwrap().insert(name, (run, scenario.shown, capture));
                }
            });
        }
    });
    drop(alone);

    let thinair = command();
    for (name, (run, shown, capture)) in done.into_inner().unwrap() {
        let text = String::from_utf8_lossy(&run.stdout);
        if run.status.code() == Some(IMPOSSIBLE) {
            println!("skipped: {name}, because of {}", text.trim());
            continue;
        }
        assert!(run.status.success(), "{name}: {}\n{}", stderr(&run), log(&capture));
        let sent = packets(&capture);
        let kinds = kinds(&sent, &name);
        for (kind, least) in shown {
            let seen = kinds.get(kind).copied().unwrap_or(0);
            assert!(seen >= *least, "{name}: {seen} of {kind} instead of {least}, see {}", capture.display());
        }
        for options in OPTIONS {
            let what = format!("{name} {options:?}");
            let summary = round_trip(&thinair, &capture, &sent, options, &what);
            analyzed(&thinair, &capture, &sent, options, &what);
            let mut line = format!(
                "{what}: {} packets, {} octets as {};",
                sent.len(),
                summary["octets_in"],
                summary["octets_out"]
            );
            kinds.iter().for_each(|(kind, number)| write!(line, " {kind} {number}").unwrap());
            println!("{line}");
        }
    }
}

/// Compresses a capture, and decompresses it in another process; once the whole file, once without its first records.
/// Returns the summary of the compressor.
fn round_trip(thinair: &str, capture: &Path, sent: &[TimedPacket], options: &[&str], what: &str) -> Value {
    let (here, elsewhere) =
        (PeersFolder::new(&format!("{what} here")), PeersFolder::new(&format!("{what} elsewhere")));
    let rohc = here.0.join("rohc.pcap");
    let compress = [&["rohc", "compress", "--json"], options].concat();
    let done = Command::new(thinair).args(compress).arg(capture).arg(&rohc).output().unwrap();
    assert!(done.status.success(), "{what}: {}", stderr(&done));
    let summary: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(summary["skipped"], Value::Object(serde_json::Map::new()), "{what}");

    let decompress = |file: &str| {
        let done = Command::new(thinair)
            .args([&["rohc", "decompress", file, "back.pcap"], options].concat())
            .current_dir(&elsewhere.0)
            .env_clear()
            .output()
            .unwrap();
        let delivered = packets(&elsewhere.0.join("back.pcap"));
        fs::remove_file(elsewhere.0.join("back.pcap")).unwrap();
        (done, delivered)
    };

    let records = records(&rohc);
    fs::rename(&rohc, elsewhere.0.join("moved.pcap")).unwrap();
    let (done, delivered) = decompress("moved.pcap");
    assert!(done.status.success(), "{what}: {}", stderr(&done));
    for (number, (sent, delivered)) in (1..).zip(sent.iter().zip(&delivered)) {
        assert!(
            sent == delivered,
            "{what}: packet {number}\nsent      {sent:02x?}\ndelivered {delivered:02x?}"
        );
    }
    assert_eq!(delivered.len(), sent.len(), "{what}: packets");

    fs::remove_file(elsewhere.0.join("moved.pcap")).unwrap();
    for removed in REMOVED {
        let what = format!("{what} without {removed}");
        write(&elsewhere.0.join("rest.pcap"), &records[removed..]);
        let (done, delivered) = decompress("rest.pcap");
        // If nothing was delivered, the exit status is a failure.
        assert_eq!(done.status.code(), Some(i32::from(delivered.is_empty())), "{what}: {}", stderr(&done));
        assert!(delivered.len() + removed <= sent.len(), "{what}: {} packets", delivered.len());
        let mut left = sent.iter();
        for packet in &delivered {
            assert!(left.any(|one| one == packet), "{what}: never sent, or out of order, at {}", packet.0);
        }
    }
    summary
}

/// `thinair analyze` compresses every packet of the capture, and restores all of them exactly.
fn analyzed(thinair: &str, capture: &Path, sent: &[TimedPacket], options: &[&str], what: &str) {
    let analyze = [&["analyze", "--json"], options].concat();
    let done = Command::new(thinair).args(analyze).arg(capture).output().unwrap();
    assert!(done.status.success(), "{what}: {}", stderr(&done));
    let found: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(found["totals"]["packets"], sent.len(), "{what}");
    let schemes = found["totals"]["schemes"].as_array().unwrap();
    assert!(!schemes.is_empty());
    for scheme in schemes {
        assert_eq!(scheme["roundtrip_mismatches"], 0, "{what}: {scheme}");
        assert_eq!(scheme["lost"], 0, "{what}: {scheme}");
    }
}

/// Counts messages by kind. Every packet must be a well-formed CoAP message with right checksums.
fn kinds(packets: &[TimedPacket], name: &str) -> BTreeMap<&'static str, usize> {
    let mut kinds = BTreeMap::new();
    let mut flows = BTreeMap::new();
    // Requests without a response yet: client's port, and token.
    let mut open: Vec<(u16, Vec<u8>)> = Vec::new();
    for (number, (_, packet)) in (1..).zip(packets) {
        let chain = HeaderChain::parse(packet).unwrap();
        let what = || format!("{name}: packet {number}: {packet:02x?}");
        assert!(chain.oddity().is_none(), "{}", what());
        assert_checksums(&chain, &what());
        let udp = chain.udp().unwrap();
        *flows.entry((udp.source_port, udp.destination_port)).or_insert(0) += 1;

        let message = Coap::read(&packet[chain.ip_end() + 8..]).unwrap();
        let mut note = |kind| *kinds.entry(kind).or_insert(0) += 1;
        let from_client = udp.destination_port == PORT;
        let is_response = message.code.class() >= 2;
        match message.message_type {
            Type::Confirmable => note("CON"),
            Type::NonConfirmable => note("NON"),
            Type::Acknowledgement if message.code == Code::EMPTY => note("Empty ACK"),
            Type::Acknowledgement => note("piggybacked"),
            Type::Reset => note("RST"),
        }
        if message.code == Code::PUT {
            note("PUT");
        }
        if message.code.class() >= 4 {
            note("error");
        }
        let mut is_notification = false;
        for option in message.options() {
            match option.number {
                6 if is_response => is_notification = true,
                9 => note("OSCORE"),
                23 => note("Block2"),
                27 => note("Block1"),
                _ => {}
            }
        }
        if is_notification {
            note("notification");
        } else if is_response && message.message_type == Type::Confirmable {
            note("separate");
        }
        let exchange =
            (if from_client { udp.source_port } else { udp.destination_port }, message.token.to_vec());
        if from_client && message.code != Code::EMPTY {
            open.push(exchange);
        } else if is_response && let Some(at) = open.iter().position(|one| *one == exchange) {
            if open[..at].iter().any(|(port, _)| *port == exchange.0) {
                note("overtaking");
            }
            open.remove(at);
        }
    }
    kinds.insert("flows", flows.len());
    kinds.insert("largest flow", flows.into_values().max().unwrap_or(0));
    kinds
}

/// Compression is only realistic if the checksums are valid: `lo` leaves them out.
fn assert_checksums(chain: &HeaderChain<'_>, what: &str) {
    let packet = chain.packet();
    let transport = &packet[chain.ip_end()..];
    let addresses = match chain.ips()[0].header() {
        IpHeader::V4(_) => {
            assert_eq!(checksum(&packet[..chain.ip_end()]), 0, "IPv4, {what}");
            &packet[12..20]
        }
        IpHeader::V6(_) => &packet[8..40],
    };
    let length = u16::try_from(transport.len()).unwrap();
    let sum = Sum::ZERO.octets(addresses).word(17).word(length).octets(transport);
    assert_eq!(sum.checksum(), 0, "UDP, {what}");
    assert_ne!(chain.udp().unwrap().checksum, 0, "UDP, {what}");
}

/// Runs client and server in `namespace`, and captures their packets in `capture`.
fn talk(namespace: &[&str], stack: &str, scenario: &str, host: &str, capture: &Path) -> Output {
    let _ = fs::remove_file(capture);
    let run = root().join("tests/workspace/peers/run.py");
    let python = ["python3", "-s", "-B"];
    let command = [namespace, &python].concat();
    Command::new(command[0])
        .args(&command[1..])
        .arg(run)
        .args([stack, scenario, host])
        .arg(capture)
        .env("PYTHONPATH", folder().join("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap()
}

/// Command prefix for a separate loopback interface, or at least for captures on the shared one. A namespace without a
/// name ends with its last process.
fn namespace() -> Option<&'static [&'static str]> {
    let ways: [&[&str]; 3] = [&["unshare", "--net"], &["unshare", "--map-root-user", "--net"], &[]];
    let may_capture = "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)";
    ways.into_iter().find(|way| {
        let command = [way, &["python3", "-c", may_capture][..]].concat();
        let done = Command::new(command[0]).args(&command[1..]).output();
        done.is_ok_and(|done| done.status.success())
    })
}

/// Folder of the captures, and of aiocoap as installed by `make test`.
fn folder() -> PathBuf {
    Path::new(&text(&metadata(), "target_directory")).join("coap-peers")
}

/// Last lines of the output of client and server.
fn log(capture: &Path) -> String {
    let log = fs::read(format!("{}.log", capture.display())).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

fn stderr(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// Packet or record: its time in nanoseconds, and its octets.
type TimedPacket = (u64, Vec<u8>);

/// IP packets of a capture.
fn packets(path: &Path) -> Vec<TimedPacket> {
    let mut packets = Vec::new();
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    while let Some(record) = reader.next_record() {
        let record = record.unwrap();
        packets.push((record.time.as_nanos(), record.network_packet().unwrap().packet.to_vec()));
    }
    packets
}

/// All records of a capture, without interpretation.
fn records(path: &Path) -> Vec<TimedPacket> {
    let mut records = Vec::new();
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    while let Some(record) = reader.next_record() {
        let record = record.unwrap();
        records.push((record.time.as_nanos(), record.data.to_vec()));
    }
    records
}

/// Writes compressed records.
fn write(path: &Path, records: &[TimedPacket]) {
    let mut writer = Writer::new(Vec::new(), LinkType::USER0).unwrap();
    for (time, data) in records {
        writer.write(Timestamp::from_nanos(*time), data).unwrap();
    }
    fs::write(path, writer.into_inner()).unwrap();
}

/// Empty folder, removed on drop.
struct PeersFolder(PathBuf);

impl PeersFolder {
    fn new(name: &str) -> Self {
        let name: String = name.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect();
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("peers-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for PeersFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
