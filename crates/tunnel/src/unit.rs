//! Units, which channels pass to the packaging: ROHC packets, and other packets with their own Type.

pub use thinair_session::SiteId;

/// Kind of a unit: the Type field of an SNDU or a GSE Packet (RFC 4326, section 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A ROHC packet (EtherType 0x22F1).
    Rohc,
    /// An uncompressed IPv4 packet (0x0800).
    Ipv4,
    /// An uncompressed IPv6 packet (0x86DD).
    Ipv6,
    /// An Ethernet frame (RFC 4326, section 4.7.5). If its EtherType is that of ROHC, a ROHC packet replaces
    /// the IP packet.
    Bridged,
}

/// Data that is delivered completely or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit<'u> {
    /// Kind of the octets.
    pub protocol: Protocol,
    /// Single destination site in a mesh, for feedback; `None`: all receivers.
    pub to: Option<SiteId>,
    /// True if it belongs to the channel with large CIDs, for a pair with two channels.
    pub large: bool,
    /// The octets.
    pub octets: &'u [u8],
}
