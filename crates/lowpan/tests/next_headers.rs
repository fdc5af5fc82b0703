//! LOWPAN_NHC of extension headers and of IPv6 in IPv6. RFC 6282, section 4.2.

#![allow(clippy::unwrap_used)]

mod common;

use common::{address, datagram, eliding, ipv6, packet, received, sent, settings};
use thinair_lowpan::{DecompressError, LinkAddress, Links, LowpanSettings, decompress};
use thinair_wire::header::ipv6::Ipv6;

const HOP_BY_HOP: u8 = 0;
const UDP: u8 = 17;
const IPV6: u8 = 41;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const ICMPV6: u8 = 58;
const NO_NEXT: u8 = 59;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;

const LINKS: Links = Links { source: LinkAddress::Short(1), destination: LinkAddress::Short(2) };

fn ip() -> Ipv6 {
    ipv6("fe80::ff:fe00:1", "fe80::ff:fe00:2")
}

/// Returns the octets after LOWPAN_IPHC when `content`, of type `kind`, is sent.
#[track_caller]
fn nhc(kind: u8, content: &[u8]) -> Vec<u8> {
    let frame = sent(&LowpanSettings::default(), LINKS, &packet(ip(), kind, content));
    assert_eq!(frame[..2], *b"\x7e\x33");
    frame[2..].to_vec()
}

/// The RPL option fills its header: test `test_rpl_hop_by_hop_option_deconstruct` of smoltcp 0.12 (0BSD).
#[test]
fn a_hop_by_hop_header_without_padding_has_a_length_in_octets() {
    let content = b"\x3a\0\x63\x04\x00\x1e\x03\x00data";
    assert_eq!(nhc(HOP_BY_HOP, content), b"\xe0\x3a\x06\x63\x04\x00\x1e\x03\x00data");
}

/// The RPL source routing header of the test `test_source_routing_deconstruct` of smoltcp 0.12 (0BSD).
#[test]
fn the_headers_behind_a_compressed_header_are_compressed_too() {
    let routing = b"\x11\x03\x03\x03\x99\x30\0\0\x05\0\x05\0\x05\0\x05\x06\0\x06\0\x06\0\x06\x02\0\x02\0\x02\0\x02\0\0\0";
    let content = [&routing[..], &datagram(&ip(), 0x1234, 0xF0B1, b"data")].concat();
    let sent = nhc(ROUTING, &content);
    assert_eq!(sent[..2], *b"\xe3\x1e");
    assert_eq!(sent[2..32], routing[2..]);
    assert_eq!(sent[32..36], *b"\xf1\x12\x34\xb1");
}

#[test]
fn padding_is_elided_where_it_comes_back() {
    // A Pad1; a PadN of two octets; one of six, without other options.
    assert_eq!(nhc(DESTINATION, b"\x3a\0\x05\x03\x01\x02\x03\0"), b"\xe6\x3a\x05\x05\x03\x01\x02\x03");
    assert_eq!(nhc(HOP_BY_HOP, b"\x3a\0\x05\x02\x01\x02\x01\0"), b"\xe0\x3a\x04\x05\x02\x01\x02");
    assert_eq!(nhc(HOP_BY_HOP, b"\x3a\0\x01\x04\0\0\0\0"), b"\xe0\x3a\x00");
    // Seven octets.
    let header = b"\x3a\x01\x05\x05\x01\x02\x03\x04\x05\x01\x05\0\0\0\0\0";
    assert_eq!(nhc(HOP_BY_HOP, header), b"\xe0\x3a\x07\x05\x05\x01\x02\x03\x04\x05");
}

#[test]
fn padding_that_would_come_back_otherwise_is_carried() {
    for content in [
        // Not zero; two Pad1; in the middle; an option that is cut off.
        b"\x3a\0\x01\x04\0\0\0\x09",
        b"\x3a\0\x05\x02\x01\x02\0\0",
        b"\x3a\0\x01\x02\0\0\x05\0",
        b"\x3a\0\x05\x09\0\0\0\0",
    ] {
        assert_eq!(nhc(HOP_BY_HOP, content), [b"\xe0\x3a\x06", &content[2..]].concat());
    }
    // Octets like padding in a header without options.
    assert_eq!(nhc(ROUTING, b"\x3a\0\x01\x04\0\0\0\0"), b"\xe2\x3a\x06\x01\x04\0\0\0\0");
    assert_eq!(nhc(MOBILITY, b"\x3b\0\x01\x04\0\0\0\0"), b"\xe8\x3b\x06\x01\x04\0\0\0\0");
}

