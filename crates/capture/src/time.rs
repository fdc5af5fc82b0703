//! Time of capture.

use std::time::Duration;

/// Nanoseconds since 1970-01-01 00:00:00 UTC, without leap seconds; 0 if the file has no time.
///
/// Range: up to the year 2554. Times out of range are clamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Returns the time this number of nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to `self`; zero if `earlier` is later, which happens in real captures.
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Clamps a time to the range.
    pub(crate) fn from_wide(nanos: i128) -> Self {
        Self(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_between_records_out_of_order_is_zero() {
        let (early, late) = (Timestamp::from_nanos(5), Timestamp::from_nanos(12));
        assert_eq!(late.saturating_duration_since(early), Duration::from_nanos(7));
        assert_eq!(early.saturating_duration_since(late), Duration::ZERO);
    }

    #[test]
    fn times_out_of_range_are_moved_to_the_nearer_end() {
        assert_eq!(Timestamp::from_wide(-1), Timestamp::from_nanos(0));
        assert_eq!(Timestamp::from_wide(i128::MAX), Timestamp::from_nanos(u64::MAX));
    }
}
