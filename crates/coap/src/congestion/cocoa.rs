//! CoCoA: a strong and a weak estimator, a variable back-off factor, ageing. draft-ietf-core-cocoa-03.
//!
//! Each choice that the draft leaves open is a field of [`CocoaConfig`]. Its pseudocode has neither the absolute value
//! nor G of RFC 6298, which its text refers to; this implementation follows the text. "The initial value for each of the
//! two RTO estimators is 2 s" is the RTO before a sample; the first sample of an estimator sets SRTT and RTTVAR as in RFC
//! 6298.

use core::time::Duration;

use thinair_wire::time::Instant;

use super::{Acknowledged, CongestionControl, Estimator, Series, Timer, Transmission, dither, nanos};

const SECOND: u64 = 1_000_000_000;

/// Upper limit of the back-off and of the RTO, in nanoseconds.
const MAX_RTO: u64 = 32 * SECOND;

/// K of the strong and of the weak estimator.
const K_STRONG: u64 = 4;
const K_WEAK: u64 = 1;

/// Largest number of retransmissions of an exchange that gives the weak estimator a sample.
const WEAK_RETRANSMISSIONS: u8 = 2;

/// Parameters of [`Cocoa`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CocoaConfig {
    /// G, the granularity of the clock, which the draft does not specify. Default: 10 ms. On a steady path it is the only
    /// difference between SRTT and the RTO.
    pub g: Duration,
    /// True if the back-off factor is chosen from the current timeout at each step (text and pseudocode of the draft),
    /// false if it is chosen once from the first timeout. Default: true.
    pub vbf_per_step: bool,
    /// True if the RTO before the first sample is multiplied by the number of parallel exchanges (section 4.1). Default:
    /// true.
    pub blind: bool,
}

impl Default for CocoaConfig {
    fn default() -> Self {
        Self { g: Duration::from_millis(10), vbf_per_step: true, blind: true }
    }
}

/// Both estimators and the overall RTO of one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cocoa {
    config: CocoaConfig,
    /// Overall RTO in nanoseconds.
    rto: u64,
    strong: Option<Estimator>,
    weak: Option<Estimator>,
    /// Time of the latest change of the RTO.
    updated: Instant,
}

impl Cocoa {
    /// Creates the state of a peer without measurements.
    pub const fn new(config: CocoaConfig, parameters: &Transmission) -> Self {
        // In milliseconds, because `nanos` is not const.
        let rto = parameters.ack_timeout.as_millis();
        let rto = if rto > 32_000 { MAX_RTO } else { rto as u64 * 1_000_000 };
        Self { config, rto, strong: None, weak: None, updated: Instant::ZERO }
    }

    /// Returns the strong and the weak estimator.
    pub const fn estimators(&self) -> (Option<Estimator>, Option<Estimator>) {
        (self.strong, self.weak)
    }

    /// Returns the RTO after ageing without use, and the time of its last step. Section 4.4, cumulatively.
    fn aged(&self, now: Instant) -> (u64, Instant) {
        let (mut rto, mut updated) = (self.rto, self.updated);
        while self.has_sample() {
            let (patience, next) = match rto {
                ..SECOND => (rto.max(1).saturating_mul(16), rto.max(1) * 2),
                rto if rto > 3 * SECOND => (rto.saturating_mul(4), SECOND + rto / 2),
                _ => break,
            };
            if now.nanos_since(updated) <= patience {
                break;
            }
            rto = next;
            updated = updated + Duration::from_nanos(patience);
        }
        (rto, updated)
    }

    /// Moves the RTO to the mean of `estimate`, with weight `weight` / 4, and its former value.
    fn mix(&mut self, estimate: u64, weight: u64, now: Instant) {
        let sum = u128::from(estimate) * u128::from(weight) + u128::from(self.rto) * u128::from(4 - weight);
        self.rto = u64::try_from((sum + 2) / 4).unwrap_or(u64::MAX).min(MAX_RTO);
        self.updated = now;
    }
}

/// Variable Backoff Factor: 3 below 1 s, 1.5 above 3 s, 2 between. Section 4.2.1.
const fn variable_backoff(timeout: u64, chosen_from: u64) -> u64 {
    match chosen_from {
        ..SECOND => timeout.saturating_mul(3),
        rto if rto > 3 * SECOND => timeout.saturating_add(timeout / 2),
        _ => timeout.saturating_mul(2),
    }
}

