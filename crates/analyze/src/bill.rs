//! The bill of a capture by cause: each octet of each frame counts once, under the reason for which it was sent.
//!
//! Packets that carry data of an application are divided: headers by layer, and payload by protocol. All others, such as
//! handshakes, acknowledgments without data and repeated packets, count with all their octets under one cause.

use serde::{Deserialize, Serialize};
use thinair_capture::Record;
use thinair_rohc::Ports;
use thinair_wire::header::coap::{Coap, Code, Type};
use thinair_wire::header::protocol;
use thinair_wire::header::tcp::Tcp;

pub(crate) use self::remedies::Remedies;
use self::remedies::RemedyFlow;
use crate::packet::{ParsedPacket, RtpTrace};
use crate::tls::TlsRecords;

mod http;
mod remedies;

/// Reason for which octets are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BillCause {
    /// Data of an application.
    Payload,
    /// Headers and trailers of frames.
    LinkHeaders,
    /// IP headers and extension headers.
    IpHeaders,
    /// UDP, UDP-Lite, TCP and ESP headers.
    TransportHeaders,
    /// CoAP and RTP headers.
    ApplicationHeaders,
    /// Begin and end of connections of TCP; handshakes of TLS, DTLS, QUIC and WireGuard.
    Handshakes,
    /// Acknowledgments without data: TCP, CoAP.
    Acknowledgments,
    /// Packets that keep a connection or a mapping: TCP, MQTT, WireGuard, CoAP ping, NAT of IPsec.
    Keepalives,
    /// Segments of TCP and messages of CoAP that were sent before.
    Retransmissions,
    /// DNS and NTP.
    NamesAndTime,
    /// Traffic of a local network: ARP, MLD, neighbors and routers, multicast DNS, LLMNR, SSDP, DHCP.
    LinkNoise,
    /// ICMP: echo and errors.
    PathProbes,
    /// Frames without a whole IP packet.
    OtherFrames,
}

impl BillCause {
    /// True if the remedy is tried on the packets.
    fn is_tried(self, protocol: &str) -> bool {
        match self {
            Self::Handshakes | Self::Keepalives | Self::NamesAndTime | Self::LinkNoise => true,
            Self::Acknowledgments => protocol == "coap",
            Self::Payload
            | Self::LinkHeaders
            | Self::IpHeaders
            | Self::TransportHeaders
            | Self::ApplicationHeaders
            | Self::Retransmissions
            | Self::PathProbes
            | Self::OtherFrames => false,
        }
    }

    /// Remedy in a few words, for octets of a protocol; `None` where there is none.
    pub fn remedy(self, protocol: &str) -> Option<&'static str> {
        match self {
            Self::Payload => Some("send less often, or a smaller encoding such as CBOR"),
            Self::LinkHeaders => Some("fewer, larger packets"),
            Self::IpHeaders => Some("header compression"),
            Self::TransportHeaders | Self::ApplicationHeaders => Some("header compression, with those of IP"),
            Self::Handshakes => Some("one connection for several requests; session resumption"),
            Self::Acknowledgments if protocol == "coap" => Some("messages without confirmation"),
            Self::Acknowledgments => Some("header compression"),
            Self::Keepalives => Some("a longer interval, just below the timeout of the NAT"),
            Self::Retransmissions => Some("a longer timeout, from measured round trips"),
            Self::NamesAndTime if protocol == "dns" => Some("a cache of names"),
            Self::NamesAndTime => Some("a longer interval"),
            Self::LinkNoise => Some("a route instead of a bridge"),
            Self::PathProbes => Some("a longer interval, or none while there is traffic"),
            Self::OtherFrames => None,
        }
    }
}

/// Octets of one cause and protocol.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BillRow {
    /// Reason.
    pub cause: BillCause,
    /// Protocol, such as `coap`; of headers the layer.
    pub protocol: String,
    /// Packets and frames with octets of that cause.
    pub packets: u64,
    /// Octets of frames on the link.
    pub bytes: u64,
    /// Part of all octets.
    pub share: f64,
    /// Remedy, if there is one.
    pub remedy: Option<&'static str>,
    /// Octets that the remedy saves on these captures, if it was tried.
    pub saves_bytes: Option<u64>,
}

