//! Messages that may have to be retransmitted, and messages that wait for NSTART. RFC 7252, sections 4.2 and 4.7.

use alloc::vec::Vec;
use core::hash::Hash;
use core::time::Duration;

use thinair_wire::header::coap::{Code, Type};
use thinair_wire::time::Instant;

use super::client::Call;
use super::{Endpoint, QueuedSend, Timed};
use crate::congestion::{Acknowledged, CongestionControl, Schedule, Timer};
use crate::event::{CallError, Event, Gone, RequestId};
use crate::message::Builder;
use crate::request::Response;
use crate::table::SlotKey;
use crate::token::Token;

/// A message under way.
pub(crate) struct Flight {
    pub(crate) peer: SlotKey,
    pub(crate) owner: Owner,
    pub(crate) octets: Vec<u8>,
    confirmable: bool,
    message_id: u16,
    first: Instant,
    last: Instant,
    /// Times of retransmissions, if an answer can identify its transmission.
    again: Vec<Instant>,
    transmissions: u8,
    timer: Option<(Timer, Schedule)>,
    deadline: Option<Instant>,
}

impl Flight {
    /// Sets the last octet of the Token to the number of earlier transmissions.
    fn count_in_token(&mut self) {
        let count = self.transmissions.saturating_sub(1);
        let end = self.octets.first().map_or(0, |first| 4 + usize::from(first & 0xF));
        if let Some(last) = self.octets.get_mut(end.saturating_sub(1)) {
            *last = count;
        }
    }
}

/// Content of a message.
#[derive(Clone, Copy)]
pub(crate) struct MessageContent<'a> {
    pub(super) code: Code,
    pub(super) token: Token,
    pub(super) options: &'a [u8],
    pub(super) payload: &'a [u8],
}

impl<'a> MessageContent<'a> {
    pub(super) fn of(token: Token, response: &'a Response<'_>) -> Self {
        Self { code: response.code, token, options: response.options.octets(), payload: &response.payload }
    }

    /// Returns the largest size of the message, in octets.
    pub(super) const fn most(&self) -> usize {
        4 + self.token.len() + self.options.len() + 1 + self.payload.len()
    }

    /// Writes a message to the start of `out` and returns its octets.
    #[inline]
    pub(super) fn write(&self, message_type: Type, message_id: u16, out: &mut [u8]) -> Option<usize> {
        let builder = Builder::new(out, message_type, self.code, message_id, &self.token).ok()?;
        builder.rest(self.options, self.payload).ok()
    }
}

/// Owner of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Call(SlotKey),
    /// A separate response.
    Response(SlotKey),
    /// A notification.
    Observer(SlotKey),
    Ping,
}

/// Outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlightOutcome {
    Acknowledged,
    Reset,
    Timeout,
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    /// Sends a message once NSTART allows it. `None` if there is no room for it.
    pub(super) fn send(
        &mut self,
        now: Instant,
        peer: SlotKey,
        owner: Owner,
        confirmable: bool,
        content: &MessageContent<'_>,
    ) -> Option<SlotKey> {
        let mut octets = alloc::vec![0; content.most()];
        let message_type = if confirmable { Type::Confirmable } else { Type::NonConfirmable };
        let len = content.write(message_type, 0, &mut octets)?;
        octets.truncate(len);
        let flight = Flight {
            peer,
            owner,
            octets,
            confirmable,
            message_id: 0,
            first: now,
            last: now,
            again: Vec::new(),
            transmissions: 0,
            timer: None,
            deadline: None,
        };
        let key = self.flights.insert(flight).ok()?;
        self.peers.pin(peer);
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.waiting.push_back(key);
        }
        self.launch(now, peer);
        Some(key)
    }

    /// Sends messages that wait for NSTART, as far as it allows.
    fn launch(&mut self, now: Instant, peer_key: SlotKey) {
        loop {
            let Some(peer) = self.peers.get_mut(peer_key) else { return };
            if peer.in_flight >= peer.controller.nstart(&peer.transmission) {
                return;
            }
            let Some(key) = peer.waiting.pop_front() else { return };
            let Some(flight) = self.flights.get_mut(key) else { continue };
            let mut message_id = peer.next_message_id();
            while self.by_message.contains_key(&(peer_key, message_id)) && self.by_message.len() <= 0xFFFF {
                message_id = peer.next_message_id();
            }
            if let Some(place) = flight.octets.get_mut(2..4) {
                place.copy_from_slice(&message_id.to_be_bytes());
            }
            let timeout = if flight.confirmable {
                let random = (self.random)();
                let timer = peer.controller.start(now, &peer.transmission, peer.in_flight, random);
                let schedule = match peer.controller.is_adaptive() {
                    true => Schedule::timed(&peer.transmission, peer.controller.has_sample(), random),
                    false => Schedule::counted(&peer.transmission),
                };
                flight.timer = Some((timer, schedule));
                peer.pace.since_confirmable = 0;
                schedule.timeout(&timer, 1, Duration::ZERO)
            } else {
                peer.pause(now, flight.octets.len(), Duration::MAX)
            };
            peer.in_flight += 1;
            (flight.message_id, flight.first, flight.last, flight.transmissions) = (message_id, now, now, 1);
            let deadline = now + timeout;
            flight.deadline = Some(deadline);
            self.timers.insert((deadline, Timed::Flight(key)));
            self.by_message.insert((peer_key, message_id), key);
            self.outgoing.push_back(QueuedSend::Flight(key));
        }
    }

    /// Processes the expiry of a message's timer.
    pub(super) fn flight_timeout(&mut self, now: Instant, key: SlotKey) {
        let Some(flight) = self.flights.get_mut(key) else { return };
        let Some(peer) = self.peers.get_mut(flight.peer) else { return };
        flight.deadline = None;
        let (elapsed, transmissions) = (now.since(flight.first), flight.transmissions);
        let latest = flight.last.since(flight.first);
        let again =
            flight.timer.as_mut().filter(|(_, schedule)| schedule.allows(transmissions, latest, elapsed));
        let Some((timer, schedule)) = again else {
            let confirmable = flight.confirmable;
            if confirmable {
                peer.controller.on_give_up(now);
            } else {
                peer.pace.unheard = peer.pace.unheard.saturating_add(1);
            }
            self.finish(now, key, confirmable.then_some(FlightOutcome::Timeout));
            return;
        };
        peer.controller.back_off(timer);
        let owner = flight.owner;
        flight.transmissions = transmissions.saturating_add(1);
        let deadline = now + schedule.timeout(timer, flight.transmissions, elapsed);
        flight.deadline = Some(deadline);
        flight.last = now;
        self.timers.insert((deadline, Timed::Flight(key)));
        self.counters.retransmissions += 1;
        peer.retransmissions += 1;
        if let Owner::Call(call) = owner
            && self.calls.get(call).is_some_and(Call::is_counted)
        {
            flight.again.push(now);
            flight.count_in_token();
        }
        if let Owner::Observer(observer) = owner
            && let Some(octets) = self.newer_notification(now, observer)
        {
            self.replace(key, octets);
        }
        self.outgoing.push_back(QueuedSend::Flight(key));
    }

    /// Replaces a message under way by another one, which keeps the timer and the count.
    fn replace(&mut self, key: SlotKey, mut octets: Vec<u8>) {
        let Some(flight) = self.flights.get_mut(key) else { return };
        let Some(peer) = self.peers.get_mut(flight.peer) else { return };
        let message_id = peer.next_message_id();
        if let Some(place) = octets.get_mut(2..4) {
            place.copy_from_slice(&message_id.to_be_bytes());
        }
        self.by_message.remove(&(flight.peer, flight.message_id));
        self.by_message.insert((flight.peer, message_id), key);
        (flight.octets, flight.message_id) = (octets, message_id);
    }

    /// Returns the own message with this Message ID.
    pub(super) fn flight_of(&self, peer: SlotKey, message_id: u16) -> Option<SlotKey> {
        self.by_message.get(&(peer, message_id)).copied()
    }

    /// Processes the arrival of a message at the peer: updates the measurement of the path and releases the place.
    pub(super) fn arrived(&mut self, now: Instant, key: SlotKey) {
        self.answered(now, key, None);
    }

    /// [`arrived`](Self::arrived) with the number of the answered transmission, if it is known: 0 for the first one.
    pub(super) fn answered(&mut self, now: Instant, key: SlotKey, count: Option<u8>) {
        let Some(flight) = self.flights.get(key) else { return };
        if let Some(peer) = self.peers.get_mut(flight.peer) {
            peer.pace.unheard = 0;
        }
        if flight.confirmable && flight.transmissions > 0 {
            let ack = Acknowledged {
                now,
                first: flight.first,
                last: flight.last,
                transmissions: flight.transmissions,
                answered: match count {
                    Some(0) => Some(flight.first),
                    Some(count) => flight.again.get(usize::from(count) - 1).copied(),
                    None => None,
                },
            };
            if let Some(peer) = self.peers.get_mut(flight.peer) {
                peer.controller.on_ack(&ack);
                peer.samples += 1;
            }
            self.peers.measured(now, flight.peer);
        }
        self.land(now, key);
    }

    /// Releases the place of a message.
    pub(super) fn land(&mut self, now: Instant, key: SlotKey) -> Option<Flight> {
        let flight = self.flights.remove(key)?;
        if let Some(deadline) = flight.deadline {
            self.timers.remove(&(deadline, Timed::Flight(key)));
        }
        if let Some(peer) = self.peers.get_mut(flight.peer) {
            if flight.transmissions > 0 {
                peer.in_flight = peer.in_flight.saturating_sub(1);
                self.by_message.remove(&(flight.peer, flight.message_id));
            } else {
                peer.waiting.retain(|&other| other != key);
            }
        }
        self.peers.unpin(flight.peer);
        self.launch(now, flight.peer);
        Some(flight)
    }

    /// Ends a message, and reports the outcome to its owner, if there is one.
    pub(super) fn finish(&mut self, now: Instant, key: SlotKey, outcome: Option<FlightOutcome>) {
        let Some(flight) = self.flights.get(key) else { return };
        let (owner, peer, first, transmissions) =
            (flight.owner, flight.peer, flight.first, flight.transmissions);
        match outcome {
            Some(FlightOutcome::Acknowledged | FlightOutcome::Reset) => self.arrived(now, key),
            Some(FlightOutcome::Timeout) | None => {
                self.land(now, key);
            }
        }
        let Some(outcome) = outcome else { return };
        let gone = match outcome {
            FlightOutcome::Reset => Gone::Reset,
            FlightOutcome::Timeout => Gone::Timeout { transmissions },
            FlightOutcome::Acknowledged => Gone::Deregistered,
        };
        match (owner, outcome) {
            (Owner::Call(call), FlightOutcome::Acknowledged) => self.call_acknowledged(now, call),
            (Owner::Call(call), FlightOutcome::Reset) => self.call_failed(now, call, CallError::Reset),
            (Owner::Call(call), FlightOutcome::Timeout) => {
                self.call_failed(now, call, CallError::Timeout { transmissions })
            }
            (Owner::Observer(observer), outcome) => {
                self.notification_done(now, observer, outcome, transmissions)
            }
            (Owner::Response(_), FlightOutcome::Acknowledged) => {}
            (Owner::Response(request), _) => {
                self.events.push_back(Event::NotDelivered { request: RequestId(request), reason: gone });
            }
            (Owner::Ping, outcome) => {
                let Some(peer) = self.peers.get(peer).map(|peer| peer.address) else { return };
                self.events.push_back(match outcome {
                    FlightOutcome::Timeout => Event::PingFailed { peer },
                    // A Reset is the expected answer; an Acknowledgement proves as much. RFC 7252, section 4.3.
                    FlightOutcome::Acknowledged | FlightOutcome::Reset => {
                        Event::Pong { peer, after: now.since(first) }
                    }
                });
            }
        }
    }

    /// Pings a peer with an Empty Confirmable message. The result is [`Event::Pong`] or [`Event::PingFailed`]. False if
    /// there is no room.
    pub fn ping(&mut self, now: Instant, peer: P) -> bool {
        let Some(peer) = self.peer_key(peer) else { return false };
        if self.peers.get(peer).is_some_and(|peer| peer.stream.is_some()) {
            return self.ping_stream(now, peer);
        }
        let empty = MessageContent { code: Code::EMPTY, token: Token::EMPTY, options: &[], payload: &[] };
        self.send(now, peer, Owner::Ping, true, &empty).is_some()
    }
}
