//! RTP, ESP, AH and UDP-Lite of other stacks: GStreamer and Linux, and scapy where the kernel has no ESP or AH. Every
//! packet is compressed and decompressed, by a channel of each kind, and each flow uses its profile.
//!
//! Some of that traffic is in `captures`, and is tested everywhere; other traffic of these kinds is generated during
//! the test by `tests/workspace/peers/media.py`, where possible: otherwise the test prints the missing part and the
//! skipped tests. SSRCs, timestamps and IP-IDs then differ between runs. The captures are kept in `media-peers` of the
//! target folder.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

use serde_json::Value;
use thinair_capture::Reader;
use thinair_rohc::packet;
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Instant, Mode, ProfileSet, RtpDetection,
};
use thinair_tests::{command, metadata, root, text};
use thinair_wire::checksum::{Sum, checksum};
use thinair_wire::header::chain::{HeaderChain, IpHeader};

/// Flow: its name in `media.py` and in `captures`, its minimum number of packets, and its profile.
struct MediaFlow {
    live: &'static str,
    capture: &'static str,
    least: usize,
    profile: &'static str,
}

const fn flow(live: &'static str, capture: &'static str, least: usize, profile: &'static str) -> MediaFlow {
    MediaFlow { live, capture, least, profile }
}

const FLOWS: &[MediaFlow] = &[
    flow("rtp-pcmu-ipv4", "rtp_udp4_pcmu", 200, "rtp"),
    flow("rtp-pcmu-ipv6", "rtp_udp6_pcmu", 200, "rtp"),
    flow("rtp-opus-dtx-ipv4", "rtp_udp4_opus_dtx", 100, "rtp"),
    flow("rtp-h264-ipv4", "rtp_udp4_h264", 120, "rtp"),
    flow("rtp-csrc-ipv4", "rtp_udp4_csrc", 160, "rtp"),
    flow("rtp-extension-ipv6", "rtp_udp6_header_extension", 100, "rtp"),
    flow("rtp-udp-lite-ipv4", "rtp_udplite4_pcmu", 150, "rtp-udp-lite"),
    flow("rtp-udp-lite-ipv6", "rtp_udplite6_pcmu", 150, "rtp-udp-lite"),
    flow("udp-lite-whole-ipv4", "udplite4_whole", 120, "udp-lite"),
    flow("udp-lite-8-ipv4", "udplite4_coverage_8", 120, "udp-lite"),
    flow("udp-lite-20-ipv6", "udplite6_coverage_20", 120, "udp-lite"),
    flow("udp-lite-varying-ipv4", "udplite4_coverage_varying", 120, "udp-lite"),
    flow("udp-lite-varying-ipv6", "udplite6_coverage_varying", 120, "udp-lite"),
    flow("esp-transport-ipv4", "esp4_transport", 120, "esp"),
    flow("esp-transport-ipv6", "esp6_transport", 120, "esp"),
    flow("esp-tunnel-ipv4", "esp4_tunnel", 120, "esp"),
    flow("esp-tunnel-ipv6", "esp6_tunnel", 120, "esp"),
    // AH is an item of the extension header list, and its payload is visible.
    flow("ah-transport-ipv4", "ah4_udp", 120, "udp"),
    flow("ah-transport-ipv6", "ah6_udp", 120, "udp"),
];

/// Destination port of GStreamer's RTP.
const RTP_PORT: u16 = 5004;

/// Number of the packet from which a flow uses the profile of RTP without configuration.
const FOUND_BY: u64 = 5;

/// Number of concurrent runs of `media.py`. They mostly wait.
const LANES: usize = 10;

/// Exit status of `media.py` on a machine that does not permit its operations.
const IMPOSSIBLE: i32 = 77;

#[test]
fn captures_of_media_come_back_bit_for_bit() {
    for flow in FLOWS {
        let capture = root().join("captures").join(flow.capture).with_extension("pcap");
        hold(flow.capture, flow, &capture);
    }
}

