//! An axis: quantity, range, and ticks with their labels. Positions on it are fractions from 0 to 1,
//! independent of the page.

use crate::number::Numerals;
use crate::table::{Cell, with_unit};
use crate::text::printable;

/// Quantity and scale of an axis.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Axis {
    /// Name of the quantity.
    pub label: String,
    /// Unit of bare numbers.
    pub unit: Option<String>,
    /// Format of values.
    pub format: Format,
    /// Scale of values.
    pub scale: Scale,
}

/// Format of the values on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Bare numbers.
    #[default]
    Number,
    /// Amounts of data with a decimal prefix.
    Octets,
    /// Percentages of ratios.
    Percent,
}

/// Scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Equal differences have equal distances.
    #[default]
    Linear,
    /// Equal factors have equal distances. Only values above zero can be shown.
    Logarithmic,
}

impl Axis {
    /// Returns a linear axis of bare numbers.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Sets the unit of bare numbers.
    #[must_use]
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = Some(unit.into());
        self
    }

    /// Formats values as amounts of data.
    #[must_use]
    pub fn octets(mut self) -> Self {
        self.format = Format::Octets;
        self
    }

    /// Formats values, which are ratios, as percentages.
    #[must_use]
    pub fn percent(mut self) -> Self {
        self.format = Format::Percent;
        self
    }

    /// Makes the scale logarithmic.
    #[must_use]
    pub fn logarithmic(mut self) -> Self {
        self.scale = Scale::Logarithmic;
        self
    }

    pub(crate) fn title(&self) -> String {
        printable(&with_unit(&self.label, self.unit.as_deref())).into_owned()
    }

    /// True if the value can be shown on such an axis.
    pub(crate) fn can_show(&self, value: f64) -> bool {
        value.abs() <= LARGEST && (self.scale == Scale::Linear || value >= 1.0 / LARGEST)
    }

    /// Formats a single value, with its unit.
    pub(crate) fn value_text(&self, value: f64) -> String {
        let numerals = Numerals::TYPESET;
        match self.format {
            Format::Number => with_symbol(&numerals.significant(value), self.unit.as_deref()),
            Format::Octets => numerals.octets_of(value),
            Format::Percent => numerals.percent(value, 1),
        }
    }

    /// Returns a value as a cell; `decimals` are for bare numbers.
    pub(crate) fn cell(&self, value: f64, decimals: u8) -> Cell {
        match self.format {
            Format::Number => Cell::number(value, decimals),
            Format::Octets if value >= 0.0 && value.fract() == 0.0 => Cell::Octets(value as u64),
            Format::Octets => Cell::number(value, decimals),
            Format::Percent => Cell::Percent(value),
        }
    }
}

fn with_symbol(number: &str, unit: Option<&str>) -> String {
    match unit {
        Some(unit) if !unit.is_empty() => format!("{number}{}{}", Numerals::TYPESET.gap, printable(unit)),
        _ => number.to_owned(),
    }
}

impl Numerals {
    fn octets_of(&self, value: f64) -> String {
        if value.is_finite() && value >= 1000.0 {
            return self.octets(value.round() as u64);
        }
        with_symbol(&self.significant(value), Some("B"))
    }
}

/// Limit of values, beyond which their differences and sums may overflow.
const LARGEST: f64 = 1e290;

/// Maximum number of ticks.
const MOST_TICKS: usize = 40;

/// Range of an axis, with its ticks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ruler {
    low: f64,
    high: f64,
    scale: Scale,
    pub(crate) ticks: Vec<Tick>,
}

/// A tick on a [`Ruler`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    /// Position from 0 at the low end to 1 at the high end.
    pub(crate) place: f64,
    pub(crate) label: String,
}

/// Extension of an axis beyond the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AxisExtent {
    /// The range equals that of the data.
    Data,
    /// The range begins and ends at a tick, and at zero if zero is near.
    Ticks,
    /// As `Ticks`, and always including zero, since lengths are compared.
    TicksAndZero,
}

impl Ruler {
    /// Returns the ruler for values from `low` to `high` with about `count` ticks. All values must be valid
    /// for the axis; `None` means no values.
    pub(crate) fn new(axis: &Axis, extent: Option<(f64, f64)>, count: usize, ends: AxisExtent) -> Self {
        match axis.scale {
            Scale::Linear => Self::linear(axis, extent.unwrap_or((0.0, 1.0)), count, ends),
            Scale::Logarithmic => Self::logarithmic(axis, extent.unwrap_or((1.0, 10.0)), count, ends),
        }
    }

