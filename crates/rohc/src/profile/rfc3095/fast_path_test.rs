//! Comparison of the fast paths with the full paths at both ends: octets, outcomes and contexts are equal for all flows and
//! links.

#![allow(clippy::unwrap_used)]

use std::format;
use std::vec::Vec;

use thinair_wire::checksum::Sum;
use thinair_wire::header::chain::HeaderChain;
use thinair_wire::time::Instant;

use super::classify::ClassifiedPacket;
use super::compress::Rfc3095SenderContext;
use super::table::{ExtensionBlock, Pool};
use super::{compress, decompress};
use crate::channel::{Channel, ProfileSet};
use crate::cid::{Cid, CidSpace};
use crate::compressor::{Compressor, CompressorConfig, CompressorMemory, OutgoingPacket, RtpDetection};
use crate::decompressor::{DecompressorConfig, IncomingPacket, Threshold};
use crate::field::timer::FarClock;
use crate::flow::arrival::Moment;
use crate::flow::health::Evidence;
use crate::flow::sender::Departure;
use crate::id::{Format, ProfileId};
use crate::packet::PacketHeader;
use crate::profile::xor_shift::XorShift;
use crate::storage::{Room, Slots};

/// A failure that moves no context down by itself.
const FAILURE: Evidence =
    Evidence { nack: Threshold { k: 16, n: 16 }, is_urgent: false, is_repair: false, static_nack: None };

fn departure<'a>(now: Instant, config: &'a CompressorConfig, out: &'a mut [u8]) -> Departure<'a, 'a> {
    let (cid, group, clock, linked) = (Cid::ZERO, 0, &FarClock::NONE, None);
    Departure { now, cid, group, config, clock, is_irregular: false, linked, out }
}

/// A flow that mostly increases by one, as its kinds of IP-ID and checksum allow.
struct FastPathFlow {
    profile: ProfileId,
    six: bool,
    ids: u64,
    sums: u64,
    /// Checksum Coverage of UDP-Lite: the whole packet, a fixed part, or either.
    coverages: u64,
    id: u16,
    ttl: u8,
    sn: u32,
    ts: u32,
    /// Distinguishes SSRC, SPI, and the source port of UDP.
    tag: u8,
}

impl FastPathFlow {
    fn new(profile: ProfileId, random: &mut XorShift) -> Self {
        let (six, ids, sums) = (random.once_in(3), random.below(4), random.below(3));
        let coverages = random.below(3);
        Self {
            profile,
            six,
            ids,
            sums,
            coverages,
            id: random.below(1 << 16) as u16,
            ttl: 64,
            sn: 0xFFF0,
            ts: 7,
            tag: 0,
        }
    }

