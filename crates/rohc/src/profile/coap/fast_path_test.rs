//! Comparison of the fast path with the full path at the decompressor: octets, outcomes and contexts are equal for all flows and links.
//! `tests/all/predicted.rs` compares those of the compressor.

use std::format;
use std::vec;
use std::vec::Vec;

use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::protocol;
use thinair_wire::time::Instant;

use super::Template;
use super::decompress::{CoapReceiverContext, CoapReceiverMemory};
use crate::channel::{Channel, Integrity, ProfileSet};
use crate::cid::CidSpace;
use crate::compressor::{Compressor, CompressorConfig, CompressorMemory, FormatPolicy};
use crate::decompressor::{DecompressorConfig, IncomingPacket, Threshold};
use crate::flow::arrival::Moment;
use crate::flow::health::Evidence;
use crate::id::ProfileId;
use crate::packet::PacketHeader;
use crate::profile::xor_shift::XorShift;
use crate::storage::{Room, Slots};

/// A failure that moves a context down after some others.
const FAILURE: Evidence =
    Evidence { nack: Threshold { k: 9, n: 16 }, is_urgent: false, is_repair: false, static_nack: None };

/// Requests, or notifications, that mostly count by one. The client takes another port now and then.
struct Messages {
    six: bool,
    notifies: bool,
    /// IP-IDs: zero, counting, counting by small steps, or irregular.
    ids: u64,
    /// Checksums: correct, zero, or wrong.
    sums: u64,
    /// That of the client.
    port: u16,
    id: u16,
    message_id: u16,
    number: u16,
}

impl Messages {
    fn new(random: &mut XorShift) -> Self {
        Self {
            six: random.once_in(2),
            notifies: random.once_in(2),
            ids: random.below(4),
            sums: random.below(5),
            port: 0xC011,
            id: random.below(65_536) as u16,
            message_id: random.below(65_536) as u16,
            number: random.below(65_536) as u16,
        }
    }

