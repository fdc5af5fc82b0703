//! `thinair`: thin headers, over the air.
//!
//! The commands of the product ([`main`]), and what another command in its style takes from them: [`terminal`], [`usage`],
//! [`values`], [`help`] and [`manual`].

mod analyze;
pub mod base64;
mod chart;
mod coap;
pub mod help;
mod link;
pub mod manual;
mod moved;
mod options;
mod packets;
mod rohc;
mod segment;
mod template;
pub mod terminal;
mod tunnel;
pub mod usage;
pub mod values;

#[cfg(target_os = "linux")]
pub use coap::names::code as coap_code;
#[cfg(target_os = "linux")]
pub use link::advise;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use help::PLAIN_EXIT_STATUS;

/// Name of the program.
const NAME: &str = "thinair";

/// Thin headers, over the air: make IP cheap on constrained links, and prove it.
#[derive(Debug, Parser)]
#[command(name = NAME, version, about, propagate_version = true)]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Octets of each flow of a capture, and what header compression saves
    Analyze(analyze::Arguments),
    /// Message sequence chart of a capture
    Chart(chart::Arguments),
    /// Compress and decompress captures with Robust Header Compression
    #[command(subcommand)]
    Rohc(rohc::Task),
    /// Constrained links: an emulated one, and what fits into them
    #[command(subcommand)]
    Link(link::Task),
    /// Tunnel IP packets over UDP, ULE, GSE or serial lines, compressed and encrypted
    #[command(subcommand)]
    Tunnel(tunnel::Task),
    /// Fetch, change, observe and serve resources: CoAP over UDP and TCP
    #[command(subcommand)]
    Coap(coap::Task),
    /// Choose the size of TCP segments for networks of short frames
    #[command(subcommand)]
    Segment(segment::Task),
    /// Write man pages, and completions for bash, zsh and fish, into a folder
    #[command(hide = true)]
    Manual(manual::Arguments),
    #[command(flatten)]
    Moved(moved::Task),
}

/// Returns the definition of all arguments, which help, man pages and completions show.
fn command() -> clap::Command {
    help::named_in_short_help(Command::command(), NAME)
}

/// Runs the command that the arguments of this process name. Exit status: 0 ok, 1 failure, 2 usage, 3 threshold missed.
pub fn main() -> ExitCode {
    let command = Command::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit());
    let result = match command.task {
        Task::Analyze(arguments) => analyze::run(&arguments),
        Task::Chart(arguments) => chart::run(&arguments),
        Task::Rohc(task) => rohc::run(&task),
        Task::Link(task) => link::run(&task),
        Task::Tunnel(task) => tunnel::run(&task),
        Task::Coap(task) => coap::run(&task),
        Task::Segment(task) => segment::run(&task),
        Task::Manual(arguments) => manual::run(&arguments, self::command()),
        Task::Moved(task) => Err(moved::told(task)),
    };
    usage::status(NAME, result)
}
