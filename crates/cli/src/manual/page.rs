//! Rendering of one man page: the sections of `clap_mangen`, and further sections for the text after the
//! options in `--help`.

use std::io;

use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::visible;

/// Name of a man page: that of the built command, with dashes, such as `thinair-tunnel-run`.
pub(super) fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// Renders the page of a built command. `parent` and its other commands are listed under SEE ALSO.
pub(super) fn render(command: &Command, parent: Option<&Command>, date: &str) -> io::Result<Vec<u8>> {
    let version = command.get_version().unwrap_or_default();
    let mut described = command.clone().mut_args(short_values);
    let usage = described.render_usage().to_string();
    let described = described.override_usage(usage.trim_start_matches("Usage:").trim().to_owned());
    let man = Man::new(described).date(date).source(format!("thinair {version}")).manual("thinair manual");
    let after = After::of(command);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    for paragraph in &after.description {
        page.extend(Roff::new().control("PP", []).to_roff().bytes());
        page.extend(lines(paragraph).bytes());
    }
    man.render_options_section(&mut page)?;
    if visible(command).next().is_some() {
        man.render_subcommands_section(&mut page)?;
    }
    for (heading, text) in [("EXIT STATUS", &after.exit_status), ("EXAMPLES", &after.examples)] {
        if !text.is_empty() {
            page.extend(Roff::new().control("SH", [heading]).to_roff().bytes());
            page.extend(lines(text).bytes());
        }
    }
    page.extend(see_also(command, parent).to_roff().bytes());
    // An empty line is a break already; mandoc warns of another one beside it.
    let text = String::from_utf8_lossy(&page).replace("\n.br\n\n.br\n", "\n.sp\n");
    Ok(text.replace("\n\n.br\n", "\n.sp\n").into_bytes())
}

/// Lists value names without descriptions in a sentence, not in a list with one line each.
fn short_values(argument: Arg) -> Arg {
    let values = argument.get_possible_values();
    if values.is_empty()
        || argument.is_hide_possible_values_set()
        || values.iter().any(|value| value.get_help().is_some())
    {
        return argument;
    }
    let names: Vec<_> =
        values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name()).collect();
    let help =
        argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let help = format!("{help} [possible values: {}]", names.join(", "));
    argument.hide_possible_values(true).long_help(help)
}

/// Text after the options in `--help`, by section of the man page.
#[derive(Debug, Default)]
struct After {
    /// Paragraphs.
    description: Vec<String>,
    exit_status: String,
    examples: String,
}

impl After {
    /// Splits the text at empty lines. The first words of a paragraph can be a section heading.
    fn of(command: &Command) -> Self {
        let text = command.get_after_long_help().or_else(|| command.get_after_help());
        let text = text.map(ToString::to_string).unwrap_or_default();
        let mut after = Self::default();
        for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
            let (words, rest) = paragraph.split_once(':').unwrap_or((paragraph, ""));
            let section = match words.trim() {
                "Exit status" => &mut after.exit_status,
                "Examples" => &mut after.examples,
                _ => {
                    after.description.push(paragraph.to_owned());
                    continue;
                }
            };
            if !section.is_empty() {
                section.push('\n');
            }
            section.push_str(&capitalized(rest));
        }
        after
    }
}

/// Capitalizes the first letter of a section's text.
fn capitalized(text: &str) -> String {
    let text = text.trim_start_matches(' ');
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Source of a paragraph. Indented lines are commands and are kept verbatim.
fn lines(text: &str) -> String {
    let mut roff = Roff::new();
    let mut is_example = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let is_indented = line.starts_with(' ');
        if is_indented != is_example {
            verbatim(&mut roff, is_indented);
            is_example = is_indented;
        }
        roff.text([roman(line.trim_start())]);
    }
    if is_example {
        verbatim(&mut roff, false);
    }
    roff.to_roff()
}

/// Begins or ends verbatim lines.
fn verbatim(roff: &mut Roff, begins: bool) {
    for request in if begins { ["RS", "nf"] } else { ["fi", "RE"] } {
        roff.control(request, []);
    }
}

/// Lists the parent of a command and its other commands; the subcommands are listed above.
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
