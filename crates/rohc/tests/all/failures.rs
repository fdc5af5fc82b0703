//! A failed packet leaves the fields of a context and its memory as they were. Each packet of a flow is damaged, cut short, late, from
//! beyond a loss, and written to too little room; contexts are compared before and after.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::coap::{CoapFlow, FlowName};
use crate::common::media::{Media, MediaKind};
use crate::common::tcp::{Outer, TcpPacket, timestamps};
use crate::common::{IpLayer, SplitMix64, TestFlow};
use thinair_rohc::{
    Channel, Cid, CidSpace, Compressor, CompressorConfig, CompressorMemory, DecompressError, Decompressor,
    DecompressorConfig, DecompressorMemory, Format, Instant, ProfileId, ProfileSet,
};

/// Fields that record failures, and when packets have arrived: of a context, of its place, and of the decompressor.
const EVIDENCE: &[&str] = &[
    "health",
    "arrivals",
    "doubt",
    "twins",
    "behind",
    "seen",
    "calm",
    "is_stale",
    "trial",
    "quiet_until",
    "failures_since_nack",
    "behind_ir_dyn",
    "has_failed",
    "pending",
    "clock",
    "moment",
];

/// Packets of one flow.
const PACKETS: usize = 80;

/// Packets of one format that are damaged.
const OF_A_FORMAT: usize = 2;

/// A compressed packet.
struct Sent {
    format: Format,
    header: usize,
    octets: Vec<u8>,
}

/// The compressed packets of a flow.
struct Flow {
    channel: Channel,
    sent: Vec<Sent>,
}

impl Flow {
    fn new(profiles: ProfileSet, mut packet: impl FnMut(usize) -> Vec<u8>) -> Self {
        let channel = Channel::new(CidSpace::Small, 0, profiles).unwrap();
        let mut compressor = Compressor::new(
            CompressorConfig::new(channel),
            CompressorMemory::owned(channel.sizes().blocks(2).templates(4)),
        );
        let mut rohc = [0; 512];
        let sent = (0..PACKETS).map(|i| {
            let done = compressor.compress(at(i), &packet(i), &mut rohc).unwrap();
            Sent { format: done.format, header: done.header_out, octets: rohc[..done.len].to_vec() }
        });
        Self { channel, sent: sent.collect() }
    }

    /// A decompressor that has received the packets before one, and the octets that are delivered of that.
    fn before(&self, i: usize) -> (Decompressor<'static>, usize) {
        let receive = |end: &mut Decompressor<'_>, i: usize| {
            end.decompress(at(i), &self.sent[i].octets, &mut [0; 512]).map(|done| done.len)
        };
        let end = || {
            let mut end = decompressor(self.channel);
            for i in 0..i {
                let _ = receive(&mut end, i);
            }
            end
        };
        let len = receive(&mut end(), i).unwrap_or(0);
        (end(), len)
    }

    /// Packets instead of one: damaged, cut short, late, from beyond a loss.
    fn instead_of(&self, i: usize) -> Vec<Vec<u8>> {
        let Sent { header, octets, .. } = &self.sent[i];
        let step = 1 + header / 8;
        let flipped = (0..8 * header).step_by(3 * step).map(|bit| {
            let mut octets = octets.clone();
            octets[bit / 8] ^= 0x80 >> (bit % 8);
            octets
        });
        let cut = (1..=*header).step_by(step).map(|len| octets[..len].to_vec());
        let others = [i.wrapping_sub(1), i.wrapping_sub(5), i.wrapping_sub(20), i + 5, i + 17, i + 40];
        let others = others.iter().filter_map(|at| Some(self.sent.get(*at)?.octets.clone()));
        flipped.chain(cut).chain(others).collect()
    }
}

fn at(i: usize) -> Instant {
    Instant::from_millis(20 * i as u64)
}

fn decompressor(channel: Channel) -> Decompressor<'static> {
    Decompressor::new(
        DecompressorConfig::new(channel),
        DecompressorMemory::owned(channel.sizes().blocks(2).templates(4)),
    )
}

/// Fields of contexts and of their memory, without evidence.
fn fields(end: &Decompressor<'_>) -> String {
    let (text, mut kept, mut skipped) = (format!("{end:#?}"), String::new(), None);
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        let (key, value) = line.trim().split_once(':').unwrap_or((line, ""));
        match skipped {
            Some(of) if depth > of => continue,
            Some(_) => skipped = None,
            None if EVIDENCE.contains(&key) => {
                skipped = Some(depth).filter(|_| value.ends_with(['{', '[', '(']));
            }
            None => kept += line,
        }
    }
    kept
}

/// Passes what may be instead of each packet to contexts, and compares them. Returns the formats of the packets, and the number of failures
/// by their names.
fn drive(flow: &Flow) -> (BTreeMap<&'static str, usize>, BTreeMap<&'static str, usize>) {
    let (mut formats, mut failures) = (BTreeMap::new(), BTreeMap::new());
    for i in 1..PACKETS {
        let format = flow.sent[i].format.name();
        let count = formats.entry(format).or_insert(0);
        *count += 1;
        if *count > OF_A_FORMAT {
            continue;
        }
        let (mut end, len) = flow.before(i);
        let before = fields(&end);
        let instead = flow.instead_of(i).into_iter().map(|octets| (octets, 512));
        let in_no_room = [0, len / 2, len.saturating_sub(1)].map(|room| (flow.sent[i].octets.clone(), room));
        for (octets, room) in in_no_room.into_iter().filter(|(_, room)| *room < len).chain(instead) {
            match end.decompress(at(i), &octets, &mut [0; 512][..room]) {
                // They have updated the context.
                Ok(_) | Err(DecompressError::OnTrial(..)) => end = flow.before(i).0,
                Err(error) => {
                    *failures.entry(error.name()).or_insert(0) += 1;
                    assert_eq!(fields(&end), before, "{format} {i}, {error}: {octets:02X?}");
                }
            }
        }
    }
    (formats, failures)
}

