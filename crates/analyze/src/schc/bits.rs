//! Bit strings: values of fields, and the residue, most significant bit first.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

/// Maximum length of a value without memory allocation, in octets: that of an address.
const SHORT: usize = 16;

/// A value of any length in bits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Bits {
    /// The bits, left-aligned; unused bits of the last octet are zero.
    octets: BitsStorage,
    len: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum BitsStorage {
    Short([u8; SHORT]),
    Long(Box<[u8]>),
}

impl Default for BitsStorage {
    fn default() -> Self {
        Self::Short([0; SHORT])
    }
}

impl Bits {
    /// Returns `len` bits of `octets` from bit `at` on; zeros beyond the end of `octets`.
    pub(super) fn of(octets: &[u8], at: usize, len: usize) -> Self {
        let count = len.div_ceil(8);
        if count > SHORT {
            let mut value = Vec::with_capacity(count);
            BitWriter::new(&mut value).push(octets, at, len);
            return Self { octets: BitsStorage::Long(value.into()), len };
        }
        let mut short = [0; SHORT];
        match octets.get(at / 8..at / 8 + count) {
            Some(from) if at.is_multiple_of(8) => short[..count].copy_from_slice(from),
            _ => (0..count).for_each(|i| short[i] = octet_at(octets, at + 8 * i)),
        }
        if !len.is_multiple_of(8) {
            short[count - 1] &= !(0xFF_u8 >> (len % 8));
        }
        Self { octets: BitsStorage::Short(short), len }
    }

    /// Returns whole octets as a value.
    #[cfg(test)]
    pub(super) fn octets(octets: &[u8]) -> Self {
        Self::of(octets, 0, octets.len() * 8)
    }

    /// Length in bits.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The bits, left-aligned in octets.
    pub(super) fn as_octets(&self) -> &[u8] {
        match &self.octets {
            BitsStorage::Short(octets) => &octets[..self.len.div_ceil(8)],
            BitsStorage::Long(octets) => octets,
        }
    }

    /// True if the `len` bits of `octets` from bit `at` on equal this value.
    pub(super) fn is_at(&self, octets: &[u8], at: usize, len: usize) -> bool {
        self.len == len && self.starts_at(octets, at)
    }

    /// True if `octets` contain this value from bit `at` on.
    pub(super) fn starts_at(&self, octets: &[u8], at: usize) -> bool {
        let whole = self.len / 8;
        if at.is_multiple_of(8) && self.len.is_multiple_of(8) {
            let there = octets.get(at / 8..at / 8 + whole);
            if let Some(there) = there {
                return there == self.as_octets();
            }
        }
        let left = self.as_octets().get(..whole).unwrap_or_default();
        left.iter().zip(0..).all(|(octet, i)| *octet == octet_at(octets, at + 8 * i))
            && self
                .as_octets()
                .get(whole)
                .is_none_or(|last| *last == octet_at(octets, at + 8 * whole) & !(0xFF_u8 >> (self.len % 8)))
    }

    /// Length of the common prefix, in bits.
    pub(super) fn common_prefix(&self, other: &Self) -> usize {
        let (a, b) = (self.as_octets(), other.as_octets());
        let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let (a, b) = (octet_at(a, 8 * same), octet_at(b, 8 * same));
        (8 * same + (a ^ b).leading_zeros() as usize).min(self.len).min(other.len)
    }

    /// Returns the first `len` bits.
    pub(super) fn prefix(&self, len: usize) -> Self {
        Self::of(self.as_octets(), 0, len.min(self.len))
    }

    /// Returns the value with another one behind it.
    pub(super) fn followed_by(&self, other: &Self) -> Self {
        let mut octets = Vec::with_capacity((self.len + other.len).div_ceil(8));
        let mut writer = BitWriter::new(&mut octets);
        writer.bits(self);
        writer.bits(other);
        Self::of(&octets, 0, self.len + other.len)
    }

    /// Returns a value of at most 128 bits as a number.
    pub(super) fn to_uint(&self) -> Option<u128> {
        let octets = self.as_octets();
        let value = octets.iter().fold(0, |value: u128, octet| value << 8 | u128::from(*octet));
        (self.len <= 128).then(|| value >> (octets.len() * 8 - self.len))
    }

    fn key(&self) -> (&[u8], usize) {
        (self.as_octets(), self.len)
    }
}

impl PartialEq for Bits {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Bits {}

impl PartialOrd for Bits {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bits {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for Bits {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// Appends bits to octets; unused bits of the last octet are zero.
#[derive(Debug)]
pub(super) struct BitWriter<'o> {
    out: &'o mut Vec<u8>,
    /// Number of unused bits in the last octet.
    spare: usize,
}

impl<'o> BitWriter<'o> {
    /// Starts after the existing octets.
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out, spare: 0 }
    }

    /// Appends `len` bits of `octets` from bit `at` on.
    pub(super) fn push(&mut self, octets: &[u8], at: usize, len: usize) {
        let mut done = self.octets(octets, at, len / 8);
        while done < len {
            let bits = (len - done).min(8);
            // Up to 8 bits, left-aligned.
            let octet = octet_at(octets, at + done) & (0xFF00_u16 >> bits) as u8;
            match self.out.last_mut() {
                Some(last) if self.spare > 0 => {
                    *last |= octet >> (8 - self.spare);
                    if bits > self.spare {
                        self.out.push(octet << self.spare);
                    }
                }
                _ => self.out.push(octet),
            }
            self.spare = (self.spare + 8 - bits) % 8;
            done += bits;
        }
    }

