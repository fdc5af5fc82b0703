//! Tests of profile 0x0080: the published sizes, and packets that are restored bit for bit.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::common::link::Link;
use crate::common::{IdKind, IpLayer, SplitMix64, TestFlow};
use proptest::prelude::*;
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Format, Instant, Mode, Ports, ProfileId, ProfileSet, Refresh,
};

fn usual() -> Link {
    Link::new(channel(CidSpace::Small, 15), Mode::Unidirectional, 16, |_| {})
}

fn channel(cids: CidSpace, max_cid: u16) -> Channel {
    let profiles = ProfileSet::v1().with(ProfileId::Coap2015).unwrap();
    Channel::new(cids, max_cid, profiles).unwrap()
}

/// One kind of message between two ports.
#[derive(Clone, Debug)]
struct RequestKind {
    message_type: u8,
    code: u8,
    message_id: u16,
    token: Vec<u8>,
    options: Vec<u8>,
    /// Octets behind the options, Payload Marker included.
    rest: Vec<u8>,
}

impl RequestKind {
    /// The request of the evaluation: CON, GET, Uri-Path `time`, no token.
    fn get() -> Self {
        let (token, options, rest) = (vec![], b"\xb4time".to_vec(), vec![]);
        Self { message_type: 0, code: 0x01, message_id: 58_468, token, options, rest }
    }

    /// The response: ACK, 2.05, Content-Format without value, Max-Age 1, 15 octets of payload.
    fn content() -> Self {
        let options = b"\xc0\x21\x01".to_vec();
        Self { message_type: 2, code: 0x45, options, rest: b"\xffOct 14 19:45:32".to_vec(), ..Self::get() }
    }

    fn next(&mut self) -> Vec<u8> {
        let mut message = vec![1 << 6 | self.message_type << 4 | self.token.len() as u8, self.code];
        message.extend_from_slice(&self.message_id.to_be_bytes());
        self.message_id = self.message_id.wrapping_add(1);
        [&message[..], &self.token, &self.options, &self.rest].concat()
    }
}

/// Returns the sizes of the packets of a flow by format, the largest of each, payload included. The TTL changes
/// now and then, so that some CRC-3 does not detect the change and CRC-7 must follow in UOR-2.
fn sizes(six: bool, mut talk: RequestKind) -> BTreeMap<Format, usize> {
    // Includes IR-DYN packets half way.
    let refresh = Refresh::Periodic { packets: Some(64), time: None, backoff: false };
    let mut link =
        Link::new(channel(CidSpace::Small, 15), Mode::Unidirectional, 16, |near| near.refresh = refresh);
    let mut flow = TestFlow::udp(vec![IpLayer::new(six, 1)]);
    let mut random = SplitMix64(1);
    let mut sizes = BTreeMap::new();
    for i in 0..400 {
        flow.layers[0].ttl = 60 + (i / 20) as u8;
        let packet = flow.carry(talk.next(), &mut random);
        let compressed = link.carry(&packet);
        assert_eq!((compressed.profile, compressed.cid.value()), (ProfileId::Coap2015, 0));
        let size = sizes.entry(compressed.format).or_insert(0);
        *size = compressed.len.max(*size);
    }
    sizes
}

/// Sizes are those of section V.B of the paper, whose 31, 22 and 21 octets of the response over IPv4 include an
/// Add-CID octet.
#[test]
fn packets_are_as_small_as_was_published() {
    for (six, talk, ir, expected) in [
        (false, RequestKind::get(), 38, [15, 6, 5]),
        (false, RequestKind::content(), 51, [30, 21, 20]),
        (true, RequestKind::get(), 61, [12, 6, 5]),
        (true, RequestKind::content(), 74, [27, 21, 20]),
    ] {
        let sizes = sizes(six, talk);
        assert_eq!([Format::IrDyn, Format::Uor2, Format::Uo0].map(|format| sizes[&format]), expected);
        assert_eq!(sizes[&Format::Ir], ir);
    }
}

#[test]
fn every_type_code_and_bundle_of_options_is_a_flow() {
    let mut link = usual();
    let mut flow = TestFlow::udp(vec![IpLayer::new(true, 1)]);
    let mut random = SplitMix64(2);
    let mut cid = |talk: &RequestKind| {
        let compressed = link.carry(&flow.carry(talk.clone().next(), &mut random));
        assert_eq!(compressed.profile, ProfileId::Coap2015);
        compressed.cid.value()
    };
    let get = RequestKind { token: vec![1, 2], ..RequestKind::get() };
    let others = [
        RequestKind { message_type: 1, ..get.clone() },
        RequestKind { code: 0x03, ..get.clone() },
        RequestKind { options: b"\xb4tide".to_vec(), ..get.clone() },
        RequestKind { options: b"".to_vec(), ..get.clone() },
        RequestKind { token: vec![0, 1, 2], ..get.clone() },
        RequestKind { rest: vec![0xFF, 1], ..get.clone() },
    ];
    for _ in 0..3 {
        assert_eq!(cid(&get), 0);
        for (i, other) in others.iter().enumerate() {
            assert_eq!(usize::from(cid(other)), i + 1, "{other:?}");
        }
    }
    // Message ID, token and payload do not identify the flow.
    assert_eq!(cid(&RequestKind { message_id: 9, token: vec![9, 9], ..get }), 0);
}

