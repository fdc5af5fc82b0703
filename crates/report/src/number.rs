//! Formatting of numbers: grouping, rounding and decimal prefixes. A [`Numerals`] defines the separators of a
//! medium.

/// Format of numbers in one medium.
///
/// Rounding never yields zero for other values, and 100 % only for the whole. Such values are shown with `<`
/// or `>` and the nearest number that can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numerals {
    /// Separator between groups of three digits.
    pub group: &'static str,
    /// The sign of negative numbers.
    pub minus: &'static str,
    /// Separator between a number and its unit.
    pub gap: &'static str,
    /// A blank of the width of a digit, for alignment.
    pub pad: char,
}

/// From here on, the digits before the decimal point are no longer exact in an `f64`.
const SCIENTIFIC_FROM: f64 = 1e15;

/// Maximum number of decimals that an `f64` represents.
const MAX_DECIMALS: usize = 15;

/// Text for values that are not numbers.
const NOT_A_NUMBER: &str = "–";

impl Numerals {
    /// Format for fixed-width text: `1,234.5`, `-3`.
    pub const TERMINAL: Self = Self { group: ",", minus: "-", gap: " ", pad: ' ' };

    /// Format for proportional text that must not break within a number: narrow no-break spaces, a minus
    /// sign.
    pub const TYPESET: Self = Self { group: "\u{202f}", minus: "\u{2212}", gap: "\u{202f}", pad: '\u{2007}' };

    /// Formats all digits, in groups of three.
    pub fn integer(&self, value: i128) -> String {
        let digits = self.grouped(&value.unsigned_abs().to_string());
        if value < 0 { format!("{}{digits}", self.minus) } else { digits }
    }

    /// Formats a number, rounded to `decimals` places; with a power of ten from 10^15 on; as a dash if it is
    /// not a number.
    pub fn number(&self, value: f64, decimals: u8) -> String {
        if value.is_nan() {
            return NOT_A_NUMBER.to_owned();
        }
        let sign = if value < 0.0 { self.minus } else { "" };
        if value.is_infinite() {
            return format!("{sign}∞");
        }
        let size = value.abs();
        if size >= SCIENTIFIC_FROM {
            return self.scientific(value);
        }
        let decimals = usize::from(decimals).min(MAX_DECIMALS);
        let digits = format!("{size:.decimals$}");
        if size > 0.0 && is_zero(&digits) {
            let bound = if value < 0.0 { ">" } else { "<" };
            return format!("{bound}{sign}{}", last_place(decimals));
        }
        let sign = if is_zero(&digits) { "" } else { sign };
        format!("{sign}{}", self.grouped(&digits))
    }

    /// Formats a ratio as a percentage, rounded to `decimals` places: 0.25 is `25.0 %`.
    pub fn percent(&self, ratio: f64, decimals: u8) -> String {
        let percent = ratio * 100.0;
        let whole = self.number(100.0, decimals);
        let mut digits = self.number(percent, decimals);
        if digits == whole && ratio < 1.0 {
            let step = 0.1_f64.powi(i32::from(decimals));
            digits = format!(">{}", self.number(100.0 - step, decimals));
        } else if digits == whole && ratio > 1.0 {
            digits = format!(">{whole}");
        }
        if percent.is_nan() { digits } else { format!("{digits}{}%", self.gap) }
    }

    /// Formats octets with a decimal prefix and three significant digits: `999 B`, `1.23 kB`, `45.6 MB`.
    pub fn octets(&self, octets: u64) -> String {
        if octets < 1000 {
            return format!("{octets}{}B", self.gap);
        }
        let mut scaled = octets as f64;
        for prefix in ["kB", "MB", "GB", "TB", "PB"] {
            scaled /= 1000.0;
            // The limits are those at which rounding adds a digit, so that 999,999 B is 1.00 MB.
            let decimals = match scaled {
                s if s < 9.995 => 2,
                s if s < 99.95 => 1,
                s if s < 999.5 => 0,
                _ => continue,
            };
            return format!("{scaled:.decimals$}{}{prefix}", self.gap);
        }
        format!("{:.1}{}EB", scaled / 1000.0, self.gap)
    }

    /// Formats a value with its margin: `12.34 ± 0.05`. The margin is padded to `margin_width` characters, so
    /// that a column is aligned. A margin that is not a number is omitted.
    pub fn estimate(&self, value: f64, margin: f64, decimals: u8, margin_width: usize) -> String {
        let value = self.number(value, decimals);
        let margin = self.margin(margin, decimals);
        if margin.is_empty() {
            return value;
        }
        let fill = margin_width.saturating_sub(margin.chars().count());
        let fill: String = std::iter::repeat_n(self.pad, fill).collect();
        let space = if self.pad == ' ' { " " } else { "\u{a0}" };
        format!("{value}{space}±{space}{fill}{margin}")
    }

    /// Formats the margin of an [`estimate`](Self::estimate), for measuring its width.
    pub(crate) fn margin(&self, margin: f64, decimals: u8) -> String {
        if margin.is_nan() { String::new() } else { self.number(margin.abs(), decimals) }
    }

