//! Packets that are damaged, or made up, behind the losses, silences and counts that leave a decompressor with the most candidates, and
//! flows whose headers are as large as a profile compresses them.

#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use std::time::Duration;
use std::vec;
use std::vec::Vec;

use thinair_link::Random;
use thinair_rohc::{
    Arrival, Channel, CidSpace, CompressorConfig, DecompressorConfig, Endpoint, Instant, Integrity, Mode,
    ProfileId, ProfileSet,
};
use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;

/// The compressed packets of a run up to the gap.
const BEFORE: u32 = 300;

/// Hostile packets to one context: those behind the first ones meet its failures.
const ROUND: usize = 16;

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
    /// Records of DTLS 1.2 whose nonces count.
    Dtls,
}

/// A flow, and the engine that compresses it.
#[derive(Clone, Copy, Debug)]
pub struct HostileFlow {
    pub name: &'static str,
    pub kind: Kind,
    pub v2: bool,
    pub six: bool,
    pub is_summed: bool,
    /// Extension headers of IPv6, and the octets of each.
    pub extensions: (usize, usize),
    /// The first one is an Authentication Header.
    pub has_ah: bool,
    /// IPv4 is in IPv6.
    pub tunnel: bool,
    pub csrcs: usize,
    /// The flow pauses now and then.
    pub pauses: bool,
    /// IP-IDs step by at most that many.
    pub id_steps: u16,
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
        has_ah: false,
        tunnel: false,
        csrcs: 0,
        pauses: false,
        id_steps: 1,
        payload: 20,
    };

    /// The worst flows of each engine.
    pub fn all() -> Vec<Self> {
        let plain = Self::PLAIN;
        let large = Self { payload: 1_400, ..plain };
        let long = Self { six: true, extensions: (16, 8), ..plain };
        let longest = Self { six: true, extensions: (16, 32), csrcs: 15, payload: 1_400, ..plain };
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
            Self { name: "ESP/IPv6, 16 with AH", kind: Kind::Esp, has_ah: true, ..longest },
            Self { name: "RTP/IPv6, 16 with AH", has_ah: true, ..longest },
            Self { name: "RTP/IPv4/IPv6, 16 with AH", six: false, tunnel: true, has_ah: true, ..longest },
        ];
        let v2 = |name, flow| Self { name, v2: true, ..flow };
        let deep = Self { six: true, extensions: (4, 24), csrcs: 8, ..plain };
        all.extend([
            v2("v2 UDP/IPv4", Self { kind: Kind::Udp, ..plain }),
            v2("v2 ESP/IPv4", Self { kind: Kind::Esp, ..plain }),
            v2("v2 RTP/IPv4", plain),
            v2("v2 RTP/IPv4, pauses", Self { kind: Kind::Talk, pauses: true, csrcs: 15, ..large }),
            v2("v2 RTP/IPv4, no checksum", Self { is_summed: false, csrcs: 15, ..plain }),
            v2("v2 RTP/IPv6, extensions", Self { kind: Kind::Talk, pauses: true, ..deep }),
            v2("v2 RTP/IPv6, no checksum", Self { is_summed: false, ..deep }),
            v2("v2 RTP/IPv4/IPv6", Self { six: false, tunnel: true, is_summed: false, ..deep }),
            v2("v2 ESP/IPv6, extensions", Self { kind: Kind::Esp, csrcs: 0, ..deep }),
        ]);
        let tcp = Self { kind: Kind::Tcp, payload: 0, ..plain };
        all.extend([
            Self { name: "TCP/IPv4", ..tcp },
            Self { name: "TCP/IPv4, others", id_steps: 3, ..tcp },
            Self { name: "TCP/IPv4, pauses", id_steps: 3, pauses: true, ..tcp },
            Self { name: "TCP/IPv6, extensions", six: true, extensions: (8, 8), ..tcp },
            Self { name: "TCP/IPv4/IPv6, extensions", tunnel: true, extensions: (4, 16), id_steps: 3, ..tcp },
        ]);
        let notify = Self { kind: Kind::Coap, ..plain };
        all.extend([
            Self { name: "CoAP/IPv4, responses", ..notify },
            Self { name: "CoAP/IPv6, responses", six: true, pauses: true, ..notify },
            Self { name: "CoAP/IPv4, elided", is_summed: false, payload: 1_000, ..notify },
            Self { name: "CoAP/IPv4, requests", kind: Kind::CoapGet, payload: 1_000, ..notify },
            Self { name: "CoAP/IPv6, requests", kind: Kind::CoapGet, six: true, pauses: true, ..notify },
        ]);
        let records = Self { kind: Kind::Dtls, ..plain };
        all.extend([
            Self { name: "DTLS/IPv4", ..records },
            Self { name: "DTLS/IPv4, other IP-IDs", id_steps: 3, pauses: true, ..records },
            Self { name: "DTLS/IPv6, pauses", six: true, pauses: true, payload: 1_000, ..records },
            Self { name: "DTLS/IPv4, elided", is_summed: false, payload: 1_000, ..records },
        ]);
        all
    }

    /// Name of the engine.
    pub fn engine(&self) -> &'static str {
        match self.kind {
            Kind::Tcp => "RFC 6846",
            Kind::Coap | Kind::CoapGet => "CoAP",
            Kind::Dtls => "DTLS",
            _ if self.v2 => "RFC 5225",
            _ => "RFC 3095",
        }
    }

    fn channel(&self) -> Channel {
        let profiles = match self.kind {
            Kind::Tcp => ProfileSet::v1().with(ProfileId::Tcp).unwrap(),
            Kind::Coap | Kind::CoapGet => ProfileSet::v1().with(ProfileId::Coap).unwrap(),
            Kind::Dtls => ProfileSet::v1().with(ProfileId::Dtls).unwrap(),
            _ if self.v2 => ProfileSet::v2(),
            _ => ProfileSet::v1(),
        };
        let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
        if self.is_summed { channel } else { channel.with_integrity_below(Integrity::Crc32) }
    }

    fn end(&self, mode: Mode) -> Endpoint<'static> {
        let channel = self.channel();
        let compressor = CompressorConfig::new(channel);
        let decompressor = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        Endpoint::owned(compressor, decompressor)
    }
}

