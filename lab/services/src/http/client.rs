//! One object, from a URL to its octets.

use std::io::{self, ErrorKind, Read as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use thinair_http::{ClientEngine, Error, Limits, Response};
use thinair_os::clock::now;
pub use thinair_os::tcp::fast_open::Acknowledgment;
use thinair_os::tcp::{self, fast_open};
use thinair_os::{Interest, Signals};
use thinair_wire::time::Instant;

use super::{Protocol, Url};
use thinair_services::resolve::{ResolveError, resolve};
use thinair_services::wait::{Wait, Woken};

/// Octets that are read at a time.
const READ: usize = 16_384;

/// What to fetch, and how.
#[derive(Debug)]
pub struct Task<'t> {
    /// What.
    pub url: &'t Url,
    /// In which words.
    pub protocol: Protocol,
    /// How the stream ends.
    pub close: Close,
    /// When the SYN-ACK is acknowledged, with Fast Open.
    pub acknowledgment: Acknowledgment,
    /// What the server can make us hold.
    pub limits: Limits,
    /// How long an address has for the handshake.
    pub connect_timeout: Duration,
    /// How long there is for all of it.
    pub limit: Duration,
    /// Signals that end it.
    pub signals: Option<&'t Signals>,
}

/// How a client ends a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Close {
    /// By FIN, when the response is there.
    #[default]
    Response,
    /// By FIN, as soon as all of the request is sent: the server then knows that nothing follows.
    Request,
    /// By RST, when the response is there: a segment less, and no TIME-WAIT. What the server says then has been read.
    Reset,
}

/// Why there is no object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The name is not known, or cannot be asked for.
    #[error("cannot find the host `{host}`: {why}")]
    Resolve {
        /// As in the URL.
        host: String,
        /// In the words of the system.
        why: String,
    },
    /// No address of the host takes the stream.
    #[error("{0}: {1}")]
    Connect(SocketAddr, io::Error),
    /// The stream has failed.
    #[error("{0}: the connection has failed: {1}")]
    Stream(SocketAddr, io::Error),
    /// The server says something else.
    #[error("{0}")]
    Protocol(#[from] Error),
    /// The time for all of it is over.
    #[error("no complete response within {0:?}")]
    TimeLimit(Duration),
    /// A signal has ended it.
    #[error("interrupted")]
    Interrupted,
    /// The system has no room for files or threads.
    #[error(transparent)]
    System(#[from] thinair_os::Error),
}

impl From<ResolveError> for FetchError {
    fn from(why: ResolveError) -> Self {
        match why {
            ResolveError::Unknown { host, why } => Self::Resolve { host, why },
            ResolveError::Interrupted => Self::Interrupted,
            ResolveError::System(why) => Self::System(why),
        }
    }
}

/// What it took. Times are since the address was known: since the SYN was sent, to the address that took the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The address of the latest attempt.
    pub address: Option<SocketAddr>,
    /// Until the addresses of the host were known, since the beginning.
    pub resolved: Duration,
    /// Until the SYN-ACK was there.
    pub connected: Option<Duration>,
    /// Until the first octets of the server were there.
    pub first: Option<Duration>,
    /// Until the last octet of the object was there; until it failed, if it did.
    pub total: Duration,
    /// Octets that were given to TCP.
    pub sent: u64,
    /// Octets of them that went with the SYN.
    pub sent_with_syn: u64,
    /// Octets that came.
    pub received: u64,
}

/// What became of it, and what it took.
#[derive(Debug)]
pub struct Outcome {
    /// The response, whatever its status.
    pub result: Result<Response, FetchError>,
    /// What it took.
    pub report: Report,
}

/// Fetches it. The addresses of a host are tried in their order, the next one if nobody takes the stream.
pub fn fetch(task: &Task<'_>) -> Outcome {
    let mut report = Report::default();
    let result = try_all(task, &mut report);
    Outcome { result, report }
}

fn try_all(task: &Task<'_>, report: &mut Report) -> Result<Response, FetchError> {
    let start = now();
    // What cannot be asked for is not asked for.
    task.protocol.client(task.url.target(), task.limits)?;
    let mut waiting = Wait::new(task.signals, Some(start + task.limit))?;
    let addresses = resolve(&task.url.host, task.url.port, &mut waiting)?;
    report.resolved = now().since(start);
    let last = addresses.len().saturating_sub(1);
    for (index, address) in addresses.into_iter().enumerate() {
        let start = now();
        *report = Report { address: Some(address), resolved: report.resolved, ..Report::default() };
        let engine = task.protocol.client(task.url.target(), task.limits)?;
        let result = Exchange::open(task, engine, address, start, &mut waiting, report)
            .and_then(|exchange| exchange.run(&mut waiting, report));
        if result.is_err() {
            report.total = now().since(start);
        }
        match result {
            Err(FetchError::Connect(..)) if index < last => {}
            result => return result,
        }
    }
    Err(FetchError::TimeLimit(task.limit))
}

