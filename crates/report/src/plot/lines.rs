//! Curves over a common x axis, straight or in steps, with optional intervals.

use maud::{Markup, html};

use crate::plot::axis::{Axis, AxisExtent, Ruler, Scale};
use crate::plot::canvas::{
    Canvas, PlotFrame, Swatch, color, curve, curve_swatch, decimals, extent, key, legend, line, mark, px,
    series_group,
};
use crate::plot::decimate::thinned;
use crate::table::{Cell, Column, Table};
use crate::text::printable;

/// Curves over a common x axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The curves. The first is drawn last, on top of the others.
    pub series: Vec<Series>,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name of the curve.
    pub name: String,
    /// Points in drawing order, usually by rising x.
    pub points: Vec<Point>,
    /// Connection of the points.
    pub shape: Shape,
}

/// A point of a curve. If `x` or `y` is not finite, the curve has a gap there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Position on the x axis.
    pub x: f64,
    /// Position on the y axis.
    pub y: f64,
    /// Ends of the interval around `y`, if it is known.
    pub interval: Option<(f64, f64)>,
}

/// Connection of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// Straight lines.
    #[default]
    Straight,
    /// Steps: a value holds until the next point.
    Step,
}

/// Maximum number of points of a curve with marks.
const MOST_MARKS: usize = 40;

/// Maximum number of curves named at their ends; more are named in a legend.
const MOST_DIRECT: usize = 6;

impl Lines {
    /// Returns a plot without curves.
    pub fn new(x: Axis, y: Axis) -> Self {
        Self { x, y, series: Vec::new() }
    }

