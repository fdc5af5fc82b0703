//! ROHCv2 (RFC 5225): what the compressor writes, the decompressor reads, bit for bit, whatever the headers.

#![cfg(feature = "v2")]

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::link::{Link, any_flows_come_back};
use crate::common::{IpLayer, SplitMix64, TestFlow, any_flow, cases};
use thinair_rohc::{
    Channel, CidSpace, CompressorConfig, Decompressor, DecompressorConfig, DecompressorMemory, Format,
    Instant, Mode, ProfileId, ProfileSet, Refresh, ReorderRatio,
};
use thinair_wire::header::protocol;

const RATIOS: [ReorderRatio; 4] =
    [ReorderRatio::None, ReorderRatio::Quarter, ReorderRatio::Half, ReorderRatio::ThreeQuarters];

fn link(change: impl Fn(&mut CompressorConfig)) -> Link {
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v2()).unwrap();
    Link::new(channel, Mode::Unidirectional, 0, change)
}

/// A round trip that never reached a format has not tested it.
#[test]
fn every_format_is_reached_and_comes_back() {
    let mut formats = BTreeMap::new();
    for seed in 0..cases(1_000) {
        let ratio = |config: &mut CompressorConfig| config.reorder_ratio = RATIOS[seed as usize % 4];
        any_flows_come_back(ProfileSet::v2(), seed, ratio, &mut formats);
    }
    println!("{formats:?}");
    use Format::{CoCommon, CoRepair, Ir, Pt0Crc3, Pt0Crc7, Pt1Rnd, Pt1SeqId, Pt1SeqTs};
    use Format::{Pt2Rnd, Pt2SeqBoth, Pt2SeqId, Pt2SeqTs};
    let plain: &[_] = &[Ir, CoRepair, CoCommon, Pt0Crc3, Pt0Crc7, Pt1SeqId, Pt2SeqId];
    let rtp: &[_] = &[
        Ir, CoRepair, CoCommon, Pt0Crc3, Pt0Crc7, Pt1Rnd, Pt1SeqId, Pt1SeqTs, Pt2Rnd, Pt2SeqId, Pt2SeqTs,
        Pt2SeqBoth,
    ];
    for (profile, all) in [
        (ProfileId::UdpV2, plain),
        (ProfileId::IpV2, plain),
        (ProfileId::EspV2, plain),
        (ProfileId::UdpLiteV2, plain),
        (ProfileId::RtpV2, rtp),
        (ProfileId::RtpUdpLiteV2, rtp),
    ] {
        for format in all {
            assert!(formats.contains_key(&(profile, *format)), "{profile:?} {format:?} was never reached");
        }
    }
}

#[test]
fn steady_headers_are_as_small_as_the_formats_allow() {
    let last = |layers: Vec<IpLayer>| {
        let mut link = link(|config| config.refresh = Refresh::Off);
        let (mut flow, mut random) = (TestFlow::udp(layers), SplitMix64(1));
        let sizes = (0..20).map(|_| link.carry(&flow.packet(&mut random))).collect::<Vec<_>>();
        (sizes[19].format, sizes[19].header_out)
    };
    assert_eq!(last(vec![IpLayer::new(false, 1)]), (Format::Pt0Crc3, 1 + 2));
    assert_eq!(last(vec![IpLayer::new(true, 1)]), (Format::Pt0Crc3, 1 + 2));
}

/// Some senders name the other version of IP in front of an inner header.
#[test]
fn the_version_of_an_inner_header_is_its_own() {
    for (inner_is_v6, other) in [(false, protocol::IPV6), (true, protocol::IPV4)] {
        let mut link = link(|_| ());
        let layers = vec![IpLayer::new(true, 1), IpLayer::new(inner_is_v6, 2)];
        let (mut flow, mut random) = (TestFlow::udp(layers), SplitMix64(1));
        for _ in 0..20 {
            let mut packet = flow.packet(&mut random);
            packet[6] = other;
            let done = link.carry(&packet);
            assert_eq!(done.header_in, packet.len() - flow.payload, "{done:?}");
        }
    }
}

/// Damage is refused or found out, and leaves the context as it was: the packets behind it come back.
#[test]
fn a_damaged_packet_changes_no_context() {
    let mut random = SplitMix64(1);
    let (mut refused, mut behind) = (0, 0);
    for seed in 0..200 {
        let mut link = link(|config| {
            (config.seed, config.refresh) = (seed, Refresh::Off);
        });
        let mut flow = any_flow(&mut random);
        for _ in 0..40 {
            let packet = flow.packet(&mut random);
            let now = link.now + Duration::from_millis(20);
            let len = link.near.send(now, &packet, &mut link.rohc).unwrap().len;
            let mut damaged = link.rohc[..len].to_vec();
            let at = random.below(len as u64) as usize;
            damaged[at] ^= 1 << random.below(8);
            if damaged[0] & 0xFE == 0xFC && link.rohc[0] == damaged[0] {
                // An IR packet has 8 bits of CRC over all of its header.
                refused += u64::from(link.far.receive(now, &damaged, &mut link.back).is_err());
            }
            link.now = now;
            let len = link.near.send(now, &packet, &mut link.rohc).unwrap().len;
            let done = link.far.receive(now, &link.rohc[..len], &mut link.back);
            behind += u64::from(done.is_ok_and(|done| link.back[..done.len] == packet));
        }
    }
    println!("{refused} refused, {behind} of 8000 behind them right");
    assert!(refused > 200 && behind > 7_800, "{refused} {behind}");
}

