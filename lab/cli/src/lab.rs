//! `thinair-lab lab`: experiments from a file.
//!
//! Arguments, files of results, progress and exit codes. Plans and measurements are in `thinair_simulation::plan`.

mod file;
#[cfg(target_os = "linux")]
mod real;
mod run;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

const EXIT_STATUS: &str = "\
Exit status: 0 if all was done; 1 for a failure or an interrupt; 2 for wrong arguments, or a plan that is wrong.";

#[derive(Debug, Subcommand)]
pub(crate) enum ExperimentCommand {
    /// Run a plan in virtual time or in real time
    #[command(after_long_help = EXIT_STATUS)]
    Run(run::RunArguments),
    /// Show the results of files of `lab run --out` together
    #[command(after_long_help = EXIT_STATUS)]
    Show(ShowArguments),
    /// Print a plan with comments, to begin with
    #[command(after_long_help = thinair_cli::help::PLAIN_EXIT_STATUS)]
    Plan,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArguments {
    /// Files of `lab run --out`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: show::ResultFormat,
}

pub(crate) fn run(task: &ExperimentCommand) -> anyhow::Result<ExitCode> {
    match task {
        ExperimentCommand::Run(arguments) => run::run(arguments),
        ExperimentCommand::Show(shown) => {
            let mut results = thinair_simulation::plan::Results::default();
            for path in &shown.files {
                file::read(path, &mut results)?;
            }
            show::show(&shown.output, "", &results)?;
            Ok(ExitCode::SUCCESS)
        }
        ExperimentCommand::Plan => {
            thinair_cli::terminal::print(thinair_simulation::plan::TEMPLATE)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
