//! Value of the OSCORE option: the compressed COSE object without its ciphertext. RFC 8613, section 6.1.

use super::context::MAX_ID_CONTEXT;
use super::nonce::{MAX_NUMBER, PartialIv};
use super::{MAX_ID, OscoreError};

/// Reserved flag bits.
const RESERVED: u8 = 0b1110_0000;
/// Flag: the value has a kid context.
const KID_CONTEXT: u8 = 0b0001_0000;
/// Flag: the value has a kid.
const KID: u8 = 0b0000_1000;
/// Bits with the length of the Partial IV.
const LENGTH: u8 = 0b0000_0111;

/// Value of an OSCORE option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OscoreOption<'a> {
    /// Partial IV, at most 2^40 - 1.
    pub partial_iv: Option<u64>,
    /// kid context.
    pub kid_context: Option<&'a [u8]>,
    /// kid, at most [`MAX_ID`] octets.
    pub kid: Option<&'a [u8]>,
}

impl<'a> OscoreOption<'a> {
    /// Longest value that [`write`](Self::write) appends, in octets, besides the kid context.
    pub(super) const MOST: usize = 1 + PartialIv::MOST + 1 + MAX_ID;

    /// Decodes a value.
    ///
    /// A Partial IV with a leading zero octet is malformed, since a number then has several encodings.
    pub fn read(value: &'a [u8]) -> Result<Self, OscoreError> {
        // The value without all three is empty: "the Option Length is zero" if the flag octet is.
        let Some((&flags, rest)) = value.split_first() else { return Ok(Self::default()) };
        let malformed = OscoreError::Malformed;
        if flags & RESERVED != 0 || flags == 0 {
            return Err(malformed);
        }
        let (number, rest) = rest.split_at_checked(usize::from(flags & LENGTH)).ok_or(malformed)?;
        let partial_iv = match number {
            [] => None,
            [0, _, ..] => return Err(malformed),
            octets if octets.len() > PartialIv::MOST => return Err(malformed),
            octets => Some(octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet))),
        };
        let (kid_context, rest) = if flags & KID_CONTEXT != 0 {
            let (&length, rest) = rest.split_first().ok_or(malformed)?;
            let (context, rest) = rest.split_at_checked(usize::from(length)).ok_or(malformed)?;
            (Some(context), rest)
        } else {
            (None, rest)
        };
        let kid = (flags & KID != 0).then_some(rest);
        match kid {
            None if !rest.is_empty() => Err(malformed),
            Some(kid) if kid.len() > MAX_ID => Err(malformed),
            _ => Ok(Self { partial_iv, kid_context, kid }),
        }
    }

    /// Room for the longest value of a context.
    pub(super) const ROOM: usize = Self::MOST + 1 + MAX_ID_CONTEXT;

    /// Encodes the value. `None` if the Partial IV, the kid context (255 octets) or the kid is too long.
    pub fn write(&self) -> Option<alloc::vec::Vec<u8>> {
        self.encode(&mut [0; Self::MOST + 1 + 255]).map(Into::into)
    }

    /// Encodes the value into `out`. `None` if something is too long.
    pub(super) fn encode<'o>(&self, out: &'o mut [u8]) -> Option<&'o [u8]> {
        let number = match self.partial_iv {
            Some(number) if number > MAX_NUMBER => return None,
            number => number.map(PartialIv::new),
        };
        let number = number.as_ref().map_or(&[][..], PartialIv::octets);
        let (context, kid) = (self.kid_context.unwrap_or_default(), self.kid.unwrap_or_default());
        if kid.len() > MAX_ID {
            return None;
        }
        let flags = number.len() as u8
            | if self.kid.is_some() { KID } else { 0 }
            | if self.kid_context.is_some() { KID_CONTEXT } else { 0 };
        if flags == 0 {
            return Some(&[]);
        }
        let (first, rest) = out.split_first_mut()?;
        *first = flags;
        let (place, mut rest) = rest.split_at_mut_checked(number.len())?;
        place.copy_from_slice(number);
        let mut end = 1 + number.len() + kid.len();
        if self.kid_context.is_some() {
            let (len, behind) = rest.split_first_mut()?;
            *len = u8::try_from(context.len()).ok()?;
            let (place, behind) = behind.split_at_mut_checked(context.len())?;
            place.copy_from_slice(context);
            (rest, end) = (behind, end + 1 + context.len());
        }
        rest.get_mut(..kid.len())?.copy_from_slice(kid);
        out.get(..end)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    /// RFC 8613, section 6.3.
    #[test]
    fn the_examples_of_section_6_3_are_read_and_written() {
        let examples: [(&[u8], OscoreOption<'_>); 5] = [
            (b"\x09\x05\x25", OscoreOption { partial_iv: Some(5), kid: Some(b"\x25"), kid_context: None }),
            (b"\x09\x00", OscoreOption { partial_iv: Some(0), kid: Some(b""), kid_context: None }),
            (
                b"\x19\x05\x05Dalek",
                OscoreOption { partial_iv: Some(5), kid: Some(b""), kid_context: Some(b"Dalek") },
            ),
            (b"", OscoreOption::default()),
            (b"\x01\x07", OscoreOption { partial_iv: Some(7), kid: None, kid_context: None }),
        ];
        for (value, option) in examples {
            assert_eq!(OscoreOption::read(value), Ok(option));
            assert_eq!(option.write().unwrap(), value);
        }
    }

    #[test]
    fn malformed_values_are_refused() {
        for value in [
            &b"\x00"[..],
            b"\x29\x05",
            b"\x06abcdef",
            b"\x07abcdefg",
            b"\x02a",
            b"\x02\x00\x01",
            b"\x10",
            b"\x10\x02a",
            b"\x01\x05x",
            b"\x08abcdefgh",
        ] {
            assert_eq!(OscoreOption::read(value), Err(OscoreError::Malformed), "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn a_value_has_one_encoding(
            partial_iv in option::of(0..=MAX_NUMBER),
            context in option::of(vec(any::<u8>(), 0..20)),
            kid in option::of(vec(any::<u8>(), 0..=MAX_ID)),
            octets in vec(any::<u8>(), 0..20),
        ) {
            let value = OscoreOption { partial_iv, kid_context: context.as_deref(), kid: kid.as_deref() };
            let written = value.write().unwrap();
            prop_assert_eq!(OscoreOption::read(&written), Ok(value));
            if let Ok(value) = OscoreOption::read(&octets) {
                prop_assert_eq!(value.write().unwrap(), octets);
            }
        }
    }
}
