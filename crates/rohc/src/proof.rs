//! Which packet is meant where the bits of its sequence number stand for several: behind a pause, or behind a loss that is longer
//! than they reach. RFC 3095, section 5.3.2.2.4, tries one turn of the bits more and holds two packets back; here all that clock
//! and carrier allow are tried, and one is believed if no other one fits, or if it alone is near to the pace of the flow.

use crate::arrival::PassedPackets;

/// A packet that is farther ahead is taken for one that is behind.
pub(crate) const HALF: u32 = 0x7FFF;

/// Candidates that are tried at most.
pub(crate) const TRIALS: u32 = 256;

/// Distances from the last packet that the bits of a sequence number may stand for: `first`, and whole turns more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidates {
    first: u32,
    turn: u32,
    turns: u32,
    clock: PassedPackets,
    /// Those that are not near to the pace are tried, too.
    all: bool,
}

impl Candidates {
    /// The distances that clock and carrier allow: `all` of them, or `first` and those near to the pace.
    pub(crate) fn new(first: u32, turn: u32, clock: PassedPackets, all: bool) -> Self {
        let most = match clock {
            PassedPackets::AtMost(most) | PassedPackets::Perhaps(most) => most,
            PassedPackets::About { packets, off } if !all => packets.saturating_add(off),
            PassedPackets::About { packets, .. } => packets.saturating_mul(2),
        };
        let turns = most.min(HALF).saturating_sub(first) / turn;
        Self { first, turn, turns, clock, all }
    }

    /// The distances, `first` last.
    pub(crate) fn distances(self) -> impl Iterator<Item = u32> {
        let first = (self.turns >= TRIALS).then_some(0);
        let turns = (0..=self.turns).rev().take(TRIALS as usize).chain(first);
        turns
            .filter(move |&n| self.all || n == 0 || self.is_near(self.first + n * self.turn))
            .map(move |n| self.first + n * self.turn)
    }

    /// True if a distance is about the one that the pace tells, or if there is no pace.
    fn is_near(&self, ahead: u32) -> bool {
        match self.clock {
            PassedPackets::About { packets, off } => ahead.abs_diff(packets) <= off,
            PassedPackets::AtMost(_) | PassedPackets::Perhaps(_) => true,
        }
    }

    /// True if none was left out that clock and carrier allow.
    fn is_complete(&self) -> bool {
        self.turns < TRIALS || matches!(self.clock, PassedPackets::About { .. }) && !self.all
    }
}

/// Candidates that fit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fits {
    all: FitCount,
    near: FitCount,
}

/// Their number, and the last one.
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
    /// Several do.
    Ambiguous,
    /// The distance that is meant, and `true` if it was proved.
    Meant(u32, bool),
}

impl Fits {
    pub(crate) fn add(&mut self, ahead: u32, candidates: &Candidates) {
        self.all.add(ahead);
        if candidates.is_near(ahead) {
            self.near.add(ahead);
        }
    }

    /// True if there is none.
    pub(crate) fn is_none(&self) -> bool {
        self.all.count == 0
    }

    /// The one that is meant, in a flow for which such a pause `is_usual` or not.
    pub(crate) fn proof(&self, candidates: &Candidates, is_usual: bool) -> Proof {
        match (self.all.count, self.near.count, candidates.clock) {
            (0, ..) => Proof::Nothing,
            (1, ..) if candidates.is_complete() => Proof::Meant(self.all.last, true),
            // A flow that pauses like this has paused once more.
            (.., PassedPackets::Perhaps(_)) if is_usual && self.all.last == candidates.first => {
                Proof::Meant(candidates.first, false)
            }
            (_, 1, PassedPackets::About { .. }) if !is_usual => Proof::Meant(self.near.last, true),
            _ => Proof::Ambiguous,
        }
    }
}
