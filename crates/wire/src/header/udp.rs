//! The UDP header. RFC 768.

use crate::coder::{Coder, NoRoom, Refusal, Step, Writer};

/// Every field of a UDP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Udp {
    /// Source Port.
    pub source_port: u16,
    /// Destination Port.
    pub destination_port: u16,
    /// Length: octets of header and payload.
    pub length: u16,
    /// Checksum as received; 0 if none was computed.
    pub checksum: u16,
}

impl Udp {
    /// Octets of the header.
    pub const LEN: usize = 8;

    /// Reads a header from the start of `octets`.
    #[inline]
    pub fn read(octets: &[u8]) -> Step<Self> {
        octets.first_chunk().map(Self::of).ok_or(Refusal::Malformed)
    }

    /// Returns the header in these octets.
    #[inline(always)]
    pub(super) fn of(&[s, t, d, e, l, m, b, c]: &[u8; Self::LEN]) -> Self {
        Self {
            source_port: u16::from_be_bytes([s, t]),
            destination_port: u16::from_be_bytes([d, e]),
            length: u16::from_be_bytes([l, m]),
            checksum: u16::from_be_bytes([b, c]),
        }
    }

    /// Writes the header from octet `at` of `out` on and returns its end.
    #[inline(always)]
    pub fn write(mut self, out: &mut [u8], at: usize) -> Result<usize, NoRoom> {
        let mut fixed = [0; Self::LEN];
        // Every value can be written.
        let _ = self.code(&mut Writer::new(&mut fixed, 0));
        let end = at + Self::LEN;
        out.get_mut(at..end).ok_or(NoRoom)?.copy_from_slice(&fixed);
        Ok(end)
    }

    /// Codes the header, field by field.
    #[inline(always)]
    pub fn code<'p, C: Coder<'p>>(&mut self, c: &mut C) -> Step {
        c.uint("Source Port", 16, &mut self.source_port)?;
        c.uint("Destination Port", 16, &mut self.destination_port)?;
        c.uint("Length", 16, &mut self.length)?;
        c.uint("Checksum", 16, &mut self.checksum)
    }
}
