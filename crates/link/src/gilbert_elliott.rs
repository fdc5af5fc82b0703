//! Bursts of errors: the chain of Gilbert and Elliott, for packets ([`crate::loss`]) and bits ([`crate::bit_errors`]).
//!
//! Gilbert, Capacity of a burst-noise channel, Bell System Technical Journal 39(5), 1960; Elliott, Estimates of error
//! rates for codes on burst-noise channels, BSTJ 42(5), 1963. Parameters as in Hasslinger and Hohlfeld, The
//! Gilbert-Elliott model for packet loss in real time services on the Internet, MMB 2008.

use core::fmt;

use crate::probability::{ONE, Probability};
use crate::random::Random;

/// A chain of two states, good and bad. In each state a unit (a packet, a bit) is correct with the probability of that
/// state; after each unit the state may change.
///
/// It starts in its steady state, so that the rate holds from the first unit: bad with p / (p + r), good if both are
/// 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GilbertElliott {
    /// Probability of a change from good to bad.
    pub p: Probability,
    /// Probability of a change from bad to good.
    pub r: Probability,
    /// Probability of a correct unit in the good state. Gilbert's model has 1.
    pub k: Probability,
    /// Probability of a correct unit in the bad state. 0 in the simple Gilbert model.
    pub h: Probability,
}

impl GilbertElliott {
    /// Creates the simple Gilbert model (k = 1, h = 0) with the mean error rate `rate` and bursts of `burst` on
    /// average.
    ///
    /// A burst is a run of errors without a correct unit in between: its mean length is 1 / r, and the rate is
    /// p / (p + r). **A burst of 1 means independent errors.** Their runs are longer than 1 on average: 1 / (1 - rate), as
    /// another error follows by chance. Means between 1 and that would require errors that avoid each other, and are
    /// rejected. Errors that are never adjacent are the chain with r = 1.
    ///
    /// # Errors
    ///
    /// The caller requested bursts shorter than those of independent errors, 1 / (1 - `rate`), other than 1.
    pub const fn bursts(rate: Probability, burst: MeanBurst) -> Result<Self, BurstTooShort> {
        let right = rate.complement();
        if burst.0 == MeanBurst::ONE.0 {
            return Ok(Self::simple(rate, right));
        }
        let Some(r) = Probability::from_ratio(1_000, burst.0 as u64) else { return Err(BurstTooShort) };
        // Both are rounded, so values one step apart may be equal.
        if r.steps() > right.steps() + 1 || right.steps() == 0 {
            return Err(BurstTooShort);
        }
        let product = rate.steps() as u128 * r.steps() as u128 + (right.steps() as u128 >> 1);
        let p = product / right.steps() as u128;
        let p = if p > ONE as u128 { ONE } else { p as u64 };
        Ok(Self::simple(Probability::from_steps(p), r))
    }

    /// Returns the mean error rate: (1 - k) r / (p + r) + (1 - h) p / (p + r).
    pub const fn rate(&self) -> Probability {
        let bad = self.bad();
        let in_good = bad.complement().times(self.k.complement());
        let in_bad = bad.times(self.h.complement());
        Probability::from_steps(in_good.steps() + in_bad.steps())
    }

    const fn simple(p: Probability, r: Probability) -> Self {
        Self { p, r, k: Probability::ALWAYS, h: Probability::NEVER }
    }

    /// Returns the share of units in the bad state.
    const fn bad(&self) -> Probability {
        let p = self.p.steps() as u128;
        match Probability::quotient(p, p + self.r.steps() as u128) {
            Some(bad) => bad,
            None => Probability::NEVER,
        }
    }

    /// Draws the first state; true if it is bad.
    pub(crate) fn starts_bad(&self, random: &mut Random) -> bool {
        random.happens(self.bad())
    }

    /// Returns the probability of an error in a state.
    pub(crate) const fn error(&self, is_bad: bool) -> Probability {
        if is_bad { self.h.complement() } else { self.k.complement() }
    }

    /// Returns the probability of leaving a state.
    pub(crate) const fn leaves(&self, is_bad: bool) -> Probability {
        if is_bad { self.r } else { self.p }
    }
}

