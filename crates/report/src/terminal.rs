//! Tables and documents as fixed-width text. A [`Style`] describes the terminal; this module does not query
//! it.

use std::borrow::Cow;

use crate::document::{Code, Document, Element, Section, Term, Tile};
use crate::number::Numerals;
use crate::table::{Cell, Column, ColumnKind, Table, cell};
use crate::text::{printable, truncated, width, wrapped};

/// Properties of the terminal. The caller determines them (terminal or not, width, `NO_COLOR`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// True to use bold, dim and colored text.
    pub color: bool,
    /// Maximum width in columns. Numbers are never truncated, so a table with many of them may be wider.
    pub width: usize,
}

/// Width between two table columns.
const GAP: usize = 2;

/// Minimum width to which text is truncated, in columns.
const LEAST_TEXT: usize = 8;

/// Width below which a table that is too wide is divided, in columns. From here on it is wider than the terminal.
const NARROW: usize = 80;

/// Maximum width of prose, in columns.
const WIDEST_PROSE: usize = 88;

impl Style {
    /// Returns a style without color, as for a file or a pipe.
    pub const fn plain(width: usize) -> Self {
        Self { color: false, width }
    }

    /// Returns a style with bold, dim and colored text.
    pub const fn color(width: usize) -> Self {
        Self { color: true, width }
    }

    fn paint(self, paint: Paint, text: &str) -> Cow<'_, str> {
        let code = match paint {
            Paint::Plain => return Cow::Borrowed(text),
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Good => "32",
            Paint::Bad => "31",
        };
        if !self.color || text.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(format!("\u{1b}[{code}m{text}\u{1b}[0m"))
    }

    pub(crate) fn bold(self, text: &str) -> Cow<'_, str> {
        self.paint(Paint::Bold, text)
    }

    fn prose_width(self) -> usize {
        self.width.min(WIDEST_PROSE)
    }
}

#[derive(Debug, Clone, Copy)]
enum Paint {
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
}

impl Document {
    /// Returns the document as text, without figures: important data in them should also be in a table.
    pub fn to_text(&self, style: &Style) -> String {
        let mut parts = vec![self.opening(style)];
        for section in self.sections.iter().filter(|section| has_text(section)) {
            if !section.heading.is_empty() {
                parts.push(format!("\n{}\n", style.paint(Paint::Bold, &printable(&section.heading))));
            }
            for block in &section.blocks {
                parts.push(match block {
                    Element::Text(text) => paragraph(text, style, Paint::Plain),
                    Element::Tiles(tiles) => tiles_text(tiles, style),
                    Element::Facts(facts) => facts_text(facts, style),
                    Element::Code(code) => code_text(code, style),
                    Element::Terms(terms) => terms_text(terms, style),
                    Element::Table(table) => table.to_text(style),
                    Element::Figure(_) => String::new(),
                });
            }
        }
        parts.retain(|part| !part.is_empty());
        parts.join("\n")
    }

    fn opening(&self, style: &Style) -> String {
        let title = paragraph(&self.title, style, Paint::Bold);
        if self.subtitle.is_empty() { title } else { title + &paragraph(&self.subtitle, style, Paint::Dim) }
    }
}

impl Table {
    /// Returns the table as text: title, note, headings over a rule, and rows with numbers flush right.
    ///
    /// If the table is too wide, headings are wrapped, and then texts are truncated. Numbers are never
    /// truncated: below 80 columns the table is divided instead, into parts below each other, each with the first column.
    pub fn to_text(&self, style: &Style) -> String {
        let mut out = String::new();
        if !self.title.is_empty() {
            out.push_str(&paragraph(&self.title, style, Paint::Bold));
        }
        if !self.note.is_empty() {
            out.push_str(&paragraph(&self.note, style, Paint::Dim));
        }
        if !out.is_empty() && !self.columns().is_empty() {
            out.push('\n');
        }
        self.push_grid(&mut out, style);
        out
    }

