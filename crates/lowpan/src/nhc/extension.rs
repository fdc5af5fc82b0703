//! LOWPAN_NHC of IPv6 extension headers and of a nested IPv6 header. RFC 6282, section 4.2.

use thinair_wire::coder::{Coder, Step, Word};
use thinair_wire::header::extension::octets_of;
use thinair_wire::header::protocol;

/// Protocol number of the Mobility Header. RFC 6275, section 6.1.1.
const MOBILITY: u8 = 135;

/// Option types of padding. RFC 8200, section 4.2.
const PAD1: u8 = 0;
const PADN: u8 = 1;

/// IPv6 Extension Header ID; 5 and 6 are reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eid {
    HopByHop = 0,
    Routing = 1,
    Fragment = 2,
    Destination = 3,
    Mobility = 4,
    Ipv6 = 7,
}

impl Eid {
    const ALL: [Self; 6] =
        [Self::HopByHop, Self::Routing, Self::Fragment, Self::Destination, Self::Mobility, Self::Ipv6];

    /// Returns the protocol number in the Next Header field of the previous header.
    pub(crate) const fn protocol(self) -> u8 {
        match self {
            Self::HopByHop => protocol::HOP_BY_HOP,
            Self::Routing => protocol::ROUTING,
            Self::Fragment => protocol::FRAGMENT,
            Self::Destination => protocol::DESTINATION,
            Self::Mobility => MOBILITY,
            Self::Ipv6 => protocol::IPV6,
        }
    }

    fn of(protocol: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|eid| eid.protocol() == protocol)
    }

    /// True if the header consists of options, so that it can end with padding.
    const fn has_options(self) -> bool {
        matches!(self, Self::HopByHop | Self::Destination)
    }
}

/// An extension header, compressed; for [`Eid::Ipv6`] only the octet before its LOWPAN_IPHC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExtensionHeader<'p> {
    pub(crate) eid: Eid,
    /// NH: Next Header is elided, and LOWPAN_NHC follows.
    pub(crate) nh: bool,
    pub(crate) next_header: u8,
    /// Octets of `data`; in a Fragment header its Reserved field.
    second: u8,
    /// Octets after the second, without elided padding.
    pub(crate) data: &'p [u8],
}

/// `LOWPAN_NHC`, IPv6 extension header: EID, NH, the header. RFC 6282, section 4.2.
///
/// The RFC has every header "carried unmodified ... with two important exceptions: Length field and Next Header
/// field". A Fragment header has a Reserved field in place of the Length field, so it is carried unmodified, and
/// the header keeps its length. (Wireshark reads it so, too.)
#[inline]
pub(crate) fn extension<'p, C: Coder<'p>>(c: &mut C, h: &mut ExtensionHeader<'p>) -> Step {
    c.discriminator(4, 0b1110)?;
    let mut eid = h.eid as u8;
    c.uint("EID", 3, &mut eid)?;
    let known = Eid::ALL.into_iter().find(|known| *known as u8 == eid);
    c.require(known.is_some())?;
    h.eid = known.unwrap_or(h.eid);
    let nh = c.flag("NH", &mut h.nh)?;
    if h.eid == Eid::Ipv6 {
        // The NH bit is unused here, and LOWPAN_IPHC follows.
        return Ok(());
    }
    if !nh {
        c.uint("Next Header", 8, &mut h.next_header)?;
    }
    if h.eid == Eid::Fragment {
        c.uint("Reserved", 8, &mut h.second)?;
        return c.slice("Fragment Offset to Identification", FRAGMENT_DATA, &mut h.data);
    }
    c.uint("Length", 8, &mut h.second)?;
    c.slice("data", h.second.to_u32() as usize, &mut h.data)
}

/// Octets of a Fragment header after its Reserved field.
const FRAGMENT_DATA: usize = 6;

impl<'p> ExtensionHeader<'p> {
    /// Creates a header without content.
    pub(crate) const fn new(eid: Eid) -> Self {
        Self { eid, nh: false, next_header: 0, second: 0, data: &[] }
    }

