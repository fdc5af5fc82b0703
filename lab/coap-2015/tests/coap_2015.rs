//! Tests of profile 0x0080: the published sizes, and packets that are restored bit for bit.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use common::{Flow, IdKind, Link, Message, Random};
use proptest::prelude::*;
use thinair_coap_2015::{Coap2015Decompressor, PROFILE};
use thinair_rohc::{
    Channel, CidSpace, DecompressorConfig, DecompressorMemory, Format, Instant, Mode, Ports, ProfileId,
    ProfileSet, Refresh,
};

fn channel(max_cid: u16) -> Channel {
    Channel::new(CidSpace::Small, max_cid, ProfileSet::v1()).unwrap()
}

fn usual() -> Link {
    Link::new(channel(15), Mode::Unidirectional, 16, |_| {})
}

/// Returns the sizes of the packets of a flow by format, the largest of each, payload included. The TTL changes now and then, so
/// that some CRC-3 does not detect the change and CRC-7 must follow in UOR-2.
fn sizes(six: bool, mut talk: Message) -> BTreeMap<Format, usize> {
    // Includes IR-DYN packets half way.
    let refresh = Refresh::Periodic { packets: Some(64), time: None, backoff: false };
    let mut link = Link::new(channel(15), Mode::Unidirectional, 16, |near| near.refresh = refresh);
    let mut flow = Flow::new(six);
    let mut random = Random(1);
    let mut sizes = BTreeMap::new();
    for i in 0..400 {
        flow.ttl = 60 + (i / 20) as u8;
        let sent = link.carry(&flow.carry(&talk.next(), &mut random));
        assert!(sent.is_coap && sent.compressed.cid.value() == 0);
        let size = sizes.entry(sent.compressed.format).or_insert(0);
        *size = sent.compressed.len.max(*size);
    }
    sizes
}

/// Sizes are those of section V.B of the paper, whose 31, 22 and 21 octets of the response over IPv4 include an Add-CID octet.
#[test]
fn packets_are_as_small_as_was_published() {
    for (six, talk, ir, expected) in [
        (false, Message::get(), 38, [15, 6, 5]),
        (false, Message::content(), 51, [30, 21, 20]),
        (true, Message::get(), 61, [12, 6, 5]),
        (true, Message::content(), 74, [27, 21, 20]),
    ] {
        let sizes = sizes(six, talk);
        assert_eq!([Format::IrDyn, Format::Uor2, Format::Uo0].map(|format| sizes[&format]), expected);
        assert_eq!(sizes[&Format::Ir], ir);
    }
}

#[test]
fn the_octets_of_a_flow_are_those_of_the_profile() {
    let mut link = usual();
    let (mut flow, mut random, mut talk) = (Flow::new(false), Random(1), Message::get());
    let mut sent = |talk: &mut Message| {
        let len = link.carry(&flow.carry(&talk.next(), &mut random)).compressed.len;
        link.rohc[..len].to_vec()
    };
    let packets: Vec<_> = (0..5).map(|_| sent(&mut talk)).collect();
    let (ir, uo_0) = (&packets[0], &packets[4]);
    assert_eq!((ir[0], u16::from(ir[1])), (0xFD, PROFILE));
    // IPv4 and UDP; Ver to Code, no changing token, no payload, four octets of options and one of their length.
    assert_eq!(ir[3..17], *b"\x40\x11\x0A\0\0\x01\x0A\0\0\x02\xC0\0\x16\x33");
    assert_eq!(ir[17..26], *b"\x40\x01\0\x05\xB4time");
    // TOS, TTL, IP-ID, flags, no extension headers; the UDP checksum follows, Message ID and SN.
    assert_eq!(
        (&ir[26..28], &ir[30..32], &ir[34..36]),
        (&[0, 64][..], &[0x20, 0][..], &58_468_u16.to_be_bytes()[..])
    );
    assert_eq!((uo_0.len(), uo_0[0] >> 7, &uo_0[3..]), (5, 0, &58_472_u16.to_be_bytes()[..]));
}

