//! The link headers in front of IP packets and ROHC packets.
//!
//! Knows where the link header of a frame ends and which protocol it says comes next, and of IP no more than the
//! version and the length. Layouts are those of the [registry](https://www.tcpdump.org/linktypes.html), whose pages name
//! the standards.

use std::fmt;

use crate::LinkType;

/// Octets of an Ethernet header without VLAN tags: destination, source, EtherType.
pub const ETHERNET_HEADER_LEN: usize = 14;
/// EtherType of IPv4. RFC 894.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of IPv6. RFC 2464, section 3.
pub const ETHERTYPE_IPV6: u16 = 0x86dd;
/// EtherType of Robust Header Compression, in the IEEE registry; each frame is one ROHC packet.
pub const ETHERTYPE_ROHC: u16 = 0x22f1;

/// EtherTypes after which come two octets of VLAN tag and another EtherType: IEEE 802.1Q C-tag and S-tag, and an S-tag
/// from before it had a number.
const VLAN_TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// The most octets that can follow the Ethernet header of a padded frame: padding to 60 octets in all, and a frame
/// check sequence of 4. The same with VLAN tags, which switches put into frames that are already padded.
const PADDED_PAYLOAD_MAX: usize = 60 - ETHERNET_HEADER_LEN + 4;

/// Where the IP packet of a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network<'a> {
    /// The IP version. The link header, if it says one, says the same.
    pub version: IpVersion,
    /// The packet, from its first octet. Its IP header is not checked: it may be cut off, and the length in it may be
    /// above or below the octets here.
    pub packet: &'a [u8],
    /// Octets in front of the packet. 0 for the raw link types.
    pub link_header_len: usize,
    /// Octets of link padding behind the packet, at most 50. 0 for most frames.
    pub link_padding_len: usize,
}

/// The version of an IP packet, from its first four bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpVersion {
    /// IPv4, RFC 791.
    V4,
    /// IPv6, RFC 8200.
    V6,
}

/// Where the ROHC packet of a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rohc<'a> {
    /// The packet with all that follows in the frame: a ROHC packet does not say where it ends, so padding to the
    /// shortest Ethernet frame cannot be told from payload.
    pub packet: &'a [u8],
    /// Octets in front of the packet. 0 for [`LinkType::USER0`].
    pub link_header_len: usize,
}

/// Why a record gives no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Skip {
    /// The end of the frame was not captured, or the link header is cut off.
    Truncated,
    /// The link header says something else than IP, or the packet begins with another version than the link header says.
    NotIp,
    /// The link header says something else than ROHC.
    NotRohc,
    /// What is asked for is not to be found behind this link type.
    UnsupportedLinkType,
    /// Nothing follows the link header.
    Empty,
}

impl Skip {
    /// All reasons, in the order in which a table lists them.
    pub const ALL: [Self; 5] =
        [Self::Truncated, Self::NotIp, Self::NotRohc, Self::UnsupportedLinkType, Self::Empty];

    /// A name which stays the same in later versions, for tables and machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::NotIp => "not_ip",
            Self::NotRohc => "not_rohc",
            Self::UnsupportedLinkType => "unsupported_link_type",
            Self::Empty => "empty",
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl std::error::Error for Skip {}

/// Finds the IP packet of a frame of which `data` was captured and which had `original_len` octets on the link.
///
/// Octets behind the packet are cut off where they are the padding of a short Ethernet frame. In all other cases in
/// which the IP header gives another length, the packet is handed up with the octets that are there.
///
/// # Errors
/// Why there is no IP packet, or none that is whole. Frames of other protocols are [`Skip::NotIp`] also when they are
/// truncated.
pub fn network_packet(link_type: LinkType, data: &[u8], original_len: u32) -> Result<Network<'_>, Skip> {
    let Link { protocol, payload, header_len, is_ethernet } = link(link_type, data, original_len)?;
    let version = match payload.first().map(|octet| octet >> 4) {
        _ if matches!(protocol, Protocol::Rohc | Protocol::Other) => return Err(Skip::NotIp),
        None => return Err(nothing(data, original_len)),
        Some(4) if protocol != Protocol::Ipv6 => IpVersion::V4,
        Some(6) if protocol != Protocol::Ipv4 => IpVersion::V6,
        Some(_) => return Err(Skip::NotIp),
    };
    if is_truncated(data, original_len) {
        return Err(Skip::Truncated);
    }
    let packet = match ip_len(version, payload) {
        Some(ip_len) if is_ethernet && payload.len() <= PADDED_PAYLOAD_MAX => {
            payload.get(..ip_len).unwrap_or(payload)
        }
        _ => payload,
    };
    Ok(Network {
        version,
        packet,
        link_header_len: header_len,
        link_padding_len: payload.len() - packet.len(),
    })
}

