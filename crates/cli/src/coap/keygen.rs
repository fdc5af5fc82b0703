//! `thinair coap keygen`: makes a security context.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::options::{OptionOctets, identifier};

const EXIT_STATUS: &str = "\
Examples:\n  \
thinair coap keygen phone sensors/phone\n  \
thinair coap serve --oscore sensors\n  \
thinair coap get coap://192.0.2.7/time --oscore phone\n  \
thinair coap keygen phone.psk clients.psk --psk phone\n\n\
Exit status: 0 if both were made; 1 for a failure; 2 for wrong arguments.";

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_STATUS)]
pub(crate) struct KeygenArguments {
    /// New folder for the client, or with --psk a new file: the secret, 16 random octets, is in settings.json, which only its owner can read
    client: PathBuf,
    /// New folder for the server, or with --psk a file to add the key to, with the same secret; bring it there over a channel that nobody reads
    server: PathBuf,
    /// Sender ID of the client in hexadecimal, at most 7 octets, another one for each client of the server [default: 2
    /// random octets]
    #[arg(long, value_name = "HEX", value_parser = identifier, conflicts_with = "psk")]
    client_id: Option<OptionOctets>,
    /// Make a pre-shared key for coaps:// with this identity, which is sent without encryption
    #[arg(long, value_name = "IDENTITY")]
    psk: Option<String>,
}

#[cfg(target_os = "linux")]
pub(super) fn run(arguments: &KeygenArguments) -> anyhow::Result<ExitCode> {
    if let Some(identity) = &arguments.psk {
        thinair_services::coap::psk::create_pair(&arguments.client, &arguments.server, identity)?;
        return Ok(ExitCode::SUCCESS);
    }
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