#[test]
fn every_type_code_and_bundle_of_options_is_a_flow() {
    let mut link = usual();
    let (mut flow, mut random) = (Flow::new(true), Random(2));
    let mut cid = |talk: &Message| {
        let sent = link.carry(&flow.carry(&talk.clone().next(), &mut random));
        assert!(sent.is_coap);
        sent.compressed.cid.value()
    };
    let get = Message { token: vec![1, 2], ..Message::get() };
    let others = [
        Message { message_type: 1, ..get.clone() },
        Message { code: 0x03, ..get.clone() },
        Message { options: b"\xb4tide".to_vec(), ..get.clone() },
        Message { options: b"".to_vec(), ..get.clone() },
        Message { token: vec![0, 1, 2], ..get.clone() },
        Message { rest: vec![0xFF, 1], ..get.clone() },
    ];
    for _ in 0..3 {
        assert_eq!(cid(&get), 0);
        for (i, other) in others.iter().enumerate() {
            assert_eq!(usize::from(cid(other)), i + 1, "{other:?}");
        }
    }
    // Message ID, token and payload do not identify the flow.
    assert_eq!(cid(&Message { message_id: 9, token: vec![9, 9], ..get }), 0);
}

/// Requests with another code, between equal ports, take over the only CID. After a pause, the pace of the flow before must not
/// make the decompressor doubt them.
#[test]
fn a_flow_that_takes_over_the_cid_has_a_pace_of_its_own() {
    let mut link = Link::new(channel(0), Mode::Optimistic, 16, |_| {});
    let (mut flow, mut random) = (Flow::new(false), Random(4));
    for (code, packets, seconds) in [(1, 32, 0), (3, 2, 16)].repeat(32) {
        let mut talk = Message { code, ..Message::get() };
        link.now = link.now + Duration::from_secs(900);
        for _ in 0..packets {
            link.carry(&flow.carry(&talk.next(), &mut random));
            link.now = link.now + Duration::from_secs(seconds);
        }
    }
}

#[test]
fn a_token_that_changes_is_sent_by_ir_and_then_in_every_packet() {
    let mut link = usual();
    let (mut flow, mut random) = (Flow::new(false), Random(3));
    let mut talk = Message { token: vec![7; 4], ..Message::get() };
    let mut step = |talk: &mut Message| {
        let sent = link.carry(&flow.carry(&talk.next(), &mut random)).compressed;
        (sent.format, sent.header_out)
    };
    let formats: Vec<_> = (0..6).map(|_| step(&mut talk)).collect();
    assert_eq!(formats[..4], [(Format::Ir, 38 + 4); 4]);
    assert_eq!(formats[4..], [(Format::Uo0, 5); 2]);
    talk.token[3] += 1;
    assert_eq!([0; 4].map(|_| step(&mut talk)), [(Format::Ir, 38 + 4); 4]);
    for _ in 0..5 {
        talk.token[0] ^= 0x5A;
        assert_eq!(step(&mut talk), (Format::Uo0, 5 + 4));
    }
}

/// The first packets of a flow have no CRC over the token, so that CRC-3 would not show that it is no longer static.
#[test]
fn a_token_that_changes_at_once_has_a_strong_crc_behind_it() {
    for (mode, strong) in [(Mode::Unidirectional, 5), (Mode::Optimistic, 8)] {
        let mut link = Link::new(channel(15), mode, 16, |_| {});
        let (mut flow, mut random) = (Flow::new(false), Random(3));
        let mut formats = Vec::new();
        for i in 0..20 {
            let mut talk = Message { token: vec![i], message_id: i.into(), ..Message::get() };
            formats.push(link.carry(&flow.carry(&talk.next(), &mut random)).compressed.format);
        }
        let first = formats.iter().position(|format| *format != Format::Ir).unwrap();
        let behind = formats[first..].iter().take_while(|format| **format == Format::Uor2).count();
        assert_eq!(behind, strong, "{formats:?}");
        assert!(formats[first + behind..].iter().all(|format| *format == Format::Uo0), "{formats:?}");
    }
}

