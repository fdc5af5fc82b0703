//! Compressed packets, octet by octet, as in the figures and tables of RFC 6282.

#![allow(clippy::unwrap_used)]

mod common;

use common::{address, datagram, eliding, ipv6, packet, received, sent, settings};
use thinair_lowpan::{
    CompressError, DecompressError, LinkAddress, Links, LowpanSettings, UdpChecksum, compress, decompress,
    dispatch,
};
use thinair_wire::header::ipv6::Ipv6;

/// ICMPv6: no LOWPAN_NHC.
const ICMPV6: u8 = 58;
const UDP: u8 = 17;

const EUI: LinkAddress = LinkAddress::Extended([0x02, 0x12, 0x4B, 0, 0, 0, 0, 0x01]);
const SHORT: LinkAddress = LinkAddress::Short(0xABCD);
const LINKS: Links = Links { source: EUI, destination: SHORT };
const NO_LINKS: Links = Links { source: LinkAddress::None, destination: LinkAddress::None };

/// Returns the octets before the payload of a packet that carries four octets.
#[track_caller]
fn header(settings: &LowpanSettings, links: Links, header: Ipv6) -> Vec<u8> {
    let frame = sent(settings, links, &packet(header, ICMPV6, b"data"));
    frame.strip_suffix(b"data").expect("the payload is at the end").to_vec()
}

/// Section 3.1.1, SAC=0 and M=0, DAC=0.
#[test]
fn stateless_unicast_addresses_take_0_2_8_or_16_octets() {
    let s = LowpanSettings::default();
    let cases: &[(&str, &str, &[u8])] = &[
        ("fe80::12:4b00:0:1", "fe80::ff:fe00:abcd", b"\x7a\x33\x3a"),
        ("fe80::ff:fe00:1234", "fe80::ff:fe00:1", b"\x7a\x22\x3a\x12\x34\x00\x01"),
        (
            "fe80::1:2:3:4",
            "fe80::ff:fe01:1",
            b"\x7a\x11\x3a\x00\x01\x00\x02\x00\x03\x00\x04\x00\x00\x00\xff\xfe\x01\x00\x01",
        ),
        (
            "2001:db8::1",
            "fe80:1::1",
            b"\x7a\x00\x3a\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\xfe\x80\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01",
        ),
    ];
    for (source, destination, expected) in cases {
        assert_eq!(header(&s, LINKS, ipv6(source, destination)), *expected, "{source} {destination}");
    }
}

/// Without link addresses, and with unrelated ones.
#[test]
fn an_identifier_that_is_not_that_of_the_link_goes_in_line() {
    let ip = ipv6("fe80::ff:fe00:abcd", "fe80::ff:fe00:abcd");
    let s = LowpanSettings::default();
    assert_eq!(header(&s, NO_LINKS, ip), b"\x7a\x22\x3a\xab\xcd\xab\xcd");
    assert_eq!(header(&s, LINKS, ip), b"\x7a\x23\x3a\xab\xcd");
}

/// Section 3.1.1, SAC=1 and M=0, DAC=1. Context 0 needs no CID octet.
#[test]
fn stateful_unicast_addresses_take_0_2_or_8_octets() {
    let s = settings(&[(0, "2001:db8::/64"), (7, "fd00:1:2:3::/64")]);
    let cases: &[(&str, &str, &[u8])] = &[
        ("2001:db8::12:4b00:0:1", "2001:db8::ff:fe00:abcd", b"\x7a\x77\x3a"),
        ("2001:db8::ff:fe00:1", "2001:db8::ff:fe00:2", b"\x7a\x66\x3a\x00\x01\x00\x02"),
        ("2001:db8::1", "2001:db8::2", b"\x7a\x55\x3a\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02"),
        ("fd00:1:2:3::1", "2001:db8::ff:fe00:abcd", b"\x7a\xd7\x70\x3a\0\0\0\0\0\0\0\x01"),
        ("2001:db8::12:4b00:0:1", "fd00:1:2:3:0:ff:fe00:abcd", b"\x7a\xf7\x07\x3a"),
        ("fd00:1:2:3:0:ff:fe00:1", "fe80::ff:fe00:2", b"\x7a\xe2\x70\x3a\x00\x01\x00\x02"),
    ];
    for (source, destination, expected) in cases {
        assert_eq!(header(&s, LINKS, ipv6(source, destination)), *expected, "{source} {destination}");
    }
}

