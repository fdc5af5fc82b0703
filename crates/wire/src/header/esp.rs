//! The ESP header: the fields in clear before the payload. RFC 4303, section 2.
//!
//! The trailer (padding, Next Header, ICV) is encrypted or at the end of the packet, and is payload here.

use crate::coder::{Coder, NoRoom, Reader, Step, Writer};

/// Every field of an ESP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Esp {
    /// Security Parameters Index; 1 to 255 are reserved, 0 is never sent.
    pub spi: u32,
    /// Sequence Number; with extended sequence numbers its low-order 32 bits.
    pub sequence_number: u32,
}

impl Esp {
    /// Octets of the header.
    pub const LEN: usize = 8;

    /// Reads a header from the start of `octets`.
    pub fn read(octets: &[u8]) -> Step<Self> {
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
    pub fn code<'p, C: Coder<'p>>(&mut self, c: &mut C) -> Step {
        c.uint("Security Parameters Index (SPI)", 32, &mut self.spi)?;
        c.uint("Sequence Number", 32, &mut self.sequence_number)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::coder::Refusal;
    use proptest::prelude::*;

    /// Made by hand from RFC 4303, figure 1.
    const HEADER: [u8; 8] = *b"\x01\x02\x03\x04\0\0\x01\0";

    #[test]
    fn the_fields_lie_as_in_figure_1() {
        assert_eq!(Esp::read(&HEADER), Ok(Esp { spi: 0x0102_0304, sequence_number: 256 }));
    }

    #[test]
    fn every_truncation_is_refused() {
        for len in 0..HEADER.len() {
            assert_eq!(Esp::read(&HEADER[..len]), Err(Refusal::Malformed), "{len} octets");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_was_read(octets: [u8; Esp::LEN]) {
            let header = Esp::read(&octets).unwrap();
            let mut out = [0; Esp::LEN];
            prop_assert_eq!(header.write(&mut out, 0), Ok(Esp::LEN));
            prop_assert_eq!(out, octets);
        }

        #[test]
        fn what_is_read_is_what_was_written(spi: u32, sequence_number: u32) {
            let header = Esp { spi, sequence_number };
            let mut out = [0; Esp::LEN];
            header.write(&mut out, 0).unwrap();
            prop_assert_eq!(Esp::read(&out), Ok(header));
        }
    }
}
