//! Frames built by hand from IEEE 802.11-2020, section 9.3.2, and the descriptions of the prepended headers.

use super::super::network_packet;
use super::*;
use crate::LinkType;

/// An IPv4 header without payload.
const IPV4: [u8; 20] = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0xf6, 0xd5, 192, 0, 2, 1, 192, 0, 2, 2];
const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
const FCS: [u8; 4] = [1, 2, 3, 4];

const DATA: u8 = 0x08;
const QOS_DATA: u8 = 0x88;
const TO_DS: u8 = 1;
const FROM_DS: u8 = 2;
const ORDER: u8 = 0x80;

/// A MAC header with the fields between Sequence Control and payload.
fn mac(kind: u8, flags: u8, more: &[u8]) -> Vec<u8> {
    [&[kind, flags, 0, 0][..], &[2; 18], &[0x10, 0], more].concat()
}

fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn packet(link_type: LinkType, frame: &[u8]) -> Result<&[u8], Skip> {
    network_packet(link_type, frame, frame.len() as u32).map(|network| network.packet)
}

#[test]
fn data_frames_have_a_packet_behind_llc() {
    for header in [
        mac(DATA, TO_DS, &[]),
        mac(DATA, FROM_DS, &[]),
        // Between two access points: a fourth address.
        mac(DATA, TO_DS | FROM_DS, &[2; 6]),
        mac(QOS_DATA, TO_DS, &[0, 0]),
        mac(QOS_DATA, TO_DS | FROM_DS, &[2, 2, 2, 2, 2, 2, 0, 0]),
        // HT Control.
        mac(QOS_DATA, TO_DS | ORDER, &[0, 0, 9, 9, 9, 9]),
        // In a frame without QoS the order bit has another meaning.
        mac(DATA, TO_DS | ORDER, &[]),
    ] {
        let frame = join(&[&header, &SNAP, &IPV4]);
        assert_eq!(packet(LinkType::IEEE802_11, &frame), Ok(&IPV4[..]), "{header:x?}");
        for len in 1..header.len() + SNAP.len() {
            assert_eq!(packet(LinkType::IEEE802_11, &frame[..len]), Err(Skip::Truncated), "{len}");
        }
        assert_eq!(packet(LinkType::IEEE802_11, &frame[..header.len() + 8]), Err(Skip::Empty));
        let with_fcs = join(&[&frame, &FCS]);
        assert_eq!(packet(LinkType::IEEE802_11, &with_fcs), Ok(&IPV4[..]));
        // Part of the check sequence is missing; the packet is complete.
        let cut = network_packet(LinkType::IEEE802_11, &frame, frame.len() as u32 + 1).unwrap();
        assert_eq!((cut.packet, cut.missing_len), (&IPV4[..], 0));
    }
    assert_eq!(packet(LinkType::IEEE802_11, &[]), Err(Skip::Empty));
}

#[test]
fn snap_headers_of_both_kinds_and_others() {
    let frame = |snap: &[u8]| join(&[&mac(DATA, TO_DS, &[]), snap, &IPV4]);
    assert_eq!(packet(LinkType::IEEE802_11, &frame(&[0xaa, 0xaa, 3, 0, 0, 0xf8, 8, 0])), Ok(&IPV4[..]));
    // EAPOL; a SNAP header of a vendor; spanning tree.
    for other in
        [&[0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0x8e][..], &[0xaa, 0xaa, 3, 0, 0, 0xc, 8, 0], &[0x42, 0x42, 3]]
    {
        assert_eq!(packet(LinkType::IEEE802_11, &frame(other)), Err(Skip::NotIp), "{other:x?}");
    }
    // A VLAN tag.
    let tagged = frame(&[0xaa, 0xaa, 3, 0, 0, 0, 0x81, 0, 0, 7, 8, 0]);
    assert_eq!(packet(LinkType::IEEE802_11, &tagged), Ok(&IPV4[..]));
}

#[test]
fn other_frames_say_why_there_is_no_packet() {
    let why = |kind, flags, fragment: u8| {
        let mut header = mac(kind, flags, &[0, 0]);
        header[22] |= fragment;
        packet(LinkType::IEEE802_11, &join(&[&header, &SNAP, &IPV4])).unwrap_err()
    };
    // A beacon; an acknowledgment; data without data, without QoS and with it; a version that does not exist.
    for kind in [0x80, 0xd4, 0x48, 0xc8, 0x89] {
        assert_eq!(why(kind, 0, 0), Skip::NotData, "{kind:x}");
    }
    assert_eq!(why(QOS_DATA, 0x40, 0), Skip::Encrypted);
    assert_eq!(why(QOS_DATA, 0x04, 0), Skip::Fragment);
    assert_eq!(why(QOS_DATA, 0, 1), Skip::Fragment);
    // An acknowledgment is 10 octets long.
    assert_eq!(packet(LinkType::IEEE802_11, &[0xd4, 0, 0, 0, 2, 2, 2, 2, 2, 2]), Err(Skip::NotData));
}