    /// Appends `count` octets of `octets` from bit `at` on, if both strings allow it octet by octet, and
    /// returns their number of bits; else returns 0.
    fn octets(&mut self, octets: &[u8], at: usize, count: usize) -> usize {
        let (first, shift, spare) = (at / 8, at % 8, self.spare);
        let Some(from) = octets.get(first..first + count + usize::from(shift > 0)) else { return 0 };
        let mut carry = if spare > 0 && count > 0 { self.out.pop().unwrap_or(0) } else { 0 };
        let mut shifted = |octet: u8| {
            let both = u16::from(octet) << spare;
            let out = if spare > 0 { carry | (both >> 8) as u8 } else { octet };
            carry = both as u8;
            out
        };
        match shift {
            0 if spare == 0 => self.out.extend_from_slice(from),
            0 => self.out.extend(from.iter().map(|octet| shifted(*octet))),
            _ => {
                let whole = from.windows(2).map(|pair| pair[0] << shift | pair[1] >> (8 - shift));
                self.out.extend(whole.map(&mut shifted));
            }
        }
        if spare > 0 && count > 0 {
            self.out.push(carry);
        }
        8 * count
    }

    /// Appends a value.
    pub(super) fn bits(&mut self, value: &Bits) {
        self.push(value.as_octets(), 0, value.len);
    }

    /// Appends the low `width` bits of a number.
    pub(super) fn uint(&mut self, value: u32, width: usize) {
        self.push(&value.to_be_bytes(), 32 - width.min(32), width.min(32));
    }
}

/// Reads bits from octets.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitReader<'i> {
    octets: &'i [u8],
    at: usize,
}

impl<'i> BitReader<'i> {
    /// Starts at the first bit.
    pub(super) fn new(octets: &'i [u8]) -> Self {
        Self { octets, at: 0 }
    }

    /// Number of remaining bits.
    pub(super) fn left(&self) -> usize {
        (self.octets.len() * 8).saturating_sub(self.at)
    }

    /// Offset of the next bit.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Reads `len` bits; `None` if fewer remain.
    pub(super) fn bits(&mut self, len: usize) -> Option<Bits> {
        if len > self.left() {
            return None;
        }
        let value = Bits::of(self.octets, self.at, len);
        self.at += len;
        Some(value)
    }

    /// Reads a number of `width` bits, at most 32.
    pub(super) fn uint(&mut self, width: usize) -> Option<u32> {
        self.bits(width)?.to_uint()?.try_into().ok()
    }
}

/// Returns the 8 bits from bit `at` on; zeros beyond the end.
fn octet_at(octets: &[u8], at: usize) -> u8 {
    let octet = |i: usize| u16::from(octets.get(i).copied().unwrap_or(0));
    let pair = octet(at / 8) << 8 | octet(at / 8 + 1);
    (pair << (at % 8) >> 8) as u8
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Formats the value as a string of 0 and 1.
    fn text(value: &Bits) -> String {
        let octets: String = value.as_octets().iter().map(|octet| format!("{octet:08b}")).collect();
        assert!(octets[value.len..].bytes().all(|bit| bit == b'0'));
        octets[..value.len].to_owned()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            octets in vec(any::<u8>(), 0..9),
            cuts in vec((0..30_usize, 0..50_usize), 0..9),
        ) {
            let mut out = Vec::new();
            let mut writer = BitWriter::new(&mut out);
            let values: Vec<_> = cuts.iter().map(|(at, len)| Bits::of(&octets, *at, *len)).collect();
            for value in &values {
                writer.bits(value);
            }
            let all: String = values.iter().map(text).collect();
            prop_assert_eq!(text(&Bits::of(&out, 0, all.len())), all.clone());
            prop_assert_eq!(out.len(), all.len().div_ceil(8));
            let mut reader = BitReader::new(&out);
            for value in &values {
                prop_assert_eq!(&reader.bits(value.len()).unwrap(), value);
            }
            prop_assert!(reader.left() < 8);
            prop_assert_eq!(reader.bits(8), None);
        }

        #[test]
        fn prefixes_are_those_of_the_text(
            a in vec(any::<u8>(), 0..4),
            b in vec(any::<u8>(), 0..4),
            shared in vec(any::<u8>(), 0..3),
            (cut, at) in (0..8_usize, 0..8_usize),
        ) {
            let of = |tail: &[u8]| {
                let all = [&shared[..], tail].concat();
                Bits::of(&all, 0, (all.len() * 8).saturating_sub(cut))
            };
            let (a, b) = (of(&a), of(&b));
            let same = text(&a).bytes().zip(text(&b).bytes()).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(a.common_prefix(&b), same);
            let mut out = Vec::new();
            let mut writer = BitWriter::new(&mut out);
            writer.uint(0xFF, at);
            writer.bits(&b);
            prop_assert_eq!(a.starts_at(&out, at), text(&Bits::of(&out, at, a.len())) == text(&a));
            prop_assert_eq!(a.is_at(&out, at, b.len()), a == b);
            prop_assert!(a.prefix(same).starts_at(&out, at));
        }
    }

    #[test]
    fn numbers_keep_their_low_bits() {
        let mut out = Vec::new();
        let mut writer = BitWriter::new(&mut out);
        writer.uint(0b1111_0000_1010, 12);
        writer.uint(7, 2);
        assert_eq!(out, [0b1111_0000, 0b1010_1100]);
        assert_eq!(BitReader::new(&out).uint(14), Some(0b11_1100_0010_1011));
        assert_eq!(Bits::octets(&[1, 2]).to_uint(), Some(0x102));
    }
}
