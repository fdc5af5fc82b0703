//! Random delay of each packet, with integers only, so that it is equal on every machine.

use core::time::Duration;

use crate::probability::Probability;
use crate::random::Random;

/// Delay in addition to that of the direction: the sum of both components. Default: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter {
    /// |N(0, `deviation`)|: the absolute value of a normal deviate, with a mean of 0.798 `deviation`.
    pub deviation: Duration,
    /// Probability of a spike.
    pub spikes: Probability,
    /// Mean of a spike, which is exponentially distributed.
    pub spike: Duration,
}

/// Fractions of a deviation.
const PARTS: u64 = 1 << PART_BITS;
const PART_BITS: u32 = 20;

impl Jitter {
    /// Draws the delay of the next packet, in nanoseconds.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let deviation = nanoseconds(self.deviation);
        let normal = if deviation == 0 { 0 } else { scaled(half_normal(random), deviation) };
        if self.spikes == Probability::NEVER || !random.happens(self.spikes) {
            return normal;
        }
        normal.saturating_add(scaled(exponential(random), nanoseconds(self.spike)))
    }
}

pub(crate) fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns `parts / PARTS` of `whole`.
fn scaled(parts: u64, whole: u64) -> u64 {
    let product = u128::from(parts) * u128::from(whole) / u128::from(PARTS);
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// Draws an exponential deviate with the mean [`PARTS`], exact except for truncation: fractions are drawn as long as
/// they fall. If their number is odd, the first is the fraction of the deviate, else its integer part increases by one.
/// Von Neumann, Various techniques used in connection with random digits, 1951. Four to five draws on average.
fn exponential(random: &mut Random) -> u64 {
    let mut whole: u64 = 0;
    loop {
        let first = random.next_u64();
        let (mut last, mut is_odd) = (first, true);
        loop {
            let next = random.next_u64();
            if next > last {
                break;
            }
            (last, is_odd) = (next, !is_odd);
        }
        if is_odd {
            return whole.saturating_mul(PARTS).saturating_add(first >> (u64::BITS - PART_BITS));
        }
        whole += 1;
    }
}

/// Draws |N(0, 1)| in [`PARTS`], by rejection from two exponential deviates: the first is accepted if the second
/// exceeds half the square of its distance from 1. Ross, Simulation, section 5.3.
fn half_normal(random: &mut Random) -> u64 {
    loop {
        let (deviate, bound) = (exponential(random), exponential(random));
        let distance = u128::from(deviate.abs_diff(PARTS));
        if 2 * u128::from(bound) * u128::from(PARTS) >= distance * distance {
            return deviate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(jitter: Jitter) -> std::vec::Vec<u64> {
        let mut random = Random::new(9);
        (0..100_000).map(|_| jitter.draw(&mut random)).collect()
    }

    fn share(draws: &[u64], is: impl Fn(u64) -> bool) -> f64 {
        draws.iter().filter(|draw| is(**draw)).count() as f64 / draws.len() as f64
    }

    fn mean(draws: &[u64]) -> f64 {
        draws.iter().map(|draw| *draw as f64).sum::<f64>() / draws.len() as f64
    }

    #[test]
    fn without_jitter_there_is_none() {
        assert!(draws(Jitter::default()).iter().all(|draw| *draw == 0));
    }

    #[test]
    fn half_the_bell_has_its_mean_and_its_quantiles() {
        let draws = draws(Jitter { deviation: Duration::from_millis(2), ..Jitter::default() });
        // 2 ms * sqrt(2 / pi), with a deviation of 0.603 * 2 ms / sqrt(100,000) = 3.8 us; 4 of them.
        assert!((mean(&draws) - 1_595_769.0).abs() < 15_300.0, "{}", mean(&draws));
        // 68.27 %, 95.45 % and 99.73 %; 4 deviations of at most 0.00147.
        for (deviations, expected) in [(1, 0.6827), (2, 0.9545), (3, 0.9973)] {
            let within = share(&draws, |draw| draw < deviations * 2_000_000);
            assert!((within - expected).abs() < 0.0059, "{deviations}: {within}");
        }
    }

    #[test]
    fn spikes_come_as_often_as_configured_and_are_exponential() {
        let spikes = Probability::from_percent(20).unwrap_or_default();
        let draws = draws(Jitter { spikes, spike: Duration::from_millis(100), ..Jitter::default() });
        let some: std::vec::Vec<_> = draws.iter().copied().filter(|draw| *draw > 0).collect();
        let often = some.len() as f64 / 1e5;
        assert!((often - 0.2).abs() < 0.0051, "{often}");
        assert!((mean(&some) - 1e8).abs() < 4.0 * 1e8 / 141.0, "{}", mean(&some));
        // A share of 1 / e is longer than the mean.
        let long = share(&some, |draw| draw > 100_000_000);
        assert!((long - 0.3679).abs() < 0.0137, "{long}");
    }
}
