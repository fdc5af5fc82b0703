//! `thinair tunnel run`: builds a plan from the settings, and runs the daemon.

use std::process::ExitCode;
#[cfg(target_os = "linux")]
use std::sync::Arc;

use clap::Args;
#[cfg(target_os = "linux")]
use thinair_tunnel::config;
use thinair_tunnel::config::Settings;
#[cfg(target_os = "linux")]
use thinair_tunnel::daemon::Daemon;
#[cfg(target_os = "linux")]
use thinair_tunnel::site_config::SiteConfig;

use super::options::TunnelOptions;
#[cfg(target_os = "linux")]
use super::page::PageProcess;
use super::sources::Folders;
use super::{describe, sources};
use crate::usage::Usage;

pub(super) const EXIT_STATUS: &str = "\
Examples: both ends of a tunnel, with copies of one key file\n  \
thinair tunnel keygen sat.key\n  \
thinair tunnel run udp://:7000 --key sat.key --address 10.9.0.1/30\n  \
thinair tunnel run udp://198.51.100.7:7000 --key sat.key --address 10.9.0.2/30\n\n\
Runs until SIGINT, SIGTERM or `thinair tunnel down`, and then undoes all its changes. Logs go to standard error; \
RUST_LOG filters them, for example RUST_LOG=thinair_tunnel=trace.\n\n\
Exit status: 0 after a request to end; 1 for a failure; 2 for a wrong configuration.";

#[derive(Args, Debug)]
pub(crate) struct TunnelArguments {
    #[command(flatten)]
    options: TunnelOptions,
    /// Log more; repeat for even more
    #[arg(long, short, action = clap::ArgAction::Count, help_heading = "Daemon")]
    verbose: u8,
}

pub(super) fn run(arguments: &TunnelArguments) -> anyhow::Result<ExitCode> {
    let options = default_name(arguments.options.clone())?;
    let files = sources::files(&options)?;
    let settings = sources::settings(&files, &options)?;
    crate::log::to_stderr(match arguments.verbose {
        0 => "info",
        1 => "info,thinair=debug",
        _ => "debug",
    });
    daemon(&settings, options)?;
    Ok(ExitCode::SUCCESS)
}

/// Chooses the first free interface name, if all settings are arguments and none names the interface. Several
/// tunnels can run on a host, also in different namespaces, which share the folder of sockets.
#[cfg(target_os = "linux")]
fn default_name(mut options: TunnelOptions) -> anyhow::Result<TunnelOptions> {
    use thinair_os::{Interface, Namespace};
    use thinair_tunnel::daemon::RunFolder;

    if options.config.is_some() || options.name.is_some() || options.keys.get("tun").is_some() {
        return Ok(options);
    }
    // A missing namespace is reported when it is needed.
    let namespace = options.keys.get("netns").and_then(|name| Namespace::open(name).ok());
    let is_taken = |name: &str| {
        // A persistent interface that is not in use is free.
        let taken = || Interface::named(name).is_ok_and(|interface| interface.is_running());
        let there = namespace.as_ref().map_or_else(|| Ok(taken()), |namespace| namespace.within(taken));
        there.unwrap_or(false) || RunFolder::is_in_use(&sources::folder_of(name))
    };
    let mut names = (0..1_000).map(|number| format!("thinair{number}"));
    if let Some(name) = names.find(|name| !is_taken(name)) {
        options.keys.set("tun", name);
    }
    Ok(options)
}

/// Other systems have no TUN interfaces.
#[cfg(not(target_os = "linux"))]
fn default_name(options: TunnelOptions) -> anyhow::Result<TunnelOptions> {
    Ok(options)
}

