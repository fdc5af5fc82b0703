//! `thinair coap pair`: exchanges the credentials of a client and a server.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

const EXIT_STATUS: &str = "\
Examples:\n  \
thinair coap pair phone sensor\n  \
thinair coap serve --edhoc sensor/own.key\n  \
thinair coap get coap://192.0.2.7/time --edhoc phone/own.key\n\n\
Exit status: 0 if both folders have what they need; 1 for a failure; 2 for wrong arguments.";

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_STATUS)]
pub(crate) struct PairArguments {
    /// Folder of the client
    ///
    /// It gets own.key, a private key that only its owner can read, and own.ccs, its credential, unless it has them; and the
    /// credential of the server, with the name of its folder.
    client: PathBuf,
    /// Folder of the server, which gets the same, and the credential of the client
    server: PathBuf,
}

#[cfg(target_os = "linux")]
pub(super) fn run(arguments: &PairArguments) -> anyhow::Result<ExitCode> {
    thinair_services::coap::edhoc::pair(&arguments.client, &arguments.server)?;
    Ok(ExitCode::SUCCESS)
}

/// Fails: this system is not supported.
#[cfg(not(target_os = "linux"))]
pub(super) fn run(_: &PairArguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("private keys need Linux")
}
