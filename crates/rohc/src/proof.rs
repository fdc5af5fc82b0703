//! Choice among the packets that the bits of a sequence number may stand for, after a pause, or after a loss longer than the bits
//! cover. RFC 3095, section 5.3.2.2.4, tries one more wraparound of the bits and holds two packets back. Here all candidates that
//! clock and carrier allow are tried. One is accepted if no other one fits, or if it alone is near the pace of the flow.

use crate::arrival::PassedPackets;

/// Largest distance ahead. A packet that is farther ahead counts as one that is behind.
pub(crate) const HALF: u32 = 0x7FFF;

/// Largest number of candidates that are tried.
pub(crate) const TRIALS: u32 = 256;

/// Distances from the last packet that the bits of a sequence number may stand for: `first`, and multiples of `turn` more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidates {
    first: u32,
    turn: u32,
    turns: u32,
    clock: PassedPackets,
    /// A checksum proves a candidate: those that are not near the pace are tried, too.
    proves: bool,
}

impl Candidates {
    /// Returns the distances that clock and carrier allow: all of them if a checksum `proves` one, else `first` and those near the
    /// pace.
    pub(crate) fn new(first: u32, turn: u32, clock: PassedPackets, proves: bool) -> Self {
        let most = match clock {
            PassedPackets::AtMost(most) | PassedPackets::Perhaps(most) => most,
            PassedPackets::About { packets, off } if !proves => packets.saturating_add(off),
            PassedPackets::About { packets, .. } => packets.saturating_mul(2),
        };
        let turns = most.min(HALF).saturating_sub(first) / turn;
        Self { first, turn, turns, clock, proves }
    }

    /// Iterates over the distances, `first` last.
    pub(crate) fn distances(self) -> impl Iterator<Item = u32> {
        let first = (self.turns >= TRIALS).then_some(0);
        let turns = (0..=self.turns).rev().take(TRIALS as usize).chain(first);
        turns
            .filter(move |&n| self.proves || n == 0 || self.is_near(self.first + n * self.turn))
            .map(move |n| self.first + n * self.turn)
    }

    /// True if a distance is about the one that the pace predicts, or if there is no pace.
    fn is_near(&self, ahead: u32) -> bool {
        match self.clock {
            PassedPackets::About { packets, off } => ahead.abs_diff(packets) <= off,
            PassedPackets::AtMost(_) | PassedPackets::Perhaps(_) => true,
        }
    }

    /// True if one that fits is enough, as it is proved, or every distance that clock and carrier allow is tried.
    fn is_complete(&self) -> bool {
        self.proves || self.turns < TRIALS || matches!(self.clock, PassedPackets::About { .. })
    }
}

/// Candidates that fit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fits {
    all: FitCount,
    near: FitCount,
}

/// Number of candidates that fit, and the last one.
#[derive(Clone, Copy, Debug, Default)]
struct FitCount {
    count: u32,
    last: u32,
}

impl FitCount {
    fn add(&mut self, ahead: u32) {
        *self = Self { count: self.count + 1, last: ahead };
    }
}

/// Conclusion from the candidates that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// None fits.
    Nothing,
    /// Several fit.
    Ambiguous,
    /// The distance, and true if it was proved.
    Meant(u32, bool),
}

impl Fits {
    pub(crate) fn add(&mut self, ahead: u32, candidates: &Candidates) {
        self.all.add(ahead);
        if candidates.is_near(ahead) {
            self.near.add(ahead);
        }
    }

    /// True if no candidate fits.
    pub(crate) fn is_none(&self) -> bool {
        self.all.count == 0
    }

    /// Returns the conclusion for a flow in which such a pause `is_usual` or not.
    pub(crate) fn proof(&self, candidates: &Candidates, is_usual: bool) -> Proof {
        match (self.all.count, self.near.count, candidates.clock) {
            (0, ..) => Proof::Nothing,
            (1, ..) if candidates.is_complete() => Proof::Meant(self.all.last, true),
            // A flow that pauses regularly has paused once more.
            (.., PassedPackets::Perhaps(_)) if is_usual && self.all.last == candidates.first => {
                Proof::Meant(candidates.first, false)
            }
            (_, 1, PassedPackets::About { .. }) if !is_usual => Proof::Meant(self.near.last, true),
            _ => Proof::Ambiguous,
        }
    }
}
