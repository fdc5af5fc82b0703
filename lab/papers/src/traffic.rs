//! CoAP traffic for measurements of header compression, as whole IP packets. RFC 7252.
//!
//! A seed determines addresses, ports, Message IDs, tokens, IP-IDs and payloads, so that no figure depends on
//! particular values. Lengths follow from the kind alone.

use crate::paper::PaperError;
use thinair_link::Random;
use thinair_wire::checksum::Sum;

const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
const PROTOCOL_UDP: u8 = 17;
const COAP_PORT: u16 = 5683;
const PAYLOAD_MARKER: u8 = 0xFF;

const GET: u8 = 0x01;
const POST: u8 = 0x02;
const CHANGED: u8 = 0x44;
const CONTENT: u8 = 0x45;

/// Uri-Path: time.
const TIME: &[u8] = b"\xB4time";
/// Content-Format 0, Max-Age 1, as in the responses of the paper's server.
const PLAIN_FOR_A_SECOND: &[u8] = b"\xC0\x21\x01";

/// Kind of traffic in one direction. The letters are those of the size table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TrafficKind {
    /// CON GET, Uri-Path `time`, Message IDs count.
    A,
    /// ACK 2.05 with 15 octets, Message IDs count.
    B,
    /// `A` with a random token of 2 octets.
    C2,
    /// `A` with a random token of 4 octets.
    C4,
    /// `A` with a counting token of 2 octets.
    CCount,
    /// NON notification with 20 octets: static token of 4 octets, Observe counts.
    D,
    /// Block2 request: NUM counts, static token of 2 octets.
    EReq,
    /// Block2 response with 64 octets: NUM counts, static token and ETag.
    ERsp,
    /// OSCORE request with 14 octets: Partial IV counts, kid static.
    FReq,
    /// OSCORE response with 25 octets.
    FRsp,
    /// `A` with a changing Uri-Query `t=NNNN`.
    G,
    /// `A` with random Message IDs.
    H,
    /// ACK 2.05 with 15 octets to a GET whose Message ID and token of 4 octets are random.
    HRsp,
}

impl TrafficKind {
    pub(crate) const ALL: [Self; 13] = [
        Self::A,
        Self::B,
        Self::C2,
        Self::C4,
        Self::CCount,
        Self::D,
        Self::EReq,
        Self::ERsp,
        Self::FReq,
        Self::FRsp,
        Self::G,
        Self::H,
        Self::HRsp,
    ];

    /// Name in row ids.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
            Self::C2 => "c2",
            Self::C4 => "c4",
            Self::CCount => "c-count",
            Self::D => "d",
            Self::EReq => "e-req",
            Self::ERsp => "e-rsp",
            Self::FReq => "f-req",
            Self::FRsp => "f-rsp",
            Self::G => "g",
            Self::H => "h",
            Self::HRsp => "h-rsp",
        }
    }

    /// Kind of that name.
    pub(crate) fn by_name(name: &str) -> Result<Self, PaperError> {
        let named = Self::ALL.into_iter().find(|kind| kind.name() == name);
        named.ok_or_else(|| PaperError::Form(format!("unknown flow {name}")))
    }

    /// Size of the payload, in octets.
    pub(crate) const fn payload(self) -> usize {
        match self {
            Self::A | Self::C2 | Self::C4 | Self::CCount | Self::EReq | Self::G | Self::H => 0,
            Self::FReq => 14,
            Self::B | Self::HRsp => 15,
            Self::D => 20,
            Self::FRsp => 25,
            Self::ERsp => 64,
        }
    }

    /// True if the server sends it.
    pub(crate) const fn is_from_server(self) -> bool {
        matches!(self, Self::B | Self::D | Self::ERsp | Self::FRsp | Self::HRsp)
    }
}

/// Version of the Internet Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TrafficVersion {
    V4,
    V6,
}

impl TrafficVersion {
    pub(crate) const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// Name in row ids.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4",
            Self::V6 => "v6",
        }
    }

    /// Size of the IP header, in octets.
    const fn header_len(self) -> usize {
        match self {
            Self::V4 => IPV4,
            Self::V6 => IPV6,
        }
    }

    /// Version of that name.
    pub(crate) fn by_name(name: &str) -> Result<Self, PaperError> {
        let named = Self::ALL.into_iter().find(|version| version.name() == name);
        named.ok_or_else(|| PaperError::Form(format!("unknown version {name}")))
    }
}

/// Packet, and the size of its headers: everything before the payload.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrafficPacket {
    pub(crate) octets: Vec<u8>,
    pub(crate) headers: usize,
}

