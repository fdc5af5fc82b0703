//! Sums of the bill, and the cause of packets made by hand after the RFCs.

use std::fs::{self, File};
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use thinair_capture::{LinkType, Reader, Timestamp, Writer};
use thinair_rohc::{Channel, CidSpace, ProfileSet};

use super::BillCause::{self, *};
use crate::settings::Settings;
use crate::survey::Survey;

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const FIN: u8 = 0x01;

fn survey(capture: &[u8]) -> Survey {
    let settings = Settings::new(Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap(), &[]);
    let mut survey = Survey::default();
    survey.read(&settings, capture, |_| ()).unwrap();
    survey
}

/// Bill of a capture: cause, protocol, packets and octets.
fn bill(capture: &[u8]) -> Vec<(BillCause, String, u64, u64)> {
    let rows = survey(capture).bill.rows(None);
    assert!((rows.iter().map(|row| row.share).sum::<f64>() - 1.0).abs() < 1e-9 || rows.is_empty());
    rows.into_iter().map(|row| (row.cause, row.protocol, row.packets, row.bytes)).collect()
}

fn of_packets(packets: &[Vec<u8>]) -> Vec<(BillCause, String, u64, u64)> {
    let mut file = Writer::new(Vec::new(), LinkType::RAW).unwrap();
    for (packet, at) in packets.iter().zip(0..) {
        file.write(Timestamp::from_nanos(at * 1_000_000_000), packet).unwrap();
    }
    bill(&file.into_inner())
}

/// Returns an IPv4 packet of 20 octets and what follows.
fn ipv4(protocol: u8, behind: &[u8]) -> Vec<u8> {
    let mut packet = b"\x45\0\0\0\0\0\x40\0\x40\0\0\0\x0a\0\0\x01\x0a\0\0\x02".to_vec();
    packet[9] = protocol;
    packet.extend(behind);
    let len = packet.len() as u16;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let header = [50_000, port, 8 + payload.len() as u16, 0].map(u16::to_be_bytes).concat();
    ipv4(17, &[&header, payload].concat())
}

fn tcp(port: u16, seq: u32, flags: u8, data: &[u8]) -> Vec<u8> {
    let ports = [50_000, port].map(u16::to_be_bytes).concat();
    let header = [&ports[..], &seq.to_be_bytes(), &[0, 0, 0, 1, 0x50, flags, 1, 0, 0, 0, 0, 0]].concat();
    ipv4(6, &[&header, data].concat())
}

/// Asserts the whole bill of packets.
fn costs(packets: &[Vec<u8>], mut expected: Vec<(BillCause, &str, u64, u64)>) {
    let mut found = of_packets(packets);
    found.sort();
    expected.sort();
    let expected: Vec<_> =
        expected.into_iter().map(|(c, name, n, octets)| (c, name.to_owned(), n, octets)).collect();
    assert_eq!(found, expected);
}

#[test]
fn packets_without_data_have_one_cause() {
    let cases = [
        (udp(53, b"question"), NamesAndTime, "dns"),
        (udp(123, &[0x23; 48]), NamesAndTime, "ntp"),
        (udp(5_353, b"question"), LinkNoise, "mdns"),
        (ipv4(1, b"\x08\0\0\0\0\x01\0\x01"), PathProbes, "icmp"),
        (ipv4(2, b"\x16\0\0\0\xe0\0\0\xfb"), LinkNoise, "igmp"),
        (udp(51_820, &[&[4, 0, 0, 0][..], &[7; 28]].concat()), Keepalives, "wireguard"),
        (udp(51_820, &[&[1, 0, 0, 0][..], &[7; 144]].concat()), Handshakes, "wireguard"),
        (udp(4_500, &[0xFF]), Keepalives, "esp"),
        (udp(5_684, b"\x16\xfe\xfd\0\0\0\0\0\0\0\0\0\x01\x01"), Handshakes, "dtls"),
        (udp(443, b"\xc0\0\0\0\x01\x08\x01\x02\x03\x04\x05\x06\x07\x08"), Handshakes, "quic"),
        // CoAP ping, and an acknowledgment.
        (udp(5_683, b"\x40\0\x12\x34"), Keepalives, "coap"),
        (udp(5_683, b"\x60\0\x12\x34"), Acknowledgments, "coap"),
        (tcp(22, 100, SYN, b""), Handshakes, "tcp"),
    ];
    for (packet, cause, protocol) in cases {
        let octets = packet.len() as u64;
        costs(&[packet], vec![(cause, protocol, 1, octets)]);
    }
}

