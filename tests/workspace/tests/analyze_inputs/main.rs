//! Files and interfaces that `thinair analyze` reads, and its errors on inputs without an IP packet.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod live;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use thinair_capture::{ETHERTYPE_IPV4, LinkType, Reader, Timestamp, Writer};
use thinair_tests::tshark::{self, OutputFolder};
use thinair_tests::{command, root};

/// Capture of 403 packets of CoAP over UDP and IPv4, on Ethernet.
const CAPTURE: &str = "captures/coap_udp4_observe.pcap";

fn folder() -> OutputFolder {
    OutputFolder::new("analyze-inputs")
}

/// Packets of [`CAPTURE`].
fn packets() -> Vec<Vec<u8>> {
    let mut reader = Reader::new(fs::File::open(root().join(CAPTURE)).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = reader.next_record() {
        packets.push(record.unwrap().network_packet().unwrap().packet.to_vec());
    }
    assert_eq!(packets.len(), 403);
    packets
}

/// Writes frames, a millisecond apart.
fn written(name: &str, link_type: LinkType, frames: impl IntoIterator<Item = Vec<u8>>) -> PathBuf {
    let path = folder().path(name);
    let mut writer = Writer::new(Vec::new(), link_type).unwrap();
    for (time, frame) in (1..).zip(frames) {
        writer.write(Timestamp::from_nanos(time * 1_000_000), &frame).unwrap();
    }
    fs::write(&path, writer.into_inner()).unwrap();
    path
}

/// Writes a file.
fn file(name: &str, octets: &[u8]) -> PathBuf {
    let path = folder().path(name);
    fs::write(&path, octets).unwrap();
    path
}

fn thinair(arguments: &[&str], files: &[&Path]) -> Output {
    Command::new(command()).args(arguments).args(files).output().unwrap()
}

fn analyze(files: &[&Path]) -> Output {
    thinair(&["analyze"], files)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(octets).unwrap();
    encoder.finish().unwrap()
}

fn zstandard(octets: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(octets, ruzstd::encoding::CompressionLevel::Fastest)
}

/// Asserts that a file has the packets of [`CAPTURE`]; shows the output on failure.
#[track_caller]
fn assert_all_packets(arguments: &[&str], path: &Path) -> Value {
    let output = thinair(&[&["analyze", "--json"], arguments].concat(), &[path]);
    assert_eq!(output.status.code(), Some(0), "{}: {}", path.display(), stderr(&output));
    let found = json(&output);
    let octets: usize = packets().iter().map(Vec::len).sum();
    assert_eq!(
        (&found["totals"]["packets"], &found["totals"]["bytes_in"]),
        (&403.into(), &octets.into()),
        "{}",
        path.display()
    );
    found
}

#[test]
fn compressed_captures_are_read_by_every_command() {
    let capture = fs::read(root().join(CAPTURE)).unwrap();
    let plain = json(&thinair(&["analyze", "--json"], &[&root().join(CAPTURE)]));
    for path in [file("c.pcap.gz", &gzip(&capture)), file("misnamed.pcap", &zstandard(&capture))] {
        let found = assert_all_packets(&[], &path);
        assert_eq!((&found["totals"], &found["flows"]), (&plain["totals"], &plain["flows"]));

        // A pipe cannot be given to the other end as a file, so no bases are learned from it.
        let piped = Command::new(command())
            .args(["analyze", "-", "--json", "--schemes", "rohc-v1,schc"])
            .stdin(Stdio::from(fs::File::open(&path).unwrap()))
            .output()
            .unwrap();
        let named = json(&thinair(&["analyze", "--json", "--schemes", "rohc-v1,schc"], &[&path]));
        assert_eq!(json(&piped)["totals"], named["totals"]);

        let compressed = |input: &Path| {
            let out = folder().path("out.pcap");
            tshark::ok(thinair(&["rohc", "compress"], &[input, &out]));
            fs::read(out).unwrap()
        };
        assert_eq!(compressed(&path), compressed(&root().join(CAPTURE)));
        let chart = thinair(&["chart", "--count", "3"], &[&path]);
        assert!(stdout(&chart).contains("10.99.0.") || chart.status.success(), "{}", stderr(&chart));
    }
    // ROHC packets, too.
    let rohc = folder().path("rohc.pcap");
    tshark::ok(thinair(&["rohc", "compress"], &[&root().join(CAPTURE), &rohc]));
    let rohc = file("rohc.pcap.gz", &gzip(&fs::read(rohc).unwrap()));
    let back = folder().path("back.pcap");
    tshark::ok(thinair(&["rohc", "decompress"], &[&rohc, &back]));
    assert_all_packets(&[], &back);
    assert!(stdout(&tshark::ok(thinair(&["rohc", "dissect"], &[&rohc]))).contains("discriminator"));
}

#[test]
fn compressed_captures_that_end_too_early_are_used_as_far_as_they_go() {
    let many = packets().into_iter().cycle().take(8_000);
    let capture = fs::read(written("many.pcap", LinkType::RAW, many)).unwrap();
    for (name, whole) in [("cut.pcap.gz", gzip(&capture)), ("cut.pcap.zst", zstandard(&capture))] {
        let output = thinair(&["analyze", "--json"], &[&file(name, &whole[..whole.len() - 6])]);
        assert_eq!(output.status.code(), Some(0));
        assert!(stderr(&output).contains("truncated file at offset"), "{}", stderr(&output));
        let packets = json(&output)["totals"]["packets"].as_u64().unwrap();
        assert!(packets > 4_000, "{packets}");

        let mut damaged = whole.clone();
        let last = damaged.len() - 5;
        damaged[last] ^= 0xff;
        let output = analyze(&[&file(&format!("damaged-{name}"), &damaged)]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(stderr(&output).contains("data is damaged"), "{}", stderr(&output));
    }
    let xz = analyze(&[&file("c.pcap.xz", b"\xfd7zXZ\0\0\0")]);
    assert_eq!(xz.status.code(), Some(1));
    assert!(stderr(&xz).contains("this is xz; decompress it first"), "{}", stderr(&xz));
}

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&MACS[..], &kind.to_be_bytes(), payload].concat()
}