/// Both hosts of a conversation.
#[derive(Clone, Copy, Debug)]
struct FlowHosts {
    version: TrafficVersion,
    client: [u8; 16],
    server: [u8; 16],
    client_port: u16,
}

impl FlowHosts {
    fn new(version: TrafficVersion, random: &mut Random) -> Self {
        let mut client = [0; 16];
        client[..8].copy_from_slice(&random.next_u64().to_be_bytes());
        client[8..].copy_from_slice(&random.next_u64().to_be_bytes());
        // Unique local unicast addresses (RFC 4193); the last four octets are those of a private IPv4 address.
        client[0] = 0xFD;
        client[12] = 10;
        let mut server = client;
        server[13..].copy_from_slice(&random.next_u64().to_be_bytes()[..3]);
        server[15] = client[15] ^ 1;
        let client_port = 49_152 + random.below(16_384) as u16;
        Self { version, client, server, client_port }
    }
}

/// Flow of one kind.
#[derive(Clone, Debug)]
pub(crate) struct CoapFlow {
    kind: TrafficKind,
    hosts: FlowHosts,
    random: Random,
    message_id: u16,
    token: u32,
    ip_id: u16,
    /// Observe, NUM, Partial IV or another counter. It has two octets as a uint (RFC 7252, section 3.2) for the first
    /// thousands of packets.
    counter: u32,
    tag: u32,
}

impl CoapFlow {
    /// Creates a flow, before its first packet.
    pub(crate) fn new(kind: TrafficKind, version: TrafficVersion, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let hosts = FlowHosts::new(version, &mut random);
        Self::between(kind, hosts, random)
    }

    /// Notifications ([`TrafficKind::D`]) that a server sends to a client over IPv6.
    pub(crate) fn notifications(server: [u8; 16], client: [u8; 16], seed: u64) -> Self {
        let mut random = Random::new(seed);
        let hosts = FlowHosts { client, server, ..FlowHosts::new(TrafficVersion::V6, &mut random) };
        Self::between(TrafficKind::D, hosts, random)
    }

    /// Conversation: GET requests with random Message IDs and tokens, and the flow of their responses.
    pub(crate) fn exchange(version: TrafficVersion, seed: u64) -> (Self, Self) {
        let mut random = Random::new(seed);
        let hosts = FlowHosts::new(version, &mut random);
        let request = Self::between(TrafficKind::C4, hosts, random.split());
        (request, Self::between(TrafficKind::HRsp, hosts, random))
    }

    fn between(kind: TrafficKind, hosts: FlowHosts, mut random: Random) -> Self {
        let mut word = |below: u64| random.below(below);
        Self {
            kind,
            hosts,
            message_id: word(1 << 16) as u16,
            token: word(1 << 32) as u32,
            ip_id: word(1 << 16) as u16,
            counter: 0x0100 + word(0x0A00) as u32,
            tag: word(1 << 32) as u32,
            random,
        }
    }

    /// Writes the next packet.
    pub(crate) fn next(&mut self, packet: &mut TrafficPacket) {
        self.message_id = match self.kind {
            TrafficKind::H => self.random.next_u64() as u16,
            _ => self.message_id.wrapping_add(1),
        };
        self.token = match self.kind {
            TrafficKind::C2 | TrafficKind::C4 => self.random.next_u64() as u32,
            _ => self.token,
        };
        self.write(packet);
    }

    /// Writes the next request of an [`exchange`](Self::exchange).
    pub(crate) fn ask(&mut self, packet: &mut TrafficPacket) {
        self.message_id = self.random.next_u64() as u16;
        self.token = self.random.next_u64() as u32;
        self.write(packet);
    }

    /// Writes the response to the last `request`.
    pub(crate) fn answer(&mut self, request: &Self, packet: &mut TrafficPacket) {
        (self.message_id, self.token) = (request.message_id, request.token);
        self.write(packet);
    }

    fn write(&mut self, packet: &mut TrafficPacket) {
        self.ip_id = self.ip_id.wrapping_add(1);
        self.counter = self.counter.wrapping_add(1);
        let out = &mut packet.octets;
        out.clear();
        out.resize(self.hosts.version.header_len() + UDP, 0);
        self.coap(out);
        if self.kind.payload() > 0 {
            out.push(PAYLOAD_MARKER);
        }
        packet.headers = out.len();
        for _ in 0..self.kind.payload().div_ceil(8) {
            out.extend(self.random.next_u64().to_be_bytes());
        }
        out.truncate(packet.headers + self.kind.payload());
        self.udp_ip(out);
    }

