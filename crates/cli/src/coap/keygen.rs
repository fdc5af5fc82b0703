//! `thinair coap keygen`: makes a security context.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::options::{OptionOctets, identifier};

const EXIT_STATUS: &str = "\
Examples:\n  \
thinair coap keygen phone sensors/phone\n  \
thinair coap serve --oscore sensors\n  \
thinair coap get coap://192.0.2.7/time --oscore phone\n\n\
Exit status: 0 if both folders were made; 1 for a failure; 2 for wrong arguments.";

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_STATUS)]
pub(crate) struct KeygenArguments {
    /// New folder for the client: the secret, 16 random octets, is in settings.json, which only its owner can read
    client: PathBuf,
    /// New folder for the server, with the same secret; bring it there over a channel that nobody reads
    server: PathBuf,
    /// Sender ID of the client in hexadecimal, at most 7 octets, another one for each client of the server [default: 2
    /// random octets]
    #[arg(long, value_name = "HEX", value_parser = identifier)]
    client_id: Option<OptionOctets>,
}

#[cfg(target_os = "linux")]
pub(super) fn run(arguments: &KeygenArguments) -> anyhow::Result<ExitCode> {
    let id = match &arguments.client_id {
        Some(OptionOctets(id)) => id.clone(),
        None => getrandom::u32()?.to_be_bytes()[..2].to_vec(),
    };
    thinair_services::coap::oscore::create_pair(&arguments.client, &arguments.server, &id)?;
    Ok(ExitCode::SUCCESS)
}

/// Fails: this system is not supported.
#[cfg(not(target_os = "linux"))]
pub(super) fn run(_: &KeygenArguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("security contexts need Linux")
}