/// Requests with another code, between equal ports, take over the only CID. After a pause, the pace of the flow before must not
/// make the decompressor doubt them.
#[test]
fn a_flow_that_takes_over_the_cid_has_a_pace_of_its_own() {
    let mut link = Link::new(channel(CidSpace::Small, 0), Mode::Optimistic, 16, |_| {});
    let mut flow = TestFlow::udp(vec![IpLayer::new(false, 1)]);
    let mut random = SplitMix64(4);
    for (code, packets, seconds) in [(1, 32, 0), (3, 2, 16)].repeat(32) {
        let mut talk = RequestKind { code, ..RequestKind::get() };
        link.now = link.now + Duration::from_secs(900);
        for _ in 0..packets {
            link.carry(&flow.carry(talk.next(), &mut random));
            link.now = link.now + Duration::from_secs(seconds);
        }
    }
}

#[test]
fn a_token_that_changes_is_said_by_ir_and_then_goes_with_every_packet() {
    let mut link = usual();
    let mut flow = TestFlow::udp(vec![IpLayer::new(false, 1)]);
    let mut random = SplitMix64(3);
    let mut talk = RequestKind { token: vec![7; 4], ..RequestKind::get() };
    let mut step = |talk: &mut RequestKind| {
        let compressed = link.carry(&flow.carry(talk.next(), &mut random));
        (compressed.format, compressed.header_out)
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

#[test]
fn a_message_that_is_not_sound_goes_by_the_udp_profile_and_does_not_keep_others_from_theirs() {
    let mut link = usual();
    let mut flow = TestFlow::udp(vec![IpLayer::new(false, 1)]);
    let mut random = SplitMix64(4);
    let sound = RequestKind { rest: vec![0xFF, 1, 2], ..RequestKind::get() };
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
            assert_eq!(link.carry(&flow.carry(message, &mut random)).profile, ProfileId::Udp);
        }
        let packet = flow.carry(sound.clone().next(), &mut random);
        assert_eq!(link.carry(&packet).profile, ProfileId::Coap2015);
    }
}

#[test]
fn ports_tell_which_packets_are_coap() {
    let mut flow = TestFlow::udp(vec![IpLayer::new(false, 1)]);
    let packet = flow.carry(RequestKind::get().next(), &mut SplitMix64(5));
    let profile = |ports: &[u16], set: ProfileSet| {
        let channel = Channel::new(CidSpace::Small, 15, set).unwrap();
        let ports = Ports::of(ports).unwrap();
        let mut link = Link::new(channel, Mode::Unidirectional, 16, |config| config.coap.ports = ports);
        // An IR packet of the UDP profile needs a payload, which is then the whole message.
        link.carry(&packet).profile
    };
    let all = ProfileSet::v1().with(ProfileId::Coap2015).unwrap();
    assert_eq!(profile(&[5683], all), ProfileId::Coap2015);
    assert_eq!(profile(&[61_616, 5683], all), ProfileId::Coap2015);
    assert_eq!(profile(&[61_616], all), ProfileId::Udp);
    assert_eq!(profile(&[5683], ProfileSet::v1()), ProfileId::Udp);
    assert_eq!(profile(&[5683], ProfileSet::of(&[ProfileId::Coap2015]).unwrap()), ProfileId::Coap2015);
}

#[test]
fn without_memory_for_its_options_a_flow_goes_by_the_udp_profile() {
    let mut link = Link::new(channel(CidSpace::Small, 15), Mode::Unidirectional, 1, |_| {});
    let mut flow = TestFlow::udp(vec![IpLayer::new(false, 1)]);
    let mut random = SplitMix64(6);
    let mut profile = |mut talk: RequestKind| link.carry(&flow.carry(talk.next(), &mut random)).profile;
    let empty = RequestKind { options: vec![], ..RequestKind::get() };
    for _ in 0..20 {
        assert_eq!(profile(RequestKind::get()), ProfileId::Coap2015);
        assert_eq!(profile(RequestKind::content()), ProfileId::Udp);
        assert_eq!(profile(empty.clone()), ProfileId::Coap2015);
    }
}

