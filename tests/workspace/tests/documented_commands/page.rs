//! Commands, configurations and outputs of a Markdown page, with the markers for tests before their blocks.
//!
//! Blocks of commands are fenced as `console`, or indented by four spaces; configurations of tunnels are fenced as `toml`,
//! outputs as `text` or `json`. A block without a language is a drawing. In a command, ` # ` begins a comment; one that begins
//! with `prints ` quotes a part of the output. In outputs, a number after `~` may vary. Markers are HTML comments
//! on separate lines before a block:
//!
//! - `<!-- not run in tests: REASON -->` excludes the commands of the block, the configuration, or the output,
//! - ``<!-- not run in tests: `COMMAND`: REASON -->`` one of them;
//! - ``<!-- run in tests as `OTHER` for `COMMAND`: REASON -->`` replaces one;
//! - ``<!-- printed by `COMMAND` -->`` stands before an output: each of its lines is one that the command prints;
//! - ``<!-- made by `COMMAND` -->`` stands before figures that `make docs` writes, and `pages.rs` compares;
//! - ``<!-- measured by `COMMAND`, within 20 % -->`` before figures that `make results` compares: see `scripts/docs`.
//!
//! Blocks `text format` and `text example` of `docs/coap-profile.md` are compared by `formats_test.rs` of `thinair-rohc`.

/// A command that a page shows.
#[derive(Clone, Debug)]
pub(crate) struct PageCommand {
    /// Line of the page, from 1.
    pub(crate) line: usize,
    /// Text without its comment.
    pub(crate) shown: String,
    /// Text that is typed in instead; or `Err` if the command is excluded.
    pub(crate) run: Result<String, ()>,
    /// Reason of an exclusion or a replacement.
    pub(crate) reason: Option<String>,
    /// Lines that it must print.
    pub(crate) prints: Vec<String>,
}

/// A block of a page.
#[derive(Debug)]
pub(crate) enum PageBlock {
    Commands(Vec<PageCommand>),
    /// Configuration: line of the page, and text.
    Toml(usize, String),
}

/// Blocks below one heading, which belong together.
#[derive(Debug)]
pub(crate) struct PageSection {
    pub(crate) page: String,
    pub(crate) heading: String,
    pub(crate) blocks: Vec<PageBlock>,
}

/// A marker that has not found its command yet.
#[derive(Debug)]
struct Marker {
    line: usize,
    /// The command it is for; `None`: all of the block.
    command: Option<String>,
    action: Action,
}

#[derive(Clone, Debug)]
enum Action {
    Exclude(String),
    Replace(String, String),
    /// The block is what a command prints.
    Output,
}

/// Sections of a page that have commands or configurations; `Err` names the line of an invalid marker or block.
pub(crate) fn sections(page: &str, text: &str) -> Result<Vec<PageSection>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let section_of = |heading: &str| PageSection {
        page: page.to_owned(),
        heading: heading.to_owned(),
        blocks: Vec::new(),
    };
    let mut sections = vec![section_of("")];
    let mut markers: Vec<Marker> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let (line, number) = (lines[at], at + 1);
        let wrong = |why: &str| format!("{page}:{number}: {why}");
        let section = sections.last_mut().expect("begins with one");
        let is_indented = line.starts_with("    ") && (at == 0 || lines[at - 1].is_empty());
        if let Some(kind) = line.strip_prefix("```") {
            let end =
                lines[at + 1..].iter().position(|line| *line == "```").ok_or_else(|| wrong("no end"))?;
            let inside = &lines[at + 1..at + 1 + end];
            at += end + 2;
            match kind {
                "console" => section.blocks.push(commands(page, number + 1, inside, &mut markers)?),
                "toml" if is_excluded(&markers) => markers.clear(),
                "toml" => section.blocks.push(PageBlock::Toml(number, inside.join("\n") + "\n")),
                "text" | "json" => output(page, number, inside, section, &mut markers)?,
                // A drawing; code with tests of its own.
                "" | "rust" | "c" | "cmake" | "python" => {}
                _ if kind.starts_with("text format ") || kind.starts_with("text example ") => {}
                _ => {
                    return Err(wrong(
                        "a block is console, toml, text, json, rust, c, cmake, python, or a drawing",
                    ));
                }
            }
        } else if is_indented {
            let end =
                lines[at..].iter().position(|line| !line.starts_with("    ")).unwrap_or(lines.len() - at);
            let inside: Vec<_> = lines[at..at + end].iter().map(|line| &line[4..]).collect();
            at += end;
            section.blocks.push(commands(page, number, &inside, &mut markers)?);
        } else {
            at += 1;
            if line.starts_with('#') {
                sections.push(section_of(line.trim_start_matches('#').trim()));
            }
            if ["<!-- made by `", "<!-- measured by `"].iter().any(|marker| line.starts_with(marker)) {
                let next = lines.get(at).copied().unwrap_or_default();
                if next.starts_with("```text") {
                    let end = lines[at + 1..].iter().position(|line| *line == "```");
                    at += end.ok_or_else(|| wrong("no end"))? + 2;
                } else if next.is_empty() {
                    return Err(wrong("no figures behind the marker"));
                }
                continue;
            }
            if line.starts_with("<!--") {
                markers.push(marker(number, line).ok_or_else(|| wrong("no marker for tests, or no reason"))?);
                continue;
            }
            if line.is_empty() {
                continue;
            }
        }
        if let Some(left) = markers.first() {
            return Err(format!(
                "{page}:{}: the marker has no such command in the block behind it",
                left.line
            ));
        }
    }
    sections.retain(|section| !section.blocks.is_empty());
    Ok(sections)
}

