//! How long something took: a histogram of fixed size whose bins grow with what they hold, four to an octave. So a
//! quantile is off by less than a quarter, from nanoseconds to half a minute.

use serde::{Deserialize, Serialize};

/// Four bins an octave. The last of them ends at 2^35 ns, 34 s; what is longer is counted there too.
const BINS: usize = 136;

/// Times, in bins. **Nothing is allocated, and [`record`](Self::record) is a few instructions.**
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    bins: [u64; BINS],
    sum: u64,
    max: u64,
}

/// What a histogram says. Times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// What was measured: packets.
    pub packets: u64,
    /// Half took less; within the bin interpolated. Nothing while there was no packet.
    pub p50_nanoseconds: Option<u64>,
    /// Nine of ten took less.
    pub p90_nanoseconds: Option<u64>,
    /// 99 of 100 took less.
    pub p99_nanoseconds: Option<u64>,
    /// The longest.
    pub max_nanoseconds: u64,
    /// All together.
    pub sum_nanoseconds: u64,
    /// Bins that are not empty, from short to long.
    pub bins: Vec<Bin>,
}

/// One bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// From here on.
    pub from_nanoseconds: u64,
    /// Less than this.
    pub below_nanoseconds: u64,
    /// How many that were.
    pub packets: u64,
}

impl Histogram {
    /// Empty.
    pub const fn new() -> Self {
        Self { bins: [0; BINS], sum: 0, max: 0 }
    }

    /// It took so long.
    pub fn record(&mut self, nanoseconds: u64) {
        self.bins[bin(nanoseconds)] += 1;
        self.sum = self.sum.saturating_add(nanoseconds);
        self.max = self.max.max(nanoseconds);
    }

    /// What is told of it.
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

/// The bin of a time: below 4 each number has its own, then the two bits behind the highest one tell the quarter.
fn bin(nanoseconds: u64) -> usize {
    if nanoseconds < 4 {
        return nanoseconds as usize;
    }
    let octave = nanoseconds.ilog2();
    let quarter = (nanoseconds >> (octave - 2)) & 0b11;
    (4 * (octave as usize - 1) + quarter as usize).min(BINS - 1)
}

/// Where a bin begins.
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
