//! A [`Coder`] that decompresses: octets to values.

use super::{Coder, LsbSlot, Refusal, SLOTS, Step, Word};

/// Reads a header.
///
/// The first octet is given apart from the rest, because a large CID stands between them (RFC 5795, section
/// 5.2.1.3) and formats do not depend on it. A reader is `Copy`, so that another format can start from a
/// copy.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'p> {
    pub(super) rest: &'p [u8],
    pub(super) at: usize,
    acc: u64,
    bits: u32,
    crc_width: u32,
    crc: u8,
    slots: [(u32, u32); SLOTS],
}

impl<'p> Reader<'p> {
    /// Creates a reader of a header whose first octet is `first` and whose other octets are at the start of
    /// `rest`.
    #[inline]
    pub fn new(first: u8, rest: &'p [u8]) -> Self {
        Self { rest, at: 0, acc: u64::from(first), bits: 8, crc_width: 0, crc: 0, slots: [(0, 0); SLOTS] }
    }

    /// Creates a reader of a header at the start of `octets`.
    #[inline]
    pub fn contiguous(octets: &'p [u8]) -> Self {
        Self { rest: octets, at: 0, acc: 0, bits: 0, crc_width: 0, crc: 0, slots: [(0, 0); SLOTS] }
    }

    /// Returns the bits of a slot that were read, right-aligned, and their number.
    #[inline]
    pub fn collected(&self, slot: LsbSlot) -> (u32, u32) {
        self.slots[slot.index]
    }

    /// Returns width and value of the CRC that was read, if the format has one.
    #[inline]
    pub fn crc_read(&self) -> Option<(u32, u8)> {
        (self.crc_width > 0).then_some((self.crc_width, self.crc))
    }

    /// Number of octets read from `rest`.
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Octets behind the header: those of `rest` that were not read.
    #[inline]
    pub fn remaining(&self) -> &'p [u8] {
        self.rest.get(self.at..).unwrap_or_default()
    }

    #[cfg_attr(not(small), inline(always))]
    fn take(&mut self, width: u32) -> Step<u32> {
        while self.bits < width {
            let Some(&octet) = self.rest.get(self.at) else {
                return Err(Refusal::Malformed);
            };
            self.at += 1;
            self.acc = self.acc << 8 | u64::from(octet);
            self.bits += 8;
        }
        self.bits -= width;
        Ok((self.acc >> self.bits & ((1 << width) - 1)) as u32)
    }

    #[cfg_attr(not(small), inline(always))]
    fn take_octets(&mut self, len: usize) -> Step<&'p [u8]> {
        debug_assert_eq!(self.bits, 0, "octets are read on an octet boundary");
        let octets =
            self.at.checked_add(len).and_then(|end| self.rest.get(self.at..end)).ok_or(Refusal::Malformed)?;
        self.at += len;
        Ok(octets)
    }
}

impl<'p> Coder<'p> for Reader<'p> {
    const READS: bool = true;

    #[inline]
    fn enforce(&mut self, guard: bool) -> Step {
        if guard { Ok(()) } else { Err(Refusal::NotThis) }
    }

    #[inline]
    fn discriminator(&mut self, width: u32, pattern: u32) -> Step {
        if self.take(width)? == pattern { Ok(()) } else { Err(Refusal::NotThis) }
    }

    #[cfg_attr(not(small), inline(always))]
    fn uint<W: Word>(&mut self, _name: &'static str, width: u32, value: &mut W) -> Step {
        *value = W::from_u32(self.take(width)?);
        Ok(())
    }

    #[inline]
    fn flag(&mut self, _name: &'static str, value: &mut bool) -> Step<bool> {
        *value = self.take(1)? == 1;
        Ok(*value)
    }

    #[inline]
    fn reserved(&mut self, width: u32) -> Step {
        self.take(width)?;
        Ok(())
    }

    #[inline]
    fn lsb(&mut self, slot: LsbSlot, width: u32, _rest: u32) -> Step {
        let bits = self.take(width)?;
        let (value, count) = &mut self.slots[slot.index];
        *value = value.checked_shl(width).unwrap_or(0) | bits;
        *count += width;
        Ok(())
    }

    #[inline]
    fn crc(&mut self, _name: &'static str, width: u32) -> Step {
        self.crc = self.take(width)? as u8;
        self.crc_width = width;
        Ok(())
    }

    #[inline]
    fn octets<const N: usize>(&mut self, _name: &'static str, value: &mut [u8; N]) -> Step {
        value.copy_from_slice(self.take_octets(N)?);
        Ok(())
    }

    #[inline]
    fn slice(&mut self, _name: &'static str, len: usize, value: &mut &'p [u8]) -> Step {
        *value = self.take_octets(len)?;
        Ok(())
    }
}
