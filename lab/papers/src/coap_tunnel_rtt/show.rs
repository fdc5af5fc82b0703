//! The rows as tables and plots.

use thinair_report::{Axis, Cell as Field, Column, Figure, Lines, Section, Series, Table};

use super::cell::{Place, Version, Way};
use super::published;
use super::rows::{CONCLUSIONS, MOST_ADDED, MOST_APART, added, apart, is_added, is_apart};
use super::summary::Summary;
use super::{Measured, Told};
use crate::row::Bar;

pub(super) fn sections(measured: &[Measured]) -> Vec<Section> {
    let mut sections: Vec<_> = measured.iter().map(place).collect();
    sections.extend(measured.iter().find(|at| at.place == Place::Veth).map(octets));
    sections
}

/// All of a place.
fn place(at: &Measured) -> Section {
    let (heading, text) = match at.place {
        Place::Veth => ("Over a cable", "A veth pair between two namespaces: what the machine alone takes."),
        Place::Link => {
            ("Over 10.6 ms", "The emulated link: tunnels, or libcoap itself, send over 5.3 ms each way.")
        }
    };
    let tables = Version::ALL.map(|version| times(at, version));
    let section = tables.into_iter().fold(Section::new(heading).text(text), Section::table);
    section
        .table(bars(at))
        .table(conclusions(at))
        .text(trust(at))
        .figure(plot(at, "Round trips", "mean", |times| (times.mean, times.margin)))
        .figure(plot(at, "Median round trips", "median", |times| (times.median, times.median_margin)))
}

fn times(at: &Measured, version: Version) -> Table {
    let mut columns = vec![Column::text("way")];
    let has_theirs = at.place == Place::Link;
    if has_theirs {
        columns.extend(["theirs", "min", "max"].map(Column::number));
    }
    columns.extend(["ours, mean", "median", "min", "max"].map(Column::number));
    columns.extend(["n", "lost"].map(Column::number));
    let mut table = Table::new(format!("Round trips, {}, ms", spelled(version)), columns);
    for told in cells(at, version) {
        let mut row = vec![Field::text(told.cell.way.name())];
        if has_theirs {
            row.extend(match published::of(told.cell.way, version) {
                Some(theirs) => [theirs.mean, theirs.min, theirs.max].map(|time| Field::number(time, 3)),
                None => [Field::Empty, Field::Empty, Field::Empty],
            });
        }
        match told.times {
            Some(times) => {
                row.push(Field::estimate(times.mean, times.margin, 3));
                row.extend([times.median, times.min, times.max].map(|time| Field::number(time, 3)));
                row.push(Field::integer(times.count));
            }
            None => row.extend((0..5).map(|_| Field::Empty)),
        }
        row.push(Field::integer(told.lost));
        table.row(row);
    }
    table.note("±: 95 % interval of the mean. Lost: sent twice or not answered, and so not in the figures.")
}

/// Medians beside their bars.
fn bars(at: &Measured) -> Table {
    let mut columns = vec![Column::text("way")];
    let has_forwarder = at.place == Place::Veth;
    if has_forwarder {
        columns.extend(["added IPv4", "IPv6"].map(Column::number));
    }
    columns.extend(["apart IPv4", "IPv6"].map(Column::number));
    let mut table = Table::new("Medians, ms", columns);
    for way in Way::all(at.place).into_iter().filter(|way| is_added(at, *way) || is_apart(*way)) {
        let of = |figure: fn(&Measured, &Told) -> Option<f64>| {
            Version::ALL.map(|version| at.of(way, version).and_then(|told| figure(at, told)))
        };
        let mut row = vec![Field::text(way.name())];
        if has_forwarder {
            row.extend(of(added).map(|value| verdict(value, Bar { max: Some(MOST_ADDED), min: None })));
        }
        let bar = Bar { max: Some(MOST_APART), min: Some(-MOST_APART) };
        let apart = of(apart).map(|value| value.filter(|_| is_apart(way)));
        row.extend(apart.map(|value| verdict(value, bar)));
        table.row(row);
    }
    let apart = format!("Apart: from profile uncompressed; the bar is {MOST_APART} ms either way.");
    if has_forwarder {
        let added = "Added: by each of the two tunnels, above the plain forwarder";
        table.note(format!("{added}; the bar is {MOST_ADDED} ms. {apart}"))
    } else {
        table.note(apart)
    }
}

