//! Integer time. The caller passes the time to engines; they never read a clock.

use core::ops::Add;
use core::time::Duration;

/// A point in time: nanoseconds since an origin that the caller chooses.
///
/// Never goes back within one engine. 64 bits last 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `millis` milliseconds after the origin; saturates.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Nanoseconds from `earlier` to `self`; zero if `earlier` is later.
    #[inline]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Time from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates at the largest value.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Parses a span of time: digits with an optional decimal point, and a unit of `us`, `ms`, `s`, `min` or `h`, such as
/// `1.5s`. `None` if the text has another form, or is too long for a [`Duration`].
pub fn span(text: &str) -> Option<Duration> {
    // Longer units first: `ms` ends with `s`.
    let units = [("min", 60.0), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("h", 3_600.0)];
    let (digits, seconds) =
        units.into_iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))?;
    let digits = digits.trim_end();
    // `parse` also accepts signs, exponents, infinity and NaN.
    let plain = digits.bytes().all(|octet| octet.is_ascii_digit() || octet == b'.');
    let number: f64 = digits.parse().ok().filter(|_| plain)?;
    Duration::try_from_secs_f64(number * seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_numbers_with_units() {
        for (text, micros) in
            [("500us", 500), ("3ms", 3_000), ("1.5 s", 1_500_000), ("2min", 120_000_000), ("0h", 0)]
        {
            assert_eq!(span(text), Some(Duration::from_micros(micros)), "{text}");
        }
        for bad in ["", "3", "ms", "-3ms", "+3ms", "infs", "nans", "3 weeks", "1e3s", "1.2.3s"] {
            assert_eq!(span(bad), None, "{bad}");
        }
        assert_eq!(span("99999999999999999999h"), None);
    }

    #[test]
    fn spans_never_go_below_zero() {
        let early = Instant::from_millis(5);
        let late = early + Duration::from_micros(1);
        assert_eq!(late.since(early), Duration::from_nanos(1_000));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(Instant::from_nanos(u64::MAX) + Duration::from_secs(1), Instant::from_nanos(u64::MAX));
    }
}
