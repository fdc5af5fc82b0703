//! Link layer headers of frames with IP packets or ROHC packets.
//!
//! Parses the link layer header up to the protocol that follows, and of IP only version and length. Layouts
//! are those of the [registry](https://www.tcpdump.org/linktypes.html), whose pages name the standards.

use std::fmt;

use crate::LinkType;

mod ppp;
mod wlan;

/// Length of an Ethernet header without VLAN tags in octets: destination, source, EtherType.
pub const ETHERNET_HEADER_LEN: usize = 14;
/// EtherType of IPv4 (RFC 894).
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of IPv6 (RFC 2464, section 3).
pub const ETHERTYPE_IPV6: u16 = 0x86dd;
/// EtherType of Robust Header Compression, in the IEEE registry; each frame contains one ROHC packet.
pub const ETHERTYPE_ROHC: u16 = 0x22f1;

/// EtherType of a PPPoE session (RFC 2516, section 4).
const ETHERTYPE_PPPOE_SESSION: u16 = 0x8864;

/// EtherTypes that are followed by two octets of VLAN tag and another EtherType: C-tag and S-tag of IEEE
/// 802.1Q, and an older S-tag.
const VLAN_TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// Length of a frame check sequence of IEEE 802, in octets.
const FCS_LEN: usize = 4;

/// The IP packet of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkPacket<'a> {
    /// IP version, which matches that in the link layer header, if it has one.
    pub version: IpVersion,
    /// The packet, from its first octet. Its IP header is not checked: it may be truncated, and its length
    /// may differ from the octets here.
    pub packet: &'a [u8],
    /// Octets before the packet; 0 for the raw link types.
    pub link_header_len: usize,
    /// Octets after the packet: padding, a frame check sequence. Mostly 0.
    pub link_padding_len: usize,
    /// Octets at the end of the packet that were not captured. Nonzero only for [partial
    /// packets](crate::Record::part_of_network_packet).
    pub missing_len: usize,
}

/// Version of an IP packet, from its first four bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpVersion {
    /// IPv4, RFC 791.
    V4,
    /// IPv6, RFC 8200.
    V6,
}

/// The ROHC packet of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RohcPacket<'a> {
    /// The packet with all octets that follow in the frame: a ROHC packet has no length, so padding of short
    /// Ethernet frames cannot be distinguished from payload.
    pub packet: &'a [u8],
    /// Octets before the packet; 0 for [`LinkType::USER0`].
    pub link_header_len: usize,
}

/// Reason why a record contains no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Skip {
    /// The end of the frame was not captured, or the link layer header is truncated.
    Truncated,
    /// The link layer header announces another protocol than IP, or another version than the packet.
    NotIp,
    /// The link layer header announces another protocol than ROHC.
    NotRohc,
    /// The requested kind of packet is not supported for this link type.
    UnsupportedLinkType,
    /// No octets follow the link layer header.
    Empty,
    /// A frame of IEEE 802.11 without payload of an upper layer: a management or control frame, or a data
    /// frame without data.
    NotData,
    /// The frame is encrypted at the link layer.
    Encrypted,
    /// The frame is a fragment at the link layer.
    Fragment,
    /// The frame contains several packets (A-MSDU of IEEE 802.11 with more than one subframe).
    Aggregated,
    /// The receiver detected damage in the frame.
    WrongFcs,
}

impl Skip {
    /// All reasons, in the order of tables.
    pub const ALL: [Self; 10] = [
        Self::Truncated,
        Self::NotIp,
        Self::NotRohc,
        Self::UnsupportedLinkType,
        Self::Empty,
        Self::NotData,
        Self::Encrypted,
        Self::Fragment,
        Self::Aggregated,
        Self::WrongFcs,
    ];