#[test]
fn data_are_divided_into_layers() {
    costs(
        &[udp(9, b"eight oc")],
        vec![(IpHeaders, "ip", 1, 20), (TransportHeaders, "transport", 1, 8), (Payload, "udp", 1, 8)],
    );
    // Header of 4 octets, Uri-Path of 5 octets, marker.
    costs(
        &[udp(5_683, b"\x40\x02\x12\x34\xb4time\xff21.5")],
        vec![
            (IpHeaders, "ip", 1, 20),
            (TransportHeaders, "transport", 1, 8),
            (ApplicationHeaders, "coap", 1, 10),
            (Payload, "coap", 1, 4),
        ],
    );
}

#[test]
fn a_message_sent_again_is_a_retransmission() {
    let get = udp(5_683, b"\x40\x01\x12\x34\xb4time");
    let next = udp(5_683, b"\x40\x01\x12\x35\xb4time");
    costs(
        &[get.clone(), next, get],
        vec![
            (IpHeaders, "ip", 2, 40),
            (TransportHeaders, "transport", 2, 16),
            (ApplicationHeaders, "coap", 2, 18),
            (Retransmissions, "coap", 1, 37),
        ],
    );
}

#[test]
fn a_connection_has_each_cause() {
    let packets = [
        tcp(1_883, 99, SYN, b""),
        tcp(1_883, 100, ACK, b""),
        tcp(1_883, 100, ACK, b"publish"),
        tcp(1_883, 100, ACK, b"publish"),
        // A keepalive has the number before the next one.
        tcp(1_883, 106, ACK, b""),
        tcp(1_883, 106, ACK, b"\0"),
        tcp(1_883, 107, ACK, b"\xc0\0"),
        tcp(1_883, 109, ACK | FIN, b""),
    ];
    costs(
        &packets,
        vec![
            (Handshakes, "tcp", 2, 80),
            (Acknowledgments, "tcp", 1, 40),
            (IpHeaders, "ip", 1, 20),
            (TransportHeaders, "transport", 1, 20),
            (Payload, "mqtt", 1, 7),
            (Retransmissions, "tcp", 1, 47),
            (Keepalives, "tcp", 2, 81),
            (Keepalives, "mqtt", 1, 42),
        ],
    );
}

#[test]
fn records_of_tls_are_divided_across_segments() {
    // A handshake of 4 octets, in two segments; in the second one also data of 3 octets.
    let packets = [tcp(443, 1, ACK, b"\x16\x03\x01\0\x04he"), tcp(443, 8, ACK, b"lo\x17\x03\x03\0\x03abc")];
    let headers = [(IpHeaders, "ip", 2, 40), (TransportHeaders, "transport", 2, 40)];
    let divided = [(Handshakes, "tls", 2, 9), (Payload, "tls", 1, 8)];
    costs(&packets, [&headers[..], &divided].concat());
    // Behind a missing segment nothing is known to be a handshake.
    let packets = [tcp(443, 1, ACK, b"\x16\x03\x01\0\x04he"), tcp(443, 9, ACK, b"o\x16\x03\x03\0\x03abc")];
    let divided = [(Handshakes, "tls", 1, 7), (Payload, "tls", 1, 9)];
    costs(&packets, [&headers[..], &divided].concat());
}

#[test]
fn frames_without_ip_are_counted_too() {
    let frame = |ethertype: u16| [&[2; 12][..], &ethertype.to_be_bytes(), &[0; 28]].concat();
    let mut file = Writer::new(Vec::new(), LinkType::ETHERNET).unwrap();
    for (ethertype, at) in [0x0806, 0x88CC, 0x0026, 0x88A4].into_iter().zip(0..) {
        file.write(Timestamp::from_nanos(at), &frame(ethertype)).unwrap();
    }
    let mut found = bill(&file.into_inner());
    found.sort();
    let row = |cause, name: &str| (cause, name.to_owned(), 1, 42);
    let noise = [row(LinkNoise, "arp"), row(LinkNoise, "llc"), row(LinkNoise, "lldp")];
    assert_eq!(found, [&noise[..], &[row(OtherFrames, "other")]].concat());
}

