//! `thinair tunnel config`: example configurations.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use thinair_tunnel::config::templates::Template;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Kind of configuration to print
    #[arg(value_enum, value_name = "KIND")]
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Two ends over UDP
    Pair,
    /// One end with several peers over UDP
    Hub,
    /// Mesh of sites: settings of one site
    Mesh,
    /// Mesh of sites: common settings, which the file of `mesh` includes
    Shared,
    /// Receiver of a one-way transport stream
    OneWay,
    /// Two ends of a serial line
    Serial,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let template = match arguments.kind {
        Kind::Pair => Template::Pair,
        Kind::Hub => Template::Hub,
        Kind::Mesh => Template::Mesh,
        Kind::Shared => Template::Shared,
        Kind::OneWay => Template::OneWay,
        Kind::Serial => Template::Serial,
    };
    crate::terminal::print(template.text())?;
    Ok(ExitCode::SUCCESS)
}
