//! Values that the other side may hold of numbers that change with every packet: sequence and acknowledgment numbers,
//! timestamps.

/// Half the space: at this distance the order of two numbers is undefined.
const HALF: u32 = 1 << 31;

/// Bounds of the last values: at least as many as a window has, at most twice as many, and one if the window has one.
///
/// Like a [`Range`](thinair_wire::range::Range) of two spans whose bounds are merged when a value is added, not when they
/// are read: each packet reads them several times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// Bounds of all values. Half the space apart, and never more, if there is no value or too many.
    low: u32,
    high: u32,
    /// Bounds of the newest values.
    newest: [u32; 2],
    /// Number of the newest values; 0 if there is no value at all.
    filled: u8,
}

impl Numbers {
    /// No value.
    pub(super) const NONE: Self = Self { low: HALF, high: 0, newest: [HALF, 0], filled: 0 };

    /// Lowest and highest value; half the space apart if there is none, or if any value is possible.
    #[inline]
    pub(super) fn bounds(&self) -> (u32, u32) {
        (self.low, self.high)
    }

    /// Adds a value that was sent with a CRC. At least the last `width` values are kept.
    #[inline]
    pub(super) fn push(&mut self, value: u32, width: usize) {
        if value == self.low && value == self.high {
            return;
        }
        self.insert(value, width);
    }

    #[inline(always)]
    fn insert(&mut self, value: u32, width: usize) {
        if self.filled == 0 || width <= 1 {
            *self = Self { low: value, high: value, newest: [value; 2], filled: 1 };
            return;
        }
        // Including the added value they are as many as the window has.
        if usize::from(self.filled) + 1 >= width {
            [self.low, self.high] = self.newest;
            self.newest = [value; 2];
            self.filled = 1;
        } else {
            self.newest = with(self.newest, value);
            self.filled += 1;
        }
        [self.low, self.high] = with([self.low, self.high], value);
    }

    /// Drops values older than the newest `newer + 1`, one of which was acknowledged.
    pub(super) fn acknowledge(&mut self, newer: usize) {
        if newer < usize::from(self.filled) {
            [self.low, self.high] = self.newest;
        }
    }
}

/// Extends bounds to a value. Bounds that are half the space apart do not change.
#[inline(always)]
fn with([low, high]: [u32; 2], value: u32) -> [u32; 2] {
    let (span, ahead) = (high.wrapping_sub(low), value.wrapping_sub(low));
    if (span | ahead) < HALF {
        [low, low.wrapping_add(span.max(ahead))]
    } else if span >= HALF {
        [low, high]
    } else if high.wrapping_sub(value) < HALF {
        [value, high]
    } else {
        [high.wrapping_sub(HALF), high]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn step() -> impl Strategy<Value = u32> {
        prop_oneof![6 => 0..3_000_u32, 1 => (0..9_000_u32).prop_map(u32::wrapping_neg), 1 => any::<u32>()]
    }

    #[test]
    fn a_window_of_one_holds_the_last_value() {
        let mut numbers = Numbers::NONE;
        for value in [5, 900, 7, u32::MAX] {
            numbers.push(value, 1);
            assert_eq!(numbers.bounds(), (value, value));
        }
    }

    proptest! {
        /// All values that the other side may hold are within the bounds, and none is older than two windows.
        #[test]
        fn the_last_values_are_between_the_bounds(
            width in 1..17_usize,
            first: u32,
            steps in proptest::collection::vec((step(), 0..40_usize), 0..80),
        ) {
            let (mut numbers, mut value) = (Numbers::NONE, first);
            let is_known = |(low, high): (u32, u32)| high.wrapping_sub(low) < HALF;
            prop_assert!(!is_known(numbers.bounds()));
            let mut kept = std::vec::Vec::new();
            for (step, acked) in steps {
                value = value.wrapping_add(step);
                numbers.push(value, width);
                kept.push(value);
                if acked < kept.len().min(3) {
                    numbers.acknowledge(acked);
                    kept.drain(..kept.len() - acked - 1);
                }
                kept.drain(..kept.len().saturating_sub(width));
                let (low, high) = numbers.bounds();
                prop_assert!(high.wrapping_sub(low) <= HALF);
                if is_known((low, high)) {
                    for value in &kept {
                        prop_assert!(value.wrapping_sub(low) <= high.wrapping_sub(low));
                    }
                }
            }
        }

        /// A number that does not change is the only one at last.
        #[test]
        fn what_is_too_old_is_forgotten(width in 1..17_usize, before: u32, now: u32) {
            let mut numbers = Numbers::NONE;
            numbers.push(before, width);
            (0..2 * width).for_each(|_| numbers.push(now, width));
            prop_assert_eq!(numbers.bounds(), (now, now));
        }
    }

    #[test]
    fn an_acknowledged_number_leaves_nothing_older() {
        let mut numbers = Numbers::NONE;
        (0..9).for_each(|i| numbers.push(100 * i, 4));
        numbers.acknowledge(1);
        assert_eq!(numbers.bounds(), (600, 800));
    }
}
