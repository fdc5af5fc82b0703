//! TCP connections: accepted, bounded, read no faster than they are written to, closed without progress.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use thinair_os::{EventLoop, Interest};
use thinair_wire::time::Instant;

use super::{ServerError, ServerSettings, ServerStatistics};

/// Token of the first connection; tokens of listeners begin at [`LISTENERS`].
pub(super) const CONNECTIONS: u64 = 1 << 32;
pub(super) const LISTENERS: u64 = 1 << 31;

/// Octets read at a time.
const READ: usize = 16_384;

/// Octets waiting to be written above which nothing more is read.
const ENOUGH: usize = 65_536;

/// Limit of waiting octets of all connections together, in units of the longest body: above it, the connection
/// that has not read for the longest time is closed.
const ENOUGH_BODIES: usize = 8;

/// Time limit of the first message, a CSM. RFC 8323, section 5.3.
const FIRST_MESSAGE: Duration = Duration::from_secs(10);

/// Time limit of a message from its first octet to its last.
const MESSAGE: Duration = Duration::from_secs(60);

/// Longest time for which the other side may read nothing of the waiting octets.
const STALL: Duration = Duration::from_secs(30);

/// Connections accepted in a row.
const ACCEPTED: usize = 16;

/// One connection.
#[derive(Debug)]
struct StreamConnection {
    stream: TcpStream,
    /// Time of the latest complete message, or of the acceptance.
    last_message: Instant,
    /// True if its CSM has arrived.
    ready: bool,
    /// Time since which a message is incomplete.
    within: Option<Instant>,
    /// Octets that were read, and wait until there is room for answers.
    unread: Vec<u8>,
    /// Octets waiting to be written, from `gone` on.
    out: Vec<u8>,
    gone: usize,
    /// Time since which nothing could be written.
    stalled: Option<Instant>,
    /// True if it is closed once everything is written; nothing is read any more.
    closing: bool,
    waits_for: Interest,
}

/// All connections.
#[derive(Debug)]
pub(super) struct ServerStreams {
    listeners: Vec<TcpListener>,
    /// True while listening is suspended until the next tick, because the process has no room for another file.
    paused: bool,
    connections: BTreeMap<u64, StreamConnection>,
    next: u64,
    most: usize,
    /// Largest number of waiting octets of all connections.
    most_waiting: usize,
}

/// Result of reading a connection.
pub(super) enum ReadResult {
    /// Octets to process.
    Octets(Vec<u8>),
    /// Nothing at present.
    Nothing,
    /// End of the stream.
    End,
}

impl ServerStreams {
    pub(super) fn open(
        listeners: Vec<TcpListener>,
        events: &EventLoop,
        settings: &ServerSettings,
    ) -> Result<Self, ServerError> {
        for (listener, token) in listeners.iter().zip(LISTENERS..) {
            events.add(listener, token)?;
        }
        Ok(Self {
            listeners,
            paused: false,
            connections: BTreeMap::new(),
            next: 0,
            most: settings.max_connections.max(1),
            most_waiting: settings.endpoint.limits.max_body.saturating_mul(ENOUGH_BODIES).max(4 << 20),
        })
    }

