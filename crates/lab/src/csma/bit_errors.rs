//! A bit error rate that may change with time, and how many frames of each length survive it.

use thinair_link::{Probability, Random};
use thinair_wire::time::Instant;

/// Bits are damaged independently of each other, each with a probability that holds from a time on.
#[derive(Clone, Debug, PartialEq)]
pub struct BitErrorRate {
    /// From when on which rate holds, the earliest first.
    steps: Vec<(Instant, f64)>,
}

impl BitErrorRate {
    /// The same rate all the time. What is not from 0 to 1 is taken for the nearer end.
    pub fn constant(rate: f64) -> Self {
        Self { steps: vec![(Instant::ZERO, clean(rate))] }
    }

    /// Another rate from `time` on, which is later than those before.
    #[must_use]
    pub fn then(mut self, time: Instant, rate: f64) -> Self {
        self.steps.push((time, clean(rate)));
        self
    }
}

fn clean(rate: f64) -> f64 {
    if rate.is_nan() { 0.0 } else { rate.clamp(0.0, 1.0) }
}

/// The longest frame with a probability of its own, in octets.
const LONGEST: usize = 136;

/// A [`BitErrorRate`] at work.
#[derive(Clone, Debug)]
pub(super) struct Survival {
    rate: BitErrorRate,
    /// Steps that were taken.
    taken: usize,
    /// Until when the table holds.
    until: Instant,
    /// How likely a frame of so many octets is damaged.
    damaged: Vec<Probability>,
    none: bool,
}

impl Survival {
    pub(super) fn new(rate: BitErrorRate) -> Self {
        Self { rate, taken: 0, until: Instant::ZERO, damaged: Vec::new(), none: true }
    }

    fn go_on(&mut self, now: Instant) {
        while let Some((_, rate)) = self.rate.steps.get(self.taken).filter(|(from, _)| *from <= now) {
            self.taken += 1;
            self.none = *rate <= 0.0;
            let octet = 8.0 * libm::log1p(-rate);
            // Without errors nobody asks: a table less.
            let longest = if self.none { 0 } else { LONGEST };
            let damaged = (0..longest).map(|octets| -libm::expm1(octet * octets as f64));
            self.damaged =
                damaged.map(|share| Probability::from_f64(share).unwrap_or(Probability::ALWAYS)).collect();
        }
        let next = self.rate.steps.get(self.taken).map(|(from, _)| *from);
        self.until = next.unwrap_or(Instant::from_nanos(u64::MAX));
    }

    /// Whether a frame of so many octets on the air arrives as it was sent.
    pub(super) fn arrives(&mut self, now: Instant, octets: u16, random: &mut Random) -> bool {
        if now >= self.until {
            self.go_on(now);
        }
        if self.none {
            return true;
        }
        let damaged = self.damaged.get(usize::from(octets)).or(self.damaged.last());
        !random.happens(damaged.copied().unwrap_or(Probability::NEVER))
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
