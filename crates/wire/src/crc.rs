//! The CRCs of ROHC. RFC 5795, section 5.3.1, with the algorithm of RFC 4815, section 2.1.
//!
//! Each CRC can be continued from the state after a prefix, so that the part of a header that does not change is computed
//! once (RFC 3095, section 5.9.2).

use crc::{CRC_32_ISO_HDLC, Crc};

const FCS32: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// Tables of CRC-3, CRC-7 and CRC-8. These cover about ten octets of a header, for which the crate `crc` spends as much
/// on setting up and finishing its state as on the octets; one table each takes a third of its instructions. Tests
/// compare the results with that crate.
const TABLES: [[u8; 256]; 3] = [table(0x06), table(0x79), table(0xE0)];

/// Tables of CRC-3 for an octet with so many octets behind it: those of one update need not wait for each other. Only where words are
/// wide is there memory for them.
const CRC3: [[u8; 256]; 7] = {
    let mut tables = [TABLES[0]; 7];
    let mut at = 1;
    while at < 7 {
        let mut octet = 0;
        while octet < 256 {
            tables[at][octet] = TABLES[0][tables[at - 1][octet] as usize];
            octet += 1;
        }
        at += 1;
    }
    tables
};

/// Tables of CRC-7 and CRC-8 for an octet with up to three octets behind it: four octets of a long header are one step.
const STEPS: [[[u8; 256]; 4]; 2] = [steps(TABLES[1]), steps(TABLES[2])];

/// Returns tables for an octet with no, one, two and three octets behind it.
const fn steps(table: [u8; 256]) -> [[u8; 256]; 4] {
    let mut tables = [table; 4];
    let mut at = 1;
    while at < 4 {
        let mut octet = 0;
        while octet < 256 {
            tables[at][octet] = table[tables[at - 1][octet] as usize];
            octet += 1;
        }
        at += 1;
    }
    tables
}

/// Returns the state after each octet, for a reflected polynomial.
const fn table(polynomial: u8) -> [u8; 256] {
    let mut table = [0; 256];
    let mut octet = 0;
    while octet < 256 {
        let mut state = octet as u8;
        let mut bit = 0;
        while bit < 8 {
            state = if state & 1 == 1 { state >> 1 ^ polynomial } else { state >> 1 };
            bit += 1;
        }
        table[octet] = state;
        octet += 1;
    }
    table
}

/// One of the CRCs of compressed headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// `1 + x + x^3`.
    Crc3,
    /// `1 + x + x^2 + x^3 + x^6 + x^7`.
    Crc7,
    /// `1 + x + x^2 + x^8`.
    Crc8,
}

impl Check {
    /// Returns the CRC of `width` bits: 3, 7 or 8.
    #[inline]
    pub const fn of_width(width: u32) -> Option<Self> {
        match width {
            3 => Some(Self::Crc3),
            7 => Some(Self::Crc7),
            8 => Some(Self::Crc8),
            _ => None,
        }
    }

    /// Width in bits.
    #[inline]
    pub const fn width(self) -> u32 {
        match self {
            Self::Crc3 => 3,
            Self::Crc7 => 7,
            Self::Crc8 => 8,
        }
    }

    /// State before the first octet: all ones.
    #[inline]
    pub const fn start(self) -> u8 {
        0xFF >> (8 - self.width())
    }

    /// Returns the state after `octets`, from `state`.
    #[inline]
    pub fn update(self, state: u8, octets: &[u8]) -> u8 {
        if self == Self::Crc3
            && cfg!(target_pointer_width = "64")
            && let [first, behind @ ..] = octets
            && let Some(tables) = CRC3.get(..=behind.len())
            && let [tables @ .., last] = tables
        {
            let first = last[usize::from(state ^ first)];
            return behind
                .iter()
                .zip(tables.iter().rev())
                .fold(first, |crc, (octet, table)| crc ^ table[usize::from(*octet)]);
        }
        // Tables are in the order of the variants.
        let table = &TABLES[self as usize];
        octets.iter().fold(state, |state, octet| table[usize::from(state ^ octet)])
    }

    /// [`update`](Self::update) of CRC-3 for many octets. Bits at a distance of a multiple of seven have equal weight,
    /// since `x^7` is 1, and are added up first.
    #[inline]
    fn update_crc3(state: u8, octets: &[u8]) -> u8 {
        let (mut sum, mut rest) = (0, octets);
        // The eighth octet is read again with the next ones.
        while let Some(chunk) = rest.first_chunk::<8>() {
            sum ^= u64::from_le_bytes(*chunk);
            rest = rest.get(7..).unwrap_or_default();
        }
        // At most seven octets.
        let behind = match octets.last_chunk::<8>() {
            Some(last) => u64::from_le_bytes(*last) >> 8 >> (56 - 8 * (rest.len() & 7)),
            None => rest.iter().rev().fold(0, |all, octet| all << 8 | u64::from(*octet)),
        };
        sum = (sum ^ behind ^ u64::from(state)) & ((1 << 56) - 1);
        sum ^= sum >> 28;
        sum ^= sum >> 14 & 0x3FFF;
        sum ^= sum >> 7;
        // The sum covers whole periods of seven bits; each octet left over is one bit longer than a period.
        let seven = sum & 0x7F;
        let turned = (seven << 7 | seven) >> rest.len() & 0x7F;
        TABLES[Self::Crc3 as usize][turned as usize * 2]
    }

