//! Outlines: the options of a template, with holes for dynamic ones. Section 5 of `docs/coap-profile.md`.
//!
//! A static option in an outline has exactly the octets that it has in a message. A dynamic one is an octet
//! `1111 cccc`, with which no option starts (a delta of 15 is reserved), and an option that has the parameters of
//! class `c` in place of the value.

use thinair_wire::coder::{Reader, Step, Writer};
use thinair_wire::header::coap;

use super::OBSERVE;

/// Largest number of dynamic options in an outline.
pub const MAX_DYNAMIC: usize = 4;

/// Largest size of an outline, in octets.
pub const MAX_OUTLINE: usize = 112;

/// Bits of the NUM of a Block option. RFC 7959, section 2.2.
pub(super) const NUM_MASK: u32 = 0xF_FFFF;

/// Bits of the sequence number of Observe. RFC 7641, section 3.4.
pub(super) const OBSERVE_MASK: u32 = 0xFF_FFFF;

/// High bits of the first octet of a dynamic option.
const ESCAPE: u8 = 0xF0;

/// Class of an option in an outline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class<'o> {
    /// Constant value.
    Static(&'o [u8]),
    /// A uint that counts with the MSN.
    Counted,
    /// A uint of which 8 bits are sent; the others follow from the last one of the context.
    Lsb,
    /// A uint that exceeds the last one of the context by this step.
    Step(u8),
    /// A Block option whose NUM counts with the MSN. The parameter has M and SZX.
    Block(u8),
    /// A Block option with the NUM of the request. The parameter has M and SZX.
    BlockOfRequest(u8),
    /// An OSCORE option whose Partial IV counts with the MSN. The parameters are its flags without `n`, and the
    /// octets behind the Partial IV.
    PartialIv(u8, &'o [u8]),
    /// This many octets, in every packet.
    Irregular(u8),
    /// Any octets, with their length, in every packet.
    Variable,
    /// Octets that start with the prefix; the others are in every packet. The number is the length of all.
    Prefix(u8, &'o [u8]),
}

/// Numbers of classes behind [`ESCAPE`].
mod number {
    pub(super) const COUNTED: u8 = 1;
    pub(super) const LSB: u8 = 2;
    pub(super) const STEP: u8 = 3;
    pub(super) const BLOCK: u8 = 4;
    pub(super) const BLOCK_OF_REQUEST: u8 = 5;
    pub(super) const PARTIAL_IV: u8 = 6;
    pub(super) const IRREGULAR: u8 = 7;
    pub(super) const VARIABLE: u8 = 8;
    pub(super) const PREFIX: u8 = 9;
}

/// Class of a dynamic option, without the parameters that are in the outline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HoleKind {
    Counted,
    Lsb,
    Step(u8),
    Block,
    BlockOfRequest,
    PartialIv,
    /// This many octets, in every packet.
    Octets(u8),
    Variable,
}

/// A dynamic option.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    pub(super) kind: HoleKind,
    pub(super) is_observe: bool,
    /// Index of its entry in the outline.
    at: u8,
    end: u8,
}

impl Hole {
    /// True if it is a number that a packet or a reference gives.
    #[inline]
    pub(super) fn is_number(self) -> bool {
        !matches!(self.kind, HoleKind::Octets(_) | HoleKind::Variable)
    }

    /// True if a template keeps an anchor for it.
    #[inline]
    pub(super) fn has_anchor(self) -> bool {
        matches!(self.kind, HoleKind::Counted | HoleKind::Block | HoleKind::PartialIv)
    }

    /// Returns start and end of its entry in the outline.
    #[inline]
    pub(super) fn place(self) -> (usize, usize) {
        (usize::from(self.at), usize::from(self.end))
    }

    /// Returns delta and parameters of its entry. A prefix stands behind the first octet of the parameters.
    #[inline]
    pub(super) fn option(self, outline: &[u8]) -> Option<(u32, &[u8])> {
        // Behind the octet of the class.
        let (delta, parameters, _) = option_at(outline.get(usize::from(self.at) + 1..)?)?;
        Some((delta, parameters))
    }

    /// Mask of the bits of its number.
    #[inline]
    pub(super) fn mask(self) -> u32 {
        match self.kind {
            HoleKind::Block => NUM_MASK,
            _ if self.is_observe => OBSERVE_MASK,
            _ => u32::MAX,
        }
    }
}

/// The dynamic options of an outline, in their order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holes {
    holes: [Hole; MAX_DYNAMIC],
    count: u8,
}

impl Holes {
    pub(super) const NONE: Self = Self {
        holes: [Hole { kind: HoleKind::Counted, is_observe: false, at: 0, end: 0 }; MAX_DYNAMIC],
        count: 0,
    };

