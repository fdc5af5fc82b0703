//! Resources that are served on sockets, in one loop.
//!
//! One thread, one [`Endpoint`], any number of UDP sockets and TCP listeners. Datagrams go in batches, both ways; streams are
//! read no faster than their other side takes the answers. What others can make the server hold is bounded:
//! [`Config`], [`Settings::max_connections`].

mod datagrams;
mod open;
mod resource;
mod resources;
mod streams;
mod turn;
mod watches;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use thinair_coap::{Config, Counters, Endpoint, Limits, Policy, RequestId, Response, Timing};
use thinair_os::{EventLoop, Signals};
use thinair_wire::time::Instant;

use super::Peer;
use datagrams::Datagrams;
use streams::Streams;

pub use resource::{Answer, Moment, Resource, Site, State, accepted};
pub use resources::{Files, FilesError, Tests, Time};
pub use watches::Watches;

/// Where a server listens, and how much it takes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Addresses.
    pub listen: Vec<Listen>,
    /// The endpoint. [`secured`](Self::secured) says what is right for the addresses.
    pub endpoint: Config,
    /// Connections at the same time. One more closes that which has been idle for longest.
    pub max_connections: usize,
}

/// An address to listen at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address; if it is unspecified, all of its family. Port 0: one that is free, the same for both.
    pub address: SocketAddr,
    /// Datagrams: `coap://`.
    pub udp: bool,
    /// Streams: `coap+tcp://`.
    pub tcp: bool,
    /// Whether the server does without it where the machine does not have the address.
    pub optional: bool,
}

/// Octets of the longest datagram that is taken; a longer one is counted and left.
const LONGEST_DATAGRAM: usize = 2_048;

impl Settings {
    /// What listens at these addresses, with an endpoint for them: bodies of at most `max_body` octets, room to tell
    /// duplicates of 8,192 messages, and, where an address is not a loopback one, at most three times the octets of a
    /// request for a peer that has not shown that it receives what is sent to it (RFC 9175, section 2.3).
    pub fn secured(listen: Vec<Listen>, max_body: usize, max_connections: usize) -> Self {
        let default = Limits::default();
        let is_reachable = listen.iter().any(|listen| !listen.address.ip().to_canonical().is_loopback());
        let endpoint = Config {
            // An observer that is gone is found out.
            timing: Timing {
                confirm_notifications: std::time::Duration::from_secs(300),
                ..Timing::default()
            },
            limits: Limits {
                max_body,
                max_bodies: max_body.saturating_mul(4).max(default.max_bodies),
                remembered: 8_192,
                remembered_octets: 1 << 17,
                // Those of streams stand beside those of datagrams.
                max_peers: default.max_peers + max_connections,
                ..default
            },
            policy: Policy { amplification: is_reachable.then_some(3), ..Policy::default() },
        };
        Self { listen, endpoint, max_connections }
    }
}

/// What a server has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Requests that reached a resource.
    pub requests: u64,
    /// Responses of class 2.
    pub successes: u64,
    /// Responses of class 4.
    pub client_errors: u64,
    /// Responses of class 5.
    pub server_errors: u64,
    /// States that observers were told.
    pub notifications: u64,
    /// Separate responses that nobody acknowledged.
    pub not_delivered: u64,
    /// Datagrams that were longer than any message.
    pub too_long: u64,
    /// Datagrams that the system refused to send.
    pub refused: u64,
    /// Connections that were accepted.
    pub connections: u64,
    /// Connections that were closed for new ones.
    pub displaced: u64,
    /// Connections that were closed because nothing came of them, or because they did not read.
    pub too_slow: u64,
    /// What the endpoint has counted.
    pub endpoint: Counters,
}

/// A server that does not start, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// There is nothing to listen at.
    #[error("there is no address to listen at")]
    NoAddress,
    /// There are more sockets than peers can tell.
    #[error("there are more than {} addresses", u8::MAX)]
    TooManyAddresses,
    /// The system refused something.
    #[error(transparent)]
    Os(#[from] thinair_os::Error),
    /// The system has no random numbers.
    #[error("there are no random numbers: {0}")]
    Random(getrandom::Error),
}

/// A response that is due later.
#[derive(Debug)]
struct Due {
    peer: Peer,
    id: RequestId,
    response: Response<'static>,
}

/// A server. [`run`](Self::run) serves until the process is asked to end.
#[derive(Debug)]
pub struct Server {
    endpoint: Endpoint<Peer>,
    site: Site,
    watches: Watches,
    /// Responses that are due later, by when; the number tells those of one moment apart.
    due: BTreeMap<(Instant, u64), Due>,
    dues: u64,
    datagrams: Datagrams,
    streams: Streams,
    /// When to look at what takes too long, and at what is observed.
    tick: Option<Instant>,
    statistics: Statistics,
    events: EventLoop,
    signals: Signals,
    uris: Vec<String>,
    /// Room for one message that is sent.
    buffer: Vec<u8>,
}

impl Server {
    /// What it serves, as the beginnings of URIs.
    pub fn uris(&self) -> &[String] {
        &self.uris
    }

    /// What it has done so far.
    pub fn statistics(&self) -> Statistics {
        Statistics { endpoint: *self.endpoint.counters(), ..self.statistics }
    }
}
