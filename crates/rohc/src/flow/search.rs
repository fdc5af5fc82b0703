//! Choice among the packets that the bits of a sequence number may stand for, after a pause, or after a loss longer than the bits
//! cover. RFC 3095, section 5.3.2.2.4, tries one more wraparound of the bits and holds two packets back. Here all candidates that
//! clock and carrier allow ([`Passed`]) are tried, and one is accepted if no other one fits: the packet that was sent is among them. The
//! clock alone proves none, since a sender that was silent has sent fewer packets than fit into the time.

#[cfg(any(feature = "rfc3095", feature = "v2"))]
use crate::field::movement::Movement;
use crate::flow::arrival::Passed;
#[cfg(any(feature = "rfc3095", feature = "v2"))]
use crate::flow::arrival::{Arrivals, CLOCK_TURN, Moment};
#[cfg(any(feature = "rfc3095", feature = "v2"))]
use crate::flow::caution::REPEATED;

/// Largest distance ahead. A packet that is farther ahead counts as one that is behind.
pub(crate) const HALF: u32 = 0x7FFF;

/// Largest number of candidates that are tried.
pub(crate) const TRIALS: u32 = 256;

/// Largest number of octets of which the CRC of one packet is computed, with all candidates together.
const CHECKED: usize = 6_144;

/// Largest number of candidates that are tried if the CRC is computed of so many octets of each.
pub(crate) fn trials(octets: usize) -> u32 {
    (CHECKED / octets.max(1)).clamp(1, TRIALS as usize) as u32
}

/// Distances from the last packet that the bits of a sequence number may stand for: `first`, and multiples of `turn` more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidates {
    first: u32,
    turn: u32,
    turns: u32,
    passed: Passed,
    /// Largest number that is tried.
    trials: u32,
    /// A checksum proves a candidate.
    proves: bool,
}

impl Candidates {
    /// Returns the distances that clock and carrier allow, the farthest ones up to a number of `trials`, and `first` in any case. If a
    /// checksum `proves` one, a flow may also have become faster.
    pub(crate) fn new(first: u32, turn: u32, passed: Passed, trials: u32, proves: bool) -> Self {
        let most = match passed {
            Passed { is_counted: false, intervals, .. } if proves && intervals.is_steady => {
                intervals.number.saturating_mul(2)
            }
            Passed { most, .. } => most,
        };
        let turns = most.min(HALF).saturating_sub(first) / turn;
        Self { first, turn, turns, passed, trials, proves }
    }

    /// Iterates over the distances, `first` last. One that is exact comes alone.
    pub(crate) fn distances(self) -> impl Iterator<Item = u32> {
        let first = (self.turns >= self.trials).then_some(0);
        let alone = if self.is_exact() { 1 } else { usize::MAX };
        let turns = (0..=self.turns).rev().take(self.trials as usize).chain(first);
        turns.take(alone).map(move |n| self.first + n * self.turn)
    }

    /// True if carrier and clock leave one distance, and the bits stand for it.
    fn is_exact(&self) -> bool {
        self.passed.is_exact && self.first + self.turns * self.turn == self.passed.most
    }

    /// True if one that fits is enough, as it is proved, or every distance that clock and carrier allow is tried.
    fn is_complete(&self) -> bool {
        self.proves || self.turns < self.trials || self.is_exact()
    }
}

/// Bits of an RTP timestamp in a packet.
#[cfg(any(feature = "rfc3095", feature = "v2"))]
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimestampBits {
    /// None: the timestamp goes on from the last one. The bits of the sequence number come round after `turn` packets.
    Inferred { turn: u32 },
    /// They stand for values that are less than `reach` above the last one, of which a packet takes `step`.
    Sent { reach: u32, step: u32 },
}

