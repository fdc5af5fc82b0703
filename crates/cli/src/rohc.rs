//! `thinair rohc`: conversion of captures between IP packets and ROHC packets, and dissection of ROHC
//! packets.
//!
//! A command handles one channel, with all packets in one direction; with `--both-ways` a link with one
//! channel in each direction. A ROHC capture has link type 147 (one ROHC packet per record) or contains
//! Ethernet frames of type 0x22F1. It does not describe the channel: reading it takes the options that wrote
//! it.

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
pub(crate) enum RohcCommand {
    /// Compress a capture of IP packets to a capture of ROHC packets
    #[command(after_long_help = compress::EXIT_STATUS)]
    Compress(conversion::ConversionArguments),
    /// Decompress a capture of ROHC packets to a capture of IP packets (link type RAW)
    #[command(after_long_help = decompress::EXIT_STATUS)]
    Decompress(conversion::ConversionArguments),
    /// Learn a template file from captures of CoAP; it shortens the first packets of such flows
    #[command(after_long_help = learn::EXIT_STATUS)]
    Learn(learn::LearnArguments),
    /// Print format, fields and outcome of each packet of a ROHC capture
    #[command(after_long_help = dissect::EXIT_STATUS)]
    Dissect(dissect::DissectArguments),
}

pub(crate) fn run(task: &RohcCommand) -> anyhow::Result<ExitCode> {
    match task {
        RohcCommand::Compress(arguments) => compress::run(arguments),
        RohcCommand::Decompress(arguments) => decompress::run(arguments),
        RohcCommand::Learn(arguments) => learn::run(arguments),
        RohcCommand::Dissect(arguments) => dissect::run(arguments),
    }
}
