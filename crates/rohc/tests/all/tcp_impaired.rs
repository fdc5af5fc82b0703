//! Tests of profile 0x0006 over links that lose, delay, repeat and damage packets: a delivered packet equals the one
//! sent.

use std::collections::VecDeque;

use crate::common::tcp::{Outer, TcpPacket, sack, timestamps};
use crate::common::{Impairment, SplitMix64, cases};
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Endpoint, Instant, Mode, ProfileId, ProfileSet,
};
use thinair_wire::checksum::Sum;

/// Content of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TcpTraffic {
    /// Segments of one size, with retransmissions.
    Bulk,
    /// Acknowledgments, with SACK now and then.
    Acks,
    /// Segments of any size in both directions.
    Talk,
}

/// Behavior of IP-IDs; `None` is IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ids {
    None,
    Zero,
    Random,
    Counts,
    /// Other flows of the host use some, too.
    Shared,
}

const KINDS: [TcpTraffic; 3] = [TcpTraffic::Bulk, TcpTraffic::Acks, TcpTraffic::Talk];
const IDS: [Ids; 5] = [Ids::None, Ids::Zero, Ids::Random, Ids::Counts, Ids::Shared];

/// One direction of a connection.
struct TcpFlow {
    packet: TcpPacket,
    kind: TcpTraffic,
    ids: Ids,
    stamps: bool,
    /// TTL and DSCP change now and then: the TCP checksum does not cover them.
    moves: bool,
    time: u32,
}

impl TcpFlow {
    fn new(kind: TcpTraffic, ids: Ids, stamps: bool) -> Self {
        let packet = TcpPacket::new(vec![Outer::new(ids == Ids::None)], 4000);
        Self { packet, kind, ids, stamps, moves: true, time: 90_000 }
    }

    fn next(&mut self, random: &mut SplitMix64) -> Vec<u8> {
        let packet = &mut self.packet;
        let ip = &mut packet.ips[0];
        match self.ids {
            Ids::None => {}
            Ids::Zero => ip.id = 0,
            Ids::Random => ip.id = random.next() as u16,
            Ids::Counts => ip.id = ip.id.wrapping_add(1),
            Ids::Shared => ip.id = ip.id.wrapping_add(1 + random.below(3) as u16),
        }
        if self.moves && random.once_in(100) {
            ip.ttl = 60 + random.below(4) as u8;
        }
        if self.moves && random.once_in(200) {
            ip.tos = (random.below(3) as u8) << 2;
        }
        let tcp = &mut packet.tcp;
        let forward = |value: &mut u32, by: u64| *value = value.wrapping_add(by as u32);
        self.time += random.below(4) as u32;
        let mut options = if self.stamps { timestamps(self.time, self.time - 40) } else { Vec::new() };
        tcp.psh = random.once_in(4);
        match self.kind {
            TcpTraffic::Bulk => {
                forward(&mut tcp.sequence_number, packet.payload.len() as u64);
                packet.payload = vec![random.next() as u8; 1448];
                if random.once_in(40) {
                    forward(&mut tcp.sequence_number, 0_u64.wrapping_sub(1448 * 5));
                }
            }
            TcpTraffic::Acks => {
                forward(&mut tcp.acknowledgment_number, 1448 * (1 + random.below(2)));
                if random.once_in(8) {
                    tcp.window = tcp.window.wrapping_add(random.below(2_000) as u16);
                }
                if random.once_in(10) {
                    let start = tcp.acknowledgment_number.wrapping_add(1448);
                    options.extend_from_slice(&sack(&[(start, start.wrapping_add(1448))]));
                }
            }
            TcpTraffic::Talk => {
                forward(&mut tcp.sequence_number, packet.payload.len() as u64);
                forward(&mut tcp.acknowledgment_number, random.below(300));
                packet.payload = vec![random.next() as u8; random.below(200) as usize];
            }
        }
        packet.options = options;
        packet.octets()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct TcpImpairedCount {
    sent: usize,
    arrived: usize,
    right: usize,
    /// Delivered with wrong octets.
    wrong: usize,
    refused: usize,
    /// Rejected, although neither damaged, late nor a duplicate.
    lost_with_others: usize,
    octets: usize,
}

impl TcpImpairedCount {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.arrived += other.arrived;
        self.right += other.right;
        self.wrong += other.wrong;
        self.refused += other.refused;
        self.lost_with_others += other.lost_with_others;
        self.octets += other.octets;
    }
}

fn endpoint(mode: Mode, seed: u64) -> Endpoint<'static> {
    let profiles = ProfileSet::v1().with(ProfileId::Tcp).unwrap();
    let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
    let config = CompressorConfig { seed, ..CompressorConfig::new(channel) };
    let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(4)));
    let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
    Endpoint::new(compressor, Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(4))))
}