/// Octets by cause and protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bill(Vec<BillSum>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BillSum {
    cause: BillCause,
    protocol: std::borrow::Cow<'static, str>,
    packets: u64,
    bytes: u64,
    /// Octets that the remedy saves, if it is tried packet by packet.
    saves: u64,
}

/// State of a flow that decides about causes.
#[derive(Debug, Default)]
pub(crate) struct BillFlow {
    /// Sequence number behind the latest octet.
    next: Option<u32>,
    tls: TlsRecords,
    /// Hashes of the latest messages of CoAP, and the place of the oldest.
    messages: [u64; 8],
    oldest: usize,
    rtp: Option<RtpTrace>,
    remedy: RemedyFlow,
    /// Time of the latest packet, in nanoseconds, and the time without one before it.
    latest: u64,
    silence: u64,
}

impl Bill {
    /// Adds a frame without a whole IP packet.
    pub(crate) fn frame(&mut self, record: &Record<'_>) {
        const ARP: u16 = 0x0806;
        const LLDP: u16 = 0x88CC;
        // A length instead of an EtherType: LLC, as of spanning trees.
        const LLC: std::ops::Range<u16> = 0..0x0600;

        let (cause, protocol) = match record.ethertype() {
            Some(ARP) => (BillCause::LinkNoise, "arp"),
            Some(LLDP) => (BillCause::LinkNoise, "lldp"),
            Some(ethertype) if LLC.contains(&ethertype) => (BillCause::LinkNoise, "llc"),
            Some(_) | None => (BillCause::OtherFrames, "other"),
        };
        let octets = octets(record);
        // No router forwards these.
        let saves = if cause == BillCause::LinkNoise { octets } else { 0 };
        self.add(cause, protocol, octets, saves);
    }

    /// Adds the frame of a packet, or of its last fragment.
    pub(crate) fn packet(
        &mut self,
        record: &Record<'_>,
        packet: &ParsedPacket<'_>,
        flow: &mut BillFlow,
        ports: &Ports,
        remedies: &mut Remedies,
    ) {
        let (all, now) = (octets(record), record.time.as_nanos());
        (flow.latest, flow.silence) = (now, now.saturating_sub(flow.latest));
        let content = Content::of(packet, flow, ports, remedies);
        remedies.http(packet, all, matches!(content, Content::Data { .. }));
        match content {
            Content::Whole(cause, protocol) => {
                let saves = remedies.of_whole((cause, protocol), packet, flow, now, all);
                self.add(cause, protocol, all, saves);
            }
            Content::Data { application, handshake, protocol } => {
                // If the packet was compressed, or in fragments, on the link, the frame lacks headers at its front.
                let mut left = all;
                let mut take = |octets: usize| {
                    let taken = left.min(octets as u64);
                    left -= taken;
                    taken
                };
                let polled = if protocol == "coap" { remedies.of_coap(packet, all) } else { 0 };
                let data = packet.octets.len() - packet.headers();
                let (payload, handshake) = (take(data - application - handshake), take(handshake));
                let parts = [
                    (BillCause::Payload, protocol, payload, polled),
                    (
                        BillCause::Handshakes,
                        protocol,
                        handshake,
                        remedies.of_handshake(packet, flow, now, handshake),
                    ),
                    (BillCause::ApplicationHeaders, protocol, take(application), 0),
                    (BillCause::TransportHeaders, "transport", take(packet.transport), 0),
                    (BillCause::IpHeaders, "ip", take(packet.ip), 0),
                ];
                for (cause, protocol, octets, saves) in parts {
                    self.add(cause, protocol, octets, saves);
                }
                self.add(BillCause::LinkHeaders, "link", left, 0);
            }
        }
    }

    fn add(&mut self, cause: BillCause, protocol: &'static str, bytes: u64, saves: u64) {
        if bytes == 0 {
            return;
        }
        let is_it = |sum: &BillSum| sum.cause == cause && sum.protocol == protocol;
        match self.0.iter_mut().find(|sum| is_it(sum)) {
            Some(sum) => {
                (sum.packets, sum.bytes, sum.saves) = (sum.packets + 1, sum.bytes + bytes, sum.saves + saves);
            }
            None => self.0.push(BillSum { cause, protocol: protocol.into(), packets: 1, bytes, saves }),
        }
    }

