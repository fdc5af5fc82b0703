//! A client and a server in memory, and the wire between them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use thinair_coap::message::Message;
use thinair_coap::{
    BlockSize, CallError, CallId, Code, Config, Endpoint, Event, Gone, Observe, Policy, Received, Request,
    RequestId, Response, Tokens, Type,
};
use thinair_services::coap::CoapPeer;
use thinair_services::coap::server::{Moment, ResourceAnswer, Resources, ServerStatistics, Tests, Watches};
use thinair_wire::time::Instant;

/// Delay of a message.
const DELAY: Duration = Duration::from_millis(10);

/// Interval of the server's checks of observed resources.
const TICK: Duration = Duration::from_millis(250);

/// Start time of every test.
const START: Instant = Instant::from_millis(1_000_000);

/// Direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireDirection {
    /// To the server.
    Up,
    /// To the client.
    Down,
}
pub(crate) use WireDirection::{Down, Up};

/// A message on the wire.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SeenMessage {
    pub(crate) way: WireDirection,
    /// Time since the start.
    pub(crate) at: Duration,
    pub(crate) lost: bool,
    pub(crate) kind: Type,
    pub(crate) code: Code,
    pub(crate) mid: u16,
    pub(crate) token: Vec<u8>,
    pub(crate) options: Vec<(u16, Vec<u8>)>,
    pub(crate) payload: Vec<u8>,
}

impl SeenMessage {
    fn of(way: WireDirection, at: Duration, lost: bool, octets: &[u8]) -> Self {
        let message = Message::read(octets).unwrap();
        Self {
            way,
            at,
            lost,
            kind: message.message_type,
            code: message.code,
            mid: message.message_id,
            token: message.token.octets().to_vec(),
            options: message.options.iter().map(|option| (option.number, option.value.to_vec())).collect(),
            payload: message.payload.to_vec(),
        }
    }

    /// Asserts direction, Type and Code.
    #[track_caller]
    pub(crate) fn is(&self, way: WireDirection, kind: Type, code: Code) -> &Self {
        assert_eq!((self.way, self.kind, self.code), (way, kind, code), "{self:?}");
        self
    }

    /// Returns the values of an option.
    pub(crate) fn all(&self, number: u16) -> Vec<&[u8]> {
        self.options.iter().filter(|(other, _)| *other == number).map(|(_, value)| value.as_slice()).collect()
    }

    /// Returns the values of an option that are text.
    pub(crate) fn texts(&self, number: u16) -> Vec<&str> {
        self.all(number).into_iter().map(|value| std::str::from_utf8(value).unwrap()).collect()
    }

    /// Returns the value of a uint option.
    pub(crate) fn uint(&self, number: u16) -> Option<u32> {
        let value = self.all(number).first().copied()?;
        Some(value.iter().fold(0, |uint, octet| uint << 8 | u32::from(*octet)))
    }

    /// Returns a block option as NUM, M, size.
    pub(crate) fn block(&self, number: u16) -> Option<(u32, bool, usize)> {
        let block = thinair_coap::Block::from_uint(self.uint(number)?).unwrap();
        Some((block.num, block.more, block.size.octets()))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.payload).unwrap()
    }
}

impl fmt::Debug for SeenMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if self.way == Up { "->" } else { "<-" };
        write!(
            f,
            "{:>9.3} {way} {:?} {} MID {} token {:02x?}",
            self.at.as_secs_f64(),
            self.kind,
            self.code,
            self.mid,
            self.token
        )?;
        for (number, value) in &self.options {
            write!(f, " {number}={}", value.escape_ascii())?;
        }
        write!(f, " {} octets{}", self.payload.len(), if self.lost { " LOST" } else { "" })
    }
}