/// The packets of a flow.
struct Source {
    flow: HostileFlow,
    random: Random,
    /// Numbers of all protocols.
    count: u16,
    id: u16,
    ts: u32,
    seq: u32,
    ack: u32,
    sent: u32,
}

impl Source {
    fn new(flow: HostileFlow, seed: u64) -> Self {
        Self { flow, random: Random::new(seed), count: 0xFFF0, id: 77, ts: 90_000, seq: 1, ack: 1, sent: 0 }
    }

    /// The sender is silent for that many packets.
    fn skip(&mut self, packets: u32) {
        match self.flow.kind {
            Kind::Talk => self.ts = self.ts.wrapping_add(160 * packets),
            Kind::Tcp => self.ts = self.ts.wrapping_add(20 * packets),
            _ => {}
        }
    }

    /// Returns the next packet, and the request before it.
    fn next(&mut self) -> (Option<Vec<u8>>, Vec<u8>) {
        self.count = self.count.wrapping_add(1);
        self.id = self.id.wrapping_add(1 + self.random.below(u64::from(self.flow.id_steps)) as u16);
        let payload = (0..self.flow.payload).map(|_| self.random.next_u64() as u8).collect();
        match self.flow.kind {
            Kind::Udp | Kind::UdpLite => (None, self.udp([0xE0, 1, 0x16, 0x34], payload)),
            Kind::Rtp | Kind::Talk => (None, self.rtp(&payload)),
            Kind::Esp => {
                let esp = [&[1, 2, 3, 4, 0, 7][..], &self.count.to_be_bytes(), &payload].concat();
                (None, self.ip(50, esp, false))
            }
            Kind::Tcp => (None, self.tcp()),
            Kind::Dtls => (None, self.record(&payload)),
            Kind::CoapGet => (None, self.coap(0x42, 1, &payload, true)),
            Kind::Coap => {
                let request = self.coap(0x42, 1, &[], true);
                (Some(request), self.coap(0x62, 0x45, &payload, false))
            }
        }
    }

    fn rtp(&mut self, payload: &[u8]) -> Vec<u8> {
        self.ts = self.ts.wrapping_add(160);
        let mut rtp = vec![0x80 | self.flow.csrcs as u8, 0];
        rtp.extend(self.count.to_be_bytes());
        rtp.extend(self.ts.to_be_bytes());
        rtp.extend(*b"SSRC");
        (0..self.flow.csrcs).for_each(|i| rtp.extend([0, 0, 0xC0, i as u8]));
        rtp.extend(payload);
        self.udp([0x90, 0, 0x92, 0], rtp)
    }

