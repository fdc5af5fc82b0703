//! CoAP client that repeats a request, and records the duration of each exchange.

use core::time::Duration;
use std::collections::BTreeMap;

use thinair_coap::oscore::ContextId;
use thinair_coap::{CallError, CallId, Config, Endpoint, Event, Request};
use thinair_wire::time::Instant;

use super::NetworkHost;
use super::dtls::DtlsClient;
use super::ip::{self, HostSocket, PacketSender, Payload};
use super::security::contexts;
use super::stream::TcpStream;
use crate::streams::RandomStream;
use crate::tcp;

/// Times of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPace {
    /// Fixed interval, independent of responses.
    Open {
        /// Time between two requests.
        interval: Duration,
    },
    /// Fixed time after the previous exchange was answered or given up.
    Closed {
        /// Zero: at once.
        think: Duration,
    },
}

/// Requests of a client.
#[derive(Clone, Debug)]
pub struct Requests {
    /// Request.
    pub request: Request<'static>,
    /// Maximum number of requests.
    pub count: usize,
    /// Time of the first request.
    pub start: Instant,
    /// Times of the other requests.
    pub pace: RequestPace,
}

/// Transport of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageTransport {
    /// One datagram per message, with additional octets for a protection of messages.
    Udp {
        /// Additional octets.
        protection: usize,
    },
    /// One datagram per message, protected by OSCORE (RFC 8613). Each client has a security context.
    Oscore,
    /// Datagrams in sessions of DTLS 1.2 (RFC 6347) with pre-shared keys and connection IDs, which are made from the start of time on.
    Dtls,
    /// Stream (RFC 8323), which is opened at the start of time.
    Tcp(tcp::TcpConfig),
}

/// Request and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientExchange {
    /// Time of the request.
    pub made: Instant,
    /// Time at which it was answered or given up; `None` while it is in progress.
    pub ended: Option<Instant>,
    /// Reason that it was not answered.
    pub error: Option<CallError>,
}

impl ClientExchange {
    /// Time from the request to its response; `None` without a response.
    pub fn took(&self) -> Option<Duration> {
        self.ended.filter(|_| self.error.is_none()).map(|ended| ended.since(self.made))
    }
}

/// CoAP client.
#[derive(Debug)]
pub struct CoapClient {
    endpoint: Endpoint<HostSocket>,
    socket: HostSocket,
    server: HostSocket,
    sender: PacketSender,
    stream: Option<TcpStream>,
    session: Option<DtlsClient>,
    /// Additional octets after each message.
    protection: usize,
    /// Security context of the requests.
    context: Option<ContextId>,
    requests: Requests,
    next: Option<Instant>,
    under_way: BTreeMap<CallId, usize>,
    exchanges: Vec<ClientExchange>,
    /// Number of retransmissions before these requests.
    before: u64,
    buffer: Vec<u8>,
}

impl CoapClient {
    /// Creates a client at `socket` for `server`. `choices` is the source of its Message IDs, Tokens and dither.
    pub fn new(
        socket: HostSocket,
        server: HostSocket,
        transport: MessageTransport,
        config: Config,
        requests: Requests,
        mut choices: RandomStream,
    ) -> Self {
        let identification = choices.next_u64() as u16;
        let (mut stream, mut session, mut protection, mut own) = (None, None, 0, None);
        match transport {
            MessageTransport::Udp { protection: octets } => protection = octets,
            MessageTransport::Oscore => own = Some(contexts(socket.address).0),
            MessageTransport::Dtls => {
                session = Some(DtlsClient::connect(config.limits.max_message, choices.next_u64()));
            }
            MessageTransport::Tcp(tcp) => {
                stream = Some(TcpStream::connect(tcp, Instant::ZERO, choices.next_u64() as u32));
            }
        }
        let mut endpoint = Endpoint::new(config, move || choices.next_u64());
        let context = own.map(|own| endpoint.add_context(own).expect("it is the only one"));
        Self {
            buffer: vec![0; config.limits.max_message + protection],
            endpoint,
            socket,
            server,
            sender: PacketSender::connected(identification),
            stream,
            session,
            protection,
            context,
            next: (requests.count > 0).then_some(requests.start),
            requests,
            under_way: BTreeMap::new(),
            exchanges: Vec::new(),
            before: 0,
        }
    }

    /// Exchanges in the order of their requests.
    pub fn exchanges(&self) -> &[ClientExchange] {
        &self.exchanges
    }

    /// Planned time of the first request; a stream is opened, and a session made, before.
    pub(super) const fn start(&self) -> Instant {
        self.requests.start
    }

    /// True if every request has ended.
    pub fn is_done(&self) -> bool {
        self.exchanges.len() == self.requests.count && self.under_way.is_empty()
    }

    /// Number of retransmissions during these requests.
    pub fn retransmissions(&self) -> u64 {
        self.endpoint.counters().retransmissions - self.before
    }

    /// Message layer.
    pub const fn endpoint(&self) -> &Endpoint<HostSocket> {
        &self.endpoint
    }

    /// Starts other requests, and keeps the measurements of the path.
    pub fn begin(&mut self, requests: Requests) {
        self.before = self.endpoint.counters().retransmissions;
        self.exchanges.clear();
        self.under_way.clear();
        self.next = (requests.count > 0).then_some(requests.start);
        self.requests = requests;
    }

