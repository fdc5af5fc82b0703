//! Detection of RTP, and wrong detections, which cost octets and nothing else.

use crate::common::link::Link;
use crate::common::media::{Media, MediaKind};
use crate::common::{IpLayer, SplitMix64, TestFlow};
use proptest::prelude::*;
use thinair_rohc::{Channel, CidSpace, Compressed, Mode, Ports, ProfileId, ProfileSet, RtpDetection};

/// Port to which [`TestFlow`] sends datagrams.
const PORT: u16 = 5683;

/// RTCP sender report, receiver report, and source description, as second octets.
const RTCP: [u8; 3] = [200, 201, 202];

/// A link, and a flow whose payload may be RTP.
struct DetectionLink {
    link: Link,
    random: SplitMix64,
    flow: TestFlow,
    header_octets: usize,
}

impl DetectionLink {
    fn new(rtp: RtpDetection, mode: Mode, max_cid: u16) -> Self {
        let channel = Channel::new(CidSpace::Small, max_cid, ProfileSet::v1()).unwrap();
        let link = Link::new(channel, mode, 4, |config| config.rtp = rtp);
        let flow = TestFlow::udp(vec![IpLayer::new(false, 1)]);
        Self { link, random: SplitMix64(1), flow, header_octets: 0 }
    }

    fn carry(&mut self, packet: &[u8]) -> Compressed {
        let compressed = self.link.carry(packet);
        self.header_octets += compressed.header_out;
        compressed
    }

    /// Sends a datagram of the single flow, and returns its profile.
    fn datagram(&mut self, payload: Vec<u8>) -> ProfileId {
        let packet = self.flow.carry(payload, &mut self.random);
        self.carry(&packet).profile
    }
}

/// Datagram of an RTP stream: 12 octets of header, timestamps of 160 per packet, and 20 octets of sound.
fn rtp(ssrc: u32, sn: u16) -> Vec<u8> {
    let mut datagram = vec![0x80, 0];
    datagram.extend_from_slice(&sn.to_be_bytes());
    datagram.extend_from_slice(&(u32::from(sn) * 160).to_be_bytes());
    datagram.extend_from_slice(&ssrc.to_be_bytes());
    datagram.resize(32, sn as u8);
    datagram
}

/// These octets in the form of RTCP.
fn rtcp(kind: u8, ssrc: u32) -> Vec<u8> {
    let mut datagram = vec![0x81, kind, 0, 7];
    datagram.extend_from_slice(&ssrc.to_be_bytes());
    datagram.resize(32, kind);
    datagram
}

const MODES: [Mode; 2] = [Mode::Unidirectional, Mode::Optimistic];

#[test]
fn a_flow_is_rtp_from_the_fourth_packet_on() {
    for mode in MODES {
        let mut link = DetectionLink::new(RtpDetection::default(), mode, 15);
        let profiles: Vec<_> = (0xFFFD_u32..0x1_0004).map(|sn| link.datagram(rtp(7, sn as u16))).collect();
        assert_eq!(profiles[..3], [ProfileId::Udp; 3]);
        assert_eq!(profiles[3..], [ProfileId::Rtp; 4]);
    }
}

#[test]
fn losses_and_repetitions_within_reason_are_rtp_all_the_same() {
    let mut link = DetectionLink::new(RtpDetection::default(), Mode::Unidirectional, 15);
    let sns = [1, 3, 19, 20, 21, 21, 18, 40, 41, 141, 142, 50, 142];
    let profiles = sns.map(|sn| link.datagram(rtp(7, sn)));
    assert_eq!(profiles[3..], [ProfileId::Rtp; 10]);
}