    /// Accepts connections; returns the numbers of new ones, and of those that they displace.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        listener: usize,
        events: &EventLoop,
        statistics: &mut ServerStatistics,
    ) -> Result<(Vec<u64>, Vec<u64>), ServerError> {
        let (mut new, mut old) = (Vec::new(), Vec::new());
        for _ in 0..ACCEPTED {
            let Some(accepted) = self.listeners.get(listener).map(TcpListener::accept) else { break };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                Err(why) if why.kind() == ErrorKind::ConnectionAborted => continue,
                Err(_) => {
                    self.pause(events)?;
                    break;
                }
            };
            if stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).is_err() {
                continue;
            }
            while self.connections.len() - old.len() >= self.most {
                let others = self.connections.iter().filter(|(number, _)| !old.contains(*number));
                let Some((number, _)) = others.min_by_key(|(_, connection)| connection.last_message) else {
                    break;
                };
                old.push(*number);
                statistics.displaced += 1;
            }
            let number = self.next;
            self.next += 1;
            events.add(&stream, CONNECTIONS + number)?;
            statistics.connections += 1;
            self.connections.insert(number, StreamConnection::new(stream, now));
            new.push(number);
        }
        Ok((new, old))
    }

    /// Suspends listening for a while.
    fn pause(&mut self, events: &EventLoop) -> Result<(), ServerError> {
        if !self.paused {
            for listener in &self.listeners {
                events.remove(listener)?;
            }
            self.paused = true;
        }
        Ok(())
    }

    /// Reads available octets, if their answers would have room.
    pub(super) fn read(&mut self, number: u64) -> ReadResult {
        let Some(connection) = self.connections.get_mut(&number) else { return ReadResult::Nothing };
        if connection.closing || connection.waiting() >= ENOUGH {
            return ReadResult::Nothing;
        }
        if !connection.unread.is_empty() {
            return ReadResult::Octets(std::mem::take(&mut connection.unread));
        }
        let mut octets = vec![0; READ];
        match connection.stream.read(&mut octets) {
            Ok(0) => ReadResult::End,
            Ok(len) => {
                octets.truncate(len);
                ReadResult::Octets(octets)
            }
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                ReadResult::Nothing
            }
            Err(_) => ReadResult::End,
        }
    }

    /// True if no more octets are to be processed before something is written.
    pub(super) fn is_full(&self, number: u64) -> bool {
        self.connections.get(&number).is_some_and(|connection| connection.waiting() >= ENOUGH)
    }

    /// Stores octets that were read, to process them later.
    pub(super) fn keep(&mut self, number: u64, octets: &[u8]) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.unread = octets.to_vec();
        }
    }

    /// Records the processing of octets; `within`: the last of them are an incomplete message.
    pub(super) fn handled(&mut self, now: Instant, number: u64, within: bool) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if within {
            connection.within.get_or_insert(now);
        } else {
            connection.within = None;
            connection.last_message = now;
        }
    }

    /// Records a complete message: the octets after it belong to another one.
    pub(super) fn message(&mut self, now: Instant, number: u64) {
        if let Some(connection) = self.connections.get_mut(&number) {
            (connection.last_message, connection.within) = (now, None);
        }
    }

    /// Records the arrival of the CSM.
    pub(super) fn ready(&mut self, number: u64) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.ready = true;
        }
    }

    /// Closes a connection once everything is written.
    pub(super) fn close(&mut self, number: u64) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.closing = true;
            connection.unread = Vec::new();
        }
    }

    /// Queues octets to write.
    pub(super) fn push(&mut self, number: u64, octets: &[u8]) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.out.extend_from_slice(octets);
        }
    }

    /// Writes waiting octets. False if the connection has ended: [remove](Self::remove) it.
    pub(super) fn write(
        &mut self,
        now: Instant,
        number: u64,
        events: &EventLoop,
    ) -> Result<bool, ServerError> {
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(true) };
        if !connection.write(now) {
            return Ok(false);
        }
        let waits_for = match connection.waiting() {
            0 if connection.closing => {
                let _ = connection.stream.shutdown(Shutdown::Write);
                return Ok(false);
            }
            0 if connection.unread.is_empty() => Interest::Reading,
            // There is room for the answers to the octets that were read.
            0 => Interest::Writing,
            ENOUGH.. => Interest::Writing,
            _ if connection.closing => Interest::Writing,
            _ => Interest::ReadingAndWriting,
        };
        if waits_for != connection.waits_for {
            events.change(&connection.stream, CONNECTIONS + number, waits_for)?;
            connection.waits_for = waits_for;
        }
        Ok(true)
    }

    /// Returns the numbers of connections with something to write, or to close.
    pub(super) fn busy(&self) -> Vec<u64> {
        let busy = |connection: &StreamConnection| connection.waiting() > 0 || connection.closing;
        self.connections
            .iter()
            .filter(|(_, connection)| busy(connection))
            .map(|(number, _)| *number)
            .collect()
    }

    /// True if a connection is to be closed.
    pub(super) fn has_closing(&self) -> bool {
        self.connections.values().any(|connection| connection.closing)
    }

    /// Removes a connection.
    pub(super) fn remove(&mut self, number: u64) {
        self.connections.remove(&number);
    }

    /// Returns the numbers of all connections.
    pub(super) fn numbers(&self) -> Vec<u64> {
        self.connections.keys().copied().collect()
    }

    /// True if a time limit is running.
    pub(super) fn is_timed(&self) -> bool {
        let timed = |connection: &StreamConnection| {
            !connection.ready || connection.within.is_some() || connection.waiting() > 0
        };
        self.paused || self.connections.values().any(timed)
    }

    /// Returns the connections that have exceeded a time limit.
    pub(super) fn too_slow(&mut self, now: Instant, events: &EventLoop) -> Result<Vec<u64>, ServerError> {
        if std::mem::take(&mut self.paused) {
            for (listener, token) in self.listeners.iter().zip(LISTENERS..) {
                events.add(listener, token)?;
            }
        }
        let is_over =
            |since: Option<Instant>, patience: Duration| since.is_some_and(|at| at + patience <= now);
        let slow = |connection: &StreamConnection| {
            is_over((!connection.ready).then_some(connection.last_message), FIRST_MESSAGE)
                || is_over(connection.within, MESSAGE)
                || is_over(connection.stalled, STALL)
        };
        let mut all: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, connection)| slow(connection))
            .map(|(number, _)| *number)
            .collect();
        let waiting: usize = self.connections.values().map(StreamConnection::waiting).sum();
        if waiting > self.most_waiting {
            let stalled = self.connections.iter().filter(|(_, connection)| connection.stalled.is_some());
            all.extend(stalled.min_by_key(|(_, connection)| connection.stalled).map(|(number, _)| *number));
        }
        all.dedup();
        Ok(all)
    }

    /// Returns the address of the other side.
    pub(super) fn address(&self, number: u64) -> Option<SocketAddr> {
        self.connections.get(&number)?.stream.peer_addr().ok()
    }
}

