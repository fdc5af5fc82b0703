//! `thinair tunnel`: IP packets over a carrier, with header compression and encryption.

mod check;
#[cfg(target_os = "linux")]
mod control;
mod describe;
mod keygen;
mod options;
mod run;
mod sources;
mod status;
mod template;

use std::process::ExitCode;

use clap::Subcommand;
use thinair_tunnel::config::ConfigError;

use crate::usage::Usage;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Run a tunnel in the foreground
    #[command(after_long_help = run::EXIT_STATUS)]
    Run(Box<run::Arguments>),
    /// Start the tunnel of /etc/thinair/NAME.toml in the background
    #[cfg(target_os = "linux")]
    #[command(after_long_help = control::UP)]
    Up(control::Arguments),
    /// Stop a tunnel, and clean up after one that was killed
    #[cfg(target_os = "linux")]
    #[command(after_long_help = control::DOWN)]
    Down(control::Arguments),
    /// Reload the configuration and keys of a running tunnel
    #[cfg(target_os = "linux")]
    #[command(after_long_help = control::RELOAD)]
    Reload(control::Arguments),
    /// Show packets, octets saved, contexts and drop reasons of a running tunnel
    #[command(after_long_help = status::EXIT_STATUS)]
    Status(status::Arguments),
    /// Create a key file, or rotate its keys
    #[command(after_long_help = keygen::EXIT_STATUS)]
    Keygen(keygen::Arguments),
    /// Check a configuration, and compare it with that of the other end
    #[command(after_long_help = check::EXIT_STATUS)]
    Check(check::Arguments),
    /// Print an example configuration with comments
    #[command(after_long_help = crate::help::PLAIN_EXIT_STATUS)]
    Config(template::Arguments),
}

pub(crate) fn run(task: &Task) -> anyhow::Result<ExitCode> {
    match task {
        Task::Run(arguments) => run::run(arguments),
        #[cfg(target_os = "linux")]
        Task::Up(arguments) => control::up(arguments),
        #[cfg(target_os = "linux")]
        Task::Down(arguments) => control::down(arguments),
        #[cfg(target_os = "linux")]
        Task::Reload(arguments) => control::reload(arguments),
        Task::Status(arguments) => status::run(arguments),
        Task::Keygen(arguments) => keygen::run(arguments),
        Task::Check(arguments) => check::run(arguments),
        Task::Config(arguments) => template::run(arguments),
    }
    .map_err(|error| match error.downcast_ref::<ConfigError>() {
        Some(wrong) if !wrong.may_pass() => Usage::error(format!("{error:#}")),
        _ => error,
    })
}
