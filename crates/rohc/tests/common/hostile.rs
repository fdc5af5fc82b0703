//! Packets that are damaged, or made up, behind the losses, silences and counts that leave a decompressor with the most candidates, and
//! flows whose headers are as large as a profile compresses them.

#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use std::time::Duration;

use thinair_rohc::{
    Arrival, Channel, CidSpace, CompressorConfig, DecompressorConfig, Endpoint, Instant, Integrity, Mode,
    ProfileId, ProfileSet,
};
use thinair_wire::checksum::Sum;

use super::coap::{self, CoapSide, TestMessage};
use super::media::{Media, MediaKind, TimestampClock};
use super::tcp::{Outer, TcpPacket, sack, timestamps};
use super::{IdKind, IpLayer, SplitMix64, TestFlow};

/// The compressed packets of a run up to the gap.
const BEFORE: u32 = 300;

/// Hostile packets to one context: those behind the first ones meet its failures.
const ROUND: usize = 12;

/// Headers of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Udp,
    Rtp,
    /// Timestamps go on in pauses.
    Talk,
    Esp,
    UdpLite,
    Tcp,
    /// A server whose responses refer to requests.
    Coap,
    /// A client that polls.
    CoapGet,
}

/// A flow, and the engine that compresses it.
#[derive(Clone, Copy, Debug)]
pub struct HostileFlow {
    pub name: &'static str,
    pub kind: Kind,
    pub v2: bool,
    pub six: bool,
    pub is_summed: bool,
    /// Extension headers, their octets, and how many of these are Authentication Headers.
    pub extensions: (usize, usize),
    pub authentication: usize,
    pub csrcs: usize,
    /// The flow pauses now and then.
    pub pauses: bool,
    pub ids: IdKind,
    pub payload: usize,
}

impl HostileFlow {
    const PLAIN: Self = Self {
        name: "",
        kind: Kind::Rtp,
        v2: false,
        six: false,
        is_summed: true,
        extensions: (0, 0),
        authentication: 0,
        csrcs: 0,
        pauses: false,
        ids: IdKind::Counts,
        payload: 20,
    };

    /// The worst flows of each engine.
    pub fn all() -> Vec<Self> {
        let plain = Self::PLAIN;
        let large = Self { payload: 1_400, ..plain };
        let long = Self { six: true, extensions: (16, 6), ..plain };
        let longest = Self { six: true, extensions: (16, 30), csrcs: 15, payload: 1_400, ..plain };
        let mut all = vec![
            Self { name: "UDP/IPv4", kind: Kind::Udp, ..plain },
            Self { name: "ESP/IPv4", kind: Kind::Esp, ..plain },
            Self { name: "UDP-Lite/IPv4", kind: Kind::UdpLite, ..plain },
            Self { name: "RTP/IPv4", ..plain },
            Self { name: "RTP/IPv4, pauses, 15 CSRC", kind: Kind::Talk, pauses: true, csrcs: 15, ..large },
            Self { name: "RTP/IPv4, no checksum", is_summed: false, csrcs: 15, ..plain },
            Self { name: "RTP/IPv6, pauses", six: true, kind: Kind::Talk, pauses: true, ..large },
            Self { name: "UDP/IPv6, 16 extensions", kind: Kind::Udp, ..long },
            Self { name: "ESP/IPv6, 16 extensions", kind: Kind::Esp, ..long },
            Self { name: "RTP/IPv6, 16 extensions", ..long },
            Self { name: "RTP/IPv6, 16 of 32 octets", kind: Kind::Talk, pauses: true, ..longest },
            Self { name: "RTP, 16 of 32, no checksum", is_summed: false, ..longest },
            Self { name: "ESP/IPv6, 16 with AH", kind: Kind::Esp, authentication: 1, ..longest },
            Self { name: "RTP/IPv6, 16 with AH", authentication: 1, ..longest },
        ];
        let v2 = |name, flow| Self { name, v2: true, ..flow };
        let deep = Self { six: true, extensions: (4, 22), csrcs: 8, ..plain };
        all.extend([
            v2("v2 UDP/IPv4", Self { kind: Kind::Udp, ..plain }),
            v2("v2 ESP/IPv4", Self { kind: Kind::Esp, ..plain }),
            v2("v2 RTP/IPv4", plain),
            v2("v2 RTP/IPv4, pauses", Self { kind: Kind::Talk, pauses: true, csrcs: 15, ..large }),
            v2("v2 RTP/IPv4, no checksum", Self { is_summed: false, csrcs: 15, ..plain }),
            v2("v2 RTP/IPv6, extensions", Self { kind: Kind::Talk, pauses: true, ..deep }),
            v2("v2 RTP/IPv6, no checksum", Self { is_summed: false, ..deep }),
            v2("v2 ESP/IPv6, extensions", Self { kind: Kind::Esp, csrcs: 0, ..deep }),
        ]);
        let tcp = Self { kind: Kind::Tcp, payload: 0, ..plain };
        all.extend([
            Self { name: "TCP/IPv4", ..tcp },
            Self { name: "TCP/IPv4, others", ids: IdKind::Steps(3), ..tcp },
            Self { name: "TCP/IPv4, pauses", ids: IdKind::Steps(3), pauses: true, ..tcp },
            Self { name: "TCP/IPv6, extensions", six: true, extensions: (8, 8), ..tcp },
        ]);
        let notify = Self { kind: Kind::Coap, ..plain };
        all.extend([
            Self { name: "CoAP/IPv4, responses", ..notify },
            Self { name: "CoAP/IPv6, responses", six: true, pauses: true, ..notify },
            Self { name: "CoAP/IPv4, elided", is_summed: false, payload: 1_000, ..notify },
            Self { name: "CoAP/IPv4, requests", kind: Kind::CoapGet, payload: 1_000, ..notify },
            Self { name: "CoAP/IPv6, requests", kind: Kind::CoapGet, six: true, pauses: true, ..notify },
        ]);
        all
    }

