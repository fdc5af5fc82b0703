//! Grouped vertical bars over categories or over bins of whole numbers.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::number::Numerals;
use crate::plot::axis::{Axis, AxisExtent, Format, Ruler, Scale, nice_step};
use crate::plot::canvas::{Canvas, PlotFrame, Swatch, bar, decimals, extent, legend, line, px, series_group};
use crate::table::{Cell, Column, Table};
use crate::text::{printable, truncated, wrapped};

/// Groups of vertical bars. The y axis is always linear and includes zero, since lengths are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// Axis of the groups.
    pub x: Axis,
    /// Axis of the values.
    pub y: Axis,
    groups: Vec<String>,
    /// Names and values, one value per group; a missing value is NaN.
    series: Vec<(String, Vec<f64>)>,
    /// Index of the first bin of a histogram, counted from zero. Bins are evenly spaced, so that some labels
    /// suffice; named groups (`None`) need all labels.
    first_bin: Option<u64>,
}

/// Maximum number of bins; a longer range has wider ones.
const MOST_BINS: u64 = 64;

impl Bars {
    /// Returns groups with these names, without bars.
    pub fn new<T: Into<String>>(x: Axis, y: Axis, groups: impl IntoIterator<Item = T>) -> Self {
        let groups = groups.into_iter().map(Into::into).collect();
        Self { x, y, groups, series: Vec::new(), first_bin: None }
    }

    /// Adds one bar to each group. Values beyond the last group add groups without a name.
    #[must_use]
    pub fn series(mut self, name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let groups = self.groups.len().max(values.len());
        self.groups.resize(groups, String::new());
        self.series.push((name.into(), values));
        self
    }

    /// Returns a histogram of whole numbers, given as `(number, count)` in any order, for each series.
    ///
    /// All series share bins of equal width: one number each, or 2, 5, 10, … numbers if the range is long.
    /// Empty bins within the range are drawn, too.
    pub fn histogram<N, C>(x: Axis, y: Axis, series: impl IntoIterator<Item = (N, C)>) -> Self
    where
        N: Into<String>,
        C: IntoIterator<Item = (u64, u64)>,
    {
        let series: Vec<(String, Vec<(u64, u64)>)> = series
            .into_iter()
            .map(|(name, counts)| (name.into(), counts.into_iter().filter(|(_, count)| *count > 0).collect()))
            .collect();
        let numbers: BTreeSet<u64> = series.iter().flat_map(|(_, counts)| counts).map(|(n, _)| *n).collect();
        let (Some(&low), Some(&high)) = (numbers.first(), numbers.last()) else {
            let mut bars = Self::new(x, y, Vec::<String>::new());
            bars.series = series.into_iter().map(|(name, _)| (name, Vec::new())).collect();
            return bars;
        };
        let bin_width = bin_width(high - low);
        let first = low / bin_width;
        let bins = (high / bin_width - first).saturating_add(1).min(2 * MOST_BINS);
        let groups = (0..bins).map(|bin| bin_name(first + bin, bin_width));
        let mut bars = Self::new(x, y, groups);
        bars.first_bin = Some(first);
        for (name, counts) in series {
            let mut values = vec![0.0; bars.groups.len()];
            for (number, count) in counts {
                let bin = usize::try_from(number / bin_width - first).unwrap_or(usize::MAX);
                if let Some(value) = values.get_mut(bin) {
                    *value += count as f64;
                }
            }
            bars.series.push((name, values));
        }
        bars
    }

    pub(crate) fn data(&self) -> Table {
        let decimals = decimals(self.series.iter().flat_map(|(_, values)| values).copied());
        let mut columns = vec![Column::text(self.x.title())];
        columns.extend(self.series.iter().map(|(name, _)| Column {
            unit: self.y.unit.clone(),
            ..Column::number(if name.is_empty() { &self.y.label } else { name })
        }));
        let mut table = Table::new("", columns);
        for (group, name) in self.groups.iter().enumerate() {
            let values = self.series.iter().map(|(_, values)| match values.get(group) {
                Some(value) => self.y.cell(*value, decimals),
                None => Cell::Empty,
            });
            table.row(std::iter::once(Cell::text(name)).chain(values));
        }
        table
    }

    pub(crate) fn description(&self) -> String {
        let mut text = format!("Bar chart of {} by {}.", self.y.title(), self.x.title());
        for (name, values) in &self.series {
            let shown = values.iter().copied().enumerate().filter(|(_, value)| self.can_show(*value));
            let greatest = shown.max_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((group, value)) = greatest {
                let group = self.groups.get(group).map_or("", String::as_str);
                text += &format!(
                    " {}: at most {} at {}.",
                    printable(name),
                    self.y.value_text(value),
                    printable(group)
                );
            }
        }
        text
    }