    /// Adds a curve.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    pub(crate) fn data(&self) -> Table {
        let all = || self.series.iter().flat_map(|series| &series.points);
        let has_intervals = all().any(|point| point.interval.is_some());
        let x_decimals = decimals(all().map(|point| point.x));
        let y_decimals = decimals(all().map(|point| point.y));
        let column = |axis: &Axis, heading: &str| Column {
            unit: axis.unit.clone(),
            ..Column::number(if axis.label.is_empty() { heading } else { &axis.label })
        };
        let mut columns = vec![Column::text("series"), column(&self.x, "x"), column(&self.y, "y")];
        if has_intervals {
            columns.extend([Column::number("low"), Column::number("high")]);
        }
        let mut table = Table::new("", columns);
        for series in &self.series {
            for point in &series.points {
                let y = |value| self.y.cell(value, y_decimals);
                let mut row = vec![Cell::text(&series.name), self.x.cell(point.x, x_decimals), y(point.y)];
                row.extend(point.interval.into_iter().flat_map(|(low, high)| [y(low), y(high)]));
                table.row(row);
            }
        }
        table
    }

    pub(crate) fn description(&self) -> String {
        let mut text = format!("Line chart of {} over {}.", self.y.title(), self.x.title());
        for series in &self.series {
            let values = series.points.iter().map(|point| point.y).filter(|y| self.y.can_show(*y));
            text += &match extent(values) {
                Some((low, high)) => format!(
                    " {}: {} to {}.",
                    printable(&series.name),
                    self.y.value_text(low),
                    self.y.value_text(high)
                ),
                None => format!(" {}: no values.", printable(&series.name)),
            };
        }
        text
    }

    /// Number of values that the axes cannot show, and the reason. Intended gaps do not count.
    pub(crate) fn omissions(&self) -> (usize, &'static str) {
        let points = self.series.iter().flat_map(|series| &series.points);
        let hidden = points.filter(|p| !p.x.is_nan() && !p.y.is_nan() && !self.can_show(p)).count();
        let logarithmic = [&self.x, &self.y].iter().any(|axis| axis.scale == Scale::Logarithmic);
        (
            hidden,
            if logarithmic { "not above zero on a logarithmic axis, or not finite" } else { "not finite" },
        )
    }

    fn can_show(&self, point: &Point) -> bool {
        self.x.can_show(point.x) && self.y.can_show(point.y)
    }

    pub(crate) fn draw(&self, canvas: Canvas) -> (f64, Markup) {
        let curves = self.visible(canvas);
        let (x, y) = self.rulers(canvas, &curves);
        let marked = curves.iter().all(|curve| curve.points.len() <= MOST_MARKS);
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        let direct = self.direct_margin(canvas, &x, &curves);
        let (top, key) = match direct {
            Some(_) => (0.0, html! {}),
            None if names.len() < 2 && names.iter().all(|name| name.is_empty()) => (0.0, html! {}),
            None => legend(canvas, &names, Swatch::Curve { marked }),
        };
        let frame = PlotFrame::new(canvas, &y, top, direct.unwrap_or(canvas.letter));
        let place = |x_value, y_value| (frame.x(x.place(x_value)), frame.y(y.place(y_value)));
        let ticks = x.ticks.iter().map(|tick| (tick.place, tick.label.clone()));
        let drawing = html! {
            (key)
            (frame.y_axis(canvas, &self.y, &y))
            (line("axis", (frame.left, frame.bottom), (frame.right, frame.bottom)))
            (frame.x_axis(canvas, &self.x, ticks, true))
            @for (index, series) in curves.iter().enumerate().rev() { (series_group(index, &self.interval(index, series, &place))) }
            @for (index, series) in curves.iter().enumerate().rev() { (series_group(index, &self.curve(index, series, &place))) }
            @if direct.is_some() { (self.direct_labels(canvas, frame, &curves, &place)) }
        };
        (frame.end(canvas, &self.x, 1), drawing)
    }

    /// Returns the curves thinned to the visible number of points, with gaps for those that cannot be shown.
    fn visible(&self, canvas: Canvas) -> Vec<Series> {
        self.series
            .iter()
            .map(|series| {
                let points: Vec<Point> = series
                    .points
                    .iter()
                    .filter(|point| self.x.can_show(point.x))
                    .map(|point| if self.can_show(point) { *point } else { Point::new(point.x, f64::NAN) })
                    .collect();
                Series { points: thinned(&points, canvas.points), ..series.clone() }
            })
            .collect()
    }

    fn rulers(&self, canvas: Canvas, curves: &[Series]) -> (Ruler, Ruler) {
        let points = || curves.iter().flat_map(|curve| &curve.points).filter(|point| point.y.is_finite());
        let ys = points().flat_map(|point| {
            let interval = point.interval.map(|(low, high)| [low, high]).into_iter().flatten();
            interval.chain([point.y]).filter(|y| self.y.can_show(*y))
        });
        let x_count = if canvas.is_narrow() { 4 } else { 8 };
        let x = Ruler::new(&self.x, extent(points().map(|point| point.x)), x_count, AxisExtent::Data);
        let y = Ruler::new(&self.y, extent(ys), 5, AxisExtent::Ticks);
        (x, y)
    }

    /// Returns the margin for names at the ends of curves, if they fit there: all curves reach the end and
    /// are few enough.
    fn direct_margin(&self, canvas: Canvas, x: &Ruler, curves: &[Series]) -> Option<f64> {
        let reach_end = curves.iter().all(|curve| curve.end().is_some_and(|end| x.place(end.x) > 0.9));
        if canvas.is_narrow() || curves.len() < 2 || curves.len() > MOST_DIRECT || !reach_end {
            return None;
        }
        let names = curves.iter().map(|curve| canvas.text_width(&printable(&curve.name)));
        let widest = names.fold(0.0, f64::max);
        (widest <= 150.0).then_some(widest + 60.0)
    }

    fn direct_labels(
        &self,
        canvas: Canvas,
        frame: PlotFrame,
        curves: &[Series],
        place: &impl Fn(f64, f64) -> (f64, f64),
    ) -> Markup {
        let marked = curves.iter().all(|curve| curve.points.len() <= MOST_MARKS);
        let mut ends: Vec<(usize, (f64, f64))> = curves
            .iter()
            .enumerate()
            .filter_map(|(index, curve)| curve.end().map(|end| (index, place(end.x, end.y))))
            .collect();
        ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1).then(a.0.cmp(&b.0)));
        let wanted: Vec<f64> = ends.iter().map(|(_, (_, y))| *y).collect();
        let heights = spread(&wanted, canvas.line(), frame.top, frame.bottom);
        html! {
            @for ((index, (x, y)), height) in ends.into_iter().zip(heights) {
                @let start = frame.right + 14.0;
                path class="leader" d=(format!("M{} {}L{} {}", px(x + 6.0), px(y), px(start), px(height))) {}
                @let name = curves.get(index).map_or("", |curve| curve.name.as_str());
                (key(index, &html! {
                    (curve_swatch(index, (start + 2.0, height), marked))
                    text x=(px(start + 32.0)) y=(px(height + canvas.letter * 0.35)) { (printable(name)) }
                }))
            }
        }
    }

    fn interval(&self, index: usize, series: &Series, place: &impl Fn(f64, f64) -> (f64, f64)) -> Markup {
        // Ends of an interval that the axis cannot show are drawn at the point itself.
        let ends = |point: &Point| {
            let (low, high) = point.interval?;
            let shown = |end: f64| if self.y.can_show(end) { end } else { point.y };
            Some((place(point.x, shown(low)), place(point.x, shown(high))))
        };
        html! {
            @if series.points.len() <= MOST_MARKS {
                @for ((x, low), (_, high)) in series.runs().flatten().filter_map(ends) {
                    path class=(format!("whisker {}", color(index)))
                        d=(format!("M{} {}h8m-4 0V{}m-4 0h8", px(x - 4.0), px(low), px(high))) {}
                }
            } @else {
                @for run in series.runs() {
                    @let ends: Vec<_> = run.iter().filter_map(ends).collect();
                    @if ends.len() > 1 {
                        @let highs = path(ends.iter().map(|(_, high)| *high), series.shape, "M", false);
                        @let lows = path(ends.iter().rev().map(|(low, _)| *low), series.shape, "L", true);
                        path class=(format!("band {}", color(index))) d=(format!("{highs}{lows}Z")) {}
                    }
                }
            }
        }
    }

    fn curve(&self, index: usize, series: &Series, place: &impl Fn(f64, f64) -> (f64, f64)) -> Markup {
        let runs: String = series
            .runs()
            .map(|run| path(run.iter().map(|point| place(point.x, point.y)), series.shape, "M", false))
            .collect();
        let marks_all = series.points.len() <= MOST_MARKS;
        html! {
            (curve(index, &runs))
            @for run in series.runs() {
                // A point between two gaps has no line, so it always has a mark.
                @if marks_all || run.len() == 1 {
                    @for point in run { (mark(index, place(point.x, point.y), &self.label(series, point))) }
                }
            }
        }
    }

    fn label(&self, series: &Series, point: &Point) -> String {
        let interval = point.interval.map_or_else(String::new, |(low, high)| {
            format!(" ({} to {})", self.y.value_text(low), self.y.value_text(high))
        });
        let (x, y) = (self.x.value_text(point.x), self.y.value_text(point.y));
        let name = if series.name.is_empty() { String::new() } else { format!("{}, ", series.name) };
        format!("{name}{x}: {y}{interval}")
    }
}

