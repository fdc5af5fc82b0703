//! Requests of peers, from their arrival to their response. RFC 7252, section 5.2.

use alloc::borrow::Cow;
use core::hash::Hash;

use thinair_wire::header::coap::{Code, Type};
use thinair_wire::time::Instant;

use super::digest::Digest;
use super::flight::Owner;
use super::remembered::{Memory, Reply};
use super::{Endpoint, Outgoing};
use crate::code::{self, Kind};
use crate::event::{Event, RequestId, RespondError};
use crate::message::{Builder, Message};
use crate::request::{Received, Response};
use crate::table::Key;
use crate::token::Token;

/// A request that waits for its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(super) peer: Key,
    pub(super) token: Token,
    message_id: u16,
    confirmable: bool,
    /// An Acknowledgement was sent, or there is none: the response will be a message of its own.
    separate: bool,
    method: Code,
    memory: Option<Memory>,
    no_response: u8,
    /// When it is acknowledged without a response.
    pub(super) deadline: Instant,
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    pub(super) fn handle_request<'d>(
        &mut self,
        now: Instant,
        peer: Key,
        memory: Option<Memory>,
        message: Message<'d>,
        _len: usize,
    ) -> Option<Event<'d, P>> {
        let digest = Digest::of(message.options.octets(), self.config.recognised);
        let confirmable = message.message_type == Type::Confirmable;
        let pending = Pending {
            peer,
            token: message.token,
            message_id: message.message_id,
            confirmable,
            separate: !confirmable,
            method: message.code,
            memory,
            no_response: digest.no_response,
            deadline: now + self.config.processing_delay,
        };
        if digest.proxy || digest.refused.is_some() {
            self.refuse(now, &pending, &digest);
            return None;
        }
        let Ok(key) = self.requests.insert(pending) else {
            self.counters.overload += 1;
            self.answer(now, &pending, &Response::new(code::SERVICE_UNAVAILABLE));
            return None;
        };
        self.peers.pin(peer);
        if confirmable {
            self.unacknowledged.push_back(key.slot);
        }
        let peer = self.peers.get(peer)?.address;
        let message = Received {
            code: message.code,
            options: message.options,
            payload: Cow::Borrowed(message.payload),
        };
        Some(Event::Request { id: RequestId(key), peer, observe: None, message })
    }

    /// Options that stand in the way. RFC 7252, sections 5.4.1 and 5.10.2.
    #[cold]
    fn refuse(&mut self, now: Instant, pending: &Pending, digest: &Digest) {
        if !pending.confirmable {
            // "A Non-confirmable message with an unrecognized critical option MUST be rejected".
            self.send_reset(pending.peer, pending.memory, pending.message_id);
        } else if digest.proxy {
            self.answer(now, pending, &Response::new(code::PROXYING_NOT_SUPPORTED));
        } else {
            self.answer(now, pending, &Response::new(code::BAD_OPTION));
        }
    }

    /// Answers a request. The response is piggybacked on the acknowledgement, or, if that was sent already, a message of its
    /// own, which [`Event::NotDelivered`] tells the loss of.
    pub fn respond(&mut self, now: Instant, id: RequestId, response: &Response<'_>) -> Result<(), RespondError> {
        let pending = *self.requests.get(id.0).ok_or(RespondError::Gone)?;
        if code::kind(response.code) != Kind::Response {
            return Err(RespondError::NotAResponse(response.code));
        }
        if response.options.is_incomplete() {
            return Err(RespondError::Option);
        }
        if pending.confirmable && pending.separate {
            let (options, payload) = (response.options.octets(), &response.payload);
            let owner = Owner::Response(id.0);
            self.send(now, pending.peer, owner, true, response.code, &pending.token, options, payload)
                .ok_or(RespondError::TooManyFlights)?;
        } else {
            self.answer(now, &pending, response);
        }
        self.release(id.0);
        Ok(())
    }

    /// A request needs nothing more.
    fn release(&mut self, key: Key) {
        if let Some(pending) = self.requests.remove(key) {
            if !pending.separate {
                self.unacknowledged.remove(key.slot);
            }
            self.peers.unpin(pending.peer);
        }
    }

    /// Sends a response that is not sent again by itself: it is piggybacked, or not confirmable.
    #[inline]
    fn answer(&mut self, _now: Instant, pending: &Pending, response: &Response<'_>) {
        let (message_type, message_id) = if pending.confirmable {
            (Type::Acknowledgement, pending.message_id)
        } else {
            let Some(peer) = self.peers.get_mut(pending.peer) else { return };
            (Type::NonConfirmable, peer.next_message_id())
        };
        let options = response.options.octets();
        let most = 4 + pending.token.len() + options.len() + 1 + response.payload.len();
        let span = self.octets.push(most, |out| {
            let builder = Builder::new(out, message_type, response.code, message_id, &pending.token).ok()?;
            builder.rest(options, &response.payload).ok()
        });
        let Some(span) = span else {
            self.counters.dropped += 1;
            return;
        };
        if let Some(memory) = pending.memory.filter(|_| pending.confirmable) {
            self.remembered.set(memory, Reply::Octets(span, code::is_safe(pending.method)));
        }
        self.reply(Outgoing::Octets(pending.peer, span));
    }

    /// Acknowledges a request whose response is not there yet.
    pub(super) fn acknowledge(&mut self, key: Key) {
        let Some(pending) = self.requests.get_mut(key) else { return };
        pending.separate = true;
        let pending = *pending;
        self.unacknowledged.remove(key.slot);
        if let Some(memory) = pending.memory {
            self.remembered.set(memory, Reply::Acknowledgement);
        }
        self.reply(Outgoing::Empty(pending.peer, Type::Acknowledgement, pending.message_id));
    }
}
