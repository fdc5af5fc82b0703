//! Packets in tunnels: GRE with IP or Ethernet, ERSPAN, VXLAN, Geneve, GTP-U, and L2TP version 2.
//!
//! Parses the headers between an outer IP packet and the packet in it. IP in IP does not count as a tunnel,
//! since compressors treat it as a chain of headers. Fragmented tunnels are not opened. Tunnels of other protocols,
//! and those with content other than IP, are not opened either, and counted ([`closed_tunnel`]).

use thinair_capture::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, LinkType, Skip, network_packet};
use thinair_wire::header::protocol;

use crate::packet::ParsedPacket;

/// UDP destination ports of VXLAN: that of RFC 7348, section 8, and that of Linux (`vxlan` without `dstport`).
const VXLAN_PORTS: [u16; 2] = [4_789, 8_472];
/// UDP destination port of VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe, section 3).
const VXLAN_GPE_PORT: u16 = 4_790;
/// UDP destination port of Geneve (RFC 8926, section 3.3).
const GENEVE_PORT: u16 = 6_081;
/// UDP destination port of GTP-U (3GPP TS 29.281, section 4.4.2).
const GTP_U_PORT: u16 = 2_152;
/// UDP port of the end of L2TP that was called; the other end may choose its own (RFC 2661, section 8.1).
const L2TP_PORT: u16 = 1_701;
/// UDP destination port of MPLS (RFC 7510, section 3).
const MPLS_PORT: u16 = 6_635;

/// IP protocol of L2TP version 3 without UDP (RFC 3931, section 4.1.1).
const PROTOCOL_L2TP: u8 = 115;
/// IP protocol of MPLS (RFC 4023, section 3).
const PROTOCOL_MPLS: u8 = 137;

/// EtherType of Transparent Ethernet Bridging.
const ETHERTYPE_TEB: u16 = 0x6558;
/// EtherType of ERSPAN types I and II (draft-foschiano-erspan, section 4).
const ETHERTYPE_ERSPAN_2: u16 = 0x88be;
/// EtherType of ERSPAN type III (draft-foschiano-erspan, section 4).
const ETHERTYPE_ERSPAN_3: u16 = 0x22eb;

/// A tunnel with the packet in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenedTunnel<'p> {
    /// Name of the tunnel in reports.
    pub(crate) name: &'static str,
    /// The IP packet in it, or the reason why there is none.
    pub(crate) inside: Result<&'p [u8], Skip>,
}

impl<'p> OpenedTunnel<'p> {
    /// Returns the tunnel after the last IP header of a packet, if it is of a supported kind.
    pub(crate) fn of(packet: &ParsedPacket<'p>) -> Option<Self> {
        if packet.is_fragment {
            return None;
        }
        if packet.key.protocol == protocol::GRE {
            return gre(packet.behind_ip());
        }
        let (source, destination) = packet.key.ports?;
        let datagram = packet.datagram_to(destination)?;
        match destination {
            _ if VXLAN_PORTS.contains(&destination) => vxlan(datagram),
            VXLAN_GPE_PORT => vxlan(datagram).filter(|_| has_next_protocol(datagram)),
            GENEVE_PORT => geneve(datagram),
            GTP_U_PORT => gtp_u(datagram),
            _ if [source, destination].contains(&L2TP_PORT) => l2tp(datagram),
            _ => None,
        }
    }
}

/// False only if neither [`OpenedTunnel::of`] nor [`closed_tunnel`] recognizes any packet with this IP protocol and these
/// ports (source, destination).
pub(crate) fn may_be_tunnel(protocol: u8, ports: Option<(u16, u16)>) -> bool {
    const DESTINATIONS: [u16; 4] = [VXLAN_GPE_PORT, GENEVE_PORT, GTP_U_PORT, MPLS_PORT];

    match (protocol, ports) {
        (protocol::GRE | PROTOCOL_L2TP | PROTOCOL_MPLS, _) => true,
        (protocol::UDP, Some((source, destination))) => {
            VXLAN_PORTS.contains(&destination)
                || DESTINATIONS.contains(&destination)
                || [source, destination].contains(&L2TP_PORT)
        }
        _ => false,
    }
}

