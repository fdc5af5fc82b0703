//! Horizontal stacked bars: the parts of a whole, compared between bars.

use maud::{Markup, html};

use crate::plot::axis::Axis;
use crate::plot::canvas::{Canvas, Swatch, color, decimals, legend, px, tooltip};
use crate::table::{Cell, Column, Table};
use crate::text::printable;

/// Horizontal bars of common parts, one below the other.
///
/// There is no axis: every value is printed where it fits.
#[derive(Debug, Clone, PartialEq)]
pub struct StackedBars {
    /// Quantity of the lengths.
    pub measure: Axis,
    parts: Vec<String>,
    /// Names and values, one value per part.
    bars: Vec<(String, Vec<f64>)>,
}

impl StackedBars {
    /// Returns parts with these names, from left to right, without bars.
    pub fn new<T: Into<String>>(measure: Axis, parts: impl IntoIterator<Item = T>) -> Self {
        Self { measure, parts: parts.into_iter().map(Into::into).collect(), bars: Vec::new() }
    }

    /// Adds a bar below the others. Values beyond the last part add parts without a name.
    #[must_use]
    pub fn bar(mut self, name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let parts = self.parts.len().max(values.len());
        self.parts.resize(parts, String::new());
        self.bars.push((name.into(), values));
        self
    }

    pub(crate) fn data(&self) -> Table {
        let decimals = decimals(self.bars.iter().flat_map(|(_, values)| values).copied());
        let mut columns = vec![Column::text("")];
        columns.extend(
            self.parts.iter().map(|part| Column { unit: self.measure.unit.clone(), ..Column::number(part) }),
        );
        columns.push(Column { unit: self.measure.unit.clone(), ..Column::number("all") });
        let mut table = Table::new("", columns);
        for (name, values) in &self.bars {
            let all = self.measure.cell(self.sum(values), decimals);
            let parts = (0..self.parts.len()).map(|part| {
                values.get(part).map_or(Cell::Empty, |value| self.measure.cell(*value, decimals))
            });
            table.row(std::iter::once(Cell::text(name)).chain(parts).chain([all]));
        }
        table
    }

    pub(crate) fn description(&self) -> String {
        let mut text = format!("Stacked bars of {}.", self.measure.title());
        for (name, values) in &self.bars {
            text += &format!(" {}: {}", printable(name), self.measure.value_text(self.sum(values)));
            let parts = self.shown(values).map(|(part, value)| self.named(part, value));
            let parts: Vec<String> = parts.collect();
            text +=
                &if parts.is_empty() { ".".to_owned() } else { format!(", of which {}.", parts.join(", ")) };
        }
        text
    }

    pub(crate) fn omissions(&self) -> usize {
        let values = self.bars.iter().flat_map(|(_, values)| values);
        values.filter(|value| !value.is_nan() && !is_length(**value)).count()
    }

    pub(crate) fn draw(&self, canvas: Canvas) -> (f64, Markup) {
        let names: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        let (top, key) = legend(canvas, &names, Swatch::Part);
        // Bold letters are slightly wider.
        let totals = self.bars.iter().map(|(_, values)| 1.1 * canvas.text_width(&self.total_text(values)));
        let room = canvas.width - totals.fold(0.0, f64::max) - 10.0;
        let longest = self.bars.iter().map(|(_, values)| self.sum(values)).fold(0.0, f64::max);
        let scale = if longest > 0.0 { room / longest } else { 0.0 };
        let mut y = top + 14.0;
        let drawing = html! {
            (key)
            @for (name, values) in &self.bars {
                text x="0" y=(px(y + canvas.letter)) { (canvas.fitted(name, canvas.width)) }
                ({ y += canvas.line() + 1.0; "" })
                (self.parts_of(canvas, name, values, y, scale))
                ({ y += BAR_HEIGHT; "" })
                @for line in self.beside(canvas, values, scale) {
                    text class="soft" x="0" y=(px(y + canvas.letter + 5.0)) { (line) }
                    ({ y += canvas.line() - 2.0; "" })
                }
                ({ y += 20.0; "" })
            }
        };
        (y, drawing)
    }

    fn parts_of(&self, canvas: Canvas, bar: &str, values: &[f64], y: f64, scale: f64) -> Markup {
        let mut x = 0.0;
        let middle = y + BAR_HEIGHT / 2.0 + canvas.letter * 0.35;
        html! {
            @for (part, value) in self.shown(values) {
                @let width = value * scale;
                // Adjacent parts are separated by a narrow gap, if they are wide enough.
                @let gap = if width > 4.0 { 1.5 } else { 0.0 };
                g class=(color(part)) {
                    rect class="part" x=(px(x)) y=(px(y)) width=(px(width - gap)) height=(px(BAR_HEIGHT)) {
                        (tooltip(&format!("{bar}, {}", self.named(part, value))))
                    }
                    @match self.inside(canvas, part, value, width).as_slice() {
                        [name, value] => {
                            text class="part-text" x=(px(x + 8.0)) y=(px(middle)) { (name) }
                            text class="part-text end" x=(px(x + width - gap - 8.0)) y=(px(middle)) { (value) }
                        }
                        texts => @for value in texts {
                            @let centre = x + (width - gap) / 2.0;
                            text class="part-text middle" x=(px(centre)) y=(px(middle)) { (value) }
                        }
                    }
                }
                ({ x += width; "" })
            }
            text class="strong" x=(px(x + 8.0)) y=(px(middle)) { (self.total_text(values)) }
        }
    }

