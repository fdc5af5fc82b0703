//! Tests of the profile between two ends of a channel.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::*;
use crate::channel::{Channel, ProfileSet};
use crate::cid::{Cid, CidSpace};
use crate::compressor::{Compressor, CompressorConfig, CompressorMemory};
use crate::decompressor::{DecompressError, Decompressor, DecompressorConfig, DecompressorMemory};
use crate::endpoint::Endpoint;
use crate::feedback::{AckType, Feedback};
use crate::mode::Mode;
use crate::id::Format;
use crate::flow::refresh::Refresh;
use thinair_wire::time::Instant;

/// Octets of an IR packet around the IPv6 header: type, profile and CRC.
const IR_LEN: usize = 3 + Ipv6::LEN;

fn channel(cids: CidSpace) -> Channel {
    Channel::new(cids, 7, ProfileSet::v1().with(ProfileId::Toy).unwrap()).unwrap()
}

fn compressor(channel: Channel) -> Compressor<'static> {
    Compressor::new(CompressorConfig::new(channel), CompressorMemory::owned(channel.sizes().blocks(0)))
}

fn decompressor(channel: Channel) -> Decompressor<'static> {
    Decompressor::new(DecompressorConfig::new(channel), DecompressorMemory::owned(channel.sizes().blocks(0)))
}

