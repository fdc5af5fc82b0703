//! Both ends of a fetch: engines of HTTP and SPDY over our TCP, and those of CoAP.

use core::time::Duration;
use std::collections::VecDeque;

use thinair_http::{ClientEngine, HttpResponse, ServerEngine, Target};
use thinair_wire::time::Instant;

use super::ConnectionEnd;
use crate::network::NetworkHost;
use crate::network::any_host::AnyHost;
use crate::network::ip::{self, HostSocket, PacketSender, Payload};
use crate::streams::RandomStream;
use crate::tcp::{TcpConfig, TcpConnection, TcpSegment};

/// Order of TCP's and the application's reactions to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manners {
    /// TCP acknowledges before the application is notified, unless the other side is done.
    pub(super) acknowledges_first: bool,
    /// The application handles data in a SYN before the SYN-ACK.
    pub(super) answers_in_syn_ack: bool,
    /// Acknowledgments wait for the next data.
    pub(super) holds: bool,
}

/// Random values of a connection: RFC 9293, section 3.4.1; RFC 6864, section 4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    pub(super) isn: u32,
    /// Identification of its first packet; that of a SYN-ACK is 0.
    pub(super) identification: u16,
}

impl Drawn {
    pub(super) fn from(choices: &mut RandomStream) -> Self {
        Self { isn: choices.next_u64() as u32, identification: choices.next_u64() as u16 }
    }
}

/// Connection between two sockets, as IP packets.
#[derive(Debug)]
struct Wire {
    connection: TcpConnection,
    own: HostSocket,
    other: HostSocket,
    sender: PacketSender,
    manners: Manners,
    /// Segments that were sent before the application was notified.
    segments: VecDeque<TcpSegment>,
}

impl Wire {
    fn new(connection: TcpConnection, [own, other]: [HostSocket; 2], manners: Manners, drawn: Drawn) -> Self {
        let sender = PacketSender::connected(drawn.identification);
        Self { connection, own, other, sender, manners, segments: VecDeque::new() }
    }

    /// Handles a packet. Returns received octets, if the packet belongs to this connection.
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) -> Option<Vec<u8>> {
        let (from, port, Payload::Tcp(segment)) = ip::read(packet)? else { return None };
        if from != self.other || port != self.own.port {
            return None;
        }
        self.connection.handle_segment(now, &segment);
        let first = if self.connection.is_open() {
            self.manners.acknowledges_first && !self.connection.is_finished()
        } else {
            !self.manners.answers_in_syn_ack
        };
        if first {
            self.flush(now);
        }
        Some(self.connection.read(usize::MAX))
    }

    fn flush(&mut self, now: Instant) {
        self.segments.extend(core::iter::from_fn(|| self.connection.poll_transmit(now)));
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        let segment = self.segments.pop_front().or_else(|| self.connection.poll_transmit(now));
        let Some(segment) = segment else { return false };
        self.sender.tcp(self.own, self.other, &segment, packet);
        true
    }
}

/// Client end.
pub(in crate::network) struct ClientEnd {
    wire: Wire,
    engine: Box<dyn ClientEngine>,
    close: ConnectionEnd,
    /// Time at which it begins, and whether it has begun.
    start: Instant,
    started: bool,
    /// Time at which it requests the next object on this connection.
    asks: Option<Instant>,
    /// Time at which the object was complete.
    done: Option<Instant>,
}

impl ClientEnd {
    pub(super) fn new(
        sockets: [HostSocket; 2],
        tcp: TcpConfig,
        manners: Manners,
        close: ConnectionEnd,
        start: Instant,
        drawn: Drawn,
        engine: Box<dyn ClientEngine>,
    ) -> Self {
        let connection = TcpConnection::connect(tcp, start, drawn.isn);
        let wire = Wire::new(connection, sockets, manners, drawn);
        let mut client = Self { wire, engine, close, start, started: false, asks: None, done: None };
        // A kernel accepts at first as much as the SYN has room for.
        let most = tcp.syn_data.map_or(usize::MAX, usize::from);
        client.write(start, if tcp.fast_open == crate::tcp::FastOpen::Off { 0 } else { most });
        client
    }