#[test]
fn flows_to_ports_that_were_told_are_rtp_from_the_first_packet_on_and_no_others() {
    let told = RtpDetection::of_ports(&[PORT]).unwrap();
    let others = RtpDetection::of_ports(&[5004, 1234]).unwrap();
    for (rule, profiles) in [
        (told, [ProfileId::Rtp; 5]),
        (told.or_guess(), [ProfileId::Rtp; 5]),
        (others, [ProfileId::Udp; 5]),
        (RtpDetection::NEVER, [ProfileId::Udp; 5]),
    ] {
        let mut link = DetectionLink::new(rule, Mode::Unidirectional, 15);
        assert_eq!([0, 1, 2, 3, 4].map(|sn| link.datagram(rtp(7, sn))), profiles, "{rule:?}");
    }
    let mut link = DetectionLink::new(others.or_guess(), Mode::Unidirectional, 15);
    assert_eq!([0, 1, 2, 3].map(|sn| link.datagram(rtp(7, sn)))[3], ProfileId::Rtp);
}

#[test]
fn what_is_no_rtp_on_a_port_that_was_told_goes_as_udp() {
    let mut link = DetectionLink::new(RtpDetection::of_ports(&[PORT]).unwrap(), Mode::Unidirectional, 15);
    // STUN, DTLS, a short datagram and one with truncated CSRC identifiers.
    for datagram in [&[0; 20][..], &[0x16; 20], &[0x80; 11], &[0x8F; 20], &[]] {
        assert_eq!(link.datagram(datagram.to_vec()), ProfileId::Udp, "{datagram:02x?}");
    }
    assert_eq!(link.datagram(rtp(7, 1)), ProfileId::Rtp);
}

#[test]
fn a_rule_has_a_limited_number_of_ports() {
    let ports: Vec<_> = (1..).take(Ports::MOST).collect();
    let rule = RtpDetection::of_ports(&ports).unwrap();
    assert!(ports.iter().all(|port| rule.has(*port)) && !rule.has(0) && !rule.has(9));
    assert_eq!(RtpDetection::of_ports(&[&ports[..], &[99]].concat()), None);
}

/// RFC 5761: RTP and RTCP on one pair of ports.
#[test]
fn rtcp_on_the_same_ports_stays_udp_and_does_not_hide_rtp() {
    for rule in [RtpDetection::default(), RtpDetection::of_ports(&[PORT]).unwrap()] {
        let mut link = DetectionLink::new(rule, Mode::Optimistic, 15);
        let mut media = Vec::new();
        for sn in 0..60 {
            if sn % 3 == 1 {
                let kind = RTCP[usize::from(sn) / 3 % 3];
                assert_eq!(link.datagram(rtcp(kind, 7)), ProfileId::Udp);
            }
            media.push(link.datagram(rtp(7, sn)));
        }
        assert_eq!(media[3..], [ProfileId::Rtp; 57]);
    }
}

#[test]
fn each_ssrc_on_a_pair_of_ports_is_a_flow_of_its_own() {
    for mode in MODES {
        for (rule, first) in [(RtpDetection::default(), 3), (RtpDetection::of_ports(&[PORT]).unwrap(), 0)] {
            let mut link = DetectionLink::new(rule, mode, 15);
            let mut cids = std::collections::BTreeSet::new();
            for sn in 0..30_u16 {
                for ssrc in [7, 8, 9] {
                    let sn = sn + 1_000 * ssrc as u16;
                    let packet = link.flow.carry(rtp(ssrc, sn), &mut link.random);
                    let done = link.carry(&packet);
                    if sn % 1_000 >= first {
                        assert_eq!(done.profile, ProfileId::Rtp, "{ssrc} {sn}");
                        cids.insert((ssrc, done.cid));
                    }
                }
            }
            assert_eq!(cids.len(), 3);
        }
    }
}

/// A call that is transferred has another SSRC from then on.
#[test]
fn an_ssrc_that_follows_another_one_is_found_however_late() {
    let mut link = DetectionLink::new(RtpDetection::default(), Mode::Unidirectional, 15);
    for call in 1..20 {
        let profiles: Vec<_> = (0..50).map(|sn| link.datagram(rtp(call, sn))).collect();
        assert_eq!(profiles[3..], [ProfileId::Rtp; 47], "{call}");
    }
}

