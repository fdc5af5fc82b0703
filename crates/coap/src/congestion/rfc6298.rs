//! The retransmission timer of TCP without its minimum RTO of one second. RFC 6298; Karn's algorithm.
//!
//! Only a message that was sent once gives a sample. A backed-off timeout is kept for the next message until there is a
//! new sample (section 5, (5.5) to (5.7)), so that a path whose round trip is longer than the RTO eventually gives one. It
//! is not kept behind a silence of the path whose end was one round trip as before, which is no sign of a longer one.
//! Unlike in TCP, the first timeout is dithered by ACK_RANDOM_FACTOR, as RFC 7252 requires.

use core::time::Duration;

use thinair_wire::time::Instant;

use super::{Acknowledged, CongestionControl, Estimator, Series, Timer, Transmission, dither, nanos};

/// K of RFC 6298.
const K: u64 = 4;

/// Parameters of [`Rfc6298`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rfc6298Config {
    /// G, the granularity of the clock: minimum of the RTO above SRTT. Default: 10 ms.
    pub g: Duration,
    /// Largest RTO. Default: 60 s (2.5).
    pub max_rto: Duration,
}

impl Default for Rfc6298Config {
    fn default() -> Self {
        Self { g: Duration::from_millis(10), max_rto: Duration::from_secs(60) }
    }
}

/// One estimator, and the backed-off timeout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rfc6298 {
    config: Rfc6298Config,
    estimator: Option<Estimator>,
    /// Time of its latest sample.
    sampled: Instant,
    /// Backed-off timeout in nanoseconds; 0 if the latest message was not retransmitted.
    backed_off: u64,
}

impl Rfc6298 {
    /// Creates the state of a peer without measurements.
    pub const fn new(config: Rfc6298Config) -> Self {
        Self { config, estimator: None, sampled: Instant::ZERO, backed_off: 0 }
    }

    fn known(&self, now: Instant) -> Option<Estimator> {
        self.estimator?.aged(self.sampled, now)
    }

    fn base(&self, now: Instant, parameters: &Transmission) -> u64 {
        let estimate = match self.known(now) {
            Some(estimator) => estimator.rto(nanos(self.config.g), K),
            None => nanos(parameters.ack_timeout),
        };
        estimate.max(self.backed_off).min(self.limit())
    }

    fn limit(&self) -> u64 {
        nanos(self.config.max_rto)
    }
}

impl CongestionControl for Rfc6298 {
    fn start(&mut self, now: Instant, parameters: &Transmission, _in_flight: usize, random: u64) -> Timer {
        let base = self.base(now, parameters);
        Timer::new(dither(base, parameters.ack_random_factor, random), base, Series::Double)
    }

    fn back_off(&mut self, timer: &mut Timer) {
        timer.retransmissions = timer.retransmissions.saturating_add(1);
        timer.base = timer.base.saturating_mul(2).min(self.limit());
        timer.nanos = timer.nanos.saturating_mul(2).min(self.limit());
        self.backed_off = self.backed_off.max(timer.base);
    }

    fn on_ack(&mut self, ack: &Acknowledged) {
        if !ack.is_unambiguous() {
            let known = self.known(ack.now);
            if known.is_some_and(|known| ack.follows_silence(&known, known.rto(nanos(self.config.g), K))) {
                self.backed_off = 0;
            }
            return;
        }
        let sample = ack.since_first();
        self.estimator = Some(Estimator::next(self.known(ack.now), sample, 2));
        self.sampled = ack.now;
        self.backed_off = 0;
    }

    fn rto(&self, now: Instant, parameters: &Transmission) -> Duration {
        Duration::from_nanos(self.base(now, parameters))
    }

    fn has_sample(&self) -> bool {
        self.estimator.is_some()
    }

    fn srtt(&self) -> Option<Duration> {
        self.estimator.map(|estimator| Duration::from_nanos(estimator.srtt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(first: u64, now: u64, transmissions: u8) -> Acknowledged {
        let first = Instant::from_millis(first);
        Acknowledged { now: Instant::from_millis(now), first, last: first, transmissions, answered: None }
    }

    fn rto(controller: &Rfc6298) -> u128 {
        controller.rto(Instant::ZERO, &Transmission::default()).as_micros()
    }

    /// By hand: 100 ms gives 300 ms; another 100 ms gives 100 + 4 * 37.5 = 250 ms.
    #[test]
    fn the_rto_follows_unambiguous_samples() {
        let mut controller = Rfc6298::new(Rfc6298Config::default());
        assert_eq!(rto(&controller), 2_000_000);
        controller.on_ack(&ack(0, 100, 1));
        assert_eq!(rto(&controller), 300_000);
        controller.on_ack(&ack(0, 100, 1));
        assert_eq!(rto(&controller), 250_000);
        controller.on_ack(&ack(0, 9_000, 2));
        assert_eq!(rto(&controller), 250_000);
    }

    /// RFC 6298, section 5: a backed-off timeout stays until there is a sample.
    #[test]
    fn a_timeout_that_was_backed_off_stays_for_the_next_message() {
        let parameters = Transmission::default();
        let mut controller = Rfc6298::new(Rfc6298Config::default());
        let mut timer = controller.start(Instant::ZERO, &parameters, 0, 0);
        controller.back_off(&mut timer);
        controller.back_off(&mut timer);
        assert_eq!(timer.timeout(), Duration::from_secs(8));
        controller.on_ack(&ack(0, 7_000, 3));
        assert_eq!(rto(&controller), 8_000_000);
        controller.on_ack(&ack(0, 100, 1));
        assert_eq!(rto(&controller), 300_000);
    }

    /// A path of 100 ms that was silent for some seconds, and one that has become slower.
    #[test]
    fn a_timeout_that_was_backed_off_by_silence_does_not_stay() {
        let parameters = Transmission::default();
        for (since_last, stays) in [(110, false), (1_500, true)] {
            let mut controller = Rfc6298::new(Rfc6298Config::default());
            controller.on_ack(&ack(0, 100, 1));
            let mut timer = controller.start(Instant::ZERO, &parameters, 0, 0);
            (0..5).for_each(|_| controller.back_off(&mut timer));
            let last = Instant::from_millis(9_300);
            controller.on_ack(&Acknowledged { last, ..ack(0, 9_300 + since_last, 6) });
            assert_eq!(rto(&controller), if stays { 9_600_000 } else { 300_000 });
        }
    }

    #[test]
    fn a_steady_path_has_the_granularity_as_its_margin() {
        let mut controller = Rfc6298::new(Rfc6298Config::default());
        for _ in 0..200 {
            controller.on_ack(&ack(0, 100, 1));
        }
        assert_eq!(rto(&controller), 110_000);
    }

    #[test]
    fn no_timeout_is_above_the_largest_rto() {
        let mut controller = Rfc6298::new(Rfc6298Config::default());
        let mut timer = controller.start(Instant::ZERO, &Transmission::default(), 0, u64::MAX);
        for _ in 0..255 {
            controller.back_off(&mut timer);
        }
        assert_eq!(timer.timeout(), Duration::from_secs(60));
        assert_eq!(rto(&controller), 60_000_000);
    }
}
