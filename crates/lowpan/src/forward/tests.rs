//! A packet in fragments, over a node that forwards them, to one that reassembles it.

use std::vec;
use std::vec::Vec;

use super::*;
use crate::link::LinkAddress;
use crate::reassembly::{
    Datagram, DatagramKind, FragmentOutcome, Reassembler, ReassemblySlot, TIMEOUT, WhenFull,
};
use crate::stack::HeaderStack;
use crate::{UdpChecksum, compress};

const A: LinkAddress = LinkAddress::Short(0xA);
const B: LinkAddress = LinkAddress::Short(0xB);
const C: LinkAddress = LinkAddress::Extended(*b"\x02\0\0\0\0\0\0\x0C");
const NEAR: Links = Links { source: A, destination: B };
const FAR: Links = Links { source: B, destination: C };
const ROUTE: Route = Route { links: FAR, datagram_tag: 99 };

/// UDP from A to C, with interface identifiers derived from link addresses.
fn packet(payload: usize, hop_limit: u8) -> Vec<u8> {
    let length = (payload + 8) as u16;
    let mut packet =
        b"\x60\0\0\0\0\0\x11\x40\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\0\0\x0a\xfe\x80\0\0\0\0\0\0".to_vec();
    packet.extend(b"\0\0\0\0\0\0\0\x0c\x16\x33\x16\x33\0\0\0\0");
    packet[7] = hop_limit;
    packet[4..6].copy_from_slice(&length.to_be_bytes());
    packet[44..46].copy_from_slice(&length.to_be_bytes());
    packet.extend((0..payload).map(|i| i as u8));
    let checksum = crate::nhc::udp::checksum(
        packet[8..24].try_into().unwrap(),
        packet[24..40].try_into().unwrap(),
        &packet[40..],
    );
    packet[46..48].copy_from_slice(&checksum.to_be_bytes());
    packet
}

fn cut(settings: &LowpanSettings, packet: &[u8], room: usize) -> Vec<Vec<u8>> {
    let mut out = vec![0; packet.len() + 1];
    let compressed = compress(settings, NEAR, packet, &mut out).unwrap();
    let fragments = Fragments::new(&compressed, &out[..compressed.len], 5, room).unwrap();
    fragments.map(|fragment| written(&fragment)).collect()
}

fn written(fragment: &crate::fragment::Fragment<'_>) -> Vec<u8> {
    let mut out = vec![0; fragment.octets()];
    assert_eq!(fragment.write(&mut out), Ok(out.len()));
    out
}

/// Forwards a frame's payload.
fn forward(
    forwarder: &mut Forwarder<2>,
    settings: &LowpanSettings,
    links: Links,
    octets: &[u8],
    room: usize,
) -> Result<Vec<Vec<u8>>, ForwardError> {
    let stack = HeaderStack::read(links, octets).unwrap();
    let (header, content) = (stack.fragment.unwrap(), stack.content.octets());
    if header.datagram_offset.is_some() {
        return Ok(match forwarder.subsequent(Instant::ZERO, links, header, content) {
            Forward::To { links, header } => {
                assert_eq!(links, FAR);
                vec![written(&crate::fragment::Fragment { header: Some(header), content })]
            }
            Forward::Duplicate | Forward::Unknown => vec![],
        });
    }
    let (mut scratch, mut out) = ([0; 1280], [0; 1281]);
    let fragment = FirstFragment { links, header, content, room, scratch: &mut scratch };
    let done = forwarder.first(Instant::ZERO, settings, fragment, |_| Some(ROUTE), &mut out)?;
    Ok(done.unwrap().1.map(|fragment| written(&fragment)).collect())
}

#[test]
fn a_packet_crosses_a_node_with_one_hop_less() {
    for udp_checksum in [UdpChecksum::InLine, UdpChecksum::Elided] {
        let settings = LowpanSettings { udp_checksum, ..LowpanSettings::default() };
        for (payload, room) in [(100, 80), (600, 102), (1000, 60), (1000, 33), (100, 97)] {
            let mut forwarder = Forwarder::<2>::new(TIMEOUT);
            let mut reassembler =
                Reassembler::new([ReassemblySlot::new([0; 1280])], TIMEOUT, WhenFull::Refuse);
            let mut found = None;
            let mut sent = cut(&settings, &packet(payload, 64), room);
            // Each arrives twice.
            sent = sent.into_iter().flat_map(|octets| [octets.clone(), octets]).collect();
            let mut count = 0;
            for octets in &sent {
                let on = match forward(&mut forwarder, &settings, NEAR, octets, room) {
                    Err(ForwardError::Duplicate) => continue,
                    on => on.unwrap(),
                };
                for octets in on {
                    count += 1;
                    assert!(octets.len() <= room);
                    let stack = HeaderStack::read(FAR, &octets).unwrap();
                    let header = stack.fragment.unwrap();
                    assert_eq!(header.datagram_tag, 99);
                    let content = stack.content.octets();
                    let done = reassembler.receive(Instant::ZERO, &settings, FAR, header, content);
                    if let FragmentOutcome::Complete(Datagram { kind: DatagramKind::Ipv6, octets }) =
                        done.unwrap()
                    {
                        found = Some(octets.to_vec());
                    }
                }
            }
            let mut expected = packet(payload, 63);
            expected[7] = 63;
            assert_eq!(found, Some(expected), "{payload} octets, {room} a frame");
            // From B to C, both interface identifiers are in-line: 2 and 8 octets, so the first may become
            // two.
            assert!((sent.len() / 2..=sent.len() / 2 + 1).contains(&count), "{count}");
            assert_eq!(forwarder.forwarding(), 0);
        }
    }
}