#[test]
fn a_message_that_is_not_sound_goes_by_the_udp_profile_and_does_not_keep_others_from_theirs() {
    let mut link = usual();
    let (mut flow, mut random) = (Flow::new(false), Random(4));
    let sound = Message { rest: vec![0xFF, 1, 2], ..Message::get() };
    let broken: [fn(&mut Vec<u8>); 6] = [
        |m| m[0] = 0x80,
        |m| m[0] = 0x49,
        |m| m.truncate(3),
        |m| m.truncate(10),
        |m| m[4] = 0xF4,
        |m| _ = m.splice(9..9, [0xDD, 0, 124].into_iter().chain([0; 137])),
    ];
    for change in broken {
        for _ in 0..12 {
            let mut message = sound.clone().next();
            change(&mut message);
            let sent = link.carry(&flow.carry(&message, &mut random));
            assert_eq!((sent.is_coap, sent.compressed.profile), (false, ProfileId::Udp));
        }
        assert!(link.carry(&flow.carry(&sound.clone().next(), &mut random)).is_coap);
    }
}

#[test]
fn ports_tell_which_packets_are_coap() {
    let packet = Flow::new(false).carry(&Message::get().next(), &mut Random(5));
    let is_coap = |ports: &[u16]| {
        let ports = Ports::of(ports).unwrap();
        Link::new(channel(15), Mode::Unidirectional, 16, |config| config.coap.ports = ports)
            .carry(&packet)
            .is_coap
    };
    assert_eq!([is_coap(&[5_683]), is_coap(&[61_616, 5_683]), is_coap(&[61_616])], [true, true, false]);
}

/// Large CIDs, and extension headers, are left to the profiles of the channel.
#[test]
fn what_is_not_supported_goes_by_other_profiles() {
    let large = Channel::new(CidSpace::Large, 300, ProfileSet::v1()).unwrap();
    let without_udp = Channel::new(CidSpace::Small, 15, ProfileSet::of(&[ProfileId::Ip]).unwrap()).unwrap();
    let packet = Flow::new(true).carry(&Message::get().next(), &mut Random(5));
    for channel in [large, without_udp] {
        assert!(!Link::new(channel, Mode::Optimistic, 16, |_| {}).carry(&packet).is_coap);
    }
    let mut extended = packet;
    extended[6] = 60;
    extended[5] += 8;
    extended.splice(40..40, [17, 0, 1, 4, 0, 0, 0, 0]);
    assert!(!usual().carry(&extended).is_coap);
}

#[test]
fn without_memory_for_its_options_a_flow_goes_by_the_udp_profile() {
    let mut link = Link::new(channel(15), Mode::Unidirectional, 1, |_| {});
    let (mut flow, mut random) = (Flow::new(false), Random(6));
    let mut is_coap = |mut talk: Message| link.carry(&flow.carry(&talk.next(), &mut random)).is_coap;
    let empty = Message { options: vec![], ..Message::get() };
    for _ in 0..20 {
        assert_eq!(
            [is_coap(Message::get()), is_coap(Message::content()), is_coap(empty.clone())],
            [true, false, true]
        );
    }
}

/// With one context and memory for one flow, each flow finds it in use, and frees it by taking over the context.
#[test]
fn a_flow_that_ends_gives_its_memory_back() {
    let mut link = Link::new(channel(0), Mode::Unidirectional, 1, |_| {});
    let (mut flow, mut random) = (Flow::new(false), Random(9));
    let mut is_coap = |mut talk: Message| link.carry(&flow.carry(&talk.next(), &mut random)).is_coap;
    for _ in 0..20 {
        assert_eq!([is_coap(Message::get()), is_coap(Message::content())], [true, false]);
    }
}

/// Reads the packets of a classic pcap file of Ethernet frames.
fn packets(path: &Path) -> Vec<Vec<u8>> {
    let octets = std::fs::read(path).unwrap();
    assert_eq!((&octets[..4], octets[20]), (&[0xD4, 0xC3, 0xB2, 0xA1][..], 1), "little-endian, Ethernet");
    let (mut at, mut packets) = (24, Vec::new());
    while at < octets.len() {
        let len = u32::from_le_bytes(octets[at + 8..at + 12].try_into().unwrap()) as usize;
        let frame = &octets[at + 16..at + 16 + len];
        if matches!(frame[12..14], [0x08, 0x00] | [0x86, 0xDD]) {
            packets.push(frame[14..].to_vec());
        }
        at += 16 + len;
    }
    packets
}

