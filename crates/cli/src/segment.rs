//! `thinair segment`: size of TCP segments on sockets of this machine.

mod proxy;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum SegmentCommand {
    /// Relay TCP streams to a server, with the segment size limited in the constrained network
    Proxy(proxy::ProxyArguments),
}

pub(crate) fn run(task: &SegmentCommand) -> anyhow::Result<ExitCode> {
    let SegmentCommand::Proxy(arguments) = task;
    proxy::run(arguments).map(|()| ExitCode::SUCCESS)
}
