//! A [`Coder`] that compresses: values to octets.

use super::{Coder, Lsb, LsbSlot, Refusal, SLOTS, Step, Word};

/// The caller's buffer is too short for the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// Writes a header into a buffer.
///
/// **Offer the slots, run one format, fill in the CRC, finish.** After a refusal call [`rewind`](Self::rewind)
/// and run the next format.
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut [u8],
    start: usize,
    at: usize,
    acc: u64,
    bits: u32,
    overflow: bool,
    crc_at: usize,
    crc_width: u32,
    slots: [Lsb; SLOTS],
    sent: [u32; SLOTS],
}

impl<'o> Writer<'o> {
    /// Creates a writer that starts at octet `start` of `out`. Octets before it do not change.
    #[inline]
    pub fn new(out: &'o mut [u8], start: usize) -> Self {
        Self {
            out,
            start,
            at: start,
            acc: 0,
            bits: 0,
            overflow: false,
            crc_at: 0,
            crc_width: 0,
            slots: [Lsb { value: 0, needed: 0 }; SLOTS],
            sent: [0; SLOTS],
        }
    }

    /// Sets the value of a slot.
    #[inline]
    pub fn offer(&mut self, slot: LsbSlot, lsb: Lsb) {
        self.slots[slot.index] = lsb;
    }

    /// Discards the octets written, so that another format can be tried. Offered slots stay.
    #[inline]
    pub fn rewind(&mut self) {
        self.at = self.start;
        self.acc = 0;
        self.bits = 0;
        self.overflow = false;
        self.crc_width = 0;
        self.sent = [0; SLOTS];
    }

    /// Index of the next octet, from the start of the buffer.
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Width in bits of the CRC that the format has; 0 if it has none.
    #[inline]
    pub fn crc_width(&self) -> u32 {
        self.crc_width
    }

    /// True if the format has sent all bits that the offered slots need. A format without any place for a slot
    /// does not refuse it, so this has to be checked.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.slots.iter().zip(&self.sent).all(|(lsb, sent)| lsb.needed <= *sent)
    }

    /// Number of bits of a slot that the format has sent.
    #[inline]
    pub fn sent(&self, slot: LsbSlot) -> u32 {
        self.sent[slot.index]
    }

    /// Writes the CRC into the gap that the format has left for it.
    #[inline]
    pub fn fill_crc(&mut self, value: u8) {
        // Without room there is no gap, and the octet before belongs to the caller.
        if self.overflow || self.crc_width == 0 {
            return;
        }
        if let Some(octet) = self.out.get_mut(self.crc_at) {
            *octet |= value;
        }
    }

    /// Octets written so far, from the start of the buffer.
    #[inline]
    pub fn written(&self) -> &[u8] {
        self.out.get(..self.at).unwrap_or_default()
    }

    /// Ends the header and returns its end in the buffer.
    #[inline]
    pub fn finish(self) -> Result<usize, NoRoom> {
        debug_assert_eq!(self.bits, 0, "a header ends on an octet boundary");
        if self.overflow { Err(NoRoom) } else { Ok(self.at) }
    }

    /// Copies octets that are not part of the packet that is read.
    #[inline]
    pub fn copy(&mut self, octets: &[u8]) {
        debug_assert_eq!(self.bits, 0);
        let end = self.at + octets.len();
        match self.out.get_mut(self.at..end) {
            Some(room) => {
                room.copy_from_slice(octets);
                self.at = end;
            }
            None => self.overflow = true,
        }
    }

    #[cfg_attr(not(small), inline(always))]
    fn put(&mut self, width: u32, value: u32) {
        if width == u16::BITS && self.bits == 0 {
            // The most frequent field of more than one octet, in one piece.
            return self.copy(&(value as u16).to_be_bytes());
        }
        self.acc = self.acc << width | u64::from(value) & ((1 << width) - 1);
        self.bits += width;
        while self.bits >= 8 {
            self.bits -= 8;
            match self.out.get_mut(self.at) {
                Some(octet) => {
                    *octet = (self.acc >> self.bits) as u8;
                    self.at += 1;
                }
                None => self.overflow = true,
            }
        }
    }
}

impl<'p> Coder<'p> for Writer<'_> {
    const READS: bool = false;

    #[inline]
    fn enforce(&mut self, guard: bool) -> Step {
        if guard { Ok(()) } else { Err(Refusal::NotThis) }
    }

    #[inline]
    fn discriminator(&mut self, width: u32, pattern: u32) -> Step {
        self.put(width, pattern);
        Ok(())
    }

    #[cfg_attr(not(small), inline(always))]
    fn uint<W: Word>(&mut self, _name: &'static str, width: u32, value: &mut W) -> Step {
        self.put(width, value.to_u32());
        Ok(())
    }

    #[inline]
    fn flag(&mut self, _name: &'static str, value: &mut bool) -> Step<bool> {
        self.put(1, u32::from(*value));
        Ok(*value)
    }

    #[inline]
    fn reserved(&mut self, width: u32) -> Step {
        self.put(width, 0);
        Ok(())
    }

    #[inline]
    fn lsb(&mut self, slot: LsbSlot, width: u32, rest: u32) -> Step {
        let lsb = self.slots[slot.index];
        // The bits of an extension are less significant than those of the base header.
        let sent = &mut self.sent[slot.index];
        if lsb.needed > *sent + width + rest {
            return Err(Refusal::DoesNotFit);
        }
        *sent += width;
        self.put(width, lsb.value.checked_shr(rest).unwrap_or(0));
        Ok(())
    }

    #[inline]
    fn crc(&mut self, _name: &'static str, width: u32) -> Step {
        self.put(width, 0);
        debug_assert_eq!(self.bits, 0, "a CRC ends on an octet boundary");
        self.crc_at = self.at.wrapping_sub(1);
        self.crc_width = width;
        Ok(())
    }

    #[inline]
    fn octets<const N: usize>(&mut self, _name: &'static str, value: &mut [u8; N]) -> Step {
        self.copy(value);
        Ok(())
    }

    #[inline]
    fn slice(&mut self, _name: &'static str, len: usize, value: &mut &'p [u8]) -> Step {
        debug_assert_eq!(len, value.len());
        self.copy(value);
        Ok(())
    }
}
