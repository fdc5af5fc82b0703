//! The Frame Check Sequence of IEEE 802.15.4: CRC-16 of ITU-T (`x^16 + x^12 + x^5 + 1`, from zero on, least
//! significant bit first). IEEE 802.15.4-2015, section 7.2.10.
//!
//! Radios check it and many remove it; captures of link type 195 contain it.

use crc::{CRC_16_KERMIT, Crc, Table};

/// Octets processed in one step; each takes a table of 512 octets.
const WIDTH: usize = if cfg!(feature = "large-tables") { 16 } else { 1 };

static FCS: Crc<u16, Table<WIDTH>> = Crc::<u16, Table<WIDTH>>::new(&CRC_16_KERMIT);

/// Length of the check sequence, in octets.
pub const LEN: usize = 2;

/// Returns the check sequence of a frame, least significant octet first, as it follows the frame.
pub fn fcs(frame: &[u8]) -> [u8; LEN] {
    FCS.checksum(frame).to_le_bytes()
}

/// Returns the frame without its check sequence, if that is correct.
pub fn check(octets: &[u8]) -> Result<&[u8], FcsError> {
    let Some((frame, sent)) = octets.split_last_chunk::<LEN>() else { return Err(FcsError::Short) };
    let computed = fcs(frame);
    if computed == *sent { Ok(frame) } else { Err(FcsError::Wrong { sent: *sent, computed }) }
}

/// Reason why octets are not a frame with a correct check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FcsError {
    /// There are fewer than 2 octets.
    Short,
    /// The frame was damaged on the link.
    Wrong {
        /// Check sequence in the frame.
        sent: [u8; LEN],
        /// Check sequence computed from the frame.
        computed: [u8; LEN],
    },
}

impl core::fmt::Display for FcsError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Short => write!(f, "too short for a check sequence"),
            Self::Wrong { sent, computed } => write!(
                f,
                "check sequence {:#06x}, but the frame gives {:#06x}",
                u16::from_le_bytes(*sent),
                u16::from_le_bytes(*computed)
            ),
        }
    }
}

impl core::error::Error for FcsError {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// IEEE 802.15.4-2006, section 7.2.1.9: the FCS of `0100 0000 0000 0000 0101 0110` is
    /// `0010 0111 1001 1110`, both first bit first: an acknowledgement with sequence number 0x6A.
    #[test]
    fn the_example_of_the_standard() {
        let acknowledgement = [0x02, 0x00, 0x6A];
        assert_eq!(fcs(&acknowledgement).map(u8::reverse_bits), [0b0010_0111, 0b1001_1110]);
        assert_eq!(check(&[0x02, 0x00, 0x6A, 0xE4, 0x79]), Ok(&acknowledgement[..]));
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let frame = *b"\x41\x88\x07\xcd\xab\x02\x00\x01\x00payload";
        let mut octets = std::vec::Vec::from(frame);
        octets.extend(fcs(&frame));
        for bit in 0..8 * octets.len() {
            octets[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(check(&octets), Err(FcsError::Wrong { .. })), "bit {bit}");
            octets[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(check(&octets).unwrap(), frame);
        assert_eq!(check(&octets[..1]), Err(FcsError::Short));
    }
}