    /// Adds octets that remedies save of a whole capture.
    pub(crate) fn finish(&mut self, remedies: Remedies) {
        let is_http = |sum: &&mut BillSum| sum.cause == BillCause::Payload && sum.protocol == "http";
        if let Some(sum) = self.0.iter_mut().find(is_http) {
            sum.saves += remedies.of_http();
        }
    }

    /// Adds the bill of other captures.
    pub(crate) fn merge(&mut self, other: &Self) {
        for more in &other.0 {
            let is_it = |sum: &BillSum| sum.cause == more.cause && sum.protocol == more.protocol;
            match self.0.iter_mut().find(|sum| is_it(sum)) {
                Some(sum) => {
                    sum.packets += more.packets;
                    sum.bytes += more.bytes;
                    sum.saves += more.saves;
                }
                None => self.0.push(more.clone()),
            }
        }
    }

    /// Returns the rows, largest first. `compressed`: octets that compression saves.
    pub(crate) fn rows(&self, compressed: Option<u64>) -> Vec<BillRow> {
        let all: u64 = self.0.iter().map(|sum| sum.bytes).sum();
        let row = |sum: &BillSum| BillRow {
            cause: sum.cause,
            protocol: sum.protocol.to_string(),
            packets: sum.packets,
            bytes: sum.bytes,
            share: sum.bytes as f64 / all as f64,
            remedy: match sum.cause {
                BillCause::Payload if sum.protocol == "http" => Some("CoAP instead of HTTP"),
                BillCause::Payload if sum.saves > 0 => Some("Observe instead of polling"),
                cause => cause.remedy(&sum.protocol),
            },
            saves_bytes: match sum.cause {
                BillCause::IpHeaders => compressed,
                cause => (sum.saves > 0 || cause.is_tried(&sum.protocol)).then_some(sum.saves),
            },
        };
        let mut rows: Vec<_> = self.0.iter().map(row).collect();
        rows.sort_by(|a, b| (b.bytes, a.cause, &a.protocol).cmp(&(a.bytes, b.cause, &b.protocol)));
        rows
    }
}

/// Silence before a keepalive of MQTT, in nanoseconds: the shortest that programs keep is 5 s.
const MQTT_SILENCE: u64 = 4_000_000_000;

/// True for a record of TLS whose data of an application has two octets, as PINGREQ and PINGRESP of MQTT have: with type and tag
/// in TLS 1.3; with a tag, and in AES-GCM with a nonce, in TLS 1.2.
fn is_one_record_of_two_octets(data: &[u8]) -> bool {
    matches!(*data, [23, 3, _, 0, length @ (18 | 19 | 26), ref rest @ ..] if rest.len() == usize::from(length))
}

/// Octets of a frame on the link.
fn octets(record: &Record<'_>) -> u64 {
    (record.data.len() as u64).max(record.original_len.into())
}

/// Contents of a packet.
enum Content {
    /// No data of an application.
    Whole(BillCause, &'static str),
    /// Data behind headers.
    Data {
        /// Octets of the application header.
        application: usize,
        /// Octets of a handshake among the data.
        handshake: usize,
        protocol: &'static str,
    },
}

impl Content {
    fn of(packet: &ParsedPacket<'_>, flow: &mut BillFlow, ports: &Ports, remedies: &mut Remedies) -> Self {
        const ICMP: u8 = 1;
        const IGMP: u8 = 2;
        const ICMPV6: u8 = 58;
        // Multicast listeners, routers, neighbors, redirects; MLDv2.
        const LOCAL: std::ops::RangeInclusive<u8> = 130..=137;
        const MLDV2: u8 = 143;

        let behind = packet.behind_ip();
        match (packet.key.protocol, packet.key.ports) {
            (protocol::TCP, Some(ports)) if !packet.is_fragment => {
                Self::of_tcp(packet, ports, flow, remedies)
            }
            (protocol::UDP | protocol::UDP_LITE, Some(_)) if !packet.is_fragment => {
                Self::of_udp(packet, flow, ports)
            }
            (ICMPV6, _) => match behind.first() {
                Some(kind) if LOCAL.contains(kind) || *kind == MLDV2 => {
                    Self::Whole(BillCause::LinkNoise, "icmpv6")
                }
                Some(_) | None => Self::Whole(BillCause::PathProbes, "icmpv6"),
            },
            (ICMP, _) => Self::Whole(BillCause::PathProbes, "icmp"),
            (IGMP, _) => Self::Whole(BillCause::LinkNoise, "igmp"),
            (protocol::ESP, _) => Self::data("esp"),
            _ => Self::data("other"),
        }
    }

