//! Text in columns: width, line breaks, truncation, and escaping of untrusted characters, since names in
//! tables may come from untrusted files.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;
use unicode_width::UnicodeWidthStr;

/// No-break space: keeps the numbers of a change, or a number and its unit, on one line.
pub(crate) const NO_BREAK_SPACE: char = '\u{a0}';

/// Units that stay on the line of their number.
const UNITS: [&str; 11] = ["%", "B", "kB", "MB", "GB", "octets", "octet", "s", "ms", "kbit/s", "Hz"];

/// Returns the text with control and direction-changing characters made visible, so that a name from a file
/// cannot move the cursor or reorder the line.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_treacherous) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .map(|c| match c {
                '\n' | '\r' | '\t' => ' ',
                c if is_treacherous(c) => char::REPLACEMENT_CHARACTER,
                c => c,
            })
            .collect(),
    )
}

fn is_treacherous(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the text with an arrow for each `->`. Spaces between the numbers of a change, before an arrow and
/// before a unit become no-break spaces.
pub(crate) fn arrows(text: &str) -> String {
    let text = printable(text);
    let words: Vec<&str> = text.split(' ').collect();
    let mut out = String::with_capacity(text.len());
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| words.get(at)).copied();
        if let Some(before) = before {
            let from = at.checked_sub(2).and_then(|at| words.get(at)).copied().unwrap_or_default();
            let is_change = is_arrow(before) && is_number(from) && is_number(word);
            let is_unit = is_number(before) && UNITS.contains(&word.trim_end_matches([',', ';', '.', ')']));
            out.push(if is_arrow(word) || is_change || is_unit { NO_BREAK_SPACE } else { ' ' });
        }
        out.push_str(if is_arrow(word) { "→" } else { word });
    }
    out
}

fn is_arrow(word: &str) -> bool {
    word == "->" || word == "→"
}

/// True for digits with their separators.
fn is_number(word: &str) -> bool {
    let is_part = |c: char| matches!(c, '.' | ',' | '-' | '\u{2212}' | '\u{202f}' | '<' | '>');
    word.contains(|c: char| c.is_ascii_digit()) && word.chars().all(|c| c.is_ascii_digit() || is_part(c))
}

/// Width of the text on a terminal, in columns.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Returns the text, truncated to `limit` columns with an ellipsis if it is wider.
pub(crate) fn truncated(text: &str, limit: usize) -> Cow<'_, str> {
    if width(text) <= limit {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > limit {
            break;
        }
        used += wide;
        out.push(c);
    }
    let mut out = out.trim_end().to_owned();
    if limit > 0 {
        out.push('…');
    }
    Cow::Owned(out)
}

/// Returns the words in lines of at most `limit` columns; a wider word has a line of its own. There is always
/// at least one line.
pub fn wrapped(text: &str, limit: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && width(&line) + 1 + width(word) > limit {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_direction_marks_do_not_pass() {
        assert_eq!(printable("\u{1b}[31mred\u{202e}\n"), "\u{fffd}[31mred\u{fffd} ");
        assert_eq!(printable("plain – text"), "plain – text");
    }

    #[test]
    fn a_change_of_a_number_stays_in_one_line() {
        assert_eq!(
            arrows("headers 61.5 -> 3.4 octets a packet; 1,200 -> 900 B"),
            "headers 61.5\u{a0}→\u{a0}3.4\u{a0}octets a packet; 1,200\u{a0}→\u{a0}900\u{a0}B"
        );
    }

    #[test]
    fn between_two_addresses_a_line_may_break_behind_the_arrow() {
        assert_eq!(arrows("10.0.0.1:80 -> 10.0.0.2:8080"), "10.0.0.1:80\u{a0}→ 10.0.0.2:8080");
        assert_eq!(arrows("-> x"), "→ x");
    }

    #[test]
    fn cutting_counts_columns_not_characters() {
        assert_eq!(truncated("header", 6), "header");
        assert_eq!(truncated("headers", 6), "heade…");
        assert_eq!(truncated("日本語", 5), "日本…");
        assert_eq!(truncated("日本語", 4), "日…");
        assert_eq!(truncated("abc", 0), "");
    }

    #[test]
    fn words_are_wrapped_and_never_cut() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("incompressible x", 4), ["incompressible", "x"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