impl Series {
    /// Returns a curve through the points, joined by straight lines.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y)| Point::new(x, y)).collect();
        Self { name: name.into(), points, shape: Shape::Straight }
    }

    /// Returns a curve through `(x, y, margin)`, with an interval of `margin` on both sides of y.
    pub fn with_margins(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y, margin)| Point {
            x,
            y,
            interval: margin.is_finite().then(|| (y - margin.abs(), y + margin.abs())),
        });
        Self { name: name.into(), points: points.collect(), shape: Shape::Straight }
    }

    /// Draws the curve in steps: a value holds until the next point.
    #[must_use]
    pub fn step(mut self) -> Self {
        self.shape = Shape::Step;
        self
    }

    /// Returns the runs of points between gaps.
    fn runs(&self) -> impl Iterator<Item = &[Point]> {
        self.points.split(|point| !point.y.is_finite()).filter(|run| !run.is_empty())
    }

    fn end(&self) -> Option<&Point> {
        self.points.iter().rev().find(|point| point.y.is_finite())
    }
}

impl Point {
    /// Returns a point without an interval.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, interval: None }
    }
}

/// Returns a path through the positions. A step taken backwards changes its height first.
fn path(places: impl Iterator<Item = (f64, f64)>, shape: Shape, start: &str, backwards: bool) -> String {
    let mut out = String::new();
    for (at, (x, y)) in places.enumerate() {
        let (x, y) = (px(x), px(y));
        out += &match (at, shape, backwards) {
            (0, _, _) => format!("{start}{x} {y}"),
            (_, Shape::Straight, _) => format!("L{x} {y}"),
            (_, Shape::Step, false) => format!("H{x}V{y}"),
            (_, Shape::Step, true) => format!("V{y}H{x}"),
        };
    }
    out
}

