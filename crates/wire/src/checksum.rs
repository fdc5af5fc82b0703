//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

/// Unfolded sum in one's-complement arithmetic.
///
/// Every part but the last must have an even number of octets. Words are added in the byte order of the machine, and
/// swapped once at the end (RFC 1071, section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// Sum of no octets.
    pub const ZERO: Self = Self(0);

    /// Adds octets as big-endian 16-bit words; an odd last octet is padded with zero.
    #[inline]
    pub fn octets(mut self, octets: &[u8]) -> Self {
        // A word of 64 bits is congruent to the sum of its quarters modulo 2^16 - 1.
        let (words, rest) = octets.as_chunks::<8>();
        for word in words {
            self = self.add(u64::from_ne_bytes(*word));
        }
        let (words, rest) = rest.as_chunks::<4>();
        for word in words {
            self = self.add(u64::from(u32::from_ne_bytes(*word)));
        }
        match *rest {
            [] => self,
            [a] => self.add(u64::from(u16::from_ne_bytes([a, 0]))),
            [a, b] => self.add(u64::from(u16::from_ne_bytes([a, b]))),
            [a, b, c, ..] => self.add(u64::from(u32::from_ne_bytes([a, b, c, 0]))),
        }
    }

    /// Adds one word.
    #[inline]
    pub fn word(self, word: u16) -> Self {
        self.add(u64::from(word.to_be()))
    }

    /// Adds two words, the higher one first.
    #[inline]
    pub fn words(self, words: u32) -> Self {
        self.add(u64::from(words.to_be()))
    }

    /// Adds a number modulo 2^64 - 1.
    #[inline]
    fn add(self, number: u64) -> Self {
        let (sum, carry) = self.0.overflowing_add(number);
        Self(sum + u64::from(carry))
    }

    /// Returns the sum folded to 16 bits.
    #[inline]
    pub fn fold(self) -> u16 {
        // The carry out of the word is added at its other end, where it cannot carry a second time.
        let (sum, carry) = ((self.0 >> 32) as u32).overflowing_add(self.0 as u32);
        let sum = sum.wrapping_add(carry.into());
        let (sum, carry) = ((sum >> 16) as u16).overflowing_add(sum as u16);
        u16::from_be(sum.wrapping_add(carry.into()))
    }

    /// Returns the checksum, which is the complement of the sum.
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.fold()
    }
}

/// Returns the Internet checksum of `octets`.
#[inline]
pub fn checksum(octets: &[u8]) -> u16 {
    Sum::ZERO.octets(octets).checksum()
}

/// Returns the checksum after one 16-bit word that it covers has changed from `old` to `new`. RFC 1624, equation 3.
#[inline]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    Sum::ZERO.word(!checksum).word(!old).word(new).checksum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Example of RFC 1071, section 3.
    #[test]
    fn the_example_of_the_rfc_sums_up() {
        let sum = Sum::ZERO.octets(&[0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7]);
        assert_eq!(sum.fold(), 0xDDF2);
    }

    /// Example of RFC 1624, section 4.
    #[test]
    fn the_update_does_not_give_minus_zero() {
        assert_eq!(update(0xDD2F, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        #[test]
        fn the_update_equals_a_new_sum(mut words in proptest::collection::vec(1_u16.., 2..40), new in 1_u16.., at: usize) {
            let octets = |words: &[u16]| words.iter().flat_map(|w| w.to_be_bytes()).collect::<std::vec::Vec<_>>();
            let at = at % words.len();
            let before = checksum(&octets(&words));
            let after = update(before, words[at], new);
            words[at] = new;
            prop_assert_eq!(after, checksum(&octets(&words)));
        }

        #[test]
        fn two_words_sum_like_one_and_one(sum: u64, high: u16, low: u16) {
            let both = u32::from(high) << 16 | u32::from(low);
            prop_assert_eq!(Sum(sum).words(both).fold(), Sum(sum).word(high).word(low).fold());
        }

        #[test]
        fn words_of_four_octets_sum_like_words_of_two(octets: std::vec::Vec<u8>) {
            let mut sum = 0_u32;
            for pair in octets.chunks(2) {
                sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
                sum = (sum >> 16) + (sum & 0xFFFF);
            }
            prop_assert_eq!(u32::from(Sum::ZERO.octets(&octets).fold()), sum);
        }
    }
}