fn packet(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::from([0x6A, 0xB1, 0x23, 0x45, 0, 0, next_header, 64]);
    packet[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    packet.extend_from_slice(
        b"\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x01\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x02",
    );
    packet.extend_from_slice(payload);
    packet
}

fn toy(payload: &[u8]) -> Vec<u8> {
    packet(NEXT_HEADER, payload)
}

/// Returns a compressor with an established context, and the decompressor.
fn established() -> (Compressor<'static>, Decompressor<'static>) {
    let (mut out, mut back) = (compressor(channel(CidSpace::Small)), decompressor(channel(CidSpace::Small)));
    let mut rohc = [0; 128];
    for _ in 0..out.config.repetitions {
        let len = out.compress(Instant::ZERO, &toy(b"."), &mut rohc).unwrap().len;
        back.decompress(Instant::ZERO, &rohc[..len], &mut [0; 128]).unwrap();
    }
    (out, back)
}

#[test]
fn packets_come_back_bit_for_bit() {
    for (cids, uo_0_len) in [(CidSpace::Small, 1), (CidSpace::Large, 2)] {
        let (mut out, mut back) = (compressor(channel(cids)), decompressor(channel(cids)));
        let (mut rohc, mut ip) = ([0; 256], [0; 256]);
        for i in 0..40_u8 {
            let payload: Vec<u8> = (0..i).collect();
            let done = out.compress(Instant::ZERO, &toy(&payload), &mut rohc).unwrap();
            let (format, header_out) =
                if i < 4 { (Format::Ir, IR_LEN + uo_0_len - 1) } else { (Format::Uo0, uo_0_len) };
            assert_eq!((done.profile, done.format), (ProfileId::Toy, format), "packet {i}");
            assert_eq!((done.header_in, done.header_out), (Ipv6::LEN, header_out), "packet {i}");
            assert_eq!(done.len, header_out + payload.len());

            let seen = back.decompress(Instant::ZERO, &rohc[..done.len], &mut ip).unwrap();
            assert_eq!((seen.profile, seen.format), (ProfileId::Toy, format));
            assert_eq!((seen.header_in, seen.header_out), (header_out, Ipv6::LEN));
            assert_eq!(ip[..seen.len], toy(&payload), "packet {i}");
            let sn = |context: crate::ContextState| context.sn;
            assert_eq!(back.contexts().next().and_then(sn), out.context(Cid::ZERO).and_then(sn));
        }
    }
}

#[test]
fn whatever_differs_but_the_length_is_another_flow() {
    let (mut out, mut back) = (compressor(channel(CidSpace::Small)), decompressor(channel(CidSpace::Small)));
    let (mut rohc, mut ip) = ([0; 128], [0; 128]);
    // An octet each of Traffic Class, Flow Label, Hop Limit, source and destination; and a payload.
    let flows = [0, 1, 3, 7, 23, 39].map(|at| {
        let mut packet = toy(b"same");
        packet[at] ^= u8::from(at > 0);
        packet
    });
    for round in 0..6 {
        for (cid, packet) in flows.iter().enumerate() {
            let done = out.compress(Instant::ZERO, packet, &mut rohc).unwrap();
            assert_eq!((done.cid.index(), done.profile), (cid, ProfileId::Toy));
            let header_out = if round < 4 { IR_LEN } else { 1 } + usize::from(cid > 0);
            assert_eq!(done.header_out, header_out);
            let len = back.decompress(Instant::ZERO, &rohc[..done.len], &mut ip).unwrap().len;
            assert_eq!(ip[..len], packet[..]);
        }
    }
    let longer = out.compress(Instant::ZERO, &toy(b"another length"), &mut rohc).unwrap();
    assert_eq!((longer.cid, longer.header_out), (Cid::ZERO, 1));
}

#[test]
fn flows_with_the_same_hash_are_told_apart() {
    let mut out = compressor(channel(CidSpace::Small));
    let labeled = |label: u16| {
        let mut packet = toy(b".");
        packet[2..4].copy_from_slice(&label.to_be_bytes());
        packet
    };
    // 24 bits of a hash are kept, so that two of 65,536 flows have equal ones.
    let mut labels = BTreeMap::new();
    let two = (0..=u16::MAX).find_map(|label| {
        let packet = labeled(label);
        let packet = ToyPacket::of(&HeaderChain::parse(&packet).unwrap()).unwrap();
        Some([labels.insert(out.flows.hash(&packet) & 0x00FF_FFFF, label)?, label])
    });
    let cids = two
        .unwrap()
        .map(|label| out.compress(Instant::ZERO, &labeled(label), &mut [0; 128]).unwrap().cid.value());
    assert_eq!(cids, [0, 1]);
}

#[test]
fn other_packets_go_by_other_profiles() {
    let profile_of = |packet: &[u8], profiles| {
        let channel = Channel::new(CidSpace::Small, 7, profiles).unwrap();
        let (mut out, mut back) = (compressor(channel), decompressor(channel));
        let (mut rohc, mut ip) = ([0; 128], [0; 128]);
        let done = out.compress(Instant::ZERO, packet, &mut rohc).unwrap();
        let len = back.decompress(Instant::ZERO, &rohc[..done.len], &mut ip).unwrap().len;
        assert_eq!(ip[..len], *packet);
        done.profile
    };
    let all = channel(CidSpace::Small).profiles();
    assert_eq!(profile_of(&toy(b"toy"), all), ProfileId::Toy);
    assert_eq!(profile_of(&toy(b"toy"), ProfileSet::v1()), ProfileId::Ip);
    assert_eq!(profile_of(&packet(254, b"toy"), all), ProfileId::Ip);
    assert_eq!(profile_of(&packet(17, b"\x12\x34\x56\x78\0\x0A\x9A\xBC??"), all), ProfileId::Udp);
    assert_eq!(profile_of(&packet(41, &toy(b"toy")), all), ProfileId::Ip);
    // Behind an extension header, and with one octet more than Payload Length.
    let extended = packet(60, b"\xFD\0\x01\x04\0\0\0\0toy");
    assert_ne!(profile_of(&extended, all), ProfileId::Toy);
    let mut longer = toy(b"toy");
    longer.push(0);
    assert_eq!(profile_of(&longer, all), ProfileId::Uncompressed);
}

#[test]
fn a_damaged_octet_is_not_delivered() {
    let mut rohc = [0; 64];
    // An IR packet, each bit of which is wrong once.
    let ir = compressor(channel(CidSpace::Small)).compress(Instant::ZERO, &toy(b"odd"), &mut rohc).unwrap();
    for bit in 0..8 * ir.header_out {
        let mut damaged = rohc;
        damaged[bit / 8] ^= 0x80 >> (bit % 8);
        let mut back = decompressor(channel(CidSpace::Small));
        let done = back.decompress(Instant::ZERO, &damaged[..ir.len], &mut [0; 64]);
        assert!(done.is_err(), "bit {bit}: {done:?}");
        assert_eq!(back.contexts().count(), 0, "bit {bit}");
    }
    // A UO-0 packet likewise, with a new context each time, since failures damage it.
    let after = |packet: &[u8]| established().1.decompress(Instant::ZERO, packet, &mut [0; 64]);
    let (mut out, _) = established();
    for _ in 0..16 {
        let uo_0 = out.compress(Instant::ZERO, &toy(b"odd"), &mut rohc).unwrap();
        assert_eq!((uo_0.format, uo_0.len), (Format::Uo0, 4));
        assert!(after(&rohc[..uo_0.len]).is_ok());
        for bit in 0..8 {
            let mut damaged = rohc;
            damaged[0] ^= 0x80 >> bit;
            let done = after(&damaged[..uo_0.len]);
            assert!(done.is_err(), "bit {bit}: {done:?}");
        }
        // Two octets of payload instead of three: one bit of Payload Length.
        assert_eq!(after(&rohc[..uo_0.len - 1]), Err(DecompressError::Crc(Cid::ZERO, Format::Uo0)));
    }
}

#[test]
fn a_packet_that_was_cut_short_is_not_delivered() {
    let mut rohc = [0; 64];
    let ir = compressor(channel(CidSpace::Small)).compress(Instant::ZERO, &toy(b"odd"), &mut rohc).unwrap();
    for len in 1..ir.len {
        let mut back = decompressor(channel(CidSpace::Small));
        let done = back.decompress(Instant::ZERO, &rohc[..len], &mut [0; 64]);
        assert_eq!(done, Err(DecompressError::Malformed(Cid::ZERO)), "{len} octets");
    }
}

#[test]
fn feedback_brings_an_ir_packet_where_the_context_is_missing() {
    let ends = |mode| {
        let channel = channel(CidSpace::Small);
        let decompressor = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        Endpoint::owned(CompressorConfig::new(channel), decompressor)
    };
    let (mut here, mut there) = (ends(Mode::Optimistic), ends(Mode::Optimistic));
    let (mut rohc, mut ip) = ([0; 128], [0; 128]);
    let mut formats = Vec::new();
    for i in 0..12_u64 {
        let now = Instant::from_millis(2_000 * i);
        if i == 8 {
            there = ends(Mode::Optimistic);
        }
        let sent = here.send(now, &toy(b"ping"), &mut rohc).unwrap();
        let done = there.receive(now, &rohc[..sent.len], &mut ip);
        assert_eq!(done.is_ok(), i != 8, "{done:?}");
        assert!(done.is_err() || ip[..done.unwrap().len] == toy(b"ping"));
        formats.push(sent.format);
        while let Some(len) = there.poll_feedback(&mut rohc) {
            let _ = here.receive(now, &rohc[..len], &mut ip);
        }
    }
    let (ir, uo_0) = (Format::Ir, Format::Uo0);
    assert_eq!(formats, [ir, ir, ir, ir, uo_0, uo_0, uo_0, uo_0, uo_0, ir, uo_0, uo_0]);
    assert_eq!(here.compressor.context(Cid::ZERO).unwrap().mode, Mode::Optimistic);
}

/// Sends from one source after another, and returns the format of each first packet. The decompressor is a new one `from` that source
/// on.
fn first_formats(mode: Mode, from: u8) -> Vec<Format> {
    let ends = || {
        let channel = channel(CidSpace::Small);
        let decompressor = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        Endpoint::owned(CompressorConfig::new(channel), decompressor)
    };
    let (mut here, mut there, mut now) = (ends(), ends(), Instant::ZERO);
    let (mut rohc, mut ip) = ([0; 128], [0; 128]);
    let mut formats = Vec::new();
    for source in 0..6 {
        if source == from {
            there = ends();
        }
        for number in 0..6 {
            now = now + core::time::Duration::from_secs(2);
            let mut packet = toy(b"news");
            packet[23] = source;
            let sent = here.send(now, &packet, &mut rohc).unwrap();
            if number == 0 {
                formats.push(sent.format);
            }
            let done = there.receive(now, &rohc[..sent.len], &mut ip);
            assert_eq!(done.is_ok(), source != from || number > 0, "{done:?}");
            assert!(done.is_err() || ip[..done.unwrap().len] == packet);
            while let Some(len) = there.poll_feedback(&mut rohc) {
                let _ = here.receive(now, &rohc[..len], &mut ip);
            }
        }
    }
    formats
}

#[test]
fn a_new_flow_has_an_acknowledged_one_as_its_base() {
    let (ir, ir_cr) = (Format::Ir, Format::IrCr);
    assert_eq!(first_formats(Mode::Optimistic, u8::MAX), [ir, ir_cr, ir_cr, ir_cr, ir_cr, ir_cr]);
    // Without acknowledgments there is no base.
    assert_eq!(first_formats(Mode::Unidirectional, u8::MAX), [ir; 6]);
}

#[test]
fn a_base_that_the_decompressor_lacks_is_given_up() {
    let (ir, ir_cr) = (Format::Ir, Format::IrCr);
    // The flow that has asked for its header is the next base.
    assert_eq!(first_formats(Mode::Optimistic, 3), [ir, ir_cr, ir_cr, ir_cr, ir_cr, ir_cr]);

    let mut out = compressor(channel(CidSpace::Small));
    let format = |out: &mut Compressor<'static>, source: u8| {
        let mut packet = toy(b".");
        packet[23] = source;
        out.compress(Instant::ZERO, &packet, &mut [0; 128]).unwrap().format
    };
    let answer = |out: &mut Compressor<'static>, cid: u16, ack| {
        let mut element = [0; 16];
        let feedback = Feedback::new(Cid::new(cid).unwrap(), ack);
        let len = feedback.write(CidSpace::Small, &mut element).unwrap();
        out.receive_feedback(Instant::ZERO, &element[1..len]).unwrap();
    };
    assert_eq!(format(&mut out, 0), ir);
    answer(&mut out, 0, AckType::Ack);
    assert_eq!(format(&mut out, 1), ir_cr);
    answer(&mut out, 1, AckType::StaticNack);
    // Neither that flow nor a new one refers to it any longer.
    assert_eq!([1, 2].map(|source| format(&mut out, source)), [ir; 2]);
    answer(&mut out, 0, AckType::Ack);
    assert_eq!(format(&mut out, 3), ir_cr);
}

