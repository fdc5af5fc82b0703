//! Former commands of `thinair`, now in `thinair-lab`.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use crate::usage::Usage;

#[derive(Debug, Subcommand)]
pub(crate) enum MovedCommand {
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true)]
    Lab(Words),
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true)]
    Paper(Words),
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true)]
    Fetch(Words),
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true)]
    Serve(Words),
}

#[derive(Args, Debug)]
pub(crate) struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Returns an error that names the new command line.
pub(crate) fn error(task: MovedCommand) -> anyhow::Error {
    let (name, Words { words }) = match task {
        MovedCommand::Lab(words) => ("lab", words),
        MovedCommand::Paper(words) => ("paper", words),
        MovedCommand::Fetch(words) => ("fetch", words),
        MovedCommand::Serve(words) => ("serve", words),
    };
    let words: String = words.iter().map(|word| format!(" {}", word.display())).collect();
    Usage::error(format!("this command has moved: run thinair-lab {name}{words}"))
}
