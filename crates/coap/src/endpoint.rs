//! The endpoint: message layer, requests and responses, as a state machine.
//!
//! It has both roles, over datagrams and streams. Sockets, clocks and resources are the application's.

mod bodies;
mod call;
mod client;
mod digest;
mod flight;
mod observers;
mod pace;
mod peer;
#[cfg(feature = "oscore")]
mod protection;
#[cfg(not(feature = "oscore"))]
#[path = "endpoint/unprotected.rs"]
mod protection;
mod receive;
mod remembered;
mod respond;
mod server;
mod stream;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::fmt;
use core::hash::Hash;

use thinair_wire::header::coap::{Coap, Code, Type};
use thinair_wire::time::Instant;

use crate::config::Config;
use crate::congestion::nanos;
use crate::event::Event;
use crate::ring::{OctetRing, OctetSpan};
use crate::table::{Order, Slab, SlotKey};
use crate::token::Token;

use bodies::{Bodies, BodyDirection, Transfer};
use client::Call;
use flight::Flight;
use observers::Observer;
use peer::Peers;

pub use peer::PeerStatus;
use remembered::Remembered;
use server::PendingRequest;

/// CoAP endpoint, client and server at the same time, for many peers.
///
/// `P` identifies a peer for the application: an address with its port, or the number of a connection.
///
/// **After each call that takes the time: call [`poll_transmit`](Self::poll_transmit) until there is nothing to send and
/// [`poll_event`](Self::poll_event) until there are no more events, then sleep until [`poll_timeout`](Self::poll_timeout)
/// and call [`handle_timeout`](Self::handle_timeout). Time never goes back.**
///
/// - Datagrams: [`handle_datagram`](Self::handle_datagram).
/// - Streams: [`connected`](Self::connected), [`handle_stream`](Self::handle_stream),
///   [`disconnected`](Self::disconnected).
/// - Client: [`request`](Self::request), [`cancel`](Self::cancel), [`deregister`](Self::deregister),
///   [`ping`](Self::ping).
/// - Server: [`respond`](Self::respond), [`dismiss`](Self::dismiss), [`accept`](Self::accept), [`notify`](Self::notify).
pub struct Endpoint<P> {
    pub(crate) config: Config,
    random: Box<dyn FnMut() -> u64 + Send>,
    /// Time for which received messages are stored, in nanoseconds: Confirmable, Non-confirmable.
    lifetimes: [u64; 2],
    /// [`Timing::processing_delay`](crate::Timing::processing_delay) in nanoseconds.
    processing_delay: u64,
    peers: Peers<P>,
    remembered: Remembered,
    /// Replies as sent.
    octets: OctetRing,
    outgoing: VecDeque<QueuedSend>,
    flights: Slab<Flight>,
    /// Flights by peer and Message ID.
    by_message: BTreeMap<(SlotKey, u16), SlotKey>,
    requests: Slab<PendingRequest>,
    /// Requests that have not been acknowledged, the oldest first.
    unacknowledged: Order,
    calls: Slab<Call>,
    /// The latest Request-Tag.
    request_tag: u32,
    /// Calls by peer and Token.
    by_token: BTreeMap<(SlotKey, Token), SlotKey>,
    observers: Slab<Observer>,
    /// Observers by peer and Token.
    by_observer: BTreeMap<(SlotKey, Token), SlotKey>,
    /// Largest number of an Observe option of an observation that has ended.
    ended_sequence: u32,
    bodies: Bodies,
    #[cfg(feature = "oscore")]
    contexts: crate::oscore::Contexts,
    timers: BTreeSet<(Instant, Timed)>,
    events: VecDeque<Event<'static, P>>,
    counters: Counters,
}

/// Purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timed {
    /// A message is retransmitted, or given up.
    Flight(SlotKey),
    /// A response is missing, or an observation is to be renewed.
    Call(SlotKey),
    /// A block-wise transfer has paused for too long.
    Body(BodyDirection, Transfer),
    /// A Ping over a stream was not answered.
    Stream(SlotKey),
    /// A peer may be notified again.
    Pace(SlotKey),
}

/// Octets that wait to be sent.
#[derive(Clone, Copy, Debug)]
enum QueuedSend {
    /// A reply.
    Octets(SlotKey, OctetSpan),
    /// An Empty message.
    Empty(SlotKey, Type, u16),
    /// A message that may have to be retransmitted.
    Flight(SlotKey),
    /// Octets of a stream.
    Stream(SlotKey),
}

