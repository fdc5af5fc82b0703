//! Elements of all plots: canvas, frame with two axes, legend, fills and marks.

use maud::{Markup, html};

use crate::plot::axis::{Axis, Ruler};
use crate::text::{printable, truncated, width};

/// Number of colors for series; further series reuse them with other dashes and fills.
pub(crate) const COLORS: usize = 7;

/// Dash patterns of curves: the first is solid.
const DASHES: [&str; COLORS] = ["", "7 4", "2 3", "10 3 2 3", "14 4", "6 3 2 3 2 3", "4 2"];

/// The canvas of a plot, in CSS pixels at full size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Canvas {
    pub(crate) width: f64,
    /// Height of letters, as set in `plot.css`.
    pub(crate) letter: f64,
    /// Height of a frame's inside.
    pub(crate) frame_height: f64,
    /// Maximum number of points per curve.
    pub(crate) points: usize,
}

impl Canvas {
    /// A page.
    pub(crate) const WIDE: Self = Self { width: 760.0, letter: 13.0, frame_height: 270.0, points: 1000 };
    /// A phone held upright.
    pub(crate) const NARROW: Self = Self { width: 360.0, letter: 12.0, frame_height: 210.0, points: 500 };

    pub(crate) fn is_narrow(self) -> bool {
        self.width < Self::WIDE.width
    }

    /// Height of a line of text with spacing.
    pub(crate) fn line(self) -> f64 {
        self.letter + 7.0
    }

    /// Estimated width of the text. No font is available; digits and most letters are narrower.
    pub(crate) fn text_width(self, text: &str) -> f64 {
        width(text) as f64 * self.letter * 0.6
    }

    /// Returns the text, truncated to fit into `room`.
    pub(crate) fn fitted(self, text: &str, room: f64) -> String {
        let columns = (room / (self.letter * 0.6)).max(0.0) as usize;
        truncated(&printable(text), columns).into_owned()
    }
}

/// The inside of a plot, bounded by its axes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PlotFrame {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl PlotFrame {
    /// Returns the frame to the right of the y labels and below `top`, which has room for the title of the y
    /// axis. `margin` remains free on the right.
    pub(crate) fn new(canvas: Canvas, y: &Ruler, top: f64, margin: f64) -> Self {
        let labels = y.ticks.iter().map(|tick| canvas.text_width(&tick.label));
        let left = labels.fold(0.0, f64::max) + 10.0;
        let top = top + canvas.line() + 9.0;
        Self { left, right: canvas.width - margin, top, bottom: top + canvas.frame_height }
    }

    pub(crate) fn x(self, place: f64) -> f64 {
        self.left + (self.right - self.left) * place
    }

    pub(crate) fn y(self, place: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * place
    }

    pub(crate) fn width(self) -> f64 {
        self.right - self.left
    }

    /// Draws grid, labels and title of the y axis. The title is above the axis, so that it is horizontal.
    pub(crate) fn y_axis(self, canvas: Canvas, axis: &Axis, ruler: &Ruler) -> Markup {
        let baseline = canvas.letter * 0.35;
        html! {
            text class="soft" x="0" y=(px(self.top - 16.0)) { (canvas.fitted(&axis.title(), canvas.width)) }
            @for tick in &ruler.ticks {
                (line("grid", (self.left, self.y(tick.place)), (self.right, self.y(tick.place))))
                text class="soft end" x=(px(self.left - 8.0)) y=(px(self.y(tick.place) + baseline)) {
                    (tick.label)
                }
            }
        }
    }

    /// Draws the line below, with labels at the given positions, and the title under them.
    pub(crate) fn x_axis(
        self,
        canvas: Canvas,
        axis: &Axis,
        labels: impl Iterator<Item = (f64, String)>,
        ticks: bool,
    ) -> Markup {
        let mut free_from = f64::NEG_INFINITY;
        html! {
            @for (place, label) in labels {
                @let half = canvas.text_width(&label) / 2.0;
                @let at = self.x(place).clamp(half.min(canvas.width / 2.0), (canvas.width - half).max(0.0));
                @if at - half > free_from {
                    @if ticks {
                        (line("axis", (self.x(place), self.bottom), (self.x(place), self.bottom + 5.0)))
                    }
                    text class="soft middle" x=(px(at)) y=(px(self.bottom + 7.0 + canvas.letter)) { (label) }
                    ({ free_from = at + half + 6.0; "" })
                }
            }
            (self.x_title(canvas, axis, 1))
        }
    }

    /// Draws the title of the x axis below this number of label lines.
    pub(crate) fn x_title(self, canvas: Canvas, axis: &Axis, lines: usize) -> Markup {
        let y = self.bottom + 9.0 + canvas.letter + canvas.line() * lines as f64;
        html! {
            text class="soft end" x=(px(self.right)) y=(px(y)) { (canvas.fitted(&axis.title(), canvas.width)) }
        }
    }

    /// Returns the lower end of the plot, below this number of label lines and the title of the x axis.
    pub(crate) fn end(self, canvas: Canvas, axis: &Axis, lines: usize) -> f64 {
        let titles = if axis.title().is_empty() { 0.0 } else { 1.0 };
        self.bottom + 14.0 + canvas.line() * (lines as f64 + titles)
    }
}

/// Sample of a series in a legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Swatch {
    Curve { marked: bool },
    Bar,
    Part,
}

