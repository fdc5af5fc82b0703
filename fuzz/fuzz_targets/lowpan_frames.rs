#![no_main]
//! Frames of IEEE 802.15.4 in sequence: writing a parsed frame gives its octets; fragments are reassembled and
//! forwarded within bounds; and the parts of a frame in a capture lie within it.

use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_capture::{LinkType, mac_frame, zep_frame};
use thinair_lowpan::forward::{FirstFragment, Forwarder, Route};
use thinair_lowpan::fragment::{FragmentHeader, MAX_DATAGRAM};
use thinair_lowpan::frame::WpanFrame;
use thinair_lowpan::reassembly::{FragmentOutcome, Reassembler, ReassemblySlot, TIMEOUT, WhenFull};
use thinair_lowpan::stack::HeaderStack;
use thinair_lowpan::{LinkAddress, Links, LowpanSettings, UdpChecksum, fcs};
use thinair_wire::time::Instant;

const LINKS: Links = Links { source: LinkAddress::Short(1), destination: LinkAddress::Short(2) };

/// Starts of some frames: a few packets, so that fragments belong together.
const STARTS: [&[u8]; 6] = [
    b"",
    b"\xc0\x80\0\x01\x7e\x33",
    b"\xe0\x80\0\x01\x08",
    b"\xe0\x80\0\x01\x09",
    b"\xc0\x80\0\x01\xff\x52",
    b"\xc0\x80\0\x01\x7e\x33\xf4",
];

#[derive(Arbitrary, Debug)]
struct LowpanFramesInput {
    elided: bool,
    replaces: bool,
    room: u8,
    frames: Vec<(u8, u8, Vec<u8>)>,
}

fuzz_target!(|input: LowpanFramesInput| {
    let udp_checksum = if input.elided { UdpChecksum::Elided } else { UdpChecksum::InLine };
    let settings = LowpanSettings { udp_checksum, ..LowpanSettings::default() };
    let when_full = if input.replaces { WhenFull::ReplaceOldest } else { WhenFull::Refuse };
    let slots = [(); 3].map(|()| ReassemblySlot::new(vec![0; MAX_DATAGRAM]));
    let mut reassembler = Reassembler::new(slots, TIMEOUT, when_full);
    let mut forwarder = Forwarder::<2>::new(TIMEOUT);
    let (mut scratch, mut out) = (vec![0; MAX_DATAGRAM], vec![0; MAX_DATAGRAM + 1]);
    let route = Route { links: LINKS, datagram_tag: 1 };
    let mut now = Instant::ZERO;
    for (start, seconds, octets) in input.frames.iter().take(64) {
        now = now + Duration::from_secs(u64::from(seconds % 90));
        reassembler.handle_timeout(now);
        forwarder.handle_timeout(now);
        captured(octets);
        if let Ok(frame) = WpanFrame::read(octets) {
            let mut again = vec![0; octets.len() + 8];
            let end = frame.write(&mut again).expect("there is room");
            assert_eq!(WpanFrame::read(&again[..end]), Ok(frame));
        }
        let octets = [STARTS[usize::from(*start) % STARTS.len()], octets].concat();
        let Ok(stack) = HeaderStack::read(LINKS, &octets) else { continue };
        let content = stack.content.octets();
        assert_eq!(&octets[stack.offset..], content);
        let header = stack.fragment.unwrap_or(FragmentHeader::first(128, 1));
        let received = reassembler.receive(now, &settings, stack.links, header, content);
        if let Ok(FragmentOutcome::Complete(datagram)) = received {
            assert_eq!(datagram.octets.len(), usize::from(header.datagram_size));
        }
        let room = usize::from(input.room);
        let first = FirstFragment { links: stack.links, header, content, room, scratch: &mut scratch };
        if let Ok(Some((_, fragments))) = forwarder.first(now, &settings, first, |_| Some(route), &mut out) {
            assert!(fragments.into_iter().all(|fragment| fragment.octets() <= room));
        }
        forwarder.subsequent(now, stack.links, header, content);
        assert!(reassembler.waiting() <= 3 && forwarder.forwarding() <= 2);
    }
});

/// The parts of a captured frame lie within it.
fn captured(octets: &[u8]) {
    let _ = fcs::check(octets);
    let links = [LinkType::IEEE802_15_4_WITHFCS, LinkType::IEEE802_15_4_NOFCS, LinkType::IEEE802_15_4_TAP];
    let of_links = links.map(|link| mac_frame(link, octets, octets.len() as u32));
    for frame in of_links.into_iter().chain(zep_frame(octets)).flatten() {
        assert!(frame.octets.len() + frame.fcs.len() <= octets.len());
    }
}
