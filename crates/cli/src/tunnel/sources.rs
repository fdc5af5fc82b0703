//! Sources of configurations, and folders of a tunnel.

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
use thinair_tunnel::site_config::{SiteConfig, Tariff};

use super::options::TunnelOptions;
use crate::template;
use crate::usage::Usage;

/// Folder in which `--name NAME` looks for NAME.toml.
const CONFIGURATIONS: &str = "/etc/thinair";

/// Configuration file of a named tunnel.
pub(super) fn file_of(name: &str) -> PathBuf {
    Path::new(CONFIGURATIONS).join(format!("{name}.toml"))
}

/// Returns the name of the tunnel whose configuration file this is; others are named by their interface.
pub(super) fn name_of(file: &Path) -> Option<&str> {
    let name = file.file_stem()?.to_str()?;
    (file == file_of(name)).then_some(name)
}

/// Returns the files of a configuration: the one given, the one that it includes, and the one with its peers. Empty if all settings
/// are arguments.
pub(super) fn files(options: &TunnelOptions) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let by_name = options.name.as_deref().map(file_of);
    match options.config.clone().or(by_name) {
        Some(file) => with_included(&file),
        None if options.carrier.is_none() => Err(Usage::error(
            "no carrier is given; give one, such as udp://192.0.2.1:7000, or a file with --config FILE (`thinair \
             tunnel config pair` prints an example)",
        )),
        None => Ok(Vec::new()),
    }
}

/// Reads a file, the one that it includes, and the one with its peers.
fn with_included(file: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let first = text(file)?;
    let settings = Settings::read(file, &first)?;
    let mut files = vec![(file.to_owned(), first)];
    for other in [settings.include()?, settings.peers_file()?].into_iter().flatten() {
        let text = text(&other)?;
        files.push((other, text));
    }
    Ok(files)
}

fn text(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file)
        .map_err(|error| Usage::error(format!("cannot read {}: {error}", file.display())))
}

/// Merges the settings of files and arguments.
pub(super) fn settings(
    files: &[(PathBuf, String)],
    options: &TunnelOptions,
) -> Result<Settings, config::ConfigError> {
    let mut settings = settings_of(files)?;
    options.apply(&mut settings);
    Ok(settings)
}

fn settings_of(files: &[(PathBuf, String)]) -> Result<Settings, config::ConfigError> {
    let [(file, text), others @ ..] = files else { return Ok(Settings::new()) };
    let mut settings = Settings::read(file, text)?;
    let peers = settings.peers_file()?;
    for (file, text) in others {
        if peers.as_ref() == Some(file) {
            settings.add_peers(file, text)?;
        } else {
            settings.add_shared(file, text)?;
        }
    }
    Ok(settings)
}

/// Reads the settings of a file, and of those that it names.
pub(super) fn read(file: &Path) -> anyhow::Result<Settings> {
    Ok(settings_of(&with_included(file)?)?)
}

/// Folders of a tunnel. They are determined once: a daemon that changes its user would find other ones later.
#[derive(Clone, Debug)]
pub(super) struct Folders {
    runtime: PathBuf,
    state: PathBuf,
}

impl Folders {
    /// Returns the name of the tunnel.
    #[cfg(target_os = "linux")]
    pub(super) fn name(&self) -> &str {
        self.runtime.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Returns the folders of a tunnel. `name`: its name, if it differs from that of its interface.
    pub(super) fn of(settings: &Settings, name: Option<&str>) -> Result<Self, config::ConfigError> {
        let interface = settings.interface()?;
        let name = name.unwrap_or(&interface);
        Ok(Self { runtime: runtime(name), state: state(name) })
    }

    /// Returns the folders of a starting tunnel, after locking the first one. A number distinguishes
    /// interfaces of one name in several namespaces, which share these folders. A tunnel without access to a
    /// folder runs without it.
    #[cfg(target_os = "linux")]
    pub(super) fn claim(
        settings: &Settings,
        name: Option<&str>,
    ) -> anyhow::Result<(Self, Option<RunFolder>)> {
        // A tunnel that is ending, or the helper of one that was killed, may still be undoing its changes.
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

/// Returns the plan of all settings.
pub(super) fn plan(
    settings: &Settings,
    folders: &Folders,
    resolve: &Resolve<'_>,
) -> Result<SiteConfig, config::ConfigError> {
    let Folders { runtime, state } = folders.clone();
    let surroundings =
        Surroundings { runtime: Some(runtime), state, templates: &bases, tariff: &tariff, resolve };
    config::site_config(settings, &surroundings)
}

/// Resolver of host names.
pub(super) type Resolve<'r> = dyn Fn(&str, u16) -> std::io::Result<Vec<SocketAddr>> + 'r;

/// Reads a price list for a tunnel.
pub(super) fn tariff(file: &Path) -> Result<Tariff, String> {
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {name}: {error}"))?;
    let tariff = Tariff::read(&text).map_err(|error| format!("{name}, {error}"))?;
    match tariff.session {
        None => Ok(tariff),
        Some(_) => Err(format!("{name}: prices of sessions are not computed for a tunnel")),
    }
}

fn bases(file: &Path) -> Result<Vec<Base>, String> {
    template::read(file).map_err(|error| format!("{error:#}"))
}

/// Folder of the status socket: the one that systemd created, or the default for this user.
fn runtime(name: &str) -> PathBuf {
    folder_of_unit("RUNTIME_DIRECTORY").unwrap_or_else(|| runtime_root().join(name))
}

/// Parent folder of the sockets of all tunnels.
pub(super) fn runtime_root() -> PathBuf {
    match env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if !is_root() && !folder.is_empty() => PathBuf::from(folder).join("thinair"),
        _ => PathBuf::from("/run/thinair"),
    }
}

/// Folder for epochs.
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

/// Returns a folder that systemd created for the unit; the first, if there are several.
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

/// Returns the folder of a tunnel with that name.
pub(super) fn folder_of(name: &str) -> PathBuf {
    let roots = [runtime_root(), PathBuf::from("/run/thinair")];
    let there = roots.iter().map(|root| root.join(name)).find(|folder| folder.exists());
    there.unwrap_or_else(|| roots[0].join(name))
}

/// Returns the socket of a tunnel with that name, or of the only one that runs.
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
        // Logs of tunnels are files beside their folders.
        let folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
        let sockets = folders.map(|folder| folder.join(config::STATUS_SOCKET));
        // A folder of another user does not tell: the attempt to connect does.
        found.extend(sockets.filter(|socket| socket.try_exists().unwrap_or(true)));
    }
    found.sort();
    match &found[..] {
        [one] => Ok(one.clone()),
        [] => Err(Usage::error(format!(
            "no status socket in {}; give the path of the socket, or --name NAME",
            roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(" or ")
        ))),
        several => {
            let names = several.iter().filter_map(|socket| socket.parent()?.file_name()?.to_str());
            let names: Vec<_> = names.collect();
            Err(Usage::error(format!("several tunnels run; choose one with --name: {}", names.join(", "))))
        }
    }
}