/// "Bits covered by context information are always used ... Any remaining bits are zero."
#[test]
fn a_prefix_may_end_anywhere() {
    // 48 bits: the bits up to the identifier are zero, or the context is of no use.
    let s = settings(&[(0, "2001:db8:1::/48")]);
    assert_eq!(header(&s, LINKS, ipv6("2001:db8:1::ff:fe00:1", "::1"))[..2], *b"\x7a\x60");
    assert_eq!(header(&s, LINKS, ipv6("2001:db8:1:1::ff:fe00:1", "::1"))[..2], *b"\x7a\x00");
    // 112 bits: the end of a short address is in the identifier.
    let s = settings(&[(0, "2001:db8::5:6:7:0/112")]);
    assert_eq!(header(&s, NO_LINKS, ipv6("2001:db8::5:6:7:8", "::1"))[..5], *b"\x7a\x60\x3a\x00\x08");
    assert_eq!(header(&s, LINKS, ipv6("::1", "2001:db8::5:6:7:abcd"))[..2], *b"\x7a\x07");
    // 128 bits: no link address is needed.
    let s = settings(&[(0, "2001:db8::1/128")]);
    assert_eq!(header(&s, NO_LINKS, ipv6("2001:db8::1", "2001:db8::1")), b"\x7a\x77\x3a");
}

#[test]
fn of_equal_ways_the_stateless_and_then_the_lowest_context_is_taken() {
    let s = settings(&[(3, "fe80::/64"), (5, "2001:db8::/64"), (6, "2001:db8::/32")]);
    assert_eq!(header(&s, NO_LINKS, ipv6("fe80::ff:fe00:101", "fe80::1"))[..2], *b"\x7a\x21");
    let frame = header(&s, NO_LINKS, ipv6("2001:db8::ff:fe00:101", "fe80::ff:fe00:1"));
    assert_eq!(frame, b"\x7a\xe2\x50\x3a\x01\x01\x00\x01");
}

#[test]
fn the_unspecified_address_takes_nothing() {
    let s = LowpanSettings::default();
    assert_eq!(header(&s, LINKS, ipv6("::", "ff02::1")), b"\x7a\x4b\x3a\x01");
    assert_eq!(header(&settings(&[(0, "::/0")]), LINKS, ipv6("::", "ff02::1")), b"\x7a\x4b\x3a\x01");
    // As a destination it has no form of its own.
    assert_eq!(header(&s, LINKS, ipv6("::", "::"))[..3], *b"\x7a\x40\x3a");
}

/// Section 3.2.3, figures 7 to 9.
#[test]
fn stateless_multicast_addresses_take_1_4_6_or_16_octets() {
    let s = LowpanSettings::default();
    let cases: &[(&str, &[u8])] = &[
        ("ff02::fb", b"\x7a\x3b\x3a\xfb"),
        ("ff05::fb", b"\x7a\x3a\x3a\x05\0\0\xfb"),
        ("ff02::fb:1234", b"\x7a\x3a\x3a\x02\xfb\x12\x34"),
        ("ff02::1:ff12:3456", b"\x7a\x39\x3a\x02\x01\xff\x12\x34\x56"),
        ("ff3e::ab:1234:5678", b"\x7a\x39\x3a\x3e\xab\x12\x34\x56\x78"),
        ("ff02::1:0:0:1", b"\x7a\x38\x3a\xff\x02\0\0\0\0\0\0\0\x01\0\0\0\0\0\x01"),
    ];
    for (destination, expected) in cases {
        assert_eq!(header(&s, LINKS, ipv6("fe80::12:4b00:0:1", destination)), *expected, "{destination}");
    }
}

/// Section 3.2.4, figure 10: `ff3e:0140:2001:db8:1::1234:5678` of RFC 3956 with a prefix of 64 bits, and of 48.
#[test]
fn unicast_prefix_based_multicast_addresses_take_6_octets() {
    let ip = |destination| ipv6("fe80::12:4b00:0:1", destination);
    let s = settings(&[(0, "2001:db8:1::/64"), (9, "2001:db8:2::/48")]);
    let frame = header(&s, LINKS, ip("ff7e:0140:2001:db8:1:0:1234:5678"));
    assert_eq!(frame, b"\x7a\x3c\x3a\x7e\x01\x12\x34\x56\x78");
    let frame = header(&s, LINKS, ip("ff3e:30:2001:db8:2:0:1234:5678"));
    assert_eq!(frame, b"\x7a\xbc\x09\x3a\x3e\x00\x12\x34\x56\x78");
    // A longer prefix has no place in such an address.
    let s = settings(&[(0, "2001:db8:1::/65")]);
    assert_eq!(header(&s, LINKS, ip("ff3e:41:2001:db8:1:0:1234:5678"))[..2], *b"\x7a\x38");
}