/// Name of the tunnel that a packet is part of, if [`OpenedTunnel::of`] does not open it. Control messages of
/// tunnels are packets like others.
pub(crate) fn closed_tunnel(packet: &ParsedPacket<'_>) -> Option<&'static str> {
    match packet.key.protocol {
        protocol::GRE => return Some("gre"),
        PROTOCOL_L2TP => return Some("l2tpv3"),
        PROTOCOL_MPLS => return Some("mpls"),
        _ => {}
    }
    let (source, destination) = packet.key.ports?;
    let datagram = packet.datagram_to(destination)?;
    match destination {
        GENEVE_PORT => {
            (datagram.first()? >> 6 == 0 && datagram.get(1)? & GENEVE_CONTROL == 0).then_some("geneve")
        }
        GTP_U_PORT => is_g_pdu(datagram).then_some("gtpu"),
        MPLS_PORT => Some("mpls"),
        VXLAN_GPE_PORT => has_next_protocol(datagram).then_some("vxlan"),
        _ if VXLAN_PORTS.contains(&destination) => has_next_protocol(datagram).then_some("vxlan"),
        _ if [source, destination].contains(&L2TP_PORT) => {
            match be16(datagram, 0)? & (L2TP_CONTROL | L2TP_VERSION) {
                2 => Some("l2tp"),
                3 => Some("l2tpv3"),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Parses GRE: 2 octets of flags and version, 2 of protocol type, then checksum, key and sequence number of 4
/// octets each, as the flags indicate (RFC 2784, section 2; RFC 2890, section 2).
fn gre(octets: &[u8]) -> Option<OpenedTunnel<'_>> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const VERSION: u16 = 0x0007;

    let (flags, kind) = (be16(octets, 0)?, be16(octets, 2)?);
    // Routing of RFC 1701; version 1 is used by PPTP (RFC 2637).
    if flags & (ROUTING | VERSION) != 0 {
        return None;
    }
    let options = [CHECKSUM, KEY, SEQUENCE].into_iter().filter(|option| flags & option != 0).count();
    let payload = octets.get(4 + 4 * options..)?;
    let tunnel = |name, inside| Some(OpenedTunnel { name, inside });
    match kind {
        ETHERTYPE_IPV4 => tunnel("gre", in_link(LinkType::IPV4, payload)),
        ETHERTYPE_IPV6 => tunnel("gre", in_link(LinkType::IPV6, payload)),
        ETHERTYPE_TEB => tunnel("gre_ethernet", in_link(LinkType::ETHERNET, payload)),
        // Type I has neither sequence numbers nor a header.
        ETHERTYPE_ERSPAN_2 if flags & SEQUENCE == 0 => tunnel("erspan", in_link(LinkType::ETHERNET, payload)),
        ETHERTYPE_ERSPAN_2 => tunnel("erspan", in_link(LinkType::ETHERNET, payload.get(8..)?)),
        ETHERTYPE_ERSPAN_3 => tunnel("erspan", erspan_3(payload)?),
        _ => None,
    }
}

/// Parses a header of 12 octets, or 20 if its last bit is set; the frame type is in octet 10
/// (draft-foschiano-erspan, section 4.3).
fn erspan_3(octets: &[u8]) -> Option<Result<&[u8], Skip>> {
    const ETHERNET: u8 = 0;
    const IP: u8 = 2;

    let &[kind, last] = octets.get(10..)?.first_chunk()?;
    let frame = octets.get(if last & 1 == 1 { 20 } else { 12 }..)?;
    match kind >> 2 & 0x1f {
        ETHERNET => Some(in_link(LinkType::ETHERNET, frame)),
        IP => Some(in_link(LinkType::RAW, frame)),
        _ => None,
    }
}

/// Parses flags (1 octet), reserved (3), VNI (3), reserved (1), and an Ethernet frame (RFC 7348, section 5), or the
/// protocol that the octet in front of the VNI names (draft-ietf-nvo3-vxlan-gpe, section 3).
fn vxlan(datagram: &[u8]) -> Option<OpenedTunnel<'_>> {
    const HEADER_LEN: usize = 8;
    const VNI_IS_VALID: u8 = 0x08;

    let (header, frame) = datagram.split_at_checked(HEADER_LEN)?;
    if header[0] & VNI_IS_VALID == 0 || header[HEADER_LEN - 1] != 0 {
        return None;
    }
    let link_type = match (has_next_protocol(datagram), header[3]) {
        (true, 1) => LinkType::IPV4,
        (true, 2) => LinkType::IPV6,
        (false, _) | (true, 3) => LinkType::ETHERNET,
        (true, _) => return None,
    };
    let is_frame = link_type != LinkType::ETHERNET || frame.len() >= thinair_capture::ETHERNET_HEADER_LEN;
    is_frame.then(|| OpenedTunnel { name: "vxlan", inside: in_link(link_type, frame) })
}

/// True for VXLAN-GPE: flag P, and a protocol. RFC 7348 has zeros there.
fn has_next_protocol(datagram: &[u8]) -> bool {
    const NEXT_PROTOCOL: u8 = 0x04;

    datagram.first_chunk::<4>().is_some_and(|header| header[0] & NEXT_PROTOCOL != 0 && header[3] != 0)
}

/// O of Geneve: a control packet.
const GENEVE_CONTROL: u8 = 0x80;

/// Parses version (2 bits), length of options (6 bits, in 4 octets), flags (1 octet), protocol type (2), VNI (3),
/// reserved (1), and options (RFC 8926, section 3.4).
fn geneve(datagram: &[u8]) -> Option<OpenedTunnel<'_>> {
    const HEADER_LEN: usize = 8;

    let &[first, flags] = datagram.first_chunk()?;
    if first >> 6 != 0 || flags & GENEVE_CONTROL != 0 {
        return None;
    }
    let payload = datagram.get(HEADER_LEN + 4 * usize::from(first & 0x3f)..)?;
    let link_type = match be16(datagram, 2)? {
        ETHERTYPE_TEB => LinkType::ETHERNET,
        ETHERTYPE_IPV4 => LinkType::IPV4,
        ETHERTYPE_IPV6 => LinkType::IPV6,
        _ => return None,
    };
    Some(OpenedTunnel { name: "geneve", inside: in_link(link_type, payload) })
}

/// True for version 1, protocol type GTP and message type 255, which has a packet of a user.
fn is_g_pdu(datagram: &[u8]) -> bool {
    const G_PDU: u8 = 255;

    datagram.first_chunk().is_some_and(|&[flags, kind]| flags >> 4 == 0b0011 && kind == G_PDU)
}

/// Parses flags (1 octet), message type (1), length behind the eighth octet (2), TEID (4); with any of the flags E, S and
/// PN, sequence number (2), N-PDU number (1) and type of the next extension header (1); with E, extension headers
/// (3GPP TS 29.281, section 5). Content other than IP, such as Ethernet PDU sessions, has no indication.
fn gtp_u(datagram: &[u8]) -> Option<OpenedTunnel<'_>> {
    const HEADER_LEN: usize = 8;
    const EXTENSION: u8 = 0x04;
    const ANY_OPTION: u8 = 0x07;

    if !is_g_pdu(datagram) {
        return None;
    }
    let end = HEADER_LEN + usize::from(be16(datagram, 2)?);
    let datagram = datagram.get(..end)?;
    let flags = datagram[0];
    let mut start = HEADER_LEN + if flags & ANY_OPTION == 0 { 0 } else { 4 };
    let mut next = if flags & EXTENSION == 0 { 0 } else { *datagram.get(start - 1)? };
    while next != 0 {
        let len = 4 * usize::from(*datagram.get(start)?);
        if len == 0 {
            return None;
        }
        start += len;
        next = *datagram.get(start - 1)?;
    }
    let packet = datagram.get(start..)?;
    let is_ip = packet.first().is_some_and(|first| matches!(first >> 4, 4 | 6));
    is_ip.then(|| OpenedTunnel { name: "gtpu", inside: in_link(LinkType::RAW, packet) })
}

/// T of L2TP: a control message.
const L2TP_CONTROL: u16 = 0x8000;
/// Version of L2TP.
const L2TP_VERSION: u16 = 0x000f;

/// Parses flags and version (2 octets), length (2, with L), tunnel and session (4), sequence numbers (4, with S), offset
/// (2 and padding, with O), and PPP (RFC 2661, section 3.1). Headers of version 3 have no indication of their
/// length.
fn l2tp(datagram: &[u8]) -> Option<OpenedTunnel<'_>> {
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    const RESERVED: u16 = 0x34f0;

    let flags = be16(datagram, 0)?;
    if flags & (L2TP_CONTROL | RESERVED) != 0 || flags & L2TP_VERSION != 2 {
        return None;
    }
    let has = |flag| flags & flag != 0;
    let datagram = match has(LENGTH) {
        true => datagram.get(..usize::from(be16(datagram, 2)?))?,
        false => datagram,
    };
    let mut start = 2 + if has(LENGTH) { 2 } else { 0 } + 4 + if has(SEQUENCE) { 4 } else { 0 };
    if has(OFFSET) {
        start += 2 + usize::from(be16(datagram, start)?);
    }
    Some(OpenedTunnel { name: "l2tp", inside: in_link(LinkType::PPP, datagram.get(start..)?) })
}

