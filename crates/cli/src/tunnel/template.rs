//! `thinair tunnel config`: configurations to begin with.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use thinair_tunnel::config::templates::Template;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Kind of configuration
    #[arg(value_enum, value_name = "KIND")]
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Two ends over UDP
    Pair,
    /// One end with several peers over UDP
    Hub,
    /// Sites that all hear each other: a site of its own
    Mesh,
    /// What all sites of a mesh share: the file that `mesh` includes
    Shared,
    /// A receiver of a transport stream that nobody answers
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
