//! `thinair tunnel`: IP packets over a carrier, with header compression and encryption.

mod bill;
mod check;
#[cfg(target_os = "linux")]
mod control;
mod describe;
mod keygen;
mod options;
mod page;
mod run;
mod sources;
mod status;
mod template;

use std::process::ExitCode;

use clap::Subcommand;
use thinair_tunnel::config::ConfigError;

use crate::usage::Usage;

#[derive(Debug, Subcommand)]
pub(crate) enum TunnelCommand {
    /// Run a tunnel in the foreground
    #[command(after_long_help = run::EXIT_STATUS)]
    Run(Box<run::TunnelArguments>),
    /// Start the tunnel of /etc/thinair/NAME.toml in the background
    #[cfg(target_os = "linux")]
    #[command(after_long_help = control::UP)]
    Up(control::ControlArguments),
    /// Stop a tunnel, and clean up after one that was killed
    #[cfg(target_os = "linux")]
    #[command(after_long_help = control::DOWN)]
    Down(control::ControlArguments),
    /// Reload the configuration and keys of a running tunnel
    #[cfg(target_os = "linux")]
    #[command(after_long_help = control::RELOAD)]
    Reload(control::ControlArguments),
    /// Show packets, octets saved, contexts and drop reasons of a running tunnel
    #[command(after_long_help = status::EXIT_STATUS)]
    Status(status::StatusArguments),
    /// Serve a live page of a running tunnel, and metrics for Prometheus
    #[command(after_long_help = page::EXIT_STATUS)]
    Page(page::PageArguments),
    /// Create a key file, or rotate its keys
    #[command(after_long_help = keygen::EXIT_STATUS)]
    Keygen(keygen::KeygenArguments),
    /// Check a configuration, and compare it with that of the other end
    #[command(after_long_help = check::EXIT_STATUS)]
    Check(check::CheckArguments),
    /// Show what a configuration costs, by cause, before its first packet
    #[command(after_long_help = bill::EXIT_STATUS)]
    Bill(bill::BillArguments),
    /// Print an example configuration with comments
    #[command(after_long_help = crate::help::PLAIN_EXIT_STATUS)]
    Config(template::ExampleArguments),
}

pub(crate) fn run(task: &TunnelCommand) -> anyhow::Result<ExitCode> {
    match task {
        TunnelCommand::Run(arguments) => run::run(arguments),
        #[cfg(target_os = "linux")]
        TunnelCommand::Up(arguments) => control::up(arguments),
        #[cfg(target_os = "linux")]
        TunnelCommand::Down(arguments) => control::down(arguments),
        #[cfg(target_os = "linux")]
        TunnelCommand::Reload(arguments) => control::reload(arguments),
        TunnelCommand::Status(arguments) => status::run(arguments),
        TunnelCommand::Page(arguments) => page::run(arguments),
        TunnelCommand::Keygen(arguments) => keygen::run(arguments),
        TunnelCommand::Check(arguments) => check::run(arguments),
        TunnelCommand::Bill(arguments) => bill::run(arguments),
        TunnelCommand::Config(arguments) => template::run(arguments),
    }
    .map_err(|error| match error.downcast_ref::<ConfigError>() {
        Some(wrong) if !wrong.may_pass() => Usage::error(format!("{error:#}")),
        _ => error,
    })
}
