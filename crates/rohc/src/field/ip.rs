//! IPv4 and IPv6 headers in contexts. RFC 791, section 3.1; RFC 8200, section 3.

use thinair_wire::checksum::Sum;
use thinair_wire::header::chain;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::ipv6::Ipv6;

use crate::decompressor::Unbuildable;

/// Version of an IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IpVersion {
    #[default]
    V4,
    V6,
}

impl IpVersion {
    /// Octets of a header without options and extension headers.
    #[inline]
    pub(crate) const fn header_len(self) -> usize {
        match self {
            Self::V4 => Ipv4::LEN,
            Self::V6 => Ipv6::LEN,
        }
    }
}

/// Fields of an IP header that has neither options nor fragments, without those that follow from the packet (lengths, checksum).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IpHeader {
    /// Addresses. Those of IPv4 take the first four octets, the others are zero.
    pub(crate) source: [u8; 16],
    pub(crate) destination: [u8; 16],
    /// Flow Label, 20 bits; 0 in IPv4.
    pub(crate) flow_label: u32,
    /// Identification in its original byte order; 0 in IPv6.
    pub(crate) id: u16,
    pub(crate) version: IpVersion,
    /// Protocol, or Next Header.
    pub(crate) protocol: u8,
    /// Type of Service, or Traffic Class.
    pub(crate) tos: u8,
    /// Time to Live, or Hop Limit.
    pub(crate) ttl: u8,
    /// Don't Fragment; false in IPv6.
    pub(crate) df: bool,
}

impl IpHeader {
    /// No header.
    pub(crate) const EMPTY: Self = Self {
        source: [0; 16],
        destination: [0; 16],
        flow_label: 0,
        id: 0,
        version: IpVersion::V4,
        protocol: 0,
        tos: 0,
        ttl: 0,
        df: false,
    };

    /// Returns the fields of a parsed header. Its Protocol is that of the field: the type of the first extension header if there
    /// is one.
    #[inline]
    pub(crate) fn of(ip: &chain::Ip<'_>) -> Self {
        let mut kept = Self::EMPTY;
        match ip.header() {
            chain::IpHeader::V4(header) => {
                kept.source[..4].copy_from_slice(&header.source);
                kept.destination[..4].copy_from_slice(&header.destination);
                kept.id = header.identification;
                kept.protocol = header.protocol;
                (kept.tos, kept.ttl, kept.df) = (header.tos, header.ttl, header.df);
            }
            chain::IpHeader::V6(header) => {
                kept.version = IpVersion::V6;
                (kept.source, kept.destination) = (header.source, header.destination);
                kept.flow_label = header.flow_label;
                kept.protocol = header.next_header;
                (kept.tos, kept.ttl) = (header.traffic_class, header.hop_limit);
            }
        }
        kept
    }

    /// Copies the fields that may differ from packet to packet from another header of the flow.
    #[inline]
    pub(crate) fn update(&mut self, ip: &chain::Ip<'_>) {
        match ip.header() {
            chain::IpHeader::V4(header) => {
                (self.tos, self.ttl, self.df) = (header.tos, header.ttl, header.df);
                self.id = header.identification;
            }
            chain::IpHeader::V6(header) => (self.tos, self.ttl) = (header.traffic_class, header.hop_limit),
        }
    }

