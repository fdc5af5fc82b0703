//! Replay window of requests. RFC 8613, section 7.4.

/// Number of Partial IVs that the window covers. RFC 8613, section 3.2.2.
pub const REPLAY_WINDOW: u32 = u64::BITS;

/// Partial IVs of requests that were received, and of those that were answered with their own nonce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReplayWindow {
    /// Number above the largest one received.
    end: u64,
    /// Bit `i`: number `end - 1 - i` was received.
    received: u64,
    /// Bit `i`: the nonce of number `end - 1 - i` has protected a response.
    answered: u64,
}

impl ReplayWindow {
    /// Returns the window after a request that is known to be fresh: it and all earlier ones were received. RFC 8613,
    /// appendix B.1.2.
    pub(super) const fn starting_at(number: u64) -> Self {
        Self { end: number + 1, received: u64::MAX, answered: u64::MAX << 1 }
    }

    fn bit(&self, number: u64) -> Option<u64> {
        1_u64.checked_shl(u32::try_from(self.end.checked_sub(number + 1)?).ok()?)
    }

    /// True if the number may be received.
    pub(super) fn allows(&self, number: u64) -> bool {
        number >= self.end || self.bit(number).is_some_and(|bit| self.received & bit == 0)
    }

    /// Marks a number that is allowed as received.
    pub(super) fn receive(&mut self, number: u64) {
        if let Some(ahead) = (number + 1).checked_sub(self.end).and_then(|ahead| u32::try_from(ahead).ok()) {
            self.received = self.received.checked_shl(ahead).unwrap_or(0);
            self.answered = self.answered.checked_shl(ahead).unwrap_or(0);
        } else if number >= self.end {
            (self.received, self.answered) = (0, 0);
        }
        self.end = self.end.max(number + 1);
        self.received |= self.bit(number).unwrap_or(0);
    }

    /// True once for each number in the window: its nonce may protect a response.
    pub(super) fn answer(&mut self, number: u64) -> bool {
        let Some(bit) = self.bit(number).filter(|bit| self.received & bit != 0 && self.answered & bit == 0)
        else {
            return false;
        };
        self.answered |= bit;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_window_that_starts_at_a_number_accepts_only_later_ones() {
        let mut window = ReplayWindow::starting_at(7);
        assert!((0..=7).all(|number| !window.allows(number)) && window.allows(8));
        assert_eq!([window.answer(6), window.answer(7), window.answer(7)], [false, true, false]);
    }

    proptest! {
        #[test]
        fn a_number_is_received_and_answered_once(numbers in vec(0..200_u64, 0..300)) {
            let mut window = ReplayWindow::default();
            let (mut received, mut answered) = (BTreeSet::new(), BTreeSet::new());
            for number in numbers {
                let oldest = received.last().map_or(0, |last: &u64| (last + 1).saturating_sub(REPLAY_WINDOW.into()));
                prop_assert_eq!(window.allows(number), number >= oldest && !received.contains(&number));
                if window.allows(number) {
                    window.receive(number);
                    received.insert(number);
                }
                if window.answer(number) {
                    prop_assert!(received.contains(&number) && answered.insert(number));
                }
            }
        }
    }
}
