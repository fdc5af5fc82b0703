//! Endpoints that exchange datagrams in virtual time.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::config::Timing;
use std::string::{String, ToString};
use std::vec::Vec;

use thinair_link::Random;
use thinair_wire::time::Instant;

use crate::*;

/// The only peer of an endpoint.
pub(crate) const PEER: u8 = 1;

pub(crate) fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

pub(crate) fn endpoint(seed: u64) -> Endpoint<u8> {
    endpoint_with(seed, Config::default())
}

pub(crate) fn endpoint_with(seed: u64, config: Config) -> Endpoint<u8> {
    let mut random = Random::new(seed);
    Endpoint::new(config, move || random.next_u64())
}

/// An endpoint whose randomness is zero: Message IDs and Tokens count from 0, timeouts are not dithered.
pub(crate) fn plain(config: Config) -> Endpoint<u8> {
    Endpoint::new(config, || 0)
}

/// Settings with timeouts that follow from the RFC directly.
pub(crate) fn rfc7252() -> Config {
    Config {
        timing: Timing { congestion: congestion::Algorithm::Rfc7252, ..Timing::default() },
        ..Config::default()
    }
}

/// Returns all messages to send.
pub(crate) fn sent(endpoint: &mut Endpoint<u8>, now: Instant) -> Vec<Vec<u8>> {
    let mut buffer = [0; 2_000];
    let mut datagrams = Vec::new();
    while let Some(transmit) = endpoint.poll_transmit(now, &mut buffer) {
        datagrams.push(buffer[..transmit.len].to_vec());
    }
    datagrams
}

/// Returns all events of a datagram.
pub(crate) fn received(
    endpoint: &mut Endpoint<u8>,
    now: Instant,
    datagram: &[u8],
) -> Vec<Event<'static, u8>> {
    let mut events: Vec<_> = endpoint.handle_datagram(now, PEER, datagram).map(owned).into_iter().collect();
    events.extend(std::iter::from_fn(|| endpoint.poll_event()));
    events
}

pub(crate) fn owned(event: Event<'_, u8>) -> Event<'static, u8> {
    event.into_owned()
}

/// Application of a server, called for each event.
pub(crate) type App<'a> = dyn FnMut(&mut Endpoint<u8>, Instant, Event<'static, u8>) + 'a;

/// A client and a server with nothing lost between them. Messages are logged in the notation of RFC 7959.
pub(crate) struct EndpointPair {
    pub(crate) client: Endpoint<u8>,
    pub(crate) server: Endpoint<u8>,
    pub(crate) log: Vec<String>,
    pub(crate) millis: u64,
}

impl EndpointPair {
    pub(crate) fn new(client: Config, server: Config) -> Self {
        Self { client: plain(client), server: plain(server), log: Vec::new(), millis: 0 }
    }

    /// Carries datagrams until there are none; `app` is the server's application. Returns the client's events.
    pub(crate) fn run(&mut self, app: &mut App<'_>) -> Vec<Event<'static, u8>> {
        let mut events = Vec::new();
        loop {
            let now = at(self.millis);
            let mut idle = true;
            for datagram in sent(&mut self.client, now) {
                idle = false;
                self.log.push(std::format!("> {}", described(&datagram)));
                for event in received(&mut self.server, now, &datagram) {
                    app(&mut self.server, now, event);
                }
            }
            for datagram in sent(&mut self.server, now) {
                idle = false;
                self.log.push(std::format!("< {}", described(&datagram)));
                events.extend(received(&mut self.client, now, &datagram));
            }
            if idle {
                return events;
            }
            self.millis += 1;
        }
    }

    pub(crate) fn request(&mut self, request: &Request<'_>) -> CallId {
        self.client.request(at(self.millis), PEER, request).unwrap()
    }
}

/// Describes a message as the RFCs do: type, code, path, blocks, Observe.
pub(crate) fn described(datagram: &[u8]) -> String {
    let message = Message::read(datagram).unwrap();
    let mut words = std::vec![std::format!("{:?}", message.message_type)];
    words[0] = match message.message_type {
        Type::Confirmable => "CON",
        Type::NonConfirmable => "NON",
        Type::Acknowledgement => "ACK",
        Type::Reset => "RST",
    }
    .to_string();
    words.extend(described_body(message.code, &message.options));
    words.join(" ")
}

pub(crate) fn described_body(code: Code, options: &Options<'_>) -> Vec<String> {
    let mut words = Vec::new();
    match code.0 {
        0 => return words,
        1 => words.push("GET".to_string()),
        2 => words.push("POST".to_string()),
        3 => words.push("PUT".to_string()),
        5 => words.push("FETCH".to_string()),
        _ => words.push(code.to_string()),
    }
    let path: String =
        options.path().map(|segment| std::format!("/{}", String::from_utf8_lossy(segment))).collect();
    if !path.is_empty() {
        words.push(path);
    }
    if let Some(observe) = options.uint(number::OBSERVE) {
        words.push(std::format!("Observe:{observe}"));
    }
    for (name, number) in [('2', number::BLOCK2), ('1', number::BLOCK1)] {
        if let Some(block) = options.uint(number).and_then(Block::from_uint) {
            words.push(std::format!("{name}:{}/{}/{}", block.num, u8::from(block.more), block.size.octets()));
        }
    }
    words
}
