//! `thinair segment`: the size of TCP segments, on sockets of this machine.

mod proxy;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Carry TCP streams to one address, and cut what goes into the constrained network
    Proxy(proxy::Arguments),
}

pub(crate) fn run(task: &Task) -> anyhow::Result<ExitCode> {
    let Task::Proxy(arguments) = task;
    proxy::run(arguments).map(|()| ExitCode::SUCCESS)
}
