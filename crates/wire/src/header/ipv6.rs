//! The IPv6 header. RFC 8200, section 3.

use crate::coder::{Coder, NoRoom, Refusal, Step, Writer};

/// Every field of an IPv6 header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ipv6 {
    /// Traffic Class: DSCP and ECN.
    pub traffic_class: u8,
    /// Flow Label, 20 bits.
    pub flow_label: u32,
    /// Payload Length: octets after this header.
    pub payload_length: u16,
    /// Protocol of the header that follows.
    pub next_header: u8,
    /// Hop Limit.
    pub hop_limit: u8,
    /// Source Address.
    pub source: [u8; 16],
    /// Destination Address.
    pub destination: [u8; 16],
}

impl Ipv6 {
    /// Octets of the header.
    pub const LEN: usize = 40;

    /// Reads a header from the start of `octets`.
    #[inline]
    pub fn read(octets: &[u8]) -> Step<Self> {
        let fixed = octets.first_chunk::<{ Self::LEN }>().ok_or(Refusal::Malformed)?;
        if fixed[0] >> 4 == 6 { Ok(Self::of(fixed)) } else { Err(Refusal::NotThis) }
    }

    /// Returns the header in these octets.
    #[inline(always)]
    pub(super) fn of(octets: &[u8; Self::LEN]) -> Self {
        let &[a, b, c, d, l, m, next_header, hop_limit, ref addresses @ ..] = octets;
        let (source, destination) = addresses.split_at(16);
        let first = u32::from_be_bytes([a, b, c, d]);
        Self {
            traffic_class: (first >> 20) as u8,
            flow_label: first & 0xF_FFFF,
            payload_length: u16::from_be_bytes([l, m]),
            next_header,
            hop_limit,
            source: source.try_into().unwrap_or_default(),
            destination: destination.try_into().unwrap_or_default(),
        }
    }

    /// Writes the header from octet `at` of `out` on and returns its end.
    #[inline]
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
        c.discriminator(4, 6)?;
        c.uint("Traffic Class", 8, &mut self.traffic_class)?;
        c.uint("Flow Label", 20, &mut self.flow_label)?;
        c.uint("Payload Length", 16, &mut self.payload_length)?;
        c.uint("Next Header", 8, &mut self.next_header)?;
        c.uint("Hop Limit", 8, &mut self.hop_limit)?;
        c.octets("Source Address", &mut self.source)?;
        c.octets("Destination Address", &mut self.destination)
    }
}
