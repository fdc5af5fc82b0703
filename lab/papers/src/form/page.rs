//! Tables and plots of rows and figures, as the plan defines them.
//!
//! A cell is a text with variables, and with figures: `$(ID)`, `$(ID:FORMAT)` or `$(OF ID:FORMAT)`. OF is `theirs`,
//! `half` (of the interval), `min` or `max` (of the bar) or a peer; without it, the figure is ours. `ID|ID` is the
//! first that has a value. FORMAT is the number of decimals, or `s` for two unless they are zero, and then `%` for a
//! share, `µ` for millionths, `e` for an estimate with its interval, `±` for the interval after it, `✓` for the result
//! of its bar, `≤` for the bar, `*` for the mark of `where`. A cell with a figure without a value is empty, and a row
//! without other figures is left out.

use std::collections::BTreeMap;

use serde::Deserialize;
use thinair_report as report;
use thinair_report::{Axis, Bars, Column, Lines, Point, Section, Series, Shape, StackedBars, Table};

use super::{Figures, PlanFile, Published, Vars};
use crate::paper::PaperError;
use crate::row::FigureRow;

/// Heading and its blocks, once for each of some values. It is left out if it has tables or plots that are all empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SectionForm {
    each: Vec<String>,
    /// Id of a figure without which the section is left out.
    when: Option<String>,
    heading: String,
    block: Vec<BlockForm>,
}