    fn push_grid(&self, out: &mut String, style: &Style) {
        if self.columns().is_empty() {
            return;
        }
        let texts = self.texts(&Numerals::TERMINAL);
        let labels: Vec<String> = self.columns().iter().map(|c| printable(&c.label()).into_owned()).collect();
        let widths = fitting_widths(self.columns(), &labels, &texts, style.width);
        if style.width >= NARROW || total(&widths) <= style.width {
            let all = (0..widths.len()).collect::<Vec<_>>();
            return self.push_part(out, style, (&all, &widths), &labels, &texts);
        }
        for (number, (part, widths)) in
            parts(self.columns(), &labels, &texts, style.width).into_iter().enumerate()
        {
            if number > 0 {
                out.push('\n');
            }
            self.push_part(out, style, (&part, &widths), &labels, &texts);
        }
    }

    /// Appends some columns, given by their numbers and widths.
    fn push_part(
        &self,
        out: &mut String,
        style: &Style,
        (part, widths): (&[usize], &[usize]),
        labels: &[String],
        texts: &[Vec<String>],
    ) {
        let labels: Vec<String> = part.iter().filter_map(|&at| labels.get(at)).cloned().collect();
        let kinds: Vec<_> =
            part.iter().filter_map(|&at| self.columns().get(at)).map(|one| one.kind).collect();
        let rule = "─".repeat(widths.iter().sum::<usize>() + GAP * (widths.len() - 1));
        let rule = style.paint(Paint::Dim, &rule);

        for line in heading_lines(&labels, widths) {
            let fields = line.iter().map(|text| (text.as_str(), Paint::Bold));
            push_line(out, &kinds, widths, style, fields);
        }
        out.push_str(&rule);
        out.push('\n');
        for (at, (row, texts)) in self.rows().iter().chain(self.totals()).zip(texts).enumerate() {
            let is_total = at >= self.rows().len();
            if at == self.rows().len() {
                out.push_str(&rule);
                out.push('\n');
            }
            let fields = part.iter().filter_map(|&column| Some((column, texts.get(column)?)));
            let fields = fields.map(|(column, text)| {
                let paint = match cell(row, column) {
                    Cell::YesNo(true) => Paint::Good,
                    Cell::YesNo(false) => Paint::Bad,
                    _ if is_total => Paint::Bold,
                    _ => Paint::Plain,
                };
                (text.as_str(), paint)
            });
            push_line(out, &kinds, widths, style, fields);
        }
    }
}

fn push_line<'a>(
    out: &mut String,
    kinds: &[ColumnKind],
    widths: &[usize],
    style: &Style,
    fields: impl Iterator<Item = (&'a str, Paint)>,
) {
    // Spaces are delayed until other text follows, so that no line ends with spaces.
    let mut spaces = 0;
    for (at, ((text, paint), (kind, &room))) in fields.zip(kinds.iter().zip(widths)).enumerate() {
        let text = match kind {
            ColumnKind::Text => truncated(text, room),
            ColumnKind::Number => Cow::Borrowed(text),
        };
        let fill = room.saturating_sub(width(&text));
        let (before, after) = match kind {
            ColumnKind::Text => (0, fill),
            ColumnKind::Number => (fill, 0),
        };
        spaces += before + if at > 0 { GAP } else { 0 };
        if !text.is_empty() {
            out.extend(std::iter::repeat_n(' ', spaces));
            out.push_str(&style.paint(paint, &text));
            spaces = 0;
        } else {
            spaces += width(&text);
        }
        spaces += after;
    }
    out.push('\n');
}

