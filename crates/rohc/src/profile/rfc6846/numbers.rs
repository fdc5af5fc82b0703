//! What the other side may hold of numbers that go on with every packet: sequence and acknowledgment numbers, timestamps.

/// Half of the numbers: from here on it cannot be told which of two comes first.
const HALF: u32 = 1 << 31;

/// Bounds of the last values: at least of as many as a window has, at most of twice as many, and of one if it has one.
///
/// A [`Range`](thinair_wire::range::Range) of two spans whose bounds are put together when a value comes, not when they are
/// looked at: each packet asks for them several times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// All values; none, or too many, if they are half of the numbers apart, and never more.
    low: u32,
    high: u32,
    /// The newest ones among them.
    newest: [u32; 2],
    /// How many of those there are; 0 if there is no value at all.
    filled: u8,
}

impl Numbers {
    /// No value.
    pub(super) const NONE: Self = Self { low: HALF, high: 0, newest: [HALF, 0], filled: 0 };

    /// The lowest and the highest value; half of the numbers apart if there is none, or if they may be any.
    #[inline]
    pub(super) fn bounds(&self) -> (u32, u32) {
        (self.low, self.high)
    }

    /// Adds a value that was sent with a CRC; at least the last `width` of them are kept.
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
        // With the value that comes now they are as many as the window has.
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

    /// One of the newest `newer + 1` values was acknowledged: older ones are no more.
    pub(super) fn acknowledge(&mut self, newer: usize) {
        if newer < usize::from(self.filled) {
            [self.low, self.high] = self.newest;
        }
    }
}

/// Bounds that also hold a value. Those that are half of the numbers apart stay so.
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
        /// Whatever the other side may hold is between the bounds, and nothing that is older than two windows.
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

        /// A number that stays is the only one at last.
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
