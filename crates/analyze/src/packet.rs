//! An IP packet split into flow key and layers.

use std::net::IpAddr;

use thinair_rohc::Ports;
use thinair_wire::header::chain::{HeaderChain, Ip, IpHeader, NotIp, Oddity};
use thinair_wire::header::coap::{self, Coap, Code};
use thinair_wire::header::dtls::Record;
use thinair_wire::header::esp::Esp;
use thinair_wire::header::protocol;
use thinair_wire::header::rtp::Rtp;
use thinair_wire::header::tcp::Tcp;
use thinair_wire::header::udp_lite::UdpLite;

use crate::partition::partition;

/// RTP payload types that cannot be distinguished from RTCP (RFC 5761, section 4).
const RTCP_TYPES: std::ops::RangeInclusive<u8> = 64..=95;

/// Key of a flow: one direction of a conversation, by the innermost IP header that can be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FlowKey {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// Protocol in the last IP header (IANA protocol number).
    pub(crate) protocol: u8,
    /// Source and destination port, if the protocol has ports.
    pub(crate) ports: Option<(u16, u16)>,
    /// Security Parameters Index of ESP.
    pub(crate) spi: Option<u32>,
}

/// A parsed packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParsedPacket<'p> {
    pub(crate) octets: &'p [u8],
    pub(crate) key: FlowKey,
    /// Reason why the packet needs a profile that sends its headers unchanged, if so.
    pub(crate) odd: Option<&'static str>,
    /// True if the last IP header is that of a fragment.
    pub(crate) is_fragment: bool,
    /// Octets of the IP headers and their extension headers.
    pub(crate) ip: usize,
    /// Octets of the transport header.
    pub(crate) transport: usize,
    /// Octets at the end that were not captured and are replaced with zeros.
    pub(crate) missing: usize,
    /// Payload of a UDP or UDP-Lite datagram, which may be CoAP or RTP.
    datagram: Option<&'p [u8]>,
}

/// Position of a packet in an RTP stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RtpTrace {
    pub(crate) ssrc: u32,
    sequence_number: u16,
}

impl<'p> ParsedPacket<'p> {
    /// Parses an IP packet.
    pub(crate) fn parse(octets: &'p [u8]) -> Result<Self, NotIp> {
        let chain = HeaderChain::parse(octets)?;
        let none = NotIp::Short { need: 1, have: 0 };
        let last = chain.ips().last().ok_or(none)?;
        let ip = chain.ip_end();
        let behind = octets.get(ip..).unwrap_or_default();
        let transport = ParsedTransport::of(last, behind);
        let (source, destination) = addresses(last);
        let key =
            FlowKey { source, destination, protocol: last.next, ports: transport.ports, spi: transport.spi };
        let odd = chain.oddity().map(Oddity::name).or_else(|| later_oddity(last, &transport, behind));
        let is_udp = matches!(last.next, protocol::UDP | protocol::UDP_LITE);
        let datagram = (is_udp && transport.len > 0).then(|| behind.get(transport.len..).unwrap_or_default());
        let is_fragment = last.is_fragment();
        Ok(Self { octets, key, odd, is_fragment, ip, transport: transport.len, missing: 0, datagram })
    }

    /// Returns the packet with `missing` unknown octets at its end; `None` if one of them is part of a
    /// header. On ports of CoAP, the CoAP header must be complete.
    pub(crate) fn with_missing(self, missing: usize, ports: &Ports) -> Option<Self> {
        let captured = self.octets.len().checked_sub(missing)?;
        let application = if self.is_to_or_from(ports) { self.coap(ports)? } else { 0 };
        // Zeros in place of a missing TCP header are not a header.
        let has_no_header = self.transport == 0 && self.key.protocol == protocol::TCP && !self.is_fragment;
        let are_there = self.headers() + application <= captured && !has_no_header;
        are_there.then_some(Self { missing, ..self })
    }

