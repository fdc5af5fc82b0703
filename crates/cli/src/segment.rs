//! `thinair segment`: size of TCP segments on sockets of this machine.

mod proxy;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Relay TCP streams to a server, with the segment size limited in the constrained network
    Proxy(proxy::Arguments),
}

pub(crate) fn run(task: &Task) -> anyhow::Result<ExitCode> {
    let Task::Proxy(arguments) = task;
    proxy::run(arguments).map(|()| ExitCode::SUCCESS)
}
