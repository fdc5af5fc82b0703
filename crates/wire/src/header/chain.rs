//! The header chain of an IP packet: nested IP headers with their extension headers, and the transport header
//! at the end. It is parsed once, into a fixed array of references to the octets of the packet.

use super::extension::{Extensions, is_extension};
use super::ipv4::Ipv4;
use super::ipv6::Ipv6;
use super::protocol;
use super::udp::Udp;

/// Largest number of IP headers in a chain. A further one is payload.
pub const MAX_IP: usize = 4;

/// Largest number of extension headers behind one IP header. The chain of a packet with more ends there.
pub const MAX_EXTENSIONS: usize = 8;

/// A property of an IP header that cannot be restored from the rest of the packet.
///
/// Variants are in the order in which they are checked; a header reports the first one only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Oddity {
    /// IPv4 options.
    Options,
    /// A fragment: MF set or a Fragment Offset.
    Fragment,
    /// The reserved flag of IPv4 is set.
    ReservedBits,
    /// The header checksum is wrong.
    Checksum,
    /// The length field does not match the octets that are present.
    Length,
}

impl Oddity {
    /// A stable name for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Options => "ipv4_options",
            Self::Fragment => "fragment",
            Self::ReservedBits => "reserved_bits",
            Self::Checksum => "bad_ip_checksum",
            Self::Length => "length_mismatch",
        }
    }
}

/// Fixed part of an IP header of either version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpHeader<'p> {
    /// Version 4.
    V4(Ipv4<'p>),
    /// Version 6.
    V6(Ipv6),
}

/// Octets of the fixed part. The options of IPv4 are separate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fixed<'p> {
    V4(&'p [u8; Ipv4::LEN], &'p [u8]),
    V6(&'p [u8; Ipv6::LEN]),
}

/// One IP header of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip<'p> {
    fixed: Fixed<'p>,
    /// Index of its first octet in the packet.
    pub offset: usize,
    /// Its extension headers, as they stand behind it.
    pub extensions: &'p [u8],
    /// Number of its extension headers.
    pub extension_count: usize,
    /// Protocol of the data behind the extension headers.
    pub next: u8,
    /// Reason it cannot be rebuilt from the other fields, if there is one.
    pub oddity: Option<Oddity>,
}

impl<'p> Ip<'p> {
    /// No header.
    #[inline(always)]
    const fn none() -> Self {
        let fixed = Fixed::V6(&[0; Ipv6::LEN]);
        Self { fixed, offset: 0, extensions: &[], extension_count: 0, next: 0, oddity: None }
    }

    /// Returns the fixed part.
    #[inline(always)]
    pub fn header(&self) -> IpHeader<'p> {
        match self.fixed {
            Fixed::V4(octets, options) => IpHeader::V4(Ipv4::of(octets, options)),
            Fixed::V6(octets) => IpHeader::V6(Ipv6::of(octets)),
        }
    }

    /// True if it has neither an oddity nor an extension header.
    #[inline]
    fn is_plain(&self) -> bool {
        self.oddity.is_none() && self.extension_count == 0
    }

    /// True if another IP header follows. Its version has to match the protocol number.
    #[inline]
    fn carries_ip(&self, packet: &[u8]) -> bool {
        let version = match self.next {
            protocol::IPV4 => 4,
            protocol::IPV6 => 6,
            _ => return false,
        };
        !self.is_fragment() && packet.get(self.end()).is_some_and(|octet| octet >> 4 == version)
    }

    /// True if the packet is a fragment.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        match self.header() {
            IpHeader::V4(header) => header.mf || header.fragment_offset != 0,
            // A fragment header is no extension header of the chain, so it ends the chain.
            IpHeader::V6(_) => false,
        }
    }

    /// Protocol of the first header behind the fixed part.
    #[inline]
    pub fn first_next_header(&self) -> u8 {
        match self.header() {
            IpHeader::V4(header) => header.protocol,
            IpHeader::V6(header) => header.next_header,
        }
    }

    /// Returns an iterator over the extension headers.
    #[inline]
    pub fn walk(&self) -> Extensions<'p> {
        Extensions::new(self.first_next_header(), self.extensions)
    }

    /// Octets of the fixed part.
    #[inline]
    pub fn fixed_len(&self) -> usize {
        match self.fixed {
            Fixed::V4(octets, options) => octets.len() + options.len(),
            Fixed::V6(octets) => octets.len(),
        }
    }

    /// Index in the packet of the octet behind the header and its extension headers.
    #[inline]
    pub fn end(&self) -> usize {
        self.offset + self.fixed_len() + self.extensions.len()
    }
}

