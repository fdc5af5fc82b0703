use proptest::prelude::*;

use super::*;

/// UDP without data from 192.0.2.1 to 192.0.2.2, built by hand from RFC 791 and RFC 768; tshark accepts its
/// checksums.
const IPV4: [u8; 28] = [
    0x45, 0x00, 0x00, 0x1c, 0x00, 0x01, 0x00, 0x00, 0x40, 0x11, 0xf6, 0xcc, 192, 0, 2, 1, 192, 0, 2,
    2, // IPv4
    0x30, 0x39, 0x30, 0x39, 0x00, 0x08, 0x1b, 0x68, // UDP
];

/// An IPv6 header with No Next Header (59) and 2 octets of payload, built by hand from RFC 8200.
const IPV6: [u8; 42] = [
    0x60, 0, 0, 0, 0, 2, 59, 64, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x20, 0x01,
    0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0xab, 0xcd,
];

/// Destination and source of Ethernet headers.
const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn find(link_type: LinkType, frame: &[u8]) -> Result<NetworkPacket<'_>, Skip> {
    network_packet(link_type, frame, frame.len() as u32)
}

/// Checks both IP versions after their headers, and a third header of another protocol.
#[track_caller]
fn assert_link(link_type: LinkType, ipv4: &[u8], ipv6: &[u8], other: &[u8]) {
    for (header, packet, version) in [(ipv4, &IPV4[..], IpVersion::V4), (ipv6, &IPV6[..], IpVersion::V6)] {
        let frame = join(&[header, packet]);
        let network = NetworkPacket {
            version,
            packet,
            link_header_len: header.len(),
            link_padding_len: 0,
            missing_len: 0,
        };
        assert_eq!(find(link_type, &frame), Ok(network), "{link_type}");

        let cut = &frame[..frame.len() - 1];
        assert_eq!(network_packet(link_type, cut, frame.len() as u32), Err(Skip::Truncated), "{link_type}");
        assert_eq!(find(link_type, header), Err(Skip::Empty), "{link_type}");
        for len in 1..header.len() {
            assert_eq!(find(link_type, &header[..len]), Err(Skip::Truncated), "{link_type}, {len} octets");
        }
    }
    assert_eq!(find(link_type, &join(&[other, &IPV4])), Err(Skip::NotIp), "{link_type}");
    assert_eq!(find(link_type, &[]), Err(Skip::Empty), "{link_type}");
    assert_eq!(network_packet(link_type, &[], 60), Err(Skip::Truncated), "{link_type}");
}

// The headers below are built by hand from the registry's page on the link type.

#[test]
fn ethernet() {
    let header = |tail: &[u8]| join(&[&MACS, tail]);
    let (ipv4, ipv6, arp) = (header(&[0x08, 0x00]), header(&[0x86, 0xdd]), header(&[0x08, 0x06]));
    assert_link(LinkType::ETHERNET, &ipv4, &ipv6, &arp);
}

#[test]
fn ethernet_with_vlan_tags() {
    let header = |tail: &[u8]| join(&[&MACS, tail]);
    let one = header(&[0x81, 0x00, 0x60, 0x07, 0x08, 0x00]);
    let two = header(&[0x88, 0xa8, 0x00, 0x05, 0x81, 0x00, 0x60, 0x07, 0x86, 0xdd]);
    let three = header(&[0x91, 0x00, 0, 1, 0x88, 0xa8, 0, 2, 0x81, 0x00, 0, 3, 0x08, 0x06]);
    assert_link(LinkType::ETHERNET, &one, &two, &three);
}

#[test]
fn ieee_802_3_with_llc_is_not_ip() {
    // Length 36, then LLC/SNAP with IPv4: RFC 1042.
    let header = join(&[&MACS, &[0x00, 0x24, 0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x00]]);
    assert_eq!(find(LinkType::ETHERNET, &join(&[&header, &IPV4])), Err(Skip::NotIp));
}

#[test]
fn linux_sll() {
    // Sent by us (4) on Ethernet (1) from 02:00:00:00:00:01.
    let header = |protocol: [u8; 2]| join(&[&[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], &protocol]);
    assert_link(LinkType::LINUX_SLL, &header([0x08, 0]), &header([0x86, 0xdd]), &header([0x00, 0x04]));
}

#[test]
fn linux_sll2() {
    let header =
        |protocol: [u8; 2]| join(&[&protocol, &[0, 0, 0, 0, 0, 2, 0, 1, 4, 6, 2, 0, 0, 0, 0, 1, 0, 0]]);
    assert_link(LinkType::LINUX_SLL2, &header([0x08, 0]), &header([0x86, 0xdd]), &header([0x08, 0x06]));
}

