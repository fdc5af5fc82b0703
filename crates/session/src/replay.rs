//! Replay protection: a sliding window of 2,048 counters below the highest one (RFC 6479).
//!
//! **Only counters of authentic datagrams may be [marked](Window::mark)**: a forger must not move the window.

/// Size of the window: counters below the highest one that are still accepted.
pub(super) const WINDOW: u64 = 2_048;
const BITS: u64 = u64::BITS as u64;
/// One word more than the window, so that whole words are cleared when the window moves into them.
const WORDS: usize = (WINDOW / BITS) as usize + 1;

/// Reason why a counter is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplayError {
    /// It was accepted before.
    Twice,
    /// It is below the window, so earlier acceptance is unknown.
    TooOld,
}

/// The window.
#[derive(Clone, Debug)]
pub(super) struct ReplayWindow {
    /// Highest counter accepted, plus one.
    next: u64,
    /// Counters below this one are rejected.
    floor: u64,
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// Returns an empty window that rejects counters below `floor`.
    pub(super) fn new(floor: u64) -> Self {
        Self { next: floor, floor, seen: [0; WORDS] }
    }

    /// Highest counter accepted, plus one.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Rejects counters below `floor` from now on, and continues from there.
    pub(super) fn raise(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
        if floor > self.next {
            self.advance(floor);
        }
    }

    /// Completes a counter from its lowest 16 bits: returns the lowest one that the window does not reject as
    /// too old. Up to 63,487 consecutive losses are thus harmless.
    pub(super) fn complete(&self, low: u16) -> u64 {
        let oldest = self.next.saturating_sub(WINDOW);
        let ahead = low.wrapping_sub(oldest as u16);
        // Beyond the end of counters: rejected by decryption.
        oldest.saturating_add(u64::from(ahead))
    }

    /// Checks if `counter` may be accepted.
    pub(super) fn check(&self, counter: u64) -> Result<(), ReplayError> {
        if counter < self.floor || counter == u64::MAX {
            return Err(ReplayError::TooOld);
        }
        if counter >= self.next {
            return Ok(());
        }
        if self.next - counter > WINDOW {
            return Err(ReplayError::TooOld);
        }
        let (word, bit) = place(counter);
        if self.seen[word] & bit == 0 { Ok(()) } else { Err(ReplayError::Twice) }
    }

    /// Marks a counter that was checked and authenticated. Returns true if it is the highest one so far.
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
        // The word of `self.next - 1` is in use. The following ones become used.
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
        let mut window = ReplayWindow::new(0);
        for counter in [0, 5, 2_047, 2_048] {
            assert_eq!(window.check(counter), Ok(()), "{counter}");
            window.mark(counter);
            assert_eq!(window.check(counter), Err(ReplayError::Twice), "{counter}");
        }
        assert_eq!(window.check(1), Ok(()), "2,048 counters up to 2,048");
        assert_eq!(window.check(0), Err(ReplayError::TooOld));
        assert_eq!(window.check(u64::MAX), Err(ReplayError::TooOld));
    }

    #[test]
    fn low_bits_are_completed_from_the_window_upwards() {
        let mut window = ReplayWindow::new(0);
        assert_eq!(window.complete(0xffff), 0xffff);
        window.mark(0x1_0000);
        assert_eq!(window.complete(0xf801), 0xf801, "the oldest one of the window");
        assert_eq!(window.complete(0xf800), 0x1_f800, "63,487 ahead");
        assert_eq!(window.complete(0), 0x1_0000);
    }

    #[test]
    fn a_raised_floor_refuses_what_is_below() {
        let mut window = ReplayWindow::new(0);
        window.mark(10);
        window.raise(100);
        assert_eq!(window.check(99), Err(ReplayError::TooOld));
        assert_eq!(window.check(100), Ok(()));
        window.raise(50);
        assert_eq!(window.check(99), Err(ReplayError::TooOld));
    }

    proptest! {
        /// Comparison with a set of all accepted counters.
        #[test]
        fn agrees_with_a_set(floor in 0_u64..3_000, steps in prop::collection::vec(0_u64..3_000, 1..400), scale in 1_u64..200) {
            let mut window = ReplayWindow::new(floor);
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
