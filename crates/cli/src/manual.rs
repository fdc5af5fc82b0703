//! `thinair manual`: man pages and shell completions, generated from the definitions of the arguments.
//!
//! `--help` prints the same definitions. Packages contain these files; after `cargo install`, this command
//! writes them. `page.rs` renders one man page.

mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Command, ValueHint};
use clap_complete::Shell;

/// Shells, with the folder of their completions below a data folder such as `/usr/share`, and the text before
/// and after the name of the command in the file name.
const SHELLS: [(Shell, &str, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/", ""),
    (Shell::Zsh, "zsh/site-functions/_", ""),
    (Shell::Fish, "fish/vendor_completions.d/", ".fish"),
];

/// Destination and date of the pages.
#[derive(Args, Debug)]
pub struct ManualArguments {
    /// Data folder, such as /usr/local/share or ~/.local/share
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Date in the footer of the man pages
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "", hide_default_value = true)]
    date: String,
}

/// Writes the man pages and completions of a command and its subcommands.
///
/// # Errors
/// A file cannot be written.
pub fn run(arguments: &ManualArguments, command: Command) -> anyhow::Result<ExitCode> {
    let folder = &arguments.folder;
    let mut command = command.disable_help_subcommand(true);
    let name = command.get_name().to_owned();
    for (shell, before, after) in SHELLS {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, &name, &mut script);
        write(&folder.join(format!("{before}{name}{after}")), &script)?;
    }
    command.build();
    pages(&command, None, arguments, &folder.join("man/man1"))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the man page of a command and those of its subcommands.
fn pages(
    command: &Command,
    parent: Option<&Command>,
    arguments: &ManualArguments,
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
