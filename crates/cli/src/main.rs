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
mod paper;
mod rohc;
mod segment;
mod serve;
mod service;
mod template;
mod tunnel;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// Thin headers, over the air: make IP cheap on constrained links, and prove it.
#[derive(Debug, Parser)]
#[command(name = "thinair", version, about, propagate_version = true)]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// What each flow of a capture costs, and what header compression saves
    Analyze(analyze::Arguments),
    /// Who sent what to whom: a message sequence chart of a capture
    Chart(chart::Arguments),
    /// Robust Header Compression: captures of IP packets to captures of ROHC packets, and back
    #[command(subcommand)]
    Rohc(rohc::Task),
    /// Constrained links: what fits into them, and one to try out
    #[command(subcommand)]
    Link(link::Task),
    /// IP packets through UDP, ULE, GSE or serial lines, in fewer octets and sealed
    #[command(subcommand)]
    Tunnel(tunnel::Task),
    /// CoAP over UDP and TCP: fetch, change and observe resources, or serve them
    #[command(subcommand)]
    Coap(coap::Task),
    /// One object, by a service of your choice: CoAP, lean HTTP or SPDY
    Fetch(fetch::Arguments),
    /// The files of a folder, by a service of your choice
    Serve(serve::Arguments),
    /// The size of TCP segments for networks of short frames
    #[command(subcommand)]
    Segment(segment::Task),
    /// Experiments from a file: CoAP clients over a modelled link, in virtual time
    #[command(subcommand)]
    Lab(lab::Task),
    /// Published evaluations, run again: theirs, ours, and the bars that ours must meet
    #[command(subcommand)]
    Paper(paper::Task),
    /// Write man pages, and completions for bash, zsh and fish, into a folder
    #[command(hide = true)]
    Manual(manual::Arguments),
}

/// Exit status: 0 ok, 1 failure, 2 usage, 3 threshold missed.
fn main() -> ExitCode {
    let result = match Command::parse().task {
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
        Task::Paper(task) => paper::run(&task),
        Task::Manual(arguments) => manual::run(&arguments, Command::command()),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("thinair: {error:#}");
            ExitCode::FAILURE
        }
    }
}