/// Finds the ROHC packet of a frame of which `data` was captured and which had `original_len` octets on the link: the
/// payload of EtherType [`ETHERTYPE_ROHC`], or the whole of a [`LinkType::USER0`] record.
///
/// # Errors
/// Why there is no ROHC packet, or none that is whole. Frames of other protocols are [`Skip::NotRohc`] also when they
/// are truncated.
pub fn rohc_packet(link_type: LinkType, data: &[u8], original_len: u32) -> Result<Rohc<'_>, Skip> {
    let Link { protocol, payload, header_len, .. } = link(link_type, data, original_len)?;
    if protocol != Protocol::Rohc {
        return Err(Skip::NotRohc);
    }
    if is_truncated(data, original_len) {
        return Err(Skip::Truncated);
    }
    if payload.is_empty() {
        return Err(Skip::Empty);
    }
    Ok(Rohc { packet: payload, link_header_len: header_len })
}

pub(crate) fn is_truncated(data: &[u8], original_len: u32) -> bool {
    (data.len() as u64) < u64::from(original_len)
}

/// Why octets are missing at the end of `data`.
fn nothing(data: &[u8], original_len: u32) -> Skip {
    if is_truncated(data, original_len) { Skip::Truncated } else { Skip::Empty }
}

/// The length which a packet gives itself; `None` where it gives none that could be.
fn ip_len(version: IpVersion, packet: &[u8]) -> Option<usize> {
    match version {
        // Total length. 0 in packets which the network card would have cut into segments.
        IpVersion::V4 => be16(packet, 2).map(usize::from).filter(|&len| len >= 20),
        // Payload length. 0 also in jumbograms, RFC 2675.
        IpVersion::V6 => be16(packet, 4).map(usize::from).filter(|&len| len > 0).map(|len| 40 + len),
    }
}

/// A frame taken apart.
struct Link<'a> {
    protocol: Protocol,
    payload: &'a [u8],
    header_len: usize,
    /// Whether the payload was carried by Ethernet, and so may be padded.
    is_ethernet: bool,
}

/// What a link header says comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Ipv4,
    Ipv6,
    /// One of both.
    Ip,
    Rohc,
    Other,
}

fn link(link_type: LinkType, data: &[u8], original_len: u32) -> Result<Link<'_>, Skip> {
    let headerless = |protocol| Some(Link { protocol, payload: data, header_len: 0, is_ethernet: false });
    let link = match link_type {
        LinkType::ETHERNET => ethertype(data, 12, 14, true),
        LinkType::LINUX_SLL => sll(data),
        LinkType::LINUX_SLL2 => sll2(data),
        LinkType::NULL => null(data),
        LinkType::LOOP => loopback(data),
        LinkType::PPP | LinkType::PPP_HDLC => ppp(data),
        LinkType::RAW | LinkType::DLT_RAW | LinkType::DLT_RAW_OPENBSD => headerless(Protocol::Ip),
        LinkType::IPV4 => headerless(Protocol::Ipv4),
        LinkType::IPV6 => headerless(Protocol::Ipv6),
        LinkType::USER0 => headerless(Protocol::Rohc),
        _ => return Err(Skip::UnsupportedLinkType),
    };
    link.ok_or(if data.is_empty() { nothing(data, original_len) } else { Skip::Truncated })
}