/// Events of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientEvent {
    Response(CallId, Received<'static>),
    Notification(CallId, Received<'static>),
    Failed(CallId, CallError),
}

pub(crate) struct PlugtestBench {
    pub(crate) now: Instant,
    pub(crate) client: Endpoint<CoapPeer>,
    server: Endpoint<CoapPeer>,
    site: Resources,
    watches: Watches,
    statistics: ServerStatistics,
    /// Delayed responses.
    due: BTreeMap<(Instant, usize), (RequestId, Response<'static>)>,
    tick: Instant,
    /// Messages under way.
    under_way: BTreeMap<(Instant, usize), (WireDirection, Vec<u8>)>,
    /// Every message so far.
    pub(crate) seen: Vec<SeenMessage>,
    /// Numbers of messages that are lost, counted from 0 over both directions.
    pub(crate) lose: Vec<usize>,
    /// True if nothing reaches the client any more.
    pub(crate) client_off: bool,
    pub(crate) client_events: Vec<ClientEvent>,
    /// Reasons for the removal of observers.
    pub(crate) gone: Vec<Gone>,
    /// Number of requests that the server has processed.
    pub(crate) handled: usize,
}

const fn peer(port: u16) -> CoapPeer {
    CoapPeer::Udp { socket: 0, address: SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port) }
}

/// Identity of the server for its client, and vice versa.
pub(crate) const SERVER: CoapPeer = peer(5683);
const CLIENT: CoapPeer = peer(40_000);

impl PlugtestBench {
    pub(crate) fn new() -> Self {
        Self::with_blocks(1024, 1024)
    }

    /// Creates a client and a server with these block sizes.
    pub(crate) fn with_blocks(client: usize, server: usize) -> Self {
        let config = |octets, tokens| Config {
            policy: Policy { block_size: BlockSize::at_most(octets), tokens, ..Policy::default() },
            ..Config::default()
        };
        let mut site = Resources::new();
        site.add(Tests::new());
        let mut random = 0x9E37_79B9_7F4A_7C15_u64;
        let next = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        Self {
            now: START,
            client: Endpoint::new(config(client, Tokens::Random(4)), next),
            server: Endpoint::new(config(server, Tokens::Counting), next),
            site,
            watches: Watches::default(),
            statistics: ServerStatistics::default(),
            due: BTreeMap::new(),
            tick: START + TICK,
            under_way: BTreeMap::new(),
            seen: Vec::new(),
            lose: Vec::new(),
            client_off: false,
            client_events: Vec::new(),
            gone: Vec::new(),
            handled: 0,
        }
    }

    pub(crate) fn request(&mut self, request: &Request<'_>) -> CallId {
        self.client.request(self.now, SERVER, request).unwrap()
    }

    /// Sends octets to the server that no client of this project would send.
    pub(crate) fn inject(&mut self, octets: &[u8]) {
        self.put(Up, octets);
    }

    /// Sends a request, and runs for ten seconds; returns the response, if there is one.
    pub(crate) fn ask(&mut self, request: &Request<'_>) -> Received<'static> {
        let call = self.request(request);
        self.run(10_000);
        let mut events = self.client_events.iter();
        match events
            .find(|event| matches!(event, ClientEvent::Response(other, _) | ClientEvent::Failed(other, _) if *other == call))
        {
            Some(ClientEvent::Response(_, message)) => message.clone(),
            other => panic!("{other:?}\n{:#?}", self.seen),
        }
    }

    /// Returns the messages since the previous call, which must be `N`.
    #[track_caller]
    pub(crate) fn take<const N: usize>(&mut self) -> [SeenMessage; N] {
        let seen = std::mem::take(&mut self.seen);
        seen.try_into().unwrap_or_else(|seen: Vec<SeenMessage>| panic!("{} messages: {seen:#?}", seen.len()))
    }

    /// Returns the messages since the previous call.
    pub(crate) fn all(&mut self) -> Vec<SeenMessage> {
        std::mem::take(&mut self.seen)
    }

    /// Runs for a number of milliseconds.
    pub(crate) fn run(&mut self, milliseconds: u64) {
        let end = self.now + Duration::from_millis(milliseconds);
        loop {
            self.send();
            let arrival = self.under_way.first_key_value().map(|((at, _), _)| *at);
            let due = self.due.first_key_value().map(|((at, _), _)| *at);
            let times =
                [arrival, due, self.client.poll_timeout(), self.server.poll_timeout(), Some(self.tick)];
            let next = times.into_iter().flatten().min().unwrap_or(end);
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            self.step();
        }
    }

    fn moment(&self) -> Moment {
        Moment { now: self.now, calendar: self.now.as_nanos() / 1_000_000_000 }
    }

    /// Processes everything that is due.
    fn step(&mut self) {
        while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (way, octets) = entry.remove();
            match way {
                Up => {
                    let event = self.server.handle_datagram(self.now, CLIENT, &octets).map(Event::into_owned);
                    event.into_iter().for_each(|event| self.serve(event));
                }
                Down => {
                    let event = self.client.handle_datagram(self.now, SERVER, &octets).map(Event::into_owned);
                    event.into_iter().for_each(|event| self.record(event));
                }
            }
        }
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (id, response) = entry.remove();
            self.server.respond(self.now, id, &response).unwrap();
        }
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        if self.tick <= self.now {
            self.tick = self.now + TICK;
            self.look();
        }
        while let Some(event) = self.client.poll_event() {
            self.record(event);
        }
        while let Some(event) = self.server.poll_event() {
            self.serve(event);
        }
    }

    fn look(&mut self) {
        let at = self.moment();
        self.watches.look(at, &mut self.server, &mut self.site, &mut self.statistics);
    }

    fn record(&mut self, event: Event<'static, CoapPeer>) {
        match event {
            Event::Response { call, message } => {
                self.client_events.push(ClientEvent::Response(call, message))
            }
            Event::Notification { call, message } => {
                self.client_events.push(ClientEvent::Notification(call, message))
            }
            Event::Failed { call, error } => self.client_events.push(ClientEvent::Failed(call, error)),
            Event::Progress { .. } => {}
            other => panic!("{other:?}"),
        }
    }

    /// Processes an event as the server's event loop does.
    fn serve(&mut self, event: Event<'static, CoapPeer>) {
        let at = self.moment();
        let (id, observe, message) = match event {
            Event::Request { id, observe, message, .. } => (id, observe, message),
            Event::ObserverGone { observer, reason } => {
                self.gone.push(reason);
                return self.watches.remove(observer);
            }
            Event::NotDelivered { .. } => return,
            other => panic!("{other:?}"),
        };
        self.handled += 1;
        let state = match observe {
            Some(Observe::Register) => self.site.state(at, &message),
            Some(Observe::Deregister) | None => None,
        };
        let (resource, answer) = self.site.handle(at, &message);
        match answer {
            ResourceAnswer::Now(response) => {
                if let Some(state) = state {
                    self.watches.register(at, &mut self.server, id, &message, state, &response);
                }
                self.server.respond(at.now, id, &response).unwrap();
            }
            ResourceAnswer::After(delay, response) => {
                self.due.insert((at.now + delay, self.handled), (id, response));
            }
            ResourceAnswer::End(response, last) => {
                self.server.respond(at.now, id, &response).unwrap();
                self.watches.end(at, &mut self.server, &message, &last);
            }
            ResourceAnswer::Forget(response) => {
                self.server.respond(at.now, id, &response).unwrap();
                self.watches.forget(&mut self.server, resource.unwrap());
            }
        }
        if !thinair_coap::code::is_safe(message.code) {
            self.look();
        }
    }

    /// Puts the messages of both on the wire.
    fn send(&mut self) {
        let mut buffer = [0; 1_152];
        while let Some(transmit) = self.client.poll_transmit(self.now, &mut buffer) {
            self.put(Up, &buffer[..transmit.len]);
        }
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buffer) {
            self.put(Down, &buffer[..transmit.len]);
        }
    }

    fn put(&mut self, way: WireDirection, octets: &[u8]) {
        let number = self.seen.len();
        let lost = self.lose.contains(&number) || self.client_off && way == Down;
        self.seen.push(SeenMessage::of(way, self.now.since(START), lost, octets));
        if !lost {
            // Messages of equal time keep their order.
            let order = self.under_way.last_key_value().map_or(0, |((_, order), _)| order + 1);
            self.under_way.insert((self.now + DELAY, order), (way, octets.to_vec()));
        }
    }
}
