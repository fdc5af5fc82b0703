//! Requests of peers, from their arrival to the application. RFC 7252, section 5.2.

use alloc::borrow::Cow;
use core::hash::Hash;

use thinair_wire::header::coap::{Code, Type};
use thinair_wire::time::Instant;

use super::digest::{Digest, ECHO};
use super::flight::MessageContent;
use super::protection::{ContextId, Protection};
use super::remembered::{MessageRef, Reply};
use super::{Endpoint, QueuedSend};
use crate::block::{Block, BlockSize};
use crate::code;
use crate::event::{Event, Gone, Observe, RequestId};
use crate::message::Message;
use crate::number;
use crate::request::{Received, Response};
use crate::table::SlotKey;
use crate::token::Token;

/// A request that waits for its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRequest {
    pub(super) peer: SlotKey,
    pub(super) token: Token,
    pub(super) message_id: u16,
    pub(super) confirmable: bool,
    /// True if it came over a stream.
    pub(super) stream: bool,
    /// True if the response will be a separate message: an Acknowledgement was sent, or there is none.
    pub(super) separate: bool,
    pub(super) method: Code,
    /// The stored message; `None` if it came over a stream.
    pub(super) memory: Option<MessageRef>,
    pub(super) no_response: u8,
    /// Context and hash that identify the body of the response.
    pub(super) transfer: (Option<ContextId>, u64),
    /// Octets of the request.
    pub(super) octets: u32,
    /// Block1 to echo.
    pub(super) block1: Option<Block>,
    /// Block2 as requested.
    pub(super) block2: Option<Block>,
    pub(super) observe: Option<Observe>,
    /// Observer that the application has accepted.
    pub(super) observer: Option<SlotKey>,
    pub(super) protection: Option<Protection>,
    /// Time at which the request is acknowledged without a response.
    pub(super) deadline: Instant,
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    /// Processes a request of `octets` octets that is not a duplicate.
    pub(super) fn handle_request<'d>(
        &mut self,
        now: Instant,
        peer: SlotKey,
        memory: Option<MessageRef>,
        message: Message<'d>,
        digest: &Digest,
        octets: usize,
    ) -> Option<Event<'d, P>> {
        if digest.is_protected {
            return self.handle_protected_request(now, peer, memory, &message, digest, octets);
        }
        let pending = self.pending(now, peer, memory, &message, digest, octets);
        self.handle_open_request(now, &pending, message, digest)
    }

    pub(super) fn pending(
        &self,
        now: Instant,
        peer: SlotKey,
        memory: Option<MessageRef>,
        message: &Message<'_>,
        digest: &Digest,
        octets: usize,
    ) -> PendingRequest {
        let confirmable = message.message_type == Type::Confirmable;
        PendingRequest {
            peer,
            token: message.token,
            message_id: message.message_id,
            confirmable,
            stream: memory.is_none(),
            separate: !confirmable,
            method: message.code,
            memory,
            no_response: digest.no_response,
            transfer: (None, digest.transfer(message.code)),
            octets: octets as u32,
            block1: digest.block1,
            block2: digest.block2,
            observe: None,
            observer: None,
            protection: None,
            deadline: Instant::from_nanos(now.as_nanos().saturating_add(self.processing_delay)),
        }
    }

    /// Processes a request, unprotected if it was protected.
    pub(super) fn handle_open_request<'d>(
        &mut self,
        now: Instant,
        pending: &PendingRequest,
        message: Message<'d>,
        digest: &Digest,
    ) -> Option<Event<'d, P>> {
        let mut pending = *pending;
        let (peer, confirmable) = (pending.peer, pending.confirmable);
        if digest.proxy || digest.refused.is_some() {
            self.refuse(now, &pending, digest);
            return None;
        }
        let is_bert = |block: Option<Block>| block.is_some_and(|block| block.size == BlockSize::BERT);
        if !pending.stream && (is_bert(digest.block1) || is_bert(digest.block2)) {
            // SZX 7 is reserved: RFC 7959, section 2.2.
            self.answer_plain(now, &pending, Response::new(code::BAD_REQUEST));
            return None;
        }
        if let (Some(limit), Some(peer)) = (self.config.policy.amplification, self.peers.get_mut(peer)) {
            peer.verified |= digest.echo.is_some() && digest.echo == peer.echo;
            // The notifications of an observation are not limited by one response.
            if limit > 0 && !peer.verified && digest.observe == Some(0) && !pending.stream {
                self.challenge(now, &pending);
                return None;
            }
        }
        let mut payload = Cow::Borrowed(message.payload);
        if let Some(block) = digest.block1 {
            payload = self.upload(now, &pending, block, digest, message.payload)?;
        }
        if let Some(block) = digest.block2.filter(|block| block.num > 0)
            && self.respond_from_held(now, &pending, block)
        {
            return None;
        }
        if let (Some(observe), Code::GET | code::FETCH) = (digest.observe, message.code) {
            pending.observe = match observe {
                0 => Some(Observe::Register),
                1 => Some(Observe::Deregister),
                _ => None,
            };
            if observe == 1 {
                self.remove_observer_of(&pending, Gone::Deregistered);
            }
        }
        let Ok(key) = self.requests.insert(pending) else {
            self.counters.overload += 1;
            self.answer_plain(now, &pending, Response::new(code::SERVICE_UNAVAILABLE));
            return None;
        };
        self.peers.pin(peer);
        if confirmable {
            self.unacknowledged.push_back(key.slot);
        }
        let peer = self.peers.get(peer)?.address;
        let message = Received { code: message.code, options: message.options, payload };
        Some(Event::Request { id: RequestId(key), peer, observe: pending.observe, message })
    }

    /// Rejects a request because of an option. RFC 7252, sections 5.4.1 and 5.10.2.
    #[cold]
    pub(super) fn refuse(&mut self, now: Instant, pending: &PendingRequest, digest: &Digest) {
        if !pending.confirmable && !pending.stream {
            // "A Non-confirmable message with an unrecognized critical option MUST be rejected".
            self.send_reset(pending.peer, pending.memory, pending.message_id);
        } else if digest.proxy {
            self.answer_plain(now, pending, Response::new(code::PROXYING_NOT_SUPPORTED));
        } else {
            // "a human-readable explanation of the error condition": section 5.5.2.
            let number = digest.refused.unwrap_or_default();
            let response = Response::new(code::BAD_OPTION)
                .payload(alloc::format!("unsupported option {number}").into_bytes());
            self.answer_briefly(now, pending, response);
        }
    }

    /// Sends a response of the endpoint itself, without its diagnostic payload if that is too much for the peer.
    #[cold]
    pub(super) fn answer_briefly(&mut self, now: Instant, pending: &PendingRequest, response: Response<'_>) {
        let content = MessageContent::of(pending.token, &response);
        let payload = if self.is_too_much(pending, content.most()) { &[] } else { content.payload };
        let _ = self.emit(now, pending, &MessageContent { payload, ..content });
    }

    /// Asks a peer to prove that it receives at its address. RFC 9175, section 2.3.
    #[cold]
    pub(super) fn challenge(&mut self, now: Instant, pending: &PendingRequest) {
        let Some(echo) = self.echo_of(pending.peer) else { return };
        let response = Response::new(code::UNAUTHORIZED).option(number::ECHO, &echo);
        let _ = self.emit(now, pending, &MessageContent::of(pending.token, &response));
    }

    /// Returns the value that a peer has to echo.
    pub(super) fn echo_of(&mut self, peer: SlotKey) -> Option<[u8; ECHO]> {
        let [_, _, random @ ..] = self.random().to_be_bytes();
        Some(*self.peers.get_mut(peer)?.echo.get_or_insert(random))
    }

    /// Sends a response of the endpoint itself.
    pub(super) fn answer_plain(&mut self, now: Instant, pending: &PendingRequest, response: Response<'_>) {
        let _ = self.answer(now, pending, &MessageContent::of(pending.token, &response));
    }

    /// Declares that a request gets no response: its client is left to its timeout. **Every request is answered or
    /// dismissed**; until then it counts against [`Limits::max_requests`](crate::Limits::max_requests).
    pub fn dismiss(&mut self, id: RequestId) {
        self.acknowledge(id.0);
        self.release_request(id.0);
    }

    /// Releases a request.
    pub(super) fn release_request(&mut self, key: SlotKey) {
        if let Some(pending) = self.requests.remove(key) {
            if !pending.separate {
                self.unacknowledged.remove(key.slot);
            }
            self.peers.unpin(pending.peer);
        }
    }

    /// Acknowledges a request whose response is not ready, or not wanted.
    pub(super) fn acknowledge(&mut self, key: SlotKey) {
        let Some(pending) = self.requests.get_mut(key) else { return };
        if core::mem::replace(&mut pending.separate, true) {
            return;
        }
        let pending = *pending;
        self.unacknowledged.remove(key.slot);
        if let Some(memory) = pending.memory {
            self.remembered.set(memory, Reply::Acknowledgement);
        }
        self.reply(QueuedSend::Empty(pending.peer, Type::Acknowledgement, pending.message_id));
    }
}
