//! Commands of `thinair` ([`main`]), `analyze` as a function ([`analyze::Results`]), and modules for other commands in its
//! style: [`terminal`], [`usage`], [`values`], [`help`] and [`manual`].

// Builds with fewer features leave parts of the shared modules unused.
#![cfg_attr(
    not(all(feature = "analyze", feature = "rohc", feature = "tunnel", feature = "link")),
    allow(dead_code)
)]

#[cfg(feature = "analyze")]
pub mod analyze;
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
#[cfg(any(feature = "tunnel", all(feature = "coap", target_os = "linux")))]
mod log;
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
#[cfg(feature = "web")]
mod web;
pub mod whole;

#[cfg(feature = "coap")]
pub use coap::names::code as coap_code;
#[cfg(all(feature = "link", target_os = "linux"))]
pub use link::advise;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

/// Name of the program.
const NAME: &str = "thinair";

/// Header compression for constrained links: measure it, try it, run it
#[derive(Debug, Parser)]
#[command(name = NAME, version, about, propagate_version = true)]
struct CommandLine {
    #[command(subcommand)]
    task: MainCommand,
}

#[derive(Debug, Subcommand)]
enum MainCommand {
    /// Measure the octets of each flow of a capture, and the savings by header compression
    #[cfg(feature = "analyze")]
    Analyze(analyze::AnalyzeArguments),
    /// Draw a message sequence chart of a capture
    #[cfg(feature = "analyze")]
    Chart(chart::ChartArguments),
    /// Compress and decompress captures with Robust Header Compression (ROHC)
    #[cfg(feature = "rohc")]
    #[command(subcommand)]
    Rohc(rohc::RohcCommand),
    /// Emulate constrained links, and compute their capacity
    #[cfg(feature = "link")]
    #[command(subcommand)]
    Link(link::LinkCommand),
    /// Tunnel IP packets over UDP, ULE, GSE or serial lines, with header compression and encryption
    #[cfg(feature = "tunnel")]
    #[command(subcommand)]
    Tunnel(tunnel::TunnelCommand),
    /// Send CoAP requests and serve CoAP resources, over UDP and TCP
    #[cfg(feature = "coap")]
    #[command(subcommand)]
    Coap(coap::CoapCommand),
    /// Adapt the size of TCP segments to networks of short frames
    #[cfg(feature = "segment")]
    #[command(subcommand)]
    Segment(segment::SegmentCommand),
    /// Serve the page that analyzes captures in a browser, on this machine
    #[cfg(feature = "web")]
    Web(web::WebArguments),
    /// Write man pages, and completions for bash, zsh and fish, into a folder
    #[cfg(feature = "manual")]
    #[command(hide = true)]
    Manual(manual::ManualArguments),
    #[command(flatten)]
    Moved(moved::MovedCommand),
}

/// Returns the definition of all arguments, as help, man pages and completions show it.
fn command() -> clap::Command {
    help::named_in_short_help(CommandLine::command(), NAME)
}

/// Runs the command given by the arguments of this process. Exit status: 0 ok, 1 failure, 2 wrong arguments,
/// 3 threshold missed.
pub fn main() -> ExitCode {
    let command =
        CommandLine::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit());
    let result = match command.task {
        #[cfg(feature = "analyze")]
        MainCommand::Analyze(arguments) => analyze::run(&arguments),
        #[cfg(feature = "analyze")]
        MainCommand::Chart(arguments) => chart::run(&arguments),
        #[cfg(feature = "rohc")]
        MainCommand::Rohc(task) => rohc::run(&task),
        #[cfg(feature = "link")]
        MainCommand::Link(task) => link::run(&task),
        #[cfg(feature = "tunnel")]
        MainCommand::Tunnel(task) => tunnel::run(&task),
        #[cfg(feature = "coap")]
        MainCommand::Coap(task) => coap::run(&task),
        #[cfg(feature = "segment")]
        MainCommand::Segment(task) => segment::run(&task),
        #[cfg(feature = "web")]
        MainCommand::Web(arguments) => web::run(&arguments),
        #[cfg(feature = "manual")]
        MainCommand::Manual(arguments) => manual::run(&arguments, self::command()),
        MainCommand::Moved(task) => Err(moved::error(task)),
    };
    usage::status(NAME, result)
}