/// With one context and one block, each flow finds the block in use, and releases it by taking over the context.
#[test]
fn a_flow_that_ends_gives_its_memory_back() {
    let mut link = Link::new(channel(CidSpace::Small, 0), Mode::Unidirectional, 1, |_| {});
    let mut flow = TestFlow::udp(vec![IpLayer::new(false, 1)]);
    let mut random = SplitMix64(9);
    let mut profile = |mut talk: RequestKind| link.carry(&flow.carry(talk.next(), &mut random)).profile;
    for _ in 0..20 {
        assert_eq!(profile(RequestKind::get()), ProfileId::Coap2015);
        assert_eq!(profile(RequestKind::content()), ProfileId::Udp);
    }
}

/// A decompressor without a block rejects the flow, which then uses profile 0x0002.
#[test]
fn a_rejected_flow_goes_by_the_udp_profile() {
    let channel = channel(CidSpace::Small, 15);
    let mut compressor =
        Compressor::new(CompressorConfig::new(channel), CompressorMemory::owned(&channel, 4));
    let config = DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(channel) };
    let mut decompressor = Decompressor::new(config, DecompressorMemory::owned(&channel, 0));
    let mut flow = TestFlow::udp(vec![IpLayer::new(false, 1)]);
    let (mut random, mut talk) = (SplitMix64(7), RequestKind::get());
    let (mut rohc, mut back) = ([0; 256], [0; 256]);
    let profiles = [0, 1, 2].map(|_| {
        let packet = flow.carry(talk.next(), &mut random);
        let compressed = compressor.compress(Instant::ZERO, &packet, &mut rohc).unwrap();
        let done = decompressor.decompress(Instant::ZERO, &rohc[..compressed.len], &mut back);
        if let Some(len) = decompressor.poll_feedback(&mut rohc) {
            compressor.receive_feedback(Instant::ZERO, &rohc[1..len]).unwrap();
        }
        (compressed.profile, done.map(|done| back[..done.len] == packet).ok())
    });
    let udp = (ProfileId::Udp, Some(true));
    assert_eq!(profiles, [(ProfileId::Coap2015, None), udp, udp]);
}

#[test]
fn every_field_is_told() {
    let mut link = usual();
    let mut flow = TestFlow::udp(vec![IpLayer::new(false, 1)]);
    let (mut random, mut talk) =
        (SplitMix64(8), RequestKind { token: vec![1, 2, 3, 4, 5], ..RequestKind::content() });
    let channel = channel(CidSpace::Small, 15);
    let memory = DecompressorMemory::owned(&channel, 4);
    let mut decompressor = Decompressor::new(DecompressorConfig::new(channel), memory);
    let mut told = BTreeMap::new();
    for _ in 0..12 {
        talk.token[0] += 1;
        let packet = flow.carry(talk.next(), &mut random);
        let sent = link.send(&packet);
        let (rohc, mut back) = (&link.rohc[..sent.len], [0; 128]);
        let mut fields = Vec::new();
        let named = decompressor.dissect(rohc, |field| fields.push((field.name, field.bits, field.value)));
        let (_, profile, format) = named.unwrap();
        assert_eq!(profile, ProfileId::Coap2015);
        let sent: u32 = fields.iter().map(|(_, bits, _)| bits).sum();
        let done = decompressor.decompress(link.now, rohc, &mut back).unwrap();
        assert_eq!(sent as usize, 8 * done.header_in);
        let from = fields.iter().position(|(name, ..)| *name == "Ver" || *name == "UDP Checksum").unwrap();
        told.insert(format, fields[from..].to_vec());
    }
    let names =
        |format| told[&format].iter().map(|(name, bits, _)| format!("{name}:{bits}")).collect::<Vec<_>>();
    assert_eq!(names(Format::Uo0).join(" "), "UDP Checksum:16 Message ID:16 Token:8 Token:32");
    assert_eq!(told[&Format::Uo0][2..], [("Token", 8, 13), ("Token", 32, 0x0203_0405)]);
    let ir = names(Format::Ir).join(" ");
    assert!(ir.starts_with(
        "Ver:2 T:2 TKL:4 Code:8 Token Changing:1 Payload Marker:1 reserved:6 Options Length:8 Options:24 Type"
    ), "{ir}");
    assert!(ir.ends_with("Checksum:16 Message ID:16 Token:8 Token:32 SN:16"), "{ir}");
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
    files.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with("coap_udp"));
    files.sort();
    let (mut all, mut coap, mut octets) = (0, 0, 0);
    for file in &files {
        let mut link = Link::new(channel(CidSpace::Small, 15), Mode::Optimistic, 16, |_| {});
        for packet in packets(file) {
            all += 1;
            let done = link.carry(&packet);
            coap += u32::from(done.profile == ProfileId::Coap2015);
            octets += done.len;
        }
    }
    println!("{} captures, {all} packets, {coap} of them by profile 0x0080, {octets} octets", files.len());
    // Clients that use a new port after a few requests take contexts from each other, and wait for them: fewer packets go by
    // the profile than if each got one at once (2,919), in fewer octets (116,388).
    assert!(files.len() >= 10 && coap > 500 && coap * 4 > all * 3 && octets <= 116_300);
}