#[test]
fn analyze_names_the_profile_of_each_flow() {
    let captures = FLOWS.iter().map(|flow| root().join("captures").join(flow.capture).with_extension("pcap"));
    let done = Command::new(command()).args(["analyze", "--json"]).args(captures).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let found: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(found["faults"], Value::Array(Vec::new()));
    let flows = found["flows"].as_array().unwrap();
    assert_eq!(flows.len(), FLOWS.len());
    for (found, flow) in flows.iter().zip(FLOWS) {
        for scheme in found["schemes"].as_array().unwrap() {
            assert_eq!(scheme["roundtrip_mismatches"], 0, "{}: {scheme}", flow.capture);
            assert_eq!(scheme["lost"], 0, "{}: {scheme}", flow.capture);
            if scheme["scheme"] == "rohc-v1" {
                let packets =
                    scheme["profiles"].as_object().unwrap().values().map(|many| many.as_u64().unwrap());
                let others = packets.sum::<u64>() - scheme["profiles"][flow.profile].as_u64().unwrap_or(0);
                assert!(others < FOUND_BY, "{}: {}", flow.capture, scheme["profiles"]);
            }
        }
    }
}

#[test]
fn live_media_come_back_bit_for_bit() {
    if !may_have_a_link() {
        println!(
            "skipped: live RTP, ESP, AH and UDP-Lite, because they need python3, and root or `unshare -rn`"
        );
        return;
    }
    let captures = folder().join("media-peers");
    fs::create_dir_all(&captures).unwrap();
    let capture = |flow: &MediaFlow| captures.join(flow.live).with_extension("pcap");
    let done = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            let done = &done;
            scope.spawn(move || {
                for (number, flow) in FLOWS.iter().enumerate().skip(lane).step_by(LANES) {
                    let run = send(flow.live, &capture(flow));
                    done.lock().unwrap().insert(number, run);
                }
            });
        }
    });
    for (number, run) in done.into_inner().unwrap() {
        let flow = &FLOWS[number];
        let text = String::from_utf8_lossy(&run.stdout);
        if run.status.code() == Some(IMPOSSIBLE) {
            println!("skipped: {}, because of {}", flow.live, text.trim());
            continue;
        }
        let stderr = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{}: {stderr}\nSee {}.log", flow.live, capture(flow).display());
        println!("{}: {}", flow.live, text.trim());
        hold(flow.live, flow, &capture(flow));
    }
}

/// Checks a capture, and prints the sizes of its headers.
fn hold(what: &str, flow: &MediaFlow, capture: &Path) {
    let packets = packets(capture);
    assert!(packets.len() >= flow.least, "{what}: {} packets instead of {}", packets.len(), flow.least);
    for (number, (_, packet)) in (1..).zip(&packets) {
        assert_checksums(packet, &format!("{what}: packet {number}"));
    }
    let mut line = format!("{what}: {} packets", packets.len());
    for cids in [CidSpace::Small, CidSpace::Large] {
        for mode in [Mode::Unidirectional, Mode::Optimistic] {
            let cost = round_trip(flow, &packets, cids, mode, &format!("{what}, {cids:?}, {mode:?}"));
            write!(line, ", {cost}").unwrap();
        }
    }
    println!("{line}");
}

