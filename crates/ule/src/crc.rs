//! CRC-32/MPEG-2: of SNDUs (RFC 4326, section 4.6) and of sections of PSI.
//!
//! Polynomial 0x04C11DB7, initial value all ones, most significant bit first, not inverted, sent most significant
//! octet first. Computed over data followed by its CRC, it is 0.
//!
//! One table of 1 KiB processes an octet a step. The feature `fast-crc` has 16 of them, for 16 octets a step. The
//! crate `crc` processes the remainder of a division by 16 octet by octet, which is a good part of short SNDUs;
//! therefore the tables are implemented here, and that crate is the oracle of the tests.

/// Polynomial without x^32.
const POLYNOMIAL: u32 = 0x04C1_1DB7;

/// Number of tables. Table `i` has the CRC of an octet followed by `i` octets of zero.
#[cfg(feature = "fast-crc")]
const LANES: usize = 16;
#[cfg(not(feature = "fast-crc"))]
const LANES: usize = 1;

static TABLES: [[u32; 256]; LANES] = tables();

const fn tables() -> [[u32; 256]; LANES] {
    let mut tables = [[0; 256]; LANES];
    let mut octet = 0;
    while octet < 256 {
        let mut state = (octet as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            state = if state >> 31 == 1 { state << 1 ^ POLYNOMIAL } else { state << 1 };
            bit += 1;
        }
        tables[0][octet] = state;
        octet += 1;
    }
    let mut lane = 1;
    while lane < LANES {
        let mut octet = 0;
        while octet < 256 {
            let before = tables[lane - 1][octet];
            tables[lane][octet] = before << 8 ^ tables[0][(before >> 24) as usize];
            octet += 1;
        }
        lane += 1;
    }
    tables
}

/// State of a CRC-32 computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crc32(u32);

impl Crc32 {
    /// Initial state.
    pub const START: Self = Self(0xFFFF_FFFF);

    /// Returns the CRC of `octets`.
    #[inline]
    pub fn of(octets: &[u8]) -> u32 {
        Self::START.then(octets).value()
    }

    /// True if octets that end with their CRC are undamaged.
    #[inline]
    pub fn is_right(octets: &[u8]) -> bool {
        Self::of(octets) == 0
    }

    /// Continues the computation with `octets`.
    #[cfg(feature = "fast-crc")]
    #[inline]
    pub fn then(self, octets: &[u8]) -> Self {
        let mut state = self.0;
        let (blocks, octets) = octets.as_chunks::<16>();
        for block in blocks {
            let [a, b, c, d] =
                (state ^ u32::from_be_bytes([block[0], block[1], block[2], block[3]])).to_be_bytes();
            state = lane(0, block[15])
                ^ lane(1, block[14])
                ^ lane(2, block[13])
                ^ lane(3, block[12])
                ^ lane(4, block[11])
                ^ lane(5, block[10])
                ^ lane(6, block[9])
                ^ lane(7, block[8])
                ^ lane(8, block[7])
                ^ lane(9, block[6])
                ^ lane(10, block[5])
                ^ lane(11, block[4])
                ^ lane(12, d)
                ^ lane(13, c)
                ^ lane(14, b)
                ^ lane(15, a);
        }
        let (words, octets) = octets.as_chunks::<4>();
        for word in words {
            let [a, b, c, d] = (state ^ u32::from_be_bytes(*word)).to_be_bytes();
            state = lane(0, d) ^ lane(1, c) ^ lane(2, b) ^ lane(3, a);
        }
        Self(octet_by_octet(state, octets))
    }

    /// Continues the computation with `octets`.
    #[cfg(not(feature = "fast-crc"))]
    #[inline]
    pub fn then(self, octets: &[u8]) -> Self {
        Self(octet_by_octet(self.0, octets))
    }

    /// Returns the CRC, which is sent most significant octet first.
    #[inline]
    pub const fn value(self) -> u32 {
        self.0
    }
}

/// Returns the CRC of an octet followed by `lane` octets of zero.
#[cfg(feature = "fast-crc")]
#[inline(always)]
fn lane(lane: usize, octet: u8) -> u32 {
    TABLES[lane][usize::from(octet)]
}

#[inline]
fn octet_by_octet(state: u32, octets: &[u8]) -> u32 {
    let table = &TABLES[0];
    octets.iter().fold(state, |state, octet| state << 8 ^ table[usize::from((state >> 24) as u8 ^ octet)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crc::{CRC_32_MPEG_2, Crc};
    use std::vec::Vec;

    #[test]
    fn it_is_the_one_of_the_catalogue_of_crcs() {
        let oracle = Crc::<u32>::new(&CRC_32_MPEG_2);
        let octets: Vec<u8> = (0..600_u32).map(|i| (i * i / 8) as u8).collect();
        for len in 0..octets.len() {
            assert_eq!(Crc32::of(&octets[..len]), oracle.checksum(&octets[..len]), "{len}");
        }
        assert_eq!(Crc32::of(b"123456789"), 0x0376_E6E7);
    }

    #[test]
    fn it_goes_on_behind_any_part_and_is_zero_over_itself() {
        let octets: Vec<u8> = (0..100).collect();
        let whole = Crc32::of(&octets);
        for cut in 0..=octets.len() {
            let (head, tail) = octets.split_at(cut);
            assert_eq!(Crc32::START.then(head).then(tail).value(), whole);
        }
        let mut sent = octets;
        sent.extend(whole.to_be_bytes());
        assert!(Crc32::is_right(&sent));
        sent[3] ^= 0x10;
        assert!(!Crc32::is_right(&sent));
    }
}
