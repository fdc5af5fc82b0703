//! Cells: path of the packets, version of IP, and place.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thinair_rohc::ProfileId;

/// Path of packets from one host to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TunnelPath {
    /// Directly.
    Plain,
    /// By one thread that reads and writes: the reference for two tunnels.
    Forwarder,
    /// Through two tunnels, encrypted, which is the default.
    Tunnel(ProfileId),
    /// Through two tunnels without compression and encryption.
    Insecure,
}

/// Version of IP of the inner packets. The carrier is always IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InnerIpVersion {
    V4,
    V6,
}

/// Link between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkPlace {
    /// Cable between two network namespaces, without delay.
    Veth,
    /// Link with the delay of the paper's network: a round trip of 10.6 ms.
    Link,
}

/// One figure of the tables: many round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RttCell {
    pub(super) way: TunnelPath,
    pub(super) version: InnerIpVersion,
}

impl TunnelPath {
    /// Profiles of the tunnels, in the order of the paper's tables.
    pub(super) const PROFILES: [ProfileId; 4] =
        [ProfileId::Coap, ProfileId::Udp, ProfileId::Ip, ProfileId::Uncompressed];

    pub(super) fn all(place: LinkPlace) -> Vec<Self> {
        let mut ways: Vec<_> = Self::PROFILES.map(Self::Tunnel).to_vec();
        ways.extend([Self::Insecure, Self::Plain]);
        if place == LinkPlace::Veth {
            ways.push(Self::Forwarder);
        }
        ways
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "none",
            Self::Forwarder => "forwarder",
            Self::Tunnel(profile) => profile.name(),
            Self::Insecure => "insecure",
        }
    }

    /// Profile that packets on this path must use; `None` without a tunnel.
    pub(super) fn profile(self) -> Option<ProfileId> {
        match self {
            Self::Tunnel(profile) => Some(profile),
            Self::Insecure => Some(ProfileId::Uncompressed),
            Self::Plain | Self::Forwarder => None,
        }
    }

    /// Profiles of the channel, chosen so that CoAP packets use [`profile`](Self::profile).
    pub(super) fn offered(self) -> Option<&'static str> {
        Some(match self.profile()? {
            ProfileId::Coap => "v1,coap",
            ProfileId::Udp => "ip,udp",
            ProfileId::Ip => "ip",
            _ => "uncompressed",
        })
    }
}

impl InnerIpVersion {
    pub(super) const ALL: [Self; 2] = [Self::V4, Self::V6];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V4 => "ipv4",
            Self::V6 => "ipv6",
        }
    }

    /// Addresses of both hosts in the network of that number, and their prefix length.
    pub(super) fn hosts(self, network: u8) -> ([IpAddr; 2], u8) {
        let host = |host: u8| match self {
            Self::V4 => IpAddr::V4(Ipv4Addr::new(10, 77, network, host)),
            Self::V6 => IpAddr::V6(Ipv6Addr::new(0xfd77, u16::from(network), 0, 0, 0, 0, 0, u16::from(host))),
        };
        ([host(1), host(2)], if self == Self::V4 { 30 } else { 64 })
    }
}

impl LinkPlace {
    pub(super) const ALL: [Self; 2] = [Self::Veth, Self::Link];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Veth => "veth",
            Self::Link => "link",
        }
    }

    /// Cells that are measured at this place, side by side.
    pub(super) fn cells(self) -> Vec<RttCell> {
        let ways = TunnelPath::all(self);
        InnerIpVersion::ALL
            .iter()
            .flat_map(|&version| ways.iter().map(move |&way| RttCell { way, version }))
            .collect()
    }
}
