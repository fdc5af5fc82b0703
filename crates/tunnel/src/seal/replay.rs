//! Counters that were there already: a window of 2,048 behind the highest one, as RFC 6479 slides it.
//!
//! **Only what was opened may be [marked](Window::mark)**: a forger must not move the window.

/// Counters behind the highest one that may still come.
pub(super) const WINDOW: u64 = 2_048;
const BITS: u64 = u64::BITS as u64;
/// A word more than the window, so that words are cleared as a whole when the window moves into them.
const WORDS: usize = (WINDOW / BITS) as usize + 1;

/// Why a counter is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It was there.
    Twice,
    /// It is behind the window; nobody knows whether it was there.
    TooOld,
}

/// The window.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// One more than the highest counter that was there.
    next: u64,
    /// Counters below this one are refused: where the window began.
    floor: u64,
    seen: [u64; WORDS],
}

impl Window {
    /// Nothing was there, and what is below `floor` is refused.
    pub(super) fn new(floor: u64) -> Self {
        Self { next: floor, floor, seen: [0; WORDS] }
    }

    /// One more than the highest counter that was there.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Refuses what is below `floor` from now on, and expects what is not.
    pub(super) fn raise(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
        if floor > self.next {
            self.advance(floor);
        }
    }

    /// The counter whose lowest 16 bits are `low`: the lowest one that the window does not refuse as too old. So up to
    /// 63,487 lost packets do no harm.
    pub(super) fn complete(&self, low: u16) -> u64 {
        let oldest = self.next.saturating_sub(WINDOW);
        let ahead = low.wrapping_sub(oldest as u16);
        // Beyond the end of counters: refused when it is opened.
        oldest.saturating_add(u64::from(ahead))
    }

    /// Whether `counter` may be opened.
    pub(super) fn check(&self, counter: u64) -> Result<(), Seen> {
        if counter < self.floor || counter == u64::MAX {
            return Err(Seen::TooOld);
        }
        if counter >= self.next {
            return Ok(());
        }
        if self.next - counter > WINDOW {
            return Err(Seen::TooOld);
        }
        let (word, bit) = place(counter);
        if self.seen[word] & bit == 0 { Ok(()) } else { Err(Seen::Twice) }
    }

    /// `counter` was checked and opened. Whether it is the highest one yet.
    pub(super) fn mark(&mut self, counter: u64) -> bool {
        let newest = counter >= self.next;
        if newest {
            self.advance(counter + 1);
        }
        let (word, bit) = place(counter);
        self.seen[word] |= bit;
        newest
    }

    fn advance(&mut self, next: u64) {
        // The word of `self.next - 1` is in use. Those behind it come into use.
        let used = self.next.div_ceil(BITS);
        let needed = next.div_ceil(BITS);
        for word in used..needed.min(used.saturating_add(WORDS as u64)) {
            self.seen[(word % WORDS as u64) as usize] = 0;
        }
        self.next = next;
    }
}

fn place(counter: u64) -> (usize, u64) {
    ((counter / BITS % WORDS as u64) as usize, 1 << (counter % BITS))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_there_is_refused_and_what_was_not_is_not() {
        let mut window = Window::new(0);
        for counter in [0, 5, 2_047, 2_048] {
            assert_eq!(window.check(counter), Ok(()), "{counter}");
            window.mark(counter);
            assert_eq!(window.check(counter), Err(Seen::Twice), "{counter}");
        }
        assert_eq!(window.check(1), Ok(()), "2,048 counters up to 2,048");
        assert_eq!(window.check(0), Err(Seen::TooOld));
        assert_eq!(window.check(u64::MAX), Err(Seen::TooOld));
    }

    #[test]
    fn low_bits_are_completed_from_the_window_upwards() {
        let mut window = Window::new(0);
        assert_eq!(window.complete(0xffff), 0xffff);
        window.mark(0x1_0000);
        assert_eq!(window.complete(0xf801), 0xf801, "the oldest one of the window");
        assert_eq!(window.complete(0xf800), 0x1_f800, "63,487 ahead");
        assert_eq!(window.complete(0), 0x1_0000);
    }

    #[test]
    fn a_raised_floor_refuses_what_is_below() {
        let mut window = Window::new(0);
        window.mark(10);
        window.raise(100);
        assert_eq!(window.check(99), Err(Seen::TooOld));
        assert_eq!(window.check(100), Ok(()));
        window.raise(50);
        assert_eq!(window.check(99), Err(Seen::TooOld));
    }

    proptest! {
        /// Held against a set of all counters that were there.
        #[test]
        fn agrees_with_a_set(floor in 0_u64..3_000, steps in prop::collection::vec(0_u64..3_000, 1..400), scale in 1_u64..200) {
            let mut window = Window::new(floor);
            let (mut there, mut next) = (BTreeSet::new(), floor);
            for (i, step) in steps.iter().enumerate() {
                let counter = floor.saturating_sub(100) + i as u64 * scale + step;
                let fits = counter >= floor && counter + WINDOW >= next && !there.contains(&counter);
                prop_assert_eq!(window.check(counter).is_ok(), fits, "{} of {}", counter, next);
                if fits {
                    prop_assert_eq!(window.mark(counter), counter >= next);
                    there.insert(counter);
                    next = next.max(counter + 1);
                }
                prop_assert_eq!(window.next(), next);
            }
        }
    }
}
