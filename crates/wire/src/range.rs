//! What a window of reference candidates spans, in less room than the window. RFC 3095, section 4.5.2.

use crate::lsb::{self, Shift};
use crate::serial::Serial;

/// Spans that a range is divided into.
const SPANS: usize = 4;

/// The lowest and the highest of the values that the other side may hold as its reference.
///
/// A [`Window`](crate::window::Window) keeps every candidate; a range keeps the bounds of four spans of them, and
/// gives up a span at a time. So it may take a value for a candidate that is one no more, which can only cost bits: of
/// 2 to 4 candidates it keeps exactly so many, of 16 it keeps 16 to 20.
#[derive(Clone, Copy, Debug)]
pub struct Range<S> {
    low: [S; SPANS],
    high: [S; SPANS],
    /// The span that grows.
    newest: u8,
    /// Values in it.
    filled: u8,
    /// Spans with values.
    used: u8,
    /// All spans are there, and all values are one.
    same: bool,
}

impl<S: Serial> Default for Range<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Serial> Range<S> {
    /// A range of no candidate.
    pub fn new() -> Self {
        let zero = S::default();
        Self { low: [zero; SPANS], high: [zero; SPANS], newest: 0, filled: 0, used: 0, same: false }
    }

    /// Whether there is no candidate: nothing was sent yet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Forgets every candidate.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Adds a value that was sent with a CRC; at least the last `width` of them are kept.
    #[inline]
    pub fn push(&mut self, value: S, width: usize) {
        if self.same && value == self.low[usize::from(self.newest) % SPANS] {
            return;
        }
        self.insert(value, width);
    }

    fn insert(&mut self, value: S, width: usize) {
        // With one value in the newest span, the older ones must make up for the rest.
        let span = width.saturating_sub(1).div_ceil(SPANS - 1).max(1);
        let mut at = usize::from(self.newest) % SPANS;
        if self.used == 0 || usize::from(self.filled) >= span {
            at = (at + 1) % SPANS;
            self.newest = at as u8;
            self.filled = 0;
            self.used = (self.used + 1).min(SPANS as u8);
            self.low[at] = value;
            self.high[at] = value;
        } else if value.is_before(self.low[at]) {
            self.low[at] = value;
        } else if self.high[at].is_before(value) {
            self.high[at] = value;
        }
        self.filled = self.filled.saturating_add(1);
        self.same =
            usize::from(self.used) == SPANS && self.low.iter().chain(&self.high).all(|bound| *bound == value);
    }

    /// One of the newest `newer + 1` values was acknowledged: older ones are candidates no more.
    pub fn acknowledge(&mut self, newer: usize, width: usize) {
        let span = width.saturating_sub(1).div_ceil(SPANS - 1).max(1);
        let behind = (newer + 1).saturating_sub(usize::from(self.filled)).div_ceil(span);
        let used = usize::from(self.used).min(1 + behind) as u8;
        if used < self.used && !self.same {
            self.used = used;
        }
    }

    /// Bits of `value` that are enough whichever candidate the other side holds; the whole width if there is no
    /// candidate.
    #[inline]
    pub fn needed_bits(&self, value: S, shift: Shift) -> u32 {
        let at = usize::from(self.newest) % SPANS;
        if self.same {
            return lsb::needed_bits(value, self.low[at], shift);
        }
        self.needed_bits_of_all(value, shift)
    }

    fn needed_bits_of_all(&self, value: S, shift: Shift) -> u32 {
        let mut needed = if self.used == 0 { S::BITS } else { 0 };
        for back in 0..usize::from(self.used) {
            let at = (usize::from(self.newest) + SPANS - back) % SPANS;
            let (low, high) = (self.low[at], self.high[at]);
            needed = needed.max(lsb::needed_bits(value, low, shift));
            if high != low {
                needed = needed.max(lsb::needed_bits(value, high, shift));
                // Bounds of half the space or more say nothing of what lies between.
                if high.since(low) >= 1 << (S::BITS - 1) {
                    needed = S::BITS;
                }
            }
        }
        needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn of_four_candidates_exactly_four_are_kept() {
        let mut range = Range::new();
        assert_eq!(range.needed_bits(7_u16, Shift::Zero), 16);
        for value in [100_u16, 7, 7, 7, 7] {
            range.push(value, 4);
        }
        assert_eq!(range.needed_bits(7, Shift::Zero), 0);
        range.push(8, 4);
        assert_eq!(range.needed_bits(8, Shift::Zero), 1);
        range.acknowledge(0, 4);
        assert_eq!(range.needed_bits(8, Shift::Zero), 0);
    }

    proptest! {
        /// The bits that a range asks for are enough for each of the last `width` values.
        #[test]
        fn every_candidate_is_covered(
            values in proptest::collection::vec(prop_oneof![any::<u16>(), 0_u16..40, 65_500_u16..=65_535], 1..60),
            width in 1_usize..=16,
            value: u16,
            newer in proptest::option::of(0_usize..6),
        ) {
            let mut range = Range::new();
            let mut candidates = Vec::new();
            for (i, &v) in values.iter().enumerate() {
                range.push(v, width);
                candidates.push(v);
                if let (true, Some(newer)) = (i == values.len() / 2, newer) {
                    range.acknowledge(newer, width);
                    candidates.drain(..candidates.len().saturating_sub(newer + 1));
                }
                candidates.drain(..candidates.len().saturating_sub(width));
            }
            for shift in [Shift::Zero, Shift::MinusOne, Shift::Ts, Shift::Sn] {
                let k = range.needed_bits(value, shift);
                for &reference in &candidates {
                    let bits = u32::from(value) & ((1_u64 << k) - 1) as u32;
                    prop_assert_eq!(lsb::decode(bits, k, reference, shift), value, "{} from {}", k, reference);
                }
            }
        }
    }
}