    /// CoAP header and options.
    fn coap(&self, out: &mut Vec<u8>) {
        let token = self.token.to_be_bytes();
        let counter = self.counter.to_be_bytes();
        let uint = &counter[counter.iter().take_while(|octet| **octet == 0).count()..];
        let (con, non, ack) = (0, 1, 2);
        let mut header = |message_type: u8, code: u8, token: &[u8]| {
            out.extend([1 << 6 | message_type << 4 | token.len() as u8, code]);
            out.extend(self.message_id.to_be_bytes());
            out.extend(token);
        };
        match self.kind {
            TrafficKind::A | TrafficKind::H => {
                header(con, GET, &[]);
                out.extend(TIME);
            }
            TrafficKind::C2 => {
                header(con, GET, &token[..2]);
                out.extend(TIME);
            }
            TrafficKind::C4 => {
                header(con, GET, &token);
                out.extend(TIME);
            }
            TrafficKind::CCount => {
                header(con, GET, uint);
                out.extend(TIME);
            }
            TrafficKind::B => {
                header(ack, CONTENT, &[]);
                out.extend(PLAIN_FOR_A_SECOND);
            }
            TrafficKind::HRsp => {
                header(ack, CONTENT, &token);
                out.extend(PLAIN_FOR_A_SECOND);
            }
            TrafficKind::D => {
                header(non, CONTENT, &token);
                // Observe (6) and Content-Format (12) CBOR.
                out.push(0x60 | uint.len() as u8);
                out.extend(uint);
                out.extend([0x61, 60]);
            }
            TrafficKind::EReq => {
                header(con, GET, &token[..2]);
                out.extend(b"\xB2fw");
                out.push(0xC2);
                out.extend(self.block(false));
            }
            TrafficKind::ERsp => {
                header(ack, CONTENT, &token[..2]);
                out.push(0x44);
                out.extend(self.tag.to_be_bytes());
                // Content-Format (12) octet-stream, Block2 (23).
                out.extend([0x81, 42, 0xB2]);
                out.extend(self.block(true));
            }
            TrafficKind::FReq => {
                header(con, POST, &token[..1]);
                // OSCORE (9): flags with the length of the Partial IV and a kid, then both. RFC 8613, section 6.1.
                out.extend([0x92 + uint.len() as u8, 0x08 | uint.len() as u8]);
                out.extend(uint);
                out.push(token[3]);
            }
            TrafficKind::FRsp => {
                header(ack, CHANGED, &token[..2]);
                out.push(0x90);
            }
            TrafficKind::G => {
                header(con, GET, &[]);
                out.extend(TIME);
                let mut digits = self.tag.wrapping_add(self.counter.wrapping_mul(7_919)) % 10_000;
                let mut query = *b"\x46t=0000";
                for digit in query.iter_mut().rev().take(4) {
                    *digit += (digits % 10) as u8;
                    digits /= 10;
                }
                out.extend(query);
            }
        }
    }

    /// NUM, M and SZX for blocks of 64 octets. RFC 7959, section 2.2.
    fn block(&self, more: bool) -> [u8; 2] {
        // NUM wraps in time to stay within 12 bits, and always takes two octets.
        let num = 0x0010 + self.counter as u16 % 0x0FF0;
        (num << 4 | u16::from(more) << 3 | 2).to_be_bytes()
    }

    /// Writes the headers before the CoAP message.
    fn udp_ip(&self, out: &mut [u8]) {
        let hosts = &self.hosts;
        let mut ends = [(&hosts.client, hosts.client_port), (&hosts.server, COAP_PORT)];
        if self.kind.is_from_server() {
            ends.reverse();
        }
        write_headers(out, hosts.version, self.ip_id, ends);
    }
}

/// Writes the IP and UDP headers at the start of a packet. `ends`: address and port of source and destination; an IPv4
/// address is the last four octets.
pub(crate) fn write_headers(
    out: &mut [u8],
    version: TrafficVersion,
    ip_id: u16,
    ends: [(&[u8; 16], u16); 2],
) {
    let [(source, source_port), (destination, destination_port)] = ends;
    let (len, transport) = (out.len(), version.header_len());
    let udp_len = (len - transport) as u16;
    let (ip, udp) = out.split_at_mut(transport);
    let addresses = match version {
        TrafficVersion::V4 => {
            ip[..12].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, PROTOCOL_UDP, 0, 0]);
            ip[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            ip[4..6].copy_from_slice(&ip_id.to_be_bytes());
            ip[12..16].copy_from_slice(&source[12..]);
            ip[16..20].copy_from_slice(&destination[12..]);
            let checksum = Sum::ZERO.octets(ip).checksum();
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            &ip[12..]
        }
        TrafficVersion::V6 => {
            // Constrained stacks set no Flow Label.
            ip[0] = 6 << 4;
            ip[4..6].copy_from_slice(&udp_len.to_be_bytes());
            ip[6..8].copy_from_slice(&[PROTOCOL_UDP, 64]);
            ip[8..24].copy_from_slice(source);
            ip[24..40].copy_from_slice(destination);
            &ip[8..]
        }
    };
    udp[..2].copy_from_slice(&source_port.to_be_bytes());
    udp[2..4].copy_from_slice(&destination_port.to_be_bytes());
    udp[4..6].copy_from_slice(&udp_len.to_be_bytes());
    udp[6..8].fill(0);
    let sum = Sum::ZERO.octets(addresses).word(u16::from(PROTOCOL_UDP)).word(udp_len).octets(udp);
    // Zero would mean no checksum. RFC 768.
    let checksum = match sum.checksum() {
        0 => 0xFFFF,
        checksum => checksum,
    };
    udp[6..8].copy_from_slice(&checksum.to_be_bytes());
}

