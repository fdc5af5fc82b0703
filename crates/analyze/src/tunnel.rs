//! Packets in tunnels: GRE with IP or Ethernet, ERSPAN, and VXLAN.
//!
//! Parses the headers between an outer IP packet and the packet in it. IP in IP does not count as a tunnel,
//! since compressors treat it as a chain of headers. Fragmented tunnels, and tunnels of other protocols, are
//! not opened.

use thinair_capture::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, LinkType, Skip, network_packet};
use thinair_wire::header::protocol;

use crate::packet::ParsedPacket;

/// UDP destination port of VXLAN (RFC 7348, section 8).
pub(crate) const VXLAN_PORT: u16 = 4_789;

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
        packet.datagram_to(VXLAN_PORT).and_then(vxlan)
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

/// Parses flags (1 octet), reserved (3), VNI (3), reserved (1), and an Ethernet frame (RFC 7348, section 5).
fn vxlan(datagram: &[u8]) -> Option<OpenedTunnel<'_>> {
    const HEADER_LEN: usize = 8;
    const VNI_IS_VALID: u8 = 0x08;

    let (header, frame) = datagram.split_at_checked(HEADER_LEN)?;
    let is_vxlan = header[0] & VNI_IS_VALID != 0 && header[HEADER_LEN - 1] == 0;
    (is_vxlan && frame.len() >= thinair_capture::ETHERNET_HEADER_LEN)
        .then(|| OpenedTunnel { name: "vxlan", inside: in_link(LinkType::ETHERNET, frame) })
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