fn verdict(value: Option<f64>, bar: Bar) -> Field {
    let Some(value) = value else { return Field::Empty };
    Field::text(format!("{value:.3} {}", if bar.holds(value) { '✓' } else { '✗' }))
}

fn conclusions(at: &Measured) -> Table {
    let mut columns = vec![Column::text("means, medians"), Column::text("")];
    let has_theirs = at.place == Place::Link;
    if has_theirs {
        columns.extend([Column::number("theirs"), Column::text("that is")]);
    }
    columns.extend([Column::number("ours"), Column::text("that is")]);
    columns.extend([Column::number("medians"), Column::text("that is")]);
    let mut table = Table::new("What follows, ms", columns);
    for conclusion in &CONCLUSIONS {
        for version in Version::ALL {
            let mut row = vec![Field::text(conclusion.what), Field::text(spelled(version))];
            if has_theirs {
                row.extend(difference(conclusion.theirs(at.place, version)));
            }
            row.extend(difference(conclusion.ours(at, version)));
            row.extend(difference(conclusion.medians(at, version)));
            table.row(row);
        }
    }
    if has_theirs {
        table.note(
            "Of means, and of medians. ±: 95 % interval; of theirs by the range of 20 values, as no deviation is \
                published. Open: it may be either.",
        )
    } else {
        table.note("Of means, and of medians. ±: 95 % interval. Open: it may be either.")
    }
}

fn difference(of: Option<(f64, f64)>) -> [Field; 2] {
    let Some((difference, margin)) = of else { return [Field::Empty, Field::Empty] };
    let words = match difference {
        _ if difference.abs() <= margin => "open",
        _ if difference > 0.0 => "more",
        _ => "less",
    };
    [Field::estimate(difference, margin, 3), Field::text(words)]
}

/// How far these figures can be trusted.
fn trust(at: &Measured) -> String {
    let stolen = format!("The host of this machine gave {:.1} % of its time to others.", at.stolen * 100.0);
    match at.late {
        Some(late) => format!("{stolen} The link was at most {late:.0} us late with 99 % of its packets."),
        None => stolen,
    }
}

fn octets(at: &Measured) -> Section {
    let mut columns = vec![Column::text("way"), Column::text("")];
    columns.extend(["IP, GET", "RSP", "ROHC, GET", "RSP", "carrier, GET", "RSP"].map(Column::number));
    let mut table = Table::new("Octets of a packet, mean", columns);
    for version in Version::ALL {
        for told in cells(at, version) {
            let Some(carried) = told.carried else { continue };
            let mut row = vec![Field::text(told.cell.way.name()), Field::text(spelled(version))];
            let octets = [carried.inside, carried.compressed, carried.carrier].concat();
            row.extend(octets.into_iter().map(|octets| Field::number(octets, 1)));
            table.row(row);
        }
    }
    let table =
        table.note("The carrier's: IPv4 and UDP headers, seal, packaging, and feedback where there was any.");
    Section::new("Octets").text("As the tunnel at the client's end has counted them.").table(table)
}

/// A figure of each cell with its interval.
fn plot(at: &Measured, title: &str, name: &str, of: fn(&Summary) -> (f64, f64)) -> Figure {
    let axes = Lines::new(Axis::new("ways, in the order of the tables"), Axis::new(name).unit("ms"));
    let plot = Way::all(at.place).into_iter().zip(1..).fold(axes, |plot, (way, number)| {
        let points = Version::ALL.into_iter().zip([-0.15, 0.15]).filter_map(|(version, aside)| {
            let (value, margin) = of(&at.times(way, version)?);
            Some((f64::from(number) + aside, value, margin))
        });
        plot.series(Series::with_margins(way.name(), points))
    });
    Figure::new(format!("{title} {}", at.place.what()), plot)
        .note("With 95 % intervals; of each way IPv4 at the left, IPv6 at the right.")
}

fn cells(at: &Measured, version: Version) -> impl Iterator<Item = &Told> {
    at.cells.iter().filter(move |told| told.cell.version == version)
}

fn spelled(version: Version) -> &'static str {
    match version {
        Version::V4 => "IPv4",
        Version::V6 => "IPv6",
    }
}
