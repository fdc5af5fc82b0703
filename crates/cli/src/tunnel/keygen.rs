//! `thinair tunnel keygen`: creates and changes key files. Of a key it prints the public one only.
//!
//! A key file has a line for each key: the first is used, a second one is accepted. Keys are replaced without
//! interruption in three steps: `add` a second key and copy the file to all ends; `promote` it at all ends;
//! `retire` the old one at all ends.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use thinair_session::Keys;
use thinair_tunnel::key_file;

use crate::terminal::print;

pub(super) const EXIT_STATUS: &str = "\
Prints the public key of the file, for `public_key` at the other end.\n\n\
Replacing a key without interruption:\n  \
1. thinair tunnel keygen sat.key --rotate add      at one end; copy the file to all others, reload each\n  \
2. thinair tunnel keygen sat.key --rotate promote  at every end; reload each\n  \
3. thinair tunnel keygen sat.key --rotate retire   at every end; reload each\n\n\
Exit status: 0 for success; 1 for a failure, for example if the file exists; 2 for wrong arguments.";

#[derive(Args, Debug)]
pub(crate) struct KeygenArguments {
    /// Key file to create with mode 0600; an existing file is kept
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print the public key of an existing file
    #[arg(long, conflicts_with = "rotate")]
    public: bool,
    /// Change the keys of an existing file
    #[arg(long, value_enum, value_name = "STEP")]
    rotate: Option<RotationStep>,
}

/// A step of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RotationStep {
    /// Add a second key, which is accepted from then on
    Add,
    /// Swap the keys: the second one is used from then on, the other one is still accepted
    Promote,
    /// Remove the second key
    Retire,
}

pub(super) fn run(arguments: &KeygenArguments) -> anyhow::Result<ExitCode> {
    let file = &arguments.file;
    let name = file.display();
    let Some(step) = arguments.rotate else {
        if !arguments.public {
            let id = key_file::generate(file, "", &mut random)?;
            eprintln!(
                "{name}: key {id}. As a private key (--private-key): keep the file here, and give the other end the public key. \
                 As a shared key (--key): copy the file to the other end over a secure channel, such as scp"
            );
        }
        print(&format!("{}\n", key_file::read(file)?.first().public()))?;
        return Ok(ExitCode::SUCCESS);
    };
    // Rejects files that others can read, or without keys.
    key_file::read(file)?;
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let changed = rotated(&text, step).with_context(|| name.to_string())?;
    replace(file, &changed).with_context(|| format!("cannot write {name}"))?;
    eprintln!(
        "{name}: {}",
        match step {
            RotationStep::Add =>
                "a second key is accepted; copy the file to all ends and reload them, then --rotate promote",
            RotationStep::Promote =>
                "the second key is the first; do so at all ends and reload them, then --rotate retire",
            RotationStep::Retire => "the second key is gone; do so at all ends",
        }
    );
    Ok(ExitCode::SUCCESS)
}

/// True if a line contains a key, not only a comment.
fn has_key(line: &str) -> bool {
    line.split('#').next().is_some_and(|line| !line.trim().is_empty())
}

/// Returns the text of a key file after a step. Comments keep their places.
fn rotated(text: &str, step: RotationStep) -> anyhow::Result<String> {
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let keys: Vec<_> = (0..lines.len()).filter(|number| has_key(&lines[*number])).collect();
    match (step, &keys[..]) {
        (_, []) => bail!("the file has no key; create one with `thinair tunnel keygen FILE`"),
        (_, [_, _, _, ..]) => bail!("the file has more than two keys; remove the superfluous ones by hand"),
        (RotationStep::Add, [_]) => lines.push(Keys::line("", &mut random).0.trim_end().to_owned()),
        (RotationStep::Add, _) => {
            bail!("the file has two keys already; remove the second one with --rotate retire")
        }
        (RotationStep::Promote, &[first, second]) => lines.swap(first, second),
        (RotationStep::Retire, &[_, second]) => {
            lines.remove(second);
        }
        (RotationStep::Promote | RotationStep::Retire, _) => {
            bail!("the file has only one key; add a second one with --rotate add")
        }
    }
    Ok(lines.join("\n") + "\n")
}

/// Fills a buffer with random octets from the system.
fn random(octets: &mut [u8]) {
    // Fails only on kernels without this system call, where no key can be made.
    getrandom::fill(octets).expect("Linux has getrandom(2) since 3.17");
}

/// Replaces a file atomically: after a crash, either version is complete.
fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside);
    let made = made.with_context(|| beside.display().to_string())?;
    let replaced = fill_and_rename(made, &beside, file, text);
    if replaced.is_err() {
        // Key material, and the next attempt creates it.
        let _ = fs::remove_file(&beside);
    }
    replaced
}

fn fill_and_rename(mut made: fs::File, beside: &Path, file: &Path, text: &str) -> anyhow::Result<()> {
    made.write_all(text.as_bytes())?;
    made.sync_all()?;
    let owner = fs::metadata(file)?;
    // Only root can give files away, and only root needs to.
    let mine = fs::metadata(beside)?;
    if (owner.uid(), owner.gid()) != (mine.uid(), mine.gid()) {
        std::os::unix::fs::chown(beside, Some(owner.uid()), Some(owner.gid()))?;
    }
    Ok(fs::rename(beside, file)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn keys_are_replaced_in_three_steps() {
        let old = "# of the gateway\naa # first\n";
        let two = rotated(old, RotationStep::Add).unwrap();
        let lines: Vec<_> = two.lines().collect();
        assert_eq!(lines[..2], ["# of the gateway", "aa # first"]);
        assert!(Keys::parse(lines[2]).is_ok());
        let promoted = rotated(&two, RotationStep::Promote).unwrap();
        assert_eq!(promoted, format!("# of the gateway\n{}\naa # first\n", lines[2]));
        assert_eq!(
            rotated(&promoted, RotationStep::Retire).unwrap(),
            format!("# of the gateway\n{}\n", lines[2])
        );
    }

    #[test]
    fn steps_that_do_not_fit_change_nothing() {
        for (text, step) in [
            ("", RotationStep::Add),
            ("# aa\n", RotationStep::Promote),
            ("aa\nbb\n", RotationStep::Add),
            ("aa\n", RotationStep::Promote),
            ("aa\n", RotationStep::Retire),
            ("aa\nbb\ncc\n", RotationStep::Retire),
        ] {
            assert!(rotated(text, step).is_err(), "{text:?} {step:?}");
        }
    }
}