/// Returns the names of the series in rows from the top, and their lower end.
pub(crate) fn legend(canvas: Canvas, names: &[&str], swatch: Swatch) -> (f64, Markup) {
    let room = if matches!(swatch, Swatch::Curve { .. }) { 32.0 } else { 19.0 };
    let (mut x, mut y) = (0.0, 0.0);
    let mut entries = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let name = canvas.fitted(name, canvas.width - room);
        let needed = room + canvas.text_width(&name);
        if x > 0.0 && x + needed > canvas.width {
            (x, y) = (0.0, y + canvas.line());
        }
        entries.push((index, name, x, y));
        x += needed + 16.0;
    }
    let middle = canvas.letter * 0.65;
    let drawing = html! {
        @for (index, name, x, y) in entries {
            @let label = html! { text x=(px(x + room)) y=(px(y + canvas.letter)) { (name) } };
            @match swatch {
                Swatch::Curve { marked } => (key(index, &html! { (curve_swatch(index, (x, y + middle), marked)) (label) })),
                Swatch::Bar => (key(index, &html! { (bar(index, (x, y + middle - 6.0), (12.0, 12.0), "")) (label) })),
                // Without one of its parts a bar would not have the length of its values.
                Swatch::Part => {
                    rect class=(format!("part {}", color(index))) x=(px(x)) y=(px(y + middle - 6.0))
                        width="12" height="12" rx="2" {}
                    (label)
                }
            }
        }
    };
    (y + canvas.line() + 10.0, drawing)
}

/// Entry of a legend: pressed, it hides its series, and shows it again (`page.js`).
pub(crate) fn key(index: usize, entry: &Markup) -> Markup {
    html! { g class="key" data-series=(index) { (entry) } }
}

/// Everything that is drawn of a series.
pub(crate) fn series_group(index: usize, drawn: &Markup) -> Markup {
    html! { g data-series=(index) { (drawn) } }
}

/// Draws a short piece of curve.
pub(crate) fn curve_swatch(index: usize, (x, y): (f64, f64), marked: bool) -> Markup {
    html! {
        (curve(index, &format!("M{} {}h24", px(x), px(y))))
        @if marked { (mark(index, (x + 12.0, y), "")) }
    }
}

/// Draws a curve in the color and dash of its series.
pub(crate) fn curve(index: usize, path: &str) -> Markup {
    let dashes = Some(dash(index)).filter(|dashes| !dashes.is_empty());
    html! { path class=(format!("curve {}", color(index))) d=(path) stroke-dasharray=[dashes] {} }
}

/// Draws a mark in the color and shape of its series; `title` is its tooltip.
pub(crate) fn mark(index: usize, (x, y): (f64, f64), title: &str) -> Markup {
    let outline = match index % 4 {
        0 => "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        1 => "m-3.7-3.7h7.4v7.4h-7.4z",
        2 => "m0-5l4.8 8.4h-9.6z",
        _ => "m0-5.2l5.2 5.2-5.2 5.2-5.2-5.2z",
    };
    let path = format!("M{} {}{outline}", px(x), px(y));
    html! { path class=(format!("mark {}", color(index))) d=(path) { (tooltip(title)) } }
}

/// Draws a bar in the color and fill of its series; `title` is its tooltip.
pub(crate) fn bar(index: usize, (x, y): (f64, f64), (width, height): (f64, f64), title: &str) -> Markup {
    let fill = ["solid", "outline", "hatched"].into_iter().cycle().nth(index % 3).unwrap_or("solid");
    let hatch = (fill == "hatched").then(|| format!("url(#hatch-{})", index % COLORS));
    // Half of an outline is outside; an inset makes it as long as a fill.
    let inset = if fill == "solid" || width < 3.0 || height < 2.0 { 0.0 } else { 0.6 };
    html! {
        rect class=(format!("bar {fill} {}", color(index))) x=(px(x + inset)) y=(px(y + inset))
            width=(px(width - 2.0 * inset)) height=(px(height - 2.0 * inset)) fill=[hatch] { (tooltip(title)) }
    }
}

pub(crate) fn line(class: &str, from: (f64, f64), to: (f64, f64)) -> Markup {
    html! { line class=(class) x1=(px(from.0)) y1=(px(from.1)) x2=(px(to.0)) y2=(px(to.1)) {} }
}

pub(crate) fn tooltip(title: &str) -> Markup {
    html! { @if !title.is_empty() { title { (printable(title)) } } }
}

/// Returns the class that sets the color of a series.
pub(crate) fn color(index: usize) -> String {
    format!("s{}", index % COLORS)
}

fn dash(index: usize) -> &'static str {
    DASHES.get((index + index / COLORS) % COLORS).copied().unwrap_or("")
}

/// Formats a coordinate to a tenth of a pixel.
pub(crate) fn px(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Returns the minimum and maximum of the values.
pub(crate) fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |extent, value| match extent {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

/// Returns the number of decimals for all values of a table; 0 if all are whole.
pub(crate) fn decimals(values: impl Iterator<Item = f64>) -> u8 {
    let mut values = values.filter(|value| value.is_finite());
    if values.all(|value| value.fract() == 0.0) { 0 } else { 3 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        assert_eq!(px(1.25), "1.2");
        assert_eq!(px(3.0), "3");
        assert_eq!(px(-0.01), "0");
        assert_eq!(px(f64::NAN), "0");
    }

    #[test]
    fn series_of_one_colour_have_different_dashes() {
        let looks: std::collections::BTreeSet<_> = (0..49).map(|index| (color(index), dash(index))).collect();
        assert_eq!(looks.len(), 49);
    }

    #[test]
    fn a_legend_breaks_into_rows_and_cuts_endless_names() {
        let name = "x".repeat(1000);
        let (height, drawing) = legend(Canvas::NARROW, &[&name, "b", "c"], Swatch::Bar);
        assert!(height > 2.0 * Canvas::NARROW.line());
        assert!(!drawing.into_string().contains(&name));
    }
}