    /// Name of the engine.
    pub fn engine(&self) -> &'static str {
        match self.kind {
            Kind::Tcp => "RFC 6846",
            Kind::Coap | Kind::CoapGet => "CoAP",
            _ if self.v2 => "RFC 5225",
            _ => "RFC 3095",
        }
    }

    fn channel(&self) -> Channel {
        let profiles = match self.kind {
            Kind::Tcp => ProfileSet::v1().with(ProfileId::Tcp).unwrap(),
            Kind::Coap | Kind::CoapGet => ProfileSet::v1().with(ProfileId::Coap).unwrap(),
            _ if self.v2 => ProfileSet::v2(),
            _ => ProfileSet::v1(),
        };
        let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
        if self.is_summed { channel } else { channel.with_integrity_below(Integrity::Crc32) }
    }

    fn end(&self, mode: Mode) -> Endpoint<'static> {
        let channel = self.channel();
        let compressor =
            CompressorConfig::new(channel);
        let decompressor = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        Endpoint::owned(compressor, decompressor, 64)
    }
}

/// The packets of a flow.
enum Source {
    Plain(TestFlow),
    Tcp(TcpPacket, u32),
    Coap(u16),
}

impl Source {
    fn new(flow: &HostileFlow) -> Self {
        let (count, octets) = flow.extensions;
        match flow.kind {
            Kind::Tcp => {
                let mut packet = TcpPacket::new(vec![Outer { options: count, ..Outer::new(flow.six) }], 4_000);
                packet.ips[0].id = 77;
                Self::Tcp(packet, 90_000)
            }
            Kind::Coap | Kind::CoapGet => Self::Coap(7),
            _ => {
                let mut layer = IpLayer { id_kind: flow.ids, ..IpLayer::new(flow.six, 1) };
                layer.extensions = (0..count)
                    .map(|i| {
                        if i < flow.authentication {
                            return (51, vec![0; octets.max(22)]);
                        }
                        // PadN, so that each has other octets.
                        let mut content = vec![i as u8; octets];
                        (content[0], content[1]) = (1, octets as u8 - 2);
                        (60, content)
                    })
                    .collect();
                let media = match flow.kind {
                    Kind::Rtp | Kind::Talk => Some(MediaKind::Rtp),
                    Kind::Esp => Some(MediaKind::Esp),
                    Kind::UdpLite => Some(MediaKind::UdpLite),
                    _ => None,
                };
                let media = media.map(|kind| {
                    let mut media = Media::new(kind);
                    media.csrc = (0..flow.csrcs as u32).map(|i| 0xC000 + i).collect();
                    media.clock = TimestampClock::Voice;
                    media
                });
                let protocol = media.as_ref().map_or(17, Media::protocol);
                Self::Plain(TestFlow {
                    media,
                    protocol,
                    payload: flow.payload,
                    ..TestFlow::udp(vec![layer])
                })
            }
        }
    }

