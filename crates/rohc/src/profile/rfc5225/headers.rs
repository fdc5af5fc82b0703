//! The headers of a packet as octets: where each one is, which of its octets are static, and which are inferred from the rest of the
//! packet. RFC 5225, sections 6.5 and 6.6.3 to 6.6.7.
//!
//! Both ends keep the headers of the last packet as octets. A format changes some of them; [`infer`] fills in what it infers.

use thinair_wire::checksum::Sum;
use thinair_wire::header::extension::{AH_FIXED, octets_of};
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::header::protocol;
use thinair_wire::header::rtp::Rtp;
use thinair_wire::header::udp::Udp;

use crate::id::ProfileId;

/// IP headers of a packet that are compressed.
pub(super) const MAX_IP: usize = 4;

/// Headers of a packet, and octets of all of them: an item holds them in one octet.
pub(super) const ITEMS: usize = 12;
pub(super) const OCTETS: usize = 240;

/// Octets of a CSRC identifier.
pub(super) const CSRC: usize = 4;

/// Protocol types of GRE. RFC 2784, section 2.4.
pub(super) const GRE_IPV4: [u8; 2] = [0x08, 0x00];
pub(super) const GRE_IPV6: [u8; 2] = [0x86, 0xDD];

/// Flags of GRE for its optional fields. RFC 2784, section 2.1; RFC 2890, section 2.
pub(super) const GRE_CHECKSUM: u8 = 0x80;
pub(super) const GRE_KEY: u8 = 0x20;
pub(super) const GRE_SEQUENCE: u8 = 0x10;

/// Flag of MINE: the original source address follows. RFC 2004, section 3.1.
pub(super) const MINE_SOURCE: u8 = 0x80;

/// Kind of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    V4,
    V6,
    HopByHop,
    Routing,
    Destination,
    Ah,
    Gre,
    Mine,
    Udp,
    UdpLite,
    Rtp,
    Esp,
}

impl Kind {
    /// The kind of a header that may be between an IP header and the transport header.
    pub(super) fn between(protocol: u8) -> Option<Self> {
        match protocol {
            protocol::HOP_BY_HOP => Some(Self::HopByHop),
            protocol::ROUTING => Some(Self::Routing),
            protocol::DESTINATION => Some(Self::Destination),
            protocol::AH => Some(Self::Ah),
            protocol::GRE => Some(Self::Gre),
            protocol::MINIMAL => Some(Self::Mine),
            _ => None,
        }
    }

    /// Protocol number of an extension header.
    fn protocol(self) -> u8 {
        match self {
            Self::HopByHop => protocol::HOP_BY_HOP,
            Self::Routing => protocol::ROUTING,
            Self::Ah => protocol::AH,
            _ => protocol::DESTINATION,
        }
    }

    /// True if it is an IP header.
    pub(super) fn is_ip(self) -> bool {
        matches!(self, Self::V4 | Self::V6)
    }

    /// Octets of a header that starts so; `None` if there are not enough, or they are none of the kind.
    pub(super) fn len(self, h: &[u8]) -> Option<usize> {
        let flag =
            |bit: u8, octets: usize| if h.first().is_some_and(|flags| flags & bit != 0) { octets } else { 0 };
        let len = match self {
            Self::V4 => Ipv4::LEN,
            Self::V6 => Ipv6::LEN,
            Self::HopByHop | Self::Routing | Self::Destination | Self::Ah => {
                let len = octets_of(self.protocol(), *h.get(1)?);
                (self != Self::Ah || len >= AH_FIXED).then_some(len)?
            }
            Self::Gre => 4 + flag(GRE_CHECKSUM, 4) + flag(GRE_KEY, 4) + flag(GRE_SEQUENCE, 4),
            Self::Mine => 8 + if h.get(1)? & MINE_SOURCE != 0 { 4 } else { 0 },
            Self::Udp | Self::UdpLite | Self::Esp => Udp::LEN,
            Self::Rtp => Rtp::LEN + usize::from(h.first()? & 0x0F) * CSRC,
        };
        (h.len() >= len).then_some(len)
    }

    /// What follows the header, in the numbers of IP protocols.
    pub(super) fn next(self, h: &[u8]) -> u8 {
        let at = match self {
            Self::V4 => 9,
            Self::V6 => 6,
            Self::Gre => return if h.get(2..4) == Some(&GRE_IPV6) { protocol::IPV6 } else { protocol::IPV4 },
            _ => 0,
        };
        h.get(at).copied().unwrap_or_default()
    }

