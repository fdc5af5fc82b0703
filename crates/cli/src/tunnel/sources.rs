//! Where configurations are from, and where a tunnel keeps its things.

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::time::Duration;

use anyhow::Context as _;
use thinair_rohc::profile::coap::Base;
use thinair_tunnel::config::{self, Settings, Surroundings};
#[cfg(target_os = "linux")]
use thinair_tunnel::daemon::{RunFolder, RunFolderError};
use thinair_tunnel::plan::Plan;

use super::options::TunnelOptions;
use crate::template;
use crate::usage::Usage;

/// Where `--name NAME` finds NAME.toml.
const CONFIGURATIONS: &str = "/etc/thinair";

/// The file of a tunnel that is known by its name.
pub(super) fn file_of(name: &str) -> PathBuf {
    Path::new(CONFIGURATIONS).join(format!("{name}.toml"))
}

/// The files of a configuration: the one that was named, and the one that it includes. None where all is in arguments.
pub(super) fn files(options: &TunnelOptions) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let by_name = options.name.as_deref().map(file_of);
    match options.config.clone().or(by_name) {
        Some(file) => with_included(&file),
        None if options.carrier.is_none() => Err(Usage::error(
            "there is no carrier; give one, as in udp://192.0.2.1:7000, or a file with --config FILE (`thinair \
             tunnel config pair` prints one to begin with)",
        )),
        None => Ok(Vec::new()),
    }
}

/// A file, and the one that it includes.
fn with_included(file: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let first = text(file)?;
    let shared = Settings::read(file, &first)?.include()?;
    let mut files = vec![(file.to_owned(), first)];
    if let Some(shared) = shared {
        let text = text(&shared)?;
        files.push((shared, text));
    }
    Ok(files)
}

fn text(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file)
        .map_err(|error| Usage::error(format!("{}: cannot be read: {error}", file.display())))
}

/// The settings of files and arguments together.
pub(super) fn settings(
    files: &[(PathBuf, String)],
    options: &TunnelOptions,
) -> Result<Settings, config::ConfigError> {
    let mut settings = settings_of(files)?;
    options.tell(&mut settings);
    Ok(settings)
}

fn settings_of(files: &[(PathBuf, String)]) -> Result<Settings, config::ConfigError> {
    let [(file, text), shared @ ..] = files else { return Ok(Settings::new()) };
    let mut settings = Settings::read(file, text)?;
    for (file, text) in shared {
        settings.add_shared(file, text)?;
    }
    Ok(settings)
}

/// A file, and the one that it includes.
pub(super) fn read(file: &Path) -> anyhow::Result<Settings> {
    Ok(settings_of(&with_included(file)?)?)
}

/// Where a tunnel keeps its things. Found once: a daemon that has become another user would look elsewhere.
#[derive(Clone, Debug)]
pub(super) struct Folders {
    runtime: PathBuf,
    state: PathBuf,
}

impl Folders {
    /// Those of a tunnel. `name`: its name, if it has another one than its interface.
    pub(super) fn of(settings: &Settings, name: Option<&str>) -> Result<Self, config::ConfigError> {
        let interface = settings.interface()?;
        let name = name.unwrap_or(&interface);
        Ok(Self { runtime: runtime(name), state: state(name) })
    }

    /// Those of a tunnel that starts, with the first of them locked. Interfaces of one name in several namespaces, which share
    /// these folders, are told apart by a number. A tunnel that may not have a folder goes without.
    #[cfg(target_os = "linux")]
    pub(super) fn claim(
        settings: &Settings,
        name: Option<&str>,
    ) -> anyhow::Result<(Self, Option<RunFolder>)> {
        // Somebody who ends, or was killed, may still be undoing what it has changed.
        let patience = Duration::from_secs(if name.is_some() { 3 } else { 1 });
        let interface = settings.interface()?;
        let mut folders = Self::of(settings, name)?;
        for number in 2.. {
            let wait = if number == 2 { patience } else { Duration::ZERO };
            match RunFolder::claim(&folders.runtime, wait) {
                Ok(claimed) => return Ok((folders, Some(claimed))),
                Err(RunFolderError::InUse { .. }) if name.is_none() => {
                    let name = format!("{interface}-{number}");
                    folders = Self { runtime: runtime(&name), state: state(&name) };
                }
                Err(error @ RunFolderError::InUse { .. }) => return Err(error.into()),
                Err(error @ RunFolderError::Io { .. }) => {
                    let error = format!("{:#}", anyhow::Error::from(error));
                    tracing::warn!("no folder for sockets, so the tunnel cannot be reloaded: {error}");
                    break;
                }
            }
        }
        Ok((folders, None))
    }
}

