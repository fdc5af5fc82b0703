//! `thinair tunnel config`: example configurations.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use thinair_tunnel::config::templates::Template;

#[derive(Args, Debug)]
pub(crate) struct ExampleArguments {
    /// Kind of configuration to print
    #[arg(value_enum, value_name = "KIND")]
    kind: ExampleKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExampleKind {
    /// Two ends over UDP
    Pair,
    /// One end with several peers over UDP
    Hub,
    /// One end with up to 10,000 peers over UDP, in a file of their own
    Fleet,
    /// Mesh of sites: settings of one site
    Mesh,
    /// Mesh of sites: common settings, which the file of `mesh` includes
    Shared,
    /// Receiver of a one-way transport stream
    OneWay,
    /// Two ends of a serial line
    Serial,
}

pub(super) fn run(arguments: &ExampleArguments) -> anyhow::Result<ExitCode> {
    let template = match arguments.kind {
        ExampleKind::Pair => Template::Pair,
        ExampleKind::Hub => Template::Hub,
        ExampleKind::Fleet => Template::Fleet,
        ExampleKind::Mesh => Template::Mesh,
        ExampleKind::Shared => Template::Shared,
        ExampleKind::OneWay => Template::OneWay,
        ExampleKind::Serial => Template::Serial,
    };
    crate::terminal::print(template.text())?;
    Ok(ExitCode::SUCCESS)
}