    /// Name for tables and machine-readable output, which is stable across versions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::NotIp => "not_ip",
            Self::NotRohc => "not_rohc",
            Self::UnsupportedLinkType => "unsupported_link_type",
            Self::Empty => "empty",
            Self::NotData => "not_data",
            Self::Encrypted => "encrypted",
            Self::Fragment => "fragment",
            Self::Aggregated => "aggregated",
            Self::WrongFcs => "wrong_fcs",
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl std::error::Error for Skip {}

/// Finds the IP packet of a frame. `data`: captured octets; `original_len`: octets on the link.
///
/// Octets after the packet are removed if they are a trailer of an Ethernet frame (padding, a frame check
/// sequence), or the check sequence of a frame of IEEE 802.11. If the IP header contains another length in
/// all other cases, the packet is returned with the octets of the frame.
///
/// # Errors
/// Reason why there is no complete IP packet. Frames of other protocols are [`Skip::NotIp`] even if they are
/// truncated.
pub fn network_packet(
    link_type: LinkType,
    data: &[u8],
    original_len: u32,
) -> Result<NetworkPacket<'_>, Skip> {
    let network = part_of_network_packet(link_type, data, original_len)?;
    if network.missing_len > 0 { Err(Skip::Truncated) } else { Ok(network) }
}

/// Works like [`network_packet`], and also returns packets whose end was not captured. The missing length
/// follows from the IP header, or from `original_len` if that is less.
pub(crate) fn part_of_network_packet(
    link_type: LinkType,
    data: &[u8],
    original_len: u32,
) -> Result<NetworkPacket<'_>, Skip> {
    let ParsedFrame { protocol, payload, header_len, trailer } = link(link_type, data, original_len)?;
    let version = match payload.first().map(|octet| octet >> 4) {
        _ if matches!(protocol, NextProtocol::Rohc | NextProtocol::Other) => return Err(Skip::NotIp),
        None => return Err(nothing(data, original_len)),
        Some(4) if protocol != NextProtocol::Ipv6 => IpVersion::V4,
        Some(6) if protocol != NextProtocol::Ipv4 => IpVersion::V6,
        Some(_) => return Err(Skip::NotIp),
    };
    let cut = (original_len as usize).saturating_sub(data.len());
    let whole = payload.len() + cut;
    let ip_len = ip_len(version, payload).filter(|&ip_len| match trailer {
        _ if cut > 0 => true,
        Trailer::None => false,
        Trailer::Any => true,
        Trailer::Fcs => whole == ip_len + FCS_LEN,
    });
    if cut > 0 && ip_len.is_none() {
        return Err(Skip::Truncated);
    }
    let len = ip_len.map_or(whole, |ip_len| ip_len.min(whole));
    let packet = payload.get(..len).unwrap_or(payload);
    Ok(NetworkPacket {
        version,
        packet,
        link_header_len: header_len,
        link_padding_len: data.len() - header_len - packet.len(),
        missing_len: len - packet.len(),
    })
}

/// Finds the ROHC packet of a frame: the payload of EtherType [`ETHERTYPE_ROHC`], or a whole
/// [`LinkType::USER0`] record. `data`: captured octets; `original_len`: octets on the link.
///
/// # Errors
/// Reason why there is no complete ROHC packet. Frames of other protocols are [`Skip::NotRohc`] even if they
/// are truncated.
pub fn rohc_packet(link_type: LinkType, data: &[u8], original_len: u32) -> Result<RohcPacket<'_>, Skip> {
    let ParsedFrame { protocol, payload, header_len, .. } = link(link_type, data, original_len)?;
    if protocol != NextProtocol::Rohc {
        return Err(Skip::NotRohc);
    }
    if is_truncated(data, original_len) {
        return Err(Skip::Truncated);
    }
    if payload.is_empty() {
        return Err(Skip::Empty);
    }
    Ok(RohcPacket { packet: payload, link_header_len: header_len })
}

pub(crate) fn is_truncated(data: &[u8], original_len: u32) -> bool {
    (data.len() as u64) < u64::from(original_len)
}

