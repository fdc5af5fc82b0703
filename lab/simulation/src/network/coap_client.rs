//! A CoAP client that asks for the same thing again and again, and notes how long each exchange took.

use core::time::Duration;
use std::collections::BTreeMap;

use thinair_coap::{CallError, CallId, Config, Endpoint, Event, Request};
use thinair_wire::time::Instant;

use super::Host;
use super::ip::{self, Payload, Sender, Socket};
use super::stream::TcpStream;
use crate::streams::Stream;
use crate::tcp;

/// When requests are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// One every so often, whether the one before was answered or not.
    Open {
        /// From one to the next.
        interval: Duration,
    },
    /// The next one this long after the one before was answered, or given up.
    Closed {
        /// Zero: at once.
        think: Duration,
    },
}

/// What a client asks for, and when.
#[derive(Clone, Debug)]
pub struct Requests {
    /// The request.
    pub request: Request<'static>,
    /// How often, at most.
    pub count: usize,
    /// When the first one is made.
    pub start: Instant,
    /// When the others are.
    pub pace: Pace,
}

/// What carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A datagram each, and so many octets that a protection of messages adds to each.
    Udp {
        /// Octets.
        protection: usize,
    },
    /// A stream (RFC 8323), which is opened at the start of time.
    Tcp(tcp::Config),
}

/// One request and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When it was made.
    pub made: Instant,
    /// When it was answered, or given up; nothing while it is under way.
    pub ended: Option<Instant>,
    /// Why it was not answered.
    pub error: Option<CallError>,
}

impl Exchange {
    /// From the request to its response; nothing if there was none.
    pub fn took(&self) -> Option<Duration> {
        self.ended.filter(|_| self.error.is_none()).map(|ended| ended.since(self.made))
    }
}

/// The client.
#[derive(Debug)]
pub struct CoapClient {
    endpoint: Endpoint<Socket>,
    socket: Socket,
    server: Socket,
    sender: Sender,
    stream: Option<TcpStream>,
    /// Octets behind each message.
    protection: usize,
    requests: Requests,
    next: Option<Instant>,
    under_way: BTreeMap<CallId, usize>,
    exchanges: Vec<Exchange>,
    /// Messages that were sent again before these requests.
    before: u64,
    buffer: Vec<u8>,
}

impl CoapClient {
    /// A client at `socket` that asks `server`. `choices` is where its Message IDs, Tokens and dither come from.
    pub fn new(
        socket: Socket,
        server: Socket,
        transport: Transport,
        config: Config,
        requests: Requests,
        mut choices: Stream,
    ) -> Self {
        let identification = choices.next_u64() as u16;
        let (mut stream, mut protection) = (None, 0);
        match transport {
            Transport::Udp { protection: octets } => protection = octets,
            Transport::Tcp(tcp) => {
                stream = Some(TcpStream::connect(tcp, Instant::ZERO, choices.next_u64() as u32));
            }
        }
        Self {
            buffer: vec![0; config.limits.max_message + protection],
            endpoint: Endpoint::new(config, move || choices.next_u64()),
            socket,
            server,
            sender: Sender::connected(identification),
            stream,
            protection,
            next: (requests.count > 0).then_some(requests.start),
            requests,
            under_way: BTreeMap::new(),
            exchanges: Vec::new(),
            before: 0,
        }
    }

    /// Every request that was made, in that order.
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// When the first request was to be made: with a stream that is opened first, before it was.
    pub(super) const fn start(&self) -> Instant {
        self.requests.start
    }

    /// Whether every request was made and has ended.
    pub fn is_done(&self) -> bool {
        self.exchanges.len() == self.requests.count && self.under_way.is_empty()
    }

    /// Messages that were sent again since these requests were begun.
    pub fn retransmissions(&self) -> u64 {
        self.endpoint.counters().retransmissions - self.before
    }

    /// The message layer.
    pub const fn endpoint(&self) -> &Endpoint<Socket> {
        &self.endpoint
    }

    /// Begins anew with other requests, and with all that was learned of the path.
    pub fn begin(&mut self, requests: Requests) {
        self.before = self.endpoint.counters().retransmissions;
        self.exchanges.clear();
        self.under_way.clear();
        self.next = (requests.count > 0).then_some(requests.start);
        self.requests = requests;
    }

    /// How the stream is, if it goes by one.
    pub fn stream_status(&self) -> Option<tcp::Status> {
        self.stream.as_ref().map(|stream| stream.connection.status())
    }

    /// Whether requests can be made: a stream has to be open.
    fn is_ready(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.connection.is_open())
    }

    fn make(&mut self, now: Instant) {
        if !self.is_ready() {
            return;
        }
        while self.next.is_some_and(|next| next <= now) && self.exchanges.len() < self.requests.count {
            let made = self.next.map_or(now, |next| next.max(self.requests.start));
            self.next = match self.requests.pace {
                Pace::Open { interval } => Some(made + interval),
                Pace::Closed { .. } => None,
            };
            if self.exchanges.len() + 1 == self.requests.count {
                self.next = None;
            }
            let number = self.exchanges.len();
            self.exchanges.push(Exchange { made, ended: None, error: None });
            match self.endpoint.request(now, self.server, &self.requests.request) {
                Ok(call) => {
                    self.under_way.insert(call, number);
                }
                // There is no room for it: it fails at once.
                Err(_) => self.end(now, number, Some(CallError::NoResponse)),
            }
        }
    }

    fn end(&mut self, now: Instant, number: usize, error: Option<CallError>) {
        let Some(exchange) = self.exchanges.get_mut(number) else { return };
        (exchange.ended, exchange.error) = (Some(now), error);
        if let (Pace::Closed { think }, true) =
            (self.requests.pace, self.exchanges.len() < self.requests.count)
        {
            self.next = Some(now + think);
        }
    }

    fn take(&mut self, now: Instant, event: &Event<'_, Socket>) {
        let (call, error) = match event {
            Event::Response { call, .. } => (call, None),
            Event::Failed { call, error } => (call, Some(*error)),
            _ => return,
        };
        if let Some(number) = self.under_way.remove(call) {
            self.end(now, number, error);
        }
    }

    fn take_events(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            self.take(now, &event);
        }
        self.make(now);
    }
}

impl Host for CoapClient {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        let Some((from, port, payload)) = ip::read(packet) else { return };
        if from != self.server || port != self.socket.port {
            return;
        }
        match (payload, &mut self.stream) {
            (Payload::Udp(datagram), None) => {
                let message =
                    datagram.get(..datagram.len().saturating_sub(self.protection)).unwrap_or_default();
                if let Some(event) = self.endpoint.handle_datagram(now, from, message) {
                    self.take(now, &event);
                }
            }
            (Payload::Tcp(segment), Some(stream)) => {
                let octets = stream.handle_segment(now, &segment);
                if stream.has_just_opened() {
                    self.endpoint.connected(now, from);
                    // Whoever opens late begins late.
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
                let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.buffer) else { return false };
                let end = transmit.len + self.protection;
                self.buffer[transmit.len..end].fill(0);
                self.sender.udp(self.socket, self.server, &self.buffer[..end], packet);
                true
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
        [next, self.endpoint.poll_timeout(), stream].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        if let Some(stream) = &mut self.stream {
            stream.handle_timeout(now);
        }
        self.take_events(now);
    }
}