/// First packets of a flow, in its direction.
pub(crate) fn packets(
    kind: TrafficKind,
    version: TrafficVersion,
    seed: u64,
    count: usize,
) -> Vec<TrafficPacket> {
    let (mut request, mut flow) = match kind {
        TrafficKind::HRsp => CoapFlow::exchange(version, seed),
        _ => (CoapFlow::new(kind, version, seed), CoapFlow::new(kind, version, seed)),
    };
    let next = || {
        let mut packet = TrafficPacket::default();
        if kind == TrafficKind::HRsp {
            request.ask(&mut packet);
            flow.answer(&request, &mut packet);
        } else {
            flow.next(&mut packet);
        }
        packet
    };
    std::iter::repeat_with(next).take(count).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use thinair_wire::header::chain::HeaderChain;
    use thinair_wire::header::coap::{Coap, CoapOptionsEnd};

    use super::*;

    /// Uncompressed sizes of the table.
    #[test]
    fn packets_are_as_long_as_the_table_says() {
        let lengths = [37, 51, 39, 41, 39, 62, 40, 109, 53, 61, 44, 37, 55];
        for (kind, len) in TrafficKind::ALL.into_iter().zip(lengths) {
            for seed in 0..20 {
                for packet in packets(kind, TrafficVersion::V4, seed, 1_000) {
                    assert_eq!(packet.octets.len(), len, "{kind:?}");
                    assert_eq!(packet.octets.len() - packet.headers, kind.payload());
                }
                for packet in packets(kind, TrafficVersion::V6, seed, 10) {
                    assert_eq!(packet.octets.len(), len + 20, "{kind:?}");
                }
            }
        }
    }

    #[test]
    fn packets_have_right_lengths_checksums_and_options() {
        for kind in TrafficKind::ALL {
            for version in TrafficVersion::ALL {
                for packet in packets(kind, version, 9, 50) {
                    let chain = HeaderChain::parse(&packet.octets).unwrap();
                    assert_eq!(chain.oddity(), None, "{kind:?} {version:?}");
                    let coap = Coap::read(&packet.octets[chain.ip_end() + UDP..]).unwrap();
                    let end = match &packet.octets[packet.headers..] {
                        [] => CoapOptionsEnd::NoPayload,
                        payload => CoapOptionsEnd::Payload(payload),
                    };
                    assert_eq!(coap.options().into_end(), end, "{kind:?}");
                }
            }
        }
    }

    #[test]
    fn a_seed_determines_a_flow_and_another_one_changes_it() {
        for kind in TrafficKind::ALL {
            let octets = |seed| -> Vec<_> {
                packets(kind, TrafficVersion::V4, seed, 3).into_iter().map(|packet| packet.octets).collect()
            };
            assert_eq!(octets(1), octets(1));
            let (one, other) = (octets(1), octets(2));
            let differ = |at: std::ops::Range<usize>| one[0][at.clone()] != other[0][at];
            assert!(differ(4..6) && differ(12..20) && differ(20..24) && differ(30..32), "{kind:?}");
        }
    }

    #[test]
    fn what_counts_counts_by_one_and_what_is_random_does_not() {
        let id = |packet: &TrafficPacket| u16::from_be_bytes([packet.octets[30], packet.octets[31]]);
        for kind in TrafficKind::ALL {
            let packets = packets(kind, TrafficVersion::V4, 4, 5);
            let counts = packets.windows(2).all(|pair| id(&pair[1]) == id(&pair[0]).wrapping_add(1));
            assert_eq!(counts, !matches!(kind, TrafficKind::H | TrafficKind::HRsp), "{kind:?}");
        }
    }
}
