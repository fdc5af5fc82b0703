//! What a peer waits for.

use thinair_wire::time::Instant;

/// One of the things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// A handshake is tried.
    Try,
    /// A sign of life is sent, and one is asked for: new keys are to be confirmed, or it is time to show that we are
    /// there.
    Ask,
    /// A sign of life is sent, because the peer has asked for it, or has sent and heard nothing of us.
    Sign,
    /// Nothing was heard though we sent: new keys are tried.
    Dead,
    /// The keys are old: new ones are asked for.
    Rekey,
    /// A session ends.
    Retire,
    /// No request was answered: that is reported.
    Unanswered,
    /// We end, and say so.
    Farewell,
}

impl Timer {
    const COUNT: usize = 8;
    pub(super) const ALL: [Self; Self::COUNT] = [
        Self::Farewell,
        Self::Retire,
        Self::Rekey,
        Self::Dead,
        Self::Unanswered,
        Self::Try,
        Self::Ask,
        Self::Sign,
    ];
}

/// When each runs out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers([Option<Instant>; Timer::COUNT]);

impl Timers {
    pub(super) fn at(&self, timer: Timer) -> Option<Instant> {
        self.0[timer as usize]
    }

    pub(super) fn set(&mut self, timer: Timer, at: Instant) {
        self.0[timer as usize] = Some(at);
    }

    /// Sets it unless it runs out before.
    pub(super) fn by(&mut self, timer: Timer, at: Instant) {
        self.0[timer as usize] = earlier(self.at(timer), Some(at));
    }

    pub(super) fn stop(&mut self, timer: Timer) {
        self.0[timer as usize] = None;
    }

    /// Stops the first one that has run out.
    pub(super) fn take(&mut self, now: Instant) -> Option<Timer> {
        let due = Timer::ALL.into_iter().find(|timer| self.at(*timer).is_some_and(|at| at <= now))?;
        self.stop(due);
        Some(due)
    }

    /// When the first one runs out.
    pub(super) fn first(&self) -> Option<Instant> {
        self.0.iter().copied().fold(None, earlier)
    }
}

/// The earlier one of two, if there is one.
pub(super) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