#[test]
fn an_a_msdu_with_one_subframe_is_looked_into() {
    let header = mac(QOS_DATA, TO_DS, &[0x80, 0]);
    let subframe = join(&[&[2; 12], &[0, 28], &SNAP, &IPV4]);
    assert_eq!(packet(LinkType::IEEE802_11, &join(&[&header, &subframe])), Ok(&IPV4[..]));
    // With padding and a check sequence.
    let more = join(&[&header, &subframe, &[0, 0], &FCS]);
    assert_eq!(packet(LinkType::IEEE802_11, &more), Ok(&IPV4[..]));
    let two = join(&[&header, &subframe, &[0, 0], &subframe]);
    assert_eq!(packet(LinkType::IEEE802_11, &two), Err(Skip::Aggregated));
}

#[test]
fn radiotap_says_whether_a_check_sequence_follows() {
    let frame = join(&[&mac(DATA, TO_DS, &[]), &SNAP, &IPV4]);
    let of = |radiotap: &[u8], behind: &[u8]| join(&[radiotap, &frame, behind]);
    let find = |data: &[u8]| packet(LinkType::IEEE802_11_RADIOTAP, data).map(<[u8]>::to_vec);
    let found = Ok(IPV4.to_vec());
    // No fields.
    assert_eq!(find(&of(&[0, 0, 8, 0, 0, 0, 0, 0], &[])), found);
    // Flags alone; behind a TSFT, which is aligned to 8 octets; behind a second word.
    let with = |flags| {
        [
            vec![0, 0, 9, 0, 2, 0, 0, 0, flags],
            vec![0, 0, 17, 0, 3, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, flags],
            vec![0, 0, 25, 0, 3, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, flags],
        ]
    };
    for (plain, with_fcs) in with(0).iter().zip(&with(0x10)) {
        assert_eq!(find(&of(plain, &[])), found, "{plain:x?}");
        assert_eq!(find(&of(with_fcs, &FCS)), found, "{with_fcs:x?}");
        // Without the flag the octets belong to the packet.
        assert_eq!(find(&of(plain, &FCS)).unwrap().len(), IPV4.len() + 4);
        for len in 1..with_fcs.len() {
            assert_eq!(find(&with_fcs[..len]), Err(Skip::Truncated), "{len}");
        }
    }
    for bad in with(0x50) {
        assert_eq!(find(&of(&bad, &FCS)), Err(Skip::WrongFcs));
    }
    assert_eq!(find(&of(&[1, 0, 8, 0, 0, 0, 0, 0], &[])), Err(Skip::UnsupportedLinkType));
}

#[test]
fn radiotap_says_whether_the_mac_header_is_padded() {
    let header = mac(QOS_DATA, TO_DS, &[0, 0]);
    let padded = join(&[&[0, 0, 9, 0, 2, 0, 0, 0, 0x20], &header, &[0, 0], &SNAP, &IPV4]);
    assert_eq!(packet(LinkType::IEEE802_11_RADIOTAP, &padded), Ok(&IPV4[..]));
}

#[test]
fn prism_and_avs_headers_say_how_long_they_are() {
    let frame = join(&[&mac(DATA, TO_DS, &[]), &SNAP, &IPV4]);
    let rest = [0; 8];
    let prism = |code: [u8; 4], len: [u8; 4]| join(&[&code, &len, &rest, &frame]);
    let find = |link_type, data: &[u8]| packet(link_type, data).map(<[u8]>::to_vec);
    let found = Ok(IPV4.to_vec());
    assert_eq!(find(LinkType::IEEE802_11_PRISM, &prism([0x44, 0, 0, 0], [16, 0, 0, 0])), found);
    assert_eq!(find(LinkType::IEEE802_11_PRISM, &prism([0, 0, 0, 0x44], [0, 0, 0, 16])), found);
    let avs = prism([0x80, 0x21, 0x10, 0x01], [0, 0, 0, 16]);
    for link_type in [LinkType::IEEE802_11_PRISM, LinkType::IEEE802_11_AVS] {
        assert_eq!(find(link_type, &avs), found);
        assert_eq!(find(link_type, &avs[..7]), Err(Skip::Truncated));
        assert_eq!(find(link_type, &prism([0x80, 0x21, 0x10, 0x01], [0xff; 4])), Err(Skip::Truncated));
    }
}