/// Runs the daemon until a signal or request ends it.
#[cfg(target_os = "linux")]
fn daemon(settings: &Settings, options: TunnelOptions) -> anyhow::Result<()> {
    use thinair_tunnel::daemon::{RunError, Source};
    let (folders, claimed) = Folders::claim(settings, options.name.as_deref())?;
    let Some(plan) = patient_plan(settings, &folders)? else { return Ok(()) };
    for note in describe::warnings(&plan) {
        tracing::warn!("{note}");
    }
    let again = options.clone();
    let source = Source {
        files: Box::new(move || sources::files(&again).map_err(|error| format!("{error:#}"))),
        config: Box::new(move |files, resolve| {
            let settings = sources::settings(files, &options).map_err(|error| error.to_string())?;
            sources::plan(&settings, &folders, resolve).map_err(|error| error.to_string())
        }),
    };
    let opened = Daemon::open(&plan, claimed, Some(Arc::new(source)));
    if let Err(RunError::Ended) = opened {
        return Ok(());
    }
    let mut daemon = opened.map_err(|error| match error {
        // Errors of the configuration, not of the system: another attempt would fail again.
        RunError::Budget(_) | RunError::Build(_) | RunError::Key(_) | RunError::Keys(_) => {
            Usage::error(error.to_string())
        }
        other => other.into(),
    })?;
    // After all rights are given up.
    let _page = page(&plan, &daemon)?;
    Ok(daemon.run()?)
}

/// Starts the page of a plan that has one.
#[cfg(target_os = "linux")]
fn page(plan: &SiteConfig, daemon: &Daemon) -> anyhow::Result<Option<PageProcess>> {
    let Some(address) = plan.seeing.http else { return Ok(None) };
    let Some(socket) = daemon.status_socket() else {
        tracing::warn!("no page, as it reads the status socket: give its path by --status");
        return Ok(None);
    };
    Ok(Some(PageProcess::start(address, socket)?))
}

/// Returns the plan, and waits for it while the name of another end cannot be resolved. `None`: a signal asked to end
/// meanwhile.
#[cfg(target_os = "linux")]
fn patient_plan(settings: &Settings, folders: &Folders) -> anyhow::Result<Option<SiteConfig>> {
    use std::time::{Duration, Instant};
    use thinair_os::{Signal, Signals};
    use thinair_tunnel::daemon;
    use thinair_tunnel::site_config::OnFailure;

    /// Time from one attempt to the next: the first, and the longest one.
    const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(15)];
    const POLL: Duration = Duration::from_millis(50);

    let inside = match config::inside(settings) {
        Ok(inside) => inside,
        Err(wrong) => {
            // With all other errors.
            sources::plan(settings, folders, &config::system_resolver)?;
            return Err(wrong.into());
        }
    };
    // Nothing leaves in clear while a name is looked up.
    let resolve = |host: &str, port| {
        daemon::block(folders.name(), &inside, None).map_err(std::io::Error::other)?;
        config::system_resolver(host, port)
    };
    let mut pause = PAUSES[0];
    // A signal that ends the wait must also end what has begun.
    let is_block = inside.on_failure == OnFailure::Block;
    let mut signals = is_block.then(Signals::take).transpose()?;
    loop {
        match sources::plan(settings, folders, &resolve) {
            Err(wrong) if wrong.may_pass() => {
                tracing::warn!("{wrong}; the next attempt is in {} s", pause.as_secs());
            }
            plan => return Ok(Some(plan?)),
        }
        let signals: &Signals = match &mut signals {
            Some(signals) => signals,
            none => none.insert(Signals::take()?),
        };
        let until = Instant::now() + pause;
        while Instant::now() < until {
            if let Some(Signal::End { .. }) = signals.poll() {
                daemon::lift(folders.name(), inside.namespace.as_deref())?;
                return Ok(None);
            }
            std::thread::sleep(POLL);
        }
        pause = (pause * 2).min(PAUSES[1]);
    }
}

/// Fails: this system is not supported.
#[cfg(not(target_os = "linux"))]
fn daemon(_settings: &Settings, _options: TunnelOptions) -> anyhow::Result<()> {
    anyhow::bail!("a tunnel needs Linux")
}