    /// Status of the stream, if there is one.
    pub fn stream_status(&self) -> Option<tcp::Status> {
        self.stream.as_ref().map(|stream| stream.connection.status())
    }

    /// True if requests can be sent: a stream must be open, and a session made.
    pub(super) fn is_ready(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.connection.is_open())
            && self.session.as_ref().is_none_or(DtlsClient::is_connected)
    }

    fn make(&mut self, now: Instant) {
        if !self.is_ready() {
            return;
        }
        while self.next.is_some_and(|next| next <= now) && self.exchanges.len() < self.requests.count {
            let made = self.next.map_or(now, |next| next.max(self.requests.start));
            self.next = match self.requests.pace {
                RequestPace::Open { interval } => Some(made + interval),
                RequestPace::Closed { .. } => None,
            };
            if self.exchanges.len() + 1 == self.requests.count {
                self.next = None;
            }
            let number = self.exchanges.len();
            self.exchanges.push(ClientExchange { made, ended: None, error: None });
            let request = &self.requests.request;
            let call = match self.context {
                Some(context) => self.endpoint.request_protected(now, self.server, request, context),
                None => self.endpoint.request(now, self.server, request),
            };
            match call {
                Ok(call) => {
                    self.under_way.insert(call, number);
                }
                // No room for it: the exchange fails at once.
                Err(_) => self.end(now, number, Some(CallError::NoResponse)),
            }
        }
    }

    fn end(&mut self, now: Instant, number: usize, error: Option<CallError>) {
        let Some(exchange) = self.exchanges.get_mut(number) else { return };
        (exchange.ended, exchange.error) = (Some(now), error);
        if let (RequestPace::Closed { think }, true) =
            (self.requests.pace, self.exchanges.len() < self.requests.count)
        {
            self.next = Some(now + think);
        }
    }

    fn take(&mut self, now: Instant, event: &Event<'_, HostSocket>) {
        let (call, error) = match event {
            Event::Response { call, .. } => (call, None),
            Event::Failed { call, error } => (call, Some(*error)),
            _ => return,
        };
        if let Some(number) = self.under_way.remove(call) {
            self.end(now, number, error);
        }
    }

    /// Processes a datagram in a session.
    fn take_records(&mut self, now: Instant, datagram: &[u8]) {
        let was_ready = self.is_ready();
        let mut octets = datagram.to_vec();
        let mut rest = &mut octets[..];
        while let Some(message) = self.session.as_mut().and_then(|session| session.receive(now, &mut rest)) {
            if let Some(event) = self.endpoint.handle_datagram(now, self.server, message) {
                self.take(now, &event);
            }
        }
        if !was_ready {
            // A session that is made late delays the first request.
            self.next = self.next.map(|next| next.max(now));
        }
    }

    fn take_events(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            self.take(now, &event);
        }
        self.make(now);
    }
}

impl NetworkHost for CoapClient {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        let Some((from, port, payload)) = ip::read(packet) else { return };
        if from != self.server || port != self.socket.port {
            return;
        }
        match (payload, &mut self.stream) {
            (Payload::Udp(datagram), None) if self.session.is_some() => self.take_records(now, datagram),
            (Payload::Udp(datagram), None) => {
                let message =
                    datagram.get(..datagram.len().saturating_sub(self.protection)).unwrap_or_default();
                if let Some(event) = self.endpoint.handle_datagram(now, from, message) {
                    self.take(now, &event);
                }
            }
            (Payload::Tcp(segment), Some(stream)) => {
                let octets = stream.handle_segment(now, &segment);
                if stream.take_opened() {
                    self.endpoint.connected(now, from);
                    // A stream that opens late delays the first request.
                    self.next = self.next.map(|next| next.max(now));
                }
                let mut rest = &octets[..];
                while let Some(event) = self.endpoint.handle_stream(now, from, &mut rest) {
                    self.take(now, &event);
                }
            }
            _ => return,
        }
        self.take_events(now);
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        match &mut self.stream {
            None => {
                if let Some(datagram) = self.session.as_mut().and_then(|session| session.poll(now)) {
                    self.sender.udp(self.socket, self.server, datagram, packet);
                    return true;
                }
                while let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.buffer) {
                    let end = transmit.len + self.protection;
                    self.buffer[transmit.len..end].fill(0);
                    let datagram = match &mut self.session {
                        Some(session) => session.seal(now, &self.buffer[..end]),
                        None => Some(&self.buffer[..end]),
                    };
                    // Without a session a message is lost, and sent again in the next one.
                    if let Some(datagram) = datagram {
                        self.sender.udp(self.socket, self.server, datagram, packet);
                        return true;
                    }
                }
                false
            }
            Some(stream) => {
                while let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.buffer) {
                    stream.write(now, &self.buffer[..transmit.len]);
                }
                let Some(segment) = stream.poll_transmit(now) else { return false };
                self.sender.tcp(self.socket, self.server, &segment, packet);
                true
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let stream = self.stream.as_ref().and_then(TcpStream::poll_timeout);
        let next = self.next.filter(|_| self.is_ready());
        let session = self.session.as_ref().and_then(DtlsClient::poll_timeout);
        [next, self.endpoint.poll_timeout(), stream, session].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        if let Some(stream) = &mut self.stream {
            stream.handle_timeout(now);
        }
        if let Some(session) = &mut self.session {
            session.handle_timeout(now);
        }
        self.take_events(now);
    }
}