#[test]
fn a_first_fragment_that_has_grown_goes_as_two() {
    let settings = LowpanSettings::default();
    let mut forwarder = Forwarder::<2>::new(TIMEOUT);
    let sent = cut(&settings, &packet(300, 64), 101);
    assert_eq!(sent[0].len(), 101);
    // The source was elided, as was a hop limit of 64: both are in-line now.
    let links = Links { source: B, destination: LinkAddress::Short(0xD) };
    let stack = HeaderStack::read(NEAR, &sent[0]).unwrap();
    let (header, content) = (stack.fragment.unwrap(), stack.content.octets());
    let (mut scratch, mut out) = ([0; 1280], [0; 1281]);
    let fragment = FirstFragment { links: NEAR, header, content, room: 101, scratch: &mut scratch };
    let route = |_: &Ipv6| Some(Route { links, datagram_tag: 1 });
    let on = forwarder.first(Instant::ZERO, &settings, fragment, route, &mut out).unwrap().unwrap().1;
    let octets: Vec<_> =
        on.map(|fragment| (fragment.header.unwrap().datagram_offset, fragment.octets())).collect();
    assert_eq!(octets, [(None, 96), (Some(15), 5 + 8)]);
}

#[test]
fn what_is_not_forwarded_is_reported() {
    let settings = LowpanSettings::default();
    let mut forwarder = Forwarder::<2>::new(TIMEOUT);
    let dying = cut(&settings, &packet(300, 1), 80);
    assert_eq!(forward(&mut forwarder, &settings, NEAR, &dying[0], 80), Err(ForwardError::HopLimit));
    // A fragment whose first has not arrived.
    assert_eq!(forward(&mut forwarder, &settings, NEAR, &dying[1], 80), Ok(vec![]));
    let sent = cut(&settings, &packet(300, 64), 80);
    let too_few = forward(&mut forwarder, &settings, NEAR, &sent[0], 12);
    assert_eq!(too_few, Err(ForwardError::Fragment(FragmentError::NoRoom { room: 12 })));
    assert_eq!(forwarder.forwarding(), 0);
    for source in 1..=3 {
        let links = Links { source: LinkAddress::Short(source), ..NEAR };
        let done = forward(&mut forwarder, &settings, links, &sent[0], 80);
        assert_eq!(done.is_ok(), source < 3);
    }
    assert_eq!(forwarder.forwarding(), 2);
    assert_eq!(forwarder.poll_timeout(), Some(Instant::ZERO + TIMEOUT));
    forwarder.handle_timeout(Instant::ZERO + TIMEOUT);
    assert_eq!(forwarder.forwarding(), 0);
}

#[test]
fn what_is_for_this_node_and_what_is_not_ip_stays() {
    let settings = LowpanSettings::default();
    let mut forwarder = Forwarder::<1>::new(TIMEOUT);
    let sent = cut(&settings, &packet(300, 64), 80);
    let stack = HeaderStack::read(NEAR, &sent[0]).unwrap();
    let header = stack.fragment.unwrap();
    for content in [stack.content.octets(), b"\xff\x52rohcrohc"] {
        let (mut scratch, mut out) = ([0; 1280], [0; 1281]);
        let fragment = FirstFragment { links: NEAR, header, content, room: 80, scratch: &mut scratch };
        let stays = forwarder.first(Instant::ZERO, &settings, fragment, |_| None, &mut out);
        assert!(matches!(stays, Ok(None)));
    }
    assert_eq!(forwarder.forwarding(), 0);
}

#[test]
fn an_entry_is_small() {
    assert!(size_of::<Option<ForwardingEntry>>() <= 80, "{}", size_of::<Option<ForwardingEntry>>());
}
