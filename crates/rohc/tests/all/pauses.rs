//! Packets that come in bursts, and after a loss one by one at growing intervals, as those of TCP when its
//! retransmission timer backs off (RFC 6298, section 5.5): the longer a context rejects them, the fewer arrive to repair
//! it.

use std::time::Duration;

use crate::common::tcp::{Outer, TcpPacket};
use crate::common::{IpLayer, SplitMix64, TestFlow, cases};
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Endpoint, Instant, Interop, Mode, ProfileId, ProfileSet,
};

/// Number of packets in a row whose loss four bits of an SN do not show.
const WRAPS: u64 = 16;

/// Returns the largest number of packets in a row that arrive and are rejected after the losses have ended.
fn refused_in_a_row(
    mode: Mode,
    profiles: ProfileSet,
    seed: u64,
    next: &mut dyn FnMut(bool, &mut SplitMix64) -> Vec<u8>,
) -> usize {
    let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
    let endpoint = || {
        let config = CompressorConfig { seed, ..CompressorConfig::new(channel) };
        let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(4)));
        let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        Endpoint::new(
            compressor,
            Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(4))),
        )
    };
    let (mut near, mut far) = (endpoint(), endpoint());
    let mut random = SplitMix64(seed);
    let (mut rohc, mut back) = (vec![0; 512], vec![0; 512]);
    let mut now = Instant::from_millis(0);
    let mut turn = |now: Instant, is_again: bool, is_lost: bool, answers: bool, random: &mut SplitMix64| {
        let packet = next(is_again, random);
        let len = near.send(now, &packet, &mut rohc).unwrap().len;
        if is_lost {
            return true;
        }
        let got = far.receive(now, &rohc[..len], &mut back);
        let is_right = matches!(got, Ok(done) if back[..done.len] == packet);
        let mut feedback = [0; 64];
        while let Some(len) = far.poll_feedback(&mut feedback) {
            if answers {
                let _ = near.receive(now + Duration::from_millis(1), &feedback[..len], &mut back);
            }
        }
        is_right
    };
    let mut lost = 0;
    for _ in 0..5 + random.below(20) {
        let packets = 1 + random.below(8);
        let is_lost = random.once_in(4) && lost + packets < WRAPS;
        lost = if is_lost { lost + packets } else { 0 };
        for _ in 0..packets {
            turn(now, false, is_lost, !random.once_in(10), &mut random);
            now = now + Duration::from_micros(2);
        }
        now = now + Duration::from_millis(5 + random.below(60));
    }
    let (mut most, mut row) = (0, 0);
    let mut pause = Duration::from_millis(400);
    for _ in 0..8 {
        now = now + pause;
        pause *= 2;
        row = if turn(now, true, false, true, &mut random) { 0 } else { row + 1 };
        most = most.max(row);
    }
    most
}

fn all(name: &str, mode: Mode, one: impl Fn(u64) -> usize) {
    let mut rows = [0; 9];
    let seeds = cases(2_000);
    for seed in 0..seeds {
        rows[one(seed)] += 1;
    }
    println!("{name}, {mode:?}: {rows:?} runs with 0, 1, ... refused in a row");
    // The remaining case: packets were lost and then rejected, 16 are missing, and CRC-3 may not detect it.
    assert!(u64::from(rows[3..].iter().sum::<u32>()) <= seeds / 600, "{name}, {mode:?}: {rows:?}");
}

#[test]
fn what_comes_seldom_is_not_refused_for_long() {
    for mode in [Mode::Unidirectional, Mode::Optimistic] {
        for (name, protocol) in [("IP", 6), ("UDP", 17)] {
            all(name, mode, |seed| {
                let mut flow = TestFlow { protocol, ..TestFlow::udp(vec![IpLayer::new(false, 1)]) };
                refused_in_a_row(mode, ProfileSet::v1(), seed, &mut |_, random| flow.packet(random))
            });
        }
    }
}

#[test]
fn segments_that_are_sent_again_are_not_refused_for_long() {
    for six in [false, true] {
        for mode in [Mode::Unidirectional, Mode::Optimistic] {
            all(if six { "TCP over IPv6" } else { "TCP over IPv4" }, mode, |seed| {
                let mut packet = TcpPacket::new(vec![Outer::new(six)], 4_000);
                packet.payload = vec![7; 200];
                let (mut next, mut timestamp) = (packet.tcp.sequence_number, 1_u32);
                let first = next;
                refused_in_a_row(
                    mode,
                    ProfileSet::v1().with(ProfileId::Tcp).unwrap(),
                    seed,
                    &mut |is_again, random| {
                        packet.ips[0].id = packet.ips[0].id.wrapping_add(1);
                        timestamp += if is_again { 1_000 } else { random.below(3) as u32 };
                        packet.options =
                            [&[1, 1, 8, 10][..], &timestamp.to_be_bytes(), &[0, 0, 0, 9]].concat();
                        packet.tcp.sequence_number = if is_again { first + (next - first) / 2 } else { next };
                        next += if is_again { 0 } else { 200 };
                        packet.octets()
                    },
                )
            });
        }
    }
}

/// Packets that are not delivered of a compressor that does not know of pauses, as those of other implementations: its clock
/// stands still, and the packets arrive at other times.
fn refused_of_another_compressor(ignores_pauses: bool) -> usize {
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
    let mut compressor =
        Compressor::new(CompressorConfig::new(channel), CompressorMemory::owned(channel.sizes().blocks(4)));
    let interop = Interop { ignores_pauses, ..Interop::STANDARD };
    let config = DecompressorConfig { interop, ..DecompressorConfig::new(channel) };
    let mut decompressor = Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(4)));
    let mut random = SplitMix64(1);
    let mut flow = TestFlow::udp(vec![IpLayer::new(false, 1)]);
    let (mut rohc, mut back, mut now, mut refused) = ([0; 100], [0; 100], Instant::ZERO, 0);
    for i in 0..200 {
        now = now + Duration::from_millis(if i % 40 == 39 { 100_000 } else { 5 + random.below(50) });
        let packet = flow.packet(&mut random);
        let sent = compressor.compress(Instant::ZERO, &packet, &mut rohc).unwrap();
        let done = decompressor.decompress(now, &rohc[..sent.len], &mut back);
        refused += usize::from(done.is_err());
        assert!(done.is_err() || done.is_ok_and(|done| back[..done.len] == packet), "packet {i}");
    }
    refused
}

#[test]
fn packets_of_another_compressor_are_delivered_behind_pauses() {
    assert!(refused_of_another_compressor(false) > 0);
    assert_eq!(refused_of_another_compressor(true), 0);
}
