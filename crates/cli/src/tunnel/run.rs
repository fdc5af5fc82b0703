//! `thinair tunnel run`: a plan, and the daemon that does it.

use std::process::ExitCode;

use clap::Args;
use thinair_tunnel::plan::Plan;
use tracing_subscriber::EnvFilter;

use super::options::TunnelOptions;
use super::{describe, sources};
use crate::rohc::Usage;

pub(super) const EXIT_STATUS: &str = "\
Examples: two ends of a tunnel, with the same key file at both\n  \
thinair tunnel keygen sat.key\n  \
thinair tunnel run udp://:7000 --key sat.key --address 10.9.0.1/30\n  \
thinair tunnel run udp://198.51.100.7:7000 --key sat.key --address 10.9.0.2/30\n\n\
It ends cleanly on SIGINT and SIGTERM. Logs go to standard error; RUST_LOG chooses them, as in \
RUST_LOG=thinair_tunnel=trace.\n\n\
Exit status: 0 if it was told to end; 1 for a failure; 2 for a wrong configuration.";

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: TunnelOptions,
    /// Log more; a second time, still more, but for what happens to each packet
    #[arg(long, short, action = clap::ArgAction::Count, help_heading = "Daemon")]
    verbose: u8,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let settings = sources::settings(&arguments.options)?;
    let plan = sources::plan(&settings, arguments.options.name.as_deref())?;
    log(arguments.verbose);
    for note in describe::warnings(&plan) {
        tracing::warn!("{note}");
    }
    daemon(&plan)?;
    Ok(ExitCode::SUCCESS)
}

/// Logs to standard error: RUST_LOG says what, or --verbose how much.
fn log(verbose: u8) {
    let level = match verbose {
        0 => "info",
        1 => "info,thinair=debug,thinair_tunnel=debug",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A service's log has times already.
    if std::env::var_os("JOURNAL_STREAM").is_some() {
        subscriber.without_time().with_ansi(false).init();
    } else {
        subscriber.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init();
    }
}

/// Runs the daemon until it is told to end.
#[cfg(target_os = "linux")]
fn daemon(plan: &Plan) -> anyhow::Result<()> {
    use thinair_tunnel::daemon::{Daemon, RunError};
    let mut daemon = Daemon::open(plan).map_err(|error| match error {
        // What is told, not what the system does: the next try is no better.
        RunError::Budget(_) | RunError::Build(_) | RunError::Key(_) | RunError::Keys(_) => {
            Usage::error(error.to_string())
        }
        other => other.into(),
    })?;
    Ok(daemon.run()?)
}

/// Elsewhere there is none.
#[cfg(not(target_os = "linux"))]
fn daemon(_plan: &Plan) -> anyhow::Result<()> {
    anyhow::bail!("a tunnel needs Linux")
}