/// Paragraph, table or plot, once for each of some values.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BlockForm {
    each: Vec<String>,
    text: Option<String>,
    /// Title of a table.
    table: Option<String>,
    /// Axes of the table's lines.
    over: Vec<String>,
    column: Vec<ColumnForm>,
    /// Explicit lines, instead of one for each combination with the columns' cells.
    line: Vec<LineForm>,
    /// True if lines without figures are shown.
    all_lines: bool,
    /// Title of a plot.
    plot: Option<String>,
    /// Axes: `label; unit; log|octets|percent`, of which all but the first may be left out.
    x: String,
    y: String,
    series: Vec<SeriesForm>,
    /// Axis of the groups of a bar chart, or of the parts of stacked bars.
    bars: Option<Vec<String>>,
    stacked: Option<Vec<String>>,
    /// Name of a group or part.
    group: String,
    /// Text below a table or plot.
    note: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ColumnForm {
    head: String,
    unit: String,
    /// Cell in a column of numbers.
    cell: String,
    /// Cell in a column of text.
    text: Option<String>,
    /// Axes for whose combinations the column is repeated.
    across: Vec<String>,
    /// Columns that are repeated together.
    column: Vec<Self>,
    /// True if the column is left out when all its cells are empty.
    optional: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LineForm {
    over: Vec<String>,
    cells: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SeriesForm {
    each: Vec<String>,
    name: String,
    over: Vec<String>,
    x: String,
    y: String,
    /// True if its points have their intervals.
    interval: bool,
    /// Id of a measured curve, instead of x and y; a value holds until the next point.
    curve: Option<String>,
    step: bool,
}

/// Everything that can be shown.
struct PageData<'a> {
    form: &'a PlanFile,
    rows: BTreeMap<&'a str, &'a FigureRow>,
    figures: &'a Figures,
    published: &'a Published,
}

impl PlanFile {
    pub(super) fn sections(
        &self,
        rows: &[FigureRow],
        figures: &Figures,
        published: &Published,
    ) -> Result<Vec<Section>, PaperError> {
        let rows = rows.iter().map(|row| (row.id(), row)).collect();
        let shown = PageData { form: self, rows, figures, published };
        let mut sections = Vec::new();
        let is_there = |form: &&SectionForm| form.when.as_ref().is_none_or(|id| figures.get(id).is_some());
        for form in self.section.iter().filter(is_there) {
            for vars in self.each(&Vars::default(), &form.each)? {
                sections.extend(shown.section(form, &vars)?);
            }
        }
        Ok(sections)
    }
}

impl PageData<'_> {
    fn section(&self, form: &SectionForm, vars: &Vars) -> Result<Option<Section>, PaperError> {
        let (mut section, mut wanted, mut found) = (Section::new(vars.expand(&form.heading)?), 0, 0);
        for block in &form.block {
            for vars in self.form.each(vars, &block.each)? {
                if let Some(text) = &block.text {
                    let text = self.text(&vars.expand(text)?);
                    section = text.into_iter().fold(section, Section::text);
                } else if let Some(title) = &block.table {
                    let table = self.table(block, vars.expand(title)?, &vars)?;
                    (wanted, found) = (wanted + 1, found + usize::from(table.is_some()));
                    section = table.into_iter().fold(section, Section::table);
                } else if let Some(title) = &block.plot {
                    let plot = self.plot(block, &vars)?;
                    (wanted, found) = (wanted + 1, found + usize::from(plot.is_some()));
                    let title = vars.expand(title)?;
                    let figure = plot.map(|plot| report::Figure::new(title, plot));
                    let note = self.text(&vars.expand(&block.note)?).unwrap_or_default();
                    section =
                        figure.map(|figure| figure.note(note)).into_iter().fold(section, Section::figure);
                }
            }
        }
        Ok((wanted == 0 || found > 0).then_some(section))
    }

    fn table(&self, form: &BlockForm, title: String, vars: &Vars) -> Result<Option<Table>, PaperError> {
        let mut columns = Vec::new();
        self.columns(&form.column, vars, &mut columns)?;
        let mut lines: Vec<(Vars, Vec<&str>)> = Vec::new();
        if form.line.is_empty() {
            let cells: Vec<&str> = columns.iter().map(|(column, _)| column.form()).collect();
            lines.extend(self.form.each(vars, &form.over)?.into_iter().map(|vars| (vars, cells.clone())));
        }
        for line in &form.line {
            // The last cell spans all columns after it.
            let last = line.cells.len().saturating_sub(1);
            let cells: Vec<&str> = (0..columns.len())
                .filter_map(|at| line.cells.get(at.min(last)).map(String::as_str))
                .collect();
            lines.extend(self.form.each(vars, &line.over)?.into_iter().map(|vars| (vars, cells.clone())));
        }
        let mut rows = Vec::new();
        for (vars, cells) in lines {
            let (mut row, mut asked, mut empty) = (Vec::new(), false, true);
            for ((column, of_column), cell) in columns.iter().zip(cells) {
                let text = vars.and(of_column).expand(cell)?;
                let cell = self.cell(&text, column.text.is_none());
                asked |= text.contains("$(");
                empty &= !text.contains("$(") || cell == report::Cell::Empty;
                row.push(cell);
            }
            if form.all_lines || !(asked && empty) {
                rows.push(row);
            }
        }
        let is_there = |at: usize| {
            !columns[at].0.optional || rows.iter().any(|row| row.get(at) != Some(&report::Cell::Empty))
        };
        let there: Vec<usize> = (0..columns.len()).filter(|at| is_there(*at)).collect();
        let mut heads = Vec::new();
        for (form, of_column) in there.iter().map(|at| &columns[*at]) {
            let head = self.text(&of_column.expand(&form.head)?).unwrap_or_default();
            let column = if form.text.is_some() { Column::text(head) } else { Column::number(head) };
            let unit = of_column.expand(&form.unit)?;
            heads.push(if unit.is_empty() { column } else { column.unit(unit) });
        }
        let mut table =
            Table::new(title, heads).note(self.text(&vars.expand(&form.note)?).unwrap_or_default());
        let is_empty = rows.is_empty();
        for row in rows {
            table.row(there.iter().filter_map(|at| row.get(*at).cloned()));
        }
        Ok((!is_empty).then_some(table))
    }

    fn columns<'f>(
        &self,
        forms: &'f [ColumnForm],
        vars: &Vars,
        all: &mut Vec<(&'f ColumnForm, Vars)>,
    ) -> Result<(), PaperError> {
        for form in forms {
            for vars in self.form.each(vars, &form.across)? {
                match form.column.as_slice() {
                    [] => all.push((form, vars)),
                    columns => self.columns(columns, &vars, all)?,
                }
            }
        }
        Ok(())
    }

    fn plot(&self, form: &BlockForm, vars: &Vars) -> Result<Option<report::Plot>, PaperError> {
        let [x, y] = [axis(&vars.expand(&form.x)?), axis(&vars.expand(&form.y)?)];
        let names = |axes: &[String]| -> Result<Vec<String>, PaperError> {
            self.form.each(vars, axes)?.iter().map(|vars| vars.expand(&form.group)).collect()
        };
        let mut is_empty = true;
        let (mut lines, mut bars, mut stacked) = (Lines::new(x.clone(), y.clone()), None, None);
        if let Some(groups) = &form.bars {
            bars = Some(Bars::new(x, y, names(groups)?));
        } else if let Some(parts) = &form.stacked {
            stacked = Some(StackedBars::new(y, names(parts)?));
        }
        for series in &form.series {
            for vars in self.form.each(vars, &series.each)? {
                let name = vars.expand(&series.name)?;
                let over = form.bars.as_ref().or(form.stacked.as_ref()).unwrap_or(&series.over);
                let mut points = Vec::new();
                if let Some(curve) = &series.curve {
                    let curve = self.figures.curve(&vars.expand(curve)?);
                    points.extend(curve.iter().map(|(x, y)| (Some(*x), Some(*y), None)));
                }
                for vars in self.form.each(&vars, over)?.iter().filter(|_| series.curve.is_none()) {
                    let y = vars.expand(&series.y)?;
                    let figure = self.number(&y);
                    let half = series.interval.then(|| self.figure("half", &y)).flatten();
                    points.push((vars.expand(&series.x)?.parse::<f64>().ok(), figure, half));
                }
                if !points.iter().any(|(_, y, _)| y.is_some()) {
                    continue;
                }
                is_empty = false;
                let values = points.iter().map(|(_, y, _)| y.unwrap_or(f64::NAN));
                if let Some(plot) = bars {
                    bars = Some(plot.series(name, values));
                } else if let Some(plot) = stacked {
                    stacked = Some(plot.bar(name, values));
                } else {
                    let points = points.iter().filter_map(|&(x, y, half)| {
                        // A count of zero has no place on a logarithmic axis.
                        let (x, y) = x.zip(y.filter(|y| *y > 0.0 || !form.y.ends_with("; log")))?;
                        Some(Point { x, y, interval: half.map(|half| (y - half, y + half)) })
                    });
                    let shape = if series.step { Shape::Step } else { Shape::Straight };
                    lines = lines.series(Series { name, points: points.collect(), shape });
                }
            }
        }
        let plot = match (bars, stacked) {
            (Some(bars), _) => bars.into(),
            (_, Some(stacked)) => stacked.into(),
            _ => lines.into(),
        };
        Ok((!is_empty).then_some(plot))
    }

    /// Value of a figure: of a row, measured without a row, or published.
    fn figure(&self, of: &str, ids: &str) -> Option<f64> {
        let value = |id: &str| {
            let (row, figure) = (self.rows.get(id), self.figures.get(id));
            match of {
                "ours" => row.and_then(|row| row.ours()).or_else(|| figure?.value),
                "theirs" => row.and_then(|row| row.stated()).or_else(|| self.published.theirs(id)),
                "half" => figure?.half,
                "min" => row?.bar()?.min,
                "max" => row?.bar()?.max,
                peer => row
                    .and_then(|row| row.of_peer(peer))
                    .or_else(|| figure?.peers.get(peer).copied())
                    .or_else(|| self.published.get(id)?.peers.get(peer).copied()),
            }
        };
        ids.split('|').find_map(value).filter(|value| value.is_finite())
    }

    fn row(&self, ids: &str) -> Option<&FigureRow> {
        ids.split('|').find_map(|id| self.rows.get(id)).copied()
    }

    /// Number of `OF ID` or `ID`.
    fn number(&self, text: &str) -> Option<f64> {
        let (of, ids) = text.split_once(' ').unwrap_or(("ours", text));
        self.figure(of, ids)
    }

    fn cell(&self, text: &str, is_number: bool) -> report::Cell {
        let alone = text.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
        if let Some(alone) = alone.filter(|alone| !alone.contains("$(")) {
            let (id, format) = alone.split_once(':').unwrap_or((alone, "0"));
            let text = self.figures.get(id).and_then(|figure| figure.text.clone());
            let value = self.number(id).map(|value| value * scale(format));
            let plain = format.trim_end_matches(['%', 'µ', 's']).parse().ok();
            let is_bare = format.starts_with('s') && self.row(id).is_none_or(|row| row.bar().is_none());
            let is_short =
                is_bare.then(|| if value.is_some_and(|value| value.fract() == 0.0) { 0 } else { 2 });
            if let (Some(value), Some(Ok(decimals))) = (value, format.strip_suffix('e').map(str::parse)) {
                let half = self.figure("half", id).unwrap_or(0.0);
                return report::Cell::estimate(value, half, decimals);
            }
            if let (Some(value), Some(decimals)) = (value, plain.or(is_short)) {
                return report::Cell::number(value, decimals);
            }
            return text.or_else(|| self.formatted(alone)).map_or(report::Cell::Empty, report::Cell::text);
        }
        match self.text(text).filter(|text| !text.is_empty()) {
            None => report::Cell::Empty,
            Some(text) => match text.parse::<i128>() {
                Ok(integer) if is_number => report::Cell::integer(integer),
                _ => report::Cell::text(text),
            },
        }
    }

    /// Text with its figures; `None` if one of them has no value.
    fn text(&self, text: &str) -> Option<String> {
        let (mut shown, mut rest) = (String::new(), text);
        while let Some((before, behind)) = rest.split_once("$(") {
            let (figure, behind) = behind.split_once(')')?;
            shown.push_str(before);
            shown.push_str(&self.formatted(figure)?);
            rest = behind;
        }
        Some(shown + rest)
    }

    fn formatted(&self, figure: &str) -> Option<String> {
        let (id, format) = figure.split_once(':').unwrap_or((figure, ""));
        if let Some(text) = self.figures.get(id).and_then(|figure| figure.text.clone()) {
            return Some(text);
        }
        let value = self.number(id)? * scale(format);
        let digits: String = format.chars().take_while(char::is_ascii_digit).collect();
        let number = |value: f64| match digits.parse::<usize>() {
            Ok(decimals) => format!("{value:.decimals$}"),
            Err(_) if format.starts_with('s') && value.fract() != 0.0 => format!("{value:.2}"),
            Err(_) => value.to_string(),
        };
        let is_held = format.contains('≤');
        let mut shown = if is_held && value == 0.0 { "0".to_owned() } else { number(value) };
        let published = self.published.get(id.rsplit(' ').next().unwrap_or_default());
        if format.contains('*') && published.is_some_and(|published| published.is_marked) {
            shown.push_str(" *");
        }
        let half = format.contains('±').then(|| self.figure("half", id)).flatten();
        shown.extend(half.map(|half| format!(" ± {}", number(half))));
        let row = self.row(id).filter(|row| row.bar().is_some());
        if let Some(row) = row.filter(|_| format.contains('✓')) {
            shown.push_str(if row.met() { " ✓" } else { " ✗" });
        }
        if let Some(max) = row.and_then(|row| row.bar()?.max).filter(|_| is_held) {
            shown += &format!(" {} {max}", if value <= max { '≤' } else { '>' });
        }
        Some(shown)
    }
}

fn scale(format: &str) -> f64 {
    if format.contains('%') {
        100.0
    } else if format.contains('µ') {
        1e-6
    } else {
        1.0
    }
}

impl ColumnForm {
    fn form(&self) -> &str {
        self.text.as_deref().unwrap_or(&self.cell)
    }
}

fn axis(text: &str) -> Axis {
    let mut parts = text.split("; ");
    let axis = Axis::new(parts.next().unwrap_or_default());
    parts.fold(axis, |axis, part| match part {
        "" => axis,
        "log" => axis.logarithmic(),
        "octets" => axis.octets(),
        "percent" => axis.percent(),
        unit => axis.unit(unit),
    })
}