    /// Returns the position of a value, from 0 to 1 within the range.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        if place.is_finite() { place } else { 0.0 }
    }

    fn linear(axis: &Axis, (mut low, mut high): (f64, f64), count: usize, ends: AxisExtent) -> Self {
        match ends {
            AxisExtent::Data => {}
            AxisExtent::Ticks => {
                // A range that starts just above zero is extended to zero; one that starts far from zero is
                // not.
                if low > 0.0 && low < 0.4 * high {
                    low = 0.0;
                }
            }
            AxisExtent::TicksAndZero => (low, high) = (low.min(0.0), high.max(0.0)),
        }
        // A range too small for an f64 to divide is widened, with a single value in its middle.
        let least = low.abs().max(high.abs()) * 1e-9;
        if high - low <= least {
            let pad = if low == 0.0 && high == 0.0 { 1.0 } else { low.abs().max(high.abs()) * 0.1 };
            if ends != AxisExtent::TicksAndZero || high > 0.0 || low == 0.0 {
                high += pad;
            }
            if ends != AxisExtent::TicksAndZero {
                low -= if low == 0.0 && ends == AxisExtent::Ticks { 0.0 } else { pad };
            }
        }
        let step = nice_step((high - low) / count.max(1) as f64);
        if ends != AxisExtent::Data {
            low = (low / step + 1e-9).floor() * step;
            high = (high / step - 1e-9).ceil() * step;
        }
        let first = (low / step - 1e-9).ceil();
        let last = (high / step + 1e-9).floor();
        let values: Vec<f64> = (0..MOST_TICKS)
            .map(|at| first + at as f64)
            .take_while(|index| *index <= last)
            .map(|index| index * step)
            .collect();
        let labels = linear_labels(axis.format, &values, step);
        Self::assemble(low, high, Scale::Linear, &values, labels)
    }

    fn logarithmic(axis: &Axis, (mut low, mut high): (f64, f64), count: usize, ends: AxisExtent) -> Self {
        if high <= low * (1.0 + 1e-6) {
            (low, high) = (low / 2.0, high * 2.0);
        }
        let first = low.log10().floor() as i32;
        let last = high.log10().ceil() as i32;
        let decades = (last - first).max(1);
        let mantissas: &[f64] = if decades <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let stride = (decades as usize).div_ceil(count.max(1)).max(1);
        let mut values: Vec<f64> = (first..=last)
            .step_by(stride)
            .flat_map(|power| mantissas.iter().map(move |mantissa| mantissa * 10.0_f64.powi(power)))
            .collect();
        if ends != AxisExtent::Data {
            low = values.iter().copied().rfind(|v| *v <= low * (1.0 + 1e-9)).unwrap_or(low);
            high = values.iter().copied().find(|v| *v >= high * (1.0 - 1e-9)).unwrap_or(high);
        }
        values.retain(|v| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(v));
        let labels = values.iter().map(|value| logarithmic_label(axis.format, *value)).collect();
        Self::assemble(low, high, Scale::Logarithmic, &values, labels)
    }

    fn assemble(low: f64, high: f64, scale: Scale, values: &[f64], labels: Vec<String>) -> Self {
        let mut ruler = Self { low, high, scale, ticks: Vec::new() };
        ruler.ticks = values
            .iter()
            .zip(labels)
            .map(|(value, label)| Tick { place: ruler.place(*value), label })
            .filter(|tick| (-1e-6..=1.0 + 1e-6).contains(&tick.place))
            .collect();
        ruler
    }
}

