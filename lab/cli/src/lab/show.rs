//! Results as a table, as JSON, as a page.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use thinair_report::{Axis, Cell, Column, Document, Figure, Lines, Section, Series, Table};
use thinair_simulation::plan::{Metric, Results};

use thinair_cli::terminal::{print, style};

/// Columns of the output when it does not go to a terminal.
const PLAIN_WIDTH: usize = 160;

#[derive(Args, Debug)]
pub(super) struct ResultFormat {
    /// Print every figure as JSON (thinair.lab/1)
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Write a page with plots, too: one file, which needs no network
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,
}

pub(super) fn show(output: &ResultFormat, title: &str, results: &Results) -> anyhow::Result<()> {
    if output.json {
        print(&(serde_json::to_string_pretty(&results.to_json(title))? + "\n"))?;
    } else {
        print(&table(title, results).to_text(&style(PLAIN_WIDTH)))?;
    }
    if let Some(path) = &output.html {
        let page = page(title, results).to_html();
        thinair_cli::whole::write(path, page).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("thinair-lab: wrote {}", path.display());
    }
    Ok(())
}

/// Metrics that have a value in at least one cell.
fn metrics(results: &Results) -> Vec<Metric> {
    let is_there = |metric: &Metric| results.cells().any(|cell| cell.summary(metric).is_some());
    Metric::ALL.into_iter().filter(is_there).collect()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn table(title: &str, results: &Results) -> Table {
    let mut columns: Vec<_> = results.keys().into_iter().map(Column::text).collect();
    columns.push(Column::number("runs"));
    let shown = metrics(results);
    columns.extend(shown.iter().map(|metric| match metric.unit {
        "" => Column::number(metric.title),
        unit => Column::number(metric.title).unit(unit),
    }));
    let mut table = Table::new(title, columns);
    for cell in results.cells() {
        let mut row: Vec<_> = cell.sweep.iter().map(|(_, value)| Cell::text(text(value))).collect();
        row.push(Cell::integer(cell.count() as u64));
        row.extend(shown.iter().map(|metric| match cell.summary(metric) {
            None => Cell::Empty,
            Some(found) => match found.half {
                Some(half) => Cell::estimate(found.mean, half, metric.decimals),
                None => Cell::number(found.mean, metric.decimals),
            },
        }));
        table.row(row);
    }
    let table = table.note("Means of the runs; ± has half of the interval of 95 %.");
    match results.real_time() {
        None => table,
        Some(late) => table.note(format!(
            "In real time: 99 of 100 packets came out of the link at most {:.0} us late in the worst run, the latest one {:.0} us.",
            late.p99_us, late.max_us
        )),
    }
}

/// Name, and points: position, mean and half of the interval.
type Curve = (String, Vec<(f64, f64, f64)>);

fn page(title: &str, results: &Results) -> Document {
    let title = if title.is_empty() { "thinair-lab lab" } else { title };
    let mut document = Document::new(title).section(Section::new("Figures").table(table("", results)));
    // Plots over the first numeric key, with a curve for each value of the others.
    let numeric = |at: &usize| {
        results.cells().all(|cell| cell.sweep.get(*at).is_some_and(|(_, value)| value.is_number()))
    };
    let keys = results.keys();
    let Some(x) = (0..keys.len()).find(numeric) else { return document };
    let mut plots = Section::new(format!("Over {}", keys[x]));
    for metric in metrics(results) {
        let mut curves: Vec<Curve> = Vec::new();
        for cell in results.cells() {
            let others = cell.sweep.iter().enumerate().filter(|(at, _)| *at != x);
            let names: Vec<_> = others.map(|(_, (_, value))| text(value)).collect();
            let name = if names.is_empty() { metric.title.to_owned() } else { names.join(", ") };
            let Some(found) = cell.summary(&metric) else { continue };
            let Some(place) = cell.sweep.get(x).and_then(|(_, value)| value.as_f64()) else { continue };
            let point = (place, found.mean, found.half.unwrap_or(0.0));
            match curves.iter_mut().find(|(of, _)| *of == name) {
                Some((_, points)) => points.push(point),
                None => curves.push((name, vec![point])),
            }
        }
        let mut plot = Lines::new(Axis::new(keys[x].clone()), Axis::new(metric.title).unit(metric.unit));
        for (name, mut points) in curves {
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            plot = plot.series(Series::with_margins(name, points));
        }
        plots = plots.figure(Figure::new(metric.title, plot));
    }
    document = document.section(plots);
    document
}