    pub(crate) fn omissions(&self) -> usize {
        let values = self.series.iter().flat_map(|(_, values)| values);
        values.filter(|value| !value.is_nan() && !self.can_show(**value)).count()
    }

    fn can_show(&self, value: f64) -> bool {
        self.linear_y().can_show(value)
    }

    fn linear_y(&self) -> Axis {
        Axis { scale: Scale::Linear, ..self.y.clone() }
    }

    pub(crate) fn draw(&self, canvas: Canvas) -> (f64, Markup) {
        let y_axis = self.linear_y();
        let values = self.series.iter().flat_map(|(_, values)| values).copied();
        let y = Ruler::new(
            &y_axis,
            extent(values.filter(|value| self.can_show(*value))),
            5,
            AxisExtent::TicksAndZero,
        );
        let names: Vec<&str> = self.series.iter().map(|(name, _)| name.as_str()).collect();
        let named = names.len() > 1 || names.iter().any(|name| !name.is_empty());
        let (top, key) = if named { legend(canvas, &names, Swatch::Bar) } else { (0.0, html! {}) };
        let frame = PlotFrame::new(canvas, &y, top, 2.0);
        let (lines, labels) = self.group_labels(canvas, frame);
        let zero = frame.y(y.place(0.0));
        let drawing = html! {
            (key)
            (frame.y_axis(canvas, &y_axis, &y))
            (self.bars(canvas, frame, &y))
            (line("axis", (frame.left, zero), (frame.right, zero)))
            (labels)
        };
        (frame.end(canvas, &self.x, lines), drawing)
    }

    fn bars(&self, canvas: Canvas, frame: PlotFrame, y: &Ruler) -> Markup {
        let count = self.series.len().max(1) as f64;
        let group_width = self.group_width(frame);
        // Bins of a histogram almost touch; categories are apart.
        let filled = if self.first_bin.is_some() { 0.86 } else { 0.62 };
        let bar_width = (group_width * filled / count).min(56.0);
        let gap = if bar_width > 6.0 { 1.5 } else { 0.0 };
        let zero = frame.y(y.place(0.0));
        let texts = self.value_texts(canvas, bar_width);
        html! {
            @for (index, (name, values)) in self.series.iter().enumerate() { (series_group(index, &html! {
                @for (group, value) in self.drawn(values) {
                    @let centre = frame.left + group_width * (group as f64 + 0.5);
                    @let left = centre + bar_width * (index as f64 - count / 2.0);
                    @let end = frame.y(y.place(value));
                    @let size = (bar_width - gap, (end - zero).abs());
                    (bar(index, (left, end.min(zero)), size, &self.label(name, group, value)))
                    @if texts {
                        @let above = if value < 0.0 { end + canvas.letter + 2.0 } else { end - 5.0 };
                        text class="middle" x=(px(left + (bar_width - gap) / 2.0)) y=(px(above)) {
                            (self.value_text(value))
                        }
                    }
                }
            })) }
        }
    }

    /// Returns the values with a bar, and their groups.
    fn drawn(&self, values: &[f64]) -> impl Iterator<Item = (usize, f64)> {
        let values = values.iter().copied().enumerate();
        values.filter(|(_, value)| self.can_show(*value) && *value != 0.0)
    }

    fn group_width(&self, frame: PlotFrame) -> f64 {
        frame.width() / self.groups.len().max(1) as f64
    }

    /// True if each bar has room for its value above it.
    fn value_texts(&self, canvas: Canvas, bar_width: f64) -> bool {
        let values = self.series.iter().flat_map(|(_, values)| values).filter(|value| self.can_show(**value));
        let widest = values.map(|value| canvas.text_width(&self.value_text(*value))).fold(0.0, f64::max);
        self.first_bin.is_none() && widest + 4.0 <= bar_width
    }

    /// Formats a value next to its bar; the axis shows the unit.
    fn value_text(&self, value: f64) -> String {
        match self.y.format {
            Format::Number => Numerals::TYPESET.significant(value),
            Format::Octets | Format::Percent => self.y.value_text(value),
        }
    }

    fn label(&self, series: &str, group: usize, value: f64) -> String {
        let group = self.groups.get(group).map_or("", String::as_str);
        let group = match self.x.unit.as_deref() {
            Some(unit) if self.first_bin.is_some() => format!("{group} {unit}"),
            _ => group.to_owned(),
        };
        let series = if series.is_empty() { String::new() } else { format!("{series}, ") };
        format!("{series}{group}: {}", self.y.value_text(value))
    }