/// Octets of a string of hexadecimal digits.
fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// A datagram from 192.0.2.1:5000 to 198.51.100.7:5004 with DF and four octets of payload, whose UDP or UDP-Lite checksum is right.
fn datagram(protocol: u8, id: u16, ttl: u8, coverage: Option<u16>, behind: &[u8]) -> Vec<u8> {
    use thinair_wire::checksum::Sum;
    use thinair_wire::header::ipv4::Ipv4;
    let datagram = [behind, &[0xDE, 0xAD, 0xBE, 0xEF]].concat();
    let len = 8 + datagram.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&(20 + len).to_be_bytes());
    packet.extend_from_slice(&id.to_be_bytes());
    packet.extend_from_slice(&[0x40, 0, ttl, protocol, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7]);
    let sum = Ipv4::checksum_of(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut udp = [5000_u16, 5004, coverage.unwrap_or(len), 0].map(u16::to_be_bytes).concat();
    udp.extend_from_slice(&datagram);
    let covered = &udp[..usize::from(coverage.unwrap_or(len))];
    let sum =
        Sum::ZERO.octets(&packet[12..20]).word(u16::from(protocol)).word(len).octets(covered).checksum();
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    packet.extend_from_slice(&udp);
    packet
}

/// Packets that no stream of others has: RTP and UDP-Lite in each format, each behind the one before.
#[test]
fn worked_packets_are_read() {
    let rtp = |n: u16, ts: u32, marker: bool, pt: u8, csrcs: &[u8]| {
        let mut header = vec![0x80 | (csrcs.len() / 4) as u8, u8::from(marker) << 7 | pt];
        header.extend_from_slice(&n.to_be_bytes());
        header.extend_from_slice(&ts.to_be_bytes());
        header.extend_from_slice(&[0x11, 0x22, 0x33, 0x44]);
        [&header[..], csrcs].concat()
    };
    let csrcs = hex("aabbccdd01020304");
    let plain = |n, id, ts, m| datagram(17, id, 64, None, &rtp(n, ts, m, 0, &[]));
    let later = |n, id, ts| datagram(17, id, 63, None, &rtp(n, ts, false, 0, &[]));
    let mixed = |n, id, ts, m| datagram(17, id, 63, None, &rtp(n, ts, m, 96, &csrcs));
    let of_rtp = [
        (
            "fd01ca4011c0000201c63364071388138c11223344040040100018600000010000027107",
            plain(256, 0x1000, 160_007, false),
        ),
        ("0a17bf", plain(257, 0x1001, 160_167, false)),
        ("81a2167d", plain(259, 0x1003, 160_487, false)),
        ("932215dc", plain(260, 0x1007, 160_647, false)),
        ("b5ab0fbb", plain(261, 0x1008, 162_087, true)),
        ("c1935003a7", plain(281, 0x101F, 165_287, false)),
        ("d350ddfec5", plain(282, 0x1020, 166_407, true)),
        ("c9b74470e644", plain(283, 0x1029, 172_807, false)),
        ("fa419c503f1c12e5b68f80f0d2bb", later(284, 0x12E5, 177_807)),
        ("6cd1ca", later(285, 0x12E6, 178_047)),
        ("fa15e518c0601e680289aabbccdd010203049abc50ea", mixed(286, 0x9ABC, 178_767, false)),
        ("bf6e13574bb9", mixed(287, 0x1357, 179_967, true)),
        ("c8234124685598", mixed(288, 0x2468, 177_567, false)),
        ("fb530506003f357954a7186001210002b68f80f00289aabbccdd01020304", mixed(289, 0x3579, 177_807, false)),
    ];
    let lite = |id, coverage| datagram(136, id, 64, Some(coverage), &[]);
    let of_lite = [
        ("fd08fd4088c0000201c63364071388138c0400401000040008ec120100", lite(0x1000, 8)),
        ("09ec12", lite(0x1001, 8)),
        ("fa388a120200000c4e71", lite(0x1002, 12)),
        ("1c00090e11", lite(0x1003, 9)),
    ];
    let lite_rtp = |n, id, ts| datagram(136, id, 64, None, &rtp(n, ts, false, 0, &[]));
    let of_lite_rtp = [
        (
            "fd07344088c0000201c63364071388138c1122334404004010000017e90000010000027107",
            lite_rtp(256, 0x1000, 160_007),
        ),
        ("081748", lite_rtp(257, 0x1001, 160_167)),
    ];
    for packets in [&of_rtp[..], &of_lite, &of_lite_rtp] {
        let channel = Channel::new(CidSpace::Small, 0, ProfileSet::v2()).unwrap();
        let memory = DecompressorMemory::owned(channel.sizes().blocks(0));
        let mut decompressor = Decompressor::new(DecompressorConfig::new(channel), memory);
        let mut out = [0; 200];
        for (i, (header, expected)) in packets.iter().enumerate() {
            let rohc = [&hex(header)[..], &[0xDE, 0xAD, 0xBE, 0xEF]].concat();
            let done = decompressor.decompress(Instant::from_millis(20 * i as u64), &rohc, &mut out);
            let done = done.unwrap_or_else(|error| panic!("{header}: {error}"));
            assert_eq!(&out[..done.len], &expected[..], "{header}: {done:?}");
        }
    }
}
