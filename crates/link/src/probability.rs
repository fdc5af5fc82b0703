//! Probabilities as integers, so that a decision is a comparison and is equal on every machine.

/// A probability from 0 to 1, in steps of 2^-63.
///
/// The step is fine enough for bit error rates: 10^-12 is correct to seven digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability(u64);

/// 2^63, the number of steps from 0 to 1.
pub(crate) const ONE: u64 = 1 << 63;

impl Probability {
    /// 0.
    pub const NEVER: Self = Self(0);
    /// 1.
    pub const ALWAYS: Self = Self(ONE);

    /// Returns `part / whole`, to the nearest step; `None` if `part` is more than `whole`, or both are 0.
    pub const fn from_ratio(part: u64, whole: u64) -> Option<Self> {
        Self::quotient(part as u128, whole as u128)
    }

    /// Returns `percent / 100`, to the nearest step; `None` above 100.
    pub const fn from_percent(percent: u32) -> Option<Self> {
        Self::from_ratio(percent as u64, 100)
    }

    /// Returns `ppm` in a million, to the nearest step; `None` above 1,000,000.
    pub const fn from_ppm(ppm: u32) -> Option<Self> {
        Self::from_ratio(ppm as u64, 1_000_000)
    }

    /// Returns `value`, exact if it is a multiple of 2^-63 (as every value from 2^-10 on), else the step below;
    /// `None` if it is not from 0 to 1.
    pub const fn from_f64(value: f64) -> Option<Self> {
        // A multiplication by a power of two changes no digit, so there is no rounding that could differ between
        // machines.
        if value >= 0.0 && value <= 1.0 { Some(Self((value * ONE as f64) as u64)) } else { None }
    }

    /// Returns the nearest floating point number.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64 / ONE as f64
    }

    /// Returns `1 - self`, exact.
    pub const fn complement(self) -> Self {
        Self(ONE - self.0)
    }

    /// Returns the number of steps of 2^-63: 0 to [`ONE`].
    pub(crate) const fn steps(self) -> u64 {
        self.0
    }

    /// Returns the inverse of [`Self::steps`]; more than [`ONE`] is 1.
    pub(crate) const fn from_steps(steps: u64) -> Self {
        if steps < ONE { Self(steps) } else { Self::ALWAYS }
    }

    /// Returns 2^-`exponent`; 0 if that is less than a step.
    pub(crate) const fn power_of_half(exponent: u8) -> Self {
        if exponent < 64 { Self(ONE >> exponent) } else { Self::NEVER }
    }

    /// Returns `self * other`, to the nearest step.
    pub(crate) const fn times(self, other: Self) -> Self {
        Self(((self.0 as u128 * other.0 as u128 + (ONE as u128 >> 1)) >> 63) as u64)
    }

    /// Returns `part / whole` to the nearest step, `None` if `part` is more than `whole` or than 2^64, or both
    /// are 0.
    pub(crate) const fn quotient(part: u128, whole: u128) -> Option<Self> {
        if part > whole || whole == 0 || part > 1 << 64 {
            return None;
        }
        Some(Self((((part << 63) + (whole >> 1)) / whole) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_exact() {
        assert_eq!(Probability::from_percent(0), Some(Probability::NEVER));
        assert_eq!(Probability::from_percent(100), Some(Probability::ALWAYS));
        assert_eq!(Probability::from_ppm(1_000_000), Some(Probability::ALWAYS));
        assert_eq!(Probability::from_f64(0.0), Some(Probability::NEVER));
        assert_eq!(Probability::from_f64(1.0), Some(Probability::ALWAYS));
        assert_eq!(Probability::from_ratio(u64::MAX, u64::MAX), Some(Probability::ALWAYS));
    }

    #[test]
    fn what_is_not_from_0_to_1_is_refused() {
        assert_eq!(Probability::from_percent(101), None);
        assert_eq!(Probability::from_ppm(1_000_001), None);
        assert_eq!(Probability::from_ratio(0, 0), None);
        assert_eq!(Probability::from_ratio(3, 2), None);
        for value in [-f64::MIN_POSITIVE, 1.0 + f64::EPSILON, f64::NAN, f64::INFINITY] {
            assert_eq!(Probability::from_f64(value), None, "{value}");
        }
    }

    #[test]
    fn the_forms_of_a_rate_agree() {
        assert_eq!(Probability::from_percent(25), Some(Probability(1 << 61)));
        assert_eq!(Probability::from_percent(25), Probability::from_f64(0.25));
        assert_eq!(Probability::from_percent(3), Probability::from_ppm(30_000));
        // A third of 2^63 is 3074457345618258602.67.
        assert_eq!(Probability::from_ratio(1, 3), Some(Probability(3_074_457_345_618_258_603)));
    }

    #[test]
    fn arithmetic_keeps_the_ends() {
        let third = Probability(3_074_457_345_618_258_603);
        assert_eq!(third.times(Probability::ALWAYS), third);
        assert_eq!(third.times(Probability::NEVER), Probability::NEVER);
        assert_eq!(third.complement().complement(), third);
        assert_eq!(Probability::ALWAYS.complement(), Probability::NEVER);
        assert_eq!(Probability::power_of_half(0), Probability::ALWAYS);
        assert_eq!(Probability::power_of_half(63), Probability(1));
        assert_eq!(Probability::power_of_half(64), Probability::NEVER);
    }
}