/// Changes a property of a flow, or of a packet within it.
fn change(talk: &mut RequestKind, random: &mut SplitMix64) {
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
                // Largest options that a block holds, and larger ones.
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

/// Sends flows of random kinds on two channels with losses that the repetitions bear. Counts the uses of each
/// format.
fn any_talks_come_back(seed: u64, formats: &mut BTreeMap<(ProfileId, Format), u32>) {
    let mut random = SplitMix64(seed);
    let channel = match random.below(3) {
        0 => channel(CidSpace::Small, 3),
        1 => channel(CidSpace::Large, 300),
        _ => channel(CidSpace::Small, 15),
    };
    let mode = if random.once_in(2) { Mode::Optimistic } else { Mode::Unidirectional };
    let refresh = match random.below(3) {
        0 => Refresh::Off,
        1 => Refresh::Cycle { ir: 4, so: 20, direct: true },
        _ => Refresh::Periodic { packets: Some(40), time: None, backoff: seed.is_multiple_of(2) },
    };
    let lossy = random.once_in(2);
    let window = if lossy { 4 } else { 1 } + random.below(10) as u8;
    let blocks = [0, 1, 2, 16, 64][random.below(5) as usize];
    let mut link = Link::new(channel, mode, blocks, |config| {
        config.refresh = refresh;
        config.window = window;
        config.seed = seed;
    });
    let mut flows: Vec<_> = (0..1 + random.below(4))
        .map(|i| {
            let layers = 1 + usize::from(random.once_in(4));
            let layers = (0..layers).map(|_| IpLayer::new(random.once_in(2), i as u8)).collect();
            let mut talk = if random.once_in(2) { RequestKind::get() } else { RequestKind::content() };
            change(&mut talk, &mut random);
            (TestFlow::udp(layers), talk, random.once_in(3))
        })
        .collect();
    // The outcome of damaged packets is not checked; nothing may panic.
    let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
    let mut victim = Decompressor::new(config, DecompressorMemory::owned(&channel, 2));
    // By CID: number of packets that are still lost or, if negative, must arrive.
    let mut losses: BTreeMap<u16, i32> = BTreeMap::new();
    for _ in 0..150 {
        let at = random.below(flows.len() as u64) as usize;
        let (flow, talk, counts) = &mut flows[at];
        if random.once_in(12) {
            change(talk, &mut random);
        }
        if random.once_in(20) {
            let layer = &mut flow.layers[0];
            match random.below(4) {
                0 => layer.ttl = random.next() as u8,
                1 => layer.tos = random.next() as u8,
                2 => {
                    layer.id_kind =
                        [IdKind::Random, IdKind::Counts, IdKind::Swapped][random.below(3) as usize]
                }
                _ if !lossy => flow.checksum = !flow.checksum,
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
        let packet = flow.carry(message, &mut random);
        let compressed = link.send(&packet);
        let mut damaged = link.rohc[..compressed.len].to_vec();
        if random.once_in(3) {
            let bit = random.below(damaged.len() as u64 * 8) as usize;
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
        let _ = victim.dissect(&damaged, |_| {});
        let _ = victim.decompress(link.now, &damaged, &mut [0; 512]);
        let left = losses.entry(compressed.cid.value()).or_insert(0);
        if lossy && *left == 0 && random.once_in(10) {
            *left = 1 + random.below(2) as i32;
        }
        if *left > 0 {
            *left -= 1;
            // Then enough packets arrive to repeat the next change.
            if *left == 0 {
                *left = -5;
            }
        } else {
            *left = (*left + 1).min(0);
            link.receive(&packet, &compressed);
        }
        *formats.entry((compressed.profile, compressed.format)).or_insert(0) += 1;
    }
}

proptest! {
    #[test]
    fn any_talks_between_coap_ports_come_back_bit_for_bit(seed: u64) {
        any_talks_come_back(seed, &mut BTreeMap::new());
    }
}

#[test]
fn every_format_is_reached() {
    let mut formats = BTreeMap::new();
    for seed in 0..200 {
        any_talks_come_back(seed, &mut formats);
    }
    println!("{formats:?}");
    for format in [Format::Ir, Format::IrDyn, Format::Uo0, Format::Uor2, Format::Uor2Ext3] {
        assert!(formats.contains_key(&(ProfileId::Coap2015, format)), "{format:?} was never reached");
    }
    assert!(formats.contains_key(&(ProfileId::Udp, Format::Uo0)));
}