/// Mean length of a run of errors: 1 to 4,294,967 units, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeanBurst(u32);

impl MeanBurst {
    /// 1: independent errors, see [`GilbertElliott::bursts`].
    pub const ONE: Self = Self(1_000);

    /// Creates a mean of `units`; `None` for 0 or more than 4,294,967.
    pub const fn from_units(units: u32) -> Option<Self> {
        match units.checked_mul(1_000) {
            Some(thousandths) => Self::from_thousandths(thousandths),
            None => None,
        }
    }

    /// Creates a mean of `thousandths / 1000`; `None` below 1,000.
    pub const fn from_thousandths(thousandths: u32) -> Option<Self> {
        if thousandths >= 1_000 { Some(Self(thousandths)) } else { None }
    }
}

/// Error: the bursts are shorter than those of independent errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstTooShort;

impl fmt::Display for BurstTooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the mean burst is shorter than that of independent errors, 1 / (1 - rate); use 1 or a longer one")
    }
}

impl core::error::Error for BurstTooShort {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn percent(percent: u32) -> Probability {
        Probability::from_percent(percent).unwrap()
    }

    fn bursts(rate: u32, thousandths: u32) -> Result<GilbertElliott, BurstTooShort> {
        GilbertElliott::bursts(percent(rate), MeanBurst::from_thousandths(thousandths).unwrap())
    }

    #[test]
    fn a_rate_and_a_burst_give_the_chain_of_the_paper() {
        let chain = bursts(20, 4_000).unwrap();
        assert_eq!(chain.r, percent(25));
        // p = rate * r / (1 - rate) = 0.2 * 0.25 / 0.8; the rates are rounded in the last digits.
        assert!((chain.p.as_f64() - 0.0625).abs() < 1e-15);
        assert_eq!((chain.k, chain.h), (Probability::ALWAYS, Probability::NEVER));
        assert!((chain.rate().as_f64() - 0.2).abs() < 1e-15);
    }

    #[test]
    fn a_burst_of_one_means_independent_errors() {
        let chain = bursts(30, 1_000).unwrap();
        assert_eq!((chain.p, chain.r), (percent(30), percent(70)));
        assert_eq!(bursts(100, 1_000).unwrap().rate(), Probability::ALWAYS);
        // The mean burst of independent errors is 1 / (1 - 0.6), and gives the same chain.
        let (asked, independent) = (bursts(60, 2_500).unwrap(), bursts(60, 1_000).unwrap());
        assert!(asked.p.steps().abs_diff(independent.p.steps()) <= 2, "{asked:?} {independent:?}");
        assert!(asked.r.steps().abs_diff(independent.r.steps()) <= 1, "{asked:?} {independent:?}");
    }

    #[test]
    fn bursts_shorter_than_those_of_independent_errors_are_refused() {
        assert_eq!(bursts(60, 2_499), Err(BurstTooShort));
        assert_eq!(bursts(10, 1_050), Err(BurstTooShort));
        assert_eq!(bursts(100, u32::MAX), Err(BurstTooShort));
        assert_eq!(MeanBurst::from_thousandths(999), None);
        assert_eq!(MeanBurst::from_units(0), None);
        assert_eq!(MeanBurst::from_units(4_294_968), None);
    }

    #[test]
    fn the_rate_of_the_general_form() {
        let chain = GilbertElliott { p: percent(10), r: percent(30), k: percent(99), h: percent(40) };
        // 0.01 * 3/4 + 0.6 * 1/4
        assert!((chain.rate().as_f64() - 0.1575).abs() < 1e-15);
        let still = GilbertElliott { p: Probability::NEVER, r: Probability::NEVER, ..chain };
        assert_eq!(still.rate(), percent(1));
        let both = GilbertElliott { p: Probability::ALWAYS, r: Probability::ALWAYS, ..chain };
        assert!((both.rate().as_f64() - 0.305).abs() < 1e-15);
        assert_eq!(bursts(0, 5_000).unwrap().rate(), Probability::NEVER);
    }
}