/// Divides the columns into parts of at most `limit` columns of the terminal, each with the first column of the table. Returns
/// numbers and widths of the columns of each part. Texts take at most a third of the limit.
fn parts(
    columns: &[Column],
    labels: &[String],
    texts: &[Vec<String>],
    limit: usize,
) -> Vec<(Vec<usize>, Vec<usize>)> {
    let width_of = |(at, (column, label)): (usize, (&Column, &String))| {
        let body = texts.iter().filter_map(|row| row.get(at)).map(|text| width(text)).max().unwrap_or(0);
        let whole = body.max(label.split_whitespace().map(width).max().unwrap_or(0));
        match column.kind {
            ColumnKind::Text => whole.min((limit / 3).max(LEAST_TEXT)),
            ColumnKind::Number => whole,
        }
    };
    let mut widths = columns.iter().zip(labels).enumerate().map(width_of);
    let Some(first) = widths.next() else { return Vec::new() };
    let mut parts = vec![(vec![0], vec![first])];
    for (at, width) in (1..).zip(widths) {
        match parts.last_mut() {
            Some((part, widths)) if part.len() == 1 || total(widths) + GAP + width <= limit => {
                part.push(at);
                widths.push(width);
            }
            Some(_) | None => parts.push((vec![0, at], vec![first, width])),
        }
    }
    parts
}

/// Returns column widths within `limit`, if texts can be truncated enough.
fn fitting_widths(columns: &[Column], labels: &[String], texts: &[Vec<String>], limit: usize) -> Vec<usize> {
    let body: Vec<usize> = (0..columns.len())
        .map(|at| texts.iter().filter_map(|row| row.get(at)).map(|text| width(text)).max().unwrap_or(0))
        .collect();
    let whole: Vec<usize> = body.iter().zip(labels).map(|(&body, label)| body.max(width(label))).collect();
    if total(&whole) <= limit {
        return whole;
    }
    let mut widths: Vec<usize> = body
        .iter()
        .zip(labels)
        .map(|(&body, label)| body.max(label.split_whitespace().map(width).max().unwrap_or(0)))
        .collect();
    // The widest text is truncated first, since it loses the smallest part.
    let mut excess = total(&widths).saturating_sub(limit);
    while excess > 0 {
        let texts = widths.iter_mut().zip(columns).filter(|(_, column)| column.kind == ColumnKind::Text);
        let Some((widest, _)) = texts.max_by_key(|(width, _)| **width) else { break };
        if *widest <= LEAST_TEXT {
            break;
        }
        *widest -= 1;
        excess -= 1;
    }
    // Width freed by wrapping headings and not needed is returned, so that fewer wrap.
    let mut spare = limit.saturating_sub(total(&widths));
    for (width, &whole) in widths.iter_mut().zip(&whole) {
        let more = whole.saturating_sub(*width).min(spare);
        *width += more;
        spare -= more;
    }
    widths
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Returns the labels wrapped to lines, aligned at the bottom.
fn heading_lines(labels: &[String], widths: &[usize]) -> Vec<Vec<String>> {
    let broken: Vec<Vec<String>> =
        labels.iter().zip(widths).map(|(label, &width)| wrapped(label, width)).collect();
    let height = broken.iter().map(Vec::len).max().unwrap_or(0);
    (0..height)
        .map(|line| {
            let line_of = |lines: &Vec<String>| {
                let above = height - lines.len();
                line.checked_sub(above).and_then(|at| lines.get(at)).cloned().unwrap_or_default()
            };
            broken.iter().map(line_of).collect()
        })
        .collect()
}

/// True if the section has content other than figures.
fn has_text(section: &Section) -> bool {
    section.blocks.is_empty() || section.blocks.iter().any(|block| !matches!(block, Element::Figure(_)))
}

fn paragraph(text: &str, style: &Style, paint: Paint) -> String {
    let mut out = String::new();
    for line in wrapped(&printable(text), style.prose_width()) {
        out.push_str(&style.paint(paint, &line));
        out.push('\n');
    }
    out
}

fn tiles_text(tiles: &[Tile], style: &Style) -> String {
    let values: Vec<String> = tiles.iter().map(|tile| tile.value_text(&Numerals::TERMINAL)).collect();
    let captions = tiles.iter().map(|tile| width(&printable(&tile.caption))).max().unwrap_or(0);
    let room = values.iter().map(|value| width(value)).max().unwrap_or(0);
    let mut out = String::new();
    for (tile, value) in tiles.iter().zip(&values) {
        let caption = printable(&tile.caption);
        let fill = " ".repeat(captions - width(&caption) + GAP + room - width(value));
        out.push_str(&format!("{caption}{fill}{}", style.paint(Paint::Bold, value)));
        if !tile.detail.is_empty() {
            out.push_str(&format!("  {}", style.paint(Paint::Dim, &printable(&tile.detail))));
        }
        out.push('\n');
    }
    out
}

/// Formats captions in a column, and values flush left beside them.
fn facts_text(facts: &[Tile], style: &Style) -> String {
    let captions: Vec<_> = facts.iter().map(|fact| printable(&fact.caption)).collect();
    let room = captions.iter().map(|caption| width(caption)).max().unwrap_or(0) + GAP;
    let mut out = String::new();
    for (fact, caption) in facts.iter().zip(&captions) {
        let fill = " ".repeat(room - width(caption));
        let value = fact.value_text(&Numerals::TERMINAL);
        out.push_str(&format!("{caption}{fill}{}\n", style.paint(Paint::Bold, &value)));
        for line in indented(&fact.detail, room, style) {
            out.push_str(&style.paint(Paint::Dim, &line));
            out.push('\n');
        }
    }
    out
}

/// Returns the lines verbatim, indented, so that copying one copies nothing else.
fn code_text(code: &Code, style: &Style) -> String {
    let caption = if code.caption.is_empty() {
        String::new()
    } else {
        paragraph(&code.caption, style, Paint::Plain) + "\n"
    };
    code.text.lines().fold(caption, |text, line| format!("{text}    {}\n", printable(line)))
}

fn terms_text(terms: &[Term], style: &Style) -> String {
    let mut out = String::new();
    for term in terms {
        out.push_str(&format!("{}\n", style.paint(Paint::Bold, &printable(&term.word))));
        for line in indented(&term.meaning, 4, style) {
            out.push_str(&format!("{line}\n"));
        }
    }
    out
}

/// Wraps words to lines with this indentation; no line if there is no word.
fn indented(text: &str, spaces: usize, style: &Style) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    let lines = wrapped(&printable(text), style.prose_width().saturating_sub(spaces).max(LEAST_TEXT));
    lines.into_iter().map(|line| format!("{}{line}", " ".repeat(spaces))).collect()
}

