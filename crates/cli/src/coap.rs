//! `thinair coap`: resources of CoAP servers, and a server.

mod request;
mod serve;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Fetch a resource
    Get(request::Arguments),
    /// Serve a folder, and resources to test clients with
    Serve(serve::Arguments),
}

pub(crate) fn run(task: &Task) -> anyhow::Result<ExitCode> {
    match task {
        Task::Get(arguments) => request::run(arguments),
        Task::Serve(arguments) => serve::run(arguments),
    }
}