    /// Octets that distinguish flows.
    fn identity(self) -> core::ops::Range<usize> {
        match self {
            Self::V4 => 12..20,
            Self::V6 => 8..40,
            Self::Udp | Self::UdpLite | Self::Esp => 0..4,
            Self::Rtp => 8..12,
            _ => 0..0,
        }
    }

    /// True if two headers of the kind have the same static fields.
    fn has_same_static(self, a: &[u8], b: &[u8]) -> bool {
        let same = |range: core::ops::Range<usize>| a.get(range.clone()) == b.get(range);
        let bits = |at: usize, mask: u8| a.get(at).zip(b.get(at)).is_some_and(|(a, b)| (a ^ b) & mask == 0);
        same(self.identity())
            && match self {
                Self::V4 => same(9..10),
                Self::V6 => same(6..7) && bits(1, 0x0F) && same(2..4),
                Self::HopByHop | Self::Destination => same(0..2),
                Self::Routing => a == b,
                Self::Ah => same(0..2) && same(4..8),
                Self::Gre => {
                    let key = gre_key(a);
                    same(0..4) && same(key..key + if a[0] & GRE_KEY != 0 { 4 } else { 0 })
                }
                Self::Mine => same(0..2) && same(4..a.len()),
                _ => true,
            }
    }
}

/// Offset of the key in a GRE header.
pub(super) fn gre_key(h: &[u8]) -> usize {
    if h[0] & GRE_CHECKSUM != 0 { 8 } else { 4 }
}

/// Offset of the sequence number in a GRE header.
pub(super) fn gre_sequence(h: &[u8]) -> usize {
    gre_key(h) + if h[0] & GRE_KEY != 0 { 4 } else { 0 }
}

/// One header: its kind and its octets among all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) at: u8,
    pub(super) len: u8,
}

impl Item {
    /// Its octets among those of all headers.
    #[inline]
    pub(super) fn range(self) -> core::ops::Range<usize> {
        usize::from(self.at)..usize::from(self.at) + usize::from(self.len)
    }
}

/// The headers of a packet, from the outermost IP header to the last one that is compressed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers {
    pub(super) octets: [u8; OCTETS],
    items: [Item; ITEMS],
    count: u8,
    len: u8,
    /// Index of the innermost IP header, among all headers and among IP headers.
    inner: u8,
    inner_ip: u8,
}

impl Headers {
    pub(super) const EMPTY: Self = Self {
        octets: [0; OCTETS],
        items: [Item { kind: Kind::V4, at: 0, len: 0 }; ITEMS],
        count: 0,
        len: 0,
        inner: 0,
        inner_ip: 0,
    };

    /// Parses at `most` so many IP headers of a packet, with the headers between them and in front of the transport header. Returns the
    /// protocol of that, too.
    pub(super) fn parse_ips(packet: &[u8], most: usize) -> Option<(Self, u8)> {
        let mut headers = Self::EMPTY;
        let mut next = match packet.first()? >> 4 {
            4 => protocol::IPV4,
            _ => protocol::IPV6,
        };
        // Headers up to the innermost IP header and what belongs to it.
        let mut known = 0;
        let mut ips = 0;
        loop {
            let behind = packet.get(headers.len()..)?;
            let version = behind.first().map_or(0, |octet| octet >> 4);
            let is_ip = matches!(next, protocol::IPV4 | protocol::IPV6) && ips < most;
            // The version decides: some senders write the number of the other one. The static chain carries both.
            let kind = match version {
                4 if is_ip => Kind::V4,
                6 if is_ip => Kind::V6,
                _ => match Kind::between(next) {
                    Some(kind) => kind,
                    None => break,
                },
            };
            if kind == Kind::Gre && !carries_ip(behind) {
                break;
            }
            let len = kind.len(behind)?;
            headers.push(kind, behind.get(..len)?)?;
            if kind.is_ip() {
                headers.end_ips();
                ips += 1;
            }
            if kind != Kind::Gre {
                known = headers.count;
            }
            next = kind.next(behind);
        }
        headers.truncate(known);
        (headers.count > 0).then_some((headers, next))
    }

    /// Adds the headers of a profile behind the IP headers, which the protocol `next` announces; `None` if there are others.
    pub(super) fn with_upper(mut self, next: u8, profile: ProfileId, packet: &[u8]) -> Option<Self> {
        let kinds = upper(profile);
        if kinds.first().is_some_and(|first| next != protocol_of(*first)) {
            return None;
        }
        for &kind in kinds {
            let behind = packet.get(self.len()..)?;
            let len = kind.len(behind)?;
            self.push(kind, behind.get(..len)?)?;
        }
        Some(self)
    }

