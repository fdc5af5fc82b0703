//! A TCP connection that carries as much as it can: cross traffic, as FTP was.

use thinair_wire::time::Instant;

use super::Host;
use super::ip::{self, Payload, Sender, Socket};
use super::stream::TcpStream;
use crate::tcp::{self, Status};

/// One end of it.
#[derive(Debug)]
pub struct Download {
    socket: Socket,
    other: Socket,
    sender: Sender,
    stream: TcpStream,
    /// When the connection is opened, at the end that asks.
    start: Option<Instant>,
    /// Octets that are still to be sent.
    left: u64,
    received: u64,
    /// When the latest of them have arrived.
    latest: Option<Instant>,
}

/// Octets that are written at a time.
const CHUNK: usize = 1 << 16;

impl Download {
    /// The end that receives: it opens the connection at `start`.
    pub fn receiver(socket: Socket, other: Socket, config: tcp::Config, start: Instant) -> Self {
        let stream = TcpStream::connect(config, start, 0x1000_0000);
        Self {
            socket,
            other,
            sender: Sender::connected(0),
            stream,
            start: Some(start),
            left: 0,
            received: 0,
            latest: None,
        }
    }

    /// The end that sends `octets`, as soon as it is asked.
    pub fn sender(socket: Socket, other: Socket, config: tcp::Config, octets: u64) -> Self {
        let stream = TcpStream::listen(config, 0x2000_0000);
        Self {
            socket,
            other,
            sender: Sender::connected(0),
            stream,
            start: None,
            left: octets,
            received: 0,
            latest: None,
        }
    }

    /// Octets that have arrived here.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// When the latest octets have arrived here.
    pub const fn latest(&self) -> Option<Instant> {
        self.latest
    }

    /// How its connection is.
    pub fn status(&self) -> Status {
        self.stream.connection.status()
    }

    fn fill(&mut self, now: Instant) {
        let room = CHUNK.saturating_sub(self.status().unacknowledged) as u64;
        let more = self.left.min(room);
        if self.stream.connection.is_open() && more > 0 {
            self.left -= more;
            self.stream.write(now, &vec![0x5A; more as usize]);
        }
    }
}

impl Host for Download {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        let Some((from, port, Payload::Tcp(segment))) = ip::read(packet) else { return };
        if from == self.other && port == self.socket.port {
            let octets = self.stream.handle_segment(now, &segment).len() as u64;
            if octets > 0 {
                self.received += octets;
                self.latest = Some(now);
            }
        }
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        if self.start.is_some_and(|start| start > now) {
            return false;
        }
        self.start = None;
        self.fill(now);
        let Some(segment) = self.stream.poll_transmit(now) else { return false };
        self.sender.tcp(self.socket, self.other, &segment, packet);
        true
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.start.or_else(|| self.stream.poll_timeout())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.stream.handle_timeout(now);
    }
}
