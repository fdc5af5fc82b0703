//! The clock that never goes back, and what the calendar says at its origin.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use thinair_wire::time::Instant;

/// Nanoseconds of `CLOCK_MONOTONIC`, whose origin is about when the machine was started. Timers of this crate mean
/// the same clock.
pub fn now() -> Instant {
    // Linux has had this clock since 2.6, so that it cannot fail.
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    Instant::ZERO + time
}

/// What the calendar says when [`now`] is zero: nanoseconds since 1970. Changes when somebody sets the calendar.
pub fn epoch() -> u64 {
    let calendar = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let nanos = u64::try_from(calendar.as_nanos()).unwrap_or(u64::MAX);
    nanos.saturating_sub(now().as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_go_back() {
        let (first, second) = (now(), now());
        assert!(Instant::ZERO < first && first <= second);
        assert!(epoch() > 0);
    }
}
