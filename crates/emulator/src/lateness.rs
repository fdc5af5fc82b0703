//! Lateness of deliveries, in bounded memory.

use std::fmt;

/// Lateness up to which microseconds are distinguished, in microseconds.
const FINE: usize = 10_000;

/// Lateness up to which milliseconds are distinguished, in milliseconds.
const COARSE: usize = 10_000;

/// Lateness of deliveries after the time when they were due, in nanoseconds: a measure of how far the figures of a run
/// can be trusted.
#[derive(Clone)]
pub struct Lateness {
    /// Counts by microsecond, rounded down.
    fine: Vec<u64>,
    /// Counts by millisecond; the last one holds all that are longer.
    coarse: Vec<u64>,
    count: u64,
    max: u64,
}

impl Lateness {
    /// Limit of the 99th percentile of a good run, in nanoseconds: 1 ms.
    pub const BAR: u64 = 1_000_000;

    /// Creates empty statistics.
    pub fn new() -> Self {
        Self { fine: vec![0; FINE], coarse: vec![0; COARSE], count: 0, max: 0 }
    }

    /// Adds a packet that was late by `nanos` nanoseconds.
    pub fn add(&mut self, nanos: u64) {
        self.count += 1;
        self.max = self.max.max(nanos);
        let micros = usize::try_from(nanos / 1_000).unwrap_or(usize::MAX);
        match self.fine.get_mut(micros) {
            Some(count) => *count += 1,
            None => self.coarse[(micros / 1_000).min(COARSE - 1)] += 1,
        }
    }

    /// Returns the number of packets.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the greatest lateness, in nanoseconds.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the lateness that `percent` percent (0 to 100) of the packets did not exceed, in nanoseconds, rounded up
    /// to a microsecond, from 10 ms on to a millisecond; `None` without packets.
    pub fn percentile(&self, percent: u32) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100).max(1);
        let fine = self.fine.iter().zip((1..).map(|micros: u64| micros * 1_000));
        let coarse = self.coarse.iter().zip((1..).map(|millis: u64| millis * 1_000_000));
        let mut seen = 0;
        for (count, bound) in fine.chain(coarse) {
            seen += u128::from(*count);
            if seen >= rank {
                return Some(bound.min(self.max));
            }
        }
        (self.count > 0).then_some(self.max)
    }

    /// Returns true if the 99th percentile is within [`BAR`](Self::BAR), so that the run can be trusted.
    pub fn is_good(&self) -> bool {
        self.percentile(99).is_none_or(|late| late <= Self::BAR)
    }
}

impl fmt::Debug for Lateness {
    /// Omits the counts, which are many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Lateness");
        debug
            .field("count", &self.count)
            .field("p50", &self.percentile(50))
            .field("p99", &self.percentile(99));
        debug.field("max", &self.max).finish()
    }
}

impl Default for Lateness {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_list() {
        let mut late = Lateness::new();
        assert_eq!((late.percentile(50), late.is_good()), (None, true));
        (1..=99).for_each(|i| late.add(i * 1_000 - 1));
        late.add(7_000_000_123);
        assert_eq!(late.percentile(50), Some(50_000));
        assert_eq!(late.percentile(99), Some(99_000));
        assert_eq!(late.percentile(100), Some(7_000_000_123));
        assert_eq!((late.count(), late.max(), late.is_good()), (100, 7_000_000_123, true));
        late.add(1_000_001);
        assert_eq!(late.percentile(99), Some(1_001_000));
        assert!(!late.is_good());
    }

    #[test]
    fn what_is_very_late_is_not_forgotten() {
        let mut late = Lateness::new();
        late.add(u64::MAX);
        late.add(12_345_678);
        assert_eq!((late.percentile(50), late.percentile(100)), (Some(13_000_000), Some(10_000_000_000)));
        assert_eq!(late.max(), u64::MAX);
    }
}
