//! Rules for the files of every crate: lints of the workspace, `no_std` where it is promised, and a limit on their
//! length.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use thinair_tests::{files, metadata, root, text};

/// The crates that may have unsafe code: system calls, and pointers of C.
const UNSAFE: &[&str] = &["thinair-os", "thinair-c", "thinair-librohc"];

/// Crates that run without an operating system.
const NO_STD: &[&str] = &[
    "thinair-wire",
    "thinair-rohc",
    "thinair-coap",
    "thinair-dtls",
    "thinair-http",
    "thinair-lowpan",
    "thinair-ule",
    "thinair-segment",
    "thinair-link",
];

/// Maximum number of lines: a longer file probably has two subjects.
const MAX_LINES: usize = 900;

/// Files that may be longer, each with the reason.
const LONGER: &[(&str, &str)] = &[];

#[test]
fn unsafe_code_is_forbidden() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(has_line(&manifest, "[workspace.lints.rust]", r#"unsafe_code = "forbid""#));
    for (name, folder) in crates() {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let inherits = has_line(&manifest, "[lints]", "workspace = true");
        assert!(
            inherits || UNSAFE.contains(&name.as_str()),
            "{name} does not take the lints of the workspace"
        );
    }
}

#[test]
fn engines_need_no_operating_system() {
    for (name, folder) in crates() {
        if NO_STD.contains(&name.as_str()) {
            let lib = fs::read_to_string(folder.join("src/lib.rs")).unwrap();
            assert!(lib.lines().any(|line| line == "#![no_std]"), "{name} is not #![no_std]");
        }
    }
}

#[test]
fn files_tell_one_story() {
    let root = root();
    let mut long = Vec::new();
    for (_, folder) in crates() {
        for file in files(&folder.join("src"), ".rs") {
            let lines = fs::read_to_string(&file).unwrap().lines().count();
            let name = file.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
            let listed = LONGER.iter().any(|(path, _)| *path == name);
            if lines > MAX_LINES && !listed {
                long.push(format!("{name} has {lines} lines: split it, or list it in {}", file!()));
            }
            if lines <= MAX_LINES && listed {
                long.push(format!("{name} is short enough again: take it off the list in {}", file!()));
            }
        }
    }
    assert!(long.is_empty(), "\n{}", long.join("\n"));
    for (path, _) in LONGER {
        assert!(root.join(path).exists(), "{path} is listed, but not there");
    }
}

/// Name and folder of every member of the workspace.
fn crates() -> Vec<(String, std::path::PathBuf)> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let folder = |path: String| Path::new(&path).parent().unwrap().to_owned();
    let crates: Vec<_> =
        packages.iter().map(|p| (text(p, "name"), folder(text(p, "manifest_path")))).collect();
    assert!(crates.len() > 1);
    crates
}

/// True if `line` is below the heading `section` of a manifest.
fn has_line(manifest: &str, section: &str, line: &str) -> bool {
    let mut below = manifest.lines().skip_while(|found| found.trim() != section).skip(1);
    below.by_ref().take_while(|found| !found.starts_with('[')).any(|found| found.trim() == line)
}
