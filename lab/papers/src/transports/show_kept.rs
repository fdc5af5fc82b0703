//! Connections that stay, as tables.

use thinair_report::{Cell as Field, Column, Section, Table};

use super::kept::{Kept, KeptReal, Took};
use super::show::text;
use super::virtual_time::what;

const FIGURES: [fn(&Took) -> f64; 3] = [|took| took.packets, |took| took.octets, |took| took.time];

fn table(title: &str, names: &[&str]) -> Table {
    let mut columns: Vec<Column> = names.iter().map(|name| Column::text(*name)).collect();
    columns.push(Column::number("object"));
    for which in ["first", "next"] {
        columns.push(Column::number(format!("{which}: packets")));
        columns.extend(["octets", "ms"].map(Column::number));
    }
    Table::new(title, columns)
}

pub(super) fn section(real: &[KeptReal], exact: &[Kept]) -> Section {
    let mut section = Section::new("Connections that stay").text(
        "Objects one after the other on one connection: the first one, with the handshake, and one that follows, from its request to \
            the next. IoT-HTTP has no such connections, as their end is that of the object. The end is in neither.",
    );
    if !real.is_empty() {
        let mut measured = table("Measured: 20 kbit/s, MTU 128, lean options", &["service"]);
        for kept in real {
            let mut row = vec![Field::text(kept.service.what()), Field::integer(kept.size)];
            for which in [0, 1] {
                row.extend(FIGURES.iter().zip([0, 0, 1]).map(|(figure, decimals)| {
                    kept.range(which, figure)
                        .map_or(Field::text("did not come"), |range| Field::text(text(range, decimals)))
                }));
            }
            measured.row(row);
        }
        section = section.table(measured.note("The one that follows is the second, right behind the first."));
    }
    let mut in_virtual_time = table("In virtual time, and over ROHC", &["service", "below"]);
    for kept in exact {
        let mut row = [what(kept.service), kept.below.what()].map(Field::text).to_vec();
        row.push(Field::integer(kept.size));
        for took in [kept.first, kept.next] {
            row.extend(FIGURES.iter().zip([0, 0, 1]).map(|(figure, decimals)| {
                took.as_ref().map_or(Field::Empty, |took| Field::number(figure(took), decimals))
            }));
        }
        in_virtual_time.row(row);
    }
    section.table(
        in_virtual_time
            .note("The one that follows is the 20th, so that contexts are there, and a second behind the one before. CoAP needs no connection."),
    )
}
