//! SRTT and RTTVAR. RFC 6298, section 2.

use thinair_wire::time::Instant;

/// Nanoseconds without a sample after which an estimate loses weight: 255 s, the time for which CoCoA's draft keeps
/// estimates. The ageing after that is specific to this implementation; neither RFC 6298 nor FASOR's draft has idle
/// peers.
const STALE: u64 = 255_000_000_000;

/// Multiple of [`STALE`] after which an estimate is dropped.
const FORGOTTEN: u64 = 10;

/// Smoothed round-trip time and its variation, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimator {
    /// SRTT.
    pub srtt: u64,
    /// RTTVAR.
    pub rttvar: u64,
}

impl Estimator {
    /// Creates an estimate from the first sample: RTTVAR is the sample divided by `share`, 2 in RFC 6298.
    pub const fn first(sample: u64, share: u64) -> Self {
        Self { srtt: sample, rttvar: sample / share }
    }

    /// Updates the estimate by a further sample: alpha is 1/8, beta 1/4, and RTTVAR comes first.
    pub const fn update(&mut self, sample: u64) {
        // Rounded to the nearest unit, so that rounding errors do not add up.
        self.rttvar = self.rttvar - self.rttvar / 4 + (self.srtt.abs_diff(sample) + 2) / 4;
        self.srtt = self.srtt - self.srtt / 8 + (sample + 4) / 8;
    }

    /// Returns `before` updated by a sample, or the first estimate if there was none.
    pub const fn next(before: Option<Self>, sample: u64, share: u64) -> Self {
        match before {
            Some(mut estimator) => {
                estimator.update(sample);
                estimator
            }
            None => Self::first(sample, share),
        }
    }

    /// Returns the estimate aged from the latest sample at `sampled` to `now`: unchanged; after 255 s with an RTTVAR of
    /// at least SRTT/2, as after the first sample; `None` after ten times as long.
    pub const fn aged(self, sampled: Instant, now: Instant) -> Option<Self> {
        let idle = now.nanos_since(sampled);
        if idle < STALE {
            return Some(self);
        }
        if idle >= STALE * FORGOTTEN {
            return None;
        }
        let half = self.srtt / 2;
        Some(Self { srtt: self.srtt, rttvar: if self.rttvar > half { self.rttvar } else { half } })
    }

    /// Returns SRTT + max(G, K * RTTVAR).
    pub const fn rto(&self, granularity: u64, k: u64) -> u64 {
        let variation = self.rttvar.saturating_mul(k);
        self.srtt.saturating_add(if variation > granularity { variation } else { granularity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_that_is_not_renewed_is_trusted_less_and_then_forgotten() {
        let estimator = Estimator { srtt: 100, rttvar: 3 };
        let after =
            |seconds: u64| estimator.aged(Instant::from_millis(7), Instant::from_millis(7 + 1_000 * seconds));
        assert_eq!(after(254), Some(estimator));
        assert_eq!(after(255), Some(Estimator { srtt: 100, rttvar: 50 }));
        assert_eq!(after(2_549), Some(Estimator { srtt: 100, rttvar: 50 }));
        assert_eq!(after(2_550), None);
        let shaky = Estimator { srtt: 100, rttvar: 90 };
        assert_eq!(shaky.aged(Instant::ZERO, Instant::from_millis(300_000)), Some(shaky));
    }

    /// By hand from RFC 6298, section 2.
    #[test]
    fn samples_are_smoothed_as_in_rfc_6298() {
        let mut estimator = Estimator::first(100_000_000, 2);
        assert_eq!(
            (estimator.srtt, estimator.rttvar, estimator.rto(0, 4)),
            (100_000_000, 50_000_000, 300_000_000)
        );
        estimator.update(180_000_000);
        // RTTVAR = 3/4 * 50 + 1/4 * 80; SRTT = 7/8 * 100 + 1/8 * 180.
        assert_eq!(
            (estimator.srtt, estimator.rttvar, estimator.rto(0, 4)),
            (110_000_000, 57_500_000, 340_000_000)
        );
        assert_eq!(estimator.rto(500_000_000, 4), 610_000_000);
    }
}
