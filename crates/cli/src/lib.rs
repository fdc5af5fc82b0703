//! `thinair`: thin headers, over the air.
//!
//! The commands of the product ([`main`]), and what another command in its style takes from them: [`terminal`], [`usage`],
//! [`values`], [`help`] and [`manual`].

// A build of some groups leaves parts of what they share unused.
#![cfg_attr(
    not(all(feature = "analyze", feature = "rohc", feature = "tunnel", feature = "link")),
    allow(dead_code)
)]

#[cfg(feature = "analyze")]
mod analyze;
#[cfg(feature = "coap")]
pub mod base64;
#[cfg(feature = "analyze")]
mod chart;
#[cfg(feature = "coap")]
mod coap;
pub mod help;
#[cfg(feature = "captures")]
mod learn;
#[cfg(feature = "link")]
mod link;
#[cfg(feature = "manual")]
pub mod manual;
mod moved;
#[cfg(feature = "channel")]
mod options;
#[cfg(feature = "captures")]
mod packets;
#[cfg(any(feature = "analyze", feature = "coap", feature = "progress"))]
pub mod progress;
#[cfg(feature = "captures")]
mod records;
#[cfg(feature = "rohc")]
mod rohc;
#[cfg(feature = "segment")]
mod segment;
#[cfg(feature = "templates")]
mod template;
pub mod terminal;
#[cfg(feature = "tunnel")]
mod tunnel;
pub mod usage;
pub mod values;

#[cfg(feature = "coap")]
pub use coap::names::code as coap_code;
#[cfg(all(feature = "link", target_os = "linux"))]
pub use link::advise;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

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
    #[cfg(feature = "analyze")]
    Analyze(analyze::Arguments),
    /// Message sequence chart of a capture
    #[cfg(feature = "analyze")]
    Chart(chart::Arguments),
    /// Compress and decompress captures with Robust Header Compression
    #[cfg(feature = "rohc")]
    #[command(subcommand)]
    Rohc(rohc::Task),
    /// Constrained links: an emulated one, and what fits into them
    #[cfg(feature = "link")]
    #[command(subcommand)]
    Link(link::Task),
    /// Tunnel IP packets over UDP, ULE, GSE or serial lines, compressed and encrypted
    #[cfg(feature = "tunnel")]
    #[command(subcommand)]
    Tunnel(tunnel::Task),
    /// Fetch, change, observe and serve resources: CoAP over UDP and TCP
    #[cfg(feature = "coap")]
    #[command(subcommand)]
    Coap(coap::Task),
    /// Choose the size of TCP segments for networks of short frames
    #[cfg(feature = "segment")]
    #[command(subcommand)]
    Segment(segment::Task),
    /// Write man pages, and completions for bash, zsh and fish, into a folder
    #[cfg(feature = "manual")]
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
        #[cfg(feature = "analyze")]
        Task::Analyze(arguments) => analyze::run(&arguments),
        #[cfg(feature = "analyze")]
        Task::Chart(arguments) => chart::run(&arguments),
        #[cfg(feature = "rohc")]
        Task::Rohc(task) => rohc::run(&task),
        #[cfg(feature = "link")]
        Task::Link(task) => link::run(&task),
        #[cfg(feature = "tunnel")]
        Task::Tunnel(task) => tunnel::run(&task),
        #[cfg(feature = "coap")]
        Task::Coap(task) => coap::run(&task),
        #[cfg(feature = "segment")]
        Task::Segment(task) => segment::run(&task),
        #[cfg(feature = "manual")]
        Task::Manual(arguments) => manual::run(&arguments, self::command()),
        Task::Moved(task) => Err(moved::told(task)),
    };
    usage::status(NAME, result)
}