    fn record(&mut self, payload: &[u8]) -> Vec<u8> {
        self.seq += 1;
        let number = (1 << 48 | u64::from(self.seq)).to_be_bytes();
        let len = (8 + payload.len() as u16).to_be_bytes();
        let record = [&[23, 254, 253][..], &number, &len, &number, payload].concat();
        self.udp([0xE0, 9, 0x16, 0x34], record)
    }

    fn tcp(&mut self) -> Vec<u8> {
        self.ts = self.ts.wrapping_add(18 + self.random.below(5) as u32);
        self.seq = self.seq.wrapping_add(self.sent);
        self.ack = self.ack.wrapping_add(1_448 * self.random.below(3) as u32);
        let mut options = vec![1, 1, 8, 10];
        options.extend(self.ts.to_be_bytes());
        options.extend((self.ts - 40).to_be_bytes());
        if self.random.below(8) == 0 {
            options.extend([1, 1, 5, 10]);
            options.extend((self.ack + 2_000).to_be_bytes());
            options.extend((self.ack + 4_000).to_be_bytes());
        }
        self.sent = if self.random.below(3) == 0 { 0 } else { 100 };
        let mut tcp = vec![0x0F, 0xA0, 0, 80];
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.extend([(5 + options.len() as u8 / 4) << 4, 0x10, 0x20, 0, 0, 0, 0, 0]);
        tcp.extend(options);
        tcp.resize(tcp.len() + self.sent as usize, 7);
        let sum = self.sum(6, &tcp, false);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        self.ip(6, tcp, false)
    }

    /// A CoAP message with long options, of a client or a server. RFC 7252, section 3.
    fn coap(&mut self, first: u8, code: u8, payload: &[u8], is_client: bool) -> Vec<u8> {
        let id = self.count.to_be_bytes();
        let mut coap = vec![first, code];
        coap.extend([id, id].concat());
        if is_client {
            // Uri-Path, twice, and Uri-Query.
            coap.extend([0xBD, 47]);
            coap.extend([b'a'; 60]);
            coap.extend([0x0D, 17]);
            coap.extend([b'b'; 30]);
            coap.push(0x48);
            coap.extend(self.random.next_u64().to_be_bytes());
        } else {
            // ETag, Observe and Content-Format.
            coap.extend([0x48, 1, 2, 3, 4, 5, 6, 7, 8, 0x22]);
            coap.extend(id);
            coap.extend([0x61, 50]);
        }
        if !payload.is_empty() {
            coap.push(0xFF);
            coap.extend(payload);
        }
        let ports = if is_client { [0xE0, 9, 0x16, 0x33] } else { [0x16, 0x33, 0xE0, 9] };
        self.udp_of(ports, coap, !is_client)
    }

    fn udp(&self, ports: [u8; 4], payload: Vec<u8>) -> Vec<u8> {
        self.udp_of(ports, payload, false)
    }

    /// UDP or UDP-Lite, with a right checksum or none.
    fn udp_of(&self, ports: [u8; 4], payload: Vec<u8>, is_back: bool) -> Vec<u8> {
        let protocol = if self.flow.kind == Kind::UdpLite { 136 } else { 17 };
        let len = 8 + payload.len() as u16;
        let mut udp = [&ports[..], &len.to_be_bytes(), &[0, 0], &payload].concat();
        if self.flow.is_summed || matches!(self.flow.kind, Kind::Coap | Kind::CoapGet | Kind::Dtls) {
            let sum = self.sum(protocol, &udp, is_back);
            udp[6..8].copy_from_slice(&(if sum == 0 { 0xFFFF } else { sum }).to_be_bytes());
        }
        self.ip(protocol, udp, is_back)
    }

    fn addresses(&self, is_back: bool) -> Vec<u8> {
        let ends: [u8; 2] = if is_back { [2, 1] } else { [1, 2] };
        let octets = if self.flow.six { 15 } else { 3 };
        ends.iter().flat_map(|end| [vec![10; octets], vec![*end]].concat()).collect()
    }

    fn sum(&self, protocol: u8, octets: &[u8], is_back: bool) -> u16 {
        let sum = Sum::ZERO.octets(&self.addresses(is_back)).word(u16::from(protocol));
        sum.word(octets.len() as u16).octets(octets).checksum()
    }