#[test]
fn real_exchanges_come_back() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    // Flows of Node.js have one request each: this profile has nothing to learn from them.
    let is_of_flows = |name: &str| name.starts_with("coap_udp") && !name.contains("node");
    files.retain(|path| is_of_flows(&path.file_name().unwrap().to_string_lossy()));
    files.sort();
    let (mut all, mut coap, mut octets) = (0, 0, 0);
    for file in &files {
        let mut link = Link::new(channel(15), Mode::Optimistic, 16, |_| {});
        for packet in packets(file) {
            all += 1;
            let sent = link.carry(&packet);
            coap += u32::from(sent.is_coap);
            octets += sent.compressed.len;
        }
    }
    println!("{} captures, {all} packets, {coap} of them by profile 0x0080, {octets} octets", files.len());
    // Clients that use a new port after a few requests take contexts from each other, and wait for them: fewer packets go by
    // the profile than if each got one at once (2,919), in fewer octets (116,388).
    assert!(files.len() >= 10 && coap > 500 && coap * 4 > all * 3 && octets <= 116_300);
}

/// Changes a property of a flow, or of a packet within it.
fn change(talk: &mut Message, random: &mut Random) {
    match random.below(9) {
        0 => talk.message_type = random.below(4) as u8,
        1 => talk.code = [0x00, 0x01, 0x03, 0x44, 0x45][random.below(5) as usize],
        2 => talk.message_id = random.next() as u16,
        3 => talk.token = vec![random.next() as u8; random.below(9) as usize],
        4 | 5 => {
            talk.options = match random.below(6) {
                0 => Vec::new(),
                1 => b"\xb4time".to_vec(),
                2 => b"\xc0\x21\x01".to_vec(),
                // Observe.
                3 => vec![0x61, random.below(3) as u8],
                // Largest options that a context keeps, and larger ones.
                4 => [&[0xBD, 121 - 13][..], &[7; 121]].concat(),
                _ => [&[0xBD, 122 - 13][..], &[7; 122]].concat(),
            }
        }
        6 => {
            talk.rest = vec![random.next() as u8; random.below(12) as usize];
            if let Some(marker) = talk.rest.first_mut() {
                *marker = 0xFF;
            }
        }
        _ => {}
    }
}

/// Losses of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Losses {
    None,
    /// Few enough in a row that the repetitions bear them: all other packets come back.
    Borne,
    /// Any: what comes out was sent.
    Any,
}