/// Section 3.2.1, figures 4 to 6: ECN before DSCP.
#[test]
fn traffic_class_is_rotated() {
    let ip = ipv6("fe80::12:4b00:0:1", "fe80::ff:fe00:abcd");
    let tf = |traffic_class, flow_label| {
        header(&LowpanSettings::default(), LINKS, Ipv6 { traffic_class, flow_label, ..ip })
    };
    // EF (0b10_1110) and ECT(0) (0b10).
    assert_eq!(tf(0b10_1110 << 2 | 0b10, 0x12345), b"\x62\x33\xae\x01\x23\x45\x3a");
    assert_eq!(tf(0b10, 0x12345), b"\x6a\x33\x81\x23\x45\x3a");
    assert_eq!(tf(0b10_1110 << 2 | 0b01, 0), b"\x72\x33\x6e\x3a");
    assert_eq!(tf(0, 0), b"\x7a\x33\x3a");
}

#[test]
fn hop_limits_1_64_and_255_take_nothing() {
    let ip = ipv6("fe80::12:4b00:0:1", "fe80::ff:fe00:abcd");
    let hlim = |hop_limit| header(&LowpanSettings::default(), LINKS, Ipv6 { hop_limit, ..ip });
    assert_eq!(hlim(1), b"\x79\x33\x3a");
    assert_eq!(hlim(64), b"\x7a\x33\x3a");
    assert_eq!(hlim(255), b"\x7b\x33\x3a");
    assert_eq!(hlim(63), b"\x78\x33\x3a\x3f");
}

/// Section 4.3.3.
#[test]
fn udp_ports_take_1_3_or_4_octets() {
    let ip = ipv6("fe80::12:4b00:0:1", "fe80::ff:fe00:abcd");
    let nhc = |source, destination| {
        let mut datagram = datagram(&ip, source, destination, b"data");
        datagram[6..8].copy_from_slice(b"CK");
        let frame = sent(&LowpanSettings::default(), LINKS, &packet(ip, UDP, &datagram));
        assert_eq!(frame[..2], *b"\x7e\x33");
        frame[2..].strip_suffix(b"CKdata").unwrap().to_vec()
    };
    assert_eq!(nhc(0x1234, 0x1633), b"\xf0\x12\x34\x16\x33");
    assert_eq!(nhc(0x1234, 0xF012), b"\xf1\x12\x34\x12");
    assert_eq!(nhc(0xF012, 0x1633), b"\xf2\x12\x16\x33");
    assert_eq!(nhc(0xF0B1, 0xF0C2), b"\xf1\xf0\xb1\xc2");
    assert_eq!(nhc(0xF0BA, 0xF0BF), b"\xf3\xaf");
}

/// 2 octets of LOWPAN_IPHC, 1 of CID, 1 of LOWPAN_NHC, 4 of ports, 2 of checksum; at best 4 octets in all.
#[test]
fn a_coap_request_takes_10_octets_of_header_and_4_at_best() {
    let s = settings(&[(0, "2001:db8::/64"), (1, "2001:db8:1::/64")]);
    let ip = ipv6("2001:db8::12:4b00:0:1", "2001:db8:1::ff:fe00:abcd");
    let coap = b"\x40\x01\x12\x34\xb4time";
    let frame = sent(&s, LINKS, &packet(ip, UDP, &datagram(&ip, 0xE001, 5683, coap)));
    assert_eq!(frame[..8], *b"\x7e\xf7\x01\xf0\xe0\x01\x16\x33");
    assert_eq!(frame.len(), 19);
    let ip = ipv6("2001:db8::12:4b00:0:1", "2001:db8::ff:fe00:abcd");
    let frame = sent(&eliding(s), LINKS, &packet(ip, UDP, &datagram(&ip, 0xF0B1, 0xF0B2, coap)));
    assert_eq!(frame[..4], *b"\x7e\x77\xf7\x12");
    assert_eq!(frame.len(), 13);
}

