//! SRTT and RTTVAR. RFC 6298, section 2.

/// Smoothed round-trip time and its variation, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimator {
    /// SRTT.
    pub srtt: u64,
    /// RTTVAR.
    pub rttvar: u64,
}

impl Estimator {
    /// The first sample: RTTVAR is its `share`th part, 2 in RFC 6298.
    pub const fn first(sample: u64, share: u64) -> Self {
        Self { srtt: sample, rttvar: sample / share }
    }

    /// A further sample: alpha is 1/8, beta 1/4, and RTTVAR comes first.
    pub const fn update(&mut self, sample: u64) {
        // Half of a unit more, so that what is rounded away does not add up.
        self.rttvar = self.rttvar - self.rttvar / 4 + (self.srtt.abs_diff(sample) + 2) / 4;
        self.srtt = self.srtt - self.srtt / 8 + (sample + 4) / 8;
    }

    /// SRTT + max(G, K * RTTVAR).
    pub const fn rto(&self, granularity: u64, k: u64) -> u64 {
        let variation = self.rttvar.saturating_mul(k);
        self.srtt.saturating_add(if variation > granularity { variation } else { granularity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