    /// IP headers, and extension headers of the outer one.
    fn ip(&self, protocol: u8, inside: Vec<u8>, is_back: bool) -> Vec<u8> {
        let HostileFlow { six, extensions: (count, octets), has_ah, tunnel, .. } = self.flow;
        let mut packet = inside;
        if !six {
            let mut ip = vec![0x45, 0];
            ip.extend((20 + packet.len() as u16).to_be_bytes());
            ip.extend(self.id.to_be_bytes());
            ip.extend([0x40, 0, 64, protocol, 0, 0]);
            ip.extend(self.addresses(is_back));
            let sum = Ipv4::checksum_of(&ip);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            ip.extend(packet);
            packet = ip;
        }
        if !six && !tunnel {
            return packet;
        }
        let next = if six { protocol } else { 4 };
        let kind = |i: usize| {
            if i == count {
                next
            } else if has_ah && i == 0 {
                51
            } else {
                60
            }
        };
        let mut behind = Vec::new();
        for i in 0..count {
            behind.extend([
                kind(i + 1),
                if kind(i) == 51 { octets as u8 / 4 - 2 } else { octets as u8 / 8 - 1 },
            ]);
            let from = behind.len();
            behind.resize(from + octets - 2, i as u8);
            let content = &mut behind[from..];
            if kind(i) == 51 {
                content[..2].fill(0);
                content[6..8].fill(0);
                content[8..10].copy_from_slice(&self.count.to_be_bytes());
            } else {
                // PadN.
                (content[0], content[1]) = (1, octets as u8 - 4);
            }
        }
        behind.extend(packet);
        let mut ip = vec![0x60, 0, 0, 0];
        ip.extend((behind.len() as u16).to_be_bytes());
        ip.extend([kind(0), 64]);
        ip.extend(if six { self.addresses(is_back) } else { vec![9; 32] });
        ip.extend(behind);
        ip
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
        let mut source = Source::new(flow, seed);
        let (mut events, mut next) = (Vec::new(), Vec::new());
        let (mut now, mut rohc, mut back) = (Instant::ZERO, vec![0; 4_096], vec![0; 4_096]);
        let is_counted = gap.count.is_some();
        let mut element = [0; 64];
        for i in 0..BEFORE + gap.lost + 4 {
            if flow.pauses && i < BEFORE && i % 40 == 39 {
                now = now + STEP * (25 + 40 * (i / 40 % 3));
                source.skip(25 + 40 * (i / 40 % 3));
            }
            if i == BEFORE + gap.lost {
                now = now + STEP * gap.silent;
                source.skip(gap.silent);
            }
            now = now + STEP;
            let (request, packet) = source.next();
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
    pub fn hostile(&self, random: &mut Random) -> Vec<(Arrival, Vec<u8>)> {
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
                packet[known / 12..].fill_with(|| random.next_u64() as u8);
                all.push((*arrival, packet));
            }
        }
        // The last one is behind all of its round.
        let last = all.last().map_or(Instant::ZERO, |(arrival, _)| arrival.now);
        all.iter_mut().for_each(|(arrival, _)| arrival.now = last);
        all
    }

    /// Passes one in `every` hostile packets to `decompress`, with ends that have received what came before.
    pub fn attack(
        &self,
        random: &mut Random,
        every: usize,
        mut decompress: impl FnMut(&mut Endpoint<'static>, Arrival, &[u8]),
    ) {
        let all: Vec<_> = self.hostile(random).into_iter().step_by(every).collect();
        for round in all.chunks(ROUND) {
            let mut end = self.end();
            let mut element = [0; 64];
            for (i, (arrival, packet)) in round.iter().enumerate() {
                let arrival =
                    if i == 0 { *arrival } else { Arrival { lost: arrival.lost.map(|_| 0), ..*arrival } };
                decompress(&mut end, arrival, packet);
                while end.poll_feedback(&mut element).is_some() {}
            }
        }
    }
}

/// Gaps that leave from one candidate to more than are tried, each with a mode.
pub fn all_gaps() -> Vec<(Mode, Gap)> {
    let (u, o, r) = (Mode::Unidirectional, Mode::Optimistic, Mode::Reliable);
    let gap = |mode, lost, silent, count| (mode, Gap { lost, silent, count });
    vec![
        gap(u, 0, 0, None),
        gap(o, 3, 0, Some(3)),
        gap(u, 100, 0, None),
        gap(o, 20, 1_000, None),
        gap(u, 900, 0, Some(900)),
        gap(o, 0, 5_000, None),
        gap(r, 0, 5_000, None),
        gap(u, 0, 100_000, None),
        gap(o, 10, 10_000, Some(9_000)),
    ]
}