impl CongestionControl for Cocoa {
    fn start(&mut self, now: Instant, parameters: &Transmission, in_flight: usize, random: u64) -> Timer {
        (self.rto, self.updated) = self.aged(now);
        let base = match self.has_sample() {
            true => self.rto,
            false if self.config.blind => nanos(parameters.ack_timeout).saturating_mul(in_flight as u64 + 1),
            false => nanos(parameters.ack_timeout),
        };
        let first = dither(base, parameters.ack_random_factor, random).min(MAX_RTO);
        Timer::new(first, first, Series::Variable)
    }

    fn back_off(&mut self, timer: &mut Timer) {
        timer.retransmissions = timer.retransmissions.saturating_add(1);
        let chosen_from = if self.config.vbf_per_step { timer.nanos } else { timer.base };
        timer.nanos = variable_backoff(timer.nanos, chosen_from).min(MAX_RTO);
    }

    fn on_ack(&mut self, ack: &Acknowledged) {
        let sample = ack.since_first();
        let g = nanos(self.config.g);
        let update = |estimator: &mut Option<Estimator>| {
            match estimator {
                Some(estimator) => estimator.update(sample),
                None => *estimator = Some(Estimator::first(sample, 2)),
            }
            estimator.unwrap_or(Estimator { srtt: sample, rttvar: 0 })
        };
        match ack.transmissions.saturating_sub(1) {
            0 => {
                let estimate = update(&mut self.strong).rto(g, K_STRONG);
                self.mix(estimate, 2, ack.now);
            }
            1..=WEAK_RETRANSMISSIONS => {
                let estimate = update(&mut self.weak).rto(g, K_WEAK);
                self.mix(estimate, 1, ack.now);
            }
            _ => {}
        }
    }

    fn rto(&self, now: Instant, parameters: &Transmission) -> Duration {
        Duration::from_nanos(if self.has_sample() { self.aged(now).0 } else { nanos(parameters.ack_timeout) })
    }

    fn has_sample(&self) -> bool {
        self.strong.is_some() || self.weak.is_some()
    }

    fn srtt(&self) -> Option<Duration> {
        self.strong.or(self.weak).map(|estimator| Duration::from_nanos(estimator.srtt))
    }