    fn next(&mut self, random: &mut XorShift) -> Vec<u8> {
        if random.once_in(80) {
            self.port = 0xC000 | random.below(64) as u16;
        }
        let step = if random.once_in(40) { random.below(9) as u16 } else { 1 };
        self.message_id = self.message_id.wrapping_add(step);
        self.number = self.number.wrapping_add(if random.once_in(40) { 3 } else { step });
        self.id = match self.ids {
            0 => 0,
            1 => self.id.wrapping_add(step),
            2 => self.id.wrapping_add(1 + random.below(5) as u16),
            _ => random.below(65_536) as u16,
        };
        let kind = if random.once_in(60) { 0x40 } else { 0x50 };
        let mut coap = vec![kind | 1, if self.notifies { 0x45 } else { 1 }];
        coap.extend(self.message_id.to_be_bytes());
        coap.push(7);
        if self.notifies {
            let [high, low] = self.number.to_be_bytes();
            coap.extend(if high > 0 { vec![0x62, high, low] } else { vec![0x61, low] });
        } else {
            coap.extend(*b"\xb4time");
        }
        if self.notifies || random.once_in(30) {
            coap.push(0xFF);
            coap.extend((0..1 + random.below(9)).map(|octet| octet as u8));
        }
        let len = (8 + coap.len()) as u16;
        let mut packet = if self.six {
            let mut ip = vec![0x60, 0, 0, 0];
            ip.extend(len.to_be_bytes());
            ip.extend([protocol::UDP, 64]);
            ip.extend([0xFD; 32]);
            ip
        } else {
            let mut ip = vec![0x45, 0];
            ip.extend((20 + len).to_be_bytes());
            ip.extend(self.id.to_be_bytes());
            ip.extend([0x40, 0, 64, protocol::UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            let sum = Ipv4::checksum_of(&ip);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            ip
        };
        let ends = if self.six { &packet[8..] } else { &packet[12..] };
        let mut udp = vec![];
        let ports = [self.port, 5683];
        let [source, destination] = if self.notifies { [ports[1], ports[0]] } else { ports };
        udp.extend([source.to_be_bytes(), destination.to_be_bytes()].concat());
        udp.extend(len.to_be_bytes());
        let sum = Sum::ZERO.octets(ends).octets(&udp).octets(&coap);
        let right = sum.word(len).word(protocol::UDP.into()).checksum();
        udp.extend(match self.sums {
            0 => [0; 2],
            1 => [1, 2],
            _ => right.to_be_bytes(),
        });
        packet.extend(udp);
        packet.extend(coap);
        packet
    }
}

#[test]
fn both_paths_of_the_decompressor_agree() {
    let (mut predicted, mut full) = (0, 0);
    for seed in 1..=60 {
        let random = &mut XorShift(0x9E37_79B9_7F4A_7C15 ^ seed);
        let profiles = ProfileSet::v1().with(ProfileId::Coap).unwrap();
        let integrity = [Integrity::None, Integrity::Crc32][(seed % 2) as usize];
        let channel = Channel::new(CidSpace::Small, 0, profiles).unwrap().with_integrity_below(integrity);
        let mut config = CompressorConfig::new(channel);
        config.coap.format = [FormatPolicy::Pt0, FormatPolicy::Pt1, FormatPolicy::Pt0c][seed as usize % 3];
        let mut near = Compressor::new(config, CompressorMemory::owned(&channel));
        let far_config = DecompressorConfig::new(channel);
        let mut rooms = [[Template::EMPTY; 16]; 2];
        let [mut a, mut b] = rooms.each_mut().map(|rooms| Template::share(Slots::Lent(rooms)));
        let [mut fast, mut slow] = [CoapReceiverContext::new(); 2];
        let (mut messages, mut now) = (Messages::new(random), Instant::ZERO);
        for i in 0..300 {
            let wait = if random.once_in(60) { random.below(4_000) } else { 20 };
            now = Instant::from_nanos(now.as_nanos() + wait * 1_000_000);
            let packet = messages.next(random);
            let mut octets = [0; 128];
            let done = near.compress(now, &packet, &mut octets).unwrap();
            if done.profile != ProfileId::Coap || random.once_in(30) {
                continue;
            }
            if random.once_in(30) && !done.format.is_initialization() {
                octets[random.below(done.header_out as u64) as usize] ^= 1 << random.below(8);
            }
            let Some(header) = PacketHeader::read(&octets[..done.len], CidSpace::Small) else { continue };
            if header.first & 0b1111_1110 == 0b1111_1100 && !done.format.is_initialization() {
                continue;
            }
            let (at, header) = (Moment::from(now), &header);
            let incoming =
                || IncomingPacket { at, header, config: &far_config, has_failed: false, linked: None };
            let (mut back, mut other_back) = ([0; 128], [0; 128]);
            let (mut packet, mut other) = (incoming(), incoming());
            let outcome = if done.format.is_initialization() {
                let got =
                    fast.initialize(at, header, &mut CoapReceiverMemory::of(&mut packet, &mut a), &mut back);
                let memory = &mut CoapReceiverMemory::of(&mut other, &mut b);
                [got, slow.initialize(at, header, memory, &mut other_back)]
            } else {
                let early = fast.decompress_message(&mut packet, &mut a, &mut back);
                predicted += usize::from(early.is_some());
                full += usize::from(early.is_none());
                let memory = &mut CoapReceiverMemory::of(&mut packet, &mut a);
                let got = early.ok_or(()).or_else(|()| fast.compressed(at, header, memory, &mut back));
                let memory = &mut CoapReceiverMemory::of(&mut other, &mut b);
                [got, slow.compressed(at, header, memory, &mut other_back)]
            };
            let [got, other] = outcome;
            assert_eq!(got, other, "seed {seed}, packet {i}, {:?}", done.format);
            match got {
                Ok(verified) => assert_eq!(back[..verified.len], other_back[..verified.len]),
                Err(_) => {
                    for context in [&mut fast, &mut slow] {
                        context.arrivals.note_failure(at);
                        context.health.note_failure(&FAILURE);
                    }
                }
            }
            let both = [format!("{fast:?} {a:?}"), format!("{slow:?} {b:?}")];
            assert_eq!(both[0], both[1], "seed {seed}, packet {i}, {:?}", done.format);
        }
    }
    assert!(predicted > 4_000 && full > 400, "{predicted} predicted, {full} not");
}
