//! `thinair rohc`.

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {}

pub(crate) fn run(task: &Task) -> anyhow::Result<ExitCode> {
    match *task {}
}