    /// True if two headers of a flow differ at most in the IP-ID.
    #[inline]
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (self.tos, self.ttl, self.df) == (other.tos, other.ttl, other.df)
    }

    /// True if both have the same version and addresses.
    #[inline]
    pub(crate) fn has_same_ends(&self, other: &Self) -> bool {
        self.version == other.version && self.source == other.source && self.destination == other.destination
    }

    /// True if both have equal static fields of RFC 3095: addresses, Flow Label and Protocol.
    #[inline]
    pub(crate) fn has_same_path(&self, other: &Self) -> bool {
        self.protocol == other.protocol && self.flow_label == other.flow_label && self.has_same_ends(other)
    }

    /// True if a parsed header has these addresses, this Flow Label, and this Protocol behind its extension headers.
    #[inline]
    pub(crate) fn is_path_of(&self, ip: &chain::Ip<'_>) -> bool {
        self.protocol == ip.next
            && match ip.header() {
                chain::IpHeader::V4(header) => {
                    self.version == IpVersion::V4
                        && self.source.first_chunk() == Some(&header.source)
                        && self.destination.first_chunk() == Some(&header.destination)
                }
                chain::IpHeader::V6(header) => {
                    self.version == IpVersion::V6
                        && self.source == header.source
                        && self.destination == header.destination
                        && self.flow_label == header.flow_label
                }
            }
    }

    /// Passes the addresses to `word`, as words of a hash.
    #[inline]
    pub(crate) fn ends(&self, mut word: impl FnMut(u64)) {
        if self.version == IpVersion::V4 {
            let ([a, b, c, d, ..], [e, f, g, h, ..]) = (self.source, self.destination);
            return word(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
        }
        for address in [&self.source, &self.destination] {
            for half in address.chunks_exact(8) {
                word(half.try_into().map_or(0, u64::from_ne_bytes));
            }
        }
    }

    /// Returns the sum of the pseudo-header: addresses, protocol, and number of octets from the transport header on. RFC 768; RFC
    /// 8200, section 8.1.
    #[inline]
    pub(crate) fn pseudo_header(&self, protocol: u8, len: usize) -> Sum {
        let ends = match self.version {
            IpVersion::V4 => Sum::ZERO.octets(&self.source[..4]).octets(&self.destination[..4]),
            IpVersion::V6 => Sum::ZERO.octets(&self.source).octets(&self.destination),
        };
        ends.word(u16::from(protocol)).word(len as u16)
    }

    /// Writes the header at octet `at` of `out` and returns its end. `id` is its Identification, `next` its Protocol, `behind`
    /// the number of octets that follow it.
    #[inline]
    pub(crate) fn write(
        &self,
        id: u16,
        next: u8,
        behind: usize,
        out: &mut [u8],
        at: usize,
    ) -> Result<usize, Unbuildable> {
        let end = at + self.version.header_len();
        let room = out.get_mut(at..end).ok_or(Unbuildable::NoRoom(end))?;
        let length = |octets: usize| u16::try_from(octets).map_err(|_| Unbuildable::Malformed);
        match self.version {
            IpVersion::V4 => {
                // Words of registers: the sum would wait for octets that were just written.
                let length = length(Ipv4::LEN + behind)?;
                let [len, id, df] = [length, id, u16::from(self.df) << 14].map(u64::from);
                let head = (0x45 << 56 | u64::from(self.tos) << 48 | len << 32 | id << 16 | df).to_be_bytes();
                let (hops, kind) = (u32::from(self.ttl) << 24, u32::from(next) << 16);
                let sum = Sum::ZERO.octets(&head).octets(&(hops | kind).to_be_bytes());
                let ends = [self.source, self.destination].map(|[a, b, c, d, ..]| [a, b, c, d]);
                let sum = sum.octets(&ends[0]).octets(&ends[1]).checksum();
                let Some(h) = room.first_chunk_mut::<{ Ipv4::LEN }>() else {
                    return Err(Unbuildable::Malformed);
                };
                h[..8].copy_from_slice(&head);
                h[8..12].copy_from_slice(&(hops | kind | u32::from(sum)).to_be_bytes());
                h[12..16].copy_from_slice(&ends[0]);
                h[16..20].copy_from_slice(&ends[1]);
            }
            IpVersion::V6 => {
                let first = 6 << 28 | u32::from(self.tos) << 20 | self.flow_label & 0xF_FFFF;
                let [a, b] = length(behind)?.to_be_bytes();
                let Some(h) = room.first_chunk_mut::<{ Ipv6::LEN }>() else {
                    return Err(Unbuildable::Malformed);
                };
                h[..4].copy_from_slice(&first.to_be_bytes());
                h[4..8].copy_from_slice(&[a, b, next, self.ttl]);
                h[8..24].copy_from_slice(&self.source);
                h[24..40].copy_from_slice(&self.destination);
            }
        }
        Ok(end)
    }
}

/// Sets the IP-ID of the IPv4 header at `at` of `headers`, and its checksum.
pub(crate) fn set_id(headers: &mut [u8], at: usize, id: u16) {
    if let Some(header) = headers.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<{ Ipv4::LEN }>) {
        header[4..6].copy_from_slice(&id.to_be_bytes());
        header[10..12].fill(0);
        let sum = Ipv4::checksum_of(header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}
