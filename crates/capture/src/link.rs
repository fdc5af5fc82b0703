//! The link headers in front of IP packets and ROHC packets.
//!
//! Knows where the link header of a frame ends and which protocol it says comes next, and of IP no more than the
//! version and the length. Layouts are those of the [registry](https://www.tcpdump.org/linktypes.html), whose pages name
//! the standards.

use std::fmt;

use crate::LinkType;

mod ppp;
mod wlan;

/// Octets of an Ethernet header without VLAN tags: destination, source, EtherType.
pub const ETHERNET_HEADER_LEN: usize = 14;
/// EtherType of IPv4. RFC 894.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of IPv6. RFC 2464, section 3.
pub const ETHERTYPE_IPV6: u16 = 0x86dd;
/// EtherType of Robust Header Compression, in the IEEE registry; each frame is one ROHC packet.
pub const ETHERTYPE_ROHC: u16 = 0x22f1;

/// EtherType of a PPPoE session. RFC 2516, section 4.
const ETHERTYPE_PPPOE_SESSION: u16 = 0x8864;

/// EtherTypes after which come two octets of VLAN tag and another EtherType: IEEE 802.1Q C-tag and S-tag, and an S-tag
/// from before it had a number.
const VLAN_TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// Octets of a frame check sequence of IEEE 802.
const FCS_LEN: usize = 4;

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
    /// Octets of the link behind the packet: padding, a frame check sequence. 0 for most frames.
    pub link_padding_len: usize,
    /// Octets of the packet that were not captured, at its end. 0 but where [a part is
    /// enough](crate::Record::part_of_network_packet).
    pub missing_len: usize,
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
    /// A frame of IEEE 802.11 without payload of an upper layer: management, control, or data without data.
    NotData,
    /// The frame is encrypted by the link layer.
    Encrypted,
    /// The frame is a fragment of the link layer.
    Fragment,
    /// The frame has several packets in it (A-MSDU of IEEE 802.11 with more than one subframe).
    Aggregated,
    /// The receiver found the frame damaged.
    WrongFcs,
}

impl Skip {
    /// All reasons, in the order in which a table lists them.
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

    /// A name which stays the same in later versions, for tables and machine-readable output.
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

/// Finds the IP packet of a frame of which `data` was captured and which had `original_len` octets on the link.
///
/// Octets behind the packet are cut off where they are a trailer of an Ethernet frame (padding, a frame check sequence), or
/// the check sequence of a frame of IEEE 802.11. In all other cases in which the IP header gives another length, the packet
/// is handed up with the octets that are there.
///
/// # Errors
/// Why there is no IP packet, or none that is whole. Frames of other protocols are [`Skip::NotIp`] also when they are
/// truncated.
pub fn network_packet(link_type: LinkType, data: &[u8], original_len: u32) -> Result<Network<'_>, Skip> {
    let network = part_of_network_packet(link_type, data, original_len)?;
    if network.missing_len > 0 { Err(Skip::Truncated) } else { Ok(network) }
}

/// [`network_packet`], also where its end was not captured. How much is missing is known from the length in its header,
/// or from `original_len` if that is less.
pub(crate) fn part_of_network_packet(
    link_type: LinkType,
    data: &[u8],
    original_len: u32,
) -> Result<Network<'_>, Skip> {
    let Link { protocol, payload, header_len, trailer } = link(link_type, data, original_len)?;
    let version = match payload.first().map(|octet| octet >> 4) {
        _ if matches!(protocol, Protocol::Rohc | Protocol::Other) => return Err(Skip::NotIp),
        None => return Err(nothing(data, original_len)),
        Some(4) if protocol != Protocol::Ipv6 => IpVersion::V4,
        Some(6) if protocol != Protocol::Ipv4 => IpVersion::V6,
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
    Ok(Network {
        version,
        packet,
        link_header_len: header_len,
        link_padding_len: data.len() - header_len - packet.len(),
        missing_len: len - packet.len(),
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
    trailer: Trailer,
}

/// Octets that may follow the packet in its frame, though no field of the link header counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trailer {
    None,
    /// Padding of a short Ethernet frame, a frame check sequence, or what a switch has put there: the length in the IP
    /// header tells where the packet ends (RFC 894; RFC 2464, section 3).
    Any,
    /// A frame check sequence of 4 octets.
    Fcs,
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
    let headerless = |protocol| Some(Link { protocol, payload: data, header_len: 0, trailer: Trailer::None });
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
fn ethertype(data: &[u8], type_at: usize, mut header_len: usize, trailer: Trailer) -> Option<Link<'_>> {
    let mut ethertype = be16(data, type_at)?;
    while VLAN_TAGS.contains(&ethertype) {
        ethertype = be16(data, header_len + 2)?;
        header_len += 4;
    }
    let protocol = match ethertype {
        ETHERTYPE_PPPOE_SESSION => return ppp::pppoe(data, header_len, trailer),
        ETHERTYPE_IPV4 => Protocol::Ipv4,
        ETHERTYPE_IPV6 => Protocol::Ipv6,
        ETHERTYPE_ROHC => Protocol::Rohc,
        _ => Protocol::Other,
    };
    Some(Link { protocol, payload: data.get(header_len..)?, header_len, trailer })
}

/// ARPHRD type of Ethernet in Linux cooked headers.
const ARPHRD_ETHER: u16 = 1;

fn sll_trailer(arphrd: u16) -> Trailer {
    if arphrd == ARPHRD_ETHER { Trailer::Any } else { Trailer::None }
}

/// Packet type 2, ARPHRD type 2, address length 2, address 8, protocol 2.
fn sll(data: &[u8]) -> Option<Link<'_>> {
    let arphrd = be16(data, 2)?;
    ethertype(data, 14, 16, sll_trailer(arphrd))
}

/// Protocol 2, reserved 2, interface 4, ARPHRD type 2, packet type 1, address length 1, address 8.
fn sll2(data: &[u8]) -> Option<Link<'_>> {
    let arphrd = be16(data, 8)?;
    ethertype(data, 0, 20, sll_trailer(arphrd))
}

/// The family in the byte order of a machine that is not known. No family reads as another one in the wrong order.
fn null(data: &[u8]) -> Option<Link<'_>> {
    let &family = data.first_chunk()?;
    let protocol = match address_family(u32::from_be_bytes(family)) {
        Protocol::Other => address_family(u32::from_le_bytes(family)),
        protocol => protocol,
    };
    Some(Link { protocol, payload: &data[family.len()..], header_len: family.len(), trailer: Trailer::None })
}

fn loopback(data: &[u8]) -> Option<Link<'_>> {
    let &family = data.first_chunk()?;
    let protocol = address_family(u32::from_be_bytes(family));
    Some(Link { protocol, payload: &data[family.len()..], header_len: family.len(), trailer: Trailer::None })
}

fn address_family(family: u32) -> Protocol {
    match family {
        2 => Protocol::Ipv4,
        // AF_INET6 of Linux; of NetBSD, OpenBSD and BSD/OS; of FreeBSD; of macOS.
        10 | 24 | 28 | 30 => Protocol::Ipv6,
        _ => Protocol::Other,
    }
}

fn be16(octets: &[u8], at: usize) -> Option<u16> {
    octets.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
