//! Retransmission timeout. RFC 6298.

use core::time::Duration;

/// Lower bound of the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// Minimum timeout: 1 s in RFC 6298, section 2.4.
    Timeout(Duration),
    /// Minimum of four times RTTVAR: 200 ms in Linux.
    Variation(Duration),
}

/// SRTT, RTTVAR, and RTO.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeout {
    floor: Floor,
    initial: Duration,
    longest: Duration,
    measured: Option<(Duration, Duration)>,
    backoff: u32,
}

impl Timeout {
    pub(super) const fn new(floor: Floor, initial: Duration, longest: Duration) -> Self {
        Self { floor, initial, longest, measured: None, backoff: 0 }
    }

    /// SRTT, if there was a measurement.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.measured.map(|(smoothed, _)| smoothed)
    }

    /// Adds the round trip of a segment that was sent once (Karn). Sections 2.2, 2.3.
    pub(super) fn sample(&mut self, rtt: Duration) {
        self.measured = Some(match self.measured {
            None => (rtt, rtt / 2),
            Some((smoothed, variation)) => {
                let variation = variation * 3 / 4 + smoothed.abs_diff(rtt) / 4;
                (smoothed * 7 / 8 + rtt / 8, variation)
            }
        });
        self.backoff = 0;
    }

    /// Doubles the timeout after the timer has expired. Section 5.5.
    pub(super) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Ends the back-off when new data was acknowledged, as Linux does.
    pub(super) fn progress(&mut self) {
        self.backoff = 0;
    }

    /// RTO.
    pub(super) fn now(&self) -> Duration {
        let timeout = match (self.measured, self.floor) {
            (None, _) => self.initial,
            (Some((smoothed, variation)), Floor::Timeout(floor)) => (smoothed + variation * 4).max(floor),
            (Some((smoothed, variation)), Floor::Variation(floor)) => smoothed + (variation * 4).max(floor),
        };
        let factor = 1_u32.checked_shl(self.backoff.min(31)).unwrap_or(u32::MAX);
        timeout.saturating_mul(factor).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeout(floor: Floor) -> Timeout {
        Timeout::new(floor, Duration::from_secs(1), Duration::from_secs(60))
    }

    /// RFC 6298, section 2, computed by hand: 100 ms, then 180 ms.
    #[test]
    fn a_timeout_follows_the_samples() {
        let mut rto = timeout(Floor::Timeout(Duration::ZERO));
        assert_eq!(rto.now(), Duration::from_secs(1));
        rto.sample(Duration::from_millis(100));
        assert_eq!(rto.now(), Duration::from_millis(300));
        rto.sample(Duration::from_millis(180));
        // RTTVAR 37.5 + 20, SRTT 87.5 + 22.5.
        assert_eq!(
            (rto.smoothed(), rto.now()),
            (Some(Duration::from_millis(110)), Duration::from_millis(340))
        );
        rto.back_off();
        rto.back_off();
        assert_eq!(rto.now(), Duration::from_millis(1_360));
        (0..9).for_each(|_| rto.back_off());
        assert_eq!(rto.now(), Duration::from_secs(60));
    }

    #[test]
    fn floors_are_kept() {
        let mut rto = timeout(Floor::Timeout(Duration::from_secs(1)));
        rto.sample(Duration::from_millis(100));
        assert_eq!(rto.now(), Duration::from_secs(1));
        let mut rto = timeout(Floor::Variation(Duration::from_millis(200)));
        for _ in 0..100 {
            rto.sample(Duration::from_millis(18));
        }
        assert!(
            rto.now() >= Duration::from_millis(217) && rto.now() <= Duration::from_millis(218),
            "{:?}",
            rto.now()
        );
    }
}
