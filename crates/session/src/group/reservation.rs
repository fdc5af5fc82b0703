//! Counters of another site, reserved on disk before they are accepted: after a crash, which stores nothing, all
//! that may have been accepted are rejected.

use std::time::Duration;

use thinair_wire::time::Instant;

/// Interval at which reservations are adapted to the rate of a site.
pub(super) const ADAPT: Duration = Duration::from_secs(10);
/// Share of that interval for which counters are reserved: 2 s, for which a site is not heard after a crash.
const SHARE: u64 = 5;
/// Time within which a reservation that is used up was too small.
const TOO_SOON: Duration = Duration::from_secs(1);
const GROWTH: u64 = 4;
/// Minimum and maximum number of counters that are reserved at once.
const LEAST: u64 = 1;
const MOST: u64 = 1 << 16;

/// Size of the reservations of a site.
pub(super) struct Reservation {
    ahead: u64,
    /// Time of the last one.
    since: Option<Instant>,
    /// Next counter when the size was adapted last.
    adapted_at: u64,
}

impl Reservation {
    pub(super) fn new() -> Self {
        Self { ahead: LEAST, since: None, adapted_at: 0 }
    }

    /// Returns the bound of the next reservation, if the one on disk does not cover all counters below `next`.
    pub(super) fn extend(&mut self, now: Instant, next: u64, reserved: u64) -> Option<u64> {
        if next <= reserved {
            return None;
        }
        if self.since.is_some_and(|since| now.since(since) < TOO_SOON) {
            self.ahead = (self.ahead * GROWTH).min(MOST);
        }
        self.since = Some(now);
        Some(next.saturating_add(self.ahead))
    }

    /// Adapts the size to the counters since the last call. Returns a lower bound, if more is reserved than needed; and
    /// whether the site is still heard.
    pub(super) fn adapt(&mut self, next: u64, reserved: u64) -> (Option<u64>, bool) {
        let units = next.saturating_sub(self.adapted_at);
        self.adapted_at = next;
        self.ahead = (units / SHARE).clamp(LEAST, MOST);
        let needed = if units == 0 { next } else { next.saturating_add(self.ahead) };
        ((needed < reserved).then_some(needed), units > 0)
    }
}
