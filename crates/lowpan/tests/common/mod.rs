//! IPv6 packets to compress.
#![allow(dead_code, clippy::unwrap_used, reason = "not every file of tests needs every packet")]

use std::net::Ipv6Addr;

use thinair_lowpan::{Contexts, Links, LowpanContext, LowpanSettings, UdpChecksum, compress, decompress};
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::header::udp::Udp;

/// An IPv6 header with the addresses given as text, hop limit 64.
pub(crate) fn ipv6(source: &str, destination: &str) -> Ipv6 {
    Ipv6 { hop_limit: 64, source: address(source), destination: address(destination), ..Ipv6::default() }
}

pub(crate) fn address(text: &str) -> [u8; 16] {
    text.parse::<Ipv6Addr>().unwrap().octets()
}

/// A context from `prefix/length`.
pub(crate) fn context(text: &str) -> LowpanContext {
    let (prefix, length) = text.split_once('/').unwrap();
    LowpanContext::new(address(prefix), length.parse().unwrap()).unwrap()
}

pub(crate) fn settings(contexts: &[(u8, &str)]) -> LowpanSettings {
    let contexts =
        contexts.iter().fold(Contexts::NONE, |all, (id, text)| all.with(*id, context(text)).unwrap());
    LowpanSettings { contexts, udp_checksum: UdpChecksum::InLine }
}

pub(crate) fn eliding(settings: LowpanSettings) -> LowpanSettings {
    LowpanSettings { udp_checksum: UdpChecksum::Elided, ..settings }
}

/// A packet of `header` and `content`, which is a `next_header`, with a correct length.
pub(crate) fn packet(header: Ipv6, next_header: u8, content: &[u8]) -> Vec<u8> {
    let payload_length = content.len() as u16;
    let mut packet = vec![0; Ipv6::LEN];
    Ipv6 { next_header, payload_length, ..header }.write(&mut packet, 0).unwrap();
    packet.extend_from_slice(content);
    packet
}

/// A UDP datagram with correct length, and correct checksum for the addresses of `ip`.
pub(crate) fn datagram(ip: &Ipv6, source_port: u16, destination_port: u16, payload: &[u8]) -> Vec<u8> {
    let length = (Udp::LEN + payload.len()) as u16;
    let header = Udp { source_port, destination_port, length, checksum: 0 };
    let mut datagram = vec![0; Udp::LEN];
    header.write(&mut datagram, 0).unwrap();
    datagram.extend_from_slice(payload);
    let checksum = match sum(ip, &datagram) {
        0 => 0xFFFF,
        checksum => checksum,
    };
    datagram[6..8].copy_from_slice(&checksum.to_be_bytes());
    datagram
}

/// The sum of RFC 8200, section 8.1, word by word: independent of the one under test.
fn sum(ip: &Ipv6, datagram: &[u8]) -> u16 {
    let pseudo =
        [&ip.source[..], &ip.destination, &(datagram.len() as u32).to_be_bytes(), &[0, 0, 0, 17], datagram]
            .concat();
    let mut sum = 0_u32;
    for word in pseudo.chunks(2) {
        sum += u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0));
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

/// Compresses `packet`, and checks that decompression restores it.
#[track_caller]
pub(crate) fn sent(settings: &LowpanSettings, links: Links, packet: &[u8]) -> Vec<u8> {
    let mut out = vec![0xAA; packet.len() + 1];
    let compressed = compress(settings, links, packet, &mut out).unwrap();
    out.truncate(compressed.len);
    let (back, done) = received(settings, links, &out);
    assert_eq!(back, packet);
    assert_eq!((done.header_in, done.header_out), (compressed.header_out, compressed.header_in));
    out
}

/// Decompresses a packet.
#[track_caller]
pub(crate) fn received(
    settings: &LowpanSettings,
    links: Links,
    octets: &[u8],
) -> (Vec<u8>, thinair_lowpan::Decompressed) {
    let mut out = vec![0xAA; 70_000];
    let done = decompress(settings, links, octets, &mut out).unwrap();
    out.truncate(done.len);
    (out, done)
}
