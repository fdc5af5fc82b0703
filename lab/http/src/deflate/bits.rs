//! Packs bits into octets, least significant bit first. RFC 1951, section 3.1.1.

use alloc::vec::Vec;

/// Complete octets, and the bits of the last, incomplete one.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits {
    octets: Vec<u8>,
    open: u8,
    count: u8,
}

impl Bits {
    /// Appends the lowest `count` bits of a number, lowest bit first. At most 16.
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

    /// Appends the lowest `count` bits of a code, highest bit first, as Huffman codes are written.
    pub(super) fn push_code(&mut self, code: u16, count: u8) {
        for bit in (0..count).rev() {
            self.push(code >> bit & 1, 1);
        }
    }

    /// Appends whole octets. **The last octet must be complete.**
    pub(super) fn push_octets(&mut self, octets: &[u8]) {
        debug_assert_eq!(self.count, 0);
        self.octets.extend_from_slice(octets);
    }

    /// Number of bits until the last octet is complete, 0 to 7.
    pub(super) fn missing(&self) -> u8 {
        (8 - self.count) % 8
    }

    /// Returns all complete octets.
    pub(super) fn into_octets(self) -> Vec<u8> {
        debug_assert_eq!(self.count, 0);
        self.octets
    }
}