/// Returns the IP packet of a frame, if it is complete: some devices truncate mirrored frames.
fn in_link(link_type: LinkType, frame: &[u8]) -> Result<&[u8], Skip> {
    let packet = network_packet(link_type, frame, u32::try_from(frame.len()).unwrap_or(u32::MAX))?.packet;
    let len = match packet.first().map_or(0, |first| first >> 4) {
        4 => be16(packet, 2).map(usize::from),
        _ => be16(packet, 4).map(|len| 40 + usize::from(len)),
    };
    match len {
        Some(len) if len <= packet.len() => Ok(packet),
        Some(_) | None => Err(Skip::Truncated),
    }
}

fn be16(octets: &[u8], at: usize) -> Option<u16> {
    octets.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use thinair_wire::header::ipv4::Ipv4;

    fn ipv4(protocol: u8, behind: &[u8]) -> Vec<u8> {
        let header = Ipv4 {
            total_length: 20 + behind.len() as u16,
            ttl: 64,
            protocol,
            source: [192, 0, 2, 1],
            destination: [192, 0, 2, 2],
            ..Default::default()
        };
        let mut octets = vec![0; 20];
        header.write(&mut octets, 0).unwrap();
        octets.extend(behind);
        octets
    }

    /// Returns a datagram with its length.
    fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
        let len = 8 + payload.len() as u16;
        let words = [50_000, port, len, 0].map(u16::to_be_bytes).concat();
        ipv4(17, &[&words[..], payload].concat())
    }

    fn ethernet(kind: u16, packet: &[u8]) -> Vec<u8> {
        [&[2; 12][..], &kind.to_be_bytes(), packet].concat()
    }

    /// Returns the name of the tunnel, and the packet in it.
    fn find(octets: &[u8]) -> Option<(&'static str, Result<Vec<u8>, Skip>)> {
        let tunnel = OpenedTunnel::of(&ParsedPacket::parse(octets).unwrap())?;
        Some((tunnel.name, tunnel.inside.map(<[u8]>::to_vec)))
    }

    /// Returns the name of a tunnel that is not opened.
    fn closed(octets: &[u8]) -> Option<&'static str> {
        closed_tunnel(&ParsedPacket::parse(octets).unwrap())
    }

    fn gre(head: &[u8], payload: &[u8]) -> Option<(&'static str, Result<Vec<u8>, Skip>)> {
        find(&ipv4(47, &[head, payload].concat()))
    }

    /// Built by hand from RFC 2784 and RFC 2890.
    #[test]
    fn gre_with_every_option_has_a_packet_behind_it() {
        let inner = udp(5_683, b"inner");
        for (flags, options) in [(0, 0), (0x80, 4), (0x20, 4), (0x10, 4), (0xa0, 8), (0x30, 8), (0xb0, 12)] {
            let head = [&[flags, 0, 8, 0][..], &vec![7; options]].concat();
            assert_eq!(gre(&head, &inner), Some(("gre", Ok(inner.clone()))), "{flags:x}");
        }
        let mut v6 = vec![0; 40];
        (v6[0], v6[6]) = (0x60, 59);
        assert_eq!(gre(&[0, 0, 0x86, 0xdd], &v6), Some(("gre", Ok(v6.clone()))));
        assert_eq!(gre(&[0, 0, 0x86, 0xdd], &inner), Some(("gre", Err(Skip::NotIp))));
        let frame = ethernet(0x0800, &inner);
        assert_eq!(
            gre(&[0x20, 0, 0x65, 0x58, 0, 0, 1, 0], &frame),
            Some(("gre_ethernet", Ok(inner.clone())))
        );
        assert_eq!(
            gre(&[0, 0, 0x65, 0x58], &ethernet(0x0806, &[0; 28])),
            Some(("gre_ethernet", Err(Skip::NotIp)))
        );
    }

    #[test]
    fn gre_of_another_kind_is_a_packet_like_others() {
        let inner = udp(5_683, b"inner");
        // Routing, PPTP, keepalives, MPLS.
        for head in [[0x40, 0, 8, 0], [0x30, 1, 0x88, 0x0b], [0, 0, 0, 0], [0, 0, 0x88, 0x47]] {
            assert_eq!(gre(&head, &inner), None, "{head:x?}");
        }
        for len in 0..4 {
            assert_eq!(gre(&[0, 0, 8, 0][..len], &[]), None);
        }
        assert_eq!(gre(&[0xb0, 0, 8, 0, 1, 2, 3], &[]), None);
    }

    /// Built by hand from draft-foschiano-erspan-03, section 4.
    #[test]
    fn erspan_of_all_types_has_a_frame_behind_it() {
        let inner = udp(5_683, b"inner");
        let frame = ethernet(0x0800, &inner);
        let found = Some(("erspan", Ok(inner.clone())));
        assert_eq!(gre(&[0, 0, 0x88, 0xbe], &frame), found);
        let two = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 1, 0, 0, 0, 0];
        assert_eq!(gre(&two, &frame), found);
        let three = [&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1][..], &[0x20, 1, 0, 1, 0, 0, 0, 0, 0, 0]].concat();
        assert_eq!(gre(&[&three[..], &[0, 0]].concat(), &frame), found);
        assert_eq!(gre(&[&three[..], &[0, 1], &[9; 8]].concat(), &frame), found);
        assert_eq!(gre(&[&three[..], &[2 << 2, 0]].concat(), &inner), found);
        assert_eq!(gre(&[&three[..], &[1 << 2, 0]].concat(), &frame), None);
        // A truncated frame.
        assert_eq!(gre(&two, &frame[..40]), Some(("erspan", Err(Skip::Truncated))));
    }

    /// Built by hand from RFC 7348, section 5.
    #[test]
    fn vxlan_has_a_frame_behind_it() {
        let inner = udp(5_683, b"inner");
        let datagram = [&[8, 0, 0, 0, 0, 0, 42, 0][..], &ethernet(0x0800, &inner)].concat();
        assert_eq!(find(&udp(4_789, &datagram)), Some(("vxlan", Ok(inner.clone()))));
        assert_eq!(find(&udp(4_790, &datagram)), None);
        let other = [&[0, 0, 0, 0, 0, 0, 42, 0][..], &ethernet(0x0800, &inner)].concat();
        assert_eq!(find(&udp(4_789, &other)), None);
        for len in 0..22 {
            assert_eq!(find(&udp(4_789, &datagram[..len])), None, "{len}");
        }
    }

    /// Built by hand from draft-ietf-nvo3-vxlan-gpe-12, section 3; Linux has used port 8472 since before RFC 7348.
    #[test]
    fn vxlan_of_linux_and_with_a_next_protocol_is_opened() {
        let inner = udp(5_683, b"inner");
        let found = Some(("vxlan", Ok(inner.clone())));
        let frame = ethernet(0x0800, &inner);
        assert_eq!(find(&udp(8_472, &[&[8, 0, 0, 0, 0, 0, 42, 0][..], &frame].concat())), found);
        for (port, protocol, payload) in
            [(4_790, 1, &inner), (4_790, 3, &frame), (8_472, 3, &frame), (4_789, 1, &inner)]
        {
            let datagram = [&[0x0c, 0, 0, protocol, 0, 0, 42, 0][..], payload].concat();
            assert_eq!(find(&udp(port, &datagram)), found, "{port} {protocol}");
        }
        let nsh = udp(4_790, &[&[0x0c, 0, 0, 4, 0, 0, 42, 0][..], &[0; 40]].concat());
        assert_eq!((find(&nsh), closed(&nsh)), (None, Some("vxlan")));
    }

    /// Built by hand from RFC 8926, section 3.4.
    #[test]
    fn geneve_has_a_packet_behind_its_options() {
        let inner = udp(5_683, b"inner");
        let frame = ethernet(0x0800, &inner);
        for words in [0, 1, 63] {
            let options = vec![7; 4 * usize::from(words)];
            for (kind, payload) in [([0x65, 0x58], &frame), ([8, 0], &inner)] {
                let datagram = [&[words, 0x40, kind[0], kind[1], 0, 0, 5, 0][..], &options, payload].concat();
                assert_eq!(find(&udp(6_081, &datagram)), Some(("geneve", Ok(inner.clone()))), "{words}");
            }
        }
        // A control packet; another version; NSH.
        for (head, name) in
            [([0, 0x80, 8, 0], None), ([0x40, 0, 8, 0], None), ([0, 0, 0x89, 0x4f], Some("geneve"))]
        {
            let packet = udp(6_081, &[&head[..], &[0, 0, 5, 0], &inner].concat());
            assert_eq!((find(&packet), closed(&packet)), (None, name), "{head:x?}");
        }
        assert_eq!(find(&udp(6_081, &[2, 0, 8, 0, 0, 0, 5, 0, 1, 2, 3, 4])), None);
    }

    /// Built by hand from 3GPP TS 29.281, sections 5.1 and 5.2.
    #[test]
    fn gtp_u_has_a_packet_behind_its_extension_headers() {
        let inner = udp(5_683, b"inner");
        let with = |flags: u8, head: &[u8], payload: &[u8]| {
            let len = ((head.len() + payload.len()) as u16).to_be_bytes();
            udp(2_152, &[&[flags, 255, len[0], len[1], 0, 0, 0, 1], head, payload].concat())
        };
        let found = Some(("gtpu", Ok(inner.clone())));
        assert_eq!(find(&with(0x30, &[], &inner)), found);
        // S, and PN: the type of an extension header counts only with E.
        assert_eq!(find(&with(0x32, &[0, 9, 0, 0x85], &inner)), found);
        assert_eq!(find(&with(0x31, &[0, 0, 3, 0], &inner)), found);
        assert_eq!(find(&with(0x34, &[0, 0, 0, 0], &inner)), found);
        // The PDU session container, and two extension headers, one of eight octets.
        assert_eq!(find(&with(0x34, &[0, 0, 0, 0x85, 1, 0x10, 9, 0], &inner)), found);
        let two = [0, 7, 0, 0x85, 2, 0x10, 9, 0, 0, 0, 0, 0xc0, 1, 0, 5, 0];
        assert_eq!(find(&with(0x36, &two, &inner)), found);
        // An extension header without length, and one that is cut.
        for head in [&[0, 0, 0, 0x85, 0, 0, 0, 0][..], &[0, 0, 0, 0x85, 255, 0, 0, 0]] {
            let packet = with(0x34, head, &inner);
            assert_eq!((find(&packet), closed(&packet)), (None, Some("gtpu")), "{head:x?}");
        }
        // Ethernet PDU session; Echo Request; version 2.
        let frame = with(0x30, &[], &ethernet(0x0800, &inner));
        assert_eq!((find(&frame), closed(&frame)), (None, Some("gtpu")));
        for head in [[0x32, 1], [0x48, 255]] {
            let packet = udp(2_152, &[&head[..], &[0, 4, 0, 0, 0, 0, 0, 0, 0, 0]].concat());
            assert_eq!((find(&packet), closed(&packet)), (None, None), "{head:x?}");
        }
    }

    /// Built by hand from RFC 2661, section 3.1.
    #[test]
    fn l2tp_has_a_packet_in_ppp() {
        let inner = udp(5_683, b"inner");
        let ppp = [&[0xff, 3, 0, 0x21][..], &inner].concat();
        let short = [&[0x21][..], &inner].concat();
        let found = Some(("l2tp", Ok(inner.clone())));
        let with_length = |flags: [u8; 2], rest: &[u8]| {
            let len = (4 + rest.len() as u16).to_be_bytes();
            [&flags[..], &len, rest].concat()
        };
        for payload in [&ppp, &short] {
            for datagram in [
                [&[0, 2, 0, 1, 0, 2][..], payload].concat(),
                [&[8, 2, 0, 1, 0, 2, 0, 5, 0, 0][..], payload].concat(),
                [&[2, 2, 0, 1, 0, 2, 0, 3, 9, 9, 9][..], payload].concat(),
                with_length([0x40, 2], &[&[0, 1, 0, 2][..], payload].concat()),
                with_length([0x4b, 2], &[&[0, 1, 0, 2, 0, 5, 0, 0, 0, 0][..], payload].concat()),
            ] {
                assert_eq!(find(&udp(1_701, &datagram)), found, "{:x?}", &datagram[..12]);
            }
        }
        let mut answer = udp(50_001, &[&[0, 2, 0, 1, 0, 2][..], &ppp].concat());
        answer[20..22].copy_from_slice(&1_701_u16.to_be_bytes());
        assert_eq!(find(&answer), found);
        // A control message; version 3 over UDP and over IP.
        let control = udp(1_701, &with_length([0xc8, 2], &[0, 1, 0, 0, 0, 0, 0, 0]));
        assert_eq!((find(&control), closed(&control)), (None, None));
        for packet in
            [udp(1_701, &[&[0, 3, 0, 0, 0, 0, 0, 9][..], &inner].concat()), ipv4(115, &[0, 0, 0, 9])]
        {
            assert_eq!((find(&packet), closed(&packet)), (None, Some("l2tpv3")));
        }
    }

    #[test]
    fn every_truncation_of_a_tunnel_is_opened_or_not() {
        let inner = udp(5_683, b"inner");
        let frame = ethernet(0x0800, &inner);
        for (port, datagram) in [
            (8_472, [&[0x0c, 0, 0, 3, 0, 0, 42, 0][..], &frame].concat()),
            (6_081, [&[1, 0, 0x65, 0x58, 0, 0, 5, 0, 1, 2, 3, 4][..], &frame].concat()),
            (2_152, [&[0x34, 255, 0, 41, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x10, 9, 0][..], &inner].concat()),
            (1_701, [&[0x42, 2, 0, 48, 0, 1, 0, 2, 0, 1, 9, 0xff, 3, 0, 0x21][..], &inner].concat()),
        ] {
            for len in 0..datagram.len() {
                let packet = udp(port, &datagram[..len]);
                assert!(!matches!(find(&packet), Some((_, Ok(_)))), "{port} {len}");
                closed(&packet);
            }
            assert!(matches!(find(&udp(port, &datagram)), Some((_, Ok(_)))), "{port}");
        }
    }

    #[test]
    fn fragments_are_not_looked_into() {
        let mut whole = ipv4(47, &[&[0, 0, 8, 0][..], &udp(5_683, b"inner")].concat());
        assert!(find(&whole).is_some());
        // More Fragments, and then an offset.
        for field in [[0x20, 0], [0, 1]] {
            whole[6..8].copy_from_slice(&field);
            assert_eq!(find(&whole), None, "{field:x?}");
        }
    }
}
