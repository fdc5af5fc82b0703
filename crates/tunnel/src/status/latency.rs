//! Latency histogram of fixed size with four bins per octave. Quantiles are exact to less than a quarter,
//! from nanoseconds to half a minute.

use serde::{Deserialize, Serialize};

/// Number of bins, four per octave. The last one ends at 2^35 ns, 34 s, and includes longer times.
const BINS: usize = 136;

/// Histogram of times. **[`record`](Self::record) takes a few instructions, and allocates no memory.**
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    bins: [u64; BINS],
    sum: u64,
    max: u64,
}

/// Summary of a histogram. Times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of packets measured.
    pub packets: u64,
    /// Median, interpolated within its bin. Absent without packets.
    pub p50_nanoseconds: Option<u64>,
    /// 90th percentile.
    pub p90_nanoseconds: Option<u64>,
    /// 99th percentile.
    pub p99_nanoseconds: Option<u64>,
    /// Maximum.
    pub max_nanoseconds: u64,
    /// Sum.
    pub sum_nanoseconds: u64,
    /// Bins that are not empty, in ascending order.
    pub bins: Vec<Bin>,
}

/// A bin of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// Lower limit, included.
    pub from_nanoseconds: u64,
    /// Upper limit, excluded.
    pub below_nanoseconds: u64,
    /// Number of packets in it.
    pub packets: u64,
}

impl Histogram {
    /// Returns an empty histogram.
    pub const fn new() -> Self {
        Self { bins: [0; BINS], sum: 0, max: 0 }
    }

    /// Records a time.
    pub fn record(&mut self, nanoseconds: u64) {
        self.bins[bin(nanoseconds)] += 1;
        self.sum = self.sum.saturating_add(nanoseconds);
        self.max = self.max.max(nanoseconds);
    }

    /// Returns the summary.
    pub fn summary(&self) -> Latency {
        let bins = self.bins.iter().enumerate().filter(|&(_, &packets)| packets > 0);
        let bins: Vec<Bin> = bins
            .map(|(at, &packets)| Bin {
                from_nanoseconds: lower(at),
                below_nanoseconds: lower(at + 1),
                packets,
            })
            .collect();
        Latency {
            packets: bins.iter().map(|bin| bin.packets).sum(),
            p50_nanoseconds: quantile(&bins, self.max, 0.5),
            p90_nanoseconds: quantile(&bins, self.max, 0.9),
            p99_nanoseconds: quantile(&bins, self.max, 0.99),
            max_nanoseconds: self.max,
            sum_nanoseconds: self.sum,
            bins,
        }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the bin of a time: below 4 each number has its own; otherwise the two bits after the highest one
/// select a quarter of its octave.
fn bin(nanoseconds: u64) -> usize {
    if nanoseconds < 4 {
        return nanoseconds as usize;
    }
    let octave = nanoseconds.ilog2();
    let quarter = (nanoseconds >> (octave - 2)) & 0b11;
    (4 * (octave as usize - 1) + quarter as usize).min(BINS - 1)
}

/// Lower limit of a bin.
const fn lower(bin: usize) -> u64 {
    if bin < 4 { bin as u64 } else { (4 + bin as u64 % 4) << (bin / 4 - 1) }
}

fn quantile(bins: &[Bin], max: u64, share: f64) -> Option<u64> {
    let packets: u64 = bins.iter().map(|bin| bin.packets).sum();
    let rank = share * packets as f64;
    let mut below = 0.0;
    for bin in bins {
        let inside = bin.packets as f64;
        if below + inside >= rank {
            let width = (bin.below_nanoseconds - bin.from_nanoseconds) as f64;
            let within = bin.from_nanoseconds + (width * (rank - below) / inside) as u64;
            return Some(within.min(max));
        }
        below += inside;
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bins_follow_each_other_and_are_a_quarter_wide_at_most() {
        for at in 0..BINS {
            assert!(lower(at) < lower(at + 1));
            assert_eq!((bin(lower(at)), bin(lower(at + 1) - 1)), (at, at));
            if at >= 4 {
                assert!(4 * (lower(at + 1) - lower(at)) <= lower(at));
            }
        }
        assert_eq!(bin(u64::MAX), BINS - 1);
    }

    #[test]
    fn nothing_was_measured() {
        let summary = Histogram::new().summary();
        assert_eq!((summary.packets, summary.p50_nanoseconds, summary.bins.len()), (0, None, 0));
    }

    #[test]
    fn quantiles_of_a_ramp() {
        let mut histogram = Histogram::new();
        (1..=1000).for_each(|at| histogram.record(1000 * at));
        let summary = histogram.summary();
        let close = |value: Option<u64>, to: f64| (value.unwrap() as f64 / to - 1.0).abs() < 0.05;
        assert!(close(summary.p50_nanoseconds, 500e3), "{:?}", summary.p50_nanoseconds);
        assert!(close(summary.p90_nanoseconds, 900e3), "{:?}", summary.p90_nanoseconds);
        assert!(close(summary.p99_nanoseconds, 990e3), "{:?}", summary.p99_nanoseconds);
        assert_eq!((summary.max_nanoseconds, summary.sum_nanoseconds), (1_000_000, 500_500_000));
    }

    proptest! {
        #[test]
        fn a_quantile_is_in_the_bin_of_the_sorted_one(mut times in prop::collection::vec(0u64..1 << 34, 1..200)) {
            let mut histogram = Histogram::new();
            times.iter().for_each(|&time| histogram.record(time));
            times.sort_unstable();
            let exact = times[(times.len() - 1) / 2];
            let told = histogram.summary().p50_nanoseconds.unwrap();
            prop_assert!(told >= lower(bin(exact)) && told <= lower(bin(exact) + 1), "{told} for {exact}");
        }
    }
}
