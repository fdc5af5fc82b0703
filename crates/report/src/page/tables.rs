//! Tables on a page. On narrow screens, a table of numbers scrolls beside its row names, and a table of
//! records becomes a card for each row.

use maud::{Markup, html};

use crate::number::Numerals;
use crate::page::typeset::prose;
use crate::table::{Cell, Column, ColumnKind, Table, cell};
use crate::text::{printable, width};

/// Tables with more columns than this are set closer, to avoid scrolling on a wide screen.
const ROOMY: usize = 9;

/// Number of letters in a table row on a phone.
const NARROW: usize = 44;

/// Width between two columns, in letters.
const GAP: usize = 2;

/// Row names up to this length are not wrapped.
const SHORT_NAME: usize = 22;

pub(super) fn bare_table(table: &Table) -> Markup {
    let texts = table.texts(&Numerals::TYPESET);
    let rows = table.rows().iter().zip(&texts);
    let totals = table.totals().iter().zip(texts.iter().skip(table.rows().len()));
    let label = if table.title.is_empty() { "Table" } else { &table.title };
    let cards = has_cards(table, &texts);
    let class = match (cards, is_dense(table)) {
        (true, true) => Some("cards dense"),
        (true, false) => Some("cards"),
        (false, true) => Some("dense"),
        (false, false) => None,
    };
    html! {
        // Reachable by keyboard, since it may scroll.
        div class="scroll" role="region" tabindex="0" aria-label=(printable(label)) {
            table class=[class] {
                thead { tr { @for column in table.columns() { (heading(column)) } } }
                tbody { @for (cells, texts) in rows { (row(table, cells, texts, cards)) } }
                @if !table.totals().is_empty() {
                    tfoot { @for (cells, texts) in totals { (row(table, cells, texts, cards)) } }
                }
            }
        }
    }
}

/// True if the table has too many columns for normal spacing.
fn is_dense(table: &Table) -> bool {
    table.columns().len() > ROOMY
}

/// True if rows are records with long names, wider than a phone.
fn has_cards(table: &Table, texts: &[Vec<String>]) -> bool {
    let longest_word = |text: &str| text.split_whitespace().map(width).max().unwrap_or(0);
    let mut names = 0;
    let mut longest_name = 0;
    let mut room = 0;
    for (at, column) in table.columns().iter().enumerate() {
        let cells = texts.iter().filter_map(|row| row.get(at));
        let cell = match column.kind {
            ColumnKind::Number => cells.map(|text| width(text)).max(),
            ColumnKind::Text => {
                names += 1;
                longest_name = cells.clone().map(|text| width(text)).fold(longest_name, usize::max);
                cells.map(|text| longest_word(text)).max()
            }
        };
        room += cell.unwrap_or(0).max(longest_word(&column.heading)) + GAP;
    }
    names > 1 && longest_name > SHORT_NAME && room > NARROW
}

fn heading(column: &Column) -> Markup {
    html! {
        th scope="col" class=[class(column.kind)] {
            (prose(&column.heading))
            @if let Some(unit) = &column.unit { " " span class="unit" { "(" (printable(unit)) ")" } }
        }
    }
}

fn row(table: &Table, cells: &[Cell], texts: &[String], cards: bool) -> Markup {
    html! {
        tr {
            @for (at, (column, text)) in table.columns().iter().zip(texts).enumerate() {
                @if at == 0 && column.kind == ColumnKind::Text {
                    th scope="row" class=[(width(text) <= SHORT_NAME).then_some("short")] { (prose(text)) }
                } @else {
                    @let cell = cell(cells, at);
                    td class=[class(column.kind)] data-v=[sort_key(cell)]
                        data-h=[cards.then(|| printable(&column.label()).into_owned())] {
                        @if cards && !text.is_empty() { span { (value(cell, text)) } } @else { (value(cell, text)) }
                    }
                }
            }
        }
    }
}

fn value(cell: &Cell, text: &str) -> Markup {
    match cell {
        Cell::YesNo(true) => html! { span class="yes" { (text) } },
        Cell::YesNo(false) => html! { span class="no" { (text) } },
        Cell::Text(_) => prose(text),
        _ => html! { (text) },
    }
}

fn class(kind: ColumnKind) -> Option<&'static str> {
    match kind {
        ColumnKind::Text => None,
        ColumnKind::Number => Some("n"),
    }
}

/// Returns the bare value for sorting, if the text does not contain it.
fn sort_key(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Empty | Cell::Text(_) | Cell::YesNo(_) => None,
        Cell::Integer(value) => Some(value.to_string()),
        Cell::Number { value, .. } | Cell::Estimate { value, .. } | Cell::Percent(value) => (!value.is_nan())
            .then(|| {
                if value.is_infinite() {
                    format!("{}", value.signum() * f64::MAX)
                } else {
                    format!("{value:?}")
                }
            }),
        Cell::Octets(octets) => Some(octets.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_carry_what_to_sort_by() {
        let mut table = Table::new("", [Column::text("a"), Column::number("b")]);
        table.row([Cell::text("x"), Cell::Percent(0.125)]);
        table.row([Cell::text("y"), Cell::number(f64::NAN, 1)]);
        let html = bare_table(&table).into_string();
        assert!(html.contains("<td class=\"n\" data-v=\"0.125\">12.5\u{202f}%</td>"));
        assert!(html.contains("<td class=\"n\">–</td>"));
    }

    #[test]
    fn many_columns_are_set_closer() {
        let with = |columns: usize| {
            let table = Table::new("", (0..columns).map(|_| Column::number("n")));
            bare_table(&table).into_string().contains("dense")
        };
        assert_eq!([2, 9, 10].map(with), [false, false, true]);
    }

    #[test]
    fn wide_records_are_cards_that_name_each_value() {
        let columns = || [Column::text("flow"), Column::text("best"), Column::number("header").unit("B")];
        let with = |name: &str| {
            let mut table = Table::new("", columns());
            table.row([Cell::text(name), Cell::text("coap O"), Cell::number(3.4, 1)]);
            table.row([Cell::text(name), Cell::Empty, Cell::number(3.4, 1)]);
            bare_table(&table).into_string()
        };
        assert!(!with("short").contains("cards"));
        let cards = with(&"[2001:db8::1]:5683".repeat(2));
        assert!(cards.contains("<td data-h=\"best\"><span>coap O</span></td>"), "{cards}");
        assert!(
            cards.contains("<td data-h=\"best\"></td>"),
            "a value that is missing takes no line: {cards}"
        );
        assert!(cards.contains("data-h=\"header (B)\"><span>3.4</span>"), "{cards}");
    }

    #[test]
    fn wide_tables_of_numbers_stay_tables() {
        let columns = (0..12).map(|at| Column::number(format!("incompressible {at}")));
        let table = Table::new("", std::iter::once(Column::text("type")).chain(columns));
        assert!(!bare_table(&table).into_string().contains("cards"));
    }
}