#[test]
fn rtp_over_udp_lite_is_found_like_rtp_over_udp() {
    let mut flow = TestFlow::udp(vec![IpLayer::new(true, 1)]);
    flow.media = Some(Media::new(MediaKind::RtpUdpLite));
    let mut link = DetectionLink::new(RtpDetection::default(), Mode::Optimistic, 15);
    let profiles: Vec<_> = (0..10)
        .map(|_| {
            let packet = flow.packet(&mut link.random);
            link.carry(&packet).profile
        })
        .collect();
    assert_eq!(profiles[..3], [ProfileId::UdpLite; 3]);
    assert_eq!(profiles[3..], [ProfileId::RtpUdpLite; 7]);
}

/// An IR packet must have a payload (RFC 3095, section 5.7.7), so that RTP without one has to begin as UDP.
#[test]
fn headers_alone_begin_no_context_of_rtp() {
    let mut link = DetectionLink::new(RtpDetection::default(), Mode::Optimistic, 15);
    let header = |sn| rtp(7, sn)[..12].to_vec();
    let profiles: Vec<_> = (0..10).map(|sn| link.datagram(header(sn))).collect();
    assert_eq!(profiles, [ProfileId::Udp; 10]);
    assert_eq!(link.datagram(rtp(7, 10)), ProfileId::Rtp);
    assert_eq!(link.datagram(header(11)), ProfileId::Rtp);
}

/// Another protocol, whose datagrams do not begin like RTP.
#[test]
fn a_flow_that_is_no_rtp_any_more_leaves_the_profile_at_once() {
    for mode in MODES {
        for max_cid in [0, 15] {
            let mut link = DetectionLink::new(RtpDetection::default(), mode, max_cid);
            let found: Vec<_> = (0..20).map(|sn| link.datagram(rtp(7, sn))).collect();
            assert_eq!(found[3..], [ProfileId::Rtp; 17]);
            for i in 0..40 {
                assert_eq!(link.datagram(vec![i; 30]), ProfileId::Udp);
            }
        }
    }
}

/// Another protocol that has version 2 and an unchanged SSRC in the places of RTP.
fn lookalike(random: &mut SplitMix64) -> Vec<u8> {
    let mut datagram = rtp(7, random.next() as u16);
    datagram[4..8].copy_from_slice(&(random.next() as u32).to_be_bytes());
    datagram
}

#[test]
fn a_flow_whose_sequence_numbers_stop_to_go_on_leaves_the_profile_soon() {
    for mode in MODES {
        for max_cid in [0, 15] {
            let mut link = DetectionLink::new(RtpDetection::default(), mode, max_cid);
            for sn in 0..20 {
                link.datagram(rtp(7, sn));
            }
            let mut random = SplitMix64(9);
            let left: Vec<_> = (0..40).map(|_| link.datagram(lookalike(&mut random))).collect();
            // One in 255 has a sequence number near the last one.
            let udp = left.iter().filter(|profile| **profile == ProfileId::Udp).count();
            assert!(udp >= 39, "{mode:?} {max_cid}: {left:?}");
        }
    }
}

#[test]
fn a_flow_whose_sequence_numbers_jump_proves_itself_again() {
    for mode in MODES {
        let mut link = DetectionLink::new(RtpDetection::default(), mode, 15);
        for first in [1, 5_000, 60_000, 0] {
            let profiles: Vec<_> = (first..first + 30).map(|sn| link.datagram(rtp(7, sn))).collect();
            assert_eq!(profiles[..3], [ProfileId::Udp; 3]);
            assert_eq!(profiles[3..], [ProfileId::Rtp; 27]);
        }
    }
}

#[test]
fn a_flow_that_was_given_up_is_rtp_again_if_it_goes_on_soon() {
    for mode in MODES {
        for max_cid in [0, 15] {
            let mut link = DetectionLink::new(RtpDetection::default(), mode, max_cid);
            for sn in 0..20 {
                link.datagram(rtp(7, sn));
            }
            let mut random = SplitMix64(9);
            for _ in 0..10 {
                link.datagram(lookalike(&mut random));
            }
            let back: Vec<_> = (0..20).map(|sn| link.datagram(rtp(7, sn))).collect();
            assert_eq!(back[3..], [ProfileId::Rtp; 17], "{mode:?} {max_cid}");
        }
    }
}

