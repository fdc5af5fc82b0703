//! Bits into octets, the least significant one first. RFC 1951, section 3.1.1.

use alloc::vec::Vec;

/// Octets, and the bits of the one that is not full.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits {
    octets: Vec<u8>,
    open: u8,
    count: u8,
}

impl Bits {
    /// The lowest `count` bits of a number, the lowest one first. At most 16.
    pub(super) fn push(&mut self, value: u16, count: u8) {
        for bit in 0..count {
            self.open |= ((value >> bit & 1) as u8) << self.count;
            self.count += 1;
            if self.count == 8 {
                self.octets.push(self.open);
                (self.open, self.count) = (0, 0);
            }
        }
    }

    /// The lowest `count` bits of a code, the highest one first: so are Huffman codes.
    pub(super) fn push_code(&mut self, code: u16, count: u8) {
        for bit in (0..count).rev() {
            self.push(code >> bit & 1, 1);
        }
    }

    /// Octets as they are. **Nothing may be open.**
    pub(super) fn push_octets(&mut self, octets: &[u8]) {
        debug_assert_eq!(self.count, 0);
        self.octets.extend_from_slice(octets);
    }

    /// Bits that are missing until an octet is full.
    pub(super) fn missing(&self) -> u8 {
        (8 - self.count) % 8
    }

    /// All octets that are full.
    pub(super) fn into_octets(self) -> Vec<u8> {
        debug_assert_eq!(self.count, 0);
        self.octets
    }
}