    /// Appends a header.
    pub(super) fn push(&mut self, kind: Kind, octets: &[u8]) -> Option<()> {
        let at = usize::from(self.len);
        self.octets.get_mut(at..at + octets.len())?.copy_from_slice(octets);
        *self.items.get_mut(usize::from(self.count))? = Item { kind, at: self.len, len: octets.len() as u8 };
        self.count += 1;
        self.len += octets.len() as u8;
        Some(())
    }

    /// Makes the IP header that was pushed last the innermost one.
    pub(super) fn end_ips(&mut self) {
        let ips = self.items().iter().filter(|item| item.kind.is_ip()).count();
        (self.inner, self.inner_ip) = (self.count - 1, ips.saturating_sub(1).min(MAX_IP - 1) as u8);
    }

    /// Makes the last header, an RTP header, one with so many octets.
    pub(super) fn resize_last(&mut self, len: usize) -> Option<()> {
        let last = self.items.get_mut(usize::from(self.count).checked_sub(1)?)?;
        let end = usize::from(last.at) + len;
        (end <= OCTETS).then_some(())?;
        last.len = len as u8;
        self.len = end as u8;
        Some(())
    }

    fn truncate(&mut self, count: u8) {
        self.count = count;
        self.len = self.items().last().map_or(0, |last| last.at + last.len);
    }

    /// The headers, outermost first.
    #[inline]
    pub(super) fn items(&self) -> &[Item] {
        self.items.get(..usize::from(self.count)).unwrap_or_default()
    }

    /// Octets of all headers.
    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// All headers.
    #[inline]
    pub(super) fn all(&self) -> &[u8] {
        self.octets.get(..self.len()).unwrap_or_default()
    }

    /// Index of the innermost IP header.
    #[inline]
    pub(super) fn inner_index(&self) -> usize {
        usize::from(self.inner)
    }

    /// Index of the innermost IP header among the IP headers.
    #[inline]
    pub(super) fn inner_ip(&self) -> usize {
        usize::from(self.inner_ip) % MAX_IP
    }

    /// The innermost IP header.
    #[inline]
    pub(super) fn inner(&self) -> Item {
        self.items.get(self.inner_index()).copied().unwrap_or_default()
    }

    /// The header of a kind behind the IP headers, if there is one.
    #[inline]
    pub(super) fn upper(&self, kind: Kind) -> Option<Item> {
        self.items().iter().rev().take(2).find(|item| item.kind == kind).copied()
    }

    /// The octets of a header.
    #[inline]
    pub(super) fn of(&self, item: Item) -> &[u8] {
        self.octets.get(item.range()).unwrap_or_default()
    }

    /// 16 bits of a header.
    #[inline]
    pub(super) fn word(&self, item: Item, at: usize) -> u16 {
        self.of(item).get(at..at + 2).map_or(0, |octets| u16::from_be_bytes([octets[0], octets[1]]))
    }

    /// 32 bits of a header.
    #[inline]
    pub(super) fn long(&self, item: Item, at: usize) -> u32 {
        u32::from(self.word(item, at)) << 16 | u32::from(self.word(item, at + 2))
    }

    /// Sets octets of a header.
    #[inline]
    pub(super) fn set<const N: usize>(&mut self, item: Item, at: usize, value: [u8; N]) {
        let at = usize::from(item.at) + at;
        if let Some(octets) = self.octets.get_mut(at..at + N) {
            octets.copy_from_slice(&value);
        }
    }

    /// True if both have the same headers with the same static fields.
    pub(super) fn is_flow_of(&self, other: &Self) -> bool {
        let is_same = |(a, b): (&Item, &Item)| {
            a.kind == b.kind
                && (a.len == b.len || a.kind == Kind::Rtp)
                && a.kind.has_same_static(self.of(*a), other.of(*b))
        };
        self.count == other.count && self.items().iter().zip(other.items()).all(is_same)
    }

    /// Passes the octets that distinguish flows to a hash, as words.
    pub(super) fn words(&self, mut word: impl FnMut(u64)) {
        for item in self.items() {
            for octets in self.of(*item).get(item.kind.identity()).unwrap_or_default().chunks(8) {
                word(octets.iter().fold(0, |word, octet| word << 8 | u64::from(*octet)));
            }
        }
    }

