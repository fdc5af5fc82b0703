//! Help of every command: `-h` fits on a screen, `--help` describes every option.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::process::Command;

/// Columns and lines of a screen.
const SCREEN: (&str, usize) = ("100", 40);

/// Program, the words of a command, and both of its helps.
struct Help {
    program: &'static str,
    path: Vec<String>,
    short: String,
    long: String,
}

impl Help {
    fn of((program, file): (&'static str, &str), path: &[String]) -> Self {
        let run = |option: &str| {
            let output = Command::new(file).args(path).arg(option).env("COLUMNS", SCREEN.0).output().unwrap();
            assert!(
                output.status.success(),
                "{path:?} {option}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8(output.stdout).unwrap()
        };
        Self { program, path: path.to_vec(), short: run("-h"), long: run("--help") }
    }

    fn name(&self) -> String {
        [self.program.to_owned()].into_iter().chain(self.path.clone()).collect::<Vec<_>>().join(" ")
    }

    /// Returns the names of subcommands.
    fn commands(&self) -> Vec<String> {
        let Some((_, list)) = self.short.split_once("\nCommands:\n") else { return Vec::new() };
        let lines = list.lines().take_while(|line| !line.is_empty());
        let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        names
            .map(|line| line.split_whitespace().next().unwrap().to_owned())
            .filter(|name| name != "help")
            .collect()
    }
}

/// Every command of both programs.
fn helps() -> Vec<Help> {
    fn walk(program: (&'static str, &str), path: &[String], all: &mut Vec<Help>) {
        let help = Help::of(program, path);
        let commands = help.commands();
        all.push(help);
        for command in commands {
            walk(program, &[path, &[command]].concat(), all);
        }
    }
    let mut all = Vec::new();
    walk(("thinair", &thinair_tests::command()), &[], &mut all);
    walk(("thinair-lab", &thinair_tests::laboratory()), &[], &mut all);
    let names: BTreeSet<_> = all.iter().map(Help::name).collect();
    for known in [
        "thinair analyze",
        "thinair rohc compress",
        "thinair tunnel run",
        "thinair coap observe",
        "thinair-lab paper run",
    ] {
        assert!(names.contains(known), "{names:?}");
    }
    all
}

/// Options in the left column of a help, as `--name`, with the first line of their descriptions.
fn options(help: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut lines = help.lines().peekable();
    while let Some(line) = lines.next() {
        let text = line.trim_start();
        // Descriptions are further to the right.
        if line.len() - text.len() > 6 || !text.starts_with('-') {
            continue;
        }
        let (left, here) = text.split_once("  ").unwrap_or((text, ""));
        let name = left.split([' ', '[', '=', ',']).find(|word| word.starts_with("--"));
        let below = lines.peek().map_or("", |line| line.trim());
        let description = if here.trim().is_empty() { below } else { here.trim() };
        found.extend(name.map(|name| (name.trim_end_matches('.'), description)));
    }
    found
}

#[test]
fn short_help_fits_on_a_screen_and_names_the_long_one() {
    for help in helps() {
        let (name, lines) = (help.name(), help.short.lines().count());
        assert!(lines <= SCREEN.1, "{name} -h has {lines} lines, more than {}:\n{}", SCREEN.1, help.short);
        let last = help.short.lines().next_back().unwrap();
        assert!(last.contains("--help") && last.contains(&name), "{name} -h ends with: {last}");
        for line in help.short.lines() {
            assert!(line.chars().count() <= 100, "{name} -h: {line}");
        }
    }
}

#[test]
fn long_help_describes_every_option() {
    for help in helps() {
        let (name, all) = (help.name(), options(&help.long));
        for (option, description) in &all {
            let is_text = description.chars().next().is_some_and(char::is_alphanumeric);
            assert!(
                is_text && description.len() >= 8,
                "{name} --help has nothing on {option}: {description}"
            );
        }
        let all: BTreeSet<_> = all.into_iter().map(|(option, _)| option).collect();
        assert!(all.contains("--help") && all.contains("--version"), "{name}: {all:?}");
        for (option, _) in options(&help.short) {
            assert!(all.contains(option), "{name}: {option} is in -h alone");
        }
        if help.commands().is_empty() {
            assert!(help.long.contains("Exit status: "), "{name} --help has no exit status");
        }
    }
}
