//! Addresses of a record without parsing its packet, for records of which a run needs no more.

use std::net::IpAddr;

use thinair_capture::{IpVersion, LinkType, Record, ZEP_PORT};
use thinair_wire::header::protocol;

use crate::tunnel::may_be_tunnel;

/// Returns source and destination of the flow of a record, if it has a whole IP packet with a single IP header, which is
/// not in a tunnel; `None` if only the parser can find them.
///
/// [`Unpack::packet`](crate::Unpack) would return that packet and change no state.
pub(crate) fn hosts(record: &Record<'_>) -> Option<(IpAddr, IpAddr)> {
    const ICMP: u8 = 1;
    const ICMPV6: u8 = 58;

    let is_mac_frame =
        [LinkType::IEEE802_15_4_WITHFCS, LinkType::IEEE802_15_4_NOFCS, LinkType::IEEE802_15_4_TAP];
    if is_mac_frame.contains(&record.link_type) {
        return None;
    }
    let network = record.part_of_network_packet().ok().filter(|network| network.missing_len == 0)?;
    let packet = network.packet;
    let (next, behind, source, destination) = match network.version {
        IpVersion::V4 => {
            let (header, behind) = packet.split_first_chunk::<20>()?;
            if header[0] != 0x45 {
                return None;
            }
            let address = |at: usize| Some(IpAddr::from(*header.get(at..)?.first_chunk::<4>()?));
            (header[9], behind, address(12)?, address(16)?)
        }
        IpVersion::V6 => {
            let (header, behind) = packet.split_first_chunk::<40>()?;
            let address = |at: usize| Some(IpAddr::from(*header.get(at..)?.first_chunk::<16>()?));
            (header[6], behind, address(8)?, address(24)?)
        }
    };
    let is_plain = match next {
        protocol::UDP => {
            let ports = behind.first_chunk::<4>()?;
            let [source, destination] = [[ports[0], ports[1]], [ports[2], ports[3]]].map(u16::from_be_bytes);
            destination != ZEP_PORT && !may_be_tunnel(next, Some((source, destination)))
        }
        protocol::TCP | protocol::ESP | protocol::UDP_LITE | ICMP | ICMPV6 => true,
        _ => false,
    };
    is_plain.then_some((source, destination))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use thinair_capture::Timestamp;
    use thinair_lowpan::Contexts;
    use thinair_rohc::Ports;

    use super::*;
    use crate::unpack::Unpack;

    fn record(link_type: LinkType, data: &[u8], missing: u32) -> Record<'_> {
        let original_len = data.len() as u32 + missing;
        Record { number: 1, time: Timestamp::from_nanos(0), link_type, data, original_len }
    }

    /// UDP to port 5683 over IPv4.
    const UDP4: &[u8] =
        b"\x45\0\0\x20\0\0\0\0\x40\x11\0\0\x0a\x63\0\x01\x0a\x63\0\x02\xe0\x01\x16\x33\0\x0c\0\0time";
    /// UDP to port 5683 over IPv6.
    const UDP6: &[u8] = b"\x60\0\0\0\0\x0c\x11\x40\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\xe0\x01\x16\x33\0\x0c\0\0time";

    /// VXLAN with an Ethernet frame, and in it an IPv4 header.
    const VXLAN: &[u8] = b"\x08\0\0\0\0\0\x01\0\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x08\0\x45\0\0\x14\0\0\0\0\x40\xfe\0\0\x0a\x07\0\x01\x0a\x07\0\x02";
    /// Geneve with an IPv4 header.
    const GENEVE: &[u8] = b"\0\0\x08\0\0\0\x05\0\x45\0\0\x14\0\0\0\0\x40\xfe\0\0\x0a\x07\0\x01\x0a\x07\0\x02";
    /// GTP-U with an IPv4 header.
    const GTP_U: &[u8] =
        b"\x30\xff\0\x14\0\0\0\x01\x45\0\0\x14\0\0\0\0\x40\xfe\0\0\x0a\x07\0\x01\x0a\x07\0\x02";
    /// L2TP with an IPv4 header.
    const L2TP: &[u8] = b"\0\x02\0\x01\0\x02\x21\x45\0\0\x14\0\0\0\0\x40\xfe\0\0\x0a\x07\0\x01\x0a\x07\0\x02";
    /// UDP over IPv4 between other hosts.
    const INNER4: &[u8] =
        b"\x45\0\0\x1c\0\0\0\0\x40\x11\0\0\x0a\x07\0\x01\x0a\x07\0\x02\xe0\x01\x16\x33\0\x08\0\0";
    /// UDP over IPv6 between other hosts.
    const INNER6: &[u8] = b"\x60\0\0\0\0\x08\x11\x40\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x07\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x08\xe0\x01\x16\x33\0\x08\0\0";
    /// GRE with an IPv4 header.
    const GRE: &[u8] = b"\0\0\x08\0\x45\0\0\x14\0\0\0\0\x40\xfe\0\0\x0a\x07\0\x01\x0a\x07\0\x02";
    /// ZEP version 2 with a frame of no octet.
    const ZEP: &[u8] = b"EX\x02\x01\x0b\0\x01\x01\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

    #[test]
    fn hosts_of_usual_packets_are_found() {
        for (packet, source, destination) in [(UDP4, "10.99.0.1", "10.99.0.2"), (UDP6, "fd00::1", "fd00::2")]
        {
            let found = Some((source.parse().unwrap(), destination.parse().unwrap()));
            assert_eq!(hosts(&record(LinkType::RAW, packet, 0)), found);
            let kind = if packet == UDP4 { [8, 0] } else { [0x86, 0xDD] };
            let frame = [&[2; 12][..], &kind, packet].concat();
            assert_eq!(hosts(&record(LinkType::ETHERNET, &frame, 0)), found);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

        /// Packets with some octets changed, of which most are in the headers.
        #[test]
        fn hosts_are_those_of_the_parser(
            header in prop::sample::select(vec![&UDP4[..28], &UDP6[..48], &UDP4[..20], &UDP6[..40]]),
            payload in prop::sample::select(vec![&b"time"[..], VXLAN, GENEVE, GTP_U, L2TP, ZEP, INNER4, INNER6, GRE]),
            port in prop::sample::select(vec![5683, 4789, 8472, 2152, 6081, 1701, ZEP_PORT]),
            next in prop_oneof![Just(None), prop::sample::select(vec![4, 41, 47]).prop_map(Some), any::<u8>().prop_map(Some)],
            changes in vec((0..52_usize, prop_oneof![any::<u8>(), prop::sample::select(vec![0, 4, 41, 44, 47])]), 0..4),
            cut in prop_oneof![Just(0), 0..60_usize],
            missing in prop_oneof![Just(0), 0..4_u32],
        ) {
            let mut packet = [header, payload].concat();
            let (length, ip, ports, protocol) = if packet[0] >> 4 == 4 { (2, 0, 20, 9) } else { (4, 40, 40, 6) };
            let len = packet.len();
            packet[length..length + 2].copy_from_slice(&((len - ip) as u16).to_be_bytes());
            if header.len() == ports + 8 {
                packet[ports + 2..ports + 4].copy_from_slice(&u16::to_be_bytes(port));
                packet[ports + 4..ports + 6].copy_from_slice(&((len - ports) as u16).to_be_bytes());
            }
            packet[protocol] = next.unwrap_or(packet[protocol]);
            for (at, octet) in changes {
                if let Some(place) = packet.get_mut(at) {
                    *place = octet;
                }
            }
            packet.truncate(len.saturating_sub(cut));
            let record = record(LinkType::RAW, &packet, missing);
            if let Some(found) = hosts(&record) {
                let mut unpack = Unpack::new(Contexts::NONE).filling_payload(Ports::COAP);
                let key = unpack.packet(&record).unwrap().key;
                prop_assert_eq!((key.source, key.destination), found);
                prop_assert!(unpack.unwrapped().is_empty());
            }
        }
    }
}
