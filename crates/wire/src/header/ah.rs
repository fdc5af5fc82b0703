//! The Authentication Header. RFC 4302, section 2.

use super::extension::{AH_FIXED, octets_of};
use super::protocol;
use crate::coder::{Coder, NoRoom, Reader, Step, Writer};

/// Every field of an Authentication Header.
///
/// Payload Len follows from the ICV. Over IPv6 the header has to be a multiple of 8 octets; this is not
/// checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ah<'p> {
    /// Protocol of the header that follows.
    pub next_header: u8,
    /// Reserved; normally zero.
    pub reserved: u16,
    /// Security Parameters Index; 1 to 255 are reserved, 0 is never sent.
    pub spi: u32,
    /// Sequence Number; with extended sequence numbers its low-order 32 bits.
    pub sequence_number: u32,
    /// Integrity Check Value with its padding; a multiple of 4 octets, at most 1016.
    pub icv: &'p [u8],
}

impl<'p> Ah<'p> {
    /// Octets of a header without Integrity Check Value.
    pub const LEN: usize = AH_FIXED;

    /// Octets of the header.
    pub fn len(&self) -> usize {
        Self::LEN + self.icv.len()
    }

    /// Reads a header from the start of `octets`.
    pub fn read(octets: &'p [u8]) -> Step<Self> {
        let mut header = Self::default();
        header.code(&mut Reader::contiguous(octets))?;
        Ok(header)
    }

    /// Writes the header from octet `at` of `out` on and returns its end.
    pub fn write(mut self, out: &mut [u8], at: usize) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out, at);
        // Every value can be written.
        let _ = self.code(&mut writer);
        writer.finish()
    }

    /// Codes the header, field by field.
    #[inline]
    pub fn code<C: Coder<'p>>(&mut self, c: &mut C) -> Step {
        let mut payload_len = (self.len() / 4 - 2) as u8;
        c.uint("Next Header", 8, &mut self.next_header)?;
        c.uint("Payload Len", 8, &mut payload_len)?;
        // A smaller value would end before the Sequence Number does.
        c.require(payload_len >= 1)?;
        c.uint("RESERVED", 16, &mut self.reserved)?;
        c.uint("Security Parameters Index (SPI)", 32, &mut self.spi)?;
        c.uint("Sequence Number Field", 32, &mut self.sequence_number)?;
        let icv = octets_of(protocol::AH, payload_len).saturating_sub(Self::LEN);
        c.slice("Integrity Check Value-ICV", icv, &mut self.icv)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::coder::Refusal;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Made by hand from RFC 4302, figure 1, with the 96-bit ICV of section 2.2: Payload Len is 4.
    const HEADER: [u8; 24] = *b"\x11\x04\0\0\x01\x02\x03\x04\0\0\0\x05abcdefghijkl";

    #[test]
    fn the_fields_lie_as_in_figure_1() {
        let header = Ah {
            next_header: protocol::UDP,
            reserved: 0,
            spi: 0x0102_0304,
            sequence_number: 5,
            icv: b"abcdefghijkl",
        };
        assert_eq!(Ah::read(&HEADER), Ok(header));
        assert_eq!(header.len(), HEADER.len());
    }

    #[test]
    fn every_truncation_is_refused() {
        for len in 0..HEADER.len() {
            assert_eq!(Ah::read(&HEADER[..len]), Err(Refusal::Malformed), "{len} octets");
        }
    }

    #[test]
    fn a_length_that_ends_before_the_sequence_number_is_malformed() {
        let mut octets = HEADER;
        octets[1] = 0;
        assert_eq!(Ah::read(&octets), Err(Refusal::Malformed));
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_was_read(mut octets in vec(any::<u8>(), 12..64), short in 0..16_u8) {
            octets[1] = short;
            if let Ok(header) = Ah::read(&octets) {
                let mut out = [0; 64];
                prop_assert_eq!(header.write(&mut out, 0), Ok(header.len()));
                prop_assert_eq!(&out[..header.len()], &octets[..header.len()]);
            }
        }

        #[test]
        fn what_is_read_is_what_was_written(
            (next_header, reserved, spi, sequence_number) in any::<(u8, u16, u32, u32)>(),
            icv in vec(any::<[u8; 4]>(), 0..=254),
        ) {
            let icv = icv.concat();
            let header = Ah { next_header, reserved, spi, sequence_number, icv: &icv };
            let mut out = [0; 1028];
            prop_assert_eq!(header.write(&mut out, 0), Ok(header.len()));
            prop_assert_eq!(Ah::read(&out), Ok(header));
        }
    }
}
