//! `thinair manual`: man pages and completions of shells, from the definitions of the arguments.
//!
//! `--help` prints the same definitions. A package holds what this writes, and who has installed with cargo can have
//! it, too. `page.rs` renders one man page.

mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Command, ValueHint};
use clap_complete::Shell;

/// Shells, and the place of their completions below a folder of data as `/usr/share` is one: folder, and what stands around
/// the name of the command.
const SHELLS: [(Shell, &str, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/", ""),
    (Shell::Zsh, "zsh/site-functions/_", ""),
    (Shell::Fish, "fish/vendor_completions.d/", ".fish"),
];

/// Where to write, and the date of the pages.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Folder of data, such as /usr/local/share or ~/.local/share
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Date at the foot of the man pages
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "", hide_default_value = true)]
    date: String,
}

/// Writes the pages and completions of a command and its subcommands.
///
/// # Errors
/// A file cannot be written.
pub fn run(arguments: &Arguments, command: Command) -> anyhow::Result<ExitCode> {
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