    /// Formats up to four significant digits without trailing zeros, for labels with a common magnitude.
    pub(crate) fn significant(&self, value: f64) -> String {
        let size = value.abs();
        if !value.is_finite() || size >= SCIENTIFIC_FROM {
            return self.number(value, 0);
        }
        if size > 0.0 && size < 1e-4 {
            return self.scientific(value);
        }
        if size == 0.0 || size.fract() == 0.0 {
            return self.number(value, 0);
        }
        let decimals = (3.0 - size.log10().floor()).clamp(0.0, 8.0) as u8;
        let digits = self.number(value, decimals);
        if digits.contains('.') {
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            digits
        }
    }

    /// Formats as `1.5×10¹⁸`.
    pub(crate) fn scientific(&self, value: f64) -> String {
        let text = format!("{:.2e}", value.abs());
        let sign = if value < 0.0 { self.minus } else { "" };
        let Some((mantissa, exponent)) = text.split_once('e') else { return text };
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        let power: String = exponent.chars().map(superscript).collect();
        if mantissa == "1" { format!("{sign}10{power}") } else { format!("{sign}{mantissa}×10{power}") }
    }

    fn grouped(&self, digits: &str) -> String {
        let (whole, fraction) = digits.find('.').map_or((digits, ""), |point| digits.split_at(point));
        let mut out = String::with_capacity(digits.len() * 2);
        for (at, digit) in whole.chars().enumerate() {
            if at > 0 && (whole.len() - at).is_multiple_of(3) {
                out.push_str(self.group);
            }
            out.push(digit);
        }
        out + fraction
    }
}

fn is_zero(digits: &str) -> bool {
    digits.chars().all(|c| matches!(c, '0' | '.'))
}

/// Formats a one in the last of this number of decimals: `1`, `0.1`, `0.01`.
fn last_place(decimals: usize) -> String {
    if decimals == 0 { "1".to_owned() } else { format!("0.{}1", "0".repeat(decimals - 1)) }
}

fn superscript(c: char) -> char {
    match c {
        '-' => '⁻',
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: Numerals = Numerals::TERMINAL;

    #[test]
    fn integers_are_grouped_by_three() {
        assert_eq!(N.integer(0), "0");
        assert_eq!(N.integer(999), "999");
        assert_eq!(N.integer(-1_234_567), "-1,234,567");
        assert_eq!(N.integer(u64::MAX.into()), "18,446,744,073,709,551,615");
        assert_eq!(Numerals::TYPESET.integer(-12_345), "\u{2212}12\u{202f}345");
    }

    #[test]
    fn numbers_round_without_claiming_zero() {
        assert_eq!(N.number(1234.567, 2), "1,234.57");
        assert_eq!(N.number(0.0, 2), "0.00");
        assert_eq!(N.number(-0.0, 2), "0.00");
        assert_eq!(N.number(0.004, 2), "<0.01");
        assert_eq!(N.number(-0.004, 2), ">-0.01");
        assert_eq!(N.number(0.4, 0), "<1");
    }

    #[test]
    fn numbers_that_are_none_or_too_large_are_set_all_the_same() {
        assert_eq!(N.number(f64::NAN, 2), "–");
        assert_eq!(N.number(f64::NEG_INFINITY, 2), "-∞");
        assert_eq!(N.number(-2.5e18, 255), "-2.5×10¹⁸");
        assert_eq!(N.number(f64::MAX, 2), "1.8×10³⁰⁸");
        assert_eq!(N.number(0.5, 255), "0.500000000000000");
    }

    #[test]
    fn percentages_reach_the_whole_only_when_they_are_the_whole() {
        assert_eq!(N.percent(0.25, 1), "25.0 %");
        assert_eq!(N.percent(1.0, 1), "100.0 %");
        assert_eq!(N.percent(0.9999, 1), ">99.9 %");
        assert_eq!(N.percent(1.0001, 1), ">100.0 %");
        assert_eq!(N.percent(0.0001, 1), "<0.1 %");
        assert_eq!(N.percent(-0.125, 1), "-12.5 %");
        assert_eq!(N.percent(f64::NAN, 1), "–");
    }

    #[test]
    fn octets_keep_three_digits_across_prefixes() {
        assert_eq!(N.octets(0), "0 B");
        assert_eq!(N.octets(999), "999 B");
        assert_eq!(N.octets(1_234), "1.23 kB");
        assert_eq!(N.octets(9_994), "9.99 kB");
        assert_eq!(N.octets(9_996), "10.0 kB");
        assert_eq!(N.octets(999_499), "999 kB");
        assert_eq!(N.octets(999_999), "1.00 MB");
        assert_eq!(N.octets(u64::MAX), "18.4 EB");
    }

    #[test]
    fn estimates_line_up_at_the_sign() {
        assert_eq!(N.estimate(12.345, 0.05, 2, 5), "12.35 ±  0.05");
        assert_eq!(N.estimate(1.0, 10.25, 2, 5), "1.00 ± 10.25");
        assert_eq!(N.estimate(1.0, f64::NAN, 2, 5), "1.00");
    }

    #[test]
    fn significant_digits_follow_the_size() {
        assert_eq!(N.significant(0.0), "0");
        assert_eq!(N.significant(12_345.0), "12,345");
        assert_eq!(N.significant(1.5), "1.5");
        assert_eq!(N.significant(0.012_345), "0.01235");
        assert_eq!(N.significant(2e-9), "2×10⁻⁹");
        assert_eq!(N.significant(f64::INFINITY), "∞");
    }
}