    /// Returns the CRC of `octets`.
    #[inline]
    pub fn of(self, octets: &[u8]) -> u8 {
        match self {
            Self::Crc3 => Self::update_crc3(self.start(), octets),
            Self::Crc7 | Self::Crc8 => self.update_long(self.start(), octets),
        }
    }

    /// [`update`](Self::update) for many octets, in steps of four where words are wide.
    #[inline]
    pub fn update_long(self, mut state: u8, octets: &[u8]) -> u8 {
        let [at_end, third, second, first] = match self {
            Self::Crc7 if cfg!(target_pointer_width = "64") => &STEPS[0],
            Self::Crc8 if cfg!(target_pointer_width = "64") => &STEPS[1],
            Self::Crc3 | Self::Crc7 | Self::Crc8 => return self.update(state, octets),
        };
        let (steps, rest) = octets.as_chunks();
        for [a, b, c, d] in steps {
            state = first[usize::from(state ^ a)]
                ^ second[usize::from(*b)]
                ^ third[usize::from(*c)]
                ^ at_end[usize::from(*d)];
        }
        self.update(state, rest)
    }
}

/// Returns the FCS-32 of a reconstructed unit, as its last four octets have it (least significant octet first; RFC 1662,
/// appendix C). RFC 5795, section 5.2.5.2.
pub fn fcs32(octets: &[u8]) -> [u8; 4] {
    FCS32.checksum(octets).to_le_bytes()
}

/// Returns the [`fcs32`] of several parts in sequence.
pub fn fcs32_of_parts(parts: &[&[u8]]) -> [u8; 4] {
    let mut digest = FCS32.digest();
    for part in parts {
        digest.update(part);
    }
    digest.finalize().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The algorithm of RFC 4815, appendix A, bit by bit.
    fn by_bits(check: Check, octets: &[u8]) -> u8 {
        let polynomial = match check {
            Check::Crc3 => 0x6,
            Check::Crc7 => 0x79,
            Check::Crc8 => 0xE0,
        };
        let mut crc = check.start();
        for octet in octets {
            for bit in 0..8 {
                let carry = (crc ^ (octet >> bit)) & 1;
                crc >>= 1;
                if carry == 1 {
                    crc ^= polynomial;
                }
            }
        }
        crc
    }

    #[test]
    fn all_widths_follow_the_sample_algorithm() {
        let data: std::vec::Vec<u8> = (0..=255).collect();
        for check in [Check::Crc3, Check::Crc7, Check::Crc8] {
            for len in 0..data.len() {
                assert_eq!(check.of(&data[..len]), by_bits(check, &data[..len]), "{check:?} over {len}");
            }
        }
    }

    #[test]
    fn all_widths_agree_with_the_catalogue_of_crcs() {
        use crc::{CRC_3_ROHC, CRC_7_ROHC, CRC_8_ROHC};
        let data: std::vec::Vec<u8> = (0..=255).collect();
        for (check, algorithm) in
            [(Check::Crc3, &CRC_3_ROHC), (Check::Crc7, &CRC_7_ROHC), (Check::Crc8, &CRC_8_ROHC)]
        {
            assert_eq!(check.of(&data), Crc::<u8>::new(algorithm).checksum(&data));
            assert_eq!(check.of(b"123456789"), algorithm.check);
        }
    }

    #[test]
    fn a_check_continues_from_any_prefix() {
        let data = *b"thin headers, over the air";
        for check in [Check::Crc3, Check::Crc7, Check::Crc8] {
            for cut in 0..data.len() {
                let (head, tail) = data.split_at(cut);
                assert_eq!(check.update(check.of(head), tail), check.of(&data));
                assert_eq!(check.update_long(check.of(head), tail), check.of(&data));
            }
        }
    }

    /// RFC 1662 FCS-32 of the check string, from the catalogue of CRCs: 0xCBF43926.
    #[test]
    fn fcs32_is_the_one_of_hdlc() {
        assert_eq!(fcs32(b"123456789"), [0x26, 0x39, 0xF4, 0xCB]);
        assert_eq!(fcs32_of_parts(&[b"1234", b"", b"56789"]), [0x26, 0x39, 0xF4, 0xCB]);
    }
}