    /// Returns the first `count` dynamic options of an outline.
    #[inline]
    pub(super) fn of(outline: &[u8], count: u8) -> Self {
        let mut holes = Self::NONE;
        let (mut entries, mut at) = (Entries::new(outline), 0);
        while holes.count < count
            && let Some(entry) = entries.next()
        {
            let end = at + entry.octets.len();
            let kind = match entry.class {
                Class::Static(_) => None,
                Class::Counted => Some(HoleKind::Counted),
                Class::Lsb => Some(HoleKind::Lsb),
                Class::Step(step) => Some(HoleKind::Step(step)),
                Class::Block(_) => Some(HoleKind::Block),
                Class::BlockOfRequest(_) => Some(HoleKind::BlockOfRequest),
                Class::PartialIv(..) => Some(HoleKind::PartialIv),
                Class::Irregular(len) => Some(HoleKind::Octets(len)),
                Class::Prefix(len, prefix) => Some(HoleKind::Octets(len.saturating_sub(prefix.len() as u8))),
                Class::Variable => Some(HoleKind::Variable),
            };
            if let (Some(kind), Some(hole)) = (kind, holes.holes.get_mut(usize::from(holes.count))) {
                *hole = Hole { kind, is_observe: entry.number == OBSERVE, at: at as u8, end: end as u8 };
                holes.count += 1;
            }
            at = end;
        }
        holes
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[Hole] {
        self.holes.get(..usize::from(self.count)).unwrap_or_default()
    }

    /// True if short packets without changes carry octets for an option.
    #[inline]
    pub(super) fn are_irregular(&self) -> bool {
        self.as_slice()
            .iter()
            .any(|hole| matches!(hole.kind, HoleKind::Lsb | HoleKind::Octets(_) | HoleKind::Variable))
    }

    /// True if a number is that of the request.
    pub(super) fn of_request(&self) -> bool {
        self.as_slice().iter().any(|hole| matches!(hole.kind, HoleKind::BlockOfRequest))
    }

    /// True if a number is encoded as a step from the last one.
    #[inline]
    pub(super) fn has_step(&self) -> bool {
        self.as_slice().iter().any(|hole| matches!(hole.kind, HoleKind::Step(_)))
    }
}

/// One option of an outline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlineEntry<'o> {
    /// Option Number minus that of the previous option.
    pub delta: u32,
    /// Option Number.
    pub number: u16,
    /// Class, with its parameters.
    pub class: Class<'o>,
    /// The entry as it stands in the outline.
    pub octets: &'o [u8],
}

/// Iterator over an outline. It ends early at invalid octets; check with [`is_outline`] before storing an outline.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'o> {
    octets: &'o [u8],
    number: u16,
}

impl<'o> Entries<'o> {
    /// Creates an iterator over the entries of `octets`.
    pub fn new(octets: &'o [u8]) -> Self {
        Self { octets, number: 0 }
    }
}

impl<'o> Iterator for Entries<'o> {
    type Item = OutlineEntry<'o>;

    #[inline]
    fn next(&mut self) -> Option<OutlineEntry<'o>> {
        let start = self.octets;
        let (&first, behind) = start.split_first()?;
        let escaped = first & 0xF0 == ESCAPE;
        let (delta, value, behind) = option_at(if escaped { behind } else { start })?;
        let class = if escaped { class_of(first & 0x0F, value)? } else { Class::Static(value) };
        let number = u16::try_from(u32::from(self.number) + delta).ok()?;
        self.number = number;
        self.octets = behind;
        let octets = start.get(..start.len() - self.octets.len())?;
        Some(OutlineEntry { delta, number, class, octets })
    }
}

/// Splits the option at the start of some octets: its delta, its value, and the octets behind it.
#[inline]
pub(super) fn option_at(octets: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (&first, behind) = octets.split_first()?;
    let (delta, length) = (first >> 4, first & 0x0F);
    // Fast path: both are in the first octet.
    if delta < 13 && length < 13 {
        let (value, behind) = behind.split_at_checked(usize::from(length))?;
        return Some((u32::from(delta), value, behind));
    }
    long_option_at(octets)
}

/// [`option_at`] with extended delta or length.
#[cold]
fn long_option_at(octets: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let mut reader = Reader::contiguous(octets);
    let (mut delta, mut value) = (0, [].as_slice());
    coap::option(&mut reader, &mut delta, &mut value).ok()?;
    Some((delta, value, reader.remaining()))
}

/// Writes an option with the value `front` and `behind`.
#[inline]
pub(super) fn write_option(writer: &mut Writer<'_>, mut delta: u32, front: &[u8], behind: &[u8]) -> Step {
    let mut length = (front.len() + behind.len()) as u32;
    if delta < 13 && length < 13 {
        writer.copy(&[(delta << 4 | length) as u8]);
    } else {
        coap::option_header(writer, &mut delta, &mut length)?;
    }
    writer.copy(front);
    if !behind.is_empty() {
        writer.copy(behind);
    }
    Ok(())
}

