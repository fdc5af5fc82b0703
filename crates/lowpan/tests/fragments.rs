//! Packets in frames of IEEE 802.15.4, whole and in fragments, in any order, more than once, or not at all.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{datagram, eliding, ipv6, packet, settings};
use proptest::prelude::*;
use thinair_lowpan::forward::{FirstFragment, Forwarder, Route};
use thinair_lowpan::fragment::{FragmentHeader, Fragments};
use thinair_lowpan::frame::{self, WpanFrame};
use thinair_lowpan::reassembly::{
    DatagramKind, FragmentOutcome, Reassembler, ReassemblySlot, TIMEOUT, WhenFull,
};
use thinair_lowpan::stack::{HeaderStack, StackContent};
use thinair_lowpan::{CompressedPacket, LinkAddress, Links, LowpanSettings, compress, dispatch, fcs};
use thinair_wire::time::Instant;

const LINKS: Links =
    Links { source: LinkAddress::Short(1), destination: LinkAddress::Extended(*b"\x02\0\0\0\0\0\0\x02") };

/// The frames of a packet in `octets`, check sequence included.
fn frames(compressed: &CompressedPacket, octets: &[u8], tag: u16, len: usize) -> Vec<Vec<u8>> {
    let mut out = [0; frame::MAX_LEN];
    let around = WpanFrame::data(0xABCD, LINKS, 0, &[]).write(&mut out).unwrap() + fcs::LEN;
    let fragments = Fragments::new(compressed, octets, tag, len - around).unwrap();
    let frame = |fragment: thinair_lowpan::fragment::Fragment<'_>| {
        let mut payload = [0; frame::MAX_LEN];
        let end = fragment.write(&mut payload).unwrap();
        let mut out = vec![0; frame::MAX_LEN];
        let end = WpanFrame::data(0xABCD, LINKS, 7, &payload[..end]).write(&mut out).unwrap();
        out.truncate(end);
        out.extend(fcs::fcs(&out));
        assert!(out.len() <= len);
        out
    };
    fragments.map(frame).collect()
}

/// A UDP packet with some chosen fields, in frames.
fn sent(
    settings: &LowpanSettings,
    payload: &[u8],
    tag: u16,
    len: usize,
    is_plain: bool,
) -> (Vec<u8>, Vec<Vec<u8>>) {
    let ip = ipv6("fe80::ff:fe00:1", "2001:db8::1");
    let packet = packet(ip, 17, &datagram(&ip, 5683, 0xF0B1, payload));
    if is_plain {
        let octets = [&[dispatch::IPV6][..], &packet].concat();
        let compressed = CompressedPacket { header_in: 0, header_out: 1, len: octets.len() };
        return (packet, frames(&compressed, &octets, tag, len));
    }
    let mut out = vec![0; packet.len() + 1];
    let compressed = compress(settings, LINKS, &packet, &mut out).unwrap();
    (packet, frames(&compressed, &out[..compressed.len], tag, len))
}

type TestReassembler = Reassembler<Vec<u8>, 3>;

fn memory(when_full: WhenFull) -> TestReassembler {
    Reassembler::new([(); 3].map(|()| ReassemblySlot::new(vec![0; 1280])), TIMEOUT, when_full)
}

/// Returns the packet that a frame completes.
fn receive(
    memory: &mut TestReassembler,
    settings: &LowpanSettings,
    octets: &[u8],
) -> Option<(DatagramKind, Vec<u8>)> {
    let frame = WpanFrame::read(fcs::check(octets).unwrap()).unwrap();
    let stack = HeaderStack::read(frame.links(), frame.payload).unwrap();
    let header = stack.fragment.expect("packets are longer than a frame");
    let now = Instant::ZERO + Duration::from_secs(1);
    match memory.receive(now, settings, stack.links, header, stack.content.octets()).unwrap() {
        FragmentOutcome::Complete(datagram) => Some((datagram.kind, datagram.octets.to_vec())),
        FragmentOutcome::Waiting | FragmentOutcome::Duplicate | FragmentOutcome::BegunAnew => None,
    }
}