/// STUN and DTLS precede RTP on the same ports, until their flow is established.
#[test]
fn a_settled_flow_of_udp_does_not_take_the_rtp_of_its_ports() {
    for (rule, first) in [(RtpDetection::default(), 3), (RtpDetection::of_ports(&[PORT]).unwrap(), 0)] {
        let mut link = DetectionLink::new(rule, Mode::Optimistic, 15);
        for i in 0..100 {
            assert_eq!(link.datagram(vec![0x16; 30 + i]), ProfileId::Udp);
        }
        let profiles: Vec<_> = (0..20).map(|sn| link.datagram(rtp(7, sn))).collect();
        assert!(profiles[first..].iter().all(|profile| *profile == ProfileId::Rtp), "{profiles:?}");
    }
}

#[test]
fn a_wrong_guess_costs_few_octets() {
    for mode in MODES {
        let header_octets = |rule| {
            let mut link = DetectionLink::new(rule, mode, 15);
            let mut random = SplitMix64(9);
            for sn in 0..4 {
                link.datagram(rtp(7, sn));
            }
            for _ in 0..500 {
                link.datagram(lookalike(&mut random));
            }
            link.header_octets
        };
        let (guessed, never) = (header_octets(RtpDetection::default()), header_octets(RtpDetection::NEVER));
        // A few IR packets of RTP, for which an established flow of UDP would have had three octets each.
        assert!(guessed - never < 6 * 40, "{mode:?}: {guessed} and {never}");
    }
}

/// Carries traffic that is RTP for some time, and then similar to it, or different, on few contexts.
fn comes_back(seed: u64, rule: usize, optimistic: bool, max_cid: u16) {
    let told = RtpDetection::of_ports(&[PORT]).unwrap();
    let rule = [RtpDetection::default(), told, told.or_guess()][rule];
    let mut link = DetectionLink::new(rule, MODES[usize::from(optimistic)], max_cid);
    let mut random = SplitMix64(seed);
    let (mut sn, mut ssrc) = (random.next() as u16, 7);
    for _ in 0..30 {
        let (kind, packets) = (random.below(8), 1 + random.below(12));
        for _ in 0..packets {
            sn = sn.wrapping_add(1);
            let datagram = match kind {
                0..=2 => rtp(ssrc, sn),
                3 => lookalike(&mut random),
                4 => rtcp(RTCP[random.below(3) as usize], ssrc),
                5 => rtp(7 + random.below(3) as u32, sn),
                6 => (0..random.below(40)).map(|_| random.next() as u8).collect(),
                _ => {
                    // Data with the form of a header, and none of its meaning.
                    let mut datagram: Vec<_> = (0..80).map(|_| random.next() as u8).collect();
                    datagram[0] = 0x80 | datagram[0] & 0x3F;
                    datagram
                }
            };
            link.datagram(datagram);
        }
        if random.once_in(4) {
            ssrc = 7 + random.below(2) as u32;
        }
    }
}

/// A context is new at one end alone, and its second packet leaps; or timestamps take steps of several strides.
#[test]
fn a_pace_that_one_end_alone_knows() {
    for (seed, rule, optimistic, max_cid) in [
        (433_034_755_440_286_248, 1, true, 3),
        (12_126_310_830_192_581_205, 1, true, 0),
        (3_683_473_423_698_242_775, 1, true, 3),
        (17_096_427_291_986_386_294, 2, true, 2),
        (10_979_319_819_804_786_054, 1, false, 3),
    ] {
        comes_back(seed, rule, optimistic, max_cid);
    }
}

proptest! {
    #[test]
    fn whatever_was_taken_for_rtp_comes_back_bit_for_bit(
        seed: u64,
        rule in 0..3_usize,
        optimistic: bool,
        max_cid in 0..4_u16,
    ) {
        comes_back(seed, rule, optimistic, max_cid);
    }
}