/// Returns the smallest of 1, 2, 5 times a power of ten that is at least `least`.
pub(crate) fn nice_step(least: f64) -> f64 {
    if !least.is_finite() || least < f64::MIN_POSITIVE {
        return 1.0;
    }
    let power = 10.0_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

fn linear_labels(format: Format, values: &[f64], step: f64) -> Vec<String> {
    let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let numerals = Numerals::TYPESET;
    let (unit, suffix) = match format {
        Format::Percent => (0.01, "%"),
        Format::Octets => prefixed(largest, &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")], "B"),
        Format::Number if largest >= 1e15 || (largest > 0.0 && largest < 1e-3) => {
            return values
                .iter()
                .map(|v| if *v == 0.0 { "0".to_owned() } else { numerals.scientific(*v) })
                .collect();
        }
        Format::Number => prefixed(largest, &[(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e5, "k")], ""),
    };
    // The threshold is higher for thousands without a prefix; the prefix still means a thousand.
    let unit = if suffix == "k" { 1e3 } else { unit };
    let decimals = (-(step / unit).log10() - 1e-9).ceil().clamp(0.0, 12.0) as u8;
    values
        .iter()
        .map(|value| {
            if *value == 0.0 {
                return "0".to_owned();
            }
            let digits = numerals.number(value / unit, decimals);
            if suffix.is_empty() { digits } else { format!("{digits}{}{suffix}", numerals.gap) }
        })
        .collect()
}

fn prefixed(largest: f64, prefixes: &[(f64, &'static str)], without: &'static str) -> (f64, &'static str) {
    prefixes.iter().copied().find(|(from, _)| largest >= *from).unwrap_or((1.0, without))
}

fn logarithmic_label(format: Format, value: f64) -> String {
    let numerals = Numerals::TYPESET;
    match format {
        Format::Number if (1e-3..1e5).contains(&value) => numerals.significant(value),
        Format::Number => numerals.scientific(value),
        Format::Octets => Axis::new("").octets().value_text(value),
        Format::Percent => with_symbol(&numerals.significant(value * 100.0), Some("%")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_one_two_or_five_times_a_power_of_ten() {
        assert_eq!(nice_step(0.9), 1.0);
        assert_eq!(nice_step(1.1), 2.0);
        assert_eq!(nice_step(3.0), 5.0);
        assert_eq!(nice_step(7.0), 10.0);
        assert!((nice_step(0.013) - 0.02).abs() < 1e-12);
        assert_eq!(nice_step(f64::NAN), 1.0);
        assert_eq!(nice_step(0.0), 1.0);
    }

    #[test]
    fn ticks_cover_the_data_and_read_as_round_numbers() {
        assert_eq!(
            labels(&Axis::new(""), (3.0, 97.0), AxisExtent::Ticks),
            ["0", "20", "40", "60", "80", "100"]
        );
        assert_eq!(labels(&Axis::new(""), (0.0, 0.3), AxisExtent::Ticks), ["0", "0.1", "0.2", "0.3"]);
        assert_eq!(
            labels(&Axis::new(""), (-1.0, 1.0), AxisExtent::Ticks),
            ["−1.0", "−0.5", "0", "0.5", "1.0"]
        );
        assert_eq!(labels(&Axis::new(""), (90.0, 97.0), AxisExtent::Ticks), ["90", "92", "94", "96", "98"]);
        assert_eq!(
            labels(&Axis::new(""), (90.0, 97.0), AxisExtent::TicksAndZero),
            ["0", "20", "40", "60", "80", "100"]
        );
        assert_eq!(labels(&Axis::new(""), (3.0, 9.0), AxisExtent::Data), ["4", "6", "8"]);
    }

    #[test]
    fn large_ticks_take_a_prefix() {
        assert_eq!(labels(&Axis::new(""), (0.0, 4e5), AxisExtent::Ticks)[1], "100\u{202f}k");
        assert_eq!(labels(&Axis::new(""), (0.0, 2e6), AxisExtent::Ticks)[1], "0.5\u{202f}M");
        assert_eq!(labels(&Axis::new("").octets(), (0.0, 5000.0), AxisExtent::Ticks)[1], "1\u{202f}kB");
        assert_eq!(labels(&Axis::new("").percent(), (0.0, 1.0), AxisExtent::Ticks)[1], "20\u{202f}%");
        assert_eq!(labels(&Axis::new(""), (0.0, 5e20), AxisExtent::Ticks)[1], "10²⁰");
    }

    #[test]
    fn a_logarithmic_axis_marks_powers_of_ten() {
        let axis = Axis::new("").logarithmic();
        assert_eq!(
            labels(&axis, (2e-5, 0.5), AxisExtent::Ticks),
            ["10⁻⁵", "10⁻⁴", "0.001", "0.01", "0.1", "1"]
        );
        assert_eq!(labels(&axis, (3.0, 40.0), AxisExtent::Ticks), ["2", "5", "10", "20", "50"]);
    }

    #[test]
    fn places_run_from_zero_to_one() {
        let ruler = Ruler::new(&Axis::new("").logarithmic(), Some((1.0, 100.0)), 5, AxisExtent::Ticks);
        assert!((ruler.place(10.0) - 0.5).abs() < 1e-12);
        let ruler = Ruler::new(&Axis::new(""), Some((0.0, 10.0)), 5, AxisExtent::Ticks);
        assert_eq!(ruler.place(10.0), 1.0);
    }

    #[test]
    fn every_extent_gives_a_usable_ruler() {
        let sizes = [0.0, 1e-290, 1e-9, 1.0, 1.0 + 1e-15, 7.0, 1e15, 1e15 + 0.125, 1e290];
        for low in sizes.iter().flat_map(|s| [-s, *s]) {
            for high in sizes.iter().flat_map(|s| [-s, *s]).filter(|high| *high >= low) {
                for ends in [AxisExtent::Data, AxisExtent::Ticks, AxisExtent::TicksAndZero] {
                    for axis in [Axis::new(""), Axis::new("").octets(), Axis::new("").percent()] {
                        check(&axis, (low, high), ends);
                    }
                    if low > 0.0 {
                        check(&Axis::new("").logarithmic(), (low, high), ends);
                    }
                }
            }
        }
    }

    fn check(axis: &Axis, extent: (f64, f64), ends: AxisExtent) {
        let ruler = Ruler::new(axis, Some(extent), 5, ends);
        assert!(ruler.ticks.len() <= 16, "{extent:?} {ends:?} {:?}", ruler.ticks);
        assert!(ruler.low < ruler.high, "{extent:?} {ends:?} {ruler:?}");
        for value in [extent.0, extent.1] {
            let place = ruler.place(value);
            assert!((-0.01..=1.01).contains(&place), "{extent:?} {ends:?} {place}");
        }
    }

    fn labels(axis: &Axis, extent: (f64, f64), ends: AxisExtent) -> Vec<String> {
        Ruler::new(axis, Some(extent), 5, ends).ticks.into_iter().map(|tick| tick.label).collect()
    }
}
