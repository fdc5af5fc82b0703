//! One man page: the sections of `clap_mangen`, and what `--help` prints behind the options in sections of its own.

use std::io;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::visible;

/// Name of the page of a command that was built: that of the command with dashes, as in `thinair-tunnel-run`.
pub(super) fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// Page of a command that was built. Its `parent` and the other commands of the parent are under SEE ALSO.
pub(super) fn render(command: &Command, parent: Option<&Command>, date: &str) -> io::Result<Vec<u8>> {
    let version = command.get_version().unwrap_or_default();
    let man = Man::new(command.clone()).date(date).source(format!("thinair {version}")).manual("thinair manual");
    let after = After::of(command);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    blocks(&after.description).to_writer(&mut page)?;
    man.render_options_section(&mut page)?;
    if visible(command).next().is_some() {
        man.render_subcommands_section(&mut page)?;
    }
    for (heading, paragraphs) in [("EXIT STATUS", &after.exit_status), ("EXAMPLES", &after.examples)] {
        if !paragraphs.is_empty() {
            Roff::new().control("SH", [heading]).to_writer(&mut page)?;
            blocks(paragraphs).to_writer(&mut page)?;
        }
    }
    see_also(command, parent).to_writer(&mut page)?;
    Ok(page)
}

/// Text that `--help` prints behind the options, by section of a man page.
#[derive(Debug, Default)]
struct After {
    description: Vec<String>,
    exit_status: Vec<String>,
    examples: Vec<String>,
}

impl After {
    /// Splits the text at empty lines, and knows a section by the first words of a block.
    fn of(command: &Command) -> Self {
        let text = command.get_after_long_help().or_else(|| command.get_after_help());
        let text = text.map(ToString::to_string).unwrap_or_default();
        let mut after = Self::default();
        for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
            let (words, rest) = block.split_once(':').unwrap_or((block, ""));
            match words.trim() {
                "Exit status" => after.exit_status.push(capitalized(rest)),
                "Examples" | "Example" => after.examples.push(capitalized(rest)),
                _ => after.description.push(block.to_owned()),
            }
        }
        after
    }
}

/// Text of a section in its own right: it begins with a capital letter, and on the first line.
fn capitalized(text: &str) -> String {
    let text = text.trim_start_matches(' ');
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Paragraphs. Lines that are indented are commands, and stay as they are.
fn blocks(blocks: &[String]) -> Roff {
    let mut roff = Roff::new();
    for block in blocks {
        roff.control("PP", []);
        let mut is_example = false;
        for line in block.lines().filter(|line| !line.trim().is_empty()) {
            let (text, is_indented) = (line.trim_start(), line.starts_with(' '));
            if is_indented != is_example {
                verbatim(&mut roff, is_indented);
                is_example = is_indented;
            }
            roff.text([roman(text)]);
        }
        if is_example {
            verbatim(&mut roff, false);
        }
    }
    roff
}

/// Begins or ends lines that are indented and not filled.
fn verbatim(roff: &mut Roff, begins: bool) {
    for request in if begins { ["RS", "nf"] } else { ["fi", "RE"] } {
        roff.control(request, []);
    }
}

/// Parent of a command, and the other commands of the parent; those of the command itself are listed above.
fn see_also(command: &Command, parent: Option<&Command>) -> Roff {
    let mut roff = Roff::new();
    let Some(parent) = parent else { return roff };
    let mut names = vec![name(parent)];
    names.extend(visible(parent).map(name).filter(|other| *other != name(command)));
    roff.control("SH", ["SEE ALSO"]);
    let last = names.len() - 1;
    for (i, other) in names.into_iter().enumerate() {
        roff.text([bold(other), roman(if i == last { "(1)" } else { "(1)," })]);
    }
    roff
}
