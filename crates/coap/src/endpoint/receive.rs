//! Processing of received datagrams. RFC 7252, sections 4.2 to 4.5 and 5.3.2.

use core::hash::Hash;

use thinair_wire::header::coap::{Code, Type};
use thinair_wire::time::Instant;

use super::client::Call;
use super::digest::Digest;
use super::flight::{FlightOutcome, Owner};
use super::protection::InnerMessage;
use super::remembered::{MessageRef, Remembered, Reply};
use super::{Endpoint, QueuedSend};
use crate::code::{self, MessageKind};
use crate::event::{CallError, Event};
use crate::message::{Message, Unreadable};
use crate::table::SlotKey;

/// A response, as far as its call is concerned.
#[cfg_attr(not(feature = "oscore"), allow(dead_code, reason = "responses are plain"))]
pub(super) enum OpenedResponse {
    /// Neither it nor the call is protected.
    Plain,
    /// It was unprotected.
    Inner(InnerMessage),
    /// It proves nothing: as if it had not come.
    Ignored,
    /// It ends the call.
    Failed(CallError),
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    /// Processes a datagram received from a peer.
    ///
    /// A datagram that is not a well-formed message is counted, rejected if it is Confirmable, and changes nothing. One
    /// datagram causes at most one reply, and returns at most one event; further events wait at
    /// [`poll_event`](Self::poll_event).
    pub fn handle_datagram<'d>(&mut self, now: Instant, peer: P, datagram: &'d [u8]) -> Option<Event<'d, P>> {
        self.counters.received += 1;
        let (mut digest, recognised) = (Digest::default(), self.config.policy.recognised);
        let note = |code, option: &_| digest.note(code, option, recognised);
        let message = match Message::read_with(datagram, note) {
            Ok(message) => message,
            Err(unreadable) => return self.reject(peer, &unreadable),
        };
        self.peers.now = now;
        let Some(peer) = self.peer_key(peer) else {
            self.counters.dropped += 1;
            return None;
        };
        let kind = code::kind(message.code);
        match message.message_type {
            Type::Confirmable | Type::NonConfirmable => {}
            Type::Acknowledgement => return self.acknowledgement(now, peer, kind, message, &digest),
            Type::Reset => {
                if kind == MessageKind::Empty {
                    self.reset(now, peer, message.message_id);
                }
                return None;
            }
        }
        let confirmable = message.message_type == Type::Confirmable;
        if kind == MessageKind::Empty {
            // A ping. RFC 7252, section 4.3.
            if confirmable {
                self.reply(QueuedSend::Empty(peer, Type::Reset, message.message_id));
            }
            return None;
        }
        let address = self.peers.get(peer)?.hash;
        let hash = Remembered::hash(address, message.message_id);
        if let Some((memory, reply)) = self.remembered.find(now, hash, address, message.message_id) {
            if !self.is_forgotten(reply) {
                self.duplicate(peer, message.message_id, reply);
                return None;
            }
            self.remembered.forget(memory);
        }
        let expires =
            Instant::from_nanos(now.as_nanos().saturating_add(self.lifetimes[usize::from(!confirmable)]));
        let (memory, early) = self.remembered.insert(now, hash, address, message.message_id, expires);
        self.counters.forgotten_early += u64::from(early);
        match kind {
            MessageKind::Request => {
                self.handle_request(now, peer, Some(memory), message, &digest, datagram.len())
            }
            _ => self.response(now, peer, memory, message, &digest),
        }
    }

    /// Rejects a message that is not well formed. RFC 7252, sections 4.2 and 4.3.
    #[cold]
    fn reject<'d>(&mut self, peer: P, unreadable: &Unreadable) -> Option<Event<'d, P>> {
        self.counters.malformed += 1;
        if let Some((Type::Confirmable, message_id)) = unreadable.header {
            let peer = self.peer_key(peer)?;
            self.reply(QueuedSend::Empty(peer, Type::Reset, message_id));
        }
        None
    }

    /// True if the reply was a response to a safe request whose octets are no longer stored.
    #[inline]
    fn is_forgotten(&self, reply: Reply) -> bool {
        matches!(reply, Reply::Octets(span, true) if self.octets.get(span).is_none())
    }

    fn duplicate(&mut self, peer: SlotKey, message_id: u16, reply: Reply) {
        self.counters.duplicates += 1;
        match reply {
            Reply::Nothing => {}
            Reply::Acknowledgement => self.reply(QueuedSend::Empty(peer, Type::Acknowledgement, message_id)),
            Reply::Reset => self.reply(QueuedSend::Empty(peer, Type::Reset, message_id)),
            Reply::Octets(span, _) => {
                if self.octets.get(span).is_some() {
                    self.reply(QueuedSend::Octets(peer, span));
                }
            }
        }
    }

    fn acknowledgement<'d>(
        &mut self,
        now: Instant,
        peer: SlotKey,
        kind: MessageKind,
        message: Message<'d>,
        digest: &Digest,
    ) -> Option<Event<'d, P>> {
        let Some(key) = self.flight_of(peer, message.message_id) else {
            self.counters.unmatched += 1;
            return None;
        };
        match kind {
            MessageKind::Empty => {
                self.finish(now, key, Some(FlightOutcome::Acknowledged));
                None
            }
            MessageKind::Response => {
                // Both Message ID and Token have to match. RFC 7252, section 5.3.2.
                let owner = self.flights.get(key).map(|flight| flight.owner);
                let Some((call, count)) =
                    self.call_of(peer, &message.token).filter(|(call, _)| owner == Some(Owner::Call(*call)))
                else {
                    self.counters.unmatched += 1;
                    return None;
                };
                self.answered(now, key, count);
                match self.open_response(call, &message, digest) {
                    OpenedResponse::Plain => {
                        self.registered(call);
                        self.call_response(now, call, message, digest)
                    }
                    OpenedResponse::Inner(inner) => {
                        self.registered(call);
                        let message = inner.with_header_of(&message);
                        self.call_response(now, call, message, &inner.digest).map(Event::into_owned)
                    }
                    OpenedResponse::Ignored => {
                        self.keep_waiting(now, call);
                        None
                    }
                    OpenedResponse::Failed(error) => Some(self.fail_at_response(now, call, error)),
                }
            }
            MessageKind::Request | MessageKind::Signal | MessageKind::Reserved => None,
        }
    }

    fn reset(&mut self, now: Instant, peer: SlotKey, message_id: u16) {
        match self.flight_of(peer, message_id) {
            Some(key) => self.finish(now, key, Some(FlightOutcome::Reset)),
            None if self.notification_reset(peer, message_id) => {}
            None => self.counters.unmatched += 1,
        }
    }

    /// Processes a separate response, or a notification.
    fn response<'d>(
        &mut self,
        now: Instant,
        peer: SlotKey,
        memory: MessageRef,
        message: Message<'d>,
        digest: &Digest,
    ) -> Option<Event<'d, P>> {
        let Some((call, _)) = self.call_of(peer, &message.token) else {
            // An unmatched response is rejected, which ends an observation. RFC 7641, section 3.6.
            self.counters.unmatched += 1;
            self.reject_response(peer, memory, &message);
            return None;
        };
        match self.open_response(call, &message, digest) {
            OpenedResponse::Plain => self.separate_response(now, peer, call, memory, message, digest),
            OpenedResponse::Inner(inner) => {
                let message = inner.with_header_of(&message);
                let event = self.separate_response(now, peer, call, memory, message, &inner.digest);
                event.map(Event::into_owned)
            }
            OpenedResponse::Ignored => {
                if message.message_type == Type::Confirmable {
                    self.remembered.set(memory, Reply::Acknowledgement);
                    self.reply(QueuedSend::Empty(peer, Type::Acknowledgement, message.message_id));
                }
                None
            }
            OpenedResponse::Failed(error) => {
                self.reject_response(peer, memory, &message);
                Some(self.fail_at_response(now, call, error))
            }
        }
    }

    /// Rejects a response.
    fn reject_response(&mut self, peer: SlotKey, memory: MessageRef, message: &Message<'_>) {
        let confirmable = message.message_type == Type::Confirmable;
        self.remembered.set(memory, if confirmable { Reply::Reset } else { Reply::Nothing });
        self.reply(QueuedSend::Empty(peer, Type::Reset, message.message_id));
    }

    /// Processes a separate response to a call, or a notification.
    fn separate_response<'d>(
        &mut self,
        now: Instant,
        peer: SlotKey,
        call: SlotKey,
        memory: MessageRef,
        message: Message<'d>,
        digest: &Digest,
    ) -> Option<Event<'d, P>> {
        if digest.refused.is_some() {
            // "Unrecognized options of class "critical" ... MUST cause the response to be rejected": section 5.4.1.
            self.reject_response(peer, memory, &message);
        } else if message.message_type == Type::Confirmable {
            self.remembered.set(memory, Reply::Acknowledgement);
            self.reply(QueuedSend::Empty(peer, Type::Acknowledgement, message.message_id));
        }
        // The response implies the acknowledgement that was lost (RFC 7252, section 5.2.2); a later notification, or a second
        // response to an earlier block, does not.
        let is_response = |call: &Call| {
            (digest.observe.is_none() || !call.is_observing(&message.token))
                && !call.is_late(&message.token, digest)
        };
        if let Some(key) = self.calls.get(call).filter(|call| is_response(call)).and_then(|call| call.flight)
        {
            self.arrived(now, key);
        }
        self.call_response(now, call, message, digest)
    }

    /// Rejects a message of a peer.
    pub(super) fn send_reset(&mut self, peer: SlotKey, memory: Option<MessageRef>, message_id: u16) {
        if let Some(memory) = memory {
            self.remembered.set(memory, Reply::Reset);
            self.reply(QueuedSend::Empty(peer, Type::Reset, message_id));
        }
    }
}

/// True if a code is a method.
pub(super) const fn is_method(code: Code) -> bool {
    matches!(code::kind(code), MessageKind::Request)
}
