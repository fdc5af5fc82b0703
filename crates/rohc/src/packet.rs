//! The parts of a ROHC packet: padding, feedback, and a header or a segment. RFC 5795, sections 5.2.1 and
//! 5.2.3.

use crate::cid::{Cid, CidSpace};

/// Padding octet, which has the form of an Add-CID octet for CID 0.
pub const PADDING: u8 = 0b1110_0000;

/// Part of a ROHC packet behind padding and feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketBody<'b> {
    /// Nothing: the packet holds feedback only.
    Empty,
    /// A header with its payload, from the Add-CID octet on if it has one.
    Header(&'b [u8]),
    /// A segment.
    Segment {
        /// F: true for the last segment of a unit.
        last: bool,
        /// Octets of the segment behind its type octet.
        octets: &'b [u8],
    },
}

/// Parts of a ROHC packet.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'b> {
    /// The feedback elements in front, for the compressor of this side.
    pub feedback: Elements<'b>,
    /// The part behind them.
    pub body: PacketBody<'b>,
}

/// Reason the parts of a packet cannot be found: an error of the peer, or damage on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartsError {
    /// No octet, or only padding: neither feedback nor header is present.
    Empty,
    /// A feedback element is longer than the packet.
    Feedback {
        /// Index of the first octet of the element.
        offset: usize,
        /// Octets that its size field requires.
        need: usize,
        /// Octets that are present.
        have: usize,
    },
}

/// Splits a packet into its parts: strips padding, finds the feedback elements, and distinguishes a header
/// from a segment.
pub fn parts(packet: &[u8]) -> Result<Parts<'_>, PartsError> {
    let padding = packet.iter().take_while(|octet| **octet == PADDING).count();
    let mut at = padding;
    while let Some(&[kind, ref rest @ ..]) = packet.get(at..).filter(|_| is_feedback(packet, at)) {
        let (head, size) = match kind & 0b111 {
            0 => (2, usize::from(*rest.first().unwrap_or(&0))),
            code => (1, usize::from(code)),
        };
        let need = head + size;
        if size == 0 || packet.len() - at < need {
            return Err(PartsError::Feedback { offset: at, need: need.max(3), have: packet.len() - at });
        }
        at += need;
    }
    let feedback = Elements { octets: &packet[padding..at] };
    let body = match &packet[at..] {
        [] if at == padding => return Err(PartsError::Empty),
        [] => PacketBody::Empty,
        [kind, octets @ ..] if kind & 0b1111_1110 == 0b1111_1110 => {
            PacketBody::Segment { last: kind & 1 == 1, octets }
        }
        header => PacketBody::Header(header),
    };
    Ok(Parts { feedback, body })
}

fn is_feedback(packet: &[u8], at: usize) -> bool {
    packet.get(at).is_some_and(|octet| octet & 0b1111_1000 == 0b1111_0000)
}

/// The feedback elements of a packet, all of them complete. Iterates over the data of each, CID included.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'b> {
    octets: &'b [u8],
}

impl<'b> Elements<'b> {
    /// All elements with their type octets, as they stand in the packet.
    pub fn octets(&self) -> &'b [u8] {
        self.octets
    }
}

impl<'b> Iterator for Elements<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        let (&kind, rest) = self.octets.split_first()?;
        let (size, rest) = match kind & 0b111 {
            0 => rest.split_first().map(|(&size, rest)| (usize::from(size), rest))?,
            code => (usize::from(code), rest),
        };
        let (data, rest) = rest.split_at_checked(size)?;
        self.octets = rest;
        Some(data)
    }
}

/// A header without its CID, as profiles read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketHeader<'b> {
    /// CID of the context.
    pub(crate) cid: Cid,
    /// The header as received, from the Add-CID octet on if it has one.
    pub(crate) whole: &'b [u8],
    /// The packet type indication and the bits behind it.
    pub(crate) first: u8,
    /// Octets behind the first octet and a large CID.
    pub(crate) rest: &'b [u8],
}

impl<'b> PacketHeader<'b> {
    /// Finds the CID. `None` if it is missing, takes more than two octets, or an Add-CID octet is followed by
    /// an octet that cannot follow one.
    #[inline]
    pub(crate) fn read(whole: &'b [u8], space: CidSpace) -> Option<Self> {
        let (&first, rest) = whole.split_first()?;
        match space {
            CidSpace::Small if first & 0b1111_0000 == 0b1110_0000 => {
                let cid = Cid::new(u16::from(first & 0x0F))?;
                let (&first, rest) = rest.split_first()?;
                // Neither padding, Add-CID, feedback nor a segment may follow an Add-CID octet.
                let reserved = first & 0b1111_0000 == 0b1110_0000
                    || first & 0b1111_1000 == 0b1111_0000
                    || first & 0b1111_1110 == 0b1111_1110;
                (!reserved && cid != Cid::ZERO).then_some(Self { cid, whole, first, rest })
            }
            CidSpace::Small => Some(Self { cid: Cid::ZERO, whole, first, rest }),
            CidSpace::Large if first & 0b1111_0000 == 0b1110_0000 => None,
            CidSpace::Large => {
                let (cid, rest) = Cid::read_large(rest)?;
                Some(Self { cid, whole, first, rest })
            }
        }
    }

    /// Number of octets of the header up to the start of `behind`, a tail of `rest`.
    #[inline]
    pub(crate) fn len_before(&self, behind: &[u8]) -> usize {
        self.whole.len().saturating_sub(behind.len())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn padding_and_feedback_are_taken_off() {
        let packet = [PADDING, PADDING, 0xF1, 0x11, 0xF0, 2, 0x20, 0x05, 0x25, 0xAA];
        let parts = parts(&packet).unwrap();
        let elements: Vec<_> = parts.feedback.collect();
        assert_eq!(elements, [&[0x11][..], &[0x20, 0x05]]);
        assert_eq!(parts.body, PacketBody::Header(&[0x25, 0xAA]));
    }

    #[test]
    fn a_feedback_element_longer_than_the_packet_is_refused() {
        assert_eq!(parts(&[0xF3, 1, 2]).unwrap_err(), PartsError::Feedback { offset: 0, need: 4, have: 3 });
        assert!(parts(&[0xF0]).is_err());
        assert!(parts(&[0xF0, 0]).is_err());
        assert_eq!(parts(&[PADDING]).unwrap_err(), PartsError::Empty);
    }

    #[test]
    fn the_cid_stands_before_or_inside() {
        let small = PacketHeader::read(&[0xE5, 0x12, 0x34], CidSpace::Small).unwrap();
        assert_eq!((small.cid.value(), small.first, small.rest), (5, 0x12, &[0x34][..]));
        let large = PacketHeader::read(&[0x12, 0x81, 0x02, 0x34], CidSpace::Large).unwrap();
        assert_eq!((large.cid.value(), large.first, large.rest), (0x102, 0x12, &[0x34][..]));
        assert_eq!(PacketHeader::read(&[0xE5, 0xF1, 0], CidSpace::Small), None);
        assert_eq!(PacketHeader::read(&[0xE5, 0x12, 0], CidSpace::Large), None);
    }
}