impl StreamConnection {
    fn new(stream: TcpStream, now: Instant) -> Self {
        Self {
            stream,
            last_message: now,
            ready: false,
            within: None,
            unread: Vec::new(),
            out: Vec::new(),
            gone: 0,
            stalled: None,
            closing: false,
            waits_for: Interest::Reading,
        }
    }

    fn waiting(&self) -> usize {
        self.out.len() - self.gone
    }

    /// Writes waiting octets; false if the other side is gone.
    fn write(&mut self, now: Instant) -> bool {
        while self.gone < self.out.len() {
            match self.stream.write(&self.out[self.gone..]) {
                Ok(0) => return false,
                Ok(len) => {
                    self.gone += len;
                    self.stalled = None;
                }
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) if why.kind() == ErrorKind::WouldBlock => {
                    self.stalled.get_or_insert(now);
                    return true;
                }
                Err(_) => return false,
            }
        }
        // Memory of a burst is released.
        self.out = Vec::new();
        (self.gone, self.stalled) = (0, None);
        true
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use thinair_os::{clock, tcp};

    use super::*;

    /// Connections that were accepted at `now`, at most `most`, and their other sides.
    struct TestStreams {
        streams: ServerStreams,
        events: EventLoop,
        statistics: ServerStatistics,
        address: SocketAddr,
    }

    impl TestStreams {
        fn new(most: usize) -> Self {
            let listener = tcp::listen("127.0.0.1:0".parse().unwrap()).unwrap();
            let address = listener.local_addr().unwrap();
            let events = EventLoop::new(Duration::ZERO).unwrap();
            let settings = ServerSettings::secured(Vec::new(), 1 << 20, most);
            let streams = ServerStreams::open(vec![listener], &events, &settings).unwrap();
            Self { streams, events, statistics: ServerStatistics::default(), address }
        }

