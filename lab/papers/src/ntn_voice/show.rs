//! The figures as tables.

use thinair_report::{Cell, Column, Section, Table};

use super::call::{Call, Tally};
use super::{INTERVALS, MODES, Measured};

/// Bursts that tables have a column for.
const SHOWN: [u64; 7] = [1, 15, 16, 17, 64, 256, 1_024];

pub(super) fn sections(measured: &[Measured], bursts: &[u64]) -> Vec<Section> {
    let octets = Section::new("Octets of the headers of a packet")
        .text("IP, UDP and RTP together, compressed or not, mean of the packets before a burst. Without compression: 60 over IPv6, 40 \
                over IPv4.")
        .table(octets(measured));
    let behind = Section::new("Behind a burst")
        .text("Columns: packets lost in a row.")
        .table(by_burst(measured, "Packets not delivered behind a burst, mean", |tally| {
            Cell::number(tally.undelivered(), 2)
        }))
        .table(by_burst(measured, "Longest outage, packets", |tally| Cell::integer(tally.outage)))
        .table(by_burst(measured, "Packets with a wrong header", |tally| Cell::integer(tally.wrong)))
        .table(by_burst(
            measured,
            "Octets of the headers of a packet in the first second behind a burst",
            |tally| Cell::number(tally.after(), 2),
        ));
    let last = bursts.last().copied().unwrap_or(0);
    let falls = Section::new("Losses in a row that make a context fall back")
        .text(format!("The fewest of the bursts that were measured; “none”: not one of them, up to {last}."))
        .table(falls_back(measured));
    vec![octets, behind, falls]
}

/// Calls of all intervals and modes by kind and version.
fn kinds(measured: &[Measured]) -> Vec<String> {
    let mut kinds = Vec::new();
    for one in measured {
        let kind = name(&one.call);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

fn name(call: &Call) -> String {
    format!("{}, {}", call.name(), if call.six { "IPv6" } else { "IPv4" })
}

/// A table with a column for each interval and mode.
fn by_mode(measured: &[Measured], title: &str, cell: impl Fn(&Measured) -> Cell) -> Table {
    let mut columns = vec![Column::text("profile")];
    for (interval, mode) in INTERVALS.into_iter().flat_map(|interval| MODES.map(|mode| (interval, mode))) {
        columns.push(Column::number(format!("{interval} ms, {}", mode.letter())));
    }
    let mut table = Table::new(title, columns);
    for kind in kinds(measured) {
        let mut cells = vec![Cell::text(kind.clone())];
        for (interval, mode) in INTERVALS.into_iter().flat_map(|interval| MODES.map(|mode| (interval, mode)))
        {
            let found = measured.iter().find(|Measured { call, .. }| {
                name(call) == kind && (call.interval, call.mode) == (interval, mode)
            });
            cells.push(found.map_or(Cell::Empty, &cell));
        }
        table.row(cells);
    }
    table
}

fn octets(measured: &[Measured]) -> Table {
    by_mode(measured, "", |measured| Cell::number(measured.all().steady(), 2))
}

fn falls_back(measured: &[Measured]) -> Table {
    by_mode(measured, "", |measured| measured.falls_back().map_or_else(|| Cell::text("none"), Cell::integer))
}

fn by_burst(measured: &[Measured], title: &str, cell: impl Fn(&Tally) -> Cell) -> Table {
    let mut columns =
        vec![Column::text("profile"), Column::number("interval").unit("ms"), Column::text("mode")];
    columns.extend(SHOWN.map(|burst| Column::number(burst.to_string())));
    let mut table = Table::new(title, columns);
    for one in measured {
        let call = &one.call;
        let head = [Cell::text(name(call)), Cell::integer(call.interval), Cell::text(call.mode.letter())];
        let cells = SHOWN.map(|burst| one.of(burst).map_or(Cell::Empty, &cell));
        table.row(head.into_iter().chain(cells));
    }
    table
}
