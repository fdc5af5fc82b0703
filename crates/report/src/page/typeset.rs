//! Line breaks in prose and names on a page.

use std::borrow::Cow;

use maud::{Markup, html};

use crate::text::{NO_BREAK_SPACE, arrows, printable};

/// Minimum length of words that may break after a slash, as in a path.
const LONG_WORD: usize = 16;

/// Maximum length of hyphenated names that do not break.
const MOST_WHOLE: usize = 14;

/// Longer words may break anywhere, to fit on a phone.
const UNBROKEN: usize = 32;

/// Returns the text with arrows and no-break spaces, and command options (`--mode u`) set as code.
pub(crate) fn prose(text: &str) -> Markup {
    let text = arrows(text);
    html! {
        @for (at, word) in text.split(' ').enumerate() {
            @if at > 0 { " " }
            @match option(word) {
                Some((option, rest)) => { code class="option" { (option) } (rest) }
                None => (breakable(word)),
            }
        }
    }
}

/// Returns a command line verbatim; its options do not break after their hyphens.
pub(crate) fn unbroken_options(line: &str) -> Markup {
    let line = printable(line);
    html! {
        @for (at, word) in line.split(' ').enumerate() {
            @if at > 0 { " " }
            @if option(word).is_some() { span class="whole" { (word) } } @else { (word) }
        }
    }
}

/// Splits a command option from the punctuation after it.
fn option(word: &str) -> Option<(&str, &str)> {
    let name = word.strip_prefix("--")?;
    let end = name.trim_end_matches(['.', ',', ';', ':', ')']).len();
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase());
    is_name.then(|| word.split_at(end + 2))
}

/// True for a name that must not break at its hyphen: `O-mode`, `coap-2015`, `UO-0`.
fn is_hyphenated_name(word: &str) -> bool {
    let Some((before, after)) = word.split_once('-') else { return false };
    let is_short = (1..=MOST_WHOLE).contains(&word.chars().count());
    is_short
        && !after.is_empty()
        && (before.chars().count() == 1 || word.contains(|c: char| c.is_ascii_digit()))
}

/// Returns the word, with possible line breaks if it is long.
fn breakable(word: &str) -> Markup {
    if is_hyphenated_name(word) {
        return html! { span class="whole" { (word) } };
    }
    let length = word.chars().count();
    let pieces: Cow<'_, [&str]> = match length >= LONG_WORD {
        true => word.split_inclusive(['/', NO_BREAK_SPACE]).collect(),
        false => Cow::Owned(vec![word]),
    };
    let pieces = html! {
        @for (at, piece) in pieces.iter().enumerate() {
            @if at > 0 && !pieces.get(at - 1).is_some_and(|before| before.ends_with(NO_BREAK_SPACE)) { wbr; }
            (piece)
        }
    };
    if length > UNBROKEN {
        html! { span class="anywhere" { (pieces) } }
    } else {
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_command_do_not_break_behind_their_hyphens() {
        let set = prose("left out with --coap-checksum elide; see --mode.").into_string();
        assert!(set.contains("<code class=\"option\">--coap-checksum</code> elide; see"), "{set}");
        assert!(set.ends_with("<code class=\"option\">--mode</code>."), "{set}");
        assert_eq!(prose("a -- b").into_string(), "a -- b");
    }

    #[test]
    fn a_path_breaks_at_its_slashes_and_a_long_name_anywhere() {
        assert_eq!(prose("captures/coap_udp4.pcap").into_string(), "captures/<wbr>coap_udp4.pcap");
        assert_eq!(prose("and/or").into_string(), "and/or");
        let name = "x".repeat(UNBROKEN + 1);
        assert_eq!(prose(&name).into_string(), format!("<span class=\"anywhere\">{name}</span>"));
    }

    #[test]
    fn names_do_not_break_at_their_hyphens() {
        assert_eq!(prose("O-mode").into_string(), "<span class=\"whole\">O-mode</span>");
        assert_eq!(prose("coap-2015, W-LSB").into_string().matches("whole").count(), 2);
        assert_eq!(prose("Start-up - and break-even -").into_string(), "Start-up - and break-even -");
    }

    #[test]
    fn what_is_set_is_escaped() {
        assert_eq!(
            prose("--a<b> & <i>").into_string(),
            "<code class=\"option\">--a&lt;b&gt;</code> &amp; &lt;i&gt;"
        );
    }
}
