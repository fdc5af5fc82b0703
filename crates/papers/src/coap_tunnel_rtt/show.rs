//! The rows as tables and plots.

use thinair_report::{Cell as Field, Column, Section, Table};

use super::{Measured, Told};

pub(super) fn sections(measured: &[Measured]) -> Vec<Section> {
    measured
        .iter()
        .map(|at| {
            let mut table = Table::new(
                at.place.what(),
                ["way", "version"].map(Column::text).into_iter().chain(
                    ["mean", "median", "min", "max", "get", "rsp", "lost"].map(Column::number),
                ),
            );
            for told in &at.cells {
                table.row(row(told));
            }
            Section::new(at.place.what()).table(table)
        })
        .collect()
}

fn row(told: &Told) -> Vec<Field> {
    let mut row = vec![Field::text(told.cell.way.what()), Field::text(told.cell.version.name())];
    match told.times {
        Some(times) => {
            row.push(Field::estimate(times.mean, times.margin, 3));
            row.extend([times.median, times.min, times.max].map(|time| Field::number(time, 3)));
        }
        None => row.extend([Field::Empty, Field::Empty, Field::Empty, Field::Empty]),
    }
    match told.carried {
        Some(carried) => row.extend(carried.carrier.map(|octets| Field::number(octets, 1))),
        None => row.extend([Field::Empty, Field::Empty]),
    }
    row.push(Field::integer(told.lost));
    row
}
