//! The rows as tables and plots.

use thinair_report::{Axis, Cell, Column, Figure, Lines, Point, Section, Series, Shape, Table};

use super::cell::{Hearing, Way, id};
use super::{
    ACCESS_FAILURES, CLAIMED, COLLISIONS, DELAY, DELIVERED, DROPPED, ENERGY, FEEDBACK, OCTETS, OVERHEARING,
    P95, REFUSED, Results, TRIES, WAITED, senders,
};
use crate::row::Row;

pub(super) fn sections(results: &Results, rows: &[Row], quick: bool) -> Vec<Section> {
    let shown = Shown { results, rows, senders: senders(quick) };
    Hearing::ALL
        .into_iter()
        .map(|hearing| {
            let section = Section::new(capital(hearing.title()))
                .table(shown.claimed(hearing))
                .table(shown.table(hearing, "What arrives, and when", &[DELIVERED, DELAY, P95, WAITED]))
                .table(shown.table(
                    hearing,
                    "What it costs",
                    &[ENERGY, OVERHEARING, OCTETS, TRIES, COLLISIONS],
                ))
                .table(shown.table(
                    hearing,
                    "Where readings are lost, of 100",
                    &[ACCESS_FAILURES, DROPPED, REFUSED, FEEDBACK],
                ));
            let figures = [DELIVERED, COLLISIONS, WAITED, ENERGY];
            figures.into_iter().fold(section, |section, figure| section.figure(shown.plot(hearing, figure)))
        })
        .collect()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn column(heading: &str, figure: super::Figure) -> Column {
    let column = Column::number(heading);
    // A bare count has no unit, and octets are one.
    if figure.unit.is_empty() || figure.unit == heading { column } else { column.unit(figure.unit) }
}

struct Shown<'a> {
    results: &'a Results,
    rows: &'a [Row],
    senders: &'a [u16],
}

impl Shown<'_> {
    /// A mean with its interval.
    fn estimate(&self, cell: &str, figure: super::Figure) -> Cell {
        let Some(summary) = self.results.summary(cell, figure.of) else { return Cell::Empty };
        let decimals = figure.decimals;
        match summary.half {
            Some(half) => Cell::text(format!("{:.decimals$} ± {half:.decimals$}", summary.mean)),
            None => Cell::text(format!("{:.decimals$}", summary.mean)),
        }
    }

    /// What smaller packets were said to lessen.
    fn claimed(&self, hearing: Hearing) -> Table {
        let columns = [Column::number("senders")].into_iter().chain(
            CLAIMED.map(|figure| Column::number(format!("{} above plain", figure.name)).unit(figure.unit)),
        );
        let mut table = Table::new("rohc above plain, at most (95 %)", columns);
        for senders in self.senders {
            let cells = CLAIMED.map(|figure| {
                let id = format!("{}/{senders}/{}-above-plain", hearing.name(), figure.name);
                let Some(row) = self.rows.iter().find(|row| row.id() == id) else { return Cell::Empty };
                let Some(ours) = row.ours() else { return Cell::Empty };
                let sign = match row.bar() {
                    None => "",
                    Some(_) if row.met() => " ✓",
                    Some(_) => " ✗",
                };
                Cell::text(format!("{ours:.3}{sign}"))
            });
            table.row([Cell::integer(*senders)].into_iter().chain(cells));
        }
        table.note("Below zero: less with ROHC, beyond doubt.")
    }

    fn table(&self, hearing: Hearing, title: &str, figures: &[super::Figure]) -> Table {
        let columns = figures.iter().map(|figure| column(figure.name, *figure));
        let names = [Column::number("senders"), Column::text("way")];
        let mut table = Table::new(title, names.into_iter().chain(columns));
        for senders in self.senders {
            for way in Way::ALL {
                let cell = id(hearing, *senders, way);
                let cells = figures.iter().map(|figure| self.estimate(&cell, *figure));
                let names = [Cell::integer(*senders), Cell::text(way.name())];
                table.row(names.into_iter().chain(cells));
            }
        }
        let notes = figures.iter().map(|figure| format!("{}: {}", figure.name, figure.what));
        table.note(format!("{}.", notes.collect::<Vec<_>>().join("; ")))
    }

    fn plot(&self, hearing: Hearing, figure: super::Figure) -> Figure {
        let y = Axis::new(figure.name);
        let y = if figure.unit.is_empty() { y } else { y.unit(figure.unit) };
        let plot = Way::ALL.into_iter().fold(Lines::new(Axis::new("senders"), y), |plot, way| {
            let points = self.senders.iter().filter_map(|senders| {
                let summary = self.results.summary(&id(hearing, *senders, way), figure.of)?;
                let interval = summary.half.map(|half| (summary.mean - half, summary.mean + half));
                Some(Point { x: f64::from(*senders), y: summary.mean, interval })
            });
            plot.series(Series { name: way.name().into(), points: points.collect(), shape: Shape::Straight })
        });
        Figure::new(format!("{}: {}", capital(figure.what), hearing.title()), plot)
    }
}