    /// Returns the labels below the groups, and their number of lines.
    fn group_labels(&self, canvas: Canvas, frame: PlotFrame) -> (usize, Markup) {
        let group_width = self.group_width(frame);
        let place = |group: usize| (group as f64 + 0.5) / self.groups.len().max(1) as f64;
        if let Some(first) = self.first_bin {
            let stride = self.label_stride(canvas, group_width);
            let to_round = (stride - (first % stride)) % stride;
            let skipped = usize::try_from(to_round).unwrap_or(0);
            let labels = self.groups.iter().enumerate().skip(skipped);
            let labels = labels.step_by(usize::try_from(stride).unwrap_or(usize::MAX));
            let labels = labels.map(|(group, name)| (place(group), name.clone()));
            return (1, frame.x_axis(canvas, &self.x, labels, false));
        }
        let columns = ((group_width - 6.0) / (canvas.letter * 0.6)).max(1.0) as usize;
        let names: Vec<Vec<String>> =
            self.groups.iter().map(|name| wrapped(&printable(name), columns)).collect();
        let lines = names.iter().map(Vec::len).max().unwrap_or(1).min(3);
        let drawing = html! {
            @for (group, name) in names.iter().enumerate() {
                @for (at, text) in name.iter().take(lines).enumerate() {
                    text class="middle" x=(px(frame.x(place(group))))
                        y=(px(frame.bottom + 7.0 + canvas.letter + canvas.line() * at as f64 * 0.85)) {
                        (truncated(text, columns))
                    }
                }
            }
            (frame.x_title(canvas, &self.x, lines))
        };
        (lines, drawing)
    }

    /// Returns the distance between labeled groups, a round number, so that the labels are round, too.
    fn label_stride(&self, canvas: Canvas, group_width: f64) -> u64 {
        let widest = self.groups.iter().map(|name| canvas.text_width(name)).fold(0.0, f64::max) + 12.0;
        (nice_step((widest / group_width.max(0.1)).max(1.0)) as u64).max(1)
    }
}

/// Returns the smallest of 1, 2, 5, 10, … that divides the range into at most [`MOST_BINS`] bins.
fn bin_width(range: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            let width = power.saturating_mul(factor);
            if range / width < MOST_BINS {
                return width;
            }
        }
        power = power.saturating_mul(10);
    }
}

fn bin_name(bin: u64, width: u64) -> String {
    let low = bin.saturating_mul(width);
    let name = |number: u64| Numerals::TYPESET.integer(number.into());
    if width == 1 { name(low) } else { format!("{}–{}", name(low), name(low.saturating_add(width - 1))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Figure;

    #[test]
    fn a_histogram_shares_bins_and_shows_empty_ones() {
        let bars = histogram([("a", vec![(3, 10), (1, 5), (3, 1)]), ("b", vec![(4, 2)])]);
        assert_eq!(bars.groups, ["1", "2", "3", "4"]);
        assert_eq!(bars.series[0].1, [5.0, 0.0, 11.0, 0.0]);
        assert_eq!(bars.series[1].1, [0.0, 0.0, 0.0, 2.0]);
    }

    #[test]
    fn long_ranges_get_wider_bins() {
        assert_eq!([0, 63, 64, 127, 128, 1400].map(bin_width), [1, 1, 2, 2, 5, 50]);
        let bars = histogram([("", vec![(20, 1), (1500, 1)])]);
        assert_eq!(bars.groups.first().map(String::as_str), Some("0–49"));
        assert_eq!(bars.groups.len(), 31);
        let bars = histogram([("", vec![(0, 1), (u64::MAX, u64::MAX)])]);
        assert!(bars.groups.len() <= 64);
        assert_eq!(bars.series[0].1.iter().filter(|value| **value > 0.0).count(), 2);
    }

    #[test]
    fn odd_bars_are_drawn_without_panic() {
        let none = || Bars::new(Axis::new(""), Axis::new(""), Vec::<String>::new());
        for bars in [
            none(),
            none().series("", []),
            none().series("more values than groups", [1.0, 2.0]),
            none().series("", [f64::NAN, f64::INFINITY, -1e300, 1e290, -1e290]),
            Bars::new(Axis::new(""), Axis::new("").logarithmic(), ["a"]).series("", [-3.0]),
            histogram([("", vec![])]),
            histogram([("", vec![(7, 0)])]),
            histogram([("", vec![(7, 1)])]),
        ] {
            let svg = Figure::new("", bars).to_svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"));
        }
    }

    #[test]
    fn what_is_not_finite_is_counted_and_what_is_missing_is_not() {
        let bars = Bars::new(Axis::new(""), Axis::new(""), ["a", "b", "c"]);
        let bars = bars.series("", [f64::NAN, f64::INFINITY]);
        assert_eq!(bars.omissions(), 1);
        assert_eq!(bars.data().rows().len(), 3);
    }

    fn histogram<const N: usize>(series: [(&str, Vec<(u64, u64)>); N]) -> Bars {
        Bars::histogram(Axis::new("size").unit("B"), Axis::new("packets"), series)
    }
}