/// Moves the heights as little as necessary, so that they are at least `apart` from each other and within
/// `top..=bottom`. They must be sorted.
fn spread(wanted: &[f64], apart: f64, top: f64, bottom: f64) -> Vec<f64> {
    // Groups of labels that touch; each is centered on the mean of the desired heights.
    let mut groups: Vec<(f64, usize)> = Vec::new();
    let first = |(middle, count): (f64, usize)| {
        let span = apart * (count.saturating_sub(1)) as f64;
        (middle - span / 2.0).min(bottom - span).max(top)
    };
    for &want in wanted {
        let mut group = (want, 1);
        while let Some(&above) = groups.last() {
            if first(group) >= first(above) + apart * above.1 as f64 {
                break;
            }
            let count = above.1 + group.1;
            group = ((above.0 * above.1 as f64 + group.0 * group.1 as f64) / count as f64, count);
            groups.pop();
        }
        groups.push(group);
    }
    groups
        .into_iter()
        .flat_map(|group| (0..group.1).map(move |at| first(group) + apart * at as f64))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::plot::Figure;

    #[test]
    fn labels_are_moved_apart_and_kept_inside() {
        assert_eq!(spread(&[10.0, 50.0], 20.0, 0.0, 100.0), [10.0, 50.0]);
        assert_eq!(spread(&[50.0, 50.0], 20.0, 0.0, 100.0), [40.0, 60.0]);
        assert_eq!(spread(&[95.0, 98.0, 99.0], 20.0, 0.0, 100.0), [60.0, 80.0, 100.0]);
        assert_eq!(spread(&[0.0, 0.0], 20.0, 0.0, 100.0), [0.0, 20.0]);
        assert_eq!(spread(&[], 20.0, 0.0, 100.0), [0.0; 0]);
    }

    #[test]
    fn steps_hold_their_value_both_ways() {
        let places = [(0.0, 1.0), (2.0, 3.0)];
        assert_eq!(path(places.into_iter(), Shape::Step, "M", false), "M0 1H2V3");
        assert_eq!(path(places.into_iter().rev(), Shape::Step, "L", true), "L2 3V1H0");
        assert_eq!(path(places.into_iter(), Shape::Straight, "M", false), "M0 1L2 3");
    }

    #[test]
    fn a_gap_parts_the_curve() {
        let svg = svg(Series::new("a", [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 1.0), (4.0, 2.0)]));
        let curve = svg.split("class=\"curve s0\" d=\"").last().unwrap().split('"').next().unwrap();
        assert_eq!(curve.matches('M').count(), 2);
    }

    #[test]
    fn what_a_logarithmic_axis_cannot_show_is_counted() {
        let lines = Lines::new(Axis::new("t"), Axis::new("rate").logarithmic())
            .series(Series::new("a", [(0.0, 0.0), (1.0, -1.0), (2.0, 0.5), (3.0, f64::NAN)]));
        let figure = Figure::new("", lines);
        let omissions = figure.omissions().unwrap();
        assert!(omissions.starts_with("2 values are not shown: not above zero"), "{omissions}");
    }

    #[test]
    fn odd_series_are_drawn_without_panic() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        for points in [
            vec![],
            vec![(1.0, 1.0)],
            vec![(0.0, 0.0)],
            vec![(nan, nan)],
            vec![(inf, -inf), (1.0, inf)],
            vec![(1e300, 1e300), (-1e300, -1e300)],
            vec![(1e290, -1e290), (-1e290, 1e290)],
            vec![(5.0, 1.0), (5.0, 2.0), (1.0, 3.0)],
            (0..100_000).map(|x| (f64::from(x), if x % 2 == 0 { nan } else { f64::from(x) })).collect(),
        ] {
            for svg in [
                svg(Series::new("a", points.clone())),
                svg(Series::with_margins("a", points.iter().map(|(x, y)| (*x, *y, 1.0))).step()),
                svg(Series::with_margins("a", points.iter().map(|(x, y)| (*x, *y, inf)))),
            ] {
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{points:?}");
            }
        }
    }

    fn svg(series: Series) -> String {
        Figure::new("", Lines::new(Axis::new(""), Axis::new("")).series(series)).to_svg()
    }
}