/// Reason why `data` ends early.
fn nothing(data: &[u8], original_len: u32) -> Skip {
    if is_truncated(data, original_len) { Skip::Truncated } else { Skip::Empty }
}

/// Length in the header of a packet; `None` if it is invalid.
fn ip_len(version: IpVersion, packet: &[u8]) -> Option<usize> {
    match version {
        // Total Length. 0 in packets that the network card would have segmented.
        IpVersion::V4 => be16(packet, 2).map(usize::from).filter(|&len| len >= 20),
        // Payload Length. 0 also in jumbograms (RFC 2675).
        IpVersion::V6 => be16(packet, 4).map(usize::from).filter(|&len| len > 0).map(|len| 40 + len),
    }
}

/// A parsed frame.
struct ParsedFrame<'a> {
    protocol: NextProtocol,
    payload: &'a [u8],
    header_len: usize,
    trailer: Trailer,
}

/// Octets that may follow the packet in its frame and are not counted in the link layer header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trailer {
    None,
    /// Padding of a short Ethernet frame, a frame check sequence, or octets added by a switch: the length in
    /// the IP header determines the end of the packet (RFC 894; RFC 2464, section 3).
    Any,
    /// A frame check sequence of 4 octets.
    Fcs,
}

/// Protocol after a link layer header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextProtocol {
    Ipv4,
    Ipv6,
    /// IPv4 or IPv6.
    Ip,
    Rohc,
    Other,
}

fn link(link_type: LinkType, data: &[u8], original_len: u32) -> Result<ParsedFrame<'_>, Skip> {
    let headerless =
        |protocol| Some(ParsedFrame { protocol, payload: data, header_len: 0, trailer: Trailer::None });
    let link = match link_type {
        LinkType::ETHERNET => ethertype(data, 12, ETHERNET_HEADER_LEN, Trailer::Any),
        LinkType::IEEE802_11 if !data.is_empty() => return wlan::ieee802_11(data),
        LinkType::IEEE802_11_RADIOTAP if !data.is_empty() => {
            return wlan::radiotap(data, is_truncated(data, original_len));
        }
        LinkType::IEEE802_11_PRISM if !data.is_empty() => return wlan::prism(data),
        LinkType::IEEE802_11_AVS if !data.is_empty() => return wlan::avs(data),
        LinkType::IEEE802_11
        | LinkType::IEEE802_11_RADIOTAP
        | LinkType::IEEE802_11_PRISM
        | LinkType::IEEE802_11_AVS => None,
        LinkType::LINUX_SLL => sll(data),
        LinkType::LINUX_SLL2 => sll2(data),
        LinkType::NULL => null(data),
        LinkType::LOOP => loopback(data),
        LinkType::PPP | LinkType::PPP_HDLC | LinkType::C_HDLC => ppp::ppp(data),
        LinkType::PPP_ETHER => ppp::pppoe(data, 0, Trailer::None),
        LinkType::PPP_PPPD => ppp::ppp_pppd(data),
        LinkType::PPP_WITH_DIR => ppp::ppp_with_dir(data),
        LinkType::RAW | LinkType::DLT_RAW | LinkType::DLT_RAW_OPENBSD => headerless(NextProtocol::Ip),
        LinkType::IPV4 => headerless(NextProtocol::Ipv4),
        LinkType::IPV6 => headerless(NextProtocol::Ipv6),
        LinkType::USER0 => headerless(NextProtocol::Rohc),
        _ => return Err(Skip::UnsupportedLinkType),
    };
    link.ok_or(if data.is_empty() { nothing(data, original_len) } else { Skip::Truncated })
}

