//! Short losses and damage: a delivered packet equals the one sent, or the CRC of its header has collided. Such
//! collisions are counted and bounded. `impaired_matrix.rs` has longer losses, reordering and duplicates.

use std::time::Duration;

use crate::common::{Impairment, IpLayer, SplitMix64, TestFlow};
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Endpoint, Instant, Mode, ProfileSet,
};
use thinair_wire::crc::Check;

#[derive(Clone, Copy, Debug, Default)]
struct ImpairedCount {
    sent: usize,
    arrived: usize,
    right: usize,
    /// Delivered with wrong headers, although the CRC was correct.
    collided: usize,
    /// Delivered with a wrong payload, which ROHC does not cover.
    payload: usize,
    refused: usize,
}

/// Returns the headers of a UDP packet over one IPv4 or IPv6 header in the order of RFC 3095, section 5.9.2.
fn covered(packet: &[u8]) -> Vec<u8> {
    let ranges: &[(usize, usize)] = if packet[0] >> 4 == 4 {
        &[(0, 2), (6, 10), (12, 20), (20, 24), (2, 6), (10, 12), (24, 28)]
    } else {
        &[(0, 4), (6, 40), (40, 44), (4, 6), (44, 48)]
    };
    ranges.iter().flat_map(|&(from, to)| packet[from..to].to_vec()).collect()
}

fn run(six: bool, mode: Mode, what: Impairment, seed: u64, packets: usize) -> ImpairedCount {
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
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
    let mut flow = TestFlow::udp(vec![IpLayer::new(six, 1)]);
    let mut count = ImpairedCount::default();
    let (mut rohc, mut back) = (vec![0; 512], vec![0; 512]);
    let (mut losing, mut quiet) = (0, 0);
    for i in 0..packets {
        let now = Instant::from_millis(20 * i as u64);
        if random.once_in(50) {
            flow.layers[0].ttl = 60 + random.below(4) as u8;
        }
        if random.once_in(30) {
            flow.layers[0].id = flow.layers[0].id.wrapping_add(random.below(40) as u16);
        }
        let packet = flow.packet(&mut random);
        let len = near.send(now, &packet, &mut rohc).unwrap().len;
        count.sent += 1;
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
            if what.flip > 0 && random.once_in(what.flip) {
                let bit = random.below(len as u64 * 8) as usize;
                octets[bit / 8] ^= 1 << (bit % 8);
            }
            arriving.push((octets, packet.clone()));
        }
        for (octets, packet) in arriving {
            count.arrived += 1;
            match far.receive(now, &octets, &mut back) {
                Ok(done) if back[..done.len] == packet => count.right += 1,
                Ok(done) if done.len == 0 => count.refused += 1,
                Ok(done) => {
                    let delivered = &back[..done.len];
                    let same_headers =
                        delivered.len() == packet.len() && covered(delivered) == covered(&packet);
                    let crc = |check: Check| check.of(&covered(delivered)) == check.of(&covered(&packet));
                    if same_headers {
                        count.payload += 1;
                    } else if what.flip > 0 || crc(Check::Crc3) || crc(Check::Crc7) {
                        count.collided += 1;
                    } else {
                        panic!("{delivered:02x?} delivered for {packet:02x?}, and no CRC explains it");
                    }
                }
                Err(_) => count.refused += 1,
            }
            let mut feedback = [0; 64];
            while let Some(len) = far.poll_feedback(&mut feedback) {
                if what.loss == 0 || !random.once_in(what.loss) {
                    let _ = near.receive(now + Duration::from_millis(1), &feedback[..len], &mut back);
                }
            }
        }
    }
    count
}

fn each(what: Impairment) -> impl Iterator<Item = (String, ImpairedCount)> {
    [false, true].into_iter().flat_map(move |six| {
        [Mode::Unidirectional, Mode::Optimistic].into_iter().map(move |mode| {
            let mut all = ImpairedCount::default();
            for seed in 0..5 {
                let count = run(six, mode, what, seed, 20_000);
                all.sent += count.sent;
                all.arrived += count.arrived;
                all.right += count.right;
                all.collided += count.collided;
                all.payload += count.payload;
                all.refused += count.refused;
            }
            let name = format!("{} {mode:?} {what:?}", if six { "IPv6" } else { "IPv4" });
            println!("{name}: {all:?}");
            (name, all)
        })
    })
}

#[test]
fn single_losses_cost_no_other_packet() {
    for (name, count) in each(Impairment { loss: 20, burst: 1, ..Impairment::default() }) {
        assert_eq!(count.right, count.arrived, "{name}");
    }
}

#[test]
fn bursts_shorter_than_the_repetitions_cost_no_other_packet() {
    for (name, count) in each(Impairment { loss: 50, burst: 3, ..Impairment::default() }) {
        assert_eq!(count.right, count.arrived, "{name}");
    }
}

#[test]
fn damage_is_found_as_often_as_the_crc_promises() {
    for (name, count) in each(Impairment { flip: 20, ..Impairment::default() }) {
        // One packet in 20 has a flipped bit; most of the octets are payload.
        assert!(count.collided * 100 < count.arrived, "{name}");
        assert!(count.right * 10 > count.arrived * 8, "{name}");
    }
}
