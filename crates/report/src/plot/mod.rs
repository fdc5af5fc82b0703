//! Plots, independent of the page. Each kind of plot has its own file; so have the axis, thinning, and common
//! elements.

pub(crate) mod axis;
pub(crate) mod bars;
pub(crate) mod canvas;
mod decimate;
pub(crate) mod lines;
pub(crate) mod stacked;

use maud::{Markup, PreEscaped, html};

use crate::plot::bars::Bars;
use crate::plot::canvas::Canvas;
use crate::plot::lines::Lines;
use crate::plot::stacked::StackedBars;
use crate::table::Table;
use crate::text::arrows;

/// Style sheet for the contents of plots, light and dark.
pub(crate) const STYLE: &str = include_str!("plot.css");

/// A plot with title and note.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Title, preferably the finding itself.
    pub title: String,
    /// Explanation that is required to read the plot correctly. May be empty.
    pub note: String,
    /// The plot.
    pub plot: Plot,
}

/// Kind of plot with its data.
#[derive(Debug, Clone, PartialEq)]
pub enum Plot {
    /// Curves over a common x axis.
    Lines(Lines),
    /// Grouped upright bars.
    Bars(Bars),
    /// Horizontal stacked bars.
    StackedBars(StackedBars),
}

impl Figure {
    /// Returns a figure with a title and no note.
    pub fn new(title: impl Into<String>, plot: impl Into<Plot>) -> Self {
        Self { title: title.into(), note: String::new(), plot: plot.into() }
    }

    /// Sets the explanation that is required to read the plot correctly.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Returns the values drawn, as a table for CSV or JSON.
    pub fn data(&self) -> Table {
        let mut table = match &self.plot {
            Plot::Lines(lines) => lines.data(),
            Plot::Bars(bars) => bars.data(),
            Plot::StackedBars(bars) => bars.data(),
        };
        table.title.clone_from(&self.title);
        table.note.clone_from(&self.note);
        table
    }

    /// Returns the plot as a self-contained SVG file, at the width of a page.
    pub fn to_svg(&self) -> String {
        let style = html! { style { (PreEscaped(STYLE)) } (patterns()) };
        self.drawing(Canvas::WIDE, &style).into_string() + "\n"
    }

    /// Returns the plot at the width of a page and of a phone, since text that scales with the drawing is
    /// legible at only one of them.
    pub(crate) fn drawings(&self) -> [Markup; 2] {
        [Canvas::WIDE, Canvas::NARROW].map(|canvas| self.drawing(canvas, &html! {}))
    }

    fn drawing(&self, canvas: Canvas, opening: &Markup) -> Markup {
        let (height, body) = match &self.plot {
            Plot::Lines(lines) => lines.draw(canvas),
            Plot::Bars(bars) => bars.draw(canvas),
            Plot::StackedBars(bars) => bars.draw(canvas),
        };
        let class = if canvas.is_narrow() { "plot narrow" } else { "plot wide" };
        html! {
            svg xmlns="http://www.w3.org/2000/svg" class=(class) role="img"
                viewBox=(format!("0 0 {} {}", canvas::px(canvas.width), canvas::px(height))) {
                title { (arrows(&self.title)) }
                desc { (self.description()) }
                (opening)
                (body)
            }
        }
    }

    fn description(&self) -> String {
        match &self.plot {
            Plot::Lines(lines) => lines.description(),
            Plot::Bars(bars) => bars.description(),
            Plot::StackedBars(bars) => bars.description(),
        }
    }

    /// Describes the values that the plot cannot show.
    pub(crate) fn omissions(&self) -> Option<String> {
        let (count, why) = match &self.plot {
            Plot::Lines(lines) => lines.omissions(),
            Plot::Bars(bars) => (bars.omissions(), "not finite"),
            Plot::StackedBars(bars) => (bars.omissions(), "negative or not finite"),
        };
        let values = if count == 1 { "value is" } else { "values are" };
        (count > 0).then(|| format!("{count} {values} not shown: {why}."))
    }
}

/// Returns the fills of bars, defined once per page.
pub(crate) fn patterns() -> Markup {
    html! {
        defs {
            @for index in 0..canvas::COLORS {
                pattern id=(format!("hatch-{index}")) class=(format!("s{index}"))
                    width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    rect class="tint" width="6" height="6" {}
                    rect class="ink" width="3" height="6" {}
                }
            }
        }
    }
}

impl From<Lines> for Plot {
    fn from(lines: Lines) -> Self {
        Self::Lines(lines)
    }
}

impl From<Bars> for Plot {
    fn from(bars: Bars) -> Self {
        Self::Bars(bars)
    }
}

impl From<StackedBars> for Plot {
    fn from(bars: StackedBars) -> Self {
        Self::StackedBars(bars)
    }
}
