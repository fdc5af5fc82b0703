//! Carrier of datagrams: a UDP socket, a serial line, or files. Nothing here blocks.

mod file;
mod serial;
mod udp;

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

use thinair_os::udp::SocketMemory;
use thinair_os::udp::errors::ErrorReport;
use thinair_os::{Error, Signals};
use thinair_session::AddressPair;
use thinair_wire::time::Instant;

use super::helper::Helper;
use crate::site::add_counters;
use crate::site_config::Carrier;

use file::Files;
use serial::Line;
use udp::Socket;

/// Octets read from a line or a file at a time.
const CHUNK: usize = 16_384;

/// The carrier of a site.
#[derive(Debug)]
pub(super) enum Outside {
    Udp(Box<Socket>),
    Serial(Box<Line>),
    File(Box<Files>),
}

/// Data received from the carrier.
pub(super) enum Arrival<'a> {
    /// A datagram, its sender, and the own address to which it was sent.
    Datagram(Option<AddressPair>, &'a mut [u8]),
    /// Octets of a stream without boundaries of datagrams.
    Stream(&'a [u8]),
    /// A frame with a wrong CRC.
    WrongCrc,
    /// A frame that is invalid for another reason.
    BadFrame,
    /// A datagram that is longer than any datagram of a tunnel.
    TooLong,
}

/// Outcome of a flush.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Flushed {
    /// Numbers of datagrams that the system refused.
    pub(super) refused: Vec<u64>,
    /// Numbers of datagrams that are longer than an interface of this machine allows.
    pub(super) too_long: Vec<u64>,
    /// True if datagrams wait for room.
    pub(super) waits: bool,
}

/// True if more data may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// All available data was received.
    All,
    /// More data may be available.
    More,
    /// The stream has ended.
    End,
}

impl Outside {
    /// Opens the carrier of a configuration, for datagrams of at most `largest` octets. `offloads`: many of them are one
    /// message, if the system can do so. `signals` end the wait for the reader of a named pipe.
    pub(super) fn open(
        carrier: &Carrier,
        largest: usize,
        offloads: bool,
        signals: &Signals,
    ) -> Result<Self, Error> {
        Ok(match carrier {
            Carrier::Udp { listen, group, ttl, .. } => {
                Self::Udp(Box::new(Socket::open(*listen, group.as_ref(), *ttl, largest, offloads)?))
            }
            Carrier::Serial { path, speed, framing, crc, .. } => {
                Self::Serial(Box::new(Line::open(path, *speed, *framing, *crc, largest)?))
            }
            Carrier::File { from, to, .. } => {
                Self::File(Box::new(Files::open(from.as_deref(), to.as_deref(), signals)?))
            }
        })
    }

    /// Port of the socket. `None` if the carrier is no socket.
    pub(super) fn port(&self) -> Option<u16> {
        match self {
            Self::Udp(socket) => socket.port(),
            Self::Serial(_) | Self::File(_) => None,
        }
    }

    /// The file to wait for before reading. `None`: there is none now, or it is always ready.
    pub(super) fn readable(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Udp(socket) => Some(socket.as_fd()),
            Self::Serial(line) => line.as_fd(),
            Self::File(files) => files.readable(),
        }
    }

    /// The file to wait for before writing. `None`: there is none now, or it is always ready.
    pub(super) fn writable(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Udp(socket) => Some(socket.as_fd()),
            Self::Serial(line) => line.as_fd(),
            Self::File(files) => files.writable(),
        }
    }

    /// True if data may be available without waiting.
    pub(super) fn is_always_readable(&self) -> bool {
        matches!(self, Self::File(files) if files.is_always_readable())
    }

    /// Queues the datagram of a number; the next [`flush`](Self::flush) sends it, or returns the number.
    pub(super) fn carry(&mut self, number: u64, to: Option<AddressPair>, datagram: &[u8]) {
        match self {
            Self::Udp(socket) => socket.carry(number, to, datagram),
            Self::Serial(line) => line.carry(number, datagram),
            Self::File(files) => files.carry(number, datagram),
        }
    }

    /// True if so much is queued that no more packets should be read from the interface.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Udp(socket) => socket.is_full(),
            Self::Serial(line) => line.is_full(),
            Self::File(files) => files.is_full(),
        }
    }

    /// Sends queued data, as far as there is room.
    pub(super) fn flush(&mut self, now: Instant) -> Flushed {
        match self {
            Self::Udp(socket) => socket.flush(),
            Self::Serial(line) => line.flush(now),
            Self::File(files) => files.flush(),
        }
    }

    /// Receives a limited amount of data, for [`poll_arrival`](Self::poll_arrival).
    pub(super) fn receive(&mut self, now: Instant) -> Received {
        match self {
            Self::Udp(socket) => socket.receive(),
            Self::Serial(line) => line.receive(now),
            Self::File(files) => files.receive(),
        }
    }

    /// The next part of the received data.
    pub(super) fn poll_arrival(&mut self) -> Option<Arrival<'_>> {
        match self {
            Self::Udp(socket) => socket.poll_arrival(),
            Self::Serial(line) => line.poll_arrival(),
            Self::File(files) => files.poll_arrival(),
        }
    }

    /// Time of the next attempt to open a lost line.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        match self {
            Self::Serial(line) => line.retry_at(),
            Self::Udp(_) | Self::File(_) => None,
        }
    }

    /// Tries to open a lost line. Returns whether it is open again.
    pub(super) fn retry(&mut self, now: Instant, helper: &mut Helper) -> bool {
        match self {
            Self::Serial(line) => line.retry(now, helper),
            Self::Udp(_) | Self::File(_) => false,
        }
    }

    /// The next error report on a datagram that was sent before.
    pub(super) fn next_report(&mut self) -> Option<ErrorReport> {
        match self {
            Self::Udp(socket) => socket.next_report(),
            Self::Serial(_) | Self::File(_) => None,
        }
    }

    /// Buffer sizes of a socket.
    pub(super) fn memory(&self) -> Option<SocketMemory> {
        match self {
            Self::Udp(socket) => socket.memory(),
            Self::Serial(_) | Self::File(_) => None,
        }
    }

    /// Names of the offloads in use.
    pub(super) fn offloads(&self) -> impl Iterator<Item = &'static str> {
        let [sends, receives] = match self {
            Self::Udp(socket) => socket.offloads(),
            Self::Serial(_) | Self::File(_) => [false; 2],
        };
        let names = [("udp_segment", sends), ("udp_gro", receives)];
        names.into_iter().filter_map(|(name, is_used)| is_used.then_some(name))
    }

    /// Counters of a line, by name.
    pub(super) fn line_status(&self) -> Option<BTreeMap<String, u64>> {
        let Self::Serial(line) = self else { return None };
        let (sent, received) = line.counters();
        let mut counters = BTreeMap::new();
        add_counters(&mut counters, "sent_", &sent);
        add_counters(&mut counters, "received_", &received);
        Some(counters)
    }
}