/// IPv4 from 198.51.100.1 to 198.51.100.2.
fn outer(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let len = (20 + payload.len() as u16).to_be_bytes();
    let header =
        [0x45, 0, len[0], len[1], 0, 0, 0x40, 0, 64, protocol, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2];
    let sum: u32 = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let checksum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
    let mut packet = [&header[..], payload].concat();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let words = [50_000, port, 8 + payload.len() as u16, 0].map(u16::to_be_bytes).concat();
    [&words[..], payload].concat()
}

/// Frame of IEEE 802.11 to an access point, after a radiotap header that announces a frame check sequence.
fn radiotap(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let frame = [&[kind, flags, 0, 0][..], &[2; 18], &[0x10, 0], payload].concat();
    [&[0, 0, 9, 0, 2, 0, 0, 0, 0x10][..], &frame, &crc32(&frame).to_le_bytes()].concat()
}

/// Frame check sequence of IEEE 802.
fn crc32(octets: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    !octets.iter().fold(u32::MAX, |crc, octet| (0..8).fold(crc ^ u32::from(*octet), step))
}

/// LLC and SNAP with IPv4.
const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

/// Name of a file, tunnel, link type, and the function that makes a frame of a packet.
type InputKind = (&'static str, Option<&'static str>, LinkType, fn(&[u8]) -> Vec<u8>);

