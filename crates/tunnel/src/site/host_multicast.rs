//! Multicast that a host sends for itself on every interface: router solicitations, reports of MLD and IGMP, mDNS, LLMNR and
//! SSDP. Behind a tunnel between two ends nobody needs it, and it keeps idle links busy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thinair_wire::header::protocol;

use crate::site_config::{Others, SiteConfig};

/// Protocol numbers (RFC 9776, RFC 4443).
const IGMP: u8 = 2;
const ICMP_V6: u8 = 58;
/// Destination ports of mDNS (RFC 6762), LLMNR (RFC 4795) and SSDP (UPnP Device Architecture 2.0).
const PORTS: [u16; 3] = [5_353, 5_355, 1_900];
/// Multicast Listener Query, Report and Done, Router Solicitation, Version 2 Report (RFC 4443, RFC 4861, RFC 3810).
const TYPES: [u8; 5] = [130, 131, 132, 133, 143];

/// Recognizes multicast of this host for itself.
pub(super) struct HostMulticast {
    /// Addresses of the interface.
    own: Vec<IpAddr>,
}

impl HostMulticast {
    /// Returns the addresses of an interface between two ends with IP packets. `None`: its multicast is carried, as it is
    /// part of a mesh or of a bridged network, or as multicast is routed through the tunnel.
    pub(super) fn of(config: &SiteConfig) -> Option<Self> {
        let Others::Peers(peers) = &config.others else { return None };
        let allowed = peers.iter().flat_map(|peer| &peer.allowed);
        let is_routed = config.inside.routes.iter().chain(allowed).any(|(network, _)| network.is_multicast());
        let own = config.inside.addresses.iter().map(|(address, _)| *address).collect();
        (!config.inside.bridged && !is_routed).then_some(Self { own })
    }

    /// True if the packet is multicast of this host for itself.
    pub(super) fn has(&self, packet: &[u8]) -> bool {
        match packet.first().map(|first| first >> 4) {
            Some(4) => self.has_v4(packet).unwrap_or(false),
            Some(6) => self.has_v6(packet).unwrap_or(false),
            _ => false,
        }
    }

    fn has_v4(&self, packet: &[u8]) -> Option<bool> {
        let address = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
        let (source, to) = (address(12)?, address(16)?);
        let [a, b, c, _] = to.octets();
        // 224.0.0.0/24 is never forwarded (RFC 5771, section 4).
        let is_ours = [a, b, c] == [224, 0, 0] || self.own.contains(&source.into());
        let header = usize::from(packet.first()? & 0xf) * 4;
        let is_fragment = packet.get(6)? & 0x1f != 0 || *packet.get(7)? != 0;
        let is_for_itself = match *packet.get(9)? {
            IGMP => true,
            protocol::UDP if !is_fragment => is_port(packet.get(header..)?),
            _ => false,
        };
        Some(to.is_multicast() && is_ours && is_for_itself)
    }

    fn has_v6(&self, packet: &[u8]) -> Option<bool> {
        let address = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?));
        let (source, to) = (address(8)?, address(24)?);
        // Link-local scope is never forwarded (RFC 4291, section 2.7).
        let is_ours = to.octets()[1] & 0xf == 2 || self.own.contains(&source.into());
        let (mut next, mut rest) = (*packet.get(6)?, packet.get(40..)?);
        if next == protocol::HOP_BY_HOP {
            next = *rest.first()?;
            rest = rest.get(8 * (1 + usize::from(*rest.get(1)?))..)?;
        }
        let is_for_itself = match next {
            ICMP_V6 => TYPES.contains(rest.first()?),
            protocol::UDP => is_port(rest),
            _ => false,
        };
        Some(to.is_multicast() && is_ours && is_for_itself)
    }
}

/// True if the destination port of a UDP datagram is one of [`PORTS`].
fn is_port(udp: &[u8]) -> bool {
    udp.get(2..4).is_some_and(|port| PORTS.iter().any(|known| port == known.to_be_bytes()))
}
