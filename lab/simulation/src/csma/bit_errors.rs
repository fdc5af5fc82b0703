//! Bit error rate that may change with time, and survival of frames by length.

use std::sync::Arc;

use thinair_link::{Probability, Random};
use thinair_wire::time::Instant;

/// Maximum size of a frame with its own probability, in octets.
const LONGEST: usize = 136;

/// Independent bit errors, with a probability for each period of time.
#[derive(Clone, Debug, PartialEq)]
pub struct BitErrorRate {
    /// Steps in the order of time. Clones share them.
    steps: Arc<[RateStep]>,
}

#[derive(Clone, Debug, PartialEq)]
struct RateStep {
    from: Instant,
    /// Probability that a frame is damaged, by its octets.
    damaged: Vec<Probability>,
}

impl BitErrorRate {
    /// Constant rate. Values outside 0 to 1 are clamped.
    pub fn constant(rate: f64) -> Self {
        Self { steps: [RateStep::new(Instant::ZERO, rate)].into() }
    }

    /// Changes the rate from `time` on, which must be later than previous changes.
    #[must_use]
    pub fn then(self, time: Instant, rate: f64) -> Self {
        Self { steps: self.steps.iter().cloned().chain([RateStep::new(time, rate)]).collect() }
    }
}

impl RateStep {
    fn new(from: Instant, rate: f64) -> Self {
        let rate = if rate.is_nan() { 0.0 } else { rate.clamp(0.0, 1.0) };
        // Without errors the table is not used.
        let longest = if rate > 0.0 { LONGEST } else { 0 };
        let damaged = (0..longest).map(|octets| -libm::expm1(8.0 * octets as f64 * libm::log1p(-rate)));
        let damaged = damaged.map(|share| Probability::from_f64(share).unwrap_or(Probability::ALWAYS));
        Self { from, damaged: damaged.collect() }
    }
}

/// State of a [`BitErrorRate`] in a run.
#[derive(Clone, Debug)]
pub(super) struct Survival {
    rate: BitErrorRate,
    /// Index of the current step, and its end.
    at: usize,
    until: Instant,
}

impl Survival {
    pub(super) fn new(rate: BitErrorRate) -> Self {
        let mut survival = Self { rate, at: 0, until: Instant::ZERO };
        survival.go_on(Instant::ZERO);
        survival
    }

    fn go_on(&mut self, now: Instant) {
        let steps = &self.rate.steps;
        while steps.get(self.at + 1).is_some_and(|next| next.from <= now) {
            self.at += 1;
        }
        self.until = steps.get(self.at + 1).map_or(Instant::from_nanos(u64::MAX), |next| next.from);
    }

    /// True if a frame of `octets` octets on the air arrives undamaged.
    pub(super) fn arrives(&mut self, now: Instant, octets: u16, random: &mut Random) -> bool {
        if now >= self.until {
            self.go_on(now);
        }
        let damaged = self.rate.steps.get(self.at).map_or(&[][..], |step| &step.damaged);
        match damaged.get(usize::from(octets)).or(damaged.last()) {
            Some(damaged) => !random.happens(*damaged),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(survival: &mut Survival, now: Instant, octets: u16) -> u32 {
        let mut random = Random::new(1);
        (0..100_000).map(|_| u32::from(!survival.arrives(now, octets, &mut random))).sum()
    }

    /// Equation 1: 1 - (1 - 1e-4)^1016 = 9.66 %.
    #[test]
    fn frames_are_lost_as_equation_1_has_it() {
        let mut survival = Survival::new(BitErrorRate::constant(1e-4));
        let lost = lost(&mut survival, Instant::ZERO, 127);
        assert!((9_280..10_040).contains(&lost), "{lost}: 9,660 with a deviation of 93");
    }

    #[test]
    fn a_rate_holds_from_its_time_on() {
        let step = Instant::from_millis(5);
        let mut survival = Survival::new(BitErrorRate::constant(0.0).then(step, 1.0));
        assert_eq!(lost(&mut survival, Instant::from_millis(4), 127), 0);
        assert_eq!(lost(&mut survival, step, 127), 100_000);
        let mut odd = Survival::new(BitErrorRate::constant(f64::NAN));
        assert_eq!(lost(&mut odd, step, 127), 0);
    }
}