    const fn data(protocol: &'static str) -> Self {
        Self::Data { application: 0, handshake: 0, protocol }
    }

    fn of_tcp(
        packet: &ParsedPacket<'_>,
        ports: (u16, u16),
        flow: &mut BillFlow,
        remedies: &mut Remedies,
    ) -> Self {
        let (Ok(tcp), Some(data)) = (Tcp::read(packet.behind_ip()), packet.octets.get(packet.headers()..))
        else {
            return Self::data("tcp");
        };
        let seq = tcp.sequence_number;
        let before = |a: u32, b: u32| (b.wrapping_sub(a) as i32) > 0;
        let end = seq.wrapping_add(data.len() as u32);
        if tcp.syn || data.is_empty() && (tcp.fin || tcp.rst) {
            // SYN and FIN have a number each.
            let next = end.wrapping_add(u32::from(tcp.syn)).wrapping_add(u32::from(tcp.fin));
            let is_again = !tcp.rst && flow.next.replace(next) == Some(next);
            let cause = if is_again { BillCause::Retransmissions } else { BillCause::Handshakes };
            return Self::Whole(cause, "tcp");
        }
        let next = *flow.next.get_or_insert(seq);
        // A keepalive repeats the octet before the next one, or has none (RFC 9293, section 3.8.4).
        if data.len() <= 1 && seq == next.wrapping_sub(1) {
            return Self::Whole(BillCause::Keepalives, "tcp");
        }
        if data.is_empty() {
            return Self::Whole(BillCause::Acknowledgments, "tcp");
        }
        if !before(next, end) {
            return Self::Whole(BillCause::Retransmissions, "tcp");
        }
        flow.next = Some(end);
        let either = |port| ports.0 == port || ports.1 == port;
        if either(1_883) && matches!(data, [0xC0 | 0xD0, 0]) {
            return Self::Whole(BillCause::Keepalives, "mqtt");
        }
        if either(53) {
            return Self::Whole(BillCause::NamesAndTime, "dns");
        }
        if seq != next {
            flow.tls.lose();
        }
        let tls = flow.tls.handshake_octets(data, remedies.has_client_finished(packet));
        if flow.tls.has_finished() {
            remedies.client_finished(packet);
        }
        if either(8_883)
            && tls == Some(0)
            && is_one_record_of_two_octets(data)
            && flow.silence >= MQTT_SILENCE
        {
            return Self::Whole(BillCause::Keepalives, "mqtt");
        }
        if let Some(handshake) = tls {
            return Self::Data { application: 0, handshake, protocol: "tls" };
        }
        let named =
            [(22, "ssh"), (80, "http"), (1_883, "mqtt"), (5_683, "coap"), (8_080, "http"), (9_418, "git")];
        Self::data(named.into_iter().find(|(port, _)| either(*port)).map_or("tcp", |(_, name)| name))
    }

