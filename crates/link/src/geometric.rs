//! Number of failed trials before the first success, drawn at once and with integers only.
//!
//! The number is G with P(G = g) = p q^g, q = 1 - p. The binary digits of G are independent, because
//! q^g = q^(g_0) * q^(2 g_1) * q^(4 g_2) ...: digit i is 1 with the odds q^(2^i) to 1. So a digit costs one draw, a
//! squaring gives the odds of the next one, and no logarithm is needed. There are about log2(44 / p) digits before
//! the odds are 0.
//!
//! The odds are held in steps of 2^-63. A squaring doubles their error and adds half a step, so the error stays
//! below 2^(i - 63) at digit i: below 10^-7 at all digits that matter (up to 44 / p) for p down to 10^-10.

use crate::probability::{ONE, Probability};
use crate::random::Random;

impl Random {
    /// Draws the number of failed trials before the first success, if each succeeds with `probability`; at most
    /// 2^63 - 1, except `u64::MAX` if none ever succeeds.
    pub fn failures_before_success(&mut self, probability: Probability) -> u64 {
        if probability == Probability::NEVER {
            return u64::MAX;
        }
        let mut odds = probability.complement();
        let mut failures = 0;
        for digit in 0..63 {
            if odds == Probability::NEVER {
                break;
            }
            if self.below(ONE + odds.steps()) >= ONE {
                failures |= 1 << digit;
            }
            odds = odds.times(odds);
        }
        failures
    }
}
