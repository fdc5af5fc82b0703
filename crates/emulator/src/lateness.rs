//! How late packets were delivered, in bounded memory.

use std::fmt;

/// Lateness in microseconds that is told exactly.
const FINE: usize = 10_000;

/// Milliseconds that are told from one another beyond that.
const COARSE: usize = 10_000;

/// Nanoseconds after which a packet was delivered, beyond the time when it was due: how far the figures of a run can be
/// trusted.
#[derive(Clone)]
pub struct Lateness {
    /// By microseconds, rounded down.
    fine: Vec<u64>,
    /// By milliseconds; the last one holds all that is longer.
    coarse: Vec<u64>,
    count: u64,
    max: u64,
}

impl Lateness {
    /// The 99th percentile up to which a run is good: 1 ms.
    pub const BAR: u64 = 1_000_000;

    /// Nothing was delivered yet.
    pub fn new() -> Self {
        Self { fine: vec![0; FINE], coarse: vec![0; COARSE], count: 0, max: 0 }
    }

    /// A packet was late by so many nanoseconds.
    pub fn add(&mut self, nanos: u64) {
        self.count += 1;
        self.max = self.max.max(nanos);
        let micros = usize::try_from(nanos / 1_000).unwrap_or(usize::MAX);
        match self.fine.get_mut(micros) {
            Some(count) => *count += 1,
            None => self.coarse[(micros / 1_000).min(COARSE - 1)] += 1,
        }
    }

    /// Packets.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest, in nanoseconds.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// That many percent (0 to 100) of the packets were not later: nanoseconds, rounded up to a microsecond, from 10 ms
    /// on to a millisecond; `None` without packets.
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

    /// Whether so few packets were late, and by so little, that the run can be trusted.
    pub fn is_good(&self) -> bool {
        self.percentile(99).is_none_or(|late| late <= Self::BAR)
    }
}

impl fmt::Debug for Lateness {
    /// Without the counts, which are many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = f.debug_struct("Lateness");
        told.field("count", &self.count)
            .field("p50", &self.percentile(50))
            .field("p99", &self.percentile(99));
        told.field("max", &self.max).finish()
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