    fn of_udp(packet: &ParsedPacket<'_>, flow: &mut BillFlow, coap_ports: &Ports) -> Self {
        let Some(data) = packet.octets.get(packet.headers()..) else { return Self::data("udp") };
        let either = |port| packet.key.ports.is_some_and(|ports| ports.0 == port || ports.1 == port);
        let local = [
            (5_353, "mdns"),
            (5_355, "llmnr"),
            (1_900, "ssdp"),
            (67, "dhcp"),
            (546, "dhcpv6"),
            (137, "netbios"),
            (138, "netbios"),
        ];
        if let Some((_, name)) = local.into_iter().find(|(port, _)| either(*port)) {
            return Self::Whole(BillCause::LinkNoise, name);
        }
        if let Some((_, name)) = [(53, "dns"), (123, "ntp")].into_iter().find(|(port, _)| either(*port)) {
            return Self::Whole(BillCause::NamesAndTime, name);
        }
        if let Some(application) = packet.coap(coap_ports) {
            return Self::of_coap(data, application, flow);
        }
        match *data {
            // ContentType and version of DTLS 1.0 and 1.2 (RFC 6347, section 4.1): change of the cipher, and handshake.
            [20 | 22, 0xFE, 0xFF | 0xFD, ..] => return Self::Whole(BillCause::Handshakes, "dtls"),
            [21 | 23 | 25, 0xFE, 0xFF | 0xFD, ..] => return Self::data("dtls"),
            // Message types of WireGuard with three reserved octets, and the length of a packet without data.
            [4, 0, 0, 0, ..] if data.len() == 32 => return Self::Whole(BillCause::Keepalives, "wireguard"),
            [1, 0, 0, 0, ..] if data.len() == 148 => return Self::Whole(BillCause::Handshakes, "wireguard"),
            [2, 0, 0, 0, ..] if data.len() == 92 => return Self::Whole(BillCause::Handshakes, "wireguard"),
            [3, 0, 0, 0, ..] if data.len() == 64 => return Self::Whole(BillCause::Handshakes, "wireguard"),
            [4, 0, 0, 0, ..] if data.len() > 32 && data.len().is_multiple_of(16) => {
                return Self::data("wireguard");
            }
            // RFC 3948, section 2.3.
            [0xFF] if either(4_500) => return Self::Whole(BillCause::Keepalives, "esp"),
            _ => {}
        }
        if either(443) {
            // Long header of version 1: Initial, Handshake and Retry (RFC 9000, section 17.2).
            return match *data {
                [first, 0, 0, 0, 1, ..] if first & 0xC0 == 0xC0 && first & 0x30 != 0x10 => {
                    Self::Whole(BillCause::Handshakes, "quic")
                }
                _ => Self::data("quic"),
            };
        }
        if either(1_194) {
            return Self::of_openvpn(data);
        }
        // Packet types of RTCP with version 2 (RFC 3550, section 12.1).
        if let [0x80..=0xBF, 200..=207, ..] = *data {
            return Self::data("rtcp");
        }
        let Some((trace, header)) = packet.rtp() else { return Self::data("udp") };
        match flow.rtp.replace(trace) {
            Some(before) if trace.follows(before) => {
                Self::Data { application: header, handshake: 0, protocol: "rtp" }
            }
            Some(_) | None => Self::data("udp"),
        }
    }

    /// Opcodes of OpenVPN, in 5 bits: control packets and their acknowledgments, data without and with a peer ID. A keepalive has
    /// 16 octets, beside opcode, peer ID, packet ID and tag.
    fn of_openvpn(data: &[u8]) -> Self {
        match data.first().map(|first| first >> 3) {
            Some(9) if data.len() == 40 => Self::Whole(BillCause::Keepalives, "openvpn"),
            Some(6) if data.len() == 37 => Self::Whole(BillCause::Keepalives, "openvpn"),
            Some(1..=5 | 7 | 8 | 10) => Self::Whole(BillCause::Handshakes, "openvpn"),
            _ => Self::data("openvpn"),
        }
    }

    fn of_coap(data: &[u8], application: usize, flow: &mut BillFlow) -> Self {
        let Ok(message) = Coap::read(data) else { return Self::data("coap") };
        if message.code == Code::EMPTY {
            return match message.message_type {
                Type::Confirmable => Self::Whole(BillCause::Keepalives, "coap"),
                _ => Self::Whole(BillCause::Acknowledgments, "coap"),
            };
        }
        // Messages differ at least in their Message ID.
        let hash = remedies::hashed(0, data);
        if flow.messages.contains(&hash) {
            return Self::Whole(BillCause::Retransmissions, "coap");
        }
        flow.messages[flow.oldest] = hash;
        flow.oldest = (flow.oldest + 1) % flow.messages.len();
        Self::Data { application, handshake: 0, protocol: "coap" }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
