//! `thinair-lab`: the laboratory beside `thinair`.

mod fetch;
mod lab;
mod paper;
mod serve;
mod service;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use thinair_cli::{help, manual, usage};

/// Name of the program.
const NAME: &str = "thinair-lab";

/// Commands of the product that this program offers unchanged: evaluations in real time start them as processes, with
/// profiles that the product is built without.
const OF_THE_PRODUCT: [&str; 3] = ["coap", "link", "tunnel"];

/// The laboratory of thinair: simulations, published evaluations run again, and the services that CoAP is compared with.
#[derive(Debug, Parser)]
#[command(name = NAME, version, about, propagate_version = true)]
struct LabProgram {
    #[command(subcommand)]
    task: LabSubcommand,
}

#[derive(Debug, Subcommand)]
enum LabSubcommand {
    /// Run experiments from a file: CoAP clients over a modelled link
    #[command(subcommand)]
    Lab(lab::ExperimentCommand),
    /// Run published evaluations again, and compare the figures
    #[command(subcommand)]
    Paper(paper::PaperCommand),
    /// Fetch an object with CoAP, lean HTTP, SPDY or HTTP/3
    Fetch(fetch::FetchArguments),
    /// Serve the files of a folder with CoAP, lean HTTP, SPDY or HTTP/3
    Serve(serve::ServeArguments),
    /// Write man pages, and completions for bash, zsh and fish, into a folder
    #[command(hide = true)]
    Manual(manual::ManualArguments),
}

fn command() -> clap::Command {
    help::named_in_short_help(LabProgram::command(), NAME)
}

/// Exit status: 0 ok, 1 failure, 2 usage, 3 a missed bar.
fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|first| OF_THE_PRODUCT.contains(&first.as_str())) {
        return thinair_cli::main();
    }
    let command = LabProgram::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit());
    let result = match command.task {
        LabSubcommand::Lab(task) => lab::run(&task),
        LabSubcommand::Paper(task) => paper::run(&task),
        LabSubcommand::Fetch(arguments) => fetch::run(&arguments),
        LabSubcommand::Serve(arguments) => serve::run(&arguments),
        LabSubcommand::Manual(arguments) => manual::run(&arguments, self::command()),
    };
    usage::status(NAME, result)
}