/// Flows of the RFC 3095 family and of RFC 5225.
fn media() -> Vec<TestFlow> {
    let mut extended = IpLayer::new(true, 2);
    extended.extensions = vec![(0, vec![1, 4, 0, 0, 0, 0]), (60, vec![1, 4, 0, 0, 0, 0])];
    let udp = TestFlow::udp(vec![IpLayer::new(false, 1)]);
    let with = |kind| TestFlow { media: Some(Media::new(kind)), ..udp.clone() };
    vec![
        udp.clone(),
        TestFlow::udp(vec![extended]),
        TestFlow::udp(vec![IpLayer::new(true, 3), IpLayer::new(false, 4)]),
        with(MediaKind::Rtp),
        with(MediaKind::Esp),
        with(MediaKind::UdpLite),
        TestFlow { protocol: 253, ..udp },
    ]
}

fn flows() -> Vec<Flow> {
    let mut flows = Vec::new();
    for profiles in [ProfileSet::v1(), ProfileSet::v2()] {
        for mut flow in media() {
            let mut random = SplitMix64(1);
            flows.push(Flow::new(profiles, |i| {
                if i % 11 == 10 {
                    flow.change(&mut random);
                }
                flow.packet(&mut random)
            }));
        }
    }
    let tcp = ProfileSet::v1().with(ProfileId::Tcp).unwrap();
    for six in [false, true] {
        let mut segment = TcpPacket::new(vec![Outer::new(six)], 4_000);
        flows.push(Flow::new(tcp, |i| {
            segment.ips[0].id += 1;
            segment.ips[0].ttl -= u8::from(i % 40 == 30);
            segment.tcp.sequence_number = segment.tcp.sequence_number.wrapping_add(20);
            segment.tcp.window ^= u16::from(i % 15 == 14);
            segment.options = timestamps(i as u32, 7 * (i / 8) as u32);
            segment.payload = vec![i as u8; 20];
            segment.octets()
        }));
    }
    let coap = ProfileSet::v1().with(ProfileId::Coap).unwrap();
    for (name, six) in [(FlowName::A, false), (FlowName::B, true), (FlowName::D, false)] {
        let (mut messages, mut waiting) = (CoapFlow::new(name, six, 1), Vec::new());
        flows.push(Flow::new(coap, |_| {
            while waiting.is_empty() {
                let side = messages.side;
                let sent = messages.next().into_iter().filter(|(of, _)| *of == side);
                waiting.extend(sent.map(|(_, packet)| packet));
            }
            waiting.remove(0)
        }));
    }
    flows
}

#[test]
fn a_failed_packet_changes_neither_fields_nor_memory() {
    let (mut formats, mut failures) = (BTreeSet::new(), BTreeMap::new());
    for flow in flows() {
        let (of_flow, failed) = drive(&flow);
        formats.extend(of_flow.into_keys());
        for (name, count) in failed {
            *failures.entry(name).or_insert(0) += count;
        }
    }
    println!("{formats:?}\n{failures:?}");
    for name in ["bad_crc", "malformed", "not_allowed_in_state", "ambiguous_sn", "output_too_small"] {
        assert!(failures.get(name).is_some_and(|count| *count > 20), "{name}: {failures:?}");
    }
    assert!(formats.len() > 14, "{formats:?}");
}

/// A flow gets more extension headers than the decompressor can store: its context ends, and another flow has its memory.
#[test]
fn a_verified_packet_without_memory_ends_its_context() {
    let channel = Channel::new(CidSpace::Small, 1, ProfileSet::v1()).unwrap();
    let mut near =
        Compressor::new(CompressorConfig::new(channel), CompressorMemory::owned(channel.sizes().blocks(8)));
    let mut far = Decompressor::new(
        DecompressorConfig::new(channel),
        DecompressorMemory::owned(channel.sizes().blocks(2)),
    );
    let (mut random, mut now, mut rohc) = (SplitMix64(1), 0, [0; 2_048]);
    let mut carry = |flow: &mut TestFlow, far: &mut Decompressor<'_>| {
        now += 1;
        let len = near.compress(at(now), &flow.packet(&mut random), &mut rohc).unwrap().len;
        far.decompress(at(now), &rohc[..len], &mut [0; 2_048])
    };
    let flow = |host, extensions: usize| {
        let mut layer = IpLayer::new(true, host);
        layer.extensions = (0..extensions).map(|i| (60, vec![i as u8; 110])).collect();
        TestFlow::udp(vec![layer])
    };
    let (mut first, mut second) = (flow(1, 2), flow(2, 2));
    for _ in 0..10 {
        carry(&mut first, &mut far).unwrap();
    }
    first.layers[0].extensions.extend((2..4).map(|i| (60, vec![i; 110])));
    assert_eq!(carry(&mut first, &mut far), Err(DecompressError::NoMemory(Cid::ZERO)));
    assert_eq!(far.context(Cid::ZERO).unwrap().state, "NC");
    for _ in 0..10 {
        carry(&mut second, &mut far).unwrap();
    }
}
