//! README.md, ARCHITECTURE.md, CONTRIBUTING.md and docs/: tables and outputs are those that their commands print, links lead
//! somewhere, the index has every page, and pages stay short. Commands of the pages are run by `documented_commands`.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use thinair_tests::root;

/// Pages that a reader begins with, and the most lines of each.
const SHORT: [(&str, usize); 2] = [("README.md", 140), ("ARCHITECTURE.md", 150)];

#[test]
fn no_table_is_stale() {
    let output = Command::new(root().join("scripts/docs"))
        .arg("--check")
        .env("THINAIR", thinair_tests::command())
        .output()
        .unwrap();
    let texts = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "`make docs` renews these pages:\n{}{}", texts[0], texts[1]);
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        for link in links(&fs::read_to_string(&page).unwrap()) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            let is_there = target.exists()
                && (anchor.is_empty() || anchors(&fs::read_to_string(&target).unwrap()).contains(anchor));
            if !is_there {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_index_has_every_page() {
    let folder = root().join("docs");
    let index: BTreeSet<_> =
        links(&fs::read_to_string(folder.join("README.md")).unwrap()).into_iter().collect();
    for page in thinair_tests::files(&folder, ".md") {
        let name = page.strip_prefix(&folder).unwrap().to_string_lossy().into_owned();
        assert!(name == "README.md" || index.contains(&name), "docs/README.md has no {name}");
    }
}

#[test]
fn first_pages_are_short() {
    for (page, most) in SHORT {
        let lines = fs::read_to_string(root().join(page)).unwrap().lines().count();
        assert!(lines <= most, "{page} has {lines} lines, more than {most}");
    }
}

fn pages() -> Vec<PathBuf> {
    let root = root();
    let first =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "extras/wireshark/README.md"];
    let docs = thinair_tests::files(&root.join("docs"), ".md");
    first.iter().map(|page| root.join(page)).chain(docs).collect()
}

/// Targets of links in a page that are neither addresses on the Web nor inside of a block.
fn links(page: &str) -> Vec<String> {
    let outside = page.split("```").step_by(2).collect::<String>();
    let targets = outside.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).filter(|target| !target.contains("://")).collect()
}

/// Anchors of the headings of a page, as GitHub makes them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let of = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(of).collect()
}