    /// The sender is silent for that many packets.
    fn skip(&mut self, flow: &HostileFlow, packets: u32) {
        match self {
            Self::Plain(TestFlow { media: Some(media), .. }) if flow.kind == Kind::Talk => {
                media.ts = media.ts.wrapping_add(media.stride.wrapping_mul(packets));
            }
            Self::Tcp(_, time) => *time += 20 * packets,
            _ => {}
        }
    }

    /// Returns the next packet, and the request before it.
    fn next(&mut self, flow: &HostileFlow, random: &mut SplitMix64) -> (Option<Vec<u8>>, Vec<u8>) {
        match self {
            Self::Plain(source) => {
                let mut packet = source.packet(random);
                if source.protocol == 17 || source.protocol == 136 {
                    sum_up(&mut packet, source.protocol, flow);
                }
                (None, packet)
            }
            Self::Tcp(packet, time) => {
                let ip = &mut packet.ips[0];
                let step = if let IdKind::Steps(most) = flow.ids { random.below(u64::from(most)) } else { 0 };
                ip.id = ip.id.wrapping_add(1 + step as u16);
                *time += 18 + random.below(5) as u32;
                packet.options = timestamps(*time, *time - 40);
                let acknowledged = 1_448 * random.below(3) as u32;
                let tcp = &mut packet.tcp;
                tcp.sequence_number = tcp.sequence_number.wrapping_add(packet.payload.len() as u32);
                tcp.acknowledgment_number = tcp.acknowledgment_number.wrapping_add(acknowledged);
                if random.once_in(8) {
                    let from = tcp.acknowledgment_number;
                    packet.options.extend(sack(&[(from + 2_000, from + 4_000)]));
                }
                packet.payload = vec![7; if random.once_in(3) { 0 } else { 100 }];
                (None, packet.octets())
            }
            Self::Coap(id) => {
                *id = id.wrapping_add(1);
                let name = |len: usize| vec![b'a'; len];
                let options = vec![(11, name(60)), (11, name(30)), (15, random.next().to_be_bytes().to_vec())];
                let token = id.to_be_bytes().to_vec();
                let payload = (0..flow.payload).map(|_| random.next() as u8).collect();
                let request = TestMessage { code: 1, id: *id, token: token.clone(), options, ..TestMessage::default() };
                let wrap = |side, message: &TestMessage| coap::packet(flow.six, 9, side, *id, message);
                if flow.kind == Kind::CoapGet {
                    return (None, wrap(CoapSide::Client, &TestMessage { payload, ..request }));
                }
                let options = vec![(4, name(8)), (6, coap::uint((*id).into())), (12, vec![50])];
                let response = TestMessage { kind: 2, code: 69, id: *id, token, options, payload };
                (Some(wrap(CoapSide::Client, &request)), wrap(CoapSide::Server, &response))
            }
        }
    }
}

/// Writes the checksum of UDP or UDP-Lite, with full coverage.
fn sum_up(packet: &mut [u8], protocol: u8, flow: &HostileFlow) {
    let extensions = flow.extensions.0 * (flow.extensions.1 + 2);
    let (addresses, at) = if flow.six { (8..40, 40 + extensions) } else { (12..20, 20) };
    packet[at + 6..at + 8].fill(0);
    if flow.is_summed {
        let sum = Sum::ZERO.octets(&packet[addresses]).word(u16::from(protocol));
        let sum = sum.word((packet.len() - at) as u16).octets(&packet[at..]).checksum();
        packet[at + 6..at + 8].copy_from_slice(&(if sum == 0 { 0xFFFF } else { sum }).to_be_bytes());
    }
}

/// Loss, silence and count in front of the hostile packets.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    /// Packets that are lost.
    pub lost: u32,
    /// Packets that fit into the time in which the sender is silent.
    pub silent: u32,
    pub count: Option<u32>,
}

/// An event at the receiving end.
enum Event {
    Send(Instant, Vec<u8>),
    Receive(Arrival, Vec<u8>),
}

/// A run up to its gap, and the next packets.
pub struct Run {
    flow: HostileFlow,
    mode: Mode,
    events: Vec<Event>,
    next: Vec<(Arrival, Vec<u8>)>,
}

const STEP: Duration = Duration::from_millis(20);

