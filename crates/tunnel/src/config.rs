//! Files and arguments become the configuration of a site.
//!
//! Values are collected by key, from all sources: `mtu`, for instance, in `[carrier]` of a TOML file, after
//! the `?` of the carrier's URL, or as an argument. [`site_config`] checks all values together and fills in
//! defaults. A [`ConfigError`] contains the place of a wrong value, and advice.
//!
//! Only the files of the configuration itself are opened here; devices, sockets and key files are opened by
//! the daemon.

pub mod agreement;
mod carrier;
mod channel;
mod fleet;
mod hold;
mod inside;
mod keys;
mod others;
mod security;
mod setting;
mod settings;
pub mod templates;
mod url;
mod words;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};

use thinair_rohc::profile::coap::Base;

#[cfg(target_os = "linux")]
pub use inside::{STATUS_SOCKET, inside, loopback};
pub use keys::{CommandOption, OptionValues};
pub use security::suite_name;
pub use setting::{ConfigError, SettingPlace};
pub use settings::Settings;
pub(crate) use words::masked;

use crate::idle::IdleBudget;
use crate::site_config::{Carrier, Packaging, Security, SiteConfig, Tariff};

/// Environment on which a configuration depends.
pub struct Surroundings<'s> {
    /// Folder of the tunnel while it runs, for its lock and its sockets. `None`: no folder.
    pub runtime: Option<PathBuf>,
    /// Default folder for epochs.
    pub state: PathBuf,
    /// Reads a file with bases of profile 0x0181.
    pub templates: &'s dyn Fn(&Path) -> Result<Vec<Base>, String>,
    /// Reads a price list.
    pub tariff: &'s dyn Fn(&Path) -> Result<Tariff, String>,
    /// Resolves a host name to addresses.
    pub resolve: &'s dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>>,
}

/// Resolves a host name with the system resolver.
///
/// # Errors
/// The name cannot be resolved.
pub fn system_resolver(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

/// Makes a configuration of the settings.
///
/// # Errors
/// A setting is wrong or missing, or contradicts another one.
pub fn site_config(settings: &Settings, surroundings: &Surroundings<'_>) -> Result<SiteConfig, ConfigError> {
    let scheme = carrier::scheme(settings)?;
    let security = security::security(settings, scheme, others::is_mesh(settings))?;
    let inside = inside::inside(settings);
    let outside = || {
        let mut carried = carrier::carried(settings, &security, surroundings)?;
        let others = others::others(settings, &mut carried, &security, surroundings)?;
        Ok::<_, ConfigError>((carried, others))
    };
    let (carried, others) = match (outside(), &inside) {
        (Err(outside), Err(inside)) => return Err(outside.and(inside)),
        (outside, _) => outside?,
    };
    let answers = answers(settings, &carried)?;
    let has_types = match &carried.carrier {
        Carrier::Udp { packaging, .. } | Carrier::File { packaging, .. } => *packaging != Packaging::Packed,
        Carrier::Serial { .. } => false,
    };
    let is_open = matches!(security, Security::Open);
    let has_two_ends = !is_open && !carried.is_one_way() && !others::is_mesh(settings);
    let channel = channel::channel(settings, answers, has_types, has_two_ends, surroundings)?;
    let idle_budget = carried.idle_budget(&others)?;
    let mut config = SiteConfig {
        inside: inside?,
        carrier: carried.carrier,
        security,
        channel,
        others,
        hold: hold::hold(settings)?,
        tariff: carried.tariff,
        idle: None,
        bare_keepalive: carried.bare_keepalive,
        seeing: inside::seeing(settings, surroundings)?,
        user: inside::user(settings)?,
        offloads: inside::offloads(settings)?,
        state: settings.section("daemon").path("state")?.unwrap_or_else(|| surroundings.state.clone()),
        runtime: surroundings.runtime.clone(),
    };
    config.idle = idle_budget.and_then(|octets| IdleBudget::apply(octets, &mut config));
    Ok(config)
}

/// Returns whether the receiver can answer, or the reason why it cannot.
fn answers(
    settings: &Settings,
    carried: &carrier::CarrierSettings,
) -> Result<Result<(), &'static str>, ConfigError> {
    if carried.is_one_way() {
        return Ok(Err("the carrier is one-way; remove `mode`, or give u"));
    }
    if others::is_mesh(settings) && !others::has_feedback(settings)? {
        return Ok(Err(
            "the sites of this mesh send none; set `feedback = true` in [mesh], or remove `mode`",
        ));
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests;
