//! One exchange, or an observation, from a URI to its response.
//!
//! This module knows how a host is found and which of its addresses answers, and what is told of it on the way. It refuses to
//! know where a request comes from and where a response goes: arguments, files, terminals.
//!
//! ```no_run
//! use thinair_coap::{Request, Uri};
//! use thinair_services::coap::client::{Ending, Flow, Task, ask};
//!
//! let uri: Uri = "coap://192.0.2.1/time".parse()?;
//! let mut request = Request::get("");
//! request.options = uri.options();
//! let outcome = ask(&Task::new(&uri, &request), &mut |_| Flow::Go);
//! if let Ending::Response(response) = outcome.result? {
//!     println!("{} after {:?}", response.code, outcome.report.total);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod carrier;
mod error;
mod exchange;

use std::net::SocketAddr;
use std::time::Duration;

use thinair_coap::{Config, Policy, Received, Request, Tokens, Uri};
use thinair_os::Signals;
use thinair_os::clock::now;
use thinair_wire::time::Instant;

pub use error::{AddressError, Attempt, ClientError};

use crate::resolve::resolve;
use crate::wait::Waiting;

/// A request, and how it is made.
#[derive(Debug)]
pub struct Task<'a> {
    /// Whom to ask: scheme, host and port. Path and query are in the request already.
    pub uri: &'a Uri,
    /// What to ask.
    pub request: &'a Request<'a>,
    /// How the endpoint is set: transmission, congestion control, blocks, Tokens. Its `max_body` holds for every response,
    /// also for one that comes in one message.
    pub config: Config,
    /// How long an address has for the handshake of TCP. 10 s.
    pub connect_timeout: Duration,
    /// How long there is for all of it: finding the host, its addresses in their order, the response with all its blocks. An
    /// observation has as long for its first notification. Nothing: as long as the message layer tries.
    pub limit: Option<Duration>,
    /// After how long an observation is ended. Nothing: not by itself.
    pub observe_for: Option<Duration>,
    /// How long the end of an observation is waited for. 500 ms.
    pub farewell: Duration,
    /// Signals that end it.
    pub signals: Option<&'a Signals>,
}

impl<'a> Task<'a> {
    /// With Tokens that are hard to guess; the rest as in [`Config::default`].
    pub fn new(uri: &'a Uri, request: &'a Request<'a>) -> Self {
        Self {
            uri,
            request,
            config: Config {
                policy: Policy { tokens: Tokens::Random(4), ..Policy::default() },
                ..Config::default()
            },
            connect_timeout: Duration::from_secs(10),
            limit: None,
            observe_for: None,
            farewell: Duration::from_millis(500),
            signals: None,
        }
    }
}

/// What is told while it goes on.
#[derive(Debug)]
pub enum Told<'t> {
    /// A state of the resource that is observed. Others follow.
    Notification(&'t Received<'t>, &'t Report),
    /// A block has arrived.
    Progress {
        /// Octets of the request's body that the server has.
        sent: usize,
        /// Octets of the response's body that are here.
        received: usize,
        /// Octets of the response's body, if the server tells.
        total: Option<usize>,
    },
}

/// Whether it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It does.
    Go,
    /// An observation is to end. Other requests go on.
    Stop,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a response: of an observation, that it is over, or that there is none.
    Response(Received<'static>),
    /// The observation was stopped, or its time is over.
    Stopped,
    /// A signal ended the observation.
    Interrupted,
}

/// What it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Addresses that were tried and did not answer, in their order, and why.
    pub attempts: Vec<Attempt>,
    /// The address of the latest attempt.
    pub address: Option<SocketAddr>,
    /// From the beginning until the addresses of the host were known.
    pub resolved: Duration,
    /// From the beginning until the latest attempt could send: TCP's handshake was over.
    pub connected: Duration,
    /// From the beginning until the first octets of the peer came.
    pub first: Option<Duration>,
    /// From the beginning until now.
    pub total: Duration,
    /// Datagrams of the latest attempt that were sent; over TCP, how often octets were.
    pub sent: u64,
    /// Octets in them.
    pub sent_octets: u64,
    /// Datagrams of the latest attempt that came; over TCP, how often octets did.
    pub received: u64,
    /// Octets in them.
    pub received_octets: u64,
    /// Messages of requests, those that were sent again included.
    pub transmissions: u64,
    /// Messages that were sent again.
    pub retransmissions: u64,
    /// Blocks of the request's body that the server has, if it was sent in several.
    pub blocks_up: u64,
    /// Blocks of the response's body, if it came in several.
    pub blocks_down: u64,
    /// What the first timeout of one more message to this peer would be, without dither. Datagrams alone.
    pub rto: Option<Duration>,
}

/// What became of a task, and what it took.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub result: Result<Ending, ClientError>,
    /// What it took.
    pub report: Report,
}

/// Asks. The addresses of a host are tried in their order: the next one if nobody listens at one, or if it does not answer
/// and the request does no harm when it is done twice.
pub fn ask(task: &Task<'_>, told: &mut dyn FnMut(Told<'_>) -> Flow) -> Outcome {
    let start = now();
    let mut report = Report::default();
    let result = try_all(task, start, &mut report, told);
    report.total = now().since(start);
    Outcome { result, report }
}

fn try_all(
    task: &Task<'_>,
    start: Instant,
    report: &mut Report,
    told: &mut dyn FnMut(Told<'_>) -> Flow,
) -> Result<Ending, ClientError> {
    getrandom::u64().map_err(|_| ClientError::NoRandomness)?;
    let mut waiting = Waiting::new(task.signals, task.limit.map(|limit| start + limit))?;
    let addresses = resolve(&task.uri.host, task.uri.port, &mut waiting)?;
    report.resolved = now().since(start);
    let last = addresses.len() - 1;
    for (index, address) in addresses.into_iter().enumerate() {
        let attempt = exchange::attempt(task, address, start, &mut waiting, report, told);
        let why = match attempt {
            Ok(ending) => return Ok(ending),
            Err(exchange::Stop::Address(why)) => why,
            Err(exchange::Stop::All(error)) => return Err(error),
        };
        let is_over = index == last || report.received > 0 || !why.allows_another(task.request.method);
        report.attempts.push(Attempt { address, why });
        if is_over {
            return Err(ClientError::Failed(report.attempts.clone()));
        }
    }
    Err(ClientError::Failed(report.attempts.clone()))
}

#[cfg(test)]
mod tests;