        /// Opens a connection; returns also those that it displaces.
        fn connect(&mut self, now: Instant) -> (TcpStream, u64, Vec<u64>) {
            let stream = TcpStream::connect(self.address).unwrap();
            self.events.wait(None, &mut Vec::new()).unwrap();
            let (new, old) = self.streams.accept(now, 0, &self.events, &mut self.statistics).unwrap();
            (stream, new[0], old)
        }

        fn too_slow(&mut self, now: Instant) -> Vec<u64> {
            self.streams.too_slow(now, &self.events).unwrap()
        }
    }

    #[test]
    fn one_too_many_displaces_the_one_that_is_idle_for_longest() {
        let mut bench = TestStreams::new(2);
        let now = clock::now();
        let (_one, first, gone) = bench.connect(now);
        assert_eq!(gone, [0_u64; 0]);
        let (_two, second, gone) = bench.connect(now + Duration::from_millis(1));
        assert_eq!(gone, [0_u64; 0]);
        bench.streams.message(now + Duration::from_millis(2), first);
        // Octets of an incomplete message do not count as activity.
        bench.streams.handled(now + Duration::from_millis(3), second, true);
        let (_three, third, gone) = bench.connect(now + Duration::from_millis(4));
        assert_eq!(gone, [second]);
        bench.streams.remove(second);
        assert_eq!(bench.streams.numbers(), [first, third]);
        assert_eq!((bench.statistics.connections, bench.statistics.displaced), (3, 1));
    }

    #[test]
    fn what_takes_too_long_is_reported() {
        let mut bench = TestStreams::new(9);
        let now = clock::now();
        let (_one, silent, _) = bench.connect(now);
        let (_two, halved, _) = bench.connect(now);
        let (_three, idle, _) = bench.connect(now);
        for number in [halved, idle] {
            bench.streams.ready(number);
        }
        bench.streams.handled(now, halved, true);
        assert_eq!(bench.too_slow(now + FIRST_MESSAGE / 2), [0_u64; 0]);
        assert_eq!(bench.too_slow(now + FIRST_MESSAGE), [silent]);
        bench.streams.remove(silent);
        // More octets of the same message do not extend the time limit.
        bench.streams.handled(now + MESSAGE / 2, halved, true);
        assert_eq!(bench.too_slow(now + MESSAGE), [halved]);
        bench.streams.handled(now + MESSAGE, halved, false);
        assert_eq!(bench.too_slow(now + 100 * MESSAGE), [0_u64; 0]);
        assert!(!bench.streams.is_timed(), "the rest may be idle for ever");
    }

    #[test]
    fn who_does_not_read_is_not_read_and_goes_in_the_end() {
        let mut bench = TestStreams::new(9);
        let now = clock::now();
        let (mut stream, number, _) = bench.connect(now);
        bench.streams.ready(number);
        // More than the buffers of the system.
        let octets: Vec<u8> = (0..16 << 20).map(|at| (at / 7) as u8).collect();
        bench.streams.push(number, &octets);
        assert!(bench.streams.write(now, number, &bench.events).unwrap());
        assert!(bench.streams.is_full(number));
        stream.write_all(b"a request").unwrap();
        assert!(matches!(bench.streams.read(number), ReadResult::Nothing));
        assert_eq!(bench.too_slow(now + STALL), [number]);
        let reader = std::thread::spawn(move || {
            let mut read = vec![0; 16 << 20];
            stream.read_exact(&mut read).unwrap();
            (stream, read)
        });
        while bench.streams.is_full(number) {
            bench.events.wait(None, &mut Vec::new()).unwrap();
            assert!(bench.streams.write(now + STALL, number, &bench.events).unwrap());
        }
        assert_eq!(bench.too_slow(now + STALL), [0_u64; 0]);
        let ReadResult::Octets(request) = bench.streams.read(number) else { panic!() };
        assert_eq!(request, b"a request");
        bench.streams.close(number);
        while bench.streams.write(now, number, &bench.events).unwrap() {
            bench.events.wait(None, &mut Vec::new()).unwrap();
        }
        let (_stream, read) = reader.join().unwrap();
        assert!(read == octets);
    }
}