/// A stream, and what is said on it.
struct Exchange<'t> {
    task: &'t Task<'t>,
    engine: Box<dyn ClientEngine>,
    address: SocketAddr,
    stream: TcpStream,
    start: Instant,
    /// Nothing more is sent.
    shut: bool,
}

impl<'t> Exchange<'t> {
    /// Opens it, and waits until it is open.
    fn open(
        task: &'t Task<'t>,
        mut engine: Box<dyn ClientEngine>,
        address: SocketAddr,
        start: Instant,
        waiting: &mut Wait<'_>,
        report: &mut Report,
    ) -> Result<Self, FetchError> {
        let refused = |why: &thinair_os::Error| FetchError::Connect(address, why.kind().into());
        let stream = if task.protocol.is_fast() {
            let opening = fast_open::connect(address, engine.output(), task.acknowledgment)
                .map_err(|why| refused(&why))?;
            engine.sent(opening.sent);
            (report.sent, report.sent_with_syn) = (opening.sent as u64, opening.sent as u64);
            opening.stream
        } else {
            let stream = tcp::connect(address).map_err(|why| refused(&why))?;
            stream.set_nodelay(true).map_err(|why| FetchError::Connect(address, why))?;
            stream
        };
        waiting.add_for(&stream, Interest::Writing)?;
        let until = start + task.connect_timeout;
        while stream.peer_addr().is_err() {
            look(waiting, Some(until), task.limit)?;
            let failed = |why| FetchError::Connect(address, why);
            if let Some(why) = stream.take_error().map_err(failed)? {
                return Err(failed(why));
            }
            if now() >= until {
                return Err(failed(ErrorKind::TimedOut.into()));
            }
        }
        report.connected = Some(now().since(start));
        Ok(Self { task, engine, address, stream, start, shut: false })
    }

    fn run(mut self, waiting: &mut Wait<'_>, report: &mut Report) -> Result<Response, FetchError> {
        let mut room = vec![0; READ];
        let response = loop {
            self.send(report)?;
            match (&self.stream).read(&mut room) {
                Ok(0) => {
                    report.total = now().since(self.start);
                    self.engine.handle_end()?;
                    break self.engine.response().cloned().ok_or(Error::Truncated(0))?;
                }
                Ok(len) => {
                    let at = now().since(self.start);
                    report.first.get_or_insert(at);
                    report.total = at;
                    report.received += len as u64;
                    self.engine.handle_input(room.get(..len).unwrap_or_default())?;
                    if let Some(response) = self.engine.response() {
                        break response.clone();
                    }
                    // A server that always has something to say does not keep signals and time away.
                    look(waiting, Some(now()), self.task.limit)?;
                    continue;
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                Err(why) if why.kind() == ErrorKind::Interrupted => continue,
                Err(why) => return Err(FetchError::Stream(self.address, why)),
            }
            waiting.change(&self.stream, !self.engine.output().is_empty())?;
            look(waiting, None, self.task.limit)?;
        };
        if self.task.close == Close::Reset {
            tcp::reset(self.stream);
        }
        Ok(response)
    }

    fn send(&mut self, report: &mut Report) -> Result<(), FetchError> {
        if self.shut {
            // The server takes no more, or knows that it will be told no more, as of windows.
            let octets = self.engine.output().len();
            self.engine.sent(octets);
            return Ok(());
        }
        let closes = self.task.close == Close::Request;
        while !self.engine.output().is_empty() {
            match fast_open::send(&self.stream, self.engine.output(), closes) {
                Ok(len) => {
                    self.engine.sent(len);
                    report.sent += len as u64;
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                // Whoever wants no more of the request may have answered: that is read.
                Err(why) if matches!(why.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                    self.shut = true;
                    return Ok(());
                }
                Err(why) => return Err(FetchError::Stream(self.address, why)),
            }
        }
        if closes {
            self.shut = true;
            self.stream.shutdown(Shutdown::Write).map_err(|why| FetchError::Stream(self.address, why))?;
        }
        Ok(())
    }
}

/// Waits until there is something to look at, or until then.
fn look(waiting: &mut Wait<'_>, until: Option<Instant>, limit: Duration) -> Result<(), FetchError> {
    match waiting.wait(until)? {
        Woken::Look => Ok(()),
        Woken::Interrupted => Err(FetchError::Interrupted),
        Woken::TimeLimit => Err(FetchError::TimeLimit(limit)),
    }
}
