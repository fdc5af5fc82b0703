//! The document as one HTML file that fetches nothing: style, drawings and the few lines of script are in
//! it. Reads on a wide screen, a telephone and paper, light and dark, and without the script.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::document::{Block, Document, Section, Tile};
use crate::json::slug;
use crate::number::Numerals;
use crate::plot::{self, Figure, Plot};
use crate::table::{Cell, Column, Kind, Table, cell};
use crate::text::{printable, width};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Said to the browser, so that it holds us to it.
const FETCH_NOTHING: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Values of more characters than this are set smaller, to stay inside their tile.
const WIDEST_LARGE_VALUE: usize = 8;

/// Tables with more columns than this are set closer, so that they need not scroll on a wide screen.
const ROOMY: usize = 9;

/// Tables longer than this break across pages rather than leaving one half empty.
const MOST_ROWS_KEPT_TOGETHER: usize = 16;

impl Document {
    /// The document as one HTML file.
    pub fn to_html(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta http-equiv="Content-Security-Policy" content=(FETCH_NOTHING);
                    title { (printable(&self.title)) }
                    style { (PreEscaped(plot::STYLE)) (PreEscaped(STYLE)) }
                }
                body {
                    svg class="patterns" aria-hidden="true" { (plot::patterns()) }
                    main {
                        header {
                            h1 { (printable(&self.title)) }
                            @if !self.subtitle.is_empty() { p class="subtitle" { (printable(&self.subtitle)) } }
                        }
                        @for (at, part) in self.sections.iter().enumerate() { (section(at, part)) }
                    }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        page.into_string() + "\n"
    }
}

fn section(at: usize, section: &Section) -> Markup {
    let id = format!("{}-{}", at + 1, slug(&section.heading, "section", '-'));
    html! {
        section id=(id) {
            @if !section.heading.is_empty() { h2 { (printable(&section.heading)) } }
            @for block in &section.blocks {
                @match block {
                    Block::Text(text) => p { (printable(text)) },
                    Block::Tiles(tiles) => (tile_row(tiles)),
                    Block::Table(table) => (captioned_table(table)),
                    Block::Figure(figure) => (captioned_figure(figure)),
                }
            }
        }
    }
}

fn tile_row(tiles: &[Tile]) -> Markup {
    html! {
        dl class="tiles" {
            @for tile in tiles {
                div {
                    dt { (printable(&tile.caption)) }
                    @let value = tile.value_text(&Numerals::TYPESET);
                    @let class = if width(&value) > WIDEST_LARGE_VALUE { "long value" } else { "value" };
                    dd class=(class) { (value) }
                    @if !tile.detail.is_empty() { dd class="detail" { (printable(&tile.detail)) } }
                }
            }
        }
    }
}

fn captioned_table(table: &Table) -> Markup {
    let long = table.rows().len() > MOST_ROWS_KEPT_TOGETHER;
    html! {
        figure class=(if long { "table long" } else { "table" }) {
            (caption(&table.title, &[&table.note]))
            (bare_table(table))
        }
    }
}

fn captioned_figure(figure: &Figure) -> Markup {
    let [wide, narrow] = figure.drawings();
    let omissions = figure.omissions().unwrap_or_default();
    html! {
        figure class="drawing" {
            (caption(&figure.title, &[&figure.note, &omissions]))
            (wide)
            (narrow)
            // The points of a curve would be a table too long to be of use.
            @if !matches!(figure.plot, Plot::Lines(_)) {
                details {
                    summary { "Values" }
                    (bare_table(&figure.data()))
                }
            }
        }
    }
}

fn caption(title: &str, notes: &[&str]) -> Markup {
    let notes: Vec<&&str> = notes.iter().filter(|note| !note.is_empty()).collect();
    html! {
        @if !title.is_empty() || !notes.is_empty() {
            figcaption {
                @if !title.is_empty() { h3 { (printable(title)) } }
                @for note in notes { p { (printable(note)) } }
            }
        }
    }
}

