//! HTTP server for the files of a folder: all connections in one loop.
//!
//! One thread. Memory that clients can claim is bounded by [`HttpServerSettings::max_connections`], and per connection by
//! [`Limits`]; clients that take too long over a request, or over reading its response, are disconnected.

mod connection;
mod site;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use thinair_http::HttpLimits;
use thinair_os::tcp::fast_open;
use thinair_os::{EventLoop, Signal, Signals, clock, tcp};
use thinair_wire::time::Instant;

use super::HttpProtocol;
use connection::{ConnectionProgress, ServerConnection};
pub(crate) use site::ServedFolder;

/// Event tokens of signals and the listener; those of connections count from 0.
const SIGNALS: u64 = u64::MAX - 1;
const LISTENER: u64 = u64::MAX - 2;

/// Size of a read, in octets.
const READ: usize = 16_384;

/// Maximum number of connections that are accepted in sequence.
const ACCEPTED: usize = 16;

/// Pause before the next accept when the system had no room for another file.
const NO_ROOM: Duration = Duration::from_millis(200);

/// Configuration of a server.
#[derive(Clone, Debug)]
pub struct HttpServerSettings {
    /// Address to listen at. Port 0: any free port.
    pub listen: SocketAddr,
    /// Protocol.
    pub protocol: HttpProtocol,
    /// Folder whose files are served.
    pub folder: PathBuf,
    /// Limits on the memory that clients can claim per connection; `body`: maximum size of a file, in octets.
    pub limits: HttpLimits,
    /// Maximum number of connections; one more closes the connection that has been idle longest. 0 means 1.
    pub max_connections: usize,
    /// Time that an idle connection is kept for another request, 10 s at least. Zero: it is closed with the response,
    /// unless the client asks to reuse it.
    pub keep: Duration,
}

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpServerStatistics {
    /// Complete requests.
    pub requests: u64,
    /// Responses of class 2.
    pub successes: u64,
    /// Accepted connections.
    pub connections: u64,
    /// Connections closed in favor of new ones.
    pub displaced: u64,
    /// Connections closed because the client did not finish its request or did not read.
    pub too_slow: u64,
    /// Octets received.
    pub received: u64,
    /// Octets passed to TCP.
    pub sent: u64,
}

/// Server. [`run`](Self::run) serves until the process receives a signal.
#[derive(Debug)]
pub struct HttpServer {
    settings: HttpServerSettings,
    site: ServedFolder,
    address: SocketAddr,
    listener: TcpListener,
    is_listening: bool,
    /// Time at which it accepts connections again.
    listens_at: Option<Instant>,
    events: EventLoop,
    signals: Signals,
    connections: BTreeMap<u64, ServerConnection>,
    next: u64,
    statistics: HttpServerStatistics,
}

impl HttpServer {
    /// Listens. **Call it before any other thread starts:** it blocks signals.
    ///
    /// # Errors
    /// The address does not exist here or is in use, or the folder cannot be read.
    pub fn open(settings: HttpServerSettings) -> Result<Self, thinair_os::Error> {
        let signals = Signals::take()?;
        let site = ServedFolder::open(&settings.folder, settings.limits.body)?;
        let events = EventLoop::new(Duration::ZERO)?;
        events.add(&signals, SIGNALS)?;
        let listener = tcp::listen(settings.listen)?;
        if settings.protocol.is_fast() {
            fast_open::accept_data(&listener)?;
        }
        events.add(&listener, LISTENER)?;
        let address = listener.local_addr().unwrap_or(settings.listen);
        Ok(Self {
            settings,
            site,
            address,
            listener,
            is_listening: true,
            listens_at: None,
            events,
            signals,
            connections: BTreeMap::new(),
            next: 0,
            statistics: HttpServerStatistics::default(),
        })
    }

    /// Address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Counters so far.
    pub fn statistics(&self) -> HttpServerStatistics {
        self.statistics
    }

    /// Serves until a signal, then closes all open connections.
    ///
    /// # Errors
    /// The system cannot wait any more.
    pub fn run(&mut self) -> Result<(), thinair_os::Error> {
        let mut ready = Vec::new();
        let mut room = vec![0; READ];
        loop {
            let dues = self.connections.values().map(|connection| connection.due());
            let until = dues.chain(self.listens_at).min();
            self.events.wait(until, &mut ready)?;
            let now = clock::now();
            for &token in &ready {
                match token {
                    SIGNALS => {
                        while let Some(signal) = self.signals.poll() {
                            if matches!(signal, Signal::End { .. }) {
                                return Ok(());
                            }
                        }
                    }
                    LISTENER => self.accept(now, &mut room)?,
                    number => self.turn(now, number, &mut room)?,
                }
            }
            let is_due = |(number, connection): (&u64, &ServerConnection)| {
                (connection.due() <= now).then_some(*number)
            };
            for number in self.connections.iter().filter_map(is_due).collect::<Vec<_>>() {
                self.statistics.too_slow +=
                    u64::from(!self.connections.get(&number).is_some_and(ServerConnection::is_idle));
                self.connections.remove(&number);
            }
            if self.listens_at.is_some_and(|at| at <= now) && !self.is_listening {
                self.events.add(&self.listener, LISTENER)?;
                (self.is_listening, self.listens_at) = (true, None);
            }
        }
    }

    /// Accepts waiting connections. With Fast Open their requests have already arrived.
    fn accept(&mut self, now: Instant, room: &mut [u8]) -> Result<(), thinair_os::Error> {
        for _ in 0..ACCEPTED {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                Err(why) if why.kind() == ErrorKind::ConnectionAborted => continue,
                Err(_) => {
                    self.events.remove(&self.listener)?;
                    (self.is_listening, self.listens_at) = (false, Some(now + NO_ROOM));
                    break;
                }
            };
            let fast = self.settings.protocol.is_fast();
            let prepared = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
            // The response acknowledges the rest of the request.
            if prepared.and_then(|()| if fast { fast_open::hold(&stream) } else { Ok(()) }).is_err() {
                continue;
            }
            while self.connections.len() >= self.settings.max_connections.max(1) {
                let longest = self.connections.iter().min_by_key(|(_, connection)| connection.heard());
                let Some(number) = longest.map(|(number, _)| *number) else { break };
                self.connections.remove(&number);
                self.statistics.displaced += 1;
            }
            let HttpServerSettings { protocol, keep, limits, .. } = self.settings;
            let engine = protocol.server(!keep.is_zero(), limits);
            let number = self.next;
            self.next += 1;
            let connection = ServerConnection::open(stream, engine, number, keep, now);
            self.connections.insert(number, connection);
            self.statistics.connections += 1;
            self.turn(now, number, room)?;
        }
        Ok(())
    }

    fn turn(&mut self, now: Instant, number: u64, room: &mut [u8]) -> Result<(), thinair_os::Error> {
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(()) };
        let standing = connection.turn(now, &self.site, room, &mut self.statistics);
        if standing == ConnectionProgress::Over {
            self.connections.remove(&number);
            return Ok(());
        }
        connection.wait(&self.events)
    }
}
