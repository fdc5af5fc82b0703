//! Announced end of a session.

use thinair_wire::time::Instant;

use super::PeerState;
use super::asking::CALM;
use crate::BodyFlags;
use crate::header::Index;
use crate::two_way::Over;
use crate::two_way::timers::{PeerTimer, Timers};

const FAREWELL: BodyFlags = BodyFlags { several: false, addressed: true };

impl PeerState {
    /// Ends the session with a farewell, which is due now; nothing else is due.
    pub(in crate::two_way) fn part(&mut self, now: Instant) {
        self.timers = Timers::default();
        if self.current.is_some() {
            self.timers.set(PeerTimer::Farewell, now);
        }
    }

    pub(super) fn farewell(&mut self, now: Instant, over: Over, out: &mut Vec<u8>) -> bool {
        let sealed = self.seal(now, over, FAREWELL, &[], out).is_ok();
        self.end();
        sealed
    }

    /// Processes the other end's farewell for the session with that index. Returns false if it is not the
    /// current one.
    pub(in crate::two_way) fn close(&mut self, now: Instant, index: Index) -> bool {
        if self.current.as_ref().is_none_or(|current| current.ours != index) {
            return false;
        }
        self.end();
        // A session that the other end's next start has requested already.
        if let Some(next) = &self.next {
            self.timers.set(PeerTimer::Retire, next.until);
        }
        if self.keepalive.is_some() {
            self.timers.set(PeerTimer::Try, now + CALM);
        }
        true
    }

    fn end(&mut self) {
        self.current = None;
        self.previous = None;
        self.pending = None;
        self.timers = Timers::default();
        self.attempts = 0;
        self.confirmations = 0;
        self.suspected = false;
    }
}
