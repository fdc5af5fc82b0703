//! Files and flags become a plan.
//!
//! What is told is collected by key, wherever it comes from: `mtu` in `[carrier]` of a TOML file, behind the `?` of the
//! carrier's URL, or as an argument. [`plan`] checks all of it together and fills in what was left out. What cannot be
//! done as it was told is a [`ConfigError`], with the place and what to do about it.
//!
//! Nothing is opened here but the files of the configuration itself: devices, sockets and key files are the daemon's.

pub mod agreement;
mod carrier;
mod channel;
mod inside;
mod keys;
mod others;
mod security;
mod settings;
pub mod templates;
mod told;
mod url;
mod words;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};

use thinair_rohc::profile::coap::Base;

pub use inside::STATUS_SOCKET;
#[cfg(target_os = "linux")]
pub(crate) use inside::is_name_server;
pub use security::suite_name;
pub use settings::Settings;
pub use told::{ConfigError, Place};
#[cfg(target_os = "linux")]
pub(crate) use words::masked;

use crate::plan::{Carrier, Packaging, Plan, Security};

/// What a plan depends on besides what was told.
pub struct Surroundings<'s> {
    /// The folder of the tunnel while it runs: its lock, its sockets. `None`: there is none.
    pub runtime: Option<PathBuf>,
    /// The folder in which epochs are kept, if nobody says anything else.
    pub state: PathBuf,
    /// Reads a file with bases of profile 0x0081.
    pub templates: &'s dyn Fn(&Path) -> Result<Vec<Base>, String>,
    /// Looks up the addresses of a host.
    pub resolve: &'s dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>>,
}

/// The addresses of a host, as the system knows them.
///
/// # Errors
/// The system does not know it.
pub fn system_resolver(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

/// Makes a plan of all that was told.
///
/// # Errors
/// Something is wrong, missing, or contradicts something else.
pub fn plan(settings: &Settings, surroundings: &Surroundings<'_>) -> Result<Plan, ConfigError> {
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
    Ok(Plan {
        inside: inside?,
        carrier: carried.carrier,
        security,
        channel,
        others,
        seeing: inside::seeing(settings, surroundings)?,
        user: inside::user(settings)?,
        state: settings.section("daemon").path("state")?.unwrap_or_else(|| surroundings.state.clone()),
        runtime: surroundings.runtime.clone(),
    })
}

/// Whether what is sent can be answered; or why not.
fn answers(settings: &Settings, carried: &carrier::Carried) -> Result<Result<(), &'static str>, ConfigError> {
    if carried.is_one_way() {
        return Ok(Err("the carrier goes one way; take `mode` out, or give u"));
    }
    if others::is_mesh(settings) && !others::has_feedback(settings)? {
        return Ok(Err(
            "the sites of this mesh send none; give [mesh] `feedback` = true, or take `mode` out",
        ));
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests;