/// Reason octets are no IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotIp {
    /// The first four bits are neither 4 nor 6, or there is no octet.
    Version,
    /// Fewer octets than the first header needs.
    Short {
        /// Octets that the header needs.
        need: usize,
        /// Octets that are present.
        have: usize,
    },
}

impl NotIp {
    #[cold]
    fn of(packet: &[u8]) -> Self {
        let have = packet.len();
        match packet.first().map(|octet| octet >> 4) {
            Some(4) => Self::Short { need: Ipv4::LEN, have },
            Some(6) => Self::Short { need: Ipv6::LEN, have },
            _ => Self::Version,
        }
    }
}

/// The headers of one IP packet.
#[derive(Clone, Copy, Debug)]
pub struct HeaderChain<'p> {
    packet: &'p [u8],
    ips: Ips<'p>,
    ip_end: usize,
    udp: Option<&'p [u8; Udp::LEN]>,
    is_plain: bool,
}

/// The IP headers. The usual single header is stored apart, without the array.
#[derive(Clone, Copy, Debug)]
enum Ips<'p> {
    One([Ip<'p>; 1]),
    /// The array, and the number of headers in it.
    More([Ip<'p>; MAX_IP], usize),
}

impl<'p> HeaderChain<'p> {
    /// Parses the headers of `packet`, up to the first one that is unknown or incomplete.
    pub fn parse(packet: &'p [u8]) -> Result<Self, NotIp> {
        let mut chain = Self::empty();
        chain.parse_in_place(packet)?;
        Ok(chain)
    }

    /// Returns a chain without headers, for [`parse_in_place`](Self::parse_in_place).
    #[inline(always)]
    pub const fn empty() -> Self {
        Self { packet: &[], ips: Ips::One([Ip::none()]), ip_end: 0, udp: None, is_plain: true }
    }

    /// [`parse`](Self::parse) without a move of the result, which has half a kilobyte. The chain has to be
    /// [`empty`](Self::empty).
    #[inline(always)]
    pub fn parse_in_place(&mut self, packet: &'p [u8]) -> Result<(), NotIp> {
        self.packet = packet;
        let Ips::One([ip]) = &mut self.ips else { return Ok(()) };
        let Some(end) = parse_ip(packet, 0, ip) else { return Err(NotIp::of(packet)) };
        (self.ip_end, self.is_plain) = (end, ip.is_plain());
        match ip.next {
            protocol::UDP if self.is_plain => self.udp = packet.get(end..).and_then(<[u8]>::first_chunk),
            protocol::UDP | protocol::IPV4 | protocol::IPV6 => self.parse_more(),
            _ => {}
        }
        Ok(())
    }

    /// Parses the headers behind the first one.
    #[cold]
    #[inline(never)]
    fn parse_more(&mut self) {
        let Ips::One([mut last]) = self.ips else { return };
        let (mut ips, mut len) = ([last, Ip::none(), Ip::none(), Ip::none()], 1);
        while let Some(ip) = ips.get_mut(len)
            && last.carries_ip(self.packet)
            && let Some(end) = parse_ip(self.packet, last.end(), ip)
        {
            last = *ip;
            self.ip_end = end;
            self.is_plain &= ip.is_plain();
            len += 1;
        }
        // The data of a fragment may be the middle of a datagram.
        if last.next == protocol::UDP && !last.is_fragment() {
            self.udp = self.packet.get(self.ip_end..).and_then(<[u8]>::first_chunk);
        }
        if len > 1 {
            self.ips = Ips::More(ips, len);
        }
    }

    /// The packet.
    #[inline]
    pub fn packet(&self) -> &'p [u8] {
        self.packet
    }

    /// The IP headers, outermost first; at least one.
    #[inline]
    pub fn ips(&self) -> &[Ip<'p>] {
        match &self.ips {
            Ips::One(ip) => ip,
            Ips::More(ips, len) => ips.get(..*len).unwrap_or_default(),
        }
    }

    /// True if no IP header has an oddity or an extension header.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Returns the UDP header behind the last IP header, if there is one. Its Length may disagree with the
    /// packet.
    #[inline]
    pub fn udp(&self) -> Option<Udp> {
        self.udp.map(Udp::of)
    }

    /// Index of the first octet behind the IP headers: transport header or payload.
    #[inline]
    pub fn ip_end(&self) -> usize {
        self.ip_end
    }

    /// Returns the first oddity of the chain, from the outermost header on.
    pub fn oddity(&self) -> Option<Oddity> {
        self.ips().iter().find_map(|ip| ip.oddity)
    }
}

/// Parses the IP header at `offset` into `ip` and returns its end; `None` if there is none.
#[inline(always)]
fn parse_ip<'p>(packet: &'p [u8], offset: usize, ip: &mut Ip<'p>) -> Option<usize> {
    let octets = packet.get(offset..)?;
    ip.offset = offset;
    let end = match octets.first()? >> 4 {
        4 => {
            let (fixed, options) = Ipv4::split(octets).ok()?;
            ip.fixed = Fixed::V4(fixed, options);
            let header = Ipv4::of(fixed, options);
            ip.next = header.protocol;
            ip.oddity = if !options.is_empty() {
                Some(Oddity::Options)
            } else if header.mf || header.fragment_offset != 0 {
                Some(Oddity::Fragment)
            } else if header.reserved {
                Some(Oddity::ReservedBits)
            } else if !Ipv4::checksum_is_right(fixed) {
                Some(Oddity::Checksum)
            } else if usize::from(header.total_length) != octets.len() {
                Some(Oddity::Length)
            } else {
                None
            };
            offset + header.len()
        }
        6 => {
            let (fixed, behind) = octets.split_first_chunk()?;
            ip.fixed = Fixed::V6(fixed);
            let header = Ipv6::of(fixed);
            ip.next = header.next_header;
            let is_right = usize::from(header.payload_length) == behind.len();
            ip.oddity = if is_right { None } else { Some(Oddity::Length) };
            offset + Ipv6::LEN
        }
        _ => return None,
    };
    if is_extension(ip.next) { parse_extensions(packet, ip) } else { Some(end) }
}

/// Parses the extension headers behind an IP header, and returns their end.
#[cold]
#[inline(never)]
fn parse_extensions<'p>(packet: &'p [u8], ip: &mut Ip<'p>) -> Option<usize> {
    let behind = packet.get(ip.end()..)?;
    if !ip.is_fragment() {
        let mut walk = Extensions::new(ip.next, behind);
        ip.extension_count = walk.by_ref().take(MAX_EXTENSIONS).count();
        ip.extensions = behind.get(..behind.len() - walk.rest().len())?;
        ip.next = walk.next_header();
    }
    Some(ip.end())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// GET of a temperature over UDP and IPv4, 37 octets.
    fn get() -> Vec<u8> {
        let mut packet = Vec::from(*b"\x45\0\0\x25\x12\x34\0\0\x40\x11\0\0\x0a\x63\0\x01\x0a\x63\0\x02");
        let sum = Ipv4::checksum_of(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend_from_slice(b"\xe0\x01\x16\x33\0\x11\x12\x34\x40\x01\x00\x01\xb4time");
        packet
    }

    #[test]
    fn a_udp_packet_has_a_chain_of_two() {
        let packet = get();
        let chain = HeaderChain::parse(&packet).unwrap();
        assert_eq!(chain.ips().len(), 1);
        assert_eq!(chain.oddity(), None);
        assert_eq!(chain.udp().unwrap().destination_port, 5683);
        assert_eq!(chain.ip_end(), 20);
    }

    #[test]
    fn every_oddity_is_named() {
        let odd = |change: fn(&mut Vec<u8>)| {
            let mut packet = get();
            change(&mut packet);
            HeaderChain::parse(&packet).unwrap().oddity()
        };
        fn resum(packet: &mut [u8]) {
            let sum = Ipv4::checksum_of(&packet[..20]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        assert_eq!(odd(|p| p[11] ^= 1), Some(Oddity::Checksum));
        assert_eq!(odd(|p| p.push(0)), Some(Oddity::Length));
        assert_eq!(
            odd(|p| {
                p[6] = 0x80;
                resum(p);
            }),
            Some(Oddity::ReservedBits)
        );
        assert_eq!(
            odd(|p| {
                p[6] = 0x20;
                resum(p);
            }),
            Some(Oddity::Fragment)
        );
        assert_eq!(odd(|p| p[0] = 0x46), Some(Oddity::Options));
    }

    #[test]
    fn every_truncation_is_parsed_or_refused() {
        let packet = get();
        for len in 0..packet.len() {
            let chain = HeaderChain::parse(&packet[..len]);
            assert_eq!(chain.is_ok(), len >= 20, "{len} octets");
        }
    }

    #[test]
    fn ip_in_ip_ends_after_four() {
        let mut packet = get();
        for _ in 0..5 {
            let mut outer = Vec::from(*b"\x60\0\0\0\0\0\x29\x40");
            outer[4..6].copy_from_slice(&(packet.len() as u16).to_be_bytes());
            outer[6] = if packet[0] >> 4 == 4 { protocol::IPV4 } else { protocol::IPV6 };
            outer.extend_from_slice(&[7; 32]);
            outer.extend_from_slice(&packet);
            packet = outer;
        }
        let chain = HeaderChain::parse(&packet).unwrap();
        assert_eq!(chain.ips().len(), MAX_IP);
        assert!(chain.udp().is_none());
    }

    proptest! {
        #[test]
        fn any_octets_are_parsed_or_refused(octets in vec(any::<u8>(), 0..200)) {
            if let Ok(chain) = HeaderChain::parse(&octets) {
                lies_in_its_packet(&chain)?;
            }
        }

        #[test]
        fn what_a_chain_says_is_where_it_says(
            packet in packet(),
            damage in vec(any::<(prop::sample::Index, u8)>(), 0..4),
        ) {
            let chain = HeaderChain::parse(&packet).unwrap();
            prop_assert!(chain.oddity().is_none());
            prop_assert!(chain.udp().is_some());
            lies_in_its_packet(&chain)?;

            let mut packet = packet;
            for (at, octet) in damage {
                *at.get_mut(&mut packet) = octet;
            }
            for len in 0..=packet.len() {
                if let Ok(chain) = HeaderChain::parse(&packet[..len]) {
                    lies_in_its_packet(&chain)?;
                }
            }
        }
    }

    /// Checks that each header, written again, equals the octets at its offset, without gaps from the first
    /// octet on.
    fn lies_in_its_packet(chain: &HeaderChain<'_>) -> Result<(), TestCaseError> {
        let packet = chain.packet();
        let mut at = 0;
        prop_assert!((1..=MAX_IP).contains(&chain.ips().len()));
        for ip in chain.ips() {
            prop_assert_eq!(ip.offset, at);
            prop_assert!(ip.end() <= packet.len());
            let mut out = [0; 60];
            let fixed = match ip.header() {
                IpHeader::V4(header) => header.write(&mut out, 0),
                IpHeader::V6(header) => header.write(&mut out, 0),
            };
            prop_assert_eq!(fixed, Ok(ip.fixed_len()));
            let behind = at + ip.fixed_len();
            prop_assert_eq!(&out[..ip.fixed_len()], &packet[at..behind]);
            prop_assert_eq!(ip.extensions, &packet[behind..ip.end()]);
            prop_assert!(ip.extension_count <= MAX_EXTENSIONS);
            let mut walk = ip.walk();
            prop_assert_eq!(walk.by_ref().count(), ip.extension_count);
            prop_assert_eq!((walk.next_header(), walk.rest()), (ip.next, &[][..]));
            at = ip.end();
        }
        prop_assert_eq!(chain.ip_end(), at);
        if let Some(udp) = chain.udp() {
            let mut out = [0; Udp::LEN];
            prop_assert_eq!(udp.write(&mut out, 0), Ok(Udp::LEN));
            prop_assert_eq!(&out, &packet[at..at + Udp::LEN]);
        }
        Ok(())
    }

    /// UDP in one to four valid IP headers; IPv6 with up to three extension headers.
    fn packet() -> impl Strategy<Value = Vec<u8>> {
        let extension = prop::sample::select(std::vec![
            protocol::HOP_BY_HOP,
            protocol::ROUTING,
            protocol::DESTINATION,
            protocol::AH
        ]);
        let layer = (any::<bool>(), vec((extension, 0..3_u8), 0..=3), any::<[u8; 12]>());
        (vec(layer, 1..=MAX_IP), vec(any::<u8>(), Udp::LEN..40)).prop_map(|(layers, mut packet)| {
            let mut carried = protocol::UDP;
            for (v6, extensions, noise) in layers {
                (packet, carried) = if v6 {
                    in_ipv6(packet, carried, &extensions, noise)
                } else {
                    in_ipv4(packet, carried, noise)
                };
            }
            packet
        })
    }

    fn in_ipv4(packet: Vec<u8>, protocol: u8, noise: [u8; 12]) -> (Vec<u8>, u8) {
        let [tos, a, b, ttl, source @ .., c, d, e, f] = noise;
        let header = Ipv4 {
            tos,
            total_length: (Ipv4::LEN + packet.len()) as u16,
            identification: u16::from_be_bytes([a, b]),
            df: a > b,
            ttl,
            protocol,
            source,
            destination: [c, d, e, f],
            ..Ipv4::default()
        };
        let mut out = std::vec![0; Ipv4::LEN];
        header.write(&mut out, 0).unwrap();
        let sum = Ipv4::checksum_of(&out);
        Ipv4 { header_checksum: sum, ..header }.write(&mut out, 0).unwrap();
        ([out, packet].concat(), protocol::IPV4)
    }

    fn in_ipv6(packet: Vec<u8>, carried: u8, extensions: &[(u8, u8)], noise: [u8; 12]) -> (Vec<u8>, u8) {
        let mut next_header = carried;
        let mut behind = packet;
        for &(kind, length) in extensions.iter().rev() {
            // An AH of length 0 is invalid.
            let length = length.max(1);
            let mut extension = std::vec![noise[0]; crate::header::extension::octets_of(kind, length)];
            extension[..2].copy_from_slice(&[next_header, length]);
            behind = [extension, behind].concat();
            next_header = kind;
        }
        let header = Ipv6 {
            traffic_class: noise[1],
            flow_label: u32::from(noise[2]) << 12 | u32::from(noise[3]),
            payload_length: behind.len() as u16,
            next_header,
            hop_limit: noise[4],
            source: [noise[5]; 16],
            destination: [noise[6]; 16],
        };
        let mut out = std::vec![0; Ipv6::LEN];
        header.write(&mut out, 0).unwrap();
        ([out, behind].concat(), protocol::IPV6)
    }
}
