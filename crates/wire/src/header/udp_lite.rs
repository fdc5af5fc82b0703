//! The UDP-Lite header. RFC 3828, section 3.

use crate::coder::{Coder, NoRoom, Reader, Step, Writer};

/// Every field of a UDP-Lite header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpLite {
    /// Source Port.
    pub source_port: u16,
    /// Destination Port.
    pub destination_port: u16,
    /// Checksum Coverage: octets from this header on that the checksum covers. 0 for the whole packet; a
    /// receiver drops packets with 1 to 7.
    pub checksum_coverage: u16,
    /// Checksum as received; a receiver drops packets with 0.
    pub checksum: u16,
}

impl UdpLite {
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
        c.uint("Source Port", 16, &mut self.source_port)?;
        c.uint("Destination Port", 16, &mut self.destination_port)?;
        c.uint("Checksum Coverage", 16, &mut self.checksum_coverage)?;
        c.uint("Checksum", 16, &mut self.checksum)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::coder::Refusal;
    use proptest::prelude::*;

    /// Made by hand from RFC 3828, figure 1.
    const HEADER: [u8; 8] = *b"\xe0\x01\x16\x33\0\x08\x12\x34";

    #[test]
    fn the_fields_lie_as_in_figure_1() {
        let header =
            UdpLite { source_port: 0xE001, destination_port: 5683, checksum_coverage: 8, checksum: 0x1234 };
        assert_eq!(UdpLite::read(&HEADER), Ok(header));
    }

    #[test]
    fn every_truncation_is_refused() {
        for len in 0..HEADER.len() {
            assert_eq!(UdpLite::read(&HEADER[..len]), Err(Refusal::Malformed), "{len} octets");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_was_read(octets: [u8; UdpLite::LEN]) {
            let header = UdpLite::read(&octets).unwrap();
            let mut out = [0; UdpLite::LEN];
            prop_assert_eq!(header.write(&mut out, 0), Ok(UdpLite::LEN));
            prop_assert_eq!(out, octets);
        }

        #[test]
        fn what_is_read_is_what_was_written(a: u16, b: u16, coverage: u16, checksum: u16) {
            let header = UdpLite {
                source_port: a, destination_port: b, checksum_coverage: coverage, checksum,
            };
            let mut out = [0; UdpLite::LEN];
            header.write(&mut out, 0).unwrap();
            prop_assert_eq!(UdpLite::read(&out), Ok(header));
        }
    }
}
