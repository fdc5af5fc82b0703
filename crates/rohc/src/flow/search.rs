//! Choice among the packets that the bits of a sequence number may stand for, after a pause, or after a loss longer than the bits
//! cover. RFC 3095, section 5.3.2.2.4, tries one more wraparound of the bits and holds two packets back. Here all candidates that
//! clock and carrier allow ([`Passed`]) are tried, and one is accepted if no other one fits: the packet that was sent is among them. The
//! clock alone proves none, since a sender that was silent has sent fewer packets than fit into the time.

use crate::decompressor::Failure;
#[cfg(any(feature = "rfc3095", feature = "v2"))]
use crate::field::movement::Movement;
use crate::flow::arrival::Passed;
#[cfg(any(feature = "rfc3095", feature = "v2"))]
use crate::flow::arrival::{Arrivals, CLOCK_TURN, Intervals, Moment};
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

/// Bits of a sequence number, as distances from the newest packet that they may stand for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SequenceBits {
    /// The nearest distance ahead.
    pub(crate) first: u32,
    /// Number of packets behind which the bits repeat.
    pub(crate) turn: u32,
}

impl SequenceBits {
    /// Returns those of a packet that is `ahead` in the interpretation interval.
    pub(crate) fn new(ahead: i32, turn: u32) -> Self {
        let ahead = ahead.cast_unsigned();
        Self { first: if ahead.cast_signed() > 0 { ahead } else { ahead.wrapping_add(turn) }, turn }
    }

    /// Distance of a packet that is late, or a duplicate.
    pub(crate) fn late(self) -> i32 {
        self.first.wrapping_sub(self.turn).cast_signed()
    }
}

/// Number of steps of a counter behind which bits that repeat after a `turn`, a power of two, are the same again.
#[cfg(any(feature = "rfc3095", feature = "v2"))]
pub(crate) fn steps_to_repeat(turn: u32, step: u32) -> u32 {
    turn >> step.trailing_zeros().min(turn.trailing_zeros())
}

/// Result of rebuilding the headers of a packet with one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Its CRC, or its checksum, excludes the candidate.
    No,
    /// The CRC matches.
    Yes,
    /// The CRC matches with several values of another field.
    Several,
    /// A checksum proves the candidate: no other one is tried.
    Proved,
}

impl From<bool> for Fit {
    fn from(fits: bool) -> Self {
        if fits { Self::Yes } else { Self::No }
    }
}

/// Search for the distance of a packet from the newest one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    pub(crate) bits: SequenceBits,
    /// Evidence of clock and carrier.
    pub(crate) passed: Passed,
    /// Largest number of candidates that are tried.
    pub(crate) trials: u32,
    /// A checksum proves a candidate.
    pub(crate) proves: bool,
    /// The headers of the packet as a late one.
    pub(crate) late: Fit,
    /// The flow pauses regularly: it has paused once more.
    pub(crate) is_usual: bool,
    /// So many packets in a row were held back that this one, which may be late or ahead, is ahead.
    pub(crate) has_held_back: bool,
    /// The packets before it fit nowhere, and its CRC has 3 bits: a candidate that fits is on trial.
    pub(crate) is_doubtful: bool,
    /// Lost packets may have carried a jump of the timestamp, which no checksum covers: the packet that was sent may be among no candidates.
    pub(crate) may_have_jumped: bool,
}

/// Conclusion from the candidates that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// None fits.
    Nothing,
    /// Several fit, or none is excluded.
    Ambiguous,
    /// The packet is late, unless a field that no checksum covers may have moved in as many packets as were tried: the CRC then excludes
    /// none of those ahead.
    Late,
    /// The distance ahead, and true if it was proved.
    Ahead(u32, bool),
}

/// Result of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) proof: Proof,
    /// The largest distance that was tried.
    pub(crate) farthest: u32,
}

impl Search {
    /// A search without other evidence than that of clock and carrier.
    pub(crate) fn new(bits: SequenceBits, passed: Passed, trials: u32) -> Self {
        Self {
            bits,
            passed,
            trials,
            proves: false,
            late: Fit::No,
            is_usual: false,
            has_held_back: false,
            is_doubtful: false,
            may_have_jumped: false,
        }
    }