    /// True if [`infer`] changes nothing in the headers of a packet of `total` octets. With `lite` the Checksum Coverage is inferred.
    pub(super) fn is_restored(&self, total: usize, lite: bool) -> bool {
        let mut octets = self.octets;
        infer(self.items(), &mut octets, total, lite).is_some() && octets[..self.len()] == *self.all()
    }
}

/// The headers of a profile behind the IP headers.
pub(super) const fn upper(profile: ProfileId) -> &'static [Kind] {
    match profile {
        ProfileId::RtpV2 => &[Kind::Udp, Kind::Rtp],
        ProfileId::UdpV2 => &[Kind::Udp],
        ProfileId::EspV2 => &[Kind::Esp],
        ProfileId::RtpUdpLiteV2 => &[Kind::UdpLite, Kind::Rtp],
        ProfileId::UdpLiteV2 => &[Kind::UdpLite],
        _ => &[],
    }
}

/// Protocol number of a transport header.
const fn protocol_of(kind: Kind) -> u8 {
    match kind {
        Kind::UdpLite => protocol::UDP_LITE,
        Kind::Esp => protocol::ESP,
        _ => protocol::UDP,
    }
}

/// True if a GRE header has no reserved bit set, and IP behind it. RFC 5225, section 6.8.2.4, `gre`.
fn carries_ip(h: &[u8]) -> bool {
    let Some((fixed, &[a, b])) =
        h.split_first_chunk::<2>().and_then(|(fixed, rest)| Some((fixed, rest.first_chunk()?)))
    else {
        return false;
    };
    let version = match [a, b] {
        GRE_IPV4 => 4,
        GRE_IPV6 => 6,
        _ => return false,
    };
    let behind = Kind::Gre.len(h).and_then(|len| h.get(len));
    let is_plain = fixed[0] & !(GRE_CHECKSUM | GRE_KEY | GRE_SEQUENCE) | fixed[1] == 0;
    is_plain && behind.is_some_and(|octet| octet >> 4 == version)
}

/// Fills in the fields that follow from the rest of the packet, which has `total` octets: fixed bits, lengths and checksums of headers.
/// `None` if a length does not fit its field.
#[inline]
pub(super) fn infer(items: &[Item], octets: &mut [u8], total: usize, lite: bool) -> Option<()> {
    for item in items {
        let behind = total.checked_sub(usize::from(item.at))?;
        let h = octets.get_mut(item.range())?;
        match item.kind {
            Kind::V4 => infer_v4(h.first_chunk_mut()?, u16::try_from(behind).ok()?),
            Kind::V6 => infer_v6(h.first_chunk_mut()?, behind)?,
            Kind::UdpLite if !lite => {}
            Kind::Udp | Kind::UdpLite => {
                h.get_mut(4..6)?.copy_from_slice(&u16::try_from(behind).ok()?.to_be_bytes())
            }
            Kind::Rtp => h[0] = h[0] & 0x3F | 0x80,
            kind => infer_seldom(kind, h)?,
        }
    }
    Some(())
}

/// [`infer`] of headers that flows seldom have.
#[cold]
pub(super) fn infer_seldom(kind: Kind, h: &mut [u8]) -> Option<()> {
    match kind {
        Kind::Ah => h.get_mut(2..4)?.fill(0),
        Kind::Mine => {
            h.get_mut(2..4)?.fill(0);
            let sum = Sum::ZERO.octets(h).checksum();
            h.get_mut(2..4)?.copy_from_slice(&sum.to_be_bytes());
        }
        Kind::Gre if h[0] & GRE_CHECKSUM != 0 => h.get_mut(6..8)?.fill(0),
        _ => {}
    }
    Some(())
}

/// [`infer`] of an IPv6 header.
#[inline]
pub(super) fn infer_v6(h: &mut [u8; Ipv6::LEN], behind: usize) -> Option<()> {
    h[0] = h[0] & 0x0F | 0x60;
    [h[4], h[5]] = u16::try_from(behind.checked_sub(Ipv6::LEN)?).ok()?.to_be_bytes();
    Some(())
}

/// [`infer`] of an IPv4 header.
#[inline]
pub(super) fn infer_v4(h: &mut [u8; Ipv4::LEN], length: u16) {
    h[0] = 0x45;
    [h[2], h[3]] = length.to_be_bytes();
    (h[6], h[7]) = (h[6] & 0x40, 0);
    (h[10], h[11]) = (0, 0);
    [h[10], h[11]] = Sum::ZERO.octets(h).checksum().to_be_bytes();
}