#[test]
fn raw() {
    for link_type in [LinkType::RAW, LinkType::DLT_RAW, LinkType::DLT_RAW_OPENBSD] {
        assert_link(link_type, &[], &[], &[0x00]);
    }
}

#[test]
fn raw_of_one_version() {
    assert_eq!(find(LinkType::IPV4, &IPV4).unwrap().packet, IPV4);
    assert_eq!(find(LinkType::IPV6, &IPV6).unwrap().packet, IPV6);
    assert_eq!(find(LinkType::IPV4, &IPV6), Err(Skip::NotIp));
    assert_eq!(find(LinkType::IPV6, &IPV4), Err(Skip::NotIp));
    assert_eq!(find(LinkType::IPV6, &[]), Err(Skip::Empty));
}

#[test]
fn null_in_both_byte_orders() {
    for af_inet6 in [10, 24, 28, 30] {
        assert_link(LinkType::NULL, &[0, 0, 0, 2], &[0, 0, 0, af_inet6], &[0, 0, 0, 7]);
        assert_link(LinkType::NULL, &[2, 0, 0, 0], &[af_inet6, 0, 0, 0], &[7, 0, 0, 0]);
    }
}

#[test]
fn loopback_in_network_byte_order() {
    assert_link(LinkType::LOOP, &[0, 0, 0, 2], &[0, 0, 0, 24], &[2, 0, 0, 0]);
}

#[test]
fn ppp() {
    for link_type in [LinkType::PPP, LinkType::PPP_HDLC] {
        // Framing of RFC 1662, then without address and control field; the third is LCP.
        assert_link(link_type, &[0xff, 3, 0, 0x21], &[0xff, 3, 0, 0x57], &[0xff, 3, 0xc0, 0x21]);
        assert_link(link_type, &[0, 0x21], &[0, 0x57], &[0xc0, 0x21]);
        // With protocol field compression; the third is VJ compressed TCP.
        assert_link(link_type, &[0xff, 3, 0x21], &[0xff, 3, 0x57], &[0xff, 3, 0x2d]);
        assert_link(link_type, &[0x21], &[0x57], &[0x2d]);
        // Cisco HDLC; the third is SLARP.
        assert_link(link_type, &[0x0f, 0, 8, 0], &[0x8f, 0, 0x86, 0xdd], &[0x8f, 0, 0x80, 0x35]);
    }
}

#[test]
fn ppp_with_a_direction() {
    for way in [0, 1] {
        assert_link(LinkType::PPP_PPPD, &[way, 3, 0, 0x21], &[way, 3, 0, 0x57], &[way, 3, 0xc0, 0x21]);
        assert_link(
            LinkType::PPP_WITH_DIR,
            &[way, 0xff, 3, 0, 0x21],
            &[way, 0, 0x57],
            &[way, 0xff, 3, 0xc0, 0x21],
        );
    }
}

/// Session 1 of PPPoE, built from RFC 2516, sections 4 and 7.
#[test]
fn pppoe_sessions() {
    let header = |code: u8, len: usize, protocol: [u8; 2]| {
        join(&[&[0x11, code, 0, 1], &(2 + len as u16).to_be_bytes(), &protocol])
    };
    let (ipv4, ipv6) = (header(0, IPV4.len(), [0, 0x21]), header(0, IPV6.len(), [0, 0x57]));
    // LCP; and a PADT, which ends the session.
    for other in [header(0, IPV4.len(), [0xc0, 0x21]), header(0xa7, 0, [0, 0x21])] {
        assert_link(LinkType::PPP_ETHER, &ipv4, &ipv6, &other);
        let on = |header: &[u8]| join(&[&MACS, &[0x88, 0x64], header]);
        assert_link(LinkType::ETHERNET, &on(&ipv4), &on(&ipv6), &on(&other));
    }
    let discovery = join(&[&MACS, &[0x88, 0x63], &ipv4, &IPV4]);
    assert_eq!(find(LinkType::ETHERNET, &discovery), Err(Skip::NotIp));
    // The length of PPPoE does not include padding.
    let padded = join(&[&MACS, &[0x88, 0x64], &ipv4, &IPV4, &[0; 10]]);
    let found = find(LinkType::ETHERNET, &padded).unwrap();
    assert_eq!((found.packet, found.link_header_len, found.link_padding_len), (&IPV4[..], 22, 10));
}

