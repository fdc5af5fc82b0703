//! The document as one self-contained HTML file, with style, drawings and a few lines of script. It suits
//! wide screens, phones and paper, light and dark mode, and works without the script.

mod tables;
mod typeset;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::document::{Code, Document, Element, Section, Term, Tile};
use crate::json::slug;
use crate::number::Numerals;
use crate::page::tables::bare_table;
use crate::page::typeset::{prose, unbroken_options};
use crate::plot::{self, Figure, Plot};
use crate::table::Table;
use crate::text::{arrows, width};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Content security policy that prevents all network access.
const FETCH_NOTHING: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Values with more characters than this are set smaller, to fit into their tile.
const WIDEST_LARGE_VALUE: usize = 8;

/// Tables with more rows than this may break across printed pages.
const MOST_ROWS_KEPT_TOGETHER: usize = 16;

impl Document {
    /// Returns the document as one HTML file.
    pub fn to_html(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta http-equiv="Content-Security-Policy" content=(FETCH_NOTHING);
                    title { (arrows(&self.title)) }
                    style { (PreEscaped(plot::STYLE)) (PreEscaped(STYLE)) }
                }
                body {
                    (contents(self))
                    script { (PreEscaped(SCRIPT)) "enliven(document);" }
                }
            }
        };
        page.into_string() + "\n"
    }

    /// Returns the contents of the page's body as HTML, for a page that has [`STYLESHEET`](crate::STYLESHEET) and the function of
    /// `page.js`.
    pub fn to_html_body(&self) -> String {
        contents(self).into_string()
    }
}

fn contents(document: &Document) -> Markup {
    html! {
        svg class="patterns" aria-hidden="true" { (plot::patterns()) }
        main {
            header {
                h1 { (prose(&document.title)) }
                @if !document.subtitle.is_empty() { p class="subtitle" { (prose(&document.subtitle)) } }
            }
            @for (at, part) in document.sections.iter().enumerate() { (section(at, part)) }
        }
    }
}

fn section(at: usize, section: &Section) -> Markup {
    let id = format!("{}-{}", at + 1, slug(&section.heading, "section", '-'));
    let heading = html! { @if !section.heading.is_empty() { h2 { (prose(&section.heading)) } } };
    let blocks = html! { @for one in &section.blocks { (block(one)) } };
    html! {
        section id=(id) {
            @if section.folded {
                details class="fold" { summary { (heading) } (blocks) }
            } @else {
                (heading) (blocks)
            }
        }
    }
}

fn block(block: &Element) -> Markup {
    match block {
        Element::Text(text) => html! { p { (prose(text)) } },
        Element::Tiles(tiles) => tile_row(tiles),
        Element::Facts(facts) => fact_rows(facts),
        Element::Code(code) => captioned_code(code),
        Element::Terms(terms) => explained(terms),
        Element::Table(table) => captioned_table(table),
        Element::Figure(figure) => captioned_figure(figure),
    }
}

fn tile_row(tiles: &[Tile]) -> Markup {
    html! {
        dl class="tiles" {
            @for tile in tiles {
                div {
                    dt { (prose(&tile.caption)) }
                    @let value = tile.value_text(&Numerals::TYPESET);
                    @let class = if width(&value) > WIDEST_LARGE_VALUE { "long value" } else { "value" };
                    dd class=(class) { (value) }
                    @if !tile.detail.is_empty() { dd class="detail" { (prose(&tile.detail)) } }
                }
            }
        }
    }
}

fn fact_rows(facts: &[Tile]) -> Markup {
    html! {
        dl class="facts" {
            @for fact in facts {
                div {
                    dt { (prose(&fact.caption)) }
                    dd {
                        (prose(&fact.value_text(&Numerals::TYPESET)))
                        @if !fact.detail.is_empty() { p class="detail" { (prose(&fact.detail)) } }
                    }
                }
            }
        }
    }
}

/// Each line is an element, so that wrapped lines are indented and a line is copied whole.
fn captioned_code(code: &Code) -> Markup {
    html! {
        figure class="code" {
            @if !code.caption.is_empty() { figcaption { (prose(&code.caption)) } }
            pre tabindex="0" { @for line in code.text.lines() { code { (unbroken_options(line)) "\n" } } }
        }
    }
}

fn explained(terms: &[Term]) -> Markup {
    html! {
        dl class="terms" {
            @for term in terms {
                div { dt { (prose(&term.word)) } " " dd { (prose(&term.meaning)) } }
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
            // The points of a curve would make a table too long to be useful.
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
                @if !title.is_empty() { h3 { (prose(title)) } }
                @for note in notes { p { (prose(note)) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::axis::Axis;
    use crate::plot::bars::Bars;
    use crate::plot::lines::{Lines, Series};
    use crate::plot::stacked::StackedBars;
    use crate::table::{Cell, Column};

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
    fn a_folded_section_shows_its_heading_and_holds_the_rest() {
        let html = Document::new("").section(Section::new("More").text("hidden").folded()).to_html();
        assert!(
            html.contains("<details class=\"fold\"><summary><h2>More</h2></summary><p>hidden</p></details>")
        );
    }

    #[test]
    fn commands_are_kept_letter_for_letter() {
        let html = Document::new("").section(Section::new("").code("there", "a -> b\n  --c")).to_html();
        assert!(html.contains("<pre tabindex=\"0\"><code>a -&gt; b\n</code><code>  <span class=\"whole\">--c</span>\n</code></pre>"));
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
            .facts([Tile::new(EVIL, Cell::text(EVIL)).unit(EVIL).detail(EVIL)])
            .code(EVIL, EVIL)
            .terms([(EVIL, EVIL)])
            .table(table)
            .figure(Figure::new(EVIL, lines).note(EVIL))
            .figure(Figure::new(EVIL, bars))
            .figure(Figure::new(EVIL, stacked));
        Document::new(EVIL).subtitle(EVIL).section(section)
    }
}
