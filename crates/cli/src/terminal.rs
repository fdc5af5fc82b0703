//! Standard output: width, colors and writing.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::Context as _;
use thinair_report::Style;

/// Returns the style of standard output; `plain_width` is the number of columns if it is not a terminal.
pub fn style(plain_width: usize) -> Style {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return Style::plain(plain_width);
    }
    let width = columns().unwrap_or(plain_width);
    // https://no-color.org: colors are off if the variable is set and not empty.
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if no_color || dumb { Style::plain(width) } else { Style::color(width) }
}

/// Returns the columns for sentences: those of the terminal, or no limit if standard output is no terminal, so that lines can
/// be searched.
pub fn sentence_width() -> usize {
    io::stdout().is_terminal().then(columns).flatten().unwrap_or(usize::MAX)
}

/// Columns of the terminal.
fn columns() -> Option<usize> {
    #[cfg(any(unix, windows))]
    let size = terminal_size::terminal_size_of(io::stdout());
    #[cfg(not(any(unix, windows)))]
    let size = terminal_size::terminal_size();
    size.map(|(width, _)| usize::from(width.0))
}

/// Appends a sentence behind `label`, in lines of at most `most` columns; lines after the first are indented as far as the
/// label is long.
pub(crate) fn sentence(out: &mut String, label: &str, text: &str, most: usize) {
    let indent = label.chars().count();
    if text.chars().count() <= most.saturating_sub(indent) {
        // Blanks of file names stay.
        out.extend([label, text, "\n"]);
        return;
    }
    let lines = thinair_report::wrapped(text, most.saturating_sub(indent).max(20));
    for (number, line) in lines.iter().enumerate() {
        match number {
            0 => out.push_str(label),
            _ => out.extend(std::iter::repeat_n(' ', indent)),
        }
        out.push_str(line);
        out.push('\n');
    }
}

/// Writes to standard output. A closed pipe is not an error.
///
/// # Errors
/// Standard output cannot be written to.
pub fn print(text: &str) -> anyhow::Result<()> {
    written(io::stdout().lock().write_all(text.as_bytes()))
}

/// Converts the result of a write to standard output; a closed pipe is not an error.
pub(crate) fn written(result: io::Result<()>) -> anyhow::Result<()> {
    match result.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_divided_behind_its_label() {
        let text = |most| {
            let mut out = String::new();
            sentence(&mut out, "  saves  ", "81.5 % of 15,133 octets: 2,803 are left", most);
            out
        };
        assert_eq!(text(usize::MAX), "  saves  81.5 % of 15,133 octets: 2,803 are left\n");
        assert_eq!(text(48), text(usize::MAX));
        assert_eq!(text(47), "  saves  81.5 % of 15,133 octets: 2,803 are\n         left\n");
    }
}