/// A datagram, or some octets of a stream, to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<P> {
    /// Receiver.
    pub peer: P,
    /// Number of octets at the start of the buffer.
    pub len: usize,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams that are not well-formed messages.
    pub malformed: u64,
    /// Duplicates received.
    pub duplicates: u64,
    /// Messages without a counterpart: responses to no pending request, acknowledgements of no pending message.
    pub unmatched: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Stored messages that were dropped before EXCHANGE_LIFETIME was over: raise
    /// [`Limits::remembered`](crate::Limits::remembered).
    pub forgotten_early: u64,
    /// Replies and messages that were dropped for lack of memory.
    pub dropped: u64,
    /// Protected messages that were rejected: changed, repeated, or of an unknown context.
    pub unverified: u64,
    /// Requests that were answered with 5.03 because too many wait for the application.
    pub overload: u64,
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    /// Creates an endpoint without peers.
    ///
    /// `random` returns 64 random bits at a time: for Message IDs, dither, Tokens, Echo values. On the Internet they must
    /// be hard to guess; in a simulation they come from a seed.
    pub fn new(config: Config, mut random: impl FnMut() -> u64 + Send + 'static) -> Self {
        let lifetimes = [
            nanos(config.timing.transmission.exchange_lifetime()),
            nanos(config.timing.transmission.non_lifetime()),
        ];
        let hash_key = random();
        Self {
            lifetimes,
            processing_delay: nanos(config.timing.processing_delay),
            peers: Peers::new(config.limits.max_peers, hash_key),
            remembered: Remembered::new(config.limits.remembered),
            octets: OctetRing::new(config.limits.remembered_octets.max(config.limits.max_message)),
            outgoing: VecDeque::new(),
            flights: Slab::new(config.limits.max_flights),
            by_message: BTreeMap::new(),
            requests: Slab::new(config.limits.max_requests),
            unacknowledged: Order::default(),
            calls: Slab::new(config.limits.max_calls),
            request_tag: 0,
            by_token: BTreeMap::new(),
            observers: Slab::new(config.limits.max_observers),
            by_observer: BTreeMap::new(),
            ended_sequence: 0,
            bodies: Bodies::default(),
            #[cfg(feature = "oscore")]
            contexts: crate::oscore::Contexts::new(hash_key),
            timers: BTreeSet::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            random: Box::new(random),
            config,
        }
    }

    /// Returns the settings.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the counters.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the next datagram, or the next octets of a stream, to send, written to the start of `out`. `None` if there
    /// are none.
    ///
    /// For datagrams, `out` must have [`Limits::max_message`](crate::Limits::max_message) octets; a message that does not
    /// fit is dropped, as by a link with a smaller MTU.
    #[inline]
    pub fn poll_transmit(&mut self, _now: Instant, out: &mut [u8]) -> Option<Transmit<P>> {
        while let Some(outgoing) = self.outgoing.pop_front() {
            let (peer, len) = match outgoing {
                QueuedSend::Octets(peer, span) => {
                    (peer, self.octets.get(span).and_then(|octets| copy(out, octets)))
                }
                QueuedSend::Empty(peer, message_type, message_id) => {
                    let message = Coap { message_type, code: Code::EMPTY, message_id, token: &[], rest: &[] };
                    (peer, message.write(out, 0).ok())
                }
                QueuedSend::Flight(key) => match self.flights.get(key) {
                    Some(flight) => (flight.peer, copy(out, &flight.octets)),
                    // Acknowledged or cancelled in the meantime.
                    None => continue,
                },
                QueuedSend::Stream(key) => match self.poll_stream(key, out) {
                    Some(len) => (key, Some(len)),
                    None => continue,
                },
            };
            match (self.peers.get(peer), len) {
                (Some(peer), Some(len)) => return Some(Transmit { peer: peer.address, len }),
                _ => self.counters.dropped += 1,
            }
        }
        None
    }

    /// Returns the next event that is not caused by a received datagram.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event<'static, P>> {
        self.events.pop_front()
    }

    /// Returns the latest time of the next call of [`handle_timeout`](Self::handle_timeout). `None` if no timer runs.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let acknowledge = self
            .unacknowledged
            .front()
            .and_then(|slot| self.requests.at(slot))
            .map(|(_, request)| request.deadline);
        let timer = self.timers.first().map(|(at, _)| *at);
        match (acknowledge, timer) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Processes all timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((key, request)) = self.unacknowledged.front().and_then(|slot| self.requests.at(slot)) {
            if request.deadline > now {
                break;
            }
            self.acknowledge(key);
        }
        while let Some(&(at, timed)) = self.timers.first() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            match timed {
                Timed::Flight(key) => self.flight_timeout(now, key),
                Timed::Call(key) => self.call_timeout(now, key),
                Timed::Body(direction, transfer) => {
                    self.drop_body(direction, transfer);
                }
                Timed::Stream(key) => self.stream_timeout(key),
                Timed::Pace(key) => self.pace_timeout(now, key),
            }
        }
    }

    fn random(&mut self) -> u64 {
        (self.random)()
    }

    /// Queues a reply, if there is room.
    #[inline]
    fn reply(&mut self, outgoing: QueuedSend) {
        if self.outgoing.len() < self.config.limits.max_replies {
            self.outgoing.push_back(outgoing);
        } else {
            self.counters.dropped += 1;
        }
    }
}

impl<P> fmt::Debug for Endpoint<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("flights", &self.flights.len())
            .field("requests", &self.requests.len())
            .field("calls", &self.calls.len())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

#[inline]
fn copy(out: &mut [u8], octets: &[u8]) -> Option<usize> {
    out.get_mut(..octets.len())?.copy_from_slice(octets);
    Some(octets.len())
}
