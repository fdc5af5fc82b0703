//! `thinair manual`: man pages and completions.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

fn thinair(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_thinair")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Writes all pages into a temporary folder.
fn written() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    thinair(&["manual", folder.path().to_str().unwrap(), "--date", "2026-01-31"]);
    folder
}

/// Names of subcommands in the help of a command.
fn subcommands(arguments: &[&str]) -> Vec<String> {
    let help = thinair(&[arguments, &["--help"]].concat());
    let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
    let names = list.lines().take_while(|line| !line.is_empty());
    let names = names.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

fn page(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join("man/man1").join(name)).unwrap()
}

#[test]
fn every_command_that_help_lists_has_a_page() {
    let folder = written();
    let mut expected = BTreeSet::from(["thinair.1".to_owned()]);
    for command in subcommands(&[]) {
        expected.insert(format!("thinair-{command}.1"));
        for below in subcommands(&[&command]) {
            expected.insert(format!("thinair-{command}-{below}.1"));
        }
    }
    assert!(expected.contains("thinair-tunnel-run.1"), "{expected:?}");
    let entries = fs::read_dir(folder.path().join("man/man1")).unwrap();
    let found: BTreeSet<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_page_has_the_sections_of_the_help() {
    let folder = written();
    let run = page(folder.path(), "thinair-tunnel-run.1");
    let sections = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "\"SEE ALSO\""];
    let mut rest = run.as_str();
    for section in sections {
        let heading = section.trim_matches('"');
        let at =
            rest.find(&format!(".SH {section}\n")).or_else(|| rest.find(&format!(".SH \"{heading}\"\n")));
        rest = &rest[at.unwrap_or_else(|| panic!("no {section} in its place:\n{run}"))..];
    }
    assert!(run.contains("2026\\-01\\-31") || run.contains("2026-01-31"), "{run}");
    assert!(run.contains("thinair tunnel keygen sat.key"), "{run}");
    assert!(run.contains("\\fBthinair\\-tunnel\\fR(1)"), "{run}");
}

#[test]
fn groff_has_nothing_to_warn_of() {
    let folder = written();
    if Command::new("groff").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: groff is missing");
        return;
    }
    for entry in fs::read_dir(folder.path().join("man/man1")).unwrap() {
        let path = entry.unwrap().path();
        let output =
            Command::new("groff").args(["-man", "-ww", "-Tascii", "-z"]).arg(&path).output().unwrap();
        let warnings = String::from_utf8_lossy(&output.stderr);
        assert!(warnings.is_empty(), "{}: {warnings}", path.display());
    }
}

#[test]
fn shells_complete_commands() {
    let folder = written();
    for (file, holds) in [
        ("zsh/site-functions/_thinair", "#compdef thinair"),
        ("fish/vendor_completions.d/thinair.fish", "complete -c thinair"),
    ] {
        let script = fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(script.contains(holds) && script.contains("analyze"), "{file}");
    }
    let script = "source bash-completion/completions/thinair
        complete() { COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1)) COMPREPLY=(); _thinair thinair \"${!#}\" \"$1\"; echo \"${COMPREPLY[*]}\"; }
        complete thinair an; complete thinair tunnel ru; complete thinair analyze --fail";
    let output = Command::new("bash").arg("-c").arg(script).current_dir(folder.path()).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed, "analyze\nrun\n--fail-under\n", "{}", String::from_utf8_lossy(&output.stderr));
}
