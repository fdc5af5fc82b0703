//! CoAP server: resources on sockets, in one event loop.
//!
//! One thread, one [`Endpoint`], any number of UDP sockets and TCP listeners. Datagrams are received and sent in batches;
//! streams are read no faster than their other side reads the answers. The memory that peers can occupy is bounded by
//! [`Config`] and [`ServerSettings::max_connections`].

mod datagrams;
mod event_loop;
mod open;
mod resource;
mod resources;
mod rights;
mod secure;
mod streams;
mod watches;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use thinair_coap::oscore::{Context, ContextError};
use thinair_coap::{Config, Counters, Endpoint, Limits, Policy, RequestId, Response, Timing};
use thinair_os::{EventLoop, Signals};
use thinair_wire::time::Instant;

use super::CoapPeer;
use datagrams::Datagrams;
use rights::Guard;
use secure::SecureSessions;
use streams::ServerStreams;

pub use resource::{Moment, Resource, ResourceAnswer, ResourceState, Resources, accepted};
pub use resources::{FileResource, FilesError, Tests, Time};
pub use rights::Rights;
pub use secure::SecureSettings;
pub use watches::Watches;

/// Addresses and limits of a server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Addresses.
    pub listen: Vec<Listen>,
    /// Addresses and keys of `coaps://`; `None`: it is not served. **With keys, a request that is not protected is answered with
    /// 4.01**, unless its resource was [opened](ResourceServer::open_resource).
    pub secure: Option<SecureSettings>,
    /// Settings of the endpoint. [`secured`](Self::secured) returns suitable ones for the addresses.
    pub endpoint: Config,
    /// Largest number of connections. A further one displaces the one that has been idle for the longest time.
    pub max_connections: usize,
}

/// An address to listen at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Address; if it is unspecified, all of its family. Port 0: a free port, common to both transports.
    pub address: SocketAddr,
    /// Datagrams: `coap://`.
    pub udp: bool,
    /// Streams: `coap+tcp://`.
    pub tcp: bool,
    /// True if the server starts without it where the machine does not have the address.
    pub optional: bool,
}

/// Longest datagram that is received, in octets; longer ones are counted and dropped.
const LONGEST_DATAGRAM: usize = 2_048;

impl ServerSettings {
    /// Returns settings for these addresses: bodies of at most `max_body` octets, memory for the duplicates of 8,192
    /// messages, and, where an address is not a loopback one, at most three times the octets of a request for a peer
    /// whose address is not verified (RFC 9175, section 2.3).
    pub fn secured(listen: Vec<Listen>, max_body: usize, max_connections: usize) -> Self {
        let default = Limits::default();
        let is_reachable = listen.iter().any(|listen| !listen.address.ip().to_canonical().is_loopback());
        let endpoint = Config {
            // Detects observers that are gone.
            timing: Timing {
                confirm_notifications: std::time::Duration::from_secs(300),
                ..Timing::default()
            },
            limits: Limits {
                max_body,
                max_bodies: max_body.saturating_mul(4).max(default.max_bodies),
                remembered: 8_192,
                remembered_octets: 1 << 17,
                // Peers of streams are additional to those of datagrams.
                max_peers: default.max_peers + max_connections,
                ..default
            },
            policy: Policy { amplification: is_reachable.then_some(3), ..Policy::default() },
        };
        Self { listen, secure: None, endpoint, max_connections }
    }
}

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerStatistics {
    /// Requests that reached a resource.
    pub requests: u64,
    /// Responses of class 2.
    pub successes: u64,
    /// Responses of class 4.
    pub client_errors: u64,
    /// Responses of class 5.
    pub server_errors: u64,
    /// Notifications.
    pub notifications: u64,
    /// Separate responses that were not acknowledged.
    pub not_delivered: u64,
    /// Datagrams that were longer than any message.
    pub too_long: u64,
    /// Datagrams that the system rejected.
    pub refused: u64,
    /// Sessions of DTLS.
    pub sessions: u64,
    /// Handshakes of DTLS that failed behind their cookies.
    pub failed_handshakes: u64,
    /// Connections that were accepted.
    pub connections: u64,
    /// Connections that were closed for new ones.
    pub displaced: u64,
    /// Connections that were closed because they sent nothing complete in time, or did not read.
    pub too_slow: u64,
    /// Counters of the endpoint.
    pub endpoint: Counters,
}

/// Reason why a server does not start, or stops.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// No address to listen at.
    #[error("no address to listen at: give at least one")]
    NoAddress,
    /// There are more sockets than a peer can number.
    #[error("more than {} addresses to listen at", u8::MAX)]
    TooManyAddresses,
    /// A system call failed.
    #[error(transparent)]
    Os(#[from] thinair_os::Error),
    /// The system has no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// A delayed response.
#[derive(Debug)]
struct Due {
    peer: CoapPeer,
    id: RequestId,
    response: Response<'static>,
}

/// A CoAP server. [`run`](Self::run) serves until the process is asked to end.
#[derive(Debug)]
pub struct ResourceServer {
    endpoint: Endpoint<CoapPeer>,
    site: Resources,
    guard: Guard,
    secure: Option<SecureSessions>,
    watches: Watches,
    /// Delayed responses by time; the number distinguishes those of equal time.
    due: BTreeMap<(Instant, u64), Due>,
    dues: u64,
    datagrams: Datagrams,
    streams: ServerStreams,
    /// Time of the next check of slow connections and observed resources.
    tick: Option<Instant>,
    statistics: ServerStatistics,
    events: EventLoop,
    signals: Signals,
    uris: Vec<String>,
    /// Buffer for one message to send.
    buffer: Vec<u8>,
}

impl ResourceServer {
    /// Adds a security context with its rights. **From then on, a request that is not protected is answered with 4.01**, unless
    /// its resource was [opened](Self::open_resource).
    ///
    /// # Errors
    /// Another context has the same Recipient ID and ID Context.
    pub fn add_context(&mut self, context: Context, rights: Rights) -> Result<(), ContextError> {
        self.guard.add(&mut self.endpoint, context, rights)
    }

    /// Opens a resource to requests that are not protected; with `/*` at the end of its path, all resources below.
    pub fn open_resource(&mut self, path: &str) {
        self.guard.open(path.to_owned());
    }

    /// Returns the beginnings of its URIs.
    pub fn uris(&self) -> &[String] {
        &self.uris
    }

    /// Returns its counters.
    pub fn statistics(&self) -> ServerStatistics {
        ServerStatistics { endpoint: *self.endpoint.counters(), ..self.statistics }
    }
}