/// Frames of every kind that `analyze` decapsulates.
fn kinds() -> Vec<InputKind> {
    vec![
        ("radiotap.pcap", None, LinkType::IEEE802_11_RADIOTAP, |packet| {
            radiotap(0x88, 1, &[&[0, 0], &SNAP[..], packet].concat())
        }),
        ("wlan.pcap", None, LinkType::IEEE802_11, |packet| {
            [&[8, 2, 0, 0][..], &[2; 18], &[0x10, 0], &SNAP, packet].concat()
        }),
        ("ppp.pcap", None, LinkType::PPP, |packet| [&[0xff, 3, 0, 0x21], packet].concat()),
        ("ppp_pppd.pcap", None, LinkType::PPP_PPPD, |packet| [&[1, 3, 0, 0x21], packet].concat()),
        ("pppoe.pcap", None, LinkType::ETHERNET, |packet| {
            let len = (2 + packet.len() as u16).to_be_bytes();
            ethernet(0x8864, &[&[0x11, 0, 0, 1, len[0], len[1], 0, 0x21], packet].concat())
        }),
        ("sll2.pcap", None, LinkType::LINUX_SLL2, |packet| {
            [&[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 4, 6, 2, 0, 0, 0, 0, 1, 0, 0], packet].concat()
        }),
        ("gre.pcap", Some("gre"), LinkType::RAW, |packet| {
            outer(47, &[&[0x20, 0, 8, 0, 0, 0, 0, 7], packet].concat())
        }),
        ("gre_ethernet.pcap", Some("gre_ethernet"), LinkType::ETHERNET, |packet| {
            let frame = ethernet(ETHERTYPE_IPV4, packet);
            ethernet(ETHERTYPE_IPV4, &outer(47, &[&[0, 0, 0x65, 0x58], &frame[..]].concat()))
        }),
        ("erspan.pcap", Some("erspan"), LinkType::ETHERNET, |packet| {
            let head = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 1, 0, 0, 0, 0];
            let frame = ethernet(ETHERTYPE_IPV4, packet);
            ethernet(ETHERTYPE_IPV4, &outer(47, &[&head[..], &frame].concat()))
        }),
        ("vxlan.pcap", Some("vxlan"), LinkType::ETHERNET, |packet| {
            let frame = ethernet(ETHERTYPE_IPV4, packet);
            let datagram = udp(4_789, &[&[8, 0, 0, 0, 0, 0, 42, 0], &frame[..]].concat());
            ethernet(ETHERTYPE_IPV4, &outer(17, &datagram))
        }),
        ("vxlan_linux.pcap", Some("vxlan"), LinkType::RAW, |packet| {
            let frame = ethernet(ETHERTYPE_IPV4, packet);
            outer(17, &udp(8_472, &[&[8, 0, 0, 0, 0, 0, 42, 0], &frame[..]].concat()))
        }),
        ("geneve.pcap", Some("geneve"), LinkType::RAW, |packet| {
            let frame = ethernet(ETHERTYPE_IPV4, packet);
            let head = [1, 0, 0x65, 0x58, 0, 0, 5, 0, 1, 2, 0x80, 0];
            outer(17, &udp(6_081, &[&head[..], &frame].concat()))
        }),
        ("gtpu.pcap", Some("gtpu"), LinkType::RAW, |packet| {
            let len = (8 + packet.len() as u16).to_be_bytes();
            let head = [0x34, 255, len[0], len[1], 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x10, 9, 0];
            outer(17, &udp(2_152, &[&head[..], packet].concat()))
        }),
        ("l2tp.pcap", Some("l2tp"), LinkType::RAW, |packet| {
            outer(17, &udp(1_701, &[&[0, 2, 0, 1, 0, 2, 0xff, 3, 0, 0x21], packet].concat()))
        }),
    ]
}