/// Carries every packet to a decompressor, whose feedback arrives before the next packet. Returns the last profile, and
/// the mean size of headers before and after.
fn round_trip(flow: &MediaFlow, packets: &[PacketAt], cids: CidSpace, mode: Mode, what: &str) -> String {
    let channel = Channel::new(cids, cids.highest().min(15), ProfileSet::v1()).unwrap();
    let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
    // RTP is configured by its port, or detected.
    let (rtp, surely_from) = match cids {
        CidSpace::Small => (RtpDetection::of_ports(&[RTP_PORT]).unwrap(), 1),
        CidSpace::Large => (RtpDetection::default(), FOUND_BY),
    };
    let mut compressor = Compressor::new(
        CompressorConfig { rtp, ..CompressorConfig::new(channel) },
        CompressorMemory::owned(channel.sizes().blocks(64)),
    );
    let mut decompressor = Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(64)));
    let (mut rohc, mut back) = (vec![0; 2_000], vec![0; 2_000]);
    let (mut before, mut after, mut profile) = (0, 0, "");
    for (number, (now, packet)) in (1..).zip(packets) {
        let done = compressor.compress(*now, packet, &mut rohc).unwrap();
        let received = decompressor.decompress(*now, &rohc[..done.len], &mut back);
        let received = received.unwrap_or_else(|error| panic!("{what}: packet {number}: {error}, {done:?}"));
        assert_eq!(&back[..received.len], packet, "{what}: packet {number}, {done:?}");
        before += done.header_in;
        after += done.header_out;
        profile = done.profile.name();
        if number >= surely_from {
            assert_eq!(profile, flow.profile, "{what}: packet {number}, {done:?}");
        }
        let mut feedback = [0; 64];
        while let Some(len) = decompressor.poll_feedback(&mut feedback) {
            for element in packet::parts(&feedback[..len]).unwrap().feedback {
                compressor.receive_feedback(*now, element).unwrap();
            }
        }
    }
    let mean = |octets: usize| octets as f64 / packets.len() as f64;
    format!("{profile} {:.2} -> {:.2}", mean(before), mean(after))
}

/// Compression is only realistic if the checksums are valid: of IPv4, UDP (RFC 768) and UDP-Lite, which may cover a
/// part of the packet (RFC 3828, section 3.1).
fn assert_checksums(packet: &[u8], what: &str) {
    let chain = HeaderChain::parse(packet).unwrap();
    assert!(chain.oddity().is_none(), "{what}");
    let (addresses, protocol, end) = match chain.ips()[0].header() {
        IpHeader::V4(_) => {
            assert_eq!(checksum(&packet[..20]), 0, "IPv4, {what}");
            (&packet[12..20], packet[9], 20)
        }
        IpHeader::V6(_) => (&packet[8..40], packet[6], 40),
    };
    let transport = &packet[end..];
    let field = u16::from_be_bytes([transport[4], transport[5]]);
    let covered = match (protocol, field) {
        (17, _) | (136, 0) => transport.len(),
        (136, octets) => usize::from(octets),
        _ => return,
    };
    let length = u16::try_from(transport.len()).unwrap();
    let pseudo = Sum::ZERO.octets(addresses).word(protocol.into()).word(length);
    assert_eq!(pseudo.octets(&transport[..covered]).checksum(), 0, "{what}");
    assert_ne!(transport[6..8], [0, 0], "{what}");
}

/// Lets a stack send, in its own network namespace, and captures its packets in `capture`.
fn send(scenario: &str, capture: &Path) -> Output {
    let _ = fs::remove_file(capture);
    let namespace = NAMESPACES.iter().find(|way| is_possible(way)).unwrap();
    Command::new(namespace[0])
        .args(&namespace[1..])
        .args(["python3", "-s", "-B"])
        .arg(root().join("tests/workspace/peers/media.py"))
        .arg(scenario)
        .arg(capture)
        .env("PYTHONPATH", folder().join("coap-peers/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap()
}

/// Commands that create a network namespace, which ends with its last process.
const NAMESPACES: [&[&str]; 2] = [&["unshare", "--net"], &["unshare", "--map-root-user", "--net"]];

fn may_have_a_link() -> bool {
    NAMESPACES.iter().any(|way| is_possible(way))
}

fn is_possible(way: &[&str]) -> bool {
    let may_capture = "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)";
    let done = Command::new(way[0]).args(&way[1..]).args(["python3", "-c", may_capture]).output();
    done.is_ok_and(|done| done.status.success())
}

/// Target folder; `make test` has installed scapy there.
fn folder() -> PathBuf {
    PathBuf::from(text(&metadata(), "target_directory"))
}

/// Packet and its time.
type PacketAt = (Instant, Vec<u8>);

/// IP packets of a capture.
fn packets(path: &Path) -> Vec<PacketAt> {
    let mut packets = Vec::new();
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    while let Some(record) = reader.next_record() {
        let record = record.unwrap();
        let packet = record.network_packet().unwrap().packet.to_vec();
        packets.push((Instant::from_nanos(record.time.as_nanos()), packet));
    }
    packets
}
