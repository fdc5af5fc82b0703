//! `thinair tunnel up`, `down` and `reload`: control of tunnels by name.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use thinair_tunnel::daemon::control::{self, Verb};
use thinair_tunnel::daemon::{RunFolder, clean_up};

use super::sources;

pub(super) const UP: &str = "\
Reads /etc/thinair/NAME.toml, and returns when the tunnel is open. The log is /run/thinair/NAME.log. Under systemd use \
`systemctl start thinair-tunnel@NAME` instead.\n\n\
Exit status: 0 if the tunnel runs; 1 for a failure; 2 for a wrong configuration.";

pub(super) const DOWN: &str = "\
Also cleans up after a tunnel that was killed: routing rules, name servers, sockets.\n\n\
Exit status: 0 if the tunnel no longer runs; 1 for a failure.";

pub(super) const RELOAD: &str = "\
Changes peers, their keys and networks, addresses, routes and name servers of the interface, without losing a packet. Other \
changes need a restart; the command lists them.\n\n\
Exit status: 0 if the new configuration is in use; 1 if nothing was changed.";

/// Time limit for a tunnel to start, and to end.
const PATIENCE: Duration = Duration::from_secs(15);

/// Polling interval.
const INTERVAL: Duration = Duration::from_millis(20);

#[derive(Args, Debug)]
pub(crate) struct ControlArguments {
    /// Name of the tunnel, or of its interface if it was started without a name
    #[arg(value_name = "NAME", value_parser = super::options::name)]
    name: String,
}

pub(super) fn up(arguments: &ControlArguments) -> anyhow::Result<ExitCode> {
    let name = &arguments.name;
    let folder = sources::folder_of(name);
    if RunFolder::is_in_use(&folder) {
        bail!("{name} is up already; apply a changed configuration with `thinair tunnel reload {name}`");
    }
    // Outside the folder of the tunnel, which is removed when it ends.
    let log = folder.with_extension("log");
    let parent = log.parent().unwrap_or(Path::new("/run"));
    std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    let mut file = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&log)
        .with_context(|| format!("cannot write {}", log.display()))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["tunnel", "run", "--name", name]).stdin(Stdio::null()).stdout(Stdio::null());
    // A process group of its own, so that signals of this terminal do not reach it.
    let mut child =
        command.stderr(file.try_clone()?).process_group(0).spawn().context("cannot start the tunnel")?;
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait()? {
            let mut text = String::new();
            file.seek(SeekFrom::Start(0))?;
            file.read_to_string(&mut text)?;
            eprint!("{text}");
            return Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)));
        }
        if folder.join(control::CONTROL_SOCKET).exists() {
            eprintln!("{name} is up; its log is {}", log.display());
            return Ok(ExitCode::SUCCESS);
        }
        if Instant::now() >= until {
            bail!("{name} did not start within {} s; its log is {}", PATIENCE.as_secs(), log.display());
        }
        std::thread::sleep(INTERVAL);
    }
}

pub(super) fn down(arguments: &ControlArguments) -> anyhow::Result<ExitCode> {
    let name = &arguments.name;
    let folder = sources::folder_of(name);
    match control::ask(&folder, Verb::Stop) {
        Ok(_) => {
            let until = Instant::now() + PATIENCE;
            while RunFolder::is_in_use(&folder) {
                if Instant::now() >= until {
                    bail!(
                        "{name} did not end within {} s; stop it with SIGKILL, then run this command again",
                        PATIENCE.as_secs()
                    );
                }
                std::thread::sleep(INTERVAL);
            }
            eprintln!("{name} is down");
        }
        Err(error) if is_nobody(&error) => {
            if RunFolder::is_in_use(&folder) {
                bail!("{name} runs without a control socket in {}; end it with SIGTERM", folder.display());
            }
            let namespace = sources::read(&sources::file_of(name)).ok().and_then(|file| file.namespace());
            let rules = clean_up(&folder, namespace.as_deref())?;
            eprintln!("{name} does not run; removed {rules} routing rules that it had left");
        }
        Err(error) => return Err(error).with_context(|| format!("no answer from {name}")),
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn reload(arguments: &ControlArguments) -> anyhow::Result<ExitCode> {
    let name = &arguments.name;
    let answer = control::ask(&sources::folder_of(name), Verb::Reload);
    let answer = match answer {
        Err(error) if is_nobody(&error) => {
            bail!("{name} does not run; start it with `thinair tunnel up {name}`")
        }
        answer => answer.with_context(|| format!("no answer from {name}"))?,
    };
    for message in &answer.messages {
        eprintln!("{name}: {message}");
    }
    Ok(if answer.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// True if the error means that no tunnel listens.
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}