    /// Returns the text that fits into a part: name and value, only the value, or nothing.
    fn inside(&self, canvas: Canvas, part: usize, value: f64, width: f64) -> Vec<String> {
        let name = self.name(part);
        let value = self.measure.value_text(value);
        if !name.is_empty() && canvas.text_width(&name) + canvas.text_width(&value) + 26.0 <= width {
            vec![name, value]
        } else if canvas.text_width(&value) + 10.0 <= width {
            vec![value]
        } else {
            Vec::new()
        }
    }

    /// Lists the parts without room for their value, in as many lines as necessary.
    fn beside(&self, canvas: Canvas, values: &[f64], scale: f64) -> Vec<String> {
        let without_room = self
            .shown(values)
            .filter(|(part, value)| self.inside(canvas, *part, *value, value * scale).is_empty());
        let mut lines: Vec<String> = Vec::new();
        for (part, value) in without_room {
            let text = canvas.fitted(&self.named(part, value), canvas.width);
            match lines.last_mut() {
                Some(line) if canvas.text_width(line) + canvas.text_width(&text) + 20.0 <= canvas.width => {
                    *line += &format!(" · {text}");
                }
                _ => lines.push(text),
            }
        }
        lines
    }

    /// Returns the parts with a length.
    fn shown(&self, values: &[f64]) -> impl Iterator<Item = (usize, f64)> {
        values.iter().copied().enumerate().filter(|(_, value)| is_length(*value) && *value > 0.0)
    }

    fn sum(&self, values: &[f64]) -> f64 {
        self.shown(values).map(|(_, value)| value).sum()
    }

    fn total_text(&self, values: &[f64]) -> String {
        self.measure.value_text(self.sum(values))
    }

    fn name(&self, part: usize) -> String {
        self.parts.get(part).map(|name| printable(name).into_owned()).unwrap_or_default()
    }

    fn named(&self, part: usize, value: f64) -> String {
        format!("{} {}", self.name(part), self.measure.value_text(value)).trim_start().to_owned()
    }
}

const BAR_HEIGHT: f64 = 34.0;

/// True if the value can be drawn as a length and summed with others.
fn is_length(value: f64) -> bool {
    (0.0..=1e290).contains(&value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Figure;

    #[test]
    fn values_stand_inside_where_they_fit_and_below_where_not() {
        let bars = StackedBars::new(Axis::new("octets").octets(), ["IP", "UDP", "payload"])
            .bar("before", [400.0, 2.0, 600.0]);
        let svg = Figure::new("", bars).to_svg();
        assert!(svg.contains(">IP</text>"));
        assert!(svg.contains(">400\u{202f}B</text>"));
        assert!(svg.contains(">UDP 2\u{202f}B</text>"));
        assert!(svg.contains(">1.00\u{202f}kB</text>"));
    }

    #[test]
    fn the_values_end_with_the_length_of_the_bar() {
        let bars = StackedBars::new(Axis::new("octets").unit("B"), ["IP", "payload"])
            .bar("before", [400.0, 600.0])
            .bar("short", [1.0]);
        let table = bars.data();
        assert_eq!(table.columns().last().map(|column| column.heading.as_str()), Some("all"));
        assert_eq!(table.rows()[0][3], Cell::number(1000.0, 0));
        assert_eq!(
            table.rows()[1],
            [Cell::text("short"), Cell::number(1.0, 0), Cell::Empty, Cell::number(1.0, 0)]
        );
    }

    #[test]
    fn odd_bars_are_drawn_without_panic() {
        let none = || StackedBars::new(Axis::new(""), Vec::<String>::new());
        for bars in [
            none(),
            none().bar("", []),
            none().bar("zero", [0.0, 0.0]),
            none().bar("odd", [f64::NAN, f64::INFINITY, -1.0, 1e290, 1e290]),
            StackedBars::new(Axis::new("").logarithmic(), ["a"]).bar("", [1e-300]),
        ] {
            let svg = Figure::new("", bars).to_svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"));
        }
    }

    #[test]
    fn negative_parts_are_counted_as_not_shown() {
        assert_eq!(StackedBars::new(Axis::new(""), ["a"]).bar("", [-1.0, f64::NAN]).omissions(), 1);
    }
}