/// Octets of the frames of a capture, as a reader finds them.
fn frames(capture: &[u8]) -> u64 {
    let mut reader = Reader::new(capture).unwrap();
    let mut octets = 0;
    while let Some(record) = reader.next_record() {
        octets += record.map_or(0, |record| u64::from(record.original_len).max(record.data.len() as u64));
    }
    octets
}

/// Captures of programs as they are installed: what makes them is in `tests/workspace/peers/causes.py`.
#[test]
fn captures_of_programs_cost_what_is_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/causes");
    let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "pcap"));
    paths.sort();
    let mut found = String::new();
    for path in &paths {
        let octets = fs::read(path).unwrap();
        let bill = survey(&octets).bill.rows(None);
        assert_eq!(bill.iter().map(|row| row.bytes).sum::<u64>(), frames(&octets), "{}", path.display());
        found += &format!("{}: {} octets\n", path.file_stem().unwrap().display(), frames(&octets));
        for row in &bill {
            let saves =
                row.saves_bytes.map_or(String::new(), |saves| format!("; {}: {saves}", row.remedy.unwrap()));
            let cause = serde_json::to_value(row.cause).unwrap();
            found += &format!(
                "  {} {}: {} in {}{saves}\n",
                cause.as_str().unwrap(),
                row.protocol,
                row.bytes,
                row.packets
            );
        }
    }
    assert!(paths.len() >= 12);
    let record = folder.join("bills.txt");
    if std::env::var_os("THINAIR_BLESS").is_some() {
        fs::write(&record, &found).unwrap();
    }
    assert_eq!(found, fs::read_to_string(record).unwrap());
}

#[test]
fn sums_equal_every_capture() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let captures: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "pcap")).collect();
    assert!(captures.len() > 30);
    for path in captures {
        let mut octets = Vec::new();
        std::io::Read::read_to_end(&mut File::open(&path).unwrap(), &mut octets).unwrap();
        let sum: u64 = bill(&octets).into_iter().map(|(_, _, _, octets)| octets).sum();
        assert_eq!(sum, frames(&octets), "{}", path.display());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Packets with some octets changed, cut off, or in frames of another kind.
    #[test]
    fn sums_equal_any_capture(
        packets in vec((0..6_usize, vec((0..60_usize, any::<u8>()), 0..3), 0..60_usize), 1..12),
        link_type in prop::sample::select(vec![LinkType::RAW, LinkType::ETHERNET, LinkType::IEEE802_15_4_NOFCS]),
    ) {
        let all = [
            udp(5_683, b"\x40\x02\x12\x34\xb4time\xff21.5"),
            tcp(443, 1, ACK, b"\x16\x03\x01\0\x04hello\x17\x03\x03"),
            tcp(1_883, 1, ACK | SYN, b""),
            udp(443, b"\xc0\0\0\0\x01\x08\x01\x02\x03\x04\x05\x06\x07\x08"),
            ipv4(50, &[7; 40]),
            ipv4(1, b"\x08\0\0\0\0\x01\0\x01"),
        ];
        let mut file = Writer::new(Vec::new(), link_type).unwrap();
        for (kind, changes, cut) in packets {
            let mut frame = all[kind].clone();
            if link_type == LinkType::ETHERNET {
                frame.splice(0..0, *b"\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x08\0");
            }
            for (at, octet) in changes {
                if let Some(place) = frame.get_mut(at) {
                    *place = octet;
                }
            }
            frame.truncate(frame.len().saturating_sub(cut.saturating_sub(40)));
            file.write(Timestamp::from_nanos(0), &frame).unwrap();
        }
        let capture = file.into_inner();
        let sum: u64 = bill(&capture).into_iter().map(|(_, _, _, octets)| octets).sum();
        prop_assert_eq!(sum, frames(&capture));
    }
}