#[test]
fn packets_are_found_in_frames_of_many_kinds() {
    for (name, tunnel, link_type, frame) in kinds() {
        let path = written(name, link_type, packets().iter().map(|packet| frame(packet)));
        let found = assert_all_packets(&[], &path);
        let unwrapped = tunnel.map_or(Value::Null, |tunnel| serde_json::json!({ tunnel: 403 }));
        assert_eq!(found["inputs"][0]["unwrapped"], unwrapped, "{name}");
        assert_eq!(found["inputs"][0]["link_types"], serde_json::json!({ link_type.to_string(): 403 }));
        let text = stdout(&analyze(&[&path]));
        assert_eq!(
            tunnel.is_some(),
            text.contains("unwrapped: "),
            "{name}: {}",
            text.lines().next().unwrap()
        );

        // The compressor extracts equal packets.
        let out = folder().path("compressed.pcap");
        let compressed = json(&thinair(&["rohc", "compress", "--json"], &[&path, &out]));
        assert_eq!(
            (&compressed["packets"], &compressed["octets_in"]),
            (&403.into(), &found["totals"]["bytes_in"])
        );
        let back = folder().path("decompressed.pcap");
        tshark::ok(thinair(&["rohc", "decompress"], &[&out, &back]));
        assert_all_packets(&[], &back);

        if tunnel.is_some() {
            let outer = json(&thinair(&["analyze", "--json", "--outer"], &[&path]));
            assert!(outer["totals"]["bytes_in"].as_u64() > found["totals"]["bytes_in"].as_u64());
            assert_eq!(outer["inputs"][0]["unwrapped"], Value::Null);
            let compressed = json(&thinair(&["rohc", "compress", "--json", "--outer"], &[&path, &out]));
            assert_eq!(compressed["octets_in"], outer["totals"]["bytes_in"]);
        }
    }
}

/// tshark finds equal packets in these frames.
#[test]
fn tshark_finds_the_same_packets() {
    if !tshark::is_there() {
        return;
    }
    let packets = &packets()[..20];
    // tshark cannot read pppd's format.
    for (name, _, link_type, frame) in kinds().into_iter().filter(|kind| kind.2 != LinkType::PPP_PPPD) {
        let path = written(&format!("tshark-{name}"), link_type, packets.iter().map(|packet| frame(packet)));
        // The port of VXLAN in Linux is not that of tshark.
        let options: &[&str] =
            if name.starts_with("vxlan_linux") { &["-d", "udp.port==8472,vxlan"] } else { &[] };
        let fields = tshark::fields_of(&[], &path, options, &["ip.src", "ip.id", "udp.length"]);
        assert_eq!(fields.len(), packets.len());
        for (packet, fields) in packets.iter().zip(fields) {
            let last = |field: &String| tshark::values(field).pop().unwrap_or_default();
            let found: Vec<_> = fields.iter().map(last).collect();
            let source: Vec<_> = packet[12..16].iter().map(u8::to_string).collect();
            let id = format!("0x{}", tshark::hex(&packet[4..6]));
            let length = u16::from_be_bytes([packet[24], packet[25]]).to_string();
            assert_eq!(found, [source.join("."), id, length], "{name}");
        }
    }
}

/// Little-endian pcap file with microseconds, and records that may be shorter than their frames.
fn pcap(link_type: LinkType, records: &[(&[u8], usize)]) -> Vec<u8> {
    let mut octets = b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\x04\0".to_vec();
    octets.extend(u32::from(link_type.0).to_le_bytes());
    for (data, original_len) in records {
        for field in [0, 0, data.len(), *original_len] {
            octets.extend((field as u32).to_le_bytes());
        }
        octets.extend(*data);
    }
    octets
}