#[test]
fn a_checksum_is_elided_only_if_it_is_right() {
    let ip = ipv6("fe80::12:4b00:0:1", "fe80::ff:fe00:abcd");
    let s = eliding(LowpanSettings::default());
    let right = datagram(&ip, 1, 2, b"data");
    let nhc = |datagram: &[u8]| sent(&s, LINKS, &packet(ip, UDP, datagram))[2];
    assert_eq!(nhc(&right), 0xF4);
    for wrong in [[0, 0], [0xFF, 0xFF], [right[6], right[7] ^ 1]] {
        let mut datagram = right.clone();
        datagram[6..8].copy_from_slice(&wrong);
        assert_eq!(nhc(&datagram), 0xF0, "{wrong:?}");
    }
}

/// A sum of zero is sent as 0xFFFF (RFC 8200, section 8.1), and 0 stays 0.
#[test]
fn a_checksum_of_all_ones_is_elided_and_zero_is_not() {
    let ip = ipv6("fe80::12:4b00:0:1", "fe80::ff:fe00:abcd");
    let s = eliding(LowpanSettings::default());
    let first = datagram(&ip, 1, 2, &[0, 0]);
    let mut ones = datagram(&ip, 1, 2, &first[6..8]);
    assert_eq!(ones[6..8], [0xFF, 0xFF]);
    assert_eq!(sent(&s, LINKS, &packet(ip, UDP, &ones))[2], 0xF4);
    ones[6..8].fill(0);
    assert_eq!(sent(&s, LINKS, &packet(ip, UDP, &ones))[2], 0xF0);
}

/// Without authorization there is no check that could replace the checksum.
#[test]
fn a_missing_checksum_is_refused_unless_agreed_upon() {
    let octets = b"\x7e\x33\xf4\x12\x34\x16\x33data";
    let mut out = [0; 128];
    let refused = decompress(&LowpanSettings::default(), LINKS, octets, &mut out);
    assert_eq!(refused, Err(DecompressError::ChecksumElided { offset: 2 }));
    let (packet, _) = received(&eliding(LowpanSettings::default()), LINKS, octets);
    let ip = ipv6("fe80::12:4b00:0:1", "fe80::ff:fe00:abcd");
    assert_eq!(packet[40..], datagram(&ip, 0x1234, 0x1633, b"data"));
}

#[test]
fn a_udp_length_that_does_not_end_the_packet_goes_in_line() {
    let ip = ipv6("fe80::12:4b00:0:1", "fe80::ff:fe00:abcd");
    let mut datagram = datagram(&ip, 1, 2, b"data");
    datagram.push(0);
    let frame = sent(&LowpanSettings::default(), LINKS, &packet(ip, UDP, &datagram));
    assert_eq!(frame[..3], *b"\x7a\x33\x11");
}

#[test]
fn a_payload_length_that_does_not_end_the_packet_goes_uncompressed() {
    let mut packet = packet(ipv6("fe80::1", "fe80::2"), ICMPV6, b"data");
    packet.push(0);
    let frame = sent(&LowpanSettings::default(), LINKS, &packet);
    assert_eq!(frame[0], dispatch::IPV6);
    assert_eq!(frame[1..], packet);
}

#[test]
fn what_is_no_ipv6_packet_is_refused() {
    let mut out = [0; 128];
    let mut refused = |octets: &[u8]| compress(&LowpanSettings::default(), LINKS, octets, &mut out);
    assert_eq!(refused(&[0x45; 60]), Err(CompressError::NotIpv6));
    assert_eq!(refused(&[0x60; 39]), Err(CompressError::NotIpv6));
    assert_eq!(refused(&[]), Err(CompressError::NotIpv6));
}

#[test]
fn room_for_the_packet_and_an_octet_is_enough_and_less_than_the_frame_is_reported() {
    let ip = ipv6("fe80::12:4b00:0:1", "fe80::ff:fe00:abcd");
    let packet = packet(ip, UDP, &datagram(&ip, 1, 2, b"data"));
    let frame = sent(&LowpanSettings::default(), LINKS, &packet);
    for have in 0..frame.len() {
        let mut out = vec![0; have];
        let refused = compress(&LowpanSettings::default(), LINKS, &packet, &mut out);
        assert_eq!(refused, Err(CompressError::OutputTooSmall { have }));
    }
    for have in 0..packet.len() {
        let mut out = vec![0; have];
        let refused = decompress(&LowpanSettings::default(), LINKS, &frame, &mut out);
        assert_eq!(refused, Err(DecompressError::OutputTooSmall { have }));
    }
}