    fn next(&mut self, random: &mut XorShift) -> Vec<u8> {
        let step = if random.once_in(20) { random.below(24) as u32 } else { 1 };
        self.sn = self.sn.wrapping_add(step);
        self.ts = self.ts.wrapping_add(160 * if random.once_in(25) { 3 } else { step });
        self.id = match self.ids {
            0 => 0,
            1 => self.id.swap_bytes().wrapping_add(1).swap_bytes(),
            2 => random.below(1 << 16) as u16,
            _ => self.id.wrapping_add(if random.once_in(25) { 9 } else { 1 }),
        };
        if random.once_in(40) {
            self.ttl ^= 1;
        }
        let marker = u8::from(random.once_in(30)) << 7;
        let mut above = match self.profile {
            ProfileId::Rtp | ProfileId::RtpUdpLite => [
                &[0x80, marker | 8],
                &(self.sn as u16).to_be_bytes()[..],
                &self.ts.to_be_bytes(),
                &[self.tag; 4],
            ]
            .concat(),
            ProfileId::Esp => [[self.tag; 4], self.sn.to_be_bytes()].concat(),
            _ => Vec::new(),
        };
        above.extend((0..1 + random.below(9)).map(|_| random.below(256) as u8));
        let (protocol, ends) = match self.profile {
            ProfileId::Esp => (50, if self.six { 32 } else { 8 }),
            ProfileId::Ip => (253, if self.six { 32 } else { 8 }),
            ProfileId::UdpLite | ProfileId::RtpUdpLite => (136, if self.six { 32 } else { 8 }),
            _ => (17, if self.six { 32 } else { 8 }),
        };
        let ends: Vec<u8> = (1..=ends).collect();
        if protocol != 50 && protocol != 253 {
            let len = above.len() as u16 + 8;
            let port = 4_000 + if self.profile == ProfileId::Udp { u16::from(self.tag) } else { 0 };
            let mut datagram = [port, 5_004, len, 0].map(u16::to_be_bytes).concat();
            datagram.append(&mut above);
            if protocol == 136 {
                let is_part = self.coverages == 1 || self.coverages == 2 && random.once_in(8);
                datagram[4..6].copy_from_slice(&if is_part { 8 } else { len }.to_be_bytes());
            }
            let right = Sum::ZERO.octets(&ends).word(17).word(len).octets(&datagram).checksum();
            let right = if right == 0 { 0xFFFF } else { right };
            let none = if protocol == 17 { 0 } else { right };
            let sum = [none, right, 1 + random.below(0xFFFF) as u16][self.sums as usize];
            datagram[6..8].copy_from_slice(&sum.to_be_bytes());
            above = datagram;
        }
        let mut packet = if self.six {
            [&[0x60, 0, 0, 0], &(above.len() as u16).to_be_bytes()[..], &[protocol, self.ttl]].concat()
        } else {
            let len = (above.len() as u16 + 20).to_be_bytes();
            [&[0x45, 0], &len[..], &self.id.to_be_bytes(), &[0x40, 0, self.ttl, protocol, 0, 0]].concat()
        };
        packet.extend(&ends);
        if !self.six {
            let sum = Sum::ZERO.octets(&packet).checksum();
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        packet.append(&mut above);
        packet
    }
}

#[test]
fn both_paths_of_both_ends_agree() {
    let channel = Channel::new(CidSpace::Small, 0, ProfileSet::v1()).unwrap();
    let rtp = RtpDetection::of_ports(&[5_004]).unwrap();
    let (mut regular, mut in_line, mut full) = (0, 0, 0);
    for seed in 1..=90 {
        let random = &mut XorShift(0x9E37_79B9_7F4A_7C15 ^ seed);
        use ProfileId::{Esp, Ip, Rtp, RtpUdpLite, Udp, UdpLite};
        let profile = [Rtp, Udp, Esp, Ip, RtpUdpLite, UdpLite][(seed % 6) as usize];
        let rtp =
            if matches!(profile, Rtp | RtpUdpLite) { rtp } else { RtpDetection::of_ports(&[]).unwrap() };
        let config = CompressorConfig { rtp, ..CompressorConfig::new(channel) };
        let mut far_config = DecompressorConfig::new(channel);
        far_config.interop.deliver_empty = true;
        let mut flow = FastPathFlow::new(profile, random);
        let mut blocks: [[ExtensionBlock; 2]; 4] = [[ExtensionBlock::EMPTY; 2]; 4];
        let [mut a, mut b, mut c, mut d] = blocks.each_mut().map(|blocks| Pool::new(Slots::Lent(blocks)));
        let mut near: Option<[compress::Rfc3095SenderContext; 2]> = None;
        let mut far = [decompress::Rfc3095ReceiverContext::new(profile); 2];
        let mut now = Instant::ZERO;
        for i in 0..400 {
            let wait = if random.once_in(60) { random.below(4_000) } else { 20 };
            now = Instant::from_nanos(now.as_nanos() + wait * 1_000_000);
            let packet = flow.next(random);
            let chain = HeaderChain::parse(&packet).unwrap();
            let mut plan = ClassifiedPacket::new(now, &chain, None);
            assert!(plan.choose(&chain, &config));
            assert_eq!(plan.profile, profile);
            let [fast, slow] = near.get_or_insert_with(|| {
                let mut context = compress::Rfc3095SenderContext::new(&plan, 7);
                context.start(None, 0, &config);
                [context; 2]
            });
            let (mut octets, mut others) = ([0; 128], [0; 128]);
            let is_regular = fast
                .clone()
                .compress_as_regular(&plan, &mut departure(now, &config, &mut [0; 128]))
                .is_some();
            let done = match fast.compress_as_regular(&plan, &mut departure(now, &config, &mut octets)) {
                Some(done) => done,
                None => fast.compress(&plan, &mut a, &mut departure(now, &config, &mut octets)).unwrap(),
            };
            let other = slow.compress(&plan, &mut b, &mut departure(now, &config, &mut others)).unwrap();
            assert_eq!((done, octets), (other, others), "seed {seed}, packet {i}");
            assert_eq!(format!("{fast:?}"), format!("{slow:?}"), "seed {seed}, packet {i}");
            regular += usize::from(is_regular);
            full += usize::from(!is_regular);

            if random.once_in(30) {
                continue;
            }
            if random.once_in(30) && !done.format.is_initialization() {
                octets[random.below(done.header_out as u64) as usize] ^= 1 << random.below(8);
            }
            let Some(header) = PacketHeader::read(&octets[..done.len], CidSpace::Small) else { continue };
            let (at, header) = (Moment::from(now), &header);
            let incoming =
                IncomingPacket { at, header, config: &far_config, has_failed: false, linked: None };
            let (mut back, mut other_back) = ([0; 128], [0; 128]);
            let [fast, slow] = &mut far;
            let [got, other] = match done.format {
                Format::Ir => {
                    [fast.ir(&incoming, &mut c, &mut back), slow.ir(&incoming, &mut d, &mut other_back)]
                }
                Format::IrDyn => [
                    fast.ir_dyn(&incoming, &mut c, &mut back),
                    slow.ir_dyn(&incoming, &mut d, &mut other_back),
                ],
                _ => {
                    let early = fast.next_in_line(at, header, &mut back);
                    in_line += usize::from(early.is_some());
                    [
                        early.ok_or(()).or_else(|()| fast.compressed(&incoming, &mut c, &mut back)),
                        slow.compressed(&incoming, &mut d, &mut other_back),
                    ]
                }
            };
            assert_eq!(got, other, "seed {seed}, packet {i}, {:?}", done.format);
            match got {
                Ok(verified) => assert_eq!(back[..verified.len], other_back[..verified.len]),
                Err(_) => {
                    for context in [&mut *fast, &mut *slow] {
                        context.arrivals.note_failure(at);
                        context.health.note_failure(&FAILURE);
                    }
                }
            }
            assert_eq!(
                format!("{fast:?}"),
                format!("{slow:?}"),
                "seed {seed}, packet {i}, {:?}",
                done.format
            );
        }
    }
    assert!(regular > full / 2 && in_line > 10_000, "{regular} regular, {full} not; {in_line} in line");
}

/// Compares a compressor that searches profile and context of each packet with one that first tries the context of the
/// previous packet: octets and state are equal, for flows that differ only in the fields that identify them.
#[test]
fn the_flow_of_the_packet_before_is_found_as_any_other() {
    let channel = Channel::new(CidSpace::Small, 7, ProfileSet::v1()).unwrap();
    let (mut next, mut all) = (0, 0);
    for seed in 1..=16 {
        let random = &mut XorShift(0x9E37_79B9_7F4A_7C15 ^ seed);
        let mut config = CompressorConfig::new(channel);
        if random.once_in(2) {
            config.rtp = RtpDetection::of_ports(&[5_004]).unwrap();
        }
        use ProfileId::{Esp, Ip, Rtp, Udp};
        let kinds = [(Rtp, 0), (Rtp, 1), (Udp, 0), (Udp, 1), (Esp, 0), (Esp, 1), (Ip, 0)];
        let mut flow = FastPathFlow::new(Rtp, random);
        let [mut fast, mut slow] =
            [(); 2].map(|()| Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(1))));
        let mut now = Instant::ZERO;
        for i in 0..600 {
            now =
                Instant::from_nanos(now.as_nanos() + if random.once_in(60) { 2_000 } else { 20 } * 1_000_000);
            if random.once_in(20) {
                (flow.profile, flow.tag) = kinds[random.below(7) as usize];
            }
            if random.once_in(50) {
                fast.begin_group();
                slow.begin_group();
            }
            let packet = flow.next(random);
            let chain = HeaderChain::parse(&packet).unwrap();
            let (mut octets, mut other_octets) = ([0; 128], [0; 128]);
            let mut outgoing = OutgoingPacket::new(now, &chain, None);
            let done = fast.compress_next::<Rfc3095SenderContext>(&mut outgoing, &mut octets).map(Ok);
            next += usize::from(done.is_some());
            let mut full = || fast.compress_any::<Rfc3095SenderContext>(&mut outgoing, &mut octets);
            let done = if done.is_some() { done } else { full() };
            all += 1;
            outgoing.is_irregular = false;
            let other = slow.compress_any::<Rfc3095SenderContext>(&mut outgoing, &mut other_octets);
            assert_eq!((done, octets), (other, other_octets), "seed {seed}, packet {i}");
            assert_eq!(format!("{fast:?}"), format!("{slow:?}"), "seed {seed}, packet {i}");
        }
    }
    assert!(next > all / 3, "{next} of {all} by the context before");
}