    /// "At least 2 of 16 consecutive messages" are Confirmable.
    fn confirm_every(&self) -> u8 {
        8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Transmission = Transmission {
        ack_timeout: Duration::from_secs(2),
        ack_random_factor: 1_500,
        max_retransmit: 4,
        nstart: 1,
        probing_rate: 1,
    };

    fn controller() -> Cocoa {
        Cocoa::new(CocoaConfig { g: Duration::ZERO, ..CocoaConfig::default() }, &P)
    }

    fn known(rto_millis: u64) -> Cocoa {
        let mut cocoa = controller();
        cocoa.strong = Some(Estimator { srtt: 0, rttvar: 0 });
        cocoa.rto = rto_millis * 1_000_000;
        cocoa
    }

    fn ack(rtt_millis: u64, transmissions: u8) -> Acknowledged {
        let zero = Instant::ZERO;
        Acknowledged {
            now: Instant::from_millis(rtt_millis),
            first: zero,
            last: zero,
            transmissions,
            answered: None,
        }
    }

    fn micros(cocoa: &Cocoa, at_millis: u64) -> u128 {
        cocoa.rto(Instant::from_millis(at_millis), &P).as_micros()
    }

    /// By hand. R = 100 ms: SRTT 100, RTTVAR 50, E = 300, RTO = (300 + 2000) / 2. Again: RTTVAR 37.5, E = 250.
    #[test]
    fn strong_samples_weigh_a_half() {
        let mut cocoa = controller();
        cocoa.on_ack(&ack(100, 1));
        assert_eq!(micros(&cocoa, 100), 1_150_000);
        cocoa.on_ack(&ack(100, 1));
        assert_eq!(micros(&cocoa, 100), 700_000);
        // RTTVAR 28.125, E = 212.5.
        cocoa.on_ack(&ack(100, 1));
        assert_eq!(micros(&cocoa, 100), 456_250);
    }

    /// By hand. R = 2.4 s behind one retransmission: SRTT 2.4, RTTVAR 1.2, E = 3.6, RTO = 0.25 * 3.6 + 0.75 * 2 = 2.4.
    #[test]
    fn weak_samples_weigh_a_quarter_and_end_with_the_second_retransmission() {
        let mut cocoa = controller();
        cocoa.on_ack(&ack(2_400, 2));
        assert_eq!(micros(&cocoa, 2_400), 2_400_000);
        // RTTVAR 0.9, E = 3.3: 0.825 + 1.8.
        cocoa.on_ack(&ack(2_400, 3));
        assert_eq!(micros(&cocoa, 2_400), 2_625_000);
        cocoa.on_ack(&ack(20_000, 4));
        assert_eq!(micros(&cocoa, 2_400), 2_625_000);
        assert!(cocoa.estimators().0.is_none());
    }

    /// Example A.1 of the draft: SRTT 2 s, RTTVAR 1 s; 1.5 s becomes 1.875 s, then 2.156 s.
    #[test]
    fn example_a_1_weak_rtts() {
        let mut cocoa = known(1_500);
        cocoa.mix(3 * SECOND, 1, Instant::ZERO);
        assert_eq!(micros(&cocoa, 0), 1_875_000);
        cocoa.mix(3 * SECOND, 1, Instant::ZERO);
        assert_eq!(micros(&cocoa, 0), 2_156_250);
    }

    /// Example A.2: 4 s become 3 s after 16 s. Example B: 0.3 s are doubled after 16 times 0.3 s (the draft prints 3.8 s,
    /// which is 16 times 0.24 s).
    #[test]
    fn an_rto_that_is_not_used_moves_towards_the_default() {
        let cocoa = known(4_000);
        assert_eq!((micros(&cocoa, 16_000), micros(&cocoa, 16_001)), (4_000_000, 3_000_000));
        assert_eq!(micros(&cocoa, 1_000_000), 3_000_000);
        let cocoa = known(300);
        assert_eq!((micros(&cocoa, 4_800), micros(&cocoa, 4_801)), (300_000, 600_000));
        // 0.6 s for another 9.6 s, then 1.2 s permanently.
        assert_eq!((micros(&cocoa, 14_400), micros(&cocoa, 14_401)), (600_000, 1_200_000));
        assert_eq!(micros(&cocoa, 1_000_000), 1_200_000);
        // 32 s: 17 s after 128 s, 9.5 s after 68 s more, 5.75 s after 38 s more.
        let cocoa = known(32_000);
        assert_eq!(
            (micros(&cocoa, 128_001), micros(&cocoa, 196_001), micros(&cocoa, 234_001)),
            (17_000_000, 9_500_000, 5_750_000)
        );
    }

    /// Example B: 0.3 s, 0.9 s, 2.7 s; then 5.4, 8.1 by the step; 8.1, 24.3 if the factor stays.
    #[test]
    fn the_back_off_factor_varies() {
        let series = |mut cocoa: Cocoa| {
            let mut timer = cocoa.start(Instant::ZERO, &P, 0, 0);
            let mut timeouts = std::vec![];
            for _ in 0..5 {
                timeouts.push(timer.timeout().as_millis());
                cocoa.back_off(&mut timer);
            }
            timeouts
        };
        assert_eq!(series(known(300)), [300, 900, 2_700, 5_400, 8_100]);
        let mut once = known(300);
        once.config.vbf_per_step = false;
        assert_eq!(series(once), [300, 900, 2_700, 8_100, 24_300]);
        assert_eq!(series(known(2_000)), [2_000, 4_000, 6_000, 9_000, 13_500]);
        assert_eq!(series(known(20_000)), [20_000, 30_000, 32_000, 32_000, 32_000]);
    }

    /// Section 4.1: two exchanges run, the third gets 6 s.
    #[test]
    fn before_a_sample_parallel_exchanges_wait_longer() {
        let mut cocoa = controller();
        let timeouts =
            [0, 1, 2].map(|in_flight| cocoa.start(Instant::ZERO, &P, in_flight, 0).timeout().as_secs());
        assert_eq!(timeouts, [2, 4, 6]);
        cocoa.config.blind = false;
        assert_eq!(cocoa.start(Instant::ZERO, &P, 2, 0).timeout().as_secs(), 2);
        cocoa.on_ack(&ack(100, 1));
        assert_eq!(cocoa.start(Instant::ZERO, &P, 2, 0).timeout().as_millis(), 1_150);
    }

    /// Four samples of 100 ms with four exchanges in flight: the RTO decreases.
    #[test]
    fn parallel_exchanges_do_not_make_the_rto_grow() {
        let mut cocoa = controller();
        let mut before = u128::MAX;
        for _ in 0..40 {
            cocoa.on_ack(&ack(100, 1));
            let rto = micros(&cocoa, 100);
            assert!(rto <= before);
            before = rto;
        }
        assert!(before < 110_000);
    }
}