/// Files without an IP packet, and the expected parts of the errors.
fn unusable() -> Vec<(&'static str, Vec<u8>, &'static [&'static str])> {
    let packet = packets().remove(0);
    let cut = ethernet(ETHERTYPE_IPV4, &packet);
    let arp = ethernet(0x0806, &[0; 46]);
    let beacon = radiotap(0x80, 0, &[0; 12]);
    let encrypted = radiotap(0x88, 0x41, &[7; 60]);
    let whole = |frame: &[u8], count: usize, link_type| pcap(link_type, &vec![(frame, frame.len()); count]);
    vec![
        (
            "empty.pcap",
            pcap(LinkType::ETHERNET, &[]),
            &["has a header and no record of LINKTYPE_ETHERNET (1)"],
        ),
        ("no-octets.pcap", Vec::new(), &["the file is empty"]),
        (
            "snaplen.pcap",
            pcap(LinkType::ETHERNET, &[(&cut[..50], cut.len()), (&cut[..50], cut.len())]),
            &["no IP packet among 2 records of LINKTYPE_ETHERNET (1): truncated 2;", "tcpdump -s 0"],
        ),
        (
            "arp.pcap",
            whole(&arp, 3, LinkType::ETHERNET),
            &["no IP packet among 3 records of LINKTYPE_ETHERNET (1): not_ip 3;", "such as ARP"],
        ),
        (
            "beacons.pcap",
            whole(&beacon, 4, LinkType::IEEE802_11_RADIOTAP),
            &["among 4 records of LINKTYPE_IEEE802_11_RADIOTAP (127): not_data 4;", "management and control"],
        ),
        (
            "encrypted.pcap",
            whole(&encrypted, 5, LinkType::IEEE802_11_RADIOTAP),
            &[
                "LINKTYPE_IEEE802_11_RADIOTAP (127): encrypted 5;",
                "decrypt it first, for example with `airdecap-ng",
            ],
        ),
        (
            "usb.pcap",
            whole(&[0; 64], 2, LinkType(220)),
            &[
                "of LINKTYPE_USB_LINUX_MMAPPED (220): unsupported_link_type 2;",
                "an interface that carries IP",
            ],
        ),
        (
            "bluetooth.pcap",
            whole(&[0; 9], 1, LinkType(187)),
            &["1 record of LINKTYPE_BLUETOOTH_HCI_H4 (187)"],
        ),
        ("can.pcap", whole(&[0; 16], 1, LinkType(227)), &["1 record of LINKTYPE_CAN_SOCKETCAN (227)"]),
        ("number.pcap", whole(&[0; 16], 1, LinkType(999)), &["1 record of link type 999"]),
        ("rohc.pcap", whole(&[0xfd, 0, 4], 1, LinkType::USER0), &["thinair rohc decompress"]),
        (
            "half.pcap",
            pcap(LinkType::RAW, &[(&packet, packet.len())])[..50].to_vec(),
            &["ends within its first record"],
        ),
    ]
}

#[test]
fn a_file_without_an_ip_packet_is_an_error_that_says_why() {
    for (name, octets, why) in unusable() {
        let path = file(name, &octets);
        let output = analyze(&[&path]);
        let report = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert_eq!(stdout(&output), "", "{name}");
        assert!(report.contains(&path.display().to_string()), "{name}: {report}");
        for why in why {
            assert!(report.contains(why), "{name}: {report}");
        }
        if octets.is_empty() {
            continue;
        }
        let output = thinair(&["analyze", "--json"], &[&path]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let found = json(&output);
        assert_eq!((&found["schema"], &found["totals"]["packets"]), (&"thinair.analyze/1".into(), &0.into()));
        let input = &found["inputs"][0];
        let skipped: u64 = input["skipped"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(input["packets"], skipped, "{name}");
        assert_eq!(input["link_types"].as_object().unwrap().len(), 1, "{name}");
    }
}

#[test]
fn one_file_with_packets_is_enough() {
    let files: Vec<_> = unusable().into_iter().filter(|(_, octets, _)| !octets.is_empty()).collect();
    let paths: Vec<_> =
        files.iter().map(|(name, octets, _)| file(&format!("of-several-{name}"), octets)).collect();
    let capture = root().join(CAPTURE);
    let all: Vec<&Path> = paths.iter().map(PathBuf::as_path).chain([capture.as_path()]).collect();
    let output = analyze(&all);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = stderr(&output);
    for path in &paths {
        let lines = report.lines().filter(|line| line.contains(&format!("{}: no ", path.display())));
        assert_eq!(lines.count(), 1, "{}: {report}", path.display());
    }
}