fn class_of(class: u8, parameters: &[u8]) -> Option<Class<'_>> {
    match (class, parameters) {
        (number::COUNTED, []) => Some(Class::Counted),
        (number::LSB, []) => Some(Class::Lsb),
        (number::STEP, &[step]) => Some(Class::Step(step)),
        (number::BLOCK, &[low @ 0..16]) => Some(Class::Block(low)),
        (number::BLOCK_OF_REQUEST, &[low @ 0..16]) => Some(Class::BlockOfRequest(low)),
        (number::PARTIAL_IV, [flags, behind @ ..]) if flags & 0b111 == 0 => {
            Some(Class::PartialIv(*flags, behind))
        }
        (number::IRREGULAR, &[len]) => Some(Class::Irregular(len)),
        (number::VARIABLE, []) => Some(Class::Variable),
        (number::PREFIX, [len, prefix @ ..]) if usize::from(*len) > prefix.len() => {
            Some(Class::Prefix(*len, prefix))
        }
        _ => None,
    }
}

/// True if octets are a valid outline.
pub fn is_outline(octets: &[u8]) -> bool {
    let mut len = 0;
    let mut dynamic = 0;
    for entry in Entries::new(octets) {
        len += entry.octets.len();
        dynamic += usize::from(!matches!(entry.class, Class::Static(_)));
    }
    len == octets.len() && dynamic <= MAX_DYNAMIC && len <= MAX_OUTLINE
}

/// Appends an option of a class to an outline. False if there is no room.
pub fn append(out: &mut [u8], len: &mut usize, delta: u32, class: &Class<'_>) -> bool {
    let (class_number, parameters, head) = match class {
        Class::Static(value) => (0, *value, None),
        Class::Counted => (number::COUNTED, &[][..], None),
        Class::Lsb => (number::LSB, &[][..], None),
        Class::Step(step) => (number::STEP, &[][..], Some(*step)),
        Class::Block(low) => (number::BLOCK, &[][..], Some(*low)),
        Class::BlockOfRequest(low) => (number::BLOCK_OF_REQUEST, &[][..], Some(*low)),
        Class::PartialIv(flags, behind) => (number::PARTIAL_IV, *behind, Some(*flags)),
        Class::Irregular(len) => (number::IRREGULAR, &[][..], Some(*len)),
        Class::Variable => (number::VARIABLE, &[][..], None),
        Class::Prefix(len, prefix) => (number::PREFIX, *prefix, Some(*len)),
    };
    if class_number != 0 {
        let Some(octet) = out.get_mut(*len) else { return false };
        *octet = ESCAPE | class_number;
        *len += 1;
    }
    let mut writer = Writer::new(out, *len);
    let is_written = write_option(&mut writer, delta, head.as_slice(), parameters).is_ok();
    let Ok(end) = writer.finish() else { return false };
    *len = if is_written { end } else { *len };
    is_written
}

/// Number of octets of a uint in its shortest form (RFC 7252, section 3.2).
#[inline]
pub(super) fn uint_len(value: u32) -> usize {
    (4 - value.leading_zeros() / 8) as usize
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_static_outline_is_the_options_themselves() {
        let options = *b"\xb4time\x48id=dev42";
        assert!(is_outline(&options));
        let mut entries = Entries::new(&options).map(|entry| (entry.number, entry.class));
        assert_eq!(entries.next(), Some((11, Class::Static(b"time"))));
        assert_eq!(entries.next(), Some((15, Class::Static(b"id=dev42"))));
        assert_eq!(entries.next(), None);
    }

    proptest! {
        /// Entries that were appended are read again, and nothing else is an outline.
        #[test]
        fn every_class_comes_back(deltas in proptest::collection::vec((0_u32..400, 0_u8..10, 0_u8..16), 0..5)) {
            let mut out = [0; MAX_OUTLINE];
            let mut len = 0;
            let value = [7, 1, 2, 3];
            let class = |class: u8, low: u8| match class {
                0 => Class::Static(&value[..usize::from(low % 5)]),
                1 => Class::Counted,
                2 => Class::Lsb,
                3 => Class::Step(low),
                4 => Class::Block(low),
                5 => Class::BlockOfRequest(low),
                6 => Class::PartialIv(0b1000, &[1]),
                7 => Class::Irregular(low),
                8 => Class::Variable,
                _ => Class::Prefix(5 + low, &value[1..]),
            };
            for &(delta, kind, low) in &deltas {
                prop_assert!(append(&mut out, &mut len, delta, &class(kind, low)));
            }
            let walked: alloc::vec::Vec<_> = Entries::new(&out[..len]).map(|e| (e.delta, e.class)).collect();
            let meant: alloc::vec::Vec<_> = deltas.iter().map(|&(d, kind, low)| (d, class(kind, low))).collect();
            prop_assert_eq!(walked, meant);
        }

        #[test]
        fn no_octets_make_a_walk_panic(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            let walked: usize = Entries::new(&octets).map(|e| e.octets.len()).sum();
            prop_assert!(walked <= octets.len());
            prop_assert!(!is_outline(&octets) || walked == octets.len());
        }
    }
}
