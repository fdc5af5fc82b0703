//! `thinair manual`: man pages and completions of shells, from the definitions of the arguments.
//!
//! `--help` prints the same definitions. A package holds what this writes, and who has installed with cargo can have
//! it, too. [`page`] renders one man page.

mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Command, ValueHint};
use clap_complete::Shell;

/// Shells, and the place of their completions below a folder of data as `/usr/share` is one.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/thinair"),
    (Shell::Zsh, "zsh/site-functions/_thinair"),
    (Shell::Fish, "fish/vendor_completions.d/thinair.fish"),
];

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Folder of data, such as /usr/local/share or ~/.local/share
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Date at the foot of the man pages
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "", hide_default_value = true)]
    date: String,
}

pub(crate) fn run(arguments: &Arguments, command: Command) -> anyhow::Result<ExitCode> {
    let folder = &arguments.folder;
    let mut command = command.disable_help_subcommand(true);
    for (shell, place) in SHELLS {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "thinair", &mut script);
        write(&folder.join(place), &script)?;
    }
    command.build();
    pages(&command, None, arguments, &folder.join("man/man1"))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command and those of its subcommands.
fn pages(
    command: &Command,
    parent: Option<&Command>,
    arguments: &Arguments,
    folder: &Path,
) -> anyhow::Result<()> {
    let page = page::render(command, parent, &arguments.date)?;
    write(&folder.join(format!("{}.1", page::name(command))), &page)?;
    for below in visible(command) {
        pages(below, Some(command), arguments, folder)?;
    }
    Ok(())
}

/// Subcommands that `--help` lists.
fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set())
}

fn write(file: &Path, octets: &[u8]) -> anyhow::Result<()> {
    let folder = file.parent().expect("a file of a folder");
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(file, octets).with_context(|| format!("cannot write {}", file.display()))
}