impl Tile {
    /// Formats the value with its unit.
    pub(crate) fn value_text(&self, numerals: &Numerals) -> String {
        let value = self.value.to_text(numerals, 0);
        if self.unit.is_empty() { value } else { format!("{value}{}{}", numerals.gap, printable(&self.unit)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_flush_right_under_their_heading() {
        assert_eq!(
            flows().to_text(&Style::plain(80)),
            "Flows\n\
             Both directions.\n\
             \n\
             flow                     packets  mean size (B)    saved\n\
             ────────────────────────────────────────────────────────\n\
             north to south, voice  1,234,567           40.2   93.1 %\n\
             ping                           3           28.0  -12.5 %\n\
             ────────────────────────────────────────────────────────\n\
             all                    1,234,570\n"
        );
    }

    #[test]
    fn a_narrow_terminal_breaks_headings_and_cuts_texts_but_no_number() {
        let text = flows().to_text(&Style::plain(40));
        assert_eq!(
            text.lines().skip(3).collect::<Vec<_>>(),
            [
                "                           mean",
                "                           size",
                "flow              packets   (B)    saved",
                "────────────────────────────────────────",
                "north to sout…  1,234,567  40.2   93.1 %",
                "ping                    3  28.0  -12.5 %",
                "────────────────────────────────────────",
                "all             1,234,570",
            ]
        );
        assert!(flows().to_text(&Style::plain(0)).contains("1,234,567"));
    }

    #[test]
    fn a_table_of_many_numbers_is_divided_on_60_columns() {
        let names =
            ["rohc-v1 U", "rohc-v1 O", "coap U", "coap O", "coap-learned U", "coap-learned O", "schc"];
        let columns = std::iter::once(Column::text("type")).chain(names.map(Column::number));
        let mut table = Table::new("Octets by type", columns);
        table.row(std::iter::once(Cell::text("IR")).chain((0..7).map(|at| Cell::integer(1_234_500 + at))));
        table.row(std::iter::once(Cell::text("co_common")).chain((0..7).map(Cell::integer)));
        for columns in [40, 60, 79] {
            let text = table.to_text(&Style::plain(columns));
            assert!(text.lines().all(|line| width(line) <= columns), "{columns}: {text}");
            for at in 0..7 {
                assert_eq!(text.matches(&format!("1,234,50{at}")).count(), 1, "{text}");
            }
            assert!(text.matches("co_common").count() > 1, "{text}");
        }
        let wide = table.to_text(&Style::plain(80));
        assert_eq!(wide.lines().filter(|line| line.starts_with("IR")).count(), 1, "{wide}");
    }

    #[test]
    fn colour_is_used_only_when_asked_for() {
        let mut table = Table::new("t", [Column::text("met")]);
        table.row([Cell::YesNo(true)]);
        table.row([Cell::YesNo(false)]);
        assert!(!table.to_text(&Style::plain(80)).contains('\u{1b}'));
        let colored = table.to_text(&Style::color(80));
        assert!(colored.contains("\u{1b}[32myes\u{1b}[0m\n") && colored.contains("\u{1b}[31mno\u{1b}[0m\n"));
    }

    #[test]
    fn escape_sequences_in_names_are_defused() {
        let mut table = Table::new("a\u{1b}[2J", [Column::text("h\u{7}")]);
        table.row([Cell::text("\u{1b}[31mx")]);
        assert!(!table.to_text(&Style::plain(80)).contains(['\u{1b}', '\u{7}']));
    }

    #[test]
    fn tables_with_nothing_in_them_do_not_panic() {
        assert_eq!(Table::new("", []).to_text(&Style::plain(80)), "");
        assert_eq!(Table::new("t", []).to_text(&Style::plain(0)), "t\n");
        assert_eq!(Table::new("", [Column::text("a")]).to_text(&Style::plain(80)), "a\n─\n");
    }

    #[test]
    fn a_document_reads_from_top_to_bottom() {
        let tiles = [
            Tile::new("octets saved", Cell::Percent(0.5)).detail("of 12"),
            Tile::new("delay", Cell::number(1.25, 2)).unit("ms"),
        ];
        let document = Document::new("Title").subtitle("sub").section(
            Section::new("Summary")
                .text("Some words.")
                .tiles(tiles)
                .table(Table::new("", [Column::text("a")])),
        );
        assert_eq!(
            document.to_text(&Style::plain(80)),
            "Title\nsub\n\n\nSummary\n\nSome words.\n\n\
             octets saved   50.0 %  of 12\n\
             delay         1.25 ms\n\n\
             a\n─\n"
        );
    }

    #[test]
    fn facts_commands_and_words_stand_below_each_other() {
        let section = Section::new("Set")
            .facts([
                Tile::new("scheme", Cell::text("ROHC")).detail("both ends"),
                Tile::new("memory", Cell::Octets(1000)),
            ])
            .code("At the device", "thinair a\nthinair b")
            .terms([("flow", "Packets that share a context.")])
            .folded();
        assert_eq!(
            Document::new("T").section(section).to_text(&Style::plain(80)),
            "T\n\n\nSet\n\n\
             scheme  ROHC\n        both ends\nmemory  1.00 kB\n\n\
             At the device\n\n    thinair a\n    thinair b\n\n\
             flow\n    Packets that share a context.\n"
        );
    }

    fn flows() -> Table {
        let mut table = Table::new(
            "Flows",
            [
                Column::text("flow"),
                Column::number("packets"),
                Column::number("mean size").unit("B"),
                Column::number("saved"),
            ],
        )
        .note("Both directions.");
        table.row([
            Cell::text("north to south, voice"),
            Cell::integer(1_234_567),
            Cell::number(40.2, 1),
            Cell::Percent(0.931),
        ]);
        table.row([Cell::text("ping"), Cell::integer(3), Cell::number(28.0, 1), Cell::Percent(-0.125)]);
        table.total([Cell::text("all"), Cell::integer(1_234_570)]);
        table
    }
}
