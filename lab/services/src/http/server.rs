//! Files of a folder on connections, in one loop.
//!
//! One thread. What others can make it hold is bounded: [`Settings::max_connections`], and what a connection holds by
//! [`Limits`]; whoever takes too long over a request, or over reading its response, is closed.

mod connection;
mod site;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use thinair_http::Limits;
use thinair_os::tcp::fast_open;
use thinair_os::{EventLoop, Signal, Signals, clock, tcp};
use thinair_wire::time::Instant;

use super::Protocol;
use connection::{Connection, Standing};
pub(crate) use site::Site;

/// What signals and the listener are called; connections have numbers from 0 on.
const SIGNALS: u64 = u64::MAX - 1;
const LISTENER: u64 = u64::MAX - 2;

/// Octets that are read at a time.
const READ: usize = 16_384;

/// Connections that are accepted in a row.
const ACCEPTED: usize = 16;

/// How soon it is tried again to accept somebody when the system had no room for another file.
const NO_ROOM: Duration = Duration::from_millis(200);

/// What a server does.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens. Port 0: one that is free.
    pub listen: SocketAddr,
    /// In which words.
    pub protocol: Protocol,
    /// The folder whose files are served.
    pub folder: PathBuf,
    /// What clients can make a connection hold; `body`: octets of a file.
    pub limits: Limits,
    /// Connections at the same time: one more closes that which has had no request for longest. 0 is taken for 1.
    pub max_connections: usize,
    /// How long a connection without a request is kept for the next one, 10 s at least. Zero: it is closed with the response,
    /// unless the client means to use it again.
    pub keep: Duration,
}

/// What a server has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Requests that were complete.
    pub requests: u64,
    /// Responses of class 2.
    pub successes: u64,
    /// Connections that were accepted.
    pub connections: u64,
    /// Connections that were closed for new ones.
    pub displaced: u64,
    /// Connections that were closed because nothing came of them, or because they did not read.
    pub too_slow: u64,
    /// Octets that came.
    pub received: u64,
    /// Octets that were given to TCP.
    pub sent: u64,
}

/// A server. [`run`](Self::run) serves until the process is asked to end.
#[derive(Debug)]
pub struct Server {
    settings: Settings,
    site: Site,
    address: SocketAddr,
    listener: TcpListener,
    is_listening: bool,
    /// When to listen again.
    listens_at: Option<Instant>,
    events: EventLoop,
    signals: Signals,
    connections: BTreeMap<u64, Connection>,
    next: u64,
    statistics: Statistics,
}

impl Server {
    /// Listens. **Before any other thread is started:** signals are taken.
    ///
    /// # Errors
    /// There is no such address here, somebody else has it, or the folder cannot be read.
    pub fn open(settings: Settings) -> Result<Self, thinair_os::Error> {
        let signals = Signals::take()?;
        let site = Site::open(&settings.folder, settings.limits.body)?;
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
            statistics: Statistics::default(),
        })
    }

    /// Where it listens, with the port that it has got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has done so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Serves until a signal asks it to end; connections that are open then are closed.
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
            let is_due =
                |(number, connection): (&u64, &Connection)| (connection.due() <= now).then_some(*number);
            for number in self.connections.iter().filter_map(is_due).collect::<Vec<_>>() {
                self.statistics.too_slow +=
                    u64::from(!self.connections.get(&number).is_some_and(Connection::is_idle));
                self.connections.remove(&number);
            }
            if self.listens_at.is_some_and(|at| at <= now) && !self.is_listening {
                self.events.add(&self.listener, LISTENER)?;
                (self.is_listening, self.listens_at) = (true, None);
            }
        }
    }

    /// Accepts who waits. With Fast Open their requests are there already.
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
            // The response acknowledges the rest of its request.
            if prepared.and_then(|()| if fast { fast_open::hold(&stream) } else { Ok(()) }).is_err() {
                continue;
            }
            while self.connections.len() >= self.settings.max_connections.max(1) {
                let longest = self.connections.iter().min_by_key(|(_, connection)| connection.heard());
                let Some(number) = longest.map(|(number, _)| *number) else { break };
                self.connections.remove(&number);
                self.statistics.displaced += 1;
            }
            let Settings { protocol, keep, limits, .. } = self.settings;
            let engine = protocol.server(!keep.is_zero(), limits);
            let number = self.next;
            self.next += 1;
            let connection = Connection::open(stream, engine, number, keep, now);
            self.connections.insert(number, connection);
            self.statistics.connections += 1;
            self.turn(now, number, room)?;
        }
        Ok(())
    }

    fn turn(&mut self, now: Instant, number: u64, room: &mut [u8]) -> Result<(), thinair_os::Error> {
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(()) };
        let standing = connection.turn(now, &self.site, room, &mut self.statistics);
        if standing == Standing::Over {
            self.connections.remove(&number);
            return Ok(());
        }
        connection.wait(&self.events)
    }
}