/// An EtherType at `type_at`, in a link header which ends at `header_len` unless VLAN tags follow.
///
/// Below 1,536 the field is the length of an LLC frame (IEEE 802.3), and in Linux cooked captures also a number of
/// Linux's own; neither is IP.
fn ethertype(data: &[u8], type_at: usize, mut header_len: usize, is_ethernet: bool) -> Option<Link<'_>> {
    let mut ethertype = be16(data, type_at)?;
    while VLAN_TAGS.contains(&ethertype) {
        ethertype = be16(data, header_len + 2)?;
        header_len += 4;
    }
    let protocol = match ethertype {
        ETHERTYPE_IPV4 => Protocol::Ipv4,
        ETHERTYPE_IPV6 => Protocol::Ipv6,
        ETHERTYPE_ROHC => Protocol::Rohc,
        _ => Protocol::Other,
    };
    Some(Link { protocol, payload: data.get(header_len..)?, header_len, is_ethernet })
}

/// ARPHRD type of Ethernet in Linux cooked headers.
const ARPHRD_ETHER: u16 = 1;

/// Packet type 2, ARPHRD type 2, address length 2, address 8, protocol 2.
fn sll(data: &[u8]) -> Option<Link<'_>> {
    let arphrd = be16(data, 2)?;
    ethertype(data, 14, 16, arphrd == ARPHRD_ETHER)
}

/// Protocol 2, reserved 2, interface 4, ARPHRD type 2, packet type 1, address length 1, address 8.
fn sll2(data: &[u8]) -> Option<Link<'_>> {
    let arphrd = be16(data, 8)?;
    ethertype(data, 0, 20, arphrd == ARPHRD_ETHER)
}

/// The family in the byte order of a machine that is not known. No family reads as another one in the wrong order.
fn null(data: &[u8]) -> Option<Link<'_>> {
    let &family = data.first_chunk()?;
    let protocol = match address_family(u32::from_be_bytes(family)) {
        Protocol::Other => address_family(u32::from_le_bytes(family)),
        protocol => protocol,
    };
    Some(Link { protocol, payload: &data[family.len()..], header_len: family.len(), is_ethernet: false })
}

fn loopback(data: &[u8]) -> Option<Link<'_>> {
    let &family = data.first_chunk()?;
    let protocol = address_family(u32::from_be_bytes(family));
    Some(Link { protocol, payload: &data[family.len()..], header_len: family.len(), is_ethernet: false })
}

fn address_family(family: u32) -> Protocol {
    match family {
        2 => Protocol::Ipv4,
        // AF_INET6 of Linux; of NetBSD, OpenBSD and BSD/OS; of FreeBSD; of macOS.
        10 | 24 | 28 | 30 => Protocol::Ipv6,
        _ => Protocol::Other,
    }
}

/// RFC 1661 and RFC 1662, with or without address and control field, and with a protocol field of 1 or 2 octets; and
/// Cisco HDLC, whose address is 0x0f or 0x8f (RFC 1547, section 4.3.1).
fn ppp(data: &[u8]) -> Option<Link<'_>> {
    let framing_len = match data {
        [0x0f | 0x8f, 0x00, ..] => return ethertype(data, 2, 4, false),
        [0xff, 0x03, ..] => 2,
        // The start of a framing: no protocol of one octet that is in use.
        [0x0f | 0x8f | 0xff] => return None,
        _ => 0,
    };
    // The last octet of the protocol is odd, the first of two is even: RFC 1661, section 2.
    let (protocol, protocol_len) = match *data.get(framing_len..)? {
        [short, ..] if short % 2 == 1 => (u16::from(short), 1),
        [high, low, ..] => (u16::from_be_bytes([high, low]), 2),
        _ => return None,
    };
    let protocol = match protocol {
        0x0021 => Protocol::Ipv4,
        0x0057 => Protocol::Ipv6,
        _ => Protocol::Other,
    };
    let header_len = framing_len + protocol_len;
    Some(Link { protocol, payload: data.get(header_len..)?, header_len, is_ethernet: false })
}

fn be16(octets: &[u8], at: usize) -> Option<u16> {
    octets.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
