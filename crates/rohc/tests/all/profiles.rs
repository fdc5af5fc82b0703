//! A profile uses the framework, and no other profile: code that two profiles need belongs to the framework.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules that list every profile: the registry, and the memory that contexts share.
const KNOW_PROFILES: &[&str] = &["profile.rs", "storage.rs"];

/// Rules that hold for the flows of every profile: an expression, and the only file of the sources that has it.
const ONCE: &[(&str, &str)] = &[
    ("fn policy", "compressor/config.rs"),
    ("fn note_refresh", "profile/rfc3095/transitions.rs"),
    ("ir_packets(1)", "flow/establish.rs"),
    (".is_rejected(", "flow/sender.rs"),
    (".admits(hash", "flow/sender.rs"),
    (".rests(", "flow/sender.rs"),
    (".claim(", "flow/sender.rs"),
    (".touch(", "flow/sender.rs"),
    (".charge(", "flow/sender.rs"),
    ("failures <<", "flow/health.rs"),
    (".on_static_damage()", "flow/health.rs"),
    ("fn distances", "flow/search.rs"),
    ("if self.is_doubtful", "flow/search.rs"),
    ("+ beyond", "flow/search.rs"),
    ("slot.place = new.into()", "flow/receiver.rs"),
    (".succeed(", "flow/receiver.rs"),
    (".predicted(packet", "flow/receiver.rs"),
];

#[test]
fn rules_of_flows_stand_once() {
    for (expression, place) in ONCE {
        let has = |path: &PathBuf| code(&fs::read_to_string(path).unwrap()).contains(expression);
        let files: Vec<_> = sources(&source()).into_iter().filter(has).collect();
        assert_eq!(files, [source().join(place)], "{expression}");
    }
}

/// Names of the ends of a channel, which drive profiles and are not driven by them: what a profile is given is a packet, its contexts, and
/// its own memory.
const OF_THE_ENDS: &[&str] =
    &["Compressor", "Decompressor", "DecompressorContext", "FlowTable", "SharedMemory"];

#[test]
fn profiles_do_not_drive_an_end() {
    let folder = source().join("profile");
    let mut complaints = Vec::new();
    for path in sources(&folder).into_iter().filter(|path| !path.to_str().unwrap().ends_with("_test.rs")) {
        let code = code(&fs::read_to_string(&path).unwrap());
        for named in OF_THE_ENDS.iter().filter(|named| has_word(&code, named)) {
            complaints.push(format!("{} names {named}", path.strip_prefix(&folder).unwrap().display()));
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn profiles_do_not_import_each_other() {
    let profiles = profiles();
    assert!(profiles.len() > 2, "{profiles:?}");
    let mut complaints = Vec::new();
    for path in sources(&source()) {
        let file = path.strip_prefix(source()).unwrap().to_str().unwrap().to_owned();
        let own = profiles.iter().find(|name| is_in(&file, &format!("profile/{name}")));
        if own.is_none() && KNOW_PROFILES.contains(&file.as_str()) {
            continue;
        }
        for imported in imports(&fs::read_to_string(&path).unwrap()) {
            if profiles.contains(&imported) && own != Some(&imported) {
                complaints.push(format!("{file} imports from the profile {imported}"));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn imports_are_found_in_every_notation() {
    let found = |text: &str| imports(text);
    assert_eq!(found("use crate::profile::coap::Token;"), ["coap"]);
    assert_eq!(
        found("use crate::profile::{Format, coap::{self, Base}, rfc3095};"),
        ["Format", "coap", "rfc3095"]
    );
    assert_eq!(found("fn f() -> crate::profile::rfc3095::Fields {}"), ["rfc3095"]);
    assert_eq!(found("use super::super::coap::Token;"), ["coap"]);
    assert_eq!(found("use thinair_wire::header::coap; // crate::profile::coap").len(), 0);
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Returns the folders of profiles.
fn profiles() -> Vec<String> {
    let folders = fs::read_dir(source().join("profile")).unwrap().map(|entry| entry.unwrap().path());
    folders
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect()
}

/// True if a file is that module, or in its folder.
fn is_in(file: &str, module: &str) -> bool {
    file.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('/'))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Returns a source without comments.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap()).collect()
}

/// True if a text has a word, and not only longer ones that begin or end with it.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

/// Returns the first names of paths that begin at the module of profiles.
fn imports(text: &str) -> Vec<String> {
    let code = code(text);
    let behind = ["crate::profile::", "super::super::"].map(|start| code.split(start).skip(1));
    let mut names = Vec::new();
    for rest in behind.into_iter().flatten() {
        match rest.strip_prefix('{') {
            None => names.push(name(rest)),
            Some(group) => {
                let mut depth = 1;
                let mut start = 0;
                for (at, c) in group.char_indices() {
                    if depth == 1 && matches!(c, ',' | '}') {
                        names.push(name(group[start..at].trim_start()));
                        start = at + 1;
                    }
                    depth += i32::from(c == '{') - i32::from(c == '}');
                    if depth == 0 {
                        break;
                    }
                }
            }
        }
    }
    names
}

fn name(path: &str) -> String {
    path.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}
