//! One connection: what it reads and writes, and how long each of it may take.

use std::io::{ErrorKind, Read as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use thinair_http::ServerEngine;
use thinair_os::EventLoop;
use thinair_os::tcp::fast_open;
use thinair_wire::time::Instant;

use super::Statistics;
use super::site::Site;
use thinair_services::end::StreamEnd;

/// How long a request may take from its first octet, or from the handshake, to its last.
const REQUEST: Duration = Duration::from_secs(30);

/// How long the other side may read nothing of what waits for it.
const STALL: Duration = Duration::from_secs(60);

/// How long the end of the other side is waited for.
const LINGER: Duration = Duration::from_secs(10);

/// How long a connection is kept that the engine does not close, at least.
const IDLE: Duration = Duration::from_secs(10);

/// Octets that wait to be written, from which on no request is answered.
const ENOUGH: usize = 65_536;

/// Whether there is still something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Open,
    Over,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    end: StreamEnd,
    engine: Box<dyn ServerEngine>,
    /// How long it is kept without a request.
    keep: Duration,
    /// When the last request was complete, or when it was accepted.
    heard: Instant,
    /// What it has to do next, and until when.
    phase: Phase,
    due: Instant,
    /// The other side has said that it sends no more.
    ended: bool,
    /// It has had a request.
    asked: bool,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The rest of a request.
    Request,
    /// The next request.
    Idle,
    /// Room to write.
    Writing,
    /// The end of the other side.
    Lingering,
}

impl Connection {
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
            phase: Phase::Request,
            due: now + REQUEST,
            ended: false,
            asked: false,
        }
    }

    /// When it has taken too long.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    pub(super) fn heard(&self) -> Instant {
        self.heard
    }

    /// Whether nothing is missing.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle | Phase::Lingering)
    }

    /// Reads, answers and writes.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        site: &Site,
        room: &mut [u8],
        statistics: &mut Statistics,
    ) -> Standing {
        if self.phase == Phase::Lingering {
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
                Err(_) => return Standing::Over,
            }
        }
        let sent = statistics.sent;
        loop {
            let answered = self.answer(now, site, statistics);
            if self.write(statistics).is_err() {
                return Standing::Over;
            }
            // Requests that had to wait until there was room are not told of by the system.
            if !answered || !self.engine.output().is_empty() {
                break;
            }
        }
        let moved = statistics.sent > sent;
        self.proceed(now, moved)
    }

    /// Answers what there is room for. Whether there was something.
    fn answer(&mut self, now: Instant, site: &Site, statistics: &mut Statistics) -> bool {
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

    /// The last octets wait for the FIN, so that both are one segment.
    fn write(&mut self, statistics: &mut Statistics) -> std::io::Result<()> {
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

    /// What is waited for now, and until when. A wait that goes on is not made longer.
    fn proceed(&mut self, now: Instant, moved: bool) -> Standing {
        let (phase, patience) = if !self.engine.output().is_empty() {
            (Phase::Writing, STALL)
        } else if self.engine.is_closing() {
            // Before the handshake is over Linux sends no FIN, and nothing that waits for one, unless the stream is closed.
            if self.engine.is_last() || self.end.stream.shutdown(Shutdown::Write).is_err() {
                return Standing::Over;
            }
            (Phase::Lingering, LINGER)
        } else if self.engine.is_idle() && self.asked {
            (Phase::Idle, self.keep.max(IDLE))
        } else {
            (Phase::Request, REQUEST)
        };
        if phase != self.phase || moved {
            (self.phase, self.due) = (phase, now + patience);
        }
        Standing::Open
    }

    /// Whoever closes while octets come in resets the stream, and the response may be lost with that.
    fn linger(&mut self, room: &mut [u8]) -> Standing {
        match (&self.end.stream).read(room) {
            Ok(0) => Standing::Over,
            Ok(_) => Standing::Open,
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Standing::Open
            }
            Err(_) => Standing::Over,
        }
    }

    /// Says what is waited for.
    pub(super) fn wait(&mut self, events: &EventLoop) -> Result<(), thinair_os::Error> {
        let reads = !self.ended && (self.phase == Phase::Lingering || self.engine.wants_input());
        self.end.wait_for(StreamEnd::interest(reads, self.phase == Phase::Writing), events)
    }
}
