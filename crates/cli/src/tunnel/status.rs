//! `thinair tunnel status`: status of a running tunnel.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use thinair_tunnel::status::Status;
use thinair_tunnel::status::socket::ask;
use thinair_tunnel::status::text::render;

use super::sources;
use crate::terminal::{print, style};

/// Width of the output in columns, if it is not a terminal.
const PLAIN_WIDTH: usize = 120;

/// Interval of updates.
const INTERVAL: Duration = Duration::from_secs(1);

/// Cursor home, and erase to the end of the screen (ECMA-48: CUP, ED).
const CLEAR: &str = "\x1b[H\x1b[J";

pub(super) const EXIT_STATUS: &str = "\
PATH and --name can be omitted if a single tunnel runs, with its status socket in /run/thinair.\n\n\
Exit status: 0 for success; 1 if the tunnel does not answer; 2 for wrong arguments.";

#[derive(Args, Debug)]
pub(crate) struct StatusArguments {
    /// Path of the status socket
    #[arg(value_name = "PATH", conflicts_with = "name")]
    path: Option<PathBuf>,
    /// Name of the tunnel; its status socket is /run/thinair/NAME/status.sock
    #[arg(long, value_name = "NAME", value_parser = super::options::name)]
    name: Option<String>,
    /// Refresh the status every second, until interrupted
    #[arg(long)]
    watch: bool,
    /// Print JSON (thinair.tunnel.status/1); with --watch one line per update
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &StatusArguments) -> anyhow::Result<ExitCode> {
    let socket = match &arguments.path {
        Some(path) => path.clone(),
        None => sources::status_socket(arguments.name.as_deref())?,
    };
    show(&socket, arguments.watch, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Requests the status from the daemon, and prints it.
fn show(socket: &Path, watch: bool, json: bool) -> anyhow::Result<()> {
    let mut before: Option<Status> = None;
    loop {
        let now = ask(socket)?;
        let text = match (json, watch) {
            (true, true) => serde_json::to_string(&now)? + "\n",
            (true, false) => serde_json::to_string_pretty(&now)? + "\n",
            (false, _) => render(before.as_ref(), &now, &style(PLAIN_WIDTH)),
        };
        // A terminal shows one status at a time.
        let clear = if watch && !json && std::io::stdout().is_terminal() { CLEAR } else { "" };
        print(&format!("{clear}{text}"))?;
        if !watch {
            return Ok(());
        }
        before = Some(now);
        std::thread::sleep(INTERVAL);
    }
}