/// The plan of all settings.
pub(super) fn plan(
    settings: &Settings,
    folders: &Folders,
    resolve: &Resolve<'_>,
) -> Result<Plan, config::ConfigError> {
    let Folders { runtime, state } = folders.clone();
    config::plan(settings, &Surroundings { runtime: Some(runtime), state, templates: &bases, resolve })
}

/// Looks up the addresses of a host.
pub(super) type Resolve<'r> = dyn Fn(&str, u16) -> std::io::Result<Vec<SocketAddr>> + 'r;

fn bases(file: &Path) -> Result<Vec<Base>, String> {
    template::read(file).map_err(|error| format!("{error:#}"))
}

/// Where the status socket of a tunnel is: what systemd made for it, or the place of its kind of user.
fn runtime(name: &str) -> PathBuf {
    folder_of_unit("RUNTIME_DIRECTORY").unwrap_or_else(|| runtime_root().join(name))
}

/// The folder in which there is one for each tunnel that runs.
pub(super) fn runtime_root() -> PathBuf {
    match env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if !is_root() && !folder.is_empty() => PathBuf::from(folder).join("thinair"),
        _ => PathBuf::from("/run/thinair"),
    }
}

/// Where epochs are kept.
fn state(name: &str) -> PathBuf {
    if let Some(folder) = folder_of_unit("STATE_DIRECTORY") {
        return folder;
    }
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let own = env::var_os("XDG_STATE_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    match own.or_else(home) {
        Some(folder) if !is_root() => folder.join("thinair").join(name),
        _ => Path::new("/var/lib/thinair").join(name),
    }
}

/// A folder that systemd made for the unit: the first, if there are several.
fn folder_of_unit(variable: &str) -> Option<PathBuf> {
    let folders = env::var(variable).ok()?;
    folders.split(':').next().filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

#[cfg(unix)]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// The folder of a tunnel of that name.
pub(super) fn folder_of(name: &str) -> PathBuf {
    let roots = [runtime_root(), PathBuf::from("/run/thinair")];
    let there = roots.iter().map(|root| root.join(name)).find(|folder| folder.exists());
    there.unwrap_or_else(|| roots[0].join(name))
}

/// The socket of a tunnel of that name; or of the only one that runs.
pub(super) fn status_socket(name: Option<&str>) -> anyhow::Result<PathBuf> {
    let mut roots = vec![runtime_root(), PathBuf::from("/run/thinair")];
    roots.dedup();
    if let Some(name) = name {
        let sockets = roots.iter().map(|root| root.join(name).join(config::STATUS_SOCKET));
        let there = sockets.clone().find(|socket| socket.exists());
        return there.or_else(|| sockets.clone().next()).context("a folder");
    }
    let mut found = Vec::new();
    for root in &roots {
        let Ok(entries) = std::fs::read_dir(root) else { continue };
        let sockets = entries.flatten().map(|entry| entry.path().join(config::STATUS_SOCKET));
        found.extend(sockets.filter(|socket| socket.exists()));
    }
    found.sort();
    match &found[..] {
        [one] => Ok(one.clone()),
        [] => Err(Usage::error(format!(
            "no tunnel runs whose status socket is in {}; give its path, or --name NAME",
            roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(" or ")
        ))),
        several => {
            let names = several.iter().filter_map(|socket| socket.parent()?.file_name()?.to_str());
            let names: Vec<_> = names.collect();
            Err(Usage::error(format!("several tunnels run; give --name and one of {}", names.join(", "))))
        }
    }
}
