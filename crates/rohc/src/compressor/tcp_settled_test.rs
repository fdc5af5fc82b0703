//! The short way of TCP segments, held against the long one.

use alloc::format;
use alloc::vec::Vec;
use proptest::prelude::*;
use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::tcp::Tcp;

use super::*;
use crate::channel::ProfileSet;
use crate::cid::CidSpace;

const ROOM: usize = 4_096;

fn packet(six: bool, id: u16, ttl: u8, tcp: Tcp<'_>, payload: &[u8]) -> Vec<u8> {
    let mut inside = alloc::vec![0; tcp.len()];
    tcp.write(&mut inside, 0).unwrap();
    inside.extend_from_slice(payload);
    let addresses: &[u8] = if six { &[0xFD; 32] } else { &[10, 0, 0, 1, 10, 0, 0, 2] };
    let sum = Sum::ZERO.octets(addresses).word(6).word(inside.len() as u16).octets(&inside).checksum();
    let sum = sum.wrapping_add(u16::from(tcp.urgent_pointer == 77));
    inside[16..18].copy_from_slice(&sum.to_be_bytes());
    let len = inside.len() as u16;
    let mut whole = Vec::new();
    if six {
        whole.extend_from_slice(&[0x60, 0, 0, 0, (len >> 8) as u8, len as u8, 6, ttl]);
        whole.extend_from_slice(addresses);
    } else {
        whole.extend_from_slice(&[0x45, 0]);
        whole.extend_from_slice(&(len + 20).to_be_bytes());
        whole.extend_from_slice(&id.to_be_bytes());
        whole.extend_from_slice(&[0x40, 0, ttl, 6, 0, 0]);
        whole.extend_from_slice(addresses);
        let sum = Ipv4::checksum_of(&whole);
        whole[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    whole.extend_from_slice(&inside);
    whole
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Results, octets, and the flow after each packet.
    #[test]
    fn a_settled_tcp_flow_is_compressed_like_any_other(
        six: bool,
        stamps: bool,
        kind in 0..3_u8,
        ids in 0..4_u8,
        steps in proptest::collection::vec((0..60_u8, 0..4_u32, any::<u16>()), 150..400),
    ) {
        let channel = Channel::new(CidSpace::Small, 3, ProfileSet::v1().with(ProfileId::Tcp).unwrap()).unwrap();
        let compressor = || Compressor::new(CompressorConfig::new(channel), CompressorMemory::owned(&channel, 0));
        let (mut short, mut long) = (compressor(), compressor());
        let (mut id, mut ttl, mut stamp) = (7_u16, 64_u8, 5_000_u32);
        let mut tcp = Tcp { source_port: 4000, destination_port: 80, ack: true, window: 900, ..Tcp::default() };
        for (i, (what, ahead, random)) in steps.into_iter().enumerate() {
            id = match ids {
                0 => id.wrapping_add(1 + (ahead as u16)),
                1 => 0,
                2 => random,
                _ => id.wrapping_add(u16::from(what > 2)),
            };
            let payload = if kind == 1 { 0 } else if kind == 0 || what > 20 { 100 } else { usize::from(what) };
            let by = if what == 7 { u32::from(random) } else { 1448 * (1 + u32::from(what == 9)) };
            match kind {
                0 => tcp.sequence_number = tcp.sequence_number.wrapping_add(100 * u32::from(what > 3)),
                1 => tcp.acknowledgment_number = tcp.acknowledgment_number.wrapping_add(by),
                _ => {
                    tcp.sequence_number = tcp.sequence_number.wrapping_add(payload as u32);
                    tcp.acknowledgment_number = tcp.acknowledgment_number.wrapping_add(by * (ahead % 2));
                }
            }
            tcp.psh = ahead == 1;
            tcp.urgent_pointer = 0;
            match (i > 130, what) {
                (true, 0) => ttl ^= 1,
                (true, 1) => tcp.window = random,
                (true, 4) => tcp.urgent_pointer = 77,
                _ => {}
            }
            tcp.fin = i > 130 && what == 5;
            stamp += ahead;
            let mut options = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
            options[4..8].copy_from_slice(&stamp.to_be_bytes());
            options[8..].copy_from_slice(&(stamp / 2).to_be_bytes());
            let options = if stamps { &options[..] } else { &[] };
            let packet = packet(six, id, ttl, Tcp { options, ..tcp }, &[3; 100][..payload]);
            let now = Instant::from_millis(10 * i as u64);
            let (mut a, mut b) = ([0; ROOM], [0; ROOM]);
            let x = short.compress(now, &packet, &mut a).unwrap();
            if let Kind::Tcp(context) = long.flows.kind(Cid::ZERO) {
                context.settled = false;
            }
            let y = long.compress(now, &packet, &mut b).unwrap();
            prop_assert_eq!((x, &a[..x.len]), (y, &b[..y.len]), "packet {}", i);
            prop_assert_eq!(format!("{:?}", short.tcp[0]), format!("{:?}", long.tcp[0]), "packet {}", i);
        }
    }
}

#[test]
fn most_packets_of_a_steady_connection_are_settled() {
    for six in [false, true] {
        let channel =
            Channel::new(CidSpace::Small, 3, ProfileSet::v1().with(ProfileId::Tcp).unwrap()).unwrap();
        let mut compressor =
            Compressor::new(CompressorConfig::new(channel), CompressorMemory::owned(&channel, 0));
        let mut header =
            Tcp { source_port: 4000, destination_port: 80, ack: true, window: 900, ..Tcp::default() };
        let (mut settled, mut out) = (0, [0; ROOM]);
        for i in 0..500_u16 {
            header.acknowledgment_number += 2_896;
            let packet = packet(six, i, 64, header, &[]);
            let now = Instant::from_millis(u64::from(i));
            match compressor.settled_segment(now, &packet, &mut out) {
                Some(_) => settled += 1,
                None => assert!(compressor.compress(now, &packet, &mut out).is_ok()),
            }
        }
        assert!(settled > 300, "{settled}");
    }
}