    /// Tries all distances that clock and carrier allow, the farthest ones up to the number of trials, and the nearest one in any case.
    /// `attempt` rebuilds the headers with a distance and compares them with the CRC, if that `is_possible` by the evidence of a
    /// profile, such as the octets of a flow.
    pub(crate) fn find(
        self,
        is_possible: impl Fn(u32) -> bool,
        mut attempt: impl FnMut(u32) -> Result<Fit, Failure>,
    ) -> Result<Found, Failure> {
        let (mut fits, mut last, mut farthest) = (0, 0, 0);
        for ahead in self.distances().filter(|ahead| is_possible(*ahead)) {
            farthest = farthest.max(ahead);
            fits += match attempt(ahead)? {
                Fit::No => continue,
                Fit::Yes => 1,
                Fit::Several => 2,
                Fit::Proved => return Ok(Found { proof: Proof::Ahead(ahead, true), farthest }),
            };
            last = ahead;
        }
        let ahead = match fits {
            0 => Proof::Nothing,
            1 if self.is_doubtful && !self.may_have_jumped => Proof::Ahead(last, false),
            _ if self.is_doubtful => Proof::Ambiguous,
            1 if self.is_complete() => Proof::Ahead(last, true),
            _ if self.is_usual && !self.passed.is_counted && last == self.bits.first => {
                Proof::Ahead(last, false)
            }
            _ => Proof::Ambiguous,
        };
        let proof = match (self.late, ahead) {
            (Fit::No, ahead) => ahead,
            (Fit::Yes | Fit::Proved, Proof::Nothing) => Proof::Late,
            (_, Proof::Ahead(ahead, _)) if self.has_held_back => Proof::Ahead(ahead, false),
            _ => Proof::Ambiguous,
        };
        Ok(Found { proof, farthest })
    }

    /// Iterates over the distances ahead, the nearest one last. One that is exact comes alone.
    fn distances(self) -> impl Iterator<Item = u32> {
        let (all, SequenceBits { first, turn }) = (self.turns(), self.bits);
        let nearest = (all >= self.trials).then_some(0);
        let alone = if self.is_exact() { 1 } else { usize::MAX };
        let turns = (0..=all).rev().take(self.trials as usize).chain(nearest);
        turns.take(alone).map(move |n| first + n * turn)
    }

    /// Turns by which the packet may be farther ahead than its bits indicate. If a checksum proves it, a flow may also have become faster.
    fn turns(&self) -> u32 {
        let most = match self.passed {
            Passed { is_counted: false, intervals, .. } if self.proves && intervals.is_steady => {
                intervals.number.saturating_mul(2)
            }
            Passed { most, .. } => most,
        };
        most.min(HALF).saturating_sub(self.bits.first) / self.bits.turn
    }

    /// True if carrier and clock leave one distance, and the bits stand for it.
    fn is_exact(&self) -> bool {
        self.passed.is_exact && self.bits.first + self.turns() * self.bits.turn == self.passed.most
    }

    /// True if one that fits is enough, as it is proved, or every distance that clock and carrier allow is tried.
    fn is_complete(&self) -> bool {
        self.proves || self.turns() < self.trials || self.is_exact()
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

/// A packet behind a jump of its timestamp, as after silence.
#[cfg(any(feature = "rfc3095", feature = "v2"))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jump {
    /// Distance from the last packet.
    pub(crate) ahead: u32,
    /// Times between packets that have passed, which the timestamp counts.
    pub(crate) intervals: u32,
}

#[cfg(any(feature = "rfc3095", feature = "v2"))]
impl Jump {
    /// Largest number of sequence numbers and timestamps together that a checksum of 16 bits tells apart.
    const COMBINATIONS: u64 = 256;

    /// Finds the only one that fits, if all packets that carried the jump were lost: the clock gives the timestamps, and a checksum
    /// covers both. One that fits within so many intervals `beyond` what the clock allows is as good.
    pub(crate) fn find(
        bits: SequenceBits,
        passed: Passed,
        beyond: u32,
        mut fits: impl FnMut(Self) -> Result<bool, Failure>,
    ) -> Result<Option<Self>, Failure> {
        let Intervals { number, off, is_steady } = passed.intervals;
        let clock = number.saturating_sub(off)..=number.saturating_add(off);
        if !is_steady || u64::from(2 * off + 1) * u64::from(clock.end() / bits.turn + 1) > Self::COMBINATIONS
        {
            return Ok(None);
        }
        let mut found = None;
        for intervals in clock.start().saturating_sub(beyond)..=clock.end() + beyond {
            let farthest = if passed.is_counted { intervals.min(passed.most) } else { intervals };
            for ahead in (bits.first..=farthest).step_by(bits.turn as usize) {
                let jump = Self { ahead, intervals };
                if !fits(jump)? {
                    continue;
                }
                if found.is_some() || !clock.contains(&intervals) {
                    return Ok(None);
                }
                found = Some(jump);
            }
        }
        Ok(found)
    }
}

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