#[test]
fn a_header_of_any_length_is_padded_by_the_decompressor() {
    let padding: [&[u8]; 8] = [
        b"\x01\x04\0\0\0\0",
        b"\x01\x03\0\0\0",
        b"\x01\x02\0\0",
        b"\x01\x01\0",
        b"\x01\x00",
        b"\0",
        b"",
        b"",
    ];
    for (len, padding) in padding.iter().enumerate().take(7) {
        let options = &[5, 4, 9, 9, 9, 9][..len];
        let frame = [&[0x7E, 0x33, 0xE6, ICMPV6, len as u8], options].concat();
        let (whole, _) = received(&LowpanSettings::default(), LINKS, &frame);
        assert_eq!(whole[40..], [&[ICMPV6, 0], options, *padding].concat());
    }
    // A header without options cannot be padded.
    let refused =
        decompress(&LowpanSettings::default(), LINKS, b"\x7e\x33\xe2\x3a\x05\0\0\0\0\0", &mut [0; 128]);
    assert_eq!(refused, Err(DecompressError::Malformed { offset: 10 }));
}

/// "LOWPAN_NHC MUST NOT be used to encode IPv6 Extension Headers that have more than 255 octets following".
#[test]
fn a_header_of_more_than_255_octets_goes_in_line() {
    let header = |units: u8, fill: u8| {
        let mut header = vec![fill; (usize::from(units) + 1) * 8];
        header[..2].copy_from_slice(&[ICMPV6, units]);
        header
    };
    assert_eq!(nhc(ROUTING, &header(31, 0xFF))[..3], [0xE2, ICMPV6, 254]);
    let frame = sent(&LowpanSettings::default(), LINKS, &packet(ip(), ROUTING, &header(32, 0xFF)));
    assert_eq!(frame[..3], [0x7A, 0x33, ROUTING]);
    // With its padding elided it is short enough: an option of 255 octets, and seven of PadN.
    let mut options = header(32, 0);
    options[2..4].copy_from_slice(&[5, 253]);
    options[257..259].copy_from_slice(&[1, 5]);
    assert_eq!(nhc(DESTINATION, &options)[..3], [0xE6, ICMPV6, 255]);
}

/// The octet after Next Header is Reserved and not a Length: it is carried, whatever its value.
#[test]
fn a_fragment_header_is_carried_unmodified() {
    let atomic = b"\x11\x00\x00\x00\x12\x34\x56\x78";
    let content = [&atomic[..], &datagram(&ip(), 0xF0B1, 0xF0B2, b"data")].concat();
    assert_eq!(nhc(FRAGMENT, &content)[..10], *b"\xe5\x00\x00\x00\x12\x34\x56\x78\xf3\x12");
    assert_eq!(nhc(FRAGMENT, b"\x3a\xab\x00\x06\x12\x34\x56\x78")[..4], *b"\xe4\x3a\xab\x00");
}

#[test]
fn what_follows_the_header_of_a_real_fragment_goes_in_line() {
    for offset_and_flags in [[0x00, 0x01], [0x00, 0x08], [0x12, 0x30]] {
        let header = [&[UDP, 0], &offset_and_flags[..], &[0x12, 0x34, 0x56, 0x78]].concat();
        let content = [&header[..], &datagram(&ip(), 0xF0B1, 0xF0B2, b"data")].concat();
        assert_eq!(nhc(FRAGMENT, &content)[..2], [0xE4, UDP]);
    }
}

