//! `thinair coap keygen`: makes a private key with its credential, or a common secret.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::options::{OptionOctets, identifier};

const EXIT_STATUS: &str = "\
Examples:\n  \
thinair coap keygen sensor/own.key --subject sensor\n  \
thinair coap keygen phone sensors/phone\n  \
thinair coap keygen phone.psk clients.psk --psk phone\n\n\
`thinair coap pair` makes private keys for two ends, and exchanges their credentials.\n\n\
Exit status: 0 if all files were made; 1 for a failure; 2 for wrong arguments.";

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_STATUS)]
pub(crate) struct KeygenArguments {
    /// With SERVER: new folder for the client, with a common secret of 16 random octets in settings.json (OSCORE), or with --psk a
    /// new file. Without: new file for a private key (EDHOC). Only its owner can read it
    ///
    /// The private key is a COSE_Key of P-256. Its credential is written beside it, with the ending .ccs, and printed: each peer
    /// has a copy in the folder of its own key, and credentials of peers belong into this folder.
    client: PathBuf,
    /// New folder for the server, or with --psk a file to add the key to, with the same secret; bring it there over a channel that nobody reads
    server: Option<PathBuf>,
    /// Sender ID of the client in hexadecimal, at most 7 octets, another one for each client of the server [default: 2
    /// random octets]
    #[arg(long, value_name = "HEX", value_parser = identifier, requires = "server", conflicts_with = "psk")]
    client_id: Option<OptionOctets>,
    /// Identifier of the private key in hexadecimal, 1 to 7 octets, another one for each peer of an end. One octet below 18, or
    /// from 20 to 37, takes the fewest octets in messages [default: a random one below 18]
    #[arg(long, value_name = "HEX", value_parser = identifier, conflicts_with = "server")]
    kid: Option<OptionOctets>,
    /// Subject in the credential of the private key, at most 23 octets
    #[arg(long, value_name = "TEXT", default_value = "", conflicts_with = "server")]
    subject: String,
    /// Make a pre-shared key for coaps:// with this identity, which is sent without encryption
    #[arg(long, value_name = "IDENTITY", requires = "server")]
    psk: Option<String>,
}

#[cfg(target_os = "linux")]
pub(super) fn run(arguments: &KeygenArguments) -> anyhow::Result<ExitCode> {
    use thinair_services::coap::{edhoc, oscore, psk};

    let random = getrandom::u32()?.to_be_bytes();
    let given = |octets: &Option<OptionOctets>| octets.as_ref().map(|OptionOctets(octets)| octets.clone());
    if let (Some(server), Some(identity)) = (&arguments.server, &arguments.psk) {
        psk::create_pair(&arguments.client, server, identity)?;
    } else if let Some(server) = &arguments.server {
        let id = given(&arguments.client_id).unwrap_or_else(|| random[..2].to_vec());
        oscore::create_pair(&arguments.client, server, &id)?;
    } else {
        let kid = given(&arguments.kid).unwrap_or_else(|| vec![random[0] % 24]);
        let credential = edhoc::create(&arguments.client, &kid, &arguments.subject)?;
        crate::terminal::print(&format!("{credential}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails: this system is not supported.
#[cfg(not(target_os = "linux"))]
pub(super) fn run(_: &KeygenArguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("keys and security contexts need Linux")
}
