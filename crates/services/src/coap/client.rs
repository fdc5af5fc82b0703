//! CoAP client: exchanges and observations, one after the other, from a URI to its response.
//!
//! This module resolves a host, tries its addresses, and reports progress. Sources of requests and destinations of
//! responses (arguments, files, terminals) are the caller's.
//!
//! ```no_run
//! use thinair_coap::{Request, Uri};
//! use thinair_services::coap::client::{Ending, Continuation, ClientTask, ask};
//!
//! let uri: Uri = "coap://192.0.2.1/time".parse()?;
//! let mut request = Request::get("");
//! request.options = uri.options();
//! let outcome = ask(&ClientTask::new(&uri, &request), &mut |_| Continuation::Go);
//! if let Ending::Response(response) = outcome.result? {
//!     println!("{} after {:?}", response.code, outcome.report.total);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod carrier;
mod error;
mod exchange;
mod group;
mod secure;

use std::net::SocketAddr;
use std::time::Duration;

use thinair_coap::oscore::{Context, ContextError, ContextId};
use thinair_coap::{Config, Endpoint, Policy, Received, Request, Uri};
use thinair_dtls::Psk;
use thinair_os::Signals;
use thinair_os::clock::now;
use thinair_wire::time::Instant;

pub use error::{AddressError, ClientError, FailedAttempt};
pub use group::{GroupTask, LEISURE, ask_group};
pub use secure::HandshakeReport;

use self::carrier::ClientPorts;
use self::secure::SecureServers;
use crate::coap::CoapPeer;
use crate::resolve::resolve;
use crate::wait::Wait;

/// A request with its settings.
#[derive(Debug)]
pub struct ClientTask<'a> {
    /// Server: scheme, host and port. Path and query are in the request already.
    pub uri: &'a Uri,
    /// Request.
    pub request: &'a Request<'a>,
    /// Security context of the request; `None`: it is not protected.
    pub context: Option<ContextId>,
    /// Time limit of the TCP handshake with one address. Default: 10 s.
    pub connect_timeout: Duration,
    /// Time limit of the whole task: resolution of the host, its addresses in order, the response with all its blocks.
    /// For an observation, limit of its first notification. `None`: the message layer decides.
    pub limit: Option<Duration>,
    /// Duration of an observation. `None`: unlimited.
    pub observe_for: Option<Duration>,
    /// Time limit of the deregistration of an observation. Default: 500 ms.
    pub farewell: Duration,
    /// Signals that end the task.
    pub signals: Option<&'a Signals>,
}

impl<'a> ClientTask<'a> {
    /// Creates a task with the default limits.
    pub const fn new(uri: &'a Uri, request: &'a Request<'a>) -> Self {
        Self {
            uri,
            request,
            context: None,
            connect_timeout: Duration::from_secs(10),
            limit: None,
            observe_for: None,
            farewell: Duration::from_millis(500),
            signals: None,
        }
    }
}

/// Progress of a task.
#[derive(Debug)]
pub enum TaskProgress<'t> {
    /// State of the observed resource. More follow.
    Notification(&'t Received<'t>, &'t TaskReport),
    /// Arrival of a block.
    Progress {
        /// Octets of the request's body that the server has.
        sent: usize,
        /// Octets of the response's body that have arrived.
        received: usize,
        /// Octets of the response's body, if the server has announced them.
        total: Option<usize>,
    },
}

/// Continuation of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// Continue.
    Go,
    /// End the observation. No effect on other requests.
    Stop,
}

/// Successful end of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A response: for an observation, its last one, or the response of a resource that cannot be observed.
    Response(Received<'static>),
    /// The observation was stopped, or has reached its duration.
    Stopped,
    /// A signal ended the observation.
    Interrupted,
}

/// Measurements of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskReport {
    /// Failed addresses, in order, with the reasons.
    pub attempts: Vec<FailedAttempt>,
    /// Address of the latest attempt.
    pub address: Option<SocketAddr>,
    /// Time from the start to the resolution of the host.
    pub resolved: Duration,
    /// Handshake of DTLS in the latest attempt, if there was one. Its datagrams are not among the others.
    pub handshake: Option<HandshakeReport>,
    /// Time from the start until the latest attempt could send, after the handshake of TCP or DTLS.
    pub connected: Duration,
    /// Time from the start to the first octets of the peer.
    pub first: Option<Duration>,
    /// Time from the start until now.
    pub total: Duration,
    /// Datagrams sent in the latest attempt; over TCP, number of writes.
    pub sent: u64,
    /// Octets in them.
    pub sent_octets: u64,
    /// Datagrams received in the latest attempt; over TCP, number of reads.
    pub received: u64,
    /// Octets in them.
    pub received_octets: u64,
    /// Messages of requests, retransmissions included.
    pub transmissions: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Blocks of the request's body that the server has, if there are several.
    pub blocks_up: u64,
    /// Blocks of the response's body, if there are several.
    pub blocks_down: u64,
    /// First timeout of a further message to this peer, without dither. Only for datagrams.
    pub rto: Option<Duration>,
}

