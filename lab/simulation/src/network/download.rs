//! TCP connection with unlimited data: cross traffic, as by FTP.

use thinair_wire::time::Instant;

use super::NetworkHost;
use super::ip::{self, HostSocket, PacketSender, Payload};
use super::stream::TcpStream;
use crate::tcp::{self, Status};

/// End of a download.
#[derive(Debug)]
pub struct Download {
    socket: HostSocket,
    other: HostSocket,
    sender: PacketSender,
    stream: TcpStream,
    /// Time at which the receiver opens the connection.
    start: Option<Instant>,
    /// Octets still to be sent.
    left: u64,
    received: u64,
    /// Arrival time of the latest octets.
    latest: Option<Instant>,
}

/// Size of a write, in octets.
const CHUNK: usize = 1 << 16;

impl Download {
    /// Receiving end, which opens the connection at `start`.
    pub fn receiver(socket: HostSocket, other: HostSocket, config: tcp::TcpConfig, start: Instant) -> Self {
        let stream = TcpStream::connect(config, start, 0x1000_0000);
        Self {
            socket,
            other,
            sender: PacketSender::connected(0),
            stream,
            start: Some(start),
            left: 0,
            received: 0,
            latest: None,
        }
    }

    /// Sending end, which sends `octets` octets once connected.
    pub fn sender(socket: HostSocket, other: HostSocket, config: tcp::TcpConfig, octets: u64) -> Self {
        let stream = TcpStream::listen(config, 0x2000_0000);
        Self {
            socket,
            other,
            sender: PacketSender::connected(0),
            stream,
            start: None,
            left: octets,
            received: 0,
            latest: None,
        }
    }

    /// Octets received here.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Arrival time of the latest octets.
    pub const fn latest(&self) -> Option<Instant> {
        self.latest
    }

    /// Status of its connection.
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

impl NetworkHost for Download {
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
