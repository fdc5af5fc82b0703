//! HTTP/3 (RFC 9114) over QUIC (RFC 9000): one object that is [fetched](fetch), and a folder that is [served](Http3Server).
//!
//! Protocol and TLS are those of quinn, rustls and h3, without the parts that a constrained link does not need: no
//! probes for a larger MTU, no grease, one ticket. As in [`crate::http`], messages have only the required headers. The
//! first datagrams of QUIC have at least 1,200 octets (RFC 9000, section 14), so that a path needs an MTU of 1,228 over
//! IPv4 and 1,248 over IPv6.

mod certificate;
mod client;
mod server;

pub use certificate::{IdentityError, ServerIdentity, Trust};
pub use client::{FetchError, Http3Outcome, Http3Report, Http3Task, fetch};
pub use server::{Http3Server, Http3ServerSettings, Http3ServerStatistics, ServerError};

use std::sync::Arc;

use quinn::{MtuDiscoveryConfig, TransportConfig, VarInt};
use thinair_os::Error;
use tokio::runtime::{Builder, Runtime};

/// ALPN identifier of HTTP/3. RFC 9114, section 3.1.
const ALPN: &[u8] = b"h3";

/// H3_NO_ERROR: the connection is closed without an error. RFC 9114, section 8.1.
const NO_ERROR: VarInt = VarInt::from_u32(0x0100);

/// Runtime with one thread, the calling one.
fn runtime() -> Result<Runtime, Error> {
    Builder::new_current_thread().enable_all().build().map_err(|why| Error::new("wait for datagrams", why))
}

/// Parameters of both ends. No probes of a larger MTU, each of which costs as much as a small object.
fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.mtu_discovery_config(None::<MtuDiscoveryConfig>);
    Arc::new(transport)
}