impl Run {
    pub fn new(flow: HostileFlow, mode: Mode, gap: Gap, seed: u64) -> Self {
        let (mut far, mut near) = (flow.end(mode), flow.end(mode));
        let (mut source, mut random) = (Source::new(&flow), SplitMix64(seed));
        let (mut events, mut next) = (Vec::new(), Vec::new());
        let (mut now, mut rohc, mut back) = (Instant::ZERO, vec![0; 4_096], vec![0; 4_096]);
        let is_counted = gap.count.is_some();
        let mut element = [0; 64];
        for i in 0..BEFORE + gap.lost + 4 {
            if flow.pauses && i < BEFORE && i % 40 == 39 {
                now = now + STEP * (25 + 40 * (i / 40 % 3));
                source.skip(&flow, 25 + 40 * (i / 40 % 3));
            }
            if i == BEFORE + gap.lost {
                now = now + STEP * gap.silent;
                source.skip(&flow, gap.silent);
            }
            now = now + STEP;
            let (request, packet) = source.next(&flow, &mut random);
            let is_received = i < BEFORE;
            if let Some(request) = request {
                let len = near.send(now, &request, &mut rohc).unwrap().len;
                far.receive(now, &rohc[..len], &mut back).unwrap();
                events.push(Event::Send(now, request));
            }
            let len = far.send(now, &packet, &mut rohc).unwrap().len;
            let lost = if i == BEFORE + gap.lost { gap.count } else { Some(0) };
            let arrival = Arrival { now, lost: lost.filter(|_| is_counted) };
            if is_received {
                let done = near.receive(arrival, &rohc[..len], &mut back).unwrap();
                assert!(back[..done.len] == packet[..], "{flow:?}: packet {i}");
                events.push(Event::Receive(arrival, rohc[..len].to_vec()));
                while let Some(len) = near.poll_feedback(&mut element) {
                    let _ = far.receive(now, &element[..len], &mut back);
                }
            } else if i >= BEFORE + gap.lost {
                next.push((arrival, rohc[..len].to_vec()));
            }
        }
        Self { flow, mode, events, next }
    }

    /// Returns the end that has received the packets before the gap.
    pub fn end(&self) -> Endpoint<'static> {
        let mut end = self.flow.end(self.mode);
        let (mut rohc, mut back) = (vec![0; 4_096], vec![0; 4_096]);
        for event in &self.events {
            match event {
                Event::Send(now, packet) => {
                    end.send(*now, packet, &mut rohc).unwrap();
                }
                Event::Receive(arrival, packet) => {
                    end.receive(*arrival, packet, &mut back).unwrap();
                    while end.poll_feedback(&mut rohc).is_some() {}
                }
            }
        }
        end
    }

    /// Hostile packets: each bit at the start flipped, bits of the payload, and octets that are made up behind the first ones.
    pub fn hostile(&self, random: &mut SplitMix64) -> Vec<(Arrival, Vec<u8>)> {
        let mut all = Vec::new();
        for (arrival, packet) in &self.next {
            for bit in 0..8 * packet.len().min(12) {
                let mut packet = packet.clone();
                packet[bit / 8] ^= 0x80 >> (bit % 8);
                all.push((*arrival, packet));
            }
            for _ in 0..12 {
                let mut packet = packet.clone();
                let at = random.below(packet.len() as u64) as usize;
                packet[at] ^= 1 << random.below(8);
                all.push((*arrival, packet));
            }
            for known in 0..36 {
                let mut packet = packet.clone();
                packet[known / 12..].fill_with(|| random.next() as u8);
                all.push((*arrival, packet));
            }
        }
        // The last one is behind all of its round.
        let last = all.last().map_or(Instant::ZERO, |(arrival, _)| arrival.now);
        all.iter_mut().for_each(|(arrival, _)| arrival.now = last);
        all
    }

    /// Passes hostile packets to `decompress`, with ends that have received what came before.
    pub fn attack(
        &self,
        random: &mut SplitMix64,
        mut decompress: impl FnMut(&mut Endpoint<'static>, Arrival, &[u8]),
    ) {
        let all = self.hostile(random);
        for round in all.chunks(ROUND) {
            let mut end = self.end();
            let mut element = [0; 64];
            for (i, (arrival, packet)) in round.iter().enumerate() {
                let arrival = if i == 0 { *arrival } else { Arrival { lost: arrival.lost.map(|_| 0), ..*arrival } };
                decompress(&mut end, arrival, packet);
                while end.poll_feedback(&mut element).is_some() {}
            }
        }
    }
}

/// Gaps that leave from one candidate to more than are tried.
pub fn gaps() -> Vec<Gap> {
    let gap = |lost, silent, count| Gap { lost, silent, count };
    vec![
        gap(0, 0, None),
        gap(3, 0, Some(3)),
        gap(100, 0, None),
        gap(20, 1_000, None),
        gap(900, 0, Some(900)),
        gap(0, 5_000, None),
        gap(0, 100_000, None),
        gap(10, 10_000, Some(9_000)),
    ]
}
