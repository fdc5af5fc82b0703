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
    let width =
        terminal_size::terminal_size_of(&stdout).map_or(plain_width, |(width, _)| usize::from(width.0));
    // https://no-color.org: colors are off if the variable is set and not empty.
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if no_color || dumb { Style::plain(width) } else { Style::color(width) }
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
