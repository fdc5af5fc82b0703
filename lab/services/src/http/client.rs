//! HTTP client: from a URL to an object.

use std::io::{self, ErrorKind, Read as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use thinair_http::{ClientEngine, HttpError, HttpLimits, HttpResponse};
use thinair_os::clock::now;
pub use thinair_os::tcp::fast_open::Acknowledgment;
use thinair_os::tcp::{self, fast_open};
use thinair_os::{Interest, Signals};
use thinair_wire::time::Instant;

use super::{HttpProtocol, Url};
use thinair_services::resolve::{ResolveError, resolve};
use thinair_services::wait::{Wait, Woken};

/// Size of a read, in octets.
const READ: usize = 16_384;

/// Object to fetch, and the options of the transfer.
#[derive(Debug)]
pub struct FetchTask<'t> {
    /// Object.
    pub url: &'t Url,
    /// Protocol.
    pub protocol: HttpProtocol,
    /// End of the stream.
    pub close: Close,
    /// Time at which the SYN-ACK is acknowledged, with Fast Open.
    pub acknowledgment: Acknowledgment,
    /// Limits on the memory that the server can claim.
    pub limits: HttpLimits,
    /// Time limit of the handshake with one address.
    pub connect_timeout: Duration,
    /// Time limit of the whole transfer.
    pub limit: Duration,
    /// Signals that interrupt it.
    pub signals: Option<&'t Signals>,
}

/// End of a client's stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Close {
    /// By FIN, when the response is complete.
    #[default]
    Response,
    /// By FIN, as soon as the request is sent: the server then has the end of the client's stream.
    Request,
    /// By RST, when the response is complete: a segment less, and no TIME-WAIT. Later octets of the server are lost.
    Reset,
}

/// Reason that there is no object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The name does not resolve, or cannot be looked up.
    #[error("cannot find the host `{host}`: {why}")]
    Resolve {
        /// Host, as in the URL.
        host: String,
        /// Message of the system.
        why: String,
    },
    /// No address of the host accepts the connection; the last one, and its error.
    #[error("{0}: {1}")]
    Connect(SocketAddr, io::Error),
    /// The connection failed.
    #[error("{0}: the connection failed: {1}")]
    Stream(SocketAddr, io::Error),
    /// The server violated the protocol.
    #[error("{0}")]
    Protocol(#[from] HttpError),
    /// The time limit is over.
    #[error("no complete response within {0:?}")]
    TimeLimit(Duration),
    /// A signal interrupted it.
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

/// Costs of a transfer. Times begin with the SYN to the address that accepted the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchReport {
    /// Address of the latest attempt.
    pub address: Option<SocketAddr>,
    /// Time until the addresses of the host were resolved, since the start.
    pub resolved: Duration,
    /// Time until the SYN-ACK.
    pub connected: Option<Duration>,
    /// Time until the first octets of the server.
    pub first: Option<Duration>,
    /// Time until the last octet of the object, or until the failure.
    pub total: Duration,
    /// Octets passed to TCP.
    pub sent: u64,
    /// Octets sent in the SYN, which `sent` includes.
    pub sent_with_syn: u64,
    /// Octets received.
    pub received: u64,
}

/// Result of a transfer, and its costs.
#[derive(Debug)]
pub struct FetchOutcome {
    /// Response, with any status.
    pub result: Result<HttpResponse, FetchError>,
    /// Costs.
    pub report: FetchReport,
}

/// Fetches an object. Tries the addresses of the host in their order, the next one if one does not accept the
/// connection.
pub fn fetch(task: &FetchTask<'_>) -> FetchOutcome {
    let mut report = FetchReport::default();
    let result = try_all(task, &mut report);
    FetchOutcome { result, report }
}

fn try_all(task: &FetchTask<'_>, report: &mut FetchReport) -> Result<HttpResponse, FetchError> {
    let start = now();
    // Rejects an invalid target before any connection.
    task.protocol.client(task.url.target(), task.limits)?;
    let mut waiting = Wait::new(task.signals, Some(start + task.limit))?;
    let addresses = resolve(&task.url.host, task.url.port, &mut waiting)?;
    report.resolved = now().since(start);
    let last = addresses.len().saturating_sub(1);
    for (index, address) in addresses.into_iter().enumerate() {
        let start = now();
        *report = FetchReport { address: Some(address), resolved: report.resolved, ..FetchReport::default() };
        let engine = task.protocol.client(task.url.target(), task.limits)?;
        let result = HttpExchange::open(task, engine, address, start, &mut waiting, report)
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

/// Connection, and the exchange on it.
struct HttpExchange<'t> {
    task: &'t FetchTask<'t>,
    engine: Box<dyn ClientEngine>,
    address: SocketAddr,
    stream: TcpStream,
    start: Instant,
    /// Our side of the stream has ended.
    shut: bool,
}

impl<'t> HttpExchange<'t> {
    /// Opens a connection, and waits for the handshake.
    fn open(
        task: &'t FetchTask<'t>,
        mut engine: Box<dyn ClientEngine>,
        address: SocketAddr,
        start: Instant,
        waiting: &mut Wait<'_>,
        report: &mut FetchReport,
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

    fn run(mut self, waiting: &mut Wait<'_>, report: &mut FetchReport) -> Result<HttpResponse, FetchError> {
        let mut room = vec![0; READ];
        let response = loop {
            self.send(report)?;
            match (&self.stream).read(&mut room) {
                Ok(0) => {
                    report.total = now().since(self.start);
                    self.engine.handle_end()?;
                    break self.engine.response().cloned().ok_or(HttpError::Truncated(0))?;
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
                    // A server that sends without pause does not hold off signals and the time limit.
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

    fn send(&mut self, report: &mut FetchReport) -> Result<(), FetchError> {
        if self.shut {
            // The server accepts no more, or needs no more WINDOW_UPDATE.
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
                // A server that stops reading the request may have answered it: read the response.
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

/// Waits until the socket is ready, or until the deadline.
fn look(waiting: &mut Wait<'_>, until: Option<Instant>, limit: Duration) -> Result<(), FetchError> {
    match waiting.wait(until)? {
        Woken::Look => Ok(()),
        Woken::Interrupted => Err(FetchError::Interrupted),
        Woken::TimeLimit => Err(FetchError::TimeLimit(limit)),
    }
}