fn bare_table(table: &Table) -> Markup {
    let texts = table.texts(&Numerals::TYPESET);
    let rows = table.rows().iter().zip(&texts);
    let totals = table.totals().iter().zip(texts.iter().skip(table.rows().len()));
    let label = if table.title.is_empty() { "Table" } else { &table.title };
    html! {
        // Can be reached by keyboard, since it may scroll.
        div class="scroll" role="region" tabindex="0" aria-label=(printable(label)) {
            table class=[is_dense(table).then_some("dense")] {
                thead { tr { @for column in table.columns() { (heading(column)) } } }
                tbody { @for (cells, texts) in rows { (row(table, cells, texts)) } }
                @if !table.totals().is_empty() {
                    tfoot { @for (cells, texts) in totals { (row(table, cells, texts)) } }
                }
            }
        }
    }
}

/// Whether the columns are so many that they need the room between them.
fn is_dense(table: &Table) -> bool {
    table.columns().len() > ROOMY
}

fn heading(column: &Column) -> Markup {
    html! {
        th scope="col" class=[class(column.kind)] {
            (printable(&column.heading))
            @if let Some(unit) = &column.unit { " " span class="unit" { "(" (printable(unit)) ")" } }
        }
    }
}

fn row(table: &Table, cells: &[Cell], texts: &[String]) -> Markup {
    html! {
        tr {
            @for (at, (column, text)) in table.columns().iter().zip(texts).enumerate() {
                @if at == 0 && column.kind == Kind::Text {
                    th scope="row" { (text) }
                } @else {
                    @let cell = cell(cells, at);
                    td class=[class(column.kind)] data-v=[sort_key(cell)] {
                        @match cell {
                            Cell::YesNo(true) => span class="yes" { (text) },
                            Cell::YesNo(false) => span class="no" { (text) },
                            _ => (text),
                        }
                    }
                }
            }
        }
    }
}

fn class(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Text => None,
        Kind::Number => Some("n"),
    }
}

/// The bare value to sort by, where the text does not say it.
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
    use crate::plot::axis::Axis;
    use crate::plot::bars::Bars;
    use crate::plot::lines::{Lines, Series};
    use crate::plot::stacked::StackedBars;

    const EVIL: &str = "</style><script>alert('&')</script>\"\u{202e}";

    #[test]
    fn every_text_is_escaped() {
        let html = evil().to_html();
        assert_eq!(html.matches("<script>").count(), 1, "only our own");
        assert_eq!(html.matches("</style>").count(), 1);
        assert!(html.contains("&lt;script&gt;"));
        assert!(!html.contains('\u{202e}'));
    }

    #[test]
    fn nothing_is_fetched() {
        let html = evil().to_html().replace("http://www.w3.org/2000/svg", "");
        for sign in ["http:", "https:", "://", "src=", "@import", "url(\"", "<link"] {
            assert!(!html.contains(sign), "{sign}");
        }
    }

    #[test]
    fn same_input_same_bytes() {
        assert_eq!(evil().to_html(), evil().to_html());
    }

    #[test]
    fn an_empty_document_is_still_a_page() {
        let html = Document::default().to_html();
        assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));
    }

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

    fn evil() -> Document {
        let axis = || Axis::new(EVIL).unit(EVIL);
        let mut table = Table::new(EVIL, [Column::text(EVIL).unit(EVIL), Column::text(EVIL)]).note(EVIL);
        table.row([Cell::text(EVIL), Cell::text(EVIL)]);
        table.total([Cell::text(EVIL)]);
        let curves =
            || [Series::new(EVIL, [(0.0, 1.0), (1.0, 2.0)]), Series::new("b", [(0.0, 1.0), (1.0, 2.0)])];
        let [first, second] = curves();
        let lines = Lines::new(axis(), axis()).series(first).series(second);
        let bars = Bars::new(axis(), axis(), [EVIL]).series(EVIL, [1.0]);
        let stacked = StackedBars::new(axis(), [EVIL]).bar(EVIL, [1.0]);
        let section = Section::new(EVIL)
            .text(EVIL)
            .tiles([Tile::new(EVIL, Cell::text(EVIL)).unit(EVIL).detail(EVIL)])
            .table(table)
            .figure(Figure::new(EVIL, lines).note(EVIL))
            .figure(Figure::new(EVIL, bars))
            .figure(Figure::new(EVIL, stacked));
        Document::new(EVIL).subtitle(EVIL).section(section)
    }
}