/// Result of a task, with measurements.
#[derive(Debug)]
pub struct TaskOutcome {
    /// Result.
    pub result: Result<Ending, ClientError>,
    /// Measurements.
    pub report: TaskReport,
}

/// A client, for one task after the other.
///
/// Its tasks share one endpoint, and one UDP port for each address family. So Tokens and Message IDs to a server count, its
/// path is measured, and the packets of all tasks to it are one flow. Over TCP each attempt has its own connection.
pub struct Client {
    endpoint: Endpoint<CoapPeer>,
    ports: ClientPorts,
    secure: Option<SecureServers>,
    /// Number of the next connection.
    streams: u64,
}

impl Client {
    /// Settings for a path without protection: Tokens and Message IDs from a start that is hard to guess
    /// ([`Policy::CLIENT`]); others as in [`Config::default`].
    pub fn config() -> Config {
        Config { policy: Policy::CLIENT, ..Config::default() }
    }

    /// Creates a client: transmission, congestion control, blocks, Tokens. `max_body` limits every response, also one that
    /// comes in one message.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(config: Config) -> Result<Self, ClientError> {
        getrandom::u64().map_err(|_| ClientError::NoRandomness)?;
        // The random source has worked, and does not fail later.
        let endpoint = Endpoint::new(config, || getrandom::u64().unwrap_or_default());
        Ok(Self { endpoint, ports: ClientPorts::default(), secure: None, streams: 0 })
    }

    /// Adds a security context for tasks.
    ///
    /// # Errors
    /// Another context has the same Recipient ID and ID Context.
    pub fn add_context(&mut self, context: Context) -> Result<ContextId, ContextError> {
        self.endpoint.add_context(context)
    }

    /// Sets the key for `coaps://`, and the first timeout of handshakes. Default: 1 s. **Sessions are those of one key.**
    pub fn set_psk(&mut self, psk: Psk, timeout: Option<Duration>) {
        self.secure = Some(SecureServers::new(psk, timeout));
    }

    /// Runs a task. The addresses of a host are tried in order: the next one if nothing listens at one, or if it does not
    /// answer and the request can be repeated without harm.
    pub fn ask(
        &mut self,
        task: &ClientTask<'_>,
        watch: &mut dyn FnMut(TaskProgress<'_>) -> Continuation,
    ) -> TaskOutcome {
        let start = now();
        let mut report = TaskReport::default();
        let result = self.try_all(task, start, &mut report, watch);
        report.total = now().since(start);
        TaskOutcome { result, report }
    }

    fn try_all(
        &mut self,
        task: &ClientTask<'_>,
        start: Instant,
        report: &mut TaskReport,
        watch: &mut dyn FnMut(TaskProgress<'_>) -> Continuation,
    ) -> Result<Ending, ClientError> {
        let mut waiting = Wait::new(task.signals, task.limit.map(|limit| start + limit))?;
        let addresses = resolve(&task.uri.host, task.uri.port, &mut waiting)?;
        report.resolved = now().since(start);
        let last = addresses.len() - 1;
        for (index, address) in addresses.into_iter().enumerate() {
            let why = match self.attempt(task, address, start, &mut waiting, report, watch) {
                Ok(ending) => return Ok(ending),
                Err(exchange::Stop::Address(why)) => why,
                Err(exchange::Stop::All(error)) => return Err(error),
            };
            let is_over = index == last || report.received > 0 || !why.allows_another(task.request.method);
            report.attempts.push(FailedAttempt { address, why });
            if is_over {
                return Err(ClientError::Failed(report.attempts.clone()));
            }
        }
        Err(ClientError::Failed(report.attempts.clone()))
    }
}

impl Drop for Client {
    /// Ends the sessions of DTLS.
    fn drop(&mut self) {
        if let Some(secure) = &mut self.secure {
            secure.close(|server, datagram| self.ports.send_last(server, datagram));
        }
    }
}

/// Runs a task with a [`Client`] of its own, with the settings of [`Client::config`].
pub fn ask(task: &ClientTask<'_>, watch: &mut dyn FnMut(TaskProgress<'_>) -> Continuation) -> TaskOutcome {
    match Client::new(Client::config()) {
        Ok(mut client) => client.ask(task, watch),
        Err(error) => TaskOutcome { result: Err(error), report: TaskReport::default() },
    }
}

#[cfg(test)]
mod tests;
