//! `thinair link`: emulation and capacity of constrained links.

mod capacity;
mod model;
mod presets;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod report;
mod run;

use std::process::ExitCode;

use clap::Subcommand;

#[cfg(target_os = "linux")]
pub use run::advise;

#[derive(Debug, Subcommand)]
pub(crate) enum LinkCommand {
    /// Emulate a link between two network namespaces, in real time; with --rohc, compressed
    #[command(after_long_help = run::EXIT_STATUS)]
    Run(Box<run::RunArguments>),
    /// List the named links, with the sources of their figures
    #[command(after_long_help = crate::help::PLAIN_EXIT_STATUS)]
    Presets(presets::PresetsArguments),
    /// Compute the packets that a transport stream carries, with and without compression
    #[command(after_long_help = crate::help::PLAIN_EXIT_STATUS)]
    Capacity(capacity::CapacityArguments),
}

pub(crate) fn run(task: &LinkCommand) -> anyhow::Result<ExitCode> {
    match task {
        LinkCommand::Run(arguments) => run::run(arguments),
        LinkCommand::Presets(arguments) => presets::run(arguments),
        LinkCommand::Capacity(arguments) => capacity::run(arguments),
    }
}