    /// Requests another object at that time, if the previous response is complete. Returns false otherwise.
    pub(super) fn ask(&mut self, at: Instant, target: Target<'_>) -> bool {
        let asks =
            self.done.is_some() && !self.wire.connection.is_closed() && self.engine.ask(target).is_ok();
        if asks {
            (self.start, self.asks, self.done) = (at, Some(at), None);
        }
        asks
    }

    fn write(&mut self, now: Instant, most: usize) {
        let output = self.engine.output();
        let taken = self.wire.connection.write(now, output.get(..most).unwrap_or(output));
        self.engine.sent(taken);
        // Only after a separate SYN: many hosts drop a SYN with a FIN.
        let all = self.engine.output().is_empty() && self.wire.connection.is_open();
        if all && self.close == ConnectionEnd::Request {
            self.wire.connection.close(now);
        }
    }
}

impl NetworkHost for ClientEnd {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        let Some(octets) = self.wire.handle_packet(now, packet) else { return };
        // An invalid response counts as a missing one.
        let read = self.engine.handle_input(&octets);
        if self.wire.connection.is_open() && self.asks.is_none() {
            self.write(now, usize::MAX);
        }
        let ended = self.wire.connection.is_finished();
        let complete = read.and_then(|()| if ended { self.engine.handle_end() } else { Ok(()) }).is_ok();
        let is_there = self.engine.response().is_some_and(|response| response.status == 200);
        if !(complete && is_there) || self.done.is_some() {
            return;
        }
        self.done = Some(now);
        match self.close {
            ConnectionEnd::Reset => self.wire.connection.abort(),
            ConnectionEnd::Response | ConnectionEnd::Request => self.wire.connection.close(now),
            ConnectionEnd::Never => {}
        }
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        self.started |= now >= self.start;
        if self.asks.is_some_and(|asks| asks <= now) {
            self.asks = None;
            self.write(now, usize::MAX);
        }
        self.started && self.wire.poll_packet(now, packet)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.started {
            return Some(self.start);
        }
        [self.asks, self.wire.connection.poll_timeout()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.started {
            self.wire.connection.handle_timeout(now);
        }
    }
}

/// Server end.
pub(in crate::network) struct ServerEnd {
    wire: Wire,
    engine: Box<dyn ServerEngine>,
    object: Vec<u8>,
}

impl ServerEnd {
    pub(super) fn new(
        sockets: [HostSocket; 2],
        tcp: TcpConfig,
        manners: Manners,
        drawn: Drawn,
        engine: Box<dyn ServerEngine>,
        object: Vec<u8>,
    ) -> Self {
        let connection = TcpConnection::listen(tcp, drawn.isn);
        Self { wire: Wire::new(connection, sockets, manners, drawn), engine, object }
    }
}

impl NetworkHost for ServerEnd {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        let Some(octets) = self.wire.handle_packet(now, packet) else { return };
        self.engine.handle_input(&octets);
        if self.wire.connection.is_finished() {
            self.engine.handle_end();
        }
        while let Some(request) = self.engine.poll_request() {
            self.engine.respond(request.stream, HttpResponse { status: 200, body: self.object.clone() });
        }
        let taken = self.wire.connection.write(now, self.engine.output());
        self.engine.sent(taken);
        if self.engine.is_closing() && self.engine.output().is_empty() {
            self.wire.connection.close(now);
        }
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        self.wire.poll_packet(now, packet)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.wire.connection.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.wire.connection.handle_timeout(now);
    }
}

impl AnyHost {
    /// Duration of the fetch; `None` without the object, or at the server.
    pub(super) fn took(&self) -> Option<Duration> {
        match self {
            Self::CoapClient(client) => {
                let exchange = client.exchanges().first().filter(|exchange| exchange.error.is_none())?;
                Some(exchange.ended?.since(client.start()))
            }
            Self::Client(client) => client.done.map(|at| at.since(client.start)),
            Self::CoapServer(_) | Self::Download(_) | Self::Server(_) => None,
        }
    }

    /// True if the object has arrived, or was given up.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::CoapClient(client) => client.is_done(),
            Self::Client(client) => client.done.is_some() || client.wire.connection.is_closed(),
            Self::CoapServer(_) | Self::Download(_) | Self::Server(_) => true,
        }
    }
}
