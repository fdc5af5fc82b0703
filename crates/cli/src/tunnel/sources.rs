//! Where configurations are from, and where a tunnel keeps its things.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use thinair_rohc::profile::coap::Base;
use thinair_tunnel::config::{self, Settings, Surroundings};
use thinair_tunnel::plan::Plan;

use super::options::TunnelOptions;
use crate::rohc::Usage;
use crate::template;

/// Where `--name NAME` finds NAME.toml.
const CONFIGURATIONS: &str = "/etc/thinair";

/// All that was told: of the file, of what it includes, of the arguments.
pub(super) fn settings(options: &TunnelOptions) -> anyhow::Result<Settings> {
    let by_name = options.name.as_ref().map(|name| Path::new(CONFIGURATIONS).join(format!("{name}.toml")));
    let mut settings = match options.config.clone().or(by_name) {
        Some(file) => read(&file)?,
        None if options.carrier.is_none() => {
            return Err(Usage::error(
                "there is no carrier; give one, as in udp://192.0.2.1:7000, or a file with --config FILE (`thinair \
                 tunnel config pair` prints one to begin with)",
            ));
        }
        None => Settings::new(),
    };
    options.tell(&mut settings);
    Ok(settings)
}

/// A file, and the one that it includes.
pub(super) fn read(file: &Path) -> anyhow::Result<Settings> {
    let mut settings = Settings::read(file, &text(file)?)?;
    if let Some(shared) = settings.include()? {
        settings.add_shared(&shared, &text(&shared)?)?;
    }
    Ok(settings)
}

fn text(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file)
        .map_err(|error| Usage::error(format!("{}: cannot be read: {error}", file.display())))
}

/// The plan of all that was told.
pub(super) fn plan(settings: &Settings, name: Option<&str>) -> anyhow::Result<Plan> {
    let interface = settings.interface()?;
    let name = name.unwrap_or(&interface);
    let surroundings = Surroundings {
        runtime: Some(runtime(name)),
        state: state(name),
        templates: &bases,
        resolve: &config::system_resolver,
    };
    Ok(config::plan(settings, &surroundings)?)
}

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