fn run(mut flow: TcpFlow, mode: Mode, what: Impairment, seed: u64, packets: usize) -> TcpImpairedCount {
    let (mut near, mut far) = (endpoint(mode, seed), endpoint(mode, seed));
    let mut random = SplitMix64(seed);
    let mut count = TcpImpairedCount::default();
    let (mut rohc, mut back) = (vec![0; 4096], vec![0; 4096]);
    let (mut losing, mut quiet) = (0, 20);
    // Packets in flight: number of others that still overtake them, ROHC packet, original packet, and true if it was
    // not impaired.
    let mut held: VecDeque<(u64, Vec<u8>, Vec<u8>, bool)> = VecDeque::new();
    for i in 0..packets {
        let now = Instant::from_millis(20 * i as u64);
        let packet = flow.next(&mut random);
        let done = near.send(now, &packet, &mut rohc).unwrap();
        let len = done.len;
        count.sent += 1;
        count.octets += done.header_out;
        let mut arriving = Vec::new();
        if quiet == 0 && what.loss > 0 && random.once_in(what.loss) {
            losing = what.burst;
            // Two events in a row would be a longer one.
            quiet = what.burst + 4;
        }
        quiet = u64::saturating_sub(quiet, 1);
        if losing > 0 {
            losing -= 1;
        } else {
            let mut octets = rohc[..len].to_vec();
            let mut is_sound = true;
            if what.flip > 0 && random.once_in(what.flip) {
                // The payload is not covered by ROHC.
                let bit = random.below(done.header_out as u64 * 8) as usize;
                octets[bit / 8] ^= 1 << (bit % 8);
                is_sound = false;
            }
            if what.duplicate > 0 && random.once_in(what.duplicate) {
                held.push_back((random.below(9), octets.clone(), packet.clone(), false));
            }
            if what.late > 0 && random.once_in(20) {
                held.push_back((1 + random.below(what.late), octets, packet.clone(), false));
            } else {
                arriving.push((octets, packet.clone(), is_sound));
            }
        }
        for (left, octets, packet, is_sound) in std::mem::take(&mut held) {
            match left {
                0 => arriving.push((octets, packet, is_sound)),
                _ => held.push_back((left - 1, octets, packet, is_sound)),
            }
        }
        for (octets, packet, is_sound) in arriving {
            count.arrived += 1;
            match far.receive(now, &octets, &mut back) {
                Ok(done) if back[..done.len] == packet => count.right += 1,
                Ok(_) => count.wrong += 1,
                Err(_) => {
                    count.refused += 1;
                    count.lost_with_others += usize::from(is_sound);
                }
            }
        }
        if mode != Mode::Unidirectional {
            let len = far.send(now, &[0x60; 40], &mut rohc).unwrap().len;
            near.receive(now, &rohc[..len], &mut back).unwrap();
        }
    }
    count
}

fn matrix(what: Impairment, moves: bool, ids: &[Ids], packets: usize) -> TcpImpairedCount {
    let mut all = TcpImpairedCount::default();
    for (kind, ids) in KINDS.iter().flat_map(|kind| ids.iter().map(move |ids| (*kind, *ids))) {
        for mode in [Mode::Unidirectional, Mode::Optimistic] {
            for stamps in [false, true] {
                for seed in 77..77 + cases(2) {
                    let flow = TcpFlow { moves, ..TcpFlow::new(kind, ids, stamps) };
                    let count = run(flow, mode, what, seed, packets);
                    if count.wrong > 0 {
                        println!("{kind:?} {ids:?} {mode:?} {stamps} {seed}: {count:?}");
                    }
                    all.add(count);
                }
            }
        }
    }
    println!("{what:?}: {all:?}");
    all
}

#[test]
fn losses_that_the_window_covers_cost_no_packet_that_arrives() {
    for burst in 1..=3 {
        let all = matrix(Impairment { loss: 20, burst, ..Impairment::default() }, true, &IDS, 1_000);
        assert!(all.arrived + 1_000 < all.sent, "{all:?}");
        assert_eq!((all.wrong, all.refused), (0, 0), "{all:?}");
    }
}

#[test]
fn packets_behind_long_losses_are_right_or_refused() {
    for burst in [6, 12, 20, 40] {
        let what = Impairment { loss: 80, burst, ..Impairment::default() };
        for (moves, ids) in [(false, &IDS[..3]), (true, &IDS[..])] {
            let all = matrix(what, moves, ids, 1_000);
            assert_eq!(all.wrong, 0, "{all:?}");
            assert!(all.refused * 5 < all.arrived, "{all:?}");
        }
    }
}

