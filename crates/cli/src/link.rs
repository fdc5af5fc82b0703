//! `thinair link`: emulation and capacity of constrained links.

mod capacity;
mod model;
mod presets;
#[cfg(target_os = "linux")]
mod record;
mod run;
#[cfg(target_os = "linux")]
mod report;

use std::process::ExitCode;

use clap::Subcommand;

#[cfg(target_os = "linux")]
pub use run::advise;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Emulate a link between two network namespaces, in real time; with --rohc, compressed
    #[command(after_long_help = run::EXIT_STATUS)]
    Run(Box<run::Arguments>),
    /// List the named links, with the sources of their figures
    #[command(after_long_help = crate::help::PLAIN_EXIT_STATUS)]
    Presets(presets::Arguments),
    /// Compute the packets that a transport stream carries, with and without compression
    #[command(after_long_help = crate::help::PLAIN_EXIT_STATUS)]
    Capacity(capacity::Arguments),
}

pub(crate) fn run(task: &Task) -> anyhow::Result<ExitCode> {
    match task {
        Task::Run(arguments) => run::run(arguments),
        Task::Presets(arguments) => presets::run(arguments),
        Task::Capacity(arguments) => capacity::run(arguments),
    }
}