#[test]
fn errors_have_their_place() {
    let mut out = vec![0; 70_000];
    let mut error = |settings: &LowpanSettings, links, octets: &[u8]| {
        decompress(settings, links, octets, &mut out).unwrap_err()
    };
    let s = LowpanSettings::default();
    assert_eq!(error(&s, LINKS, b""), DecompressError::Malformed { offset: 0 });
    assert_eq!(error(&s, LINKS, b"\xc0\0\0\0"), DecompressError::Dispatch { octet: 0xC0 });
    assert_eq!(error(&s, LINKS, b"\x41\x60"), DecompressError::Malformed { offset: 1 });
    assert_eq!(error(&s, LINKS, b"\x7a\x33"), DecompressError::Malformed { offset: 2 });
    assert_eq!(error(&s, NO_LINKS, b"\x7a\x33\x3a"), DecompressError::NoLinkAddress { offset: 0 });
    assert_eq!(error(&s, LINKS, b"\x7a\xf3\x50\x3a"), DecompressError::NoContext { offset: 0, id: 5 });
    assert_eq!(error(&s, LINKS, b"\x7e\x33\x80"), DecompressError::UnknownNhc { offset: 2 });
    assert_eq!(error(&s, LINKS, b"\x7e\x33\xea\0\0\0"), DecompressError::Malformed { offset: 3 });
    // Reserved DAM with M=0, DAC=1 and with M=1, DAC=1.
    for reserved in [0x34, 0x3d, 0x3e, 0x3f] {
        let frame = [0x7A, reserved, ICMPV6, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(error(&s, LINKS, &frame), DecompressError::Malformed { offset: 3 }, "{reserved:#x}");
    }
    let deep = b"\x7e\x33\xee\x7e\x33\xee\x7e\x33\xee\x7e\x33\xee\x7a\x33\x3a";
    assert_eq!(error(&s, LINKS, deep), DecompressError::TooDeep { offset: 12 });
    let long = [&b"\x7a\x33\x3a"[..], &vec![0; 65_536]].concat();
    assert_eq!(error(&s, LINKS, &long), DecompressError::TooLong);
}

/// Reserved bits are ignored, and a CID octet may be redundant.
#[test]
fn what_other_compressors_may_send_is_understood() {
    let ip = ipv6("fe80::12:4b00:0:1", "fe80::ff:fe00:abcd");
    let expected = packet(Ipv6 { flow_label: 0x12345, ..ip }, ICMPV6, b"data");
    let s = LowpanSettings::default();
    assert_eq!(received(&s, LINKS, b"\x62\x33\x00\xf1\x23\x45\x3adata").0, expected);
    assert_eq!(received(&s, LINKS, b"\x6a\xb3\xf4\x31\x23\x45\x3adata").0, expected);
    // The compressor uses a longer form than necessary.
    let plain = packet(ip, ICMPV6, b"data");
    let long = [&b"\x78\x10\x3a\x40"[..], &ip.source[8..], &ip.destination, b"data"].concat();
    assert_eq!(received(&s, LINKS, &long).0, plain);
}

/// The UDP datagram of the test `sixlowpan_three_fragments` of smoltcp 0.12 (0BSD), which was recorded between
/// two nodes; reassembled, with the header of its first fragment. The sender compressed it as this crate does.
#[test]
fn a_recorded_datagram_is_understood_and_made_again() {
    let links = Links {
        source: LinkAddress::Extended([50, 147, 130, 47, 40, 8, 62, 217]),
        destination: LinkAddress::Extended([26, 11, 66, 66, 66, 66, 66, 66]),
    };
    let frame = [&b"\x6e\x33\x02\x35\x3d\xf0\xd2\x5f\x1b\x39\xb4\x6b"[..], RECORDED].concat();
    let (packet, done) = received(&LowpanSettings::default(), links, &frame);
    assert_eq!((packet.len(), done.header_in, done.header_out), (307, 12, 48));
    assert_eq!(packet[8..24], address("fe80::3093:822f:2808:3ed9"));
    assert_eq!(packet[24..40], address("fe80::180b:4242:4242:4242"));
    assert_eq!(sent(&LowpanSettings::default(), links, &packet), frame);
    // Its checksum is correct for the restored addresses.
    let elided = LowpanSettings { udp_checksum: UdpChecksum::Elided, ..LowpanSettings::default() };
    assert_eq!(sent(&elided, links, &packet).len(), frame.len() - 2);
}

const RECORDED: &[u8] =
    b"Lorem ipsum dolor sit amet, consectetur adipiscing elit. Aliquam dui odio, iaculis vel rut\
    rum at, tristique non nunc erat curae. Lorem ipsum dolor sit amet, consectetur adipiscing \
    elit. Aliquam dui odio, iaculis vel rutrum at, tristique non nunc erat curae. \n";
