//! Sliding windows of reference candidates for W-LSB encoding. RFC 3095, section 4.5.2.

use crate::lsb::{self, Shift};
use crate::serial::Serial;

/// Largest number of candidates in a window.
pub const CAPACITY: usize = 16;

/// Values that the other side may hold as its reference, oldest first.
///
/// Only the serial minimum and maximum decide how many bits a value needs. Both are stored, so that a query does
/// not visit the window; they are searched for only when one of them is dropped.
#[derive(Clone, Copy, Debug)]
pub struct Window<S> {
    values: [S; CAPACITY],
    min: S,
    max: S,
    head: u8,
    len: u8,
    /// The values span half the space or more, so that minimum and maximum are meaningless.
    wide: bool,
    /// No value is before an older one, so that the oldest is the minimum: counters and constants.
    ascends: bool,
}

impl<S: Serial> Default for Window<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Serial> Window<S> {
    /// Creates an empty window.
    pub fn new() -> Self {
        let zero = S::default();
        Self { values: [zero; CAPACITY], min: zero, max: zero, head: 0, len: 0, wide: false, ascends: true }
    }

    /// Number of candidates, 0 to [`CAPACITY`].
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// True if there is no candidate: nothing was sent yet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes every candidate.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Adds a value that was sent with a CRC, and drops the oldest beyond `width` (1 to [`CAPACITY`]).
    #[inline]
    pub fn push(&mut self, value: S, width: usize) {
        let width = width.clamp(1, CAPACITY);
        if self.len() == width && !self.wide && self.min == self.max && value == self.max {
            // All values equal this one, so nothing would change.
            return;
        }
        if self.ascends && self.len() == width && width > 1 && self.push_above(value) {
            return;
        }
        if self.len() >= width {
            self.drop_oldest(self.len() - width + 1);
        }
        let at = (usize::from(self.head) + self.len()) % CAPACITY;
        self.values[at] = value;
        self.len += 1;
        if self.len == 1 {
            self.min = value;
            self.max = value;
            self.wide = false;
            self.ascends = true;
        } else {
            self.widen(value);
        }
    }

    /// Puts a value in place of the oldest one, which is the lowest, if it is not below the highest one.
    #[inline]
    fn push_above(&mut self, value: S) -> bool {
        let head = (usize::from(self.head) + 1) % CAPACITY;
        let min = self.values[head];
        let above = value.since(min);
        let is_above = above < 1 << (S::BITS - 1) && above >= self.max.since(min);
        if is_above {
            self.values[(usize::from(self.head) + self.len()) % CAPACITY] = value;
            (self.head, self.min, self.max) = (head as u8, min, value);
        }
        is_above
    }

    /// Drops the `count` oldest candidates.
    #[inline]
    pub fn drop_oldest(&mut self, count: usize) {
        let count = count.min(self.len());
        if self.ascends {
            self.head = (self.head + count as u8) % CAPACITY as u8;
            self.len -= count as u8;
            self.min = self.values[usize::from(self.head)];
            return;
        }
        let mut was_bound = self.wide;
        for _ in 0..count {
            let gone = self.values[usize::from(self.head)];
            was_bound |= gone == self.min || gone == self.max;
            self.head = (self.head + 1) % CAPACITY as u8;
            self.len -= 1;
        }
        if was_bound && (self.wide || self.min != self.max) {
            self.find_bounds();
        }
    }

    /// The candidates, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = S> + '_ {
        (0..self.len()).map(|i| self.values[(usize::from(self.head) + i) % CAPACITY])
    }

    /// The newest candidate.
    #[inline]
    pub fn newest(&self) -> Option<S> {
        let last = self.len().checked_sub(1)?;
        Some(self.values[(usize::from(self.head) + last) % CAPACITY])
    }

    /// Lowest and highest candidate, in serial order; `None` if there is none, or they span half the space or
    /// more.
    #[inline]
    pub fn bounds(&self) -> Option<(S, S)> {
        (!self.is_empty() && !self.wide).then_some((self.min, self.max))
    }

    /// Number of bits of `value` that are enough for every candidate; the whole width if there is no candidate.
    #[inline]
    pub fn needed_bits(&self, value: S, shift: Shift) -> u32 {
        if self.is_empty() || self.wide {
            return S::BITS;
        }
        let from_max = lsb::needed_bits(value, self.max, shift);
        if self.min == self.max {
            return from_max;
        }
        from_max.max(lsb::needed_bits(value, self.min, shift))
    }

    #[inline]
    fn widen(&mut self, value: S) {
        if self.wide {
            return;
        }
        let half = 1 << (S::BITS - 1);
        let above = value.since(self.min);
        if above < half {
            if above >= self.max.since(self.min) {
                self.max = value;
            } else {
                self.ascends = false;
            }
        } else {
            self.ascends = false;
            if self.max.since(value) < half {
                self.min = value;
            } else {
                self.wide = true;
            }
        }
    }

    fn find_bounds(&mut self) {
        self.wide = false;
        self.ascends = true;
        for i in 0..self.len() {
            let value = self.values[(usize::from(self.head) + i) % CAPACITY];
            if i == 0 {
                self.min = value;
                self.max = value;
            } else {
                self.widen(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_window_needs_the_whole_value() {
        assert_eq!(Window::<u16>::new().needed_bits(7, Shift::Zero), 16);
    }

    #[test]
    fn an_acknowledgment_narrows_the_window() {
        let mut window = Window::new();
        for sn in 100_u16..110 {
            window.push(sn, 16);
        }
        assert_eq!(window.needed_bits(120, Shift::MinusOne), 5);
        window.drop_oldest(9);
        assert_eq!(window.needed_bits(120, Shift::MinusOne), 4);
        assert_eq!(window.newest(), Some(109));
    }

    proptest! {
        /// The result from minimum and maximum holds for every candidate.
        #[test]
        fn every_candidate_is_covered(
            values in proptest::collection::vec(prop_oneof![any::<u16>(), 0_u16..40, 65_500_u16..=65_535], 1..60),
            width in 1_usize..=16,
            value: u16,
            acked in 0_usize..4,
        ) {
            let mut window = Window::new();
            for (i, &v) in values.iter().enumerate() {
                window.push(v, width);
                if i == values.len() / 2 {
                    window.drop_oldest(acked);
                }
            }
            for shift in [Shift::Zero, Shift::MinusOne] {
                let k = window.needed_bits(value, shift);
                for reference in window.iter() {
                    let bits = u32::from(value) & ((1_u64 << k) - 1) as u32;
                    prop_assert_eq!(lsb::decode(bits, k, reference, shift), value);
                }
            }
        }
    }
}
