//! One relayed stream: two sockets, and the octets that wait between them.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use thinair_os::{EventLoop, tcp};
use thinair_wire::time::Instant;

use crate::end::StreamEnd;

use super::cut::{Cut, SegmentTotals, SendResult};
use super::sizers::Sizers;

/// Largest number of octets that wait in one direction: reading stops until the other side accepts them.
const WAITING: usize = 65_536;

/// Time limit of the connection to the other side.
const CONNECT: Duration = Duration::from_secs(30);

/// Interval of checks for the acknowledgment of a short segment: there is no event for it.
const HELD: Duration = Duration::from_millis(5);

/// Interval of checks for the arrival of the last segments. It ends: the system gives up unacknowledged segments.
const LAST: Duration = Duration::from_millis(50);

/// State of one direction.
#[derive(Debug, Default)]
struct RelayDirection {
    octets: Vec<u8>,
    /// Number of them that were sent.
    gone: usize,
    /// True if no more octets follow.
    ended: bool,
    /// True if the end was signaled to the other side.
    shut: bool,
    /// True while less than a segment waits for more.
    held: bool,
    /// Total number of octets received.
    total: u64,
}

impl RelayDirection {
    fn waits(&self) -> &[u8] {
        self.octets.get(self.gone..).unwrap_or_default()
    }