#[cfg(any(feature = "rfc3095", feature = "v2"))]
impl TimestampBits {
    /// True if the timestamp may have jumped in at most `packets` lost ones, those that carried the jump among them, and the packet has too
    /// few bits of it. A CRC accepts one that goes on from the last one. `has_jumped` tells that timestamps of the flow have jumped.
    pub(crate) fn may_hide_jump(
        self,
        arrivals: &Arrivals,
        now: Moment,
        packets: u32,
        has_jumped: bool,
    ) -> bool {
        if packets <= REPEATED as u32 {
            return false;
        }
        let Passed { most, is_exact, intervals, .. } = arrivals.passed(now);
        // A flow that pauses may have paused for a moment.
        let has_paused = has_jumped || intervals.is_steady && arrivals.has_paused();
        if most <= REPEATED as u32 || is_exact && !has_paused {
            return false;
        }
        match self {
            Self::Inferred { turn } => {
                has_paused || !intervals.leave_no_silence(packets, turn, REPEATED as u32)
            }
            Self::Sent { reach, step } => {
                arrivals.is_open(now, CLOCK_TURN) && intervals.most().saturating_mul(step) >= reach
            }
        }
    }
}

/// True if an IP-ID that a packet depends on is likely to have moved in as many packets as the carrier counts: no checksum covers it, and a
/// CRC may accept a wrong one.
#[cfg(any(feature = "rfc3095", feature = "v2"))]
pub(crate) fn has_moved_by_count(arrivals: &Arrivals, now: Moment, movement: &Movement) -> bool {
    let passed = arrivals.passed(now);
    passed.is_counted && passed.most > REPEATED as u32 && movement.is_likely_in(passed.most)
}

/// Largest number of sequence numbers and timestamps together that a checksum of 16 bits tells apart.
pub(crate) const COMBINATIONS: u64 = 256;

/// The Internet checksum as an equation: the sum of all words that it covers is 0, modulo 65,535. In RTP two of its terms are unknown behind
/// a gap, the sequence number and the timestamp. A candidate that does not solve it is excluded before its headers are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SumEquation(u32);

impl SumEquation {
    const MODULUS: u32 = 0xFFFF;

    /// Creates it from the sum of a packet with a number and a timestamp.
    pub(crate) fn new(sum: u16, number: u16, timestamp: u32) -> Self {
        let known = u32::from(number) % Self::MODULUS + timestamp % Self::MODULUS;
        Self((u32::from(sum) + 2 * Self::MODULUS - known) % Self::MODULUS)
    }

    /// True if the checksum is right with that number and timestamp.
    pub(crate) fn holds(self, number: u16, timestamp: u32) -> bool {
        (self.0 + u32::from(number) + timestamp % Self::MODULUS).is_multiple_of(Self::MODULUS)
    }
}

/// Candidates that fit: their number, and the last one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Matches {
    count: u32,
    last: u32,
}

/// Conclusion from the candidates that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// None fits.
    Nothing,
    /// Several fit.
    Ambiguous,
    /// The distance, and true if it was proved.
    One(u32, bool),
}

impl Matches {
    pub(crate) fn add(&mut self, ahead: u32) {
        *self = Self { count: self.count + 1, last: ahead };
    }

    /// True if no candidate fits.
    pub(crate) fn is_none(&self) -> bool {
        self.count == 0
    }

    /// Returns the conclusion for a flow in which such a pause `is_usual` or not.
    pub(crate) fn proof(&self, candidates: &Candidates, is_usual: bool) -> Proof {
        match self.count {
            0 => Proof::Nothing,
            1 if candidates.is_complete() => Proof::One(self.last, true),
            // A flow that pauses regularly has paused once more.
            _ if is_usual && !candidates.passed.is_counted && self.last == candidates.first => {
                Proof::One(candidates.first, false)
            }
            _ => Proof::Ambiguous,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use thinair_wire::checksum::Sum;

    use super::*;

    proptest! {
        /// The equation holds with a number and a timestamp if the sum of all words is right with them.
        #[test]
        fn an_equation_holds_where_the_sum_is_right(
            rest in 1..=u16::MAX,
            number: u16,
            timestamp: u32,
            other in prop_oneof![Just(0_u16), Just(u16::MAX), any::<u16>()],
            later: u32,
            is_right: bool,
        ) {
            let sum = |number: u16, timestamp: u32| {
                Sum::ZERO.word(rest).word(number).word((timestamp >> 16) as u16).word(timestamp as u16).fold()
            };
            let equation = SumEquation::new(sum(number, timestamp), number, timestamp);
            // With the first one the sum is right.
            let other = if is_right { !sum(0, later) } else { other };
            prop_assert_eq!(equation.holds(other, later), sum(other, later) == u16::MAX);
        }
    }
}
