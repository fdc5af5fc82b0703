//! `thinair coap`: a client and a server for CoAP.

#[cfg(target_os = "linux")]
mod discover;
pub(crate) mod names;
pub(crate) mod options;
#[cfg(target_os = "linux")]
mod output;
mod request;
mod serve;

use std::process::ExitCode;

use clap::Subcommand;
use thinair_coap::{Code, code};

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Request a resource
    #[command(after_long_help = request::EXIT_STATUS)]
    Get(Box<request::Arguments>),
    /// Create or replace a resource
    #[command(after_long_help = request::EXIT_STATUS)]
    Put(Box<request::WithBody>),
    /// Send a payload to a resource
    #[command(after_long_help = request::EXIT_STATUS)]
    Post(Box<request::WithBody>),
    /// Delete a resource
    #[command(after_long_help = request::EXIT_STATUS)]
    Delete(Box<request::Arguments>),
    /// Request part of a resource, selected by a payload (RFC 8132)
    #[command(after_long_help = request::EXIT_STATUS)]
    Fetch(Box<request::WithBody>),
    /// Modify part of a resource (RFC 8132)
    #[command(after_long_help = request::EXIT_STATUS)]
    Patch(Box<request::WithBody>),
    /// Modify part of a resource, idempotently (RFC 8132)
    #[command(after_long_help = request::EXIT_STATUS)]
    Ipatch(Box<request::WithBody>),
    /// Request a resource, and print each change of it (RFC 7641)
    #[command(after_long_help = request::EXIT_STATUS)]
    Observe(Box<request::Observe>),
    /// List the resources of a server (/.well-known/core, RFC 6690)
    #[command(after_long_help = request::EXIT_STATUS)]
    Discover(Box<request::Arguments>),
    /// Serve a folder, or test resources
    Serve(serve::Arguments),
}

pub(crate) fn run(task: &Task) -> anyhow::Result<ExitCode> {
    match task {
        Task::Get(arguments) => request::run(Code::GET, arguments),
        Task::Put(arguments) => request::run_with_body(Code::PUT, arguments),
        Task::Post(arguments) => request::run_with_body(Code::POST, arguments),
        Task::Delete(arguments) => request::run(Code::DELETE, arguments),
        Task::Fetch(arguments) => request::run_with_body(code::FETCH, arguments),
        Task::Patch(arguments) => request::run_with_body(code::PATCH, arguments),
        Task::Ipatch(arguments) => request::run_with_body(code::IPATCH, arguments),
        Task::Observe(arguments) => request::observe(arguments),
        Task::Discover(arguments) => request::discover(arguments),
        Task::Serve(arguments) => serve::run(arguments),
    }
}