/// The inner addresses are derived from the outer ones (section 3.2.2).
#[test]
fn an_ipv6_header_inside_takes_its_identifiers_from_the_one_outside() {
    let s = settings(&[(0, "2001:db8::/64"), (1, "2001:db8:1::/64")]);
    let outer = ipv6("2001:db8::1234:5678:9abc:def0", "2001:db8:1::7");
    let inner = ipv6("fe80::1234:5678:9abc:def0", "2001:db8:1::7");
    let content = packet(inner, UDP, &datagram(&inner, 0xF0B1, 0xF0B2, b"data"));
    let frame = sent(&eliding(s), LINKS, &packet(outer, IPV6, &content));
    assert_eq!(frame[..3], *b"\x7e\xd5\x01");
    assert_eq!(frame[3..19], [&outer.source[8..], &outer.destination[8..]].concat());
    assert_eq!(frame[19..], *b"\xee\x7e\xb7\x01\xf7\x12data");
}

/// Its checksum covers its own addresses, independent of a final destination in the outer header.
#[test]
fn a_checksum_inside_is_elided_behind_any_header_outside() {
    let inner = packet(ip(), UDP, &datagram(&ip(), 1, 2, b"data"));
    let content = [&[IPV6, 0, 3, 1, 0, 0, 0, 0][..], &inner].concat();
    let frame = sent(&eliding(LowpanSettings::default()), LINKS, &packet(ip(), ROUTING, &content));
    assert_eq!(frame[..14], *b"\x7e\x33\xe3\x06\x03\x01\0\0\0\0\xee\x7e\x33\xf4");
}

#[test]
fn the_fifth_ipv6_header_is_payload() {
    let mut content = datagram(&ip(), 1, 2, b"data");
    let mut kind = UDP;
    for _ in 0..6 {
        content = packet(ip(), kind, &content);
        kind = IPV6;
    }
    let frame = sent(&LowpanSettings::default(), LINKS, &content);
    assert_eq!(frame[..12], *b"\x7e\x33\xee\x7e\x33\xee\x7e\x33\xee\x7a\x33\x29");
    assert_eq!(frame[12..], content[160..]);
}

#[test]
fn an_ipv6_header_whose_length_does_not_end_the_packet_goes_in_line() {
    let mut inner = packet(ip(), ICMPV6, b"data");
    inner.push(0);
    let frame = sent(&LowpanSettings::default(), LINKS, &packet(ip(), IPV6, &inner));
    assert_eq!(frame[..3], [0x7A, 0x33, IPV6]);
}

/// The checksum of such a packet covers its final destination (RFC 8200, section 8.1), which a decompressor would
/// have to find.
#[test]
fn a_checksum_behind_a_routing_header_with_segments_left_is_carried() {
    let s = eliding(LowpanSettings::default());
    let ask = |segments_left: u8, over: &Ipv6| {
        let routing = [UDP, 0, 3, segments_left, 0, 0, 0, 0];
        let content = [&routing[..], &datagram(over, 1, 2, b"data")].concat();
        let frame = sent(&s, LINKS, &packet(ip(), ROUTING, &content));
        assert_eq!(frame[2], 0xE3);
        frame[10]
    };
    let last = Ipv6 { destination: address("2001:db8::9"), ..ip() };
    assert_eq!(ask(0, &ip()), 0xF4);
    assert_eq!(ask(0, &last), 0xF0);
    assert_eq!(ask(1, &last), 0xF0);
    assert_eq!(ask(1, &ip()), 0xF0);
    let missing = b"\x7e\x33\xe3\x06\x03\x01\0\0\0\0\xf4\0\x01\0\x02data";
    let refused = decompress(&s, LINKS, missing, &mut [0; 128]);
    assert_eq!(refused, Err(DecompressError::ChecksumElided { offset: 10 }));
}

#[test]
fn a_header_that_is_cut_off_goes_in_line() {
    for (kind, content) in [
        (HOP_BY_HOP, &b"\x3a\x01\0\0\0\0\0\0"[..]),
        (FRAGMENT, b"\x3a\0\0\0\0\0\0"),
        (DESTINATION, b"\x3a"),
        (ROUTING, b""),
        (UDP, b"\0\x01\0\x02\0\x07\0"),
        (NO_NEXT, b"anything"),
    ] {
        let frame = sent(&LowpanSettings::default(), LINKS, &packet(ip(), kind, content));
        assert_eq!(frame[..3], [0x7A, 0x33, kind]);
    }
}