#[test]
fn version_that_disagrees_with_the_ethertype_is_not_ip() {
    let frame = join(&[&MACS, &[0x86, 0xdd], &IPV4]);
    assert_eq!(find(LinkType::ETHERNET, &frame), Err(Skip::NotIp));
    let frame = join(&[&MACS, &[0x08, 0x00], &IPV6]);
    assert_eq!(find(LinkType::ETHERNET, &frame), Err(Skip::NotIp));
    let frame = join(&[&MACS, &[0x08, 0x00, 0x50]]);
    assert_eq!(find(LinkType::ETHERNET, &frame), Err(Skip::NotIp));
}

#[test]
fn other_link_types_are_unsupported() {
    // Bluetooth and IEEE 802.15.4.
    for link_type in [LinkType(187), LinkType(195)] {
        assert_eq!(find(link_type, &IPV4), Err(Skip::UnsupportedLinkType));
        assert_eq!(find(link_type, &[]), Err(Skip::UnsupportedLinkType));
        assert_eq!(rohc_packet(link_type, &IPV4, 28), Err(Skip::UnsupportedLinkType));
    }
}

#[test]
fn truncated_frames_of_other_protocols_are_not_ip() {
    let arp = join(&[&MACS, &[0x08, 0x06, 0, 1]]);
    assert_eq!(network_packet(LinkType::ETHERNET, &arp, 60), Err(Skip::NotIp));
}

fn padded(header: &[u8], packet: &[u8], padding: usize) -> (Vec<u8>, usize) {
    (join(&[header, packet, &vec![0; padding]]), padding)
}

#[test]
fn ethernet_padding_is_cut_off() {
    let ethernet = join(&[&MACS, &[0x08, 0x00]]);
    let vlan = join(&[&MACS, &[0x81, 0x00, 0, 7, 0x08, 0x00]]);
    let sll = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x08, 0x00];
    for (link_type, header) in
        [(LinkType::ETHERNET, &ethernet[..]), (LinkType::ETHERNET, &vlan), (LinkType::LINUX_SLL, &sll)]
    {
        // Padded to 60 octets, with a frame check sequence, and with octets added by a switch.
        for padding in [4, 18, 22, 23, 400] {
            let (frame, link_padding_len) = padded(header, &IPV4, padding);
            let network = NetworkPacket {
                version: IpVersion::V4,
                packet: &IPV4,
                link_header_len: header.len(),
                link_padding_len,
                missing_len: 0,
            };
            assert_eq!(find(link_type, &frame), Ok(network), "{link_type}");
        }
    }
    let (frame, _) = padded(&join(&[&MACS, &[0x86, 0xdd]]), &IPV6, 4);
    assert_eq!(find(LinkType::ETHERNET, &frame).unwrap().packet, IPV6);
}

#[test]
fn octets_that_are_not_ethernet_padding_stay() {
    let whole = |link_type, frame: &[u8], header_len: usize| {
        assert_eq!(find(link_type, frame).unwrap().packet, &frame[header_len..]);
    };
    // This link layer has no padding.
    whole(LinkType::RAW, &padded(&[], &IPV4, 5).0, 0);
    whole(LinkType::LINUX_SLL, &padded(&[0, 4, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0], &IPV4, 5).0, 16);
    // A total length of 0, below the header, above the frame; a payload length of 0; a truncated header.
    for total_length in [0, 19, 29] {
        let mut packet = IPV4;
        packet[3] = total_length;
        whole(LinkType::ETHERNET, &join(&[&MACS, &[0x08, 0x00], &packet]), 14);
    }
    let mut packet = IPV6;
    packet[5] = 0;
    whole(LinkType::ETHERNET, &join(&[&MACS, &[0x86, 0xdd], &packet]), 14);
    whole(LinkType::ETHERNET, &join(&[&MACS, &[0x86, 0xdd], &IPV6[..3]]), 14);
}

