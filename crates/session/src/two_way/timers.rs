//! Timers of a peer.

use thinair_wire::time::Instant;

/// Purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerTimer {
    /// Send a request of a handshake.
    Try,
    /// Send a keepalive, and request one: to confirm new keys, or at the keepalive interval.
    Ask,
    /// Send a keepalive, because the peer has requested it, or has sent packets and received none.
    Sign,
    /// Nothing was received although we sent packets: request an answer.
    Unheard,
    /// Nothing was received although we have requested an answer: start a key exchange.
    Dead,
    /// The keys are old, and the peer that has sent a packet has not replaced them: start a key exchange.
    Rekey,
    /// End a session.
    Retire,
    /// Report that no request was answered.
    Unanswered,
    /// Send a farewell at our end.
    Farewell,
}

impl PeerTimer {
    const COUNT: usize = 9;
    pub(super) const ALL: [Self; Self::COUNT] = [
        Self::Farewell,
        Self::Retire,
        Self::Rekey,
        Self::Dead,
        Self::Unanswered,
        Self::Try,
        Self::Unheard,
        Self::Ask,
        Self::Sign,
    ];
}

/// Expiry time of each timer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers([Option<Instant>; PeerTimer::COUNT]);

impl Timers {
    pub(super) fn at(&self, timer: PeerTimer) -> Option<Instant> {
        self.0[timer as usize]
    }

    pub(super) fn set(&mut self, timer: PeerTimer, at: Instant) {
        self.0[timer as usize] = Some(at);
    }

    /// Sets a timer unless it expires earlier.
    pub(super) fn by(&mut self, timer: PeerTimer, at: Instant) {
        self.0[timer as usize] = earlier(self.at(timer), Some(at));
    }

    pub(super) fn stop(&mut self, timer: PeerTimer) {
        self.0[timer as usize] = None;
    }

    /// Stops and returns the first expired timer.
    pub(super) fn take(&mut self, now: Instant) -> Option<PeerTimer> {
        let due = PeerTimer::ALL.into_iter().find(|timer| self.at(*timer).is_some_and(|at| at <= now))?;
        self.stop(due);
        Some(due)
    }

    /// Expiry time of the first timer.
    pub(super) fn first(&self) -> Option<Instant> {
        self.0.iter().copied().fold(None, earlier)
    }
}

/// Returns the earlier one of two times.
pub(super) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
