//! A new profile takes a folder of its own, and a few lines in the lists of profiles.
//!
//! The test copies the profile of `tests/toy` into a copy of this crate, and runs its tests there.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Largest number of lines outside its folder that a profile may take.
const MOST_LINES: usize = 5;

/// Lines of the profile, each with its file and the line that it follows.
const LINES: &[(&str, &str, &str)] = &[
    ("profile.rs", "pub(crate) mod rfc6846;", "pub(crate) mod toy;"),
    ("id.rs", r#"    Coap = 0x0181 "coap" "coap","#, "    /// 0x00F0, a toy."),
    ("id.rs", "    /// 0x00F0, a toy.", r#"    Toy = 0x00F0 "toy","#),
    // Packets are offered to it before profile 0x0004, which accepts every packet.
    ("profile.rs", "registry! {", "    Toy: toy::ToySender, toy::ToyReceiver, Toy;"),
];

#[test]
fn a_profile_is_a_folder_and_at_most_five_lines() {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("toy_profile");
    let source = copy.join("src");
    if source.exists() {
        fs::remove_dir_all(&source).unwrap();
    }
    copy_sources(&crate_root().join("src"), &source, &without_tests);
    copy_sources(&crate_root().join("tests/toy"), &source.join("profile/toy"), &|_, text| text);
    fs::write(copy.join("Cargo.toml"), manifest()).unwrap();
    fs::copy(workspace_root().join("Cargo.lock"), copy.join("Cargo.lock")).unwrap();

    let added: usize = LINES.iter().map(|(.., line)| line.lines().count()).sum();
    assert!(added <= MOST_LINES, "{added} lines outside the folder");
    for (file, behind, line) in LINES {
        let text = fs::read_to_string(source.join(file)).unwrap();
        fs::write(source.join(file), insert(&text, behind, line)).unwrap();
    }

    let output = Command::new(env!("CARGO"))
        .args(["test", "--offline", "--lib", "--target-dir"])
        .arg(copy.join("target"))
        .args(["--", "profile::toy"])
        .current_dir(&copy)
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "cargo test: {}\n{stderr}\n{stdout}", output.status);
    // A filter that matches no test is a success, too.
    let passed = stdout.lines().filter(|line| line.starts_with("test profile::toy::")).count();
    assert!(passed > 0, "no test of the toy was run\n{stdout}");
}

fn crate_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the folder of the workspace whose manifest this crate inherits from.
fn workspace_root() -> &'static Path {
    crate_root().ancestors().find(|folder| folder.join("Cargo.lock").exists()).unwrap()
}

/// Copies a folder of sources. `change` returns the text of each file from its path within the folder and its original text.
fn copy_sources(from: &Path, to: &Path, change: &dyn Fn(&Path, String) -> String) {
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        fs::create_dir_all(to.join(&folder)).unwrap();
        for entry in fs::read_dir(from.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(entry.path()).unwrap();
                fs::write(to.join(&path), change(&path, text)).unwrap();
            }
        }
    }
}

/// Removes the tests of the crate itself, which need crates that the toy does not, and time. Test items of `lib.rs` stay.
fn without_tests(path: &Path, text: String) -> String {
    if path == Path::new("lib.rs") { text } else { text.replace("#[cfg(test)]", "#[cfg(any())]") }
}

/// Inserts a line after one of the lines of a text.
fn insert(text: &str, behind: &str, line: &str) -> String {
    let mut found = 0;
    let mut with = String::new();
    for old in text.lines() {
        writeln!(with, "{old}").unwrap();
        if old == behind {
            found += 1;
            writeln!(with, "{line}").unwrap();
        }
    }
    assert_eq!(found, 1, "lines that are `{behind}`");
    with
}

/// Returns the manifest of the copy, a workspace of its own with the edition and features of the original, and only its
/// dependency.
fn manifest() -> String {
    let own = fs::read_to_string(crate_root().join("Cargo.toml")).unwrap();
    let shared = fs::read_to_string(workspace_root().join("Cargo.toml")).unwrap();
    let edition = shared.lines().find(|line| line.starts_with("edition = ")).unwrap();
    let features = section(&own, "[features]");
    assert_eq!(section(&own, "[dependencies]"), "thinair-wire.workspace = true\n");
    let wire = crate_root().parent().unwrap().join("wire");
    let wire = wire.to_str().unwrap();
    format!(
        "[package]\nname = \"thinair-rohc\"\n{edition}\n\n[workspace]\n\n[features]\n{features}\n\
         [dependencies]\nthinair-wire = {{ path = {wire:?} }}\n\n[profile.dev]\ndebug = false\n"
    )
}

/// Returns the lines of a section of a manifest that are not empty.
fn section(manifest: &str, head: &str) -> String {
    let behind = manifest.lines().skip_while(|line| *line != head).skip(1);
    let lines = behind.take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}