/// A receiver that gets the segment it missed acknowledges all behind it at once: octets tell no smallest number of packets, from which
/// a counting IP-ID would follow.
#[test]
fn one_acknowledgment_of_many_segments_is_right_or_refused() {
    let (mut right, mut refused) = (0, 0);
    for seed in 0..400 {
        let (mode, mut random) = (Mode::Unidirectional, SplitMix64(seed));
        let (mut near, mut far) = (endpoint(mode, seed), endpoint(mode, seed));
        let mut packet = TcpPacket::new(vec![Outer::new(false)], 4000);
        let (mut rohc, mut back) = ([0; 200], [0; 200]);
        let (pause, lost, mut now) = (60 + random.below(6), 1 + random.below(14), 0);
        for i in 0..80 {
            now += 5 + random.below(100);
            let segments = if i == pause { 60 } else { 1 };
            packet.tcp.acknowledgment_number += 88 * segments;
            packet.ips[0].id += 1;
            let octets = packet.octets();
            let at = Instant::from_millis(if i < pause { now } else { now + 2_000 });
            let len = near.send(at, &octets, &mut rohc).unwrap().len;
            if (pause..pause + lost).contains(&i) {
                continue;
            }
            match far.receive(at, &rohc[..len], &mut back) {
                Ok(done) => {
                    assert_eq!(back[..done.len], octets, "{seed}: packet {i}, {lost} lost behind {pause}");
                    right += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused * 8 < right, "{refused} refused, {right} delivered");
}

/// A sender of segments with timestamps pauses, and the first six segments behind the pause are lost: the timestamps have gone on with the
/// clock, the sequence number has not.
#[test]
fn segments_behind_a_pause_come_back() {
    let (mut gaps, mut refused) = (0, 0);
    for seed in 0..8 {
        let (mode, mut random) = (Mode::Unidirectional, SplitMix64(seed));
        let (mut near, mut far) = (endpoint(mode, seed), endpoint(mode, seed));
        let mut packet = TcpPacket::new(vec![Outer::new(true)], 4000);
        packet.payload = vec![7; 100];
        let (mut rohc, mut back) = ([0; 400], [0; 400]);
        let mut now = 1_000_000;
        for i in 0..2_000 {
            now += if i % 100 == 99 { 100 + random.below(1_900) } else { 20 };
            packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_add(100);
            packet.options = timestamps(now as u32, now as u32 - 40);
            let octets = packet.octets();
            let at = Instant::from_millis(now);
            let len = near.send(at, &octets, &mut rohc).unwrap().len;
            if i > 100 && (i % 100 == 99 || i % 100 < 5) {
                gaps += u32::from(i % 100 == 99);
                continue;
            }
            match far.receive(at, &rohc[..len], &mut back) {
                Ok(done) => assert_eq!(back[..done.len], octets, "{seed}: packet {i}"),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(gaps > 100 && refused * 2 < gaps, "{refused} refused behind {gaps} gaps");
}

/// One checksum in 2^16 equals the sum of the pseudo-header, as one does that the network interface completes. It proves a packet behind
/// a gap as any other one does.
#[test]
fn a_checksum_that_equals_the_sum_of_the_pseudo_header_is_one() {
    for seed in 0..64 {
        let (mode, mut random) = (Mode::Unidirectional, SplitMix64(seed));
        let (mut near, mut far) = (endpoint(mode, seed), endpoint(mode, seed));
        let mut packet = TcpPacket::new(vec![Outer::new(true)], 4000);
        packet.tcp.sequence_number = random.next() as u32;
        let (mut rohc, mut back) = ([0; 400], [0; 400]);
        for i in 0..57_u64 {
            let now = 1_000_000 + 20 * i;
            packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_add(100);
            packet.payload = vec![random.next() as u8; 100];
            packet.payload[..2].fill(0);
            let mut octets = packet.octets();
            if i == 56 {
                let checksum = |octets: &[u8]| u16::from_be_bytes([octets[56], octets[57]]);
                let length = (octets.len() - 40) as u16;
                let sum = Sum::ZERO.octets(&octets[8..40]).word(6).word(length);
                let word = sum.word(!checksum(&octets)).checksum();
                packet.payload[..2].copy_from_slice(&word.to_be_bytes());
                octets = packet.octets();
                assert_eq!(checksum(&octets), !sum.checksum());
            }
            let at = Instant::from_millis(now);
            let len = near.send(at, &octets, &mut rohc).unwrap().len;
            if (40..56).contains(&i) {
                continue;
            }
            match far.receive(at, &rohc[..len], &mut back) {
                Ok(done) => assert_eq!(back[..done.len], octets, "{seed}: packet {i}"),
                Err(error) => assert_eq!(i, 56, "{seed}: {error}"),
            }
        }
    }
}

#[test]
fn late_packets_and_duplicates_are_right_or_refused() {
    for late in [1, 3, 8] {
        for (loss, burst) in [(0, 0), (30, 2)] {
            let what = Impairment { late, duplicate: 20, loss, burst, flip: 0 };
            let all = matrix(what, true, &IDS, 1_000);
            assert_eq!(all.wrong, 0, "{all:?}");
            assert!(all.lost_with_others * 200 < all.arrived, "{all:?}");
        }
    }
}

#[test]
fn damaged_packets_are_refused_and_take_few_others_with_them() {
    let all = matrix(Impairment { flip: 20, ..Impairment::default() }, true, &IDS, 1_000);
    // A CRC of 3 bits would accept one in eight.
    assert!(all.wrong * 40 <= all.refused, "{all:?}");
    assert!(all.lost_with_others * 8 <= all.refused, "{all:?}");
}