/// Sends flows of random kinds. Counts the uses of each format.
fn any_talks_come_back(seed: u64, losses: Losses, formats: &mut BTreeMap<(bool, Format), u32>) {
    let mut random = Random(seed);
    let channel = channel([3, 15, 15][random.below(3) as usize]);
    let mode = if random.once_in(2) { Mode::Optimistic } else { Mode::Unidirectional };
    let refresh = match random.below(3) {
        0 => Refresh::Off,
        1 => Refresh::Cycle { ir: 4, so: 20, direct: true },
        _ => Refresh::Periodic { packets: Some(40), time: None, backoff: seed.is_multiple_of(2) },
    };
    let window = if losses == Losses::None { 1 } else { 4 } + random.below(10) as u8;
    let most = [0, 1, 2, 16][random.below(4) as usize];
    let mut link = Link::new(channel, mode, most, |config| {
        config.refresh = refresh;
        config.window = window;
        config.seed = seed;
    });
    let mut flows: Vec<_> = (0..1 + random.below(4))
        .map(|_| {
            let mut talk = if random.once_in(2) { Message::get() } else { Message::content() };
            change(&mut talk, &mut random);
            (Flow::new(random.once_in(2)), talk, random.once_in(3))
        })
        .collect();
    // The outcome of damaged packets is not checked; nothing may panic.
    let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
    let mut victim = Coap2015Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(2)));
    // By CID: number of packets that are still lost or, if negative, must arrive.
    let mut left: BTreeMap<u16, i32> = BTreeMap::new();
    for _ in 0..150 {
        let at = random.below(flows.len() as u64) as usize;
        let (flow, talk, counts) = &mut flows[at];
        if random.once_in(12) {
            change(talk, &mut random);
        }
        if random.once_in(20) {
            match random.below(4) {
                0 => flow.ttl = random.next() as u8,
                1 => flow.tos = random.next() as u8,
                2 => {
                    flow.id_kind = [IdKind::Random, IdKind::Counts, IdKind::Swapped][random.below(3) as usize]
                }
                _ if losses == Losses::None => flow.checksum = !flow.checksum,
                _ => {}
            }
        }
        if let (true, Some(last)) = (*counts, talk.token.last_mut()) {
            *last = last.wrapping_add(1);
        }
        let mut message = talk.next();
        if random.once_in(20) {
            let at = random.below(message.len() as u64) as usize;
            message[at] ^= 1 << random.below(8);
        }
        if random.once_in(30) {
            message.truncate(1 + random.below(message.len() as u64) as usize);
        }
        let packet = flow.carry(&message, &mut random);
        let sent = link.send(&packet);
        let mut damaged = link.rohc[..sent.compressed.len].to_vec();
        if random.once_in(3) {
            let bit = random.below(damaged.len() as u64 * 8) as usize;
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
        let _ = victim.decompress(link.now, &damaged, &mut [0; 512]);
        let left = left.entry(sent.compressed.cid.value()).or_insert(0);
        match losses {
            Losses::None => link.receive(&packet, &sent),
            Losses::Any => link.receive_or_drop(&packet, &sent, random.once_in(4)),
            Losses::Borne => {
                if *left == 0 && random.once_in(10) {
                    *left = 1 + random.below(2) as i32;
                }
                if *left > 0 {
                    *left -= 1;
                    // Then enough packets arrive to repeat the next change.
                    *left = if *left == 0 { -5 } else { *left };
                } else {
                    *left = (*left + 1).min(0);
                    link.receive(&packet, &sent);
                }
            }
        }
        *formats.entry((sent.is_coap, sent.compressed.format)).or_insert(0) += 1;
    }
}

proptest! {
    #[test]
    fn any_talks_between_coap_ports_come_back_bit_for_bit(seed: u64) {
        let losses = if seed.is_multiple_of(2) { Losses::None } else { Losses::Borne };
        any_talks_come_back(seed, losses, &mut BTreeMap::new());
    }

    #[test]
    fn behind_any_losses_no_wrong_packet_comes_out(seed: u64) {
        any_talks_come_back(seed, Losses::Any, &mut BTreeMap::new());
    }

    #[test]
    fn any_octets_are_refused_or_taken_without_a_panic(packets: Vec<Vec<u8>>) {
        let channel = channel(15);
        let config = DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(channel) };
        let mut decompressor = Coap2015Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(2)));
        let (mut link, mut flow) = (usual(), Flow::new(false));
        let (mut random, mut talk) = (Random(1), Message::get());
        for packet in packets {
            let _ = link.near.compress(Instant::ZERO, &packet, &mut link.rohc);
            let sent = link.carry(&flow.carry(&talk.next(), &mut random));
            let _ = decompressor.decompress(link.now, &link.rohc[..sent.compressed.len], &mut link.back);
            let _ = decompressor.decompress(link.now, &packet, &mut link.back);
        }
    }
}

#[test]
fn every_format_is_reached() {
    let mut formats = BTreeMap::new();
    for seed in 0..200 {
        any_talks_come_back(seed, if seed % 2 == 0 { Losses::None } else { Losses::Borne }, &mut formats);
    }
    println!("{formats:?}");
    for format in [Format::Ir, Format::IrDyn, Format::Uo0, Format::Uor2, Format::Uor2Ext3] {
        assert!(formats.contains_key(&(true, format)), "{format:?} was never reached");
    }
    assert!(formats.contains_key(&(false, Format::Uo0)));
}