#[test]
fn a_part_of_a_packet_tells_how_much_is_missing() {
    let part = |link_type, frame: &[u8], original_len| {
        part_of_network_packet(link_type, frame, original_len)
            .map(|found| (found.packet.to_vec(), found.missing_len))
    };
    let frame = join(&[&MACS, &[0x08, 0x00], &IPV4]);
    for captured in 18..frame.len() {
        let octets = frame[14..captured].to_vec();
        let missing = frame.len() - captured;
        // A trailer that was not captured is not needed.
        for trailer in [0, 4, 18] {
            let found = part(LinkType::ETHERNET, &frame[..captured], (frame.len() + trailer) as u32);
            assert_eq!(found, Ok((octets.clone(), missing)), "{captured}");
        }
        // A captured frame cannot be longer than it was on the link.
        assert_eq!(
            part(LinkType::ETHERNET, &frame[..captured], captured as u32 + 1),
            Ok((octets, 1)),
            "{captured}"
        );
    }
    // The packet is complete, and the padding in part.
    let padded = join(&[&frame, &[0; 3]]);
    let found = network_packet(LinkType::ETHERNET, &padded, 60).unwrap();
    assert_eq!((found.packet, found.link_padding_len), (&IPV4[..], 3));
    // Its length is unknown.
    assert_eq!(part(LinkType::ETHERNET, &frame[..16], 60), Err(Skip::Truncated));
    let mut no_length = IPV4;
    no_length[3] = 0;
    assert_eq!(part(LinkType::RAW, &no_length, 60), Err(Skip::Truncated));
}

#[test]
fn rohc_packets() {
    let packet = [0xfd, 0x00, 0x04];
    let rohc = |link_header_len| Ok(RohcPacket { packet: &packet, link_header_len });
    let find = |link_type, frame: &'static [u8]| rohc_packet(link_type, frame, frame.len() as u32);
    assert_eq!(find(LinkType::USER0, &[0xfd, 0x00, 0x04]), rohc(0));
    assert_eq!(find(LinkType::USER0, &[]), Err(Skip::Empty));
    assert_eq!(rohc_packet(LinkType::USER0, &packet, 4), Err(Skip::Truncated));

    let ethernet = join(&[&MACS, &[0x22, 0xf1], &packet]);
    assert_eq!(rohc_packet(LinkType::ETHERNET, &ethernet, 17), rohc(14));
    assert_eq!(network_packet(LinkType::ETHERNET, &ethernet, 17), Err(Skip::NotIp));
    assert_eq!(rohc_packet(LinkType::ETHERNET, &ethernet[..14], 14), Err(Skip::Empty));
    let tagged = join(&[&MACS, &[0x81, 0, 0, 7, 0x22, 0xf1], &packet]);
    assert_eq!(rohc_packet(LinkType::ETHERNET, &tagged, 21), rohc(18));
    let ipv4 = join(&[&MACS, &[0x08, 0x00], &IPV4]);
    assert_eq!(rohc_packet(LinkType::ETHERNET, &ipv4, 42), Err(Skip::NotRohc));
    assert_eq!(rohc_packet(LinkType::RAW, &IPV4, 28), Err(Skip::NotRohc));
}

#[test]
fn names_of_reasons_are_stable() {
    let names = Skip::ALL.map(Skip::name);
    assert_eq!(names[..5], ["truncated", "not_ip", "not_rohc", "unsupported_link_type", "empty"]);
    assert_eq!(names[5..], ["not_data", "encrypted", "fragment", "aggregated", "wrong_fcs"]);
}

proptest! {
    #[test]
    fn any_frame_gives_parts_of_itself(
        link_type in prop::sample::select(vec![
            0, 1, 9, 12, 14, 50, 51, 101, 104, 105, 108, 113, 119, 127, 147, 163, 166, 204, 228, 229, 276, 5,
        ]),
        start in prop::sample::select(vec![
            vec![], [&MACS[..], &[0x81, 0x00]].concat(), [&MACS[..], &[0x08, 0x00]].concat(), vec![0, 0, 0, 2],
            vec![0xff, 3], vec![0x45], vec![0x60], vec![0x08, 0], [&MACS[..], &[0x88, 0x64, 0x11, 0, 0, 1]].concat(),
            vec![0, 0, 9, 0, 2, 0, 0, 0, 0x10, 8, 0],
        ]),
        end in prop::collection::vec(any::<u8>(), 0..80),
        extra in 0..2_u32,
    ) {
        let frame = [start, end].concat();
        let original_len = frame.len() as u32 + extra;
        if let Ok(network) = network_packet(LinkType(link_type), &frame, original_len) {
            let parts = network.link_header_len + network.packet.len() + network.link_padding_len;
            prop_assert_eq!(parts, frame.len());
            prop_assert!(frame[network.link_header_len..].starts_with(network.packet));
            prop_assert!(!network.packet.is_empty());
        }
        if let Ok(rohc) = rohc_packet(LinkType(link_type), &frame, original_len) {
            prop_assert!(frame[rohc.link_header_len..].starts_with(rohc.packet));
        }
    }
}
