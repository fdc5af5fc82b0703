//! `thinair segment`: the size of TCP segments, on sockets of this machine.

mod proxy;

pub(crate) use proxy::listen;

use std::process::ExitCode;

use clap::Subcommand;

use crate::rohc::Usage;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Carry TCP streams to one address, and cut what goes into the constrained network
    Proxy(proxy::Arguments),
}

pub(crate) fn run(task: &Task) -> anyhow::Result<ExitCode> {
    let Task::Proxy(arguments) = task;
    match proxy::run(arguments) {
        Err(error) if error.is::<Usage>() => {
            eprintln!("thinair: {error:#}");
            Ok(ExitCode::from(2))
        }
        result => result.map(|()| ExitCode::SUCCESS),
    }
}