    /// Reads available octets, as far as there is room.
    fn read(&mut self, mut from: &TcpStream, room: &mut [u8]) -> io::Result<()> {
        while !self.ended && self.waits().len() < WAITING {
            let most = room.len().min(WAITING - self.waits().len());
            match from.read(&mut room[..most]) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    self.octets.drain(..self.gone);
                    self.gone = 0;
                    self.octets.extend_from_slice(&room[..count]);
                    self.total += count as u64;
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Writes waiting octets until there is no room; returns true if that was all.
    fn write(
        &mut self,
        to: &TcpStream,
        mut write: impl FnMut(&TcpStream, &[u8], bool) -> io::Result<SendResult>,
    ) -> io::Result<()> {
        self.held = false;
        while !self.waits().is_empty() {
            match write(to, self.waits(), self.ended)? {
                SendResult::Octets(count) => self.gone += count,
                SendResult::NoRoom => return Ok(()),
                SendResult::Held => {
                    self.held = true;
                    return Ok(());
                }
            }
        }
        self.octets.clear();
        self.gone = 0;
        if self.ended && !self.shut {
            self.shut = true;
            match to.shutdown(Shutdown::Write) {
                Err(why) if why.kind() != ErrorKind::NotConnected => return Err(why),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Sends octets with the segmentation of the system.
fn uncut(mut to: &TcpStream, octets: &[u8], _ended: bool) -> io::Result<SendResult> {
    match to.write(octets) {
        Ok(count) => Ok(SendResult::Octets(count)),
        Err(why) if why.kind() == ErrorKind::WouldBlock => Ok(SendResult::NoRoom),
        Err(why) if why.kind() == ErrorKind::Interrupted => Ok(SendResult::Octets(0)),
        Err(why) => Err(why),
    }
}

/// State of a relayed stream.
#[derive(Debug)]
pub(super) enum RelayState {
    Open,
    /// All sent octets were acknowledged, and both directions have ended.
    Complete,
    /// It failed, and both sides will get a reset.
    Failed(io::Error),
}

/// A relayed stream. Segments to the constrained end are sized, those to the plain end are the system's.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) client: SocketAddr,
    pub(super) opened: Instant,
    plain: StreamEnd,
    constrained: StreamEnd,
    /// Segmentation, once it is connected.
    cut: Option<Cut>,
    /// Host at the constrained end.
    host: IpAddr,
    /// True if the proxy opens the connection to the constrained end.
    connects_constrained: bool,
    connected: bool,
    to_constrained: RelayDirection,
    to_plain: RelayDirection,
    /// Time of the next check, independent of events.
    pub(super) due: Option<Instant>,
}

impl Relay {
    /// Creates a relay: `accepted` came from `client`; `opened` is being connected.
    pub(super) fn new(
        now: Instant,
        (accepted, client): (TcpStream, SocketAddr),
        (connecting, server): (TcpStream, SocketAddr),
        constrained_is_client: bool,
        tokens: (u64, u64),
    ) -> Self {
        let (client_end, server_end) =
            (StreamEnd::new(accepted, tokens.0), StreamEnd::new(connecting, tokens.1));
        let (plain, constrained, host) = if constrained_is_client {
            (server_end, client_end, client.ip())
        } else {
            (client_end, server_end, server.ip())
        };
        Self {
            client,
            opened: now,
            plain,
            constrained,
            cut: None,
            host,
            connects_constrained: !constrained_is_client,
            connected: false,
            to_constrained: RelayDirection::default(),
            to_plain: RelayDirection::default(),
            due: Some(now + CONNECT),
        }
    }

    pub(super) fn counts(&self) -> SegmentTotals {
        self.cut.as_ref().map(|cut| cut.counts).unwrap_or_default()
    }

    pub(super) fn host(&self) -> IpAddr {
        self.host
    }

    /// Returns the octets that came from the constrained side.
    pub(super) fn back(&self) -> u64 {
        self.to_plain.total
    }

    /// Moves octets as far as possible.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        sizers: &mut Sizers,
        room: &mut [u8],
        events: &EventLoop,
    ) -> RelayState {
        match self.moved(now, sizers, room).and_then(|complete| {
            if !complete {
                self.wait(events).map_err(io::Error::other)?;
            }
            Ok(complete)
        }) {
            Ok(true) => RelayState::Complete,
            Ok(false) => RelayState::Open,
            Err(why) => RelayState::Failed(why),
        }
    }

    fn moved(&mut self, now: Instant, sizers: &mut Sizers, room: &mut [u8]) -> io::Result<bool> {
        if !self.connected && !self.poll_connected(now)? {
            return Ok(false);
        }
        if self.cut.is_none() {
            self.cut = Some(Cut::new(&self.constrained.stream).map_err(io::Error::other)?);
        }
        let Some(cut) = &mut self.cut else { return Ok(false) };
        let sizer = sizers.of(self.host, now);
        self.to_constrained.read(&self.plain.stream, room)?;
        self.to_constrained.write(&self.constrained.stream, |stream, octets, ended| {
            cut.send(stream, octets, ended, sizer, now)
        })?;
        self.to_plain.read(&self.constrained.stream, room)?;
        self.to_plain.write(&self.plain.stream, uncut)?;

        self.due = self.to_constrained.held.then(|| now + HELD);
        if !(self.to_constrained.shut && self.to_plain.shut) {
            return Ok(false);
        }
        // It is closed when all sent octets have arrived, however long that takes: only then the losses are known, and
        // that nothing is missing. A later reset by the receiver loses nothing.
        self.due = Some(now + LAST);
        if cut.look(&self.constrained.stream, sizer, now).map_err(io::Error::other)? {
            return Ok(true);
        }
        self.constrained.stream.take_error()?.map_or(Ok(false), Err)
    }

    fn poll_connected(&mut self, now: Instant) -> io::Result<bool> {
        let connecting = if self.connects_constrained { &self.constrained } else { &self.plain };
        if let Some(why) = connecting.stream.take_error()? {
            return Err(why);
        }
        match connecting.stream.peer_addr() {
            Ok(_) => {
                self.connected = true;
                self.due = None;
                Ok(true)
            }
            Err(why) if why.kind() != ErrorKind::NotConnected => Err(why),
            Err(_) if self.due.is_some_and(|due| now >= due) => Err(ErrorKind::TimedOut.into()),
            Err(_) => Ok(false),
        }
    }

    /// Updates the interests in the event loop.
    fn wait(&mut self, events: &EventLoop) -> Result<(), thinair_os::Error> {
        let connecting = |is_opened_here: bool| !self.connected && is_opened_here;
        let wants = |from: &RelayDirection, to: &RelayDirection, connecting: bool| {
            let reads = self.connected && !from.ended && from.waits().len() < WAITING;
            let writes = connecting || self.connected && !to.waits().is_empty() && !to.held;
            StreamEnd::interest(reads, writes)
        };
        let plain = wants(&self.to_constrained, &self.to_plain, connecting(!self.connects_constrained));
        let constrained = wants(&self.to_plain, &self.to_constrained, connecting(self.connects_constrained));
        self.plain.wait_for(plain, events)?;
        self.constrained.wait_for(constrained, events)
    }

    /// Closes both ends: normally, or with a reset if octets are missing.
    pub(super) fn close(self, is_complete: bool) {
        if !is_complete {
            tcp::reset(self.plain.stream);
            tcp::reset(self.constrained.stream);
        }
    }
}
