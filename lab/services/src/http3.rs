//! HTTP/3 (RFC 9114) over QUIC (RFC 9000): one object that is [fetched](fetch), and a folder that is [served](Server).
//!
//! Protocol and TLS are those of quinn, rustls and h3, with what a constrained link does not need left out: no probes for a
//! larger MTU, no grease, one ticket. What is said beside that is what [`crate::http`] says: no header that need not be. A
//! datagram of QUIC has at least 1,200 octets at first (RFC 9000, section 14), so that a path needs an MTU of 1,228 over IPv4 and
//! 1,248 over IPv6: what is smaller carries none of it.

mod certificate;
mod client;
mod server;

pub use certificate::{Identity, IdentityError, Trust};
pub use client::{FetchError, Outcome, Report, Task, fetch};
pub use server::{Server, ServerError, Settings, Statistics};

use std::sync::Arc;

use quinn::{MtuDiscoveryConfig, TransportConfig, VarInt};
use thinair_os::Error;
use tokio::runtime::{Builder, Runtime};

/// ALPN of HTTP/3. RFC 9114, section 3.1.
const ALPN: &[u8] = b"h3";

/// H3_NO_ERROR: whoever closes has what it wants. RFC 9114, section 8.1.
const NO_ERROR: VarInt = VarInt::from_u32(0x0100);

/// One thread: the one that waits for what is done here.
fn runtime() -> Result<Runtime, Error> {
    Builder::new_current_thread().enable_all().build().map_err(|why| Error::new("wait for datagrams", why))
}

/// What both ends have in common. Probes of a larger MTU each cost as much as a small object does.
fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.mtu_discovery_config(None::<MtuDiscoveryConfig>);
    Arc::new(transport)
}