    /// Compresses the header of type `protocol` at the start of `octets`; returns it with its uncompressed
    /// length.
    ///
    /// `None` if it is cut off, or is too long for a Length in octets.
    pub(crate) fn compress(protocol: u8, octets: &'p [u8]) -> Option<(Self, usize)> {
        let eid = Eid::of(protocol)?;
        let &[next_header, second, ..] = octets else { return None };
        let len = if eid == Eid::Fragment { 2 + FRAGMENT_DATA } else { octets_of(protocol, second) };
        let data = octets.get(2..len)?;
        let header = Self { next_header, second, data, ..Self::new(eid) };
        if eid == Eid::Fragment {
            return Some((header, len));
        }
        let elided = if eid.has_options() { restorable_padding(data) } else { 0 };
        let data = data.get(..data.len() - elided)?;
        Some((Self { second: u8::try_from(data.len()).ok()?, data, ..header }, len))
    }

    /// Returns the uncompressed length of the header; `None` if the compressed one cannot be padded to it.
    pub(crate) fn expanded_len(&self) -> Option<usize> {
        let len = 2 + self.data.len();
        let padded = len.next_multiple_of(8);
        (padded == len || self.eid.has_options()).then_some(padded)
    }

    /// Writes the uncompressed header, which fills `out`; Next Header is the one in-line.
    pub(crate) fn expand(&self, out: &mut [u8]) {
        let units = (out.len() / 8).saturating_sub(1) as u8;
        let second = if self.eid == Eid::Fragment { self.second } else { units };
        let (fixed, rest) = out.split_at_mut(2);
        fixed.copy_from_slice(&[self.next_header, second]);
        let (data, padding) = rest.split_at_mut(self.data.len());
        data.copy_from_slice(self.data);
        padding.fill(0);
        // A single octet is Pad1, which is zero.
        if let [kind, length, zeros @ ..] = padding {
            *kind = PADN;
            *length = zeros.len() as u8;
        }
    }

    /// True if the packet after this header is not the one that its UDP checksum covers: a fragment of it, or one
    /// whose final destination is in the Routing header (RFC 8200, sections 4.5 and 8.1).
    pub(crate) fn hides_checksum(&self) -> bool {
        match self.eid {
            Eid::Fragment => self.is_part(),
            // Routing Type, Segments Left.
            Eid::Routing => self.data.get(1) != Some(&0),
            Eid::HopByHop | Eid::Destination | Eid::Mobility | Eid::Ipv6 => false,
        }
    }

    /// True if it is the Fragment header of less than a whole packet: no header to compress follows.
    pub(crate) fn is_part(&self) -> bool {
        // Fragment Offset, two reserved bits, M flag.
        self.eid == Eid::Fragment
            && self.data.first_chunk().is_none_or(|x| u16::from_be_bytes(*x) & !0b110 != 0)
    }
}

/// Returns the octets of the padding at the end of `options` that a decompressor restores bit for bit: a single
/// Pad1, or a PadN of at most 7 octets with zeros.
///
/// "Single": padding after padding is carried, like padding before other options.
fn restorable_padding(options: &[u8]) -> usize {
    let mut rest = options;
    let mut follows_padding = false;
    loop {
        let (len, is_padding) = match *rest {
            [PAD1, ..] => (1, true),
            [kind, length, ..] => (2 + usize::from(length), kind == PADN),
            _ => return 0,
        };
        let Some((option, after)) = rest.split_at_checked(len) else { return 0 };
        if after.is_empty() {
            let is_zero = option.iter().skip(2).all(|octet| *octet == 0);
            return if is_padding && !follows_padding && len <= 7 && is_zero { len } else { 0 };
        }
        follows_padding = is_padding;
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_found_at_the_end_only_and_alone() {
        let cases: &[(&[u8], usize)] = &[
            (&[1, 4, 0, 0, 0, 0], 6),
            (&[1, 5, 0, 0, 0, 0, 0], 7),
            (&[1, 0], 2),
            (&[0], 1),
            (&[5, 2, 0, 0, 0], 1),
            (&[5, 2, 0, 0, 1, 0], 2),
            // More than 7 octets.
            (&[1, 6, 0, 0, 0, 0, 0, 0], 0),
            // Not zero.
            (&[1, 4, 0, 0, 0, 9], 0),
            // Two of them.
            (&[0, 0], 0),
            (&[5, 2, 0, 0, 1, 0, 0], 0),
            // Before another option.
            (&[1, 0, 5, 2, 0, 0], 0),
            // Cut off, and none at all.
            (&[1, 4, 0, 0, 0], 0),
            (&[5], 0),
            (&[], 0),
        ];
        for (options, expected) in cases {
            assert_eq!(restorable_padding(options), *expected, "{options:?}");
        }
    }
}
