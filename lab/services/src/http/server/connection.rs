//! One connection: its input and output, and their time limits.

use std::io::{ErrorKind, Read as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use thinair_http::ServerEngine;
use thinair_os::EventLoop;
use thinair_os::tcp::fast_open;
use thinair_wire::time::Instant;

use super::HttpServerStatistics;
use super::site::ServedFolder;
use thinair_services::end::StreamEnd;

/// Time limit of a request, from its first octet, or from the handshake, to its last octet.
const REQUEST: Duration = Duration::from_secs(30);

/// Time after which a client that reads none of its waiting data is disconnected.
const STALL: Duration = Duration::from_secs(60);

/// Time limit of the wait for the end of the client's stream.
const LINGER: Duration = Duration::from_secs(10);

/// Minimum time that an idle connection is kept if the engine does not close it.
const IDLE: Duration = Duration::from_secs(10);

/// Size of the unsent output, in octets, above which no request is answered.
const ENOUGH: usize = 65_536;

/// Progress of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionProgress {
    Open,
    Over,
}

/// Connection to one client.
#[derive(Debug)]
pub(super) struct ServerConnection {
    end: StreamEnd,
    engine: Box<dyn ServerEngine>,
    /// Time that it is kept without a request.
    keep: Duration,
    /// Time of the latest complete request, or of the accept.
    heard: Instant,
    /// Current phase, and its deadline.
    phase: ConnectionPhase,
    due: Instant,
    /// The client has ended its side of the stream.
    ended: bool,
    /// It has had a request.
    asked: bool,
}

/// Event that a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionPhase {
    /// Rest of a request.
    Request,
    /// Next request.
    Idle,
    /// Room to write.
    Writing,
    /// End of the client's stream.
    Lingering,
}

impl ServerConnection {
    pub(super) fn open(
        stream: TcpStream,
        engine: Box<dyn ServerEngine>,
        number: u64,
        keep: Duration,
        now: Instant,
    ) -> Self {
        Self {
            end: StreamEnd::new(stream, number),
            engine,
            keep,
            heard: now,
            phase: ConnectionPhase::Request,
            due: now + REQUEST,
            ended: false,
            asked: false,
        }
    }

    /// Deadline of the current phase.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    pub(super) fn heard(&self) -> Instant {
        self.heard
    }

    /// True if no request is in progress.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.phase, ConnectionPhase::Idle | ConnectionPhase::Lingering)
    }

    /// Reads, answers and writes.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        site: &ServedFolder,
        room: &mut [u8],
        statistics: &mut HttpServerStatistics,
    ) -> ConnectionProgress {
        if self.phase == ConnectionPhase::Lingering {
            return self.linger(room);
        }
        if !self.ended && self.engine.wants_input() {
            match (&self.end.stream).read(room) {
                Ok(0) => {
                    self.ended = true;
                    self.engine.handle_end();
                }
                Ok(len) => {
                    statistics.received += len as u64;
                    self.engine.handle_input(room.get(..len).unwrap_or_default());
                }
                Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => return ConnectionProgress::Over,
            }
        }
        let sent = statistics.sent;
        loop {
            let answered = self.answer(now, site, statistics);
            if self.write(statistics).is_err() {
                return ConnectionProgress::Over;
            }
            // The system reports no event for requests that waited for room in the output.
            if !answered || !self.engine.output().is_empty() {
                break;
            }
        }
        let moved = statistics.sent > sent;
        self.proceed(now, moved)
    }

    /// Answers requests while there is room. Returns true if there was one.
    fn answer(&mut self, now: Instant, site: &ServedFolder, statistics: &mut HttpServerStatistics) -> bool {
        let before = statistics.requests;
        while self.engine.output().len() < ENOUGH
            && let Some(request) = self.engine.poll_request()
        {
            (self.heard, self.asked) = (now, true);
            let response = site.respond(&request);
            statistics.requests += 1;
            statistics.successes += u64::from(response.status < 300);
            self.engine.respond(request.stream, response);
        }
        statistics.requests > before
    }

    /// Writes the output; the last octets wait for the FIN, so that both are one segment.
    fn write(&mut self, statistics: &mut HttpServerStatistics) -> std::io::Result<()> {
        let waits =
            self.engine.is_closing() && (self.engine.is_last() || fast_open::is_open(&self.end.stream));
        while !self.engine.output().is_empty() {
            match fast_open::send(&self.end.stream, self.engine.output(), waits) {
                Ok(len) => {
                    self.engine.sent(len);
                    statistics.sent += len as u64;
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Determines the next phase and its deadline. A wait that continues keeps its deadline.
    fn proceed(&mut self, now: Instant, moved: bool) -> ConnectionProgress {
        let (phase, patience) = if !self.engine.output().is_empty() {
            (ConnectionPhase::Writing, STALL)
        } else if self.engine.is_closing() {
            // Before the handshake completes, Linux sends no FIN, and no data that waits for one, unless the stream is
            // closed.
            if self.engine.is_last() || self.end.stream.shutdown(Shutdown::Write).is_err() {
                return ConnectionProgress::Over;
            }
            (ConnectionPhase::Lingering, LINGER)
        } else if self.engine.is_idle() && self.asked {
            (ConnectionPhase::Idle, self.keep.max(IDLE))
        } else {
            (ConnectionPhase::Request, REQUEST)
        };
        if phase != self.phase || moved {
            (self.phase, self.due) = (phase, now + patience);
        }
        ConnectionProgress::Open
    }

    /// Reads until the client's end: closing while octets arrive would reset the connection, and the response might be
    /// lost.
    fn linger(&mut self, room: &mut [u8]) -> ConnectionProgress {
        match (&self.end.stream).read(room) {
            Ok(0) => ConnectionProgress::Over,
            Ok(_) => ConnectionProgress::Open,
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                ConnectionProgress::Open
            }
            Err(_) => ConnectionProgress::Over,
        }
    }

    /// Registers the event that it waits for.
    pub(super) fn wait(&mut self, events: &EventLoop) -> Result<(), thinair_os::Error> {
        let reads = !self.ended && (self.phase == ConnectionPhase::Lingering || self.engine.wants_input());
        self.end.wait_for(StreamEnd::interest(reads, self.phase == ConnectionPhase::Writing), events)
    }
}