    /// Partition of the packet, if a link has this number of partitions.
    pub(crate) fn partition(&self, partitions: u32) -> u32 {
        partition(self.key.source, self.key.destination, partitions)
    }

    /// Octets after the last IP header and its extension headers.
    pub(crate) fn behind_ip(&self) -> &'p [u8] {
        self.octets.get(self.ip..).unwrap_or_default()
    }

    /// Returns the payload of a complete UDP datagram to a port.
    pub(crate) fn datagram_to(&self, port: u16) -> Option<&'p [u8]> {
        let is_to_it = self.key.ports.is_some_and(|(_, destination)| destination == port);
        self.datagram.filter(|_| is_to_it && self.key.protocol == protocol::UDP)
    }

    /// True for a TCP segment with SYN.
    pub(crate) fn is_syn(&self) -> bool {
        let is_tcp = self.key.protocol == protocol::TCP && self.key.ports.is_some();
        is_tcp && Tcp::read(self.behind_ip()).is_ok_and(|tcp| tcp.syn)
    }

    /// Octets of IP and transport headers.
    pub(crate) fn headers(&self) -> usize {
        self.ip + self.transport
    }

    /// Octets of a CoAP header with token, options and payload marker, if the datagram is a valid message on
    /// a UDP port of CoAP. A datagram has no other indication of CoAP.
    pub(crate) fn coap(&self, ports: &Ports) -> Option<usize> {
        let datagram = self.datagram.filter(|_| self.is_to_or_from(ports))?;
        let message = Coap::read(datagram).ok()?;
        if message.code == Code::EMPTY {
            return (datagram.len() == Coap::LEN).then_some(Coap::LEN);
        }
        if !matches!(message.code.class(), 0 | 2 | 4 | 5) {
            return None;
        }
        match message.options().into_end() {
            coap::CoapOptionsEnd::Payload(payload) => Some(datagram.len() - payload.len()),
            coap::CoapOptionsEnd::NoPayload => Some(datagram.len()),
            coap::CoapOptionsEnd::MarkerWithoutPayload | coap::CoapOptionsEnd::Malformed { .. } => None,
        }
    }

    /// True for a datagram of records of DTLS 1.0 or 1.2, on any port.
    pub(crate) fn is_dtls(&self) -> bool {
        let datagram = self.datagram.filter(|_| self.key.protocol == protocol::UDP);
        datagram.is_some_and(|datagram| Record::read(datagram, 0).is_some())
    }

    /// True for a UDP datagram to or from one of these ports.
    fn is_to_or_from(&self, ports: &Ports) -> bool {
        let is_one = |(source, destination)| ports.has(source) || ports.has(destination);
        self.key.protocol == protocol::UDP && self.key.ports.is_some_and(is_one)
    }

    /// Returns the position in an RTP stream that the packet would have, and the octets of its RTP header.
    /// Only a matching second packet proves that it is RTP.
    pub(crate) fn rtp(&self) -> Option<(RtpTrace, usize)> {
        let header = Rtp::read(self.datagram?).ok()?;
        let trace = RtpTrace { ssrc: header.ssrc, sequence_number: header.sequence_number };
        (!RTCP_TYPES.contains(&header.payload_type)).then_some((trace, header.len()))
    }
}

impl RtpTrace {
    /// True if a packet can be the next one in the stream of `before`, allowing a few losses.
    pub(crate) fn follows(self, before: Self) -> bool {
        let step = self.sequence_number.wrapping_sub(before.sequence_number);
        self.ssrc == before.ssrc && (1..=16).contains(&step)
    }
}

/// Parsed transport header.
struct ParsedTransport {
    len: usize,
    ports: Option<(u16, u16)>,
    spi: Option<u32>,
    /// Length field of UDP.
    udp_length: Option<u16>,
}

impl ParsedTransport {
    const NONE: Self = Self { len: 0, ports: None, spi: None, udp_length: None };