/// True if the one marker excludes the whole block.
fn is_excluded(markers: &[Marker]) -> bool {
    matches!(markers, [Marker { command: None, action: Action::Exclude(_), .. }])
}

/// A marker for tests.
fn marker(line: usize, text: &str) -> Option<Marker> {
    let text = text.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    // The text in backquotes, and the one behind.
    let quoted = |text: &str| -> Option<(String, String)> {
        let (quoted, behind) = text.trim_start().strip_prefix('`')?.split_once('`')?;
        Some((quoted.to_owned(), behind.to_owned()))
    };
    let reason = |text: &str| -> Option<String> {
        let reason = text.strip_prefix(':')?.trim();
        (!reason.is_empty()).then(|| reason.to_owned())
    };
    if let Some(behind) = text.strip_prefix("not run in tests") {
        let all = reason(behind)?;
        return Some(match quoted(&all) {
            Some((command, behind)) => {
                Marker { line, command: Some(command), action: Action::Exclude(reason(&behind)?) }
            }
            None => Marker { line, command: None, action: Action::Exclude(all) },
        });
    }
    if let Some(behind) = text.strip_prefix("run in tests as") {
        let (other, behind) = quoted(behind)?;
        let (command, behind) = quoted(behind.strip_prefix(" for")?)?;
        return Some(Marker {
            line,
            command: Some(command),
            action: Action::Replace(other, reason(&behind)?),
        });
    }
    let (command, behind) = quoted(text.strip_prefix("printed by")?)?;
    behind.is_empty().then_some(Marker { line, command: Some(command), action: Action::Output })
}

/// Commands of a block that begins at a line.
fn commands(
    page: &str,
    first: usize,
    lines: &[&str],
    markers: &mut Vec<Marker>,
) -> Result<PageBlock, String> {
    let mut found: Vec<PageCommand> = Vec::new();
    let mut begun = String::new();
    for (line, number) in lines.iter().zip(first..) {
        begun += line;
        if let Some(open) = begun.strip_suffix('\\') {
            begun = open.to_owned();
            continue;
        }
        let (shown, comment) = without_comment(&begun);
        if shown.matches('\'').count() % 2 == 1 {
            begun += "\n";
            continue;
        }
        if !shown.is_empty() {
            let prints = comment.strip_prefix("prints ").map(str::to_owned).into_iter().collect();
            let (shown, run) = (shown.to_owned(), Ok(shown.to_owned()));
            found.push(PageCommand { line: number, shown, run, reason: None, prints });
        }
        begun.clear();
    }
    if !begun.is_empty() {
        return Err(format!("{page}:{first}: a command has no end"));
    }
    markers.retain(|marker| {
        let mut used = false;
        let is_meant =
            |command: &&mut PageCommand| marker.command.as_ref().is_none_or(|m| *m == command.shown);
        for command in found.iter_mut().filter(is_meant) {
            let (run, reason) = match &marker.action {
                Action::Exclude(reason) => (Err(()), reason),
                Action::Replace(other, reason) => (Ok(other.clone()), reason),
                Action::Output => continue,
            };
            (command.run, command.reason, used) = (run, Some(reason.clone()), true);
        }
        !used
    });
    Ok(PageBlock::Commands(found))
}

/// Takes a block for the output of a command that stands before it in the section.
fn output(
    page: &str,
    line: usize,
    lines: &[&str],
    section: &mut PageSection,
    markers: &mut Vec<Marker>,
) -> Result<(), String> {
    if is_excluded(markers) {
        markers.clear();
        return Ok(());
    }
    let Some(Marker { command: Some(command), action: Action::Output, .. }) = markers.pop() else {
        return Err(format!("{page}:{line}: an output needs a marker `printed by` before it"));
    };
    let commands = section.blocks.iter_mut().rev().filter_map(|block| match block {
        PageBlock::Commands(commands) => Some(commands),
        PageBlock::Toml(..) => None,
    });
    let found = commands.flatten().find(|found| found.shown == command);
    let found =
        found.ok_or_else(|| format!("{page}:{line}: no command `{command}` before it in its section"))?;
    found.prints.extend(lines.iter().filter(|line| !line.is_empty()).map(|line| (*line).to_owned()));
    Ok(())
}

/// A line without its comment, which is returned as well.
fn without_comment(line: &str) -> (&str, &str) {
    let comment =
        line.match_indices(" # ").find(|(at, _)| line[..*at].matches('\'').count().is_multiple_of(2));
    match comment {
        Some((at, _)) => (line[..at].trim(), line[at + 3..].trim()),
        None if line.starts_with("# ") => ("", line[2..].trim()),
        None => (line.trim(), ""),
    }
}

/// True if a printed line contains a shown one, in which a number behind `~` may be another one.
pub(crate) fn shows(printed: &str, shown: &str) -> bool {
    let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (printed, shown) = (spaced(printed), spaced(shown));
    (0..=printed.len())
        .filter(|at| printed.is_char_boundary(*at))
        .any(|at| begins_with(&printed[at..], &shown))
}

fn begins_with(printed: &str, shown: &str) -> bool {
    let is_of_number = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    match shown.split_once('~') {
        None => printed.starts_with(shown),
        Some((same, shown)) => printed.strip_prefix(same).is_some_and(|printed| {
            let rest = printed.trim_start_matches(is_of_number);
            rest.len() < printed.len() && begins_with(rest, shown.trim_start_matches(is_of_number))
        }),
    }
}
