//! The IPv4 header. RFC 791, section 3.1.

use crate::checksum::checksum;
use crate::coder::{Coder, NoRoom, Refusal, Step, Writer};

/// Every field of an IPv4 header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ipv4<'p> {
    /// Type of Service; today DSCP and ECN.
    pub tos: u8,
    /// Total Length: octets of the packet from this header on.
    pub total_length: u16,
    /// Identification.
    pub identification: u16,
    /// Reserved flag; normally zero.
    pub reserved: bool,
    /// Don't Fragment.
    pub df: bool,
    /// More Fragments.
    pub mf: bool,
    /// Fragment Offset, in units of 8 octets.
    pub fragment_offset: u16,
    /// Time to Live.
    pub ttl: u8,
    /// Protocol of the header that follows.
    pub protocol: u8,
    /// Header Checksum as received, correct or not.
    pub header_checksum: u16,
    /// Source Address.
    pub source: [u8; 4],
    /// Destination Address.
    pub destination: [u8; 4],
    /// Options with their padding; a multiple of 4 octets, at most 40.
    pub options: &'p [u8],
}

impl<'p> Ipv4<'p> {
    /// Octets of a header without options.
    pub const LEN: usize = 20;

    /// Octets of the header.
    pub fn len(&self) -> usize {
        Self::LEN + self.options.len()
    }

    /// Reads a header from the start of `octets`.
    #[inline]
    pub fn read(octets: &'p [u8]) -> Step<Self> {
        let (fixed, options) = Self::split(octets)?;
        Ok(Self::of(fixed, options))
    }

    /// Splits a header at the start of `octets` into its fixed part and its options.
    #[inline(always)]
    pub(super) fn split(octets: &'p [u8]) -> Step<(&'p [u8; 20], &'p [u8])> {
        let (fixed, behind) = octets.split_first_chunk().ok_or(Refusal::Malformed)?;
        // Version 4, and an IHL of 5 to 15.
        let words = fixed[0].wrapping_sub(0x45);
        if words > 10 {
            return Err(if fixed[0] >> 4 == 4 { Refusal::Malformed } else { Refusal::NotThis });
        }
        Ok((fixed, behind.get(..usize::from(words) * 4).ok_or(Refusal::Malformed)?))
    }

    /// Returns the header of a fixed part and options.
    #[inline(always)]
    pub(super) fn of(fixed: &[u8; 20], options: &'p [u8]) -> Self {
        let &[_, tos, l, m, i, j, f, g, ttl, protocol, c, d, ref addresses @ ..] = fixed;
        let &[s, t, u, v, destination @ ..] = addresses;
        Self {
            tos,
            total_length: u16::from_be_bytes([l, m]),
            identification: u16::from_be_bytes([i, j]),
            reserved: f & 0x80 != 0,
            df: f & 0x40 != 0,
            mf: f & 0x20 != 0,
            fragment_offset: u16::from_be_bytes([f & 0x1F, g]),
            ttl,
            protocol,
            header_checksum: u16::from_be_bytes([c, d]),
            source: [s, t, u, v],
            destination,
            options,
        }
    }

    /// Writes the header from octet `at` of `out` on and returns its end.
    #[inline]
    pub fn write(mut self, out: &mut [u8], at: usize) -> Result<usize, NoRoom> {
        if self.options.is_empty() {
            // The usual header, of a constant length.
            let mut fixed = [0; 20];
            let _ = self.code(&mut Writer::new(&mut fixed, 0));
            let end = at + Self::LEN;
            out.get_mut(at..end).ok_or(NoRoom)?.copy_from_slice(&fixed);
            return Ok(end);
        }
        let mut writer = Writer::new(out, at);
        // Every value can be written.
        let _ = self.code(&mut writer);
        writer.finish()
    }

    /// Codes the header, field by field.
    #[inline(always)]
    pub fn code<C: Coder<'p>>(&mut self, c: &mut C) -> Step {
        let mut ihl = (self.len() / 4) as u8;
        c.discriminator(4, 4)?;
        c.uint("IHL", 4, &mut ihl)?;
        c.require(ihl >= 5)?;
        c.uint("Type of Service", 8, &mut self.tos)?;
        c.uint("Total Length", 16, &mut self.total_length)?;
        c.uint("Identification", 16, &mut self.identification)?;
        c.flag("reserved", &mut self.reserved)?;
        c.flag("DF", &mut self.df)?;
        c.flag("MF", &mut self.mf)?;
        c.uint("Fragment Offset", 13, &mut self.fragment_offset)?;
        c.uint("Time to Live", 8, &mut self.ttl)?;
        c.uint("Protocol", 8, &mut self.protocol)?;
        c.uint("Header Checksum", 16, &mut self.header_checksum)?;
        c.octets("Source Address", &mut self.source)?;
        c.octets("Destination Address", &mut self.destination)?;
        c.slice("Options", usize::from(ihl.saturating_sub(5)) * 4, &mut self.options)
    }

    /// Returns the correct checksum of the header in `octets`.
    pub fn checksum_of(octets: &[u8]) -> u16 {
        let head = octets.get(..10).unwrap_or_default();
        let tail = octets.get(12..).unwrap_or_default();
        crate::checksum::Sum::ZERO.octets(head).octets(tail).checksum()
    }

    /// True if the checksum of the header in `octets` equals [`checksum_of`](Self::checksum_of).
    #[inline(always)]
    pub fn checksum_is_right(octets: &[u8]) -> bool {
        // The sum of the other fields is not zero, so a correct checksum is never the other zero, 0xFFFF.
        checksum(octets) == 0 && octets.get(10..12) != Some(&[0xFF, 0xFF])
    }
}