    fn of(ip: &Ip<'_>, behind: &[u8]) -> Self {
        // Fragments after the first one have no transport header.
        if let IpHeader::V4(header) = ip.header()
            && header.fragment_offset != 0
        {
            return Self::NONE;
        }
        let found = match ip.next {
            protocol::UDP => thinair_wire::header::udp::Udp::read(behind).ok().map(|header| Self {
                len: 8,
                ports: Some((header.source_port, header.destination_port)),
                udp_length: Some(header.length),
                ..Self::NONE
            }),
            protocol::UDP_LITE => UdpLite::read(behind).ok().map(|header| Self {
                len: UdpLite::LEN,
                ports: Some((header.source_port, header.destination_port)),
                ..Self::NONE
            }),
            protocol::TCP => Tcp::read(behind).ok().map(|header| Self {
                len: header.len(),
                ports: Some((header.source_port, header.destination_port)),
                ..Self::NONE
            }),
            protocol::ESP => Esp::read(behind).ok().map(|header| Self {
                len: Esp::LEN,
                spi: Some(header.spi),
                ..Self::NONE
            }),
            _ => None,
        };
        found.unwrap_or(Self::NONE)
    }
}

/// Returns an irregularity that the IP headers do not show.
fn later_oddity(ip: &Ip<'_>, transport: &ParsedTransport, behind: &[u8]) -> Option<&'static str> {
    if ip.next == protocol::FRAGMENT {
        return Some(Oddity::Fragment.name());
    }
    let disagrees = transport.udp_length.is_some_and(|length| usize::from(length) != behind.len());
    disagrees.then_some("udp_length_mismatch")
}

fn addresses(ip: &Ip<'_>) -> (IpAddr, IpAddr) {
    match ip.header() {
        IpHeader::V4(header) => (header.source.into(), header.destination.into()),
        IpHeader::V6(header) => (header.source.into(), header.destination.into()),
    }
}

impl FlowKey {
    /// Formats the source as `192.0.2.1:5683` or `[2001:db8::1]:5683`, without port if there is none.
    pub(crate) fn source_text(&self) -> String {
        endpoint(self.source, self.ports.map(|ports| ports.0))
    }

    /// Formats the destination like the source.
    pub(crate) fn destination_text(&self) -> String {
        endpoint(self.destination, self.ports.map(|ports| ports.1))
    }

    /// Name of the protocol.
    pub(crate) fn protocol_text(&self) -> String {
        let name = match self.protocol {
            1 => "icmp",
            2 => "igmp",
            protocol::IPV4 => "ipv4",
            protocol::TCP => "tcp",
            protocol::UDP => "udp",
            33 => "dccp",
            protocol::IPV6 => "ipv6",
            protocol::FRAGMENT => "ipv6-frag",
            protocol::GRE => "gre",
            protocol::ESP => "esp",
            protocol::MINIMAL => "minimal",
            58 => "icmpv6",
            59 => "none",
            89 => "ospf",
            103 => "pim",
            132 => "sctp",
            protocol::UDP_LITE => "udp-lite",
            number => return format!("ip-{number}"),
        };
        name.to_owned()
    }
}

fn endpoint(address: IpAddr, port: Option<u16>) -> String {
    match port {
        Some(port) => std::net::SocketAddr::new(address, port).to_string(),
        None => address.to_string(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns `message` in UDP to port 5683 over IPv6.
    fn datagram(message: &[u8]) -> Vec<u8> {
        let mut packet = Vec::from(*b"\x60\0\0\0\0\0\x11\x40\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x01");
        packet.extend_from_slice(b"\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x02\xe0\x01\x16\x33\0\0\x12\x34");
        packet.extend_from_slice(message);
        let len = (8 + message.len()) as u16;
        packet[4..6].copy_from_slice(&len.to_be_bytes());
        packet[44..46].copy_from_slice(&len.to_be_bytes());
        packet
    }

    #[test]
    fn a_flow_is_named_as_a_person_would() {
        let octets = datagram(b"\x40\x01\x12\x34\xb4time");
        let packet = ParsedPacket::parse(&octets).unwrap();
        assert_eq!(packet.key.source_text(), "[fd00:ec0::1]:57345");
        assert_eq!(packet.key.destination_text(), "[fd00:ec0::2]:5683");
        assert_eq!(packet.key.protocol_text(), "udp");
        assert_eq!((packet.ip, packet.transport, packet.odd), (40, 8, None));
    }

    /// Built by hand from RFC 4303, figure 1, after the IPv6 header of the datagrams.
    #[test]
    fn a_flow_of_esp_is_named_by_its_spi() {
        let of = |spi: &[u8; 4]| {
            let mut octets = datagram(b"secret");
            octets[6] = 50;
            octets[40..44].copy_from_slice(spi);
            let packet = ParsedPacket::parse(&octets).unwrap();
            assert_eq!((packet.ip, packet.transport, packet.odd), (40, 8, None));
            assert_eq!((packet.rtp(), packet.coap(&Ports::COAP)), (None, None));
            packet.key
        };
        assert_eq!((of(b"\x01\x02\x03\x04").spi, of(b"\0\0\x01\0").spi), (Some(0x0102_0304), Some(256)));
        assert_eq!((of(b"\0\0\x01\0").protocol_text().as_str(), of(b"\0\0\x01\0").ports), ("esp", None));
    }

    #[test]
    fn a_coap_header_ends_at_the_payload() {
        let coap = |message: &[u8]| ParsedPacket::parse(&datagram(message)).unwrap().coap(&Ports::COAP);
        assert_eq!(coap(b"\x40\x01\x12\x34\xb4time"), Some(9));
        assert_eq!(coap(b"\x61\x45\x12\x34\x77\xff21"), Some(6));
        assert_eq!(coap(b"\x60\x00\x12\x34"), Some(4));
        assert_eq!(coap(b"\x60\x00\x12\x34\x00"), None);
        assert_eq!(coap(b"\x61\x45\x12\x34\x77\xff"), None);
        assert_eq!(coap(b"\x16\xfe\xfd\x00\x00\x00\x00"), None);
    }

    #[test]
    fn a_length_of_udp_that_disagrees_is_odd() {
        let mut octets = datagram(b"time");
        octets[45] += 1;
        assert_eq!(ParsedPacket::parse(&octets).unwrap().odd, Some("udp_length_mismatch"));
    }

    #[test]
    fn rtp_is_what_goes_on() {
        let stream: Vec<_> =
            (1..3).map(|sn| datagram(&[0x80, 0, 0, sn, 0, 0, 0, 0, 1, 2, 3, 4, 9])).collect();
        let [(first, len), (second, _)] =
            [0, 1].map(|i| ParsedPacket::parse(&stream[i]).unwrap().rtp().unwrap());
        assert!(second.follows(first) && !first.follows(second));
        assert_eq!(len, 12);
    }

    #[test]
    fn rtp_is_in_udp_lite_too_and_coap_is_not() {
        let lite = |message: &[u8]| {
            let mut octets = datagram(message);
            octets[6] = 136;
            octets
        };
        let octets = lite(&[0x80, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4, 9]);
        let packet = ParsedPacket::parse(&octets).unwrap();
        assert_eq!((packet.rtp().map(|(_, len)| len), packet.key.ports), (Some(12), Some((57_345, 5_683))));
        assert_eq!(ParsedPacket::parse(&lite(b"\x40\x01\x12\x34")).unwrap().coap(&Ports::COAP), None);
    }

    #[test]
    fn every_truncation_is_parsed_or_refused() {
        let octets = datagram(b"\x40\x01\x12\x34\xb4time");
        for len in 0..octets.len() {
            if let Ok(packet) = ParsedPacket::parse(&octets[..len]) {
                assert!(packet.headers() <= len);
                let _ = (packet.coap(&Ports::COAP), packet.rtp());
            }
        }
    }
}
