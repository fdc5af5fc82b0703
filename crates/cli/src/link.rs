//! `thinair link`: constrained links.

mod capacity;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// How many packets a transport stream carries, plain and compressed: equations, exact packing, padding
    Capacity(capacity::Arguments),
}

pub(crate) fn run(task: &Task) -> anyhow::Result<ExitCode> {
    match task {
        Task::Capacity(arguments) => capacity::run(arguments),
    }
}
