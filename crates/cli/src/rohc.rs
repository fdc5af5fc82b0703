//! `thinair rohc`: captures of IP packets to captures of ROHC packets and back, and a look into the latter.
//!
//! One command is one channel, and all packets go one way; with `--both-ways` it is a link with a channel each way. A ROHC capture has link type 147 (one ROHC packet a
//! record) or holds Ethernet frames of type 0x22F1; it says nothing of the channel, whose options are given
//! again to read it.

mod both_ways;
mod compress;
mod conversion;
mod decompress;
mod dissect;
mod files;
mod learn;
mod summary;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Capture of IP packets in, capture of ROHC packets out
    #[command(after_long_help = compress::EXIT_STATUS)]
    Compress(conversion::Arguments),
    /// Capture of ROHC packets in, capture of IP packets (link type RAW) out
    #[command(after_long_help = decompress::EXIT_STATUS)]
    Decompress(conversion::Arguments),
    /// Captures of CoAP in; out a template file, with which the first packets of such flows are small
    #[command(after_long_help = learn::EXIT_STATUS)]
    Learn(learn::Arguments),
    /// Format, fields and outcome of each packet of a ROHC capture
    #[command(after_long_help = dissect::EXIT_STATUS)]
    Dissect(dissect::Arguments),
}

pub(crate) fn run(task: &Task) -> anyhow::Result<ExitCode> {
    match task {
        Task::Compress(arguments) => compress::run(arguments),
        Task::Decompress(arguments) => decompress::run(arguments),
        Task::Learn(arguments) => learn::run(arguments),
        Task::Dissect(arguments) => dissect::run(arguments),
    }
}