/// Parses an EtherType at `type_at`, in a link layer header that ends at `header_len` unless VLAN tags
/// follow.
///
/// Values below 1,536 are the length of an LLC frame (IEEE 802.3), and in Linux cooked captures also numbers
/// defined by Linux; neither is IP.
fn ethertype(data: &[u8], type_at: usize, header_len: usize, trailer: Trailer) -> Option<ParsedFrame<'_>> {
    let (ethertype, header_len) = after_tags(data, type_at, header_len)?;
    let protocol = match ethertype {
        ETHERTYPE_PPPOE_SESSION => return ppp::pppoe(data, header_len, trailer),
        ETHERTYPE_IPV4 => NextProtocol::Ipv4,
        ETHERTYPE_IPV6 => NextProtocol::Ipv6,
        ETHERTYPE_ROHC => NextProtocol::Rohc,
        _ => NextProtocol::Other,
    };
    Some(ParsedFrame { protocol, payload: data.get(header_len..)?, header_len, trailer })
}

/// Returns the EtherType after VLAN tags, and the end of the link layer header.
fn after_tags(data: &[u8], type_at: usize, mut header_len: usize) -> Option<(u16, usize)> {
    let mut ethertype = be16(data, type_at)?;
    while VLAN_TAGS.contains(&ethertype) {
        ethertype = be16(data, header_len + 2)?;
        header_len += 4;
    }
    Some((ethertype, header_len))
}

/// Returns the EtherType of a frame of Ethernet, or of a Linux cooked capture.
pub(crate) fn ethertype_of(link_type: LinkType, data: &[u8]) -> Option<u16> {
    let (type_at, header_len) = match link_type {
        LinkType::ETHERNET => (12, ETHERNET_HEADER_LEN),
        LinkType::LINUX_SLL => (14, 16),
        LinkType::LINUX_SLL2 => (0, 20),
        _ => return None,
    };
    after_tags(data, type_at, header_len).map(|(ethertype, _)| ethertype)
}

/// ARPHRD type of Ethernet in Linux cooked headers.
const ARPHRD_ETHER: u16 = 1;

fn sll_trailer(arphrd: u16) -> Trailer {
    if arphrd == ARPHRD_ETHER { Trailer::Any } else { Trailer::None }
}

/// Packet type (2 octets), ARPHRD type (2), address length (2), address (8), protocol (2).
fn sll(data: &[u8]) -> Option<ParsedFrame<'_>> {
    let arphrd = be16(data, 2)?;
    ethertype(data, 14, 16, sll_trailer(arphrd))
}

/// Protocol (2 octets), reserved (2), interface (4), ARPHRD type (2), packet type (1), address length (1),
/// address (8).
fn sll2(data: &[u8]) -> Option<ParsedFrame<'_>> {
    let arphrd = be16(data, 8)?;
    ethertype(data, 0, 20, sll_trailer(arphrd))
}

/// Address family in the byte order of the capturing machine. No valid family is valid in the other byte
/// order.
fn null(data: &[u8]) -> Option<ParsedFrame<'_>> {
    let &family = data.first_chunk()?;
    let protocol = match address_family(u32::from_be_bytes(family)) {
        NextProtocol::Other => address_family(u32::from_le_bytes(family)),
        protocol => protocol,
    };
    Some(ParsedFrame {
        protocol,
        payload: &data[family.len()..],
        header_len: family.len(),
        trailer: Trailer::None,
    })
}

fn loopback(data: &[u8]) -> Option<ParsedFrame<'_>> {
    let &family = data.first_chunk()?;
    let protocol = address_family(u32::from_be_bytes(family));
    Some(ParsedFrame {
        protocol,
        payload: &data[family.len()..],
        header_len: family.len(),
        trailer: Trailer::None,
    })
}

fn address_family(family: u32) -> NextProtocol {
    match family {
        2 => NextProtocol::Ipv4,
        // AF_INET6 of Linux; of NetBSD, OpenBSD and BSD/OS; of FreeBSD; of macOS.
        10 | 24 | 28 | 30 => NextProtocol::Ipv6,
        _ => NextProtocol::Other,
    }
}

fn be16(octets: &[u8], at: usize) -> Option<u16> {
    octets.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
