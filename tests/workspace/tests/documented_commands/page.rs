//! Commands, configurations and outputs of a Markdown page, with the markers for tests before their blocks.
//!
//! Blocks of commands are fenced as `console`, or indented by four spaces; configurations are fenced as `toml`, outputs
//! as `text`. In a command, ` # ` begins a comment; one that begins with `prints ` quotes a part of the output. In
//! outputs, a number after `~` may vary. Markers are HTML comments on separate lines before a block:
//!
//! - `<!-- not run in tests: REASON -->` excludes the commands of the block, or the output,
//! - ``<!-- not run in tests: `COMMAND`: REASON -->`` one of them;
//! - ``<!-- run in tests as `OTHER` for `COMMAND`: REASON -->`` replaces one;
//! - ``<!-- printed by `COMMAND` -->`` stands before an output: each of its lines is one that the command prints.

/// Command of a page.
#[derive(Clone, Debug)]
pub(crate) struct PageCommand {
    /// Line of the page, from 1.
    pub(crate) line: usize,
    /// Text without its comment.
    pub(crate) shown: String,
    /// Text that runs instead; `Err` if the command is excluded.
    pub(crate) run: Result<String, ()>,
    /// Reason of an exclusion or a replacement.
    pub(crate) reason: Option<String>,
    /// Lines that it must print.
    pub(crate) prints: Vec<String>,
}

/// Block of a page.
#[derive(Debug)]
pub(crate) enum PageBlock {
    Commands(Vec<PageCommand>),
    /// Configuration: line of the page, and text.
    Toml(usize, String),
}

/// Blocks below one heading, which belong together.
#[derive(Debug)]
pub(crate) struct PageSection {
    pub(crate) page: &'static str,
    pub(crate) heading: String,
    pub(crate) blocks: Vec<PageBlock>,
}

/// Marker whose command has not occurred yet.
#[derive(Debug)]
struct Marker {
    line: usize,
    /// Command of the marker; `None`: all of the block.
    command: Option<String>,
    action: Action,
}

#[derive(Clone, Debug)]
enum Action {
    Exclude(String),
    Replace(String, String),
    /// The block is the output of a command.
    Output,
}

/// Sections of a page that have commands or configurations; `Err` names the line of an invalid marker or block.
pub(crate) fn sections(page: &'static str, text: &str) -> Result<Vec<PageSection>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut sections = vec![PageSection { page, heading: String::new(), blocks: Vec::new() }];
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
                "console" | "sh" => section.blocks.push(commands(page, number + 1, inside, &mut markers)?),
                "toml" => section.blocks.push(PageBlock::Toml(number, inside.join("\n") + "\n")),
                "text" => output(page, number, inside, section, &mut markers)?,
                // A separate doc test.
                "rust" => {}
                _ => return Err(wrong("a block is console, toml, text or rust")),
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
                let heading = line.trim_start_matches('#').trim().to_owned();
                sections.push(PageSection { page, heading, blocks: Vec::new() });
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

/// Parses a marker for tests.
fn marker(line: usize, text: &str) -> Option<Marker> {
    let text = text.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    // Text in backquotes, and the text after it.
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

/// Assigns a block to the preceding command of the section whose output it is.
fn output(
    page: &str,
    line: usize,
    lines: &[&str],
    section: &mut PageSection,
    markers: &mut Vec<Marker>,
) -> Result<(), String> {
    let marker = markers.pop();
    if matches!(marker, Some(Marker { command: None, action: Action::Exclude(_), .. })) {
        return Ok(());
    }
    let Some(Marker { command: Some(command), action: Action::Output, .. }) = marker else {
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

/// Splits a line into text and comment.
fn without_comment(line: &str) -> (&str, &str) {
    let comment =
        line.match_indices(" # ").find(|(at, _)| line[..*at].matches('\'').count().is_multiple_of(2));
    match comment {
        Some((at, _)) => (line[..at].trim(), line[at + 3..].trim()),
        None if line.starts_with("# ") => ("", line[2..].trim()),
        None => (line.trim(), ""),
    }
}

/// True if a printed line contains a shown one, in which a number after `~` may vary.
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
