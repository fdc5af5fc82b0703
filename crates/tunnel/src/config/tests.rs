//! Every default, every check, every example; and arbitrary text.

#![allow(clippy::unwrap_used)]

mod carriers;
mod documents;
mod ends;
mod fleet;
mod hold;
mod site_configs;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::{ConfigError, Settings, Surroundings, site_config};
use crate::site_config::SiteConfig;

/// An environment independent of this machine: one host name can be resolved, and templates are not read.
pub(super) fn surroundings() -> Surroundings<'static> {
    Surroundings {
        runtime: Some(PathBuf::from("/run/thinair/thinair0")),
        state: PathBuf::from("/var/lib/thinair/thinair0"),
        templates: &|file| Err(format!("{} is not read in tests", file.display())),
        tariff: &|file| Err(format!("{} is not read in tests", file.display())),
        resolve: &|host, port| match host {
            "gateway.example" => Ok(vec![SocketAddr::from(([192, 0, 2, 1], port))]),
            _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such host")),
        },
    }
}

pub(super) fn of_text(text: &str) -> Result<SiteConfig, ConfigError> {
    let mut settings = Settings::read(Path::new("/etc/thinair/sat.toml"), text)?;
    if let Some(file) = settings.peers_file()? {
        settings.add_peers(&file, PEERS)?;
    }
    site_config(&settings, &surroundings())
}

/// Peers of a file.
const PEERS: &str = "north ANJNyPtSrzb2EBE8iRx4G1XF2hO/PMa9+C5JUwrYuTk= 10.9.0.2/32\n\
                     south xTMqYybNmJW/q6JOtnYFih1eunHXi3CrIaSrIj52F3U= 10.9.0.3/32, fd09::3/128\n";

/// Returns the configuration of a carrier and of arguments as `[section] key = value`.
pub(super) fn of_arguments(url: &str, arguments: &[(&str, &str, &str)]) -> Result<SiteConfig, ConfigError> {
    let mut settings = Settings::new();
    settings.set("carrier", "url", "CARRIER", url);
    for (section, key, value) in arguments {
        settings.set(section, key, &format!("--{}", key.replace('_', "-")), *value);
    }
    site_config(&settings, &surroundings())
}

pub(super) const KEY: (&str, &str, &str) = ("security", "key", "sat.key");
pub(super) const OPEN: (&str, &str, &str) = ("security", "open", "true");
pub(super) const INSECURE: (&str, &str, &str) = ("security", "insecure", "true");

/// Checks that the configuration is rejected, with an error that contains all of `words`.
#[track_caller]
pub(super) fn complains(result: Result<SiteConfig, ConfigError>, words: &[&str]) {
    let complaint = match result {
        Ok(config) => panic!("no complaint: {config:?}"),
        Err(error) => error.to_string(),
    };
    for word in words {
        assert!(complaint.contains(word), "`{word}` is not in: {complaint}");
    }
}