proptest! {
    #[test]
    fn packets_come_out_as_they_were_or_not_at_all(
        payloads in [prop::collection::vec(any::<u8>(), 130..1200), prop::collection::vec(any::<u8>(), 130..1200)],
        len in 50_usize..=127,
        is_elided in any::<bool>(),
        is_plain in any::<bool>(),
        again in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        order in prop::collection::vec(any::<u16>(), 256),
        missing in any::<prop::sample::Index>(),
    ) {
        let contexts = settings(&[(3, "2001:db8::/64")]);
        let settings = if is_elided { eliding(contexts) } else { contexts };
        let sent = [(0, 65_535), (1, 0)].map(|(i, tag)| sent(&settings, &payloads[i], tag, len, is_plain));
        let mut memory = memory(WhenFull::Refuse);
        let frames_of = |packet: usize| sent[packet].1.iter().map(move |frame| (packet, frame));
        let all: Vec<_> = frames_of(0).chain(frames_of(1)).collect();
        let missing = missing.index(all.len());
        let mut indices: Vec<_> = (0..all.len()).chain(again.iter().map(|index| index.index(all.len()))).collect();
        indices.sort_by_key(|index| order[*index]);
        let half = indices.len() / 2;
        let by = again.len().min(half);
        indices[half..].rotate_left(by);
        let mut found = [0, 0];
        for index in indices.into_iter().filter(|index| *index != missing) {
            let (packet, frame) = all[index];
            if let Some((kind, octets)) = receive(&mut memory, &settings, frame) {
                prop_assert_eq!(kind, DatagramKind::Ipv6);
                prop_assert_eq!(&octets, &sent[packet].0);
                found[packet] += 1;
            }
        }
        // The packet whose frame is missing is not delivered; the other one is, once.
        let lost = all[missing].0;
        prop_assert_eq!((found[lost], found[1 - lost], memory.waiting()), (0, 1, 1));
        let last = receive(&mut memory, &settings, all[missing].1);
        prop_assert_eq!(last.map(|(_, octets)| octets), Some(sent[lost].0.clone()));
    }

    #[test]
    fn rohc_packets_are_carried_as_they_are(
        octets in prop::collection::vec(any::<u8>(), 1..1280),
        len in 50_usize..=127,
    ) {
        let packet = [&dispatch::ROHC[..], &octets].concat();
        let frames = frames(&CompressedPacket::rohc(packet.len()), &packet, 0, len);
        let mut memory = memory(WhenFull::Refuse);
        for (i, frame) in frames.iter().enumerate() {
            if frames.len() == 1 {
                let frame = WpanFrame::read(fcs::check(frame).unwrap()).unwrap();
                let stack = HeaderStack::read(frame.links(), frame.payload).unwrap();
                prop_assert_eq!(stack.content, StackContent::Rohc(&packet));
                continue;
            }
            let found = receive(&mut memory, &LowpanSettings::default(), frame);
            let expected = (i + 1 == frames.len()).then(|| (DatagramKind::Rohc, octets.clone()));
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn any_octets_are_survived_by_every_reader(
        all in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..130), 1..40),
        starts in prop::collection::vec(0_usize..6, 40),
        elided in any::<bool>(),
    ) {
        let contexts = settings(&[(0, "2001:db8::/64")]);
        let settings = if elided { eliding(contexts) } else { contexts };
        let mut memory = memory(WhenFull::ReplaceOldest);
        let mut forwarder = Forwarder::<2>::new(TIMEOUT);
        let route = Route { links: LINKS, datagram_tag: 1 };
        for (octets, start) in all.iter().zip(starts) {
            if let Ok(frame) = WpanFrame::read(octets) {
                let mut out = [0; 200];
                let end = frame.write(&mut out).unwrap();
                prop_assert_eq!(WpanFrame::read(&out[..end]), Ok(frame));
            }
            let _ = fcs::check(octets);
            // Some begin with valid octets, with few sizes and tags, so that they meet.
            let start: &[u8] = [
                &b""[..], b"\xc0\x80\0\x01\x7e\x33", b"\xe0\x80\0\x01\x08", b"\xe0\x80\0\x01\x09",
                b"\xc0\x80\0\x01\xff\x52", b"\xc0\x80\0\x01\x7e\x33\xf4",
            ][start];
            let octets = [start, octets].concat();
            let Ok(stack) = HeaderStack::read(LINKS, &octets) else { continue };
            let content = stack.content.octets();
            prop_assert_eq!(&octets[stack.offset..], content);
            let header = stack.fragment.unwrap_or(FragmentHeader::first(128, 1));
            if let Ok(FragmentOutcome::Complete(datagram)) = memory.receive(Instant::ZERO, &settings, stack.links, header, content) {
                prop_assert_eq!(datagram.octets.len(), usize::from(header.datagram_size));
            }
            let (mut scratch, mut out) = ([0; 2048], [0; 2049]);
            let fragment = FirstFragment { links: stack.links, header, content, room: 60, scratch: &mut scratch };
            if let Ok(Some((_, fragments))) = forwarder.first(Instant::ZERO, &settings, fragment, |_| Some(route), &mut out) {
                for fragment in fragments {
                    prop_assert!(fragment.octets() <= 60);
                }
            }
            forwarder.subsequent(Instant::ZERO, stack.links, header, content);
        }
        prop_assert!(memory.waiting() <= 3 && forwarder.forwarding() <= 2);
    }
}
