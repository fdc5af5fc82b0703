//! CoAP server that answers every request at once, with equal content.

use std::collections::{BTreeMap, VecDeque};

use thinair_coap::{Config, Counters, Endpoint, Event, Response};
use thinair_wire::time::Instant;

use super::NetworkHost;
use super::dtls::DtlsServer;
use super::ip::{self, Address, HostSocket, PacketSender, Payload};
use super::security::contexts;
use super::stream::TcpStream;
use crate::streams::RandomStream;
use crate::tcp::{self, TcpSegment};

/// CoAP server.
#[derive(Debug)]
pub struct CoapServer {
    endpoint: Endpoint<HostSocket>,
    socket: HostSocket,
    sender: PacketSender,
    streams: BTreeMap<HostSocket, TcpStream>,
    /// Segments that were sent between two writes.
    segments: VecDeque<(HostSocket, TcpSegment)>,
    tcp: tcp::TcpConfig,
    isn: u32,
    /// Sessions, if messages are in DTLS.
    sessions: Option<DtlsServer>,
    /// Additional octets after each message.
    protection: usize,
    response: Response<'static>,
    buffer: Vec<u8>,
}

impl CoapServer {
    /// Creates a server at `socket`, for datagrams with additional octets of protection, and for streams.
    pub fn new(
        socket: HostSocket,
        protection: usize,
        tcp: tcp::TcpConfig,
        config: Config,
        response: Response<'static>,
        mut choices: RandomStream,
    ) -> Self {
        Self {
            sender: PacketSender::unconnected(choices.next_u64() as u16),
            isn: choices.next_u64() as u32,
            buffer: vec![0; config.limits.max_message + protection],
            endpoint: Endpoint::new(config, move || choices.next_u64()),
            socket,
            streams: BTreeMap::new(),
            segments: VecDeque::new(),
            tcp,
            sessions: None,
            protection,
            response,
        }
    }

    /// Counts its datagrams in random steps: [`PacketSender::stepping`].
    pub(super) fn stepping(self, mut steps: RandomStream) -> Self {
        Self { sender: PacketSender::stepping(steps.next_u64() as u16, steps), ..self }
    }

    /// Adds the OSCORE context of the client at this address.
    pub(super) fn accept(&mut self, client: Address) {
        self.endpoint.add_context(contexts(client).1).expect("every client has another identifier");
    }

    /// Accepts datagrams in sessions of DTLS alone.
    pub(super) fn secured(self, mut choices: RandomStream) -> Self {
        Self { sessions: Some(DtlsServer::new(self.buffer.len(), choices.next_u64())), ..self }
    }

    /// Counters of the message layer.
    pub fn counters(&self) -> &Counters {
        self.endpoint.counters()
    }

    /// Writes every response separately, as servers do that answer one request after the other: Nagle's algorithm
    /// handles the first before the second exists.
    fn write(&mut self, now: Instant) {
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.buffer) {
            let Some(stream) = self.streams.get_mut(&transmit.peer) else { continue };
            stream.write(now, &self.buffer[..transmit.len]);
            while let Some(segment) = stream.poll_transmit(now) {
                self.segments.push_back((transmit.peer, segment));
            }
        }
    }

    fn answer(
        endpoint: &mut Endpoint<HostSocket>,
        response: &Response<'_>,
        now: Instant,
        event: &Event<'_, HostSocket>,
    ) {
        if let Event::Request { id, .. } = event {
            // A response without room is dropped: the client repeats its request.
            let _ = endpoint.respond(now, *id, response);
        }
    }
}

impl NetworkHost for CoapServer {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        let Some((from, port, payload)) = ip::read(packet) else { return };
        if port != self.socket.port {
            return;
        }
        match payload {
            Payload::Udp(datagram) if self.sessions.is_some() => {
                let mut octets = datagram.to_vec();
                let mut rest = &mut octets[..];
                while let Some(message) =
                    self.sessions.as_mut().and_then(|sessions| sessions.receive(now, from, &mut rest))
                {
                    if let Some(event) = self.endpoint.handle_datagram(now, from, message) {
                        Self::answer(&mut self.endpoint, &self.response, now, &event);
                    }
                }
            }
            Payload::Udp(datagram) => {
                let message =
                    datagram.get(..datagram.len().saturating_sub(self.protection)).unwrap_or_default();
                if let Some(event) = self.endpoint.handle_datagram(now, from, message) {
                    Self::answer(&mut self.endpoint, &self.response, now, &event);
                }
            }
            Payload::Tcp(segment) => {
                let (tcp, isn) = (self.tcp, &mut self.isn);
                let stream = self.streams.entry(from).or_insert_with(|| {
                    *isn = isn.wrapping_add(64_000);
                    TcpStream::listen(tcp, *isn)
                });
                let octets = stream.handle_segment(now, &segment);
                if stream.take_opened() {
                    self.endpoint.connected(now, from);
                }
                let mut rest = &octets[..];
                while let Some(event) = self.endpoint.handle_stream(now, from, &mut rest) {
                    Self::answer(&mut self.endpoint, &self.response, now, &event);
                    self.write(now);
                }
            }
        }
        while let Some(event) = self.endpoint.poll_event() {
            Self::answer(&mut self.endpoint, &self.response, now, &event);
        }
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        if let Some((to, segment)) = self.segments.pop_front() {
            self.sender.tcp(self.socket, to, &segment, packet);
            return true;
        }
        if let Some((to, datagram)) = self.sessions.as_mut().and_then(|sessions| sessions.poll(now)) {
            self.sender.udp(self.socket, to, datagram, packet);
            return true;
        }
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.buffer) {
            if let Some(stream) = self.streams.get_mut(&transmit.peer) {
                stream.write(now, &self.buffer[..transmit.len]);
                continue;
            }
            let end = transmit.len + self.protection;
            self.buffer[transmit.len..end].fill(0);
            let datagram = match &mut self.sessions {
                Some(sessions) => sessions.seal(transmit.peer, &self.buffer[..end]),
                None => Some(&self.buffer[..end]),
            };
            if let Some(datagram) = datagram {
                self.sender.udp(self.socket, transmit.peer, datagram, packet);
                return true;
            }
        }
        for (to, stream) in &mut self.streams {
            if let Some(segment) = stream.poll_transmit(now) {
                self.sender.tcp(self.socket, *to, &segment, packet);
                return true;
            }
        }
        false
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let streams = self.streams.values().filter_map(TcpStream::poll_timeout).min();
        let sessions = self.sessions.as_ref().and_then(DtlsServer::poll_timeout);
        [self.endpoint.poll_timeout(), streams, sessions].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        self.streams.values_mut().for_each(|stream| stream.handle_timeout(now));
        if let Some(sessions) = &mut self.sessions {
            sessions.handle_timeout(now);
        }
    }
}
