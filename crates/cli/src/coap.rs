//! `thinair coap`: a client and a server for CoAP.

#[cfg(target_os = "linux")]
mod discover;
mod keygen;
pub(crate) mod names;
pub(crate) mod options;
#[cfg(target_os = "linux")]
mod output;
#[cfg(target_os = "linux")]
mod payload;
mod request;
mod serve;

use std::process::ExitCode;

use clap::Subcommand;
use thinair_coap::{Code, code};

#[derive(Debug, Subcommand)]
pub(crate) enum CoapCommand {
    /// Request one resource or several
    #[command(after_long_help = request::EXIT_STATUS)]
    Get(Box<request::Get>),
    /// Create or replace a resource
    #[command(after_long_help = request::EXIT_STATUS)]
    Put(Box<request::WithBody>),
    /// Send a payload to a resource
    #[command(after_long_help = request::EXIT_STATUS)]
    Post(Box<request::WithBody>),
    /// Delete a resource
    #[command(after_long_help = request::EXIT_STATUS)]
    Delete(Box<request::RequestArguments>),
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
    Discover(Box<request::RequestArguments>),
    /// Make a secret for a client and a server: a security context of OSCORE (RFC 8613), or a pre-shared key
    Keygen(keygen::KeygenArguments),
    /// Serve a folder, or test resources
    Serve(serve::ServeArguments),
}

pub(crate) fn run(task: &CoapCommand) -> anyhow::Result<ExitCode> {
    match task {
        CoapCommand::Get(arguments) => request::get(arguments),
        CoapCommand::Put(arguments) => request::run_with_body(Code::PUT, arguments),
        CoapCommand::Post(arguments) => request::run_with_body(Code::POST, arguments),
        CoapCommand::Delete(arguments) => request::run(Code::DELETE, arguments),
        CoapCommand::Fetch(arguments) => request::run_with_body(code::FETCH, arguments),
        CoapCommand::Patch(arguments) => request::run_with_body(code::PATCH, arguments),
        CoapCommand::Ipatch(arguments) => request::run_with_body(code::IPATCH, arguments),
        CoapCommand::Observe(arguments) => request::observe(arguments),
        CoapCommand::Discover(arguments) => request::discover(arguments),
        CoapCommand::Keygen(arguments) => keygen::run(arguments),
        CoapCommand::Serve(arguments) => serve::run(arguments),
    }
}
