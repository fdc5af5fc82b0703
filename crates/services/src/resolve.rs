//! Resolution of a host to addresses.

use std::net::{SocketAddr, SocketAddrV6, ToSocketAddrs as _};

use thinair_coap::uri::Host;
use thinair_os::Interface;

use crate::wait::{Wait, Woken};

/// Reason why there are no addresses.
#[derive(Debug)]
pub enum ResolveError {
    /// The name is unknown, or cannot be resolved.
    Unknown {
        /// Host as in the URI.
        host: String,
        /// Reason in the words of the system.
        why: String,
    },
    /// Interrupted by a signal.
    Interrupted,
    /// The system has no room for files or threads.
    System(thinair_os::Error),
}

impl From<thinair_os::Error> for ResolveError {
    fn from(why: thinair_os::Error) -> Self {
        Self::System(why)
    }
}

/// Returns at least one address, in the order in which they are to be tried, which is the system's (RFC
/// 6724).
///
/// # Errors
/// See [`ResolveError`].
pub fn resolve(host: &Host, port: u16, waiting: &mut Wait<'_>) -> Result<Vec<SocketAddr>, ResolveError> {
    let refused = |why: String| ResolveError::Unknown { host: host.to_string(), why };
    let name = match host {
        Host::V4(address) => return Ok(vec![(*address, port).into()]),
        Host::V6 { address, zone } => {
            let scope = match zone {
                None => 0,
                Some(zone) => scope(zone).map_err(|error| refused(error.to_string()))?,
            };
            return Ok(vec![SocketAddrV6::new(*address, port, 0, scope).into()]);
        }
        Host::Name(name) => name.clone(),
    };
    let found = waiting
        .elsewhere(move || (name.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>))?;
    let mut addresses = match found {
        Ok(Ok(addresses)) => addresses,
        Ok(Err(why)) => return Err(refused(why.to_string())),
        Err(Woken::Interrupted) => return Err(ResolveError::Interrupted),
        Err(_) => return Err(refused("the name servers do not answer in time".to_owned())),
    };
    // A name may be found twice, for example in two files.
    let mut known = Vec::new();
    addresses.retain(|address| {
        let is_new = !known.contains(address);
        known.push(*address);
        is_new
    });
    if addresses.is_empty() { Err(refused("it has no address".to_owned())) } else { Ok(addresses) }
}

/// Returns the number of an interface, given by its name or as a number. RFC 4007, section 11.2.
fn scope(zone: &str) -> Result<u32, thinair_os::Error> {
    match Interface::named(zone) {
        Ok(interface) => Ok(interface.index()),
        Err(error) => zone.parse().map_err(|_| error),
    }
}
