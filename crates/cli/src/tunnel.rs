//! `thinair tunnel`: IP packets through a carrier, in fewer octets and sealed.

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

use crate::rohc::Usage;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Carry IP packets until it is told to end
    #[command(after_help = run::EXIT_STATUS)]
    Run(Box<run::Arguments>),
    /// Start a tunnel in the background: that of /etc/thinair/NAME.toml
    #[cfg(target_os = "linux")]
    #[command(after_help = control::UP)]
    Up(control::Arguments),
    /// End a tunnel, and remove what one that was killed has left
    #[cfg(target_os = "linux")]
    #[command(after_help = control::DOWN)]
    Down(control::Arguments),
    /// Let a tunnel that runs read its configuration and its keys again
    #[cfg(target_os = "linux")]
    #[command(after_help = control::RELOAD)]
    Reload(control::Arguments),
    /// What a tunnel that runs does: packets, octets saved, contexts, what was dropped and why
    #[command(after_help = status::EXIT_STATUS)]
    Status(status::Arguments),
    /// Make a key file, or put a second key into one
    #[command(after_help = keygen::EXIT_STATUS)]
    Keygen(keygen::Arguments),
    /// Look a configuration over without starting anything, and compare those of two ends
    #[command(after_help = check::EXIT_STATUS)]
    Check(check::Arguments),
    /// Print a configuration to begin with
    Config(template::Arguments),
}

pub(crate) fn run(task: &Task) -> anyhow::Result<ExitCode> {
    let result = match task {
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
    };
    match result {
        Err(error)
            if error.is::<Usage>()
                || error.downcast_ref::<ConfigError>().is_some_and(|error| !error.may_pass()) =>
        {
            eprintln!("thinair: {error:#}");
            Ok(ExitCode::from(2))
        }
        result => result,
    }
}
