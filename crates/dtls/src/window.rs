//! Replay window of records. RFC 6347, section 4.1.2.6; in DTLS 1.3 it is the same one for each epoch (RFC 9147, section 4.5.1).

/// Number of sequence numbers that the window covers, up to the highest one.
pub const REPLAY_WINDOW: u64 = u64::BITS as u64;

/// Sequence numbers that were received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplayWindow {
    /// Number above the highest one received.
    end: u64,
    /// Bit `i`: number `end - 1 - i` was received.
    received: u64,
}

impl ReplayWindow {
    /// True if the number is new: above the window, or in it and not received.
    pub(crate) fn allows(&self, number: u64) -> bool {
        match self.end.checked_sub(number + 1) {
            None => true,
            Some(age) => age < REPLAY_WINDOW && self.received & (1 << age) == 0,
        }
    }

    /// Marks a number that is allowed, of an authentic record. Returns true if it is the highest one so far.
    pub(crate) fn receive(&mut self, number: u64) -> bool {
        match self.end.checked_sub(number + 1) {
            None => {
                let ahead = number + 1 - self.end;
                self.received = if ahead < REPLAY_WINDOW { self.received << ahead } else { 0 } | 1;
                self.end = number + 1;
                true
            }
            Some(age) => {
                self.received |= 1_u64.checked_shl(age as u32).unwrap_or(0);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// RFC 9147, section 4.5.1: the right edge is the highest number, the left one is 63 below.
    #[test]
    fn a_number_left_of_the_window_is_refused_and_one_right_of_it_moves_the_window() {
        let mut window = ReplayWindow::default();
        assert!(window.allows(0) && window.receive(100));
        assert!(!window.allows(100) && !window.allows(36) && window.allows(37));
        assert!(!window.receive(37) && !window.allows(37));
        assert!(window.receive(101) && !window.allows(37) && window.allows(38));
        assert!(window.receive(101 + 64) && !window.allows(101) && window.allows(102));
        assert!(window.receive((1 << 48) - 1) && !window.allows(102));
    }

    proptest! {
        #[test]
        fn a_number_is_received_once(numbers in vec(0..200_u64, 0..300)) {
            let mut window = ReplayWindow::default();
            let mut received = BTreeSet::new();
            for number in numbers {
                let oldest = received.last().map_or(0, |last: &u64| (last + 1).saturating_sub(REPLAY_WINDOW));
                prop_assert_eq!(window.allows(number), number >= oldest && !received.contains(&number));
                if window.allows(number) {
                    prop_assert_eq!(window.receive(number), received.last().is_none_or(|last| number > *last));
                    received.insert(number);
                }
            }
        }
    }
}