#[test]
fn a_refresh_is_an_ir_packet() {
    let refresh = Refresh::Periodic { packets: Some(8), time: None, backoff: false };
    let config = CompressorConfig::new(channel(CidSpace::Small)).with_refresh(refresh);
    let mut out = Compressor::new(config, CompressorMemory::owned(config.channel.sizes().blocks(0)));
    let mut rohc = [0; 128];
    let irs = (0..28).filter(|_| {
        let done = out.compress(Instant::ZERO, &toy(b"."), &mut rohc).unwrap();
        done.format == Format::Ir
    });
    assert_eq!(irs.collect::<Vec<_>>(), [0, 1, 2, 3, 8, 16, 24]);
}

#[test]
fn damage_that_goes_on_moves_the_state_down_and_an_ir_packet_moves_it_up() {
    let (mut out, mut back) = established();
    let mut rohc = [0; 128];
    let mut states = Vec::new();
    for _ in 0..6 {
        let len = out.compress(Instant::ZERO, &toy(b"."), &mut rohc).unwrap().len;
        rohc[0] ^= 1;
        assert!(back.decompress(Instant::ZERO, &rohc[..len], &mut [0; 128]).is_err());
        states.push(back.contexts().next().unwrap().state);
    }
    assert_eq!(states, ["FC", "FC", "FC", "FC", "SC", "NC"]);
    let len = compressor(out.config.channel).compress(Instant::ZERO, &toy(b"."), &mut rohc).unwrap().len;
    assert!(back.decompress(Instant::ZERO, &rohc[..len], &mut [0; 128]).is_ok());
    assert_eq!(back.contexts().next().unwrap().state, "FC");
}

#[test]
fn fields_are_told_by_their_names() {
    let (mut out, back) = established();
    let mut rohc = [0; 128];
    let len = out.compress(Instant::ZERO, &toy(b"."), &mut rohc).unwrap().len;
    let names = |packet: &[u8]| {
        let mut names = Vec::new();
        let told = back.dissect(packet, |field| names.push(field.name)).unwrap();
        (told, names)
    };
    let (told, fields) = names(&rohc[..len]);
    assert_eq!(told, (Cid::ZERO, ProfileId::Toy, Format::Uo0));
    assert!(fields.ends_with(&["MSN", "CRC"]), "{fields:?}");
    let len = compressor(out.config.channel).compress(Instant::ZERO, &toy(b"."), &mut rohc).unwrap().len;
    let (told, fields) = names(&rohc[..len]);
    assert_eq!(told, (Cid::ZERO, ProfileId::Toy, Format::Ir));
    assert!(fields.ends_with(&["Hop Limit", "Source Address", "Destination Address"]), "{fields:?}");
}
