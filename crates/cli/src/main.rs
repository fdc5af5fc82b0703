//! `thinair`: thin headers, over the air.

mod analyze;
mod base64;
mod chart;
mod coap;
mod fetch;
mod lab;
mod link;
mod manual;
mod options;
mod packets;
#[cfg(feature = "evaluations")]
mod paper;
mod rohc;
mod segment;
mod serve;
mod service;
mod template;
mod tunnel;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

/// Exit status of commands that have nothing to add to it.
const PLAIN_EXIT_STATUS: &str = "Exit status: 0 ok; 1 for a failure; 2 for wrong arguments.";

/// Thin headers, over the air: make IP cheap on constrained links, and prove it.
#[derive(Debug, Parser)]
#[command(name = "thinair", version, about, propagate_version = true)]
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
    /// Fetch an object with CoAP, lean HTTP, SPDY or HTTP/3
    Fetch(fetch::Arguments),
    /// Serve the files of a folder with CoAP, lean HTTP, SPDY or HTTP/3
    Serve(serve::Arguments),
    /// Choose the size of TCP segments for networks of short frames
    #[command(subcommand)]
    Segment(segment::Task),
    /// Run experiments from a file: CoAP clients over a modelled link
    #[command(subcommand)]
    Lab(lab::Task),
    /// Run published evaluations again, and compare the figures
    #[cfg(feature = "evaluations")]
    #[command(subcommand)]
    Paper(paper::Task),
    /// Write man pages, and completions for bash, zsh and fish, into a folder
    #[command(hide = true)]
    Manual(manual::Arguments),
}

/// Returns the definition of all arguments, which help, man pages and completions show.
fn command() -> clap::Command {
    named_in_short_help(Command::command(), "thinair")
}

/// Adds to the short help of a command and its subcommands a last line that names the long one.
fn named_in_short_help(command: clap::Command, path: &str) -> clap::Command {
    let command = command.mut_args(with_default_in_text).mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        named_in_short_help(sub, &path)
    });
    if command.has_subcommands() {
        let line =
            format!("`{path} COMMAND -h` is a summary of a command, `{path} COMMAND --help` its manual.");
        command.after_help(line)
    } else {
        command.after_help(format!("More options, details, exit status: {path} --help"))
    }
}

/// Puts the default value of an option behind the first paragraph of its help: in a long help it would take two lines of its own.
fn with_default_in_text(option: clap::Arg) -> clap::Arg {
    let values: Vec<_> = option.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if values.is_empty() || option.is_hide_default_value_set() {
        return option;
    }
    let default = format!(" [default: {}]", values.join(","));
    let in_text = |help: &clap::builder::StyledStr| {
        let help = help.to_string();
        let end = help.find("\n\n").unwrap_or(help.len());
        [&help[..end], &default, &help[end..]].concat()
    };
    let (short, long) = (option.get_help().map(in_text), option.get_long_help().map(in_text));
    let option = option.help(short.unwrap_or_default()).hide_default_value(true);
    match long {
        Some(long) => option.long_help(long),
        None => option,
    }
}

/// Exit status: 0 ok, 1 failure, 2 usage, 3 threshold missed.
fn main() -> ExitCode {
    let command = Command::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit());
    let result = match command.task {
        Task::Analyze(arguments) => analyze::run(&arguments),
        Task::Chart(arguments) => chart::run(&arguments),
        Task::Rohc(task) => rohc::run(&task),
        Task::Link(task) => link::run(&task),
        Task::Tunnel(task) => tunnel::run(&task),
        Task::Coap(task) => coap::run(&task),
        Task::Fetch(arguments) => fetch::run(&arguments),
        Task::Serve(arguments) => serve::run(&arguments),
        Task::Segment(task) => segment::run(&task),
        Task::Lab(task) => lab::run(&task),
        #[cfg(feature = "evaluations")]
        Task::Paper(task) => paper::run(&task),
        Task::Manual(arguments) => manual::run(&arguments, self::command()),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("thinair: {error:#}");
            ExitCode::FAILURE
        }
    }
}
