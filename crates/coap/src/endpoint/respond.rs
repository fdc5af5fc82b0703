//! Sending of the application's responses. RFC 7252, section 5.2; RFC 7959, section 2; RFC 7967.

use alloc::vec::Vec;
use core::hash::Hash;

use thinair_wire::header::coap::Type;
use thinair_wire::time::Instant;

use super::flight::{MessageContent, Owner};
use super::protection::{ContextId, OutOfNumbers, ProtectedContent};
use super::remembered::Reply;
use super::server::PendingRequest;
use super::{Endpoint, QueuedSend};
use crate::block::{Block, BlockSize};
use crate::code::{self, MessageKind};
use crate::event::{Gone, RequestId, RespondError};
use crate::number;
use crate::option::OptionList;
use crate::request::Response;
use crate::table::SlotKey;

/// Octets of the endpoint's own options in the worst case: Observe, Block1, Block2, Size2.
const OWN_OPTIONS: usize = 4 + 5 + 5 + 6;

impl From<OutOfNumbers> for RespondError {
    fn from(_: OutOfNumbers) -> Self {
        Self::NotProtected
    }
}

/// Size limits of messages to a peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageLimits {
    /// Largest message, in octets.
    pub(super) message: usize,
    /// Largest block.
    pub(super) block: BlockSize,
}

impl MessageLimits {
    /// Returns the largest block that fits into a message with these options, and its octets of the body.
    pub(super) fn block(&self, overhead: usize, wanted: Option<BlockSize>) -> Option<(BlockSize, usize)> {
        let room = self.message.checked_sub(overhead + 1).filter(|room| *room >= 16)?;
        let size = wanted.map_or(self.block, |wanted| wanted.min(self.block));
        if size == BlockSize::BERT && room >= 1_024 {
            return Some((size, room & !1_023));
        }
        let size = size.min(BlockSize::at_most(room));
        Some((size, size.octets()))
    }
}

/// Part of a body, with the block option that describes it.
#[derive(Clone, Debug)]
pub(super) struct BodyPart {
    pub(super) options: OptionList,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) more: bool,
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    /// Answers a request. The response is piggybacked on the acknowledgement, or, if that was sent already, a separate
    /// message, whose loss is reported by [`Event::NotDelivered`](crate::Event::NotDelivered). A response with a class of
    /// codes that the client does not want (No-Response) is not sent.
    #[inline]
    pub fn respond(
        &mut self,
        now: Instant,
        id: RequestId,
        response: &Response<'_>,
    ) -> Result<(), RespondError> {
        let pending = *self.requests.get(id.0).ok_or(RespondError::Gone)?;
        if code::kind(response.code) != MessageKind::Response {
            return Err(RespondError::NotAResponse(response.code));
        }
        if response.options.is_incomplete() {
            return Err(RespondError::Option);
        }
        if pending.no_response >> (response.code.class() - 1) & 1 == 1 {
            self.acknowledge(id.0);
            self.release_request(id.0);
            return Ok(());
        }
        if self.is_plain(&pending, response) {
            self.answer_as(now, id.0, &pending, &MessageContent::of(pending.token, response))?;
        } else {
            self.respond_in_parts(now, id.0, &pending, response)?;
        }
        self.release_request(id.0);
        Ok(())
    }

    /// True if the response can be sent unchanged.
    #[inline]
    fn is_plain(&self, pending: &PendingRequest, response: &Response<'_>) -> bool {
        if pending.block1.is_some() || pending.block2.is_some() || pending.observe.is_some() || pending.stream
        {
            return false;
        }
        let len = 4 + pending.token.len() + response.options.octets().len() + 1 + response.payload.len();
        len + self.protection_overhead(pending.transfer.0) <= self.config.limits.max_message
            && response.payload.len() <= self.config.policy.block_size.octets()
            && !self.is_too_much(pending, len)
    }

    fn respond_in_parts(
        &mut self,
        now: Instant,
        key: SlotKey,
        pending: &PendingRequest,
        response: &Response<'_>,
    ) -> Result<(), RespondError> {
        let mut options = response.options.clone();
        match (pending.observer, pending.observe) {
            (Some(observer), _) if response.code.class() == 2 => {
                self.observed_as(observer, response.code, &options);
                if let Some(sequence) = self.next_sequence(observer) {
                    options.push_uint(number::OBSERVE, sequence);
                }
            }
            (Some(observer), _) => self.remove_observer(observer, Gone::Error),
            // The client was an observer, and the application has not accepted it again.
            (None, Some(_)) => self.remove_observer_of(pending, Gone::Deregistered),
            (None, None) => {}
        }
        if let Some(block) = pending.block1 {
            options.push_uint(number::BLOCK1, Block { more: false, ..block }.to_uint());
        }
        let part = self.part_for_any(pending, options, response.payload.len())?;
        let Some(part) = part else {
            let refusal = Response::new(code::BAD_REQUEST).payload(&b"no such block"[..]);
            self.answer_plain(now, pending, refusal);
            return Ok(());
        };
        let payload = response.payload.get(part.start..part.end).unwrap_or_default();
        let content = MessageContent {
            code: response.code,
            token: pending.token,
            options: part.options.octets(),
            payload,
        };
        let is_sent = !self.is_too_much(pending, content.most());
        self.answer_as(now, key, pending, &content)?;
        // The application is asked again for the next block of an unknown client, so that a forged request stores nothing.
        let is_stored = !code::is_safe(pending.method) || self.amplified(pending).is_none();
        if part.more && is_sent && is_stored {
            self.hold(now, pending, response);
        }
        Ok(())
    }

    /// Returns the requested part of a body of `len` octets, or its first part if the body needs more than one. `None` if
    /// there is no such part.
    pub(super) fn part(
        &self,
        pending: &PendingRequest,
        mut options: OptionList,
        len: usize,
    ) -> Result<Option<BodyPart>, RespondError> {
        let overhead = self.overhead(pending.token.len(), &options, pending.transfer.0);
        let limits = self.limits(pending.peer, pending.transfer.0);
        let wanted = pending.block2;
        let fits = overhead + 1 + len <= limits.message && (pending.stream || len <= limits.block.octets());
        if fits && wanted.is_none_or(|block| block.num == 0 && len <= block.size.octets()) {
            if let Some(block) = wanted {
                options.push_uint(number::BLOCK2, Block { num: 0, more: false, size: block.size }.to_uint());
            }
            return Ok(Some(BodyPart { options, start: 0, end: len, more: false }));
        }
        let (size, octets) =
            limits.block(overhead, wanted.map(|block| block.size)).ok_or(RespondError::Option)?;
        let start = wanted.map_or(0, Block::offset);
        if start > 0 && start >= len {
            return Ok(None);
        }
        let end = len.min(start + octets);
        let more = end < len;
        options.push_uint(number::BLOCK2, Block::at(start, more, size).to_uint());
        if start == 0 {
            options.push_uint(number::SIZE2, u32::try_from(len).unwrap_or(u32::MAX));
        }
        Ok(Some(BodyPart { options, start, end, more }))
    }

    /// Returns the octets of a message before its Payload Marker, with the options that the endpoint may add.
    pub(super) fn overhead(&self, token: usize, options: &OptionList, context: Option<ContextId>) -> usize {
        4 + token + options.octets().len() + OWN_OPTIONS + self.protection_overhead(context)
    }

    pub(super) fn limits(&self, peer: SlotKey, context: Option<ContextId>) -> MessageLimits {
        let limits = match self.peers.get(peer).and_then(|peer| peer.stream.as_ref()) {
            Some(stream) => stream.limits(),
            None => MessageLimits {
                message: self.config.limits.max_message,
                block: self.config.policy.block_size.min(BlockSize::MAX),
            },
        };
        // A ciphertext of AES-CCM with a nonce of 13 octets is at most that long.
        let most = if context.is_some() { 0xFFFF } else { usize::MAX };
        MessageLimits { message: limits.message.min(most), ..limits }
    }

    /// Returns the largest answer to a request in octets, without protection, if its peer has not shown yet that it receives at
    /// its address.
    fn amplified(&self, pending: &PendingRequest) -> Option<usize> {
        let limit = self.config.policy.amplification?;
        let is_limited = !pending.stream && !self.is_verified(pending.peer);
        let most = usize::from(limit) * pending.octets as usize;
        is_limited.then(|| most.saturating_sub(self.protection_overhead(pending.transfer.0)))
    }

    /// [`part`](Self::part) of the answer to any peer: if the address of the peer is not verified, in blocks that are small
    /// enough, if the smallest one is, with a value to echo where there is room. RFC 9175, section 2.3.
    pub(super) fn part_for_any(
        &mut self,
        pending: &PendingRequest,
        options: OptionList,
        len: usize,
    ) -> Result<Option<BodyPart>, RespondError> {
        let Some(most) = self.amplified(pending) else { return self.part(pending, options, len) };
        let Some(usual) = self.part(pending, options.clone(), len)? else { return Ok(None) };
        let octets = |options: &OptionList, payload: usize| {
            4 + pending.token.len() + options.octets().len() + usize::from(payload > 0) + payload
        };
        let fits = |part: &BodyPart| octets(&part.options, part.end - part.start) <= most;
        let start = usual.start;
        let smaller = (4..10).rev().map(|bits| BlockSize::at_most(1 << bits)).filter_map(|size| {
            let end = len.min(start + size.octets());
            let mut options = options.clone();
            options.push_uint(number::BLOCK2, Block::at(start, end < len, size).to_uint());
            (end < usual.end).then_some(BodyPart { options, start, end, more: end < len })
        });
        let Some(mut part) = [usual.clone()].into_iter().chain(smaller).find(fits) else {
            return Ok(Some(usual));
        };
        if !part.more {
            return Ok(Some(part));
        }
        let mut extra = part.clone();
        if let Some(echo) = self.echo_of(pending.peer) {
            extra.options.push(number::ECHO, &echo);
        }
        if fits(&extra) {
            part = extra.clone();
        }
        if start == 0 && part.options.as_options().first(number::SIZE2).is_none() {
            extra.options.push_uint(number::SIZE2, u32::try_from(len).unwrap_or(u32::MAX));
        }
        Ok(Some(if fits(&extra) { extra } else { part }))
    }

    /// Sends a response to a pending request: piggybacked, or as a separate message.
    #[inline]
    fn answer_as(
        &mut self,
        now: Instant,
        key: SlotKey,
        pending: &PendingRequest,
        content: &MessageContent<'_>,
    ) -> Result<(), RespondError> {
        if pending.confirmable && pending.separate {
            if self.config.policy.amplification.is_some() && !self.is_verified(pending.peer) {
                // Nothing is retransmitted to a peer whose address is not verified.
                return self.answer(now, &PendingRequest { confirmable: false, ..*pending }, content);
            }
            if self.flights.is_full() {
                return Err(RespondError::TooManyFlights);
            }
            let protected = self.protect_response(pending.protection, content)?;
            let content = protected.as_ref().map_or(*content, ProtectedContent::as_content);
            self.send(now, pending.peer, Owner::Response(key), true, &content)
                .ok_or(RespondError::TooManyFlights)?;
            return Ok(());
        }
        self.answer(now, pending, content)
    }

    /// Sends a response without retransmission: piggybacked, Non-confirmable, or over a stream.
    #[inline]
    pub(super) fn answer(
        &mut self,
        now: Instant,
        pending: &PendingRequest,
        content: &MessageContent<'_>,
    ) -> Result<(), RespondError> {
        if self.is_too_much(pending, content.most()) {
            return self.answer_less(now, pending, content);
        }
        self.emit(now, pending, content)
    }

    /// Sends a response like [`answer`](Self::answer), without the limit for unverified peers.
    #[inline]
    pub(super) fn emit(
        &mut self,
        now: Instant,
        pending: &PendingRequest,
        content: &MessageContent<'_>,
    ) -> Result<(), RespondError> {
        let protected = self.protect_response(pending.protection, content)?;
        let content = protected.as_ref().map_or(*content, ProtectedContent::as_content);
        let most = content.most();
        if pending.stream {
            return match self.write_frame(now, pending.peer, &content) {
                true => Ok(()),
                false => Err(RespondError::Gone),
            };
        }
        let (message_type, message_id) = if pending.confirmable {
            (Type::Acknowledgement, pending.message_id)
        } else {
            let Some(peer) = self.peers.get_mut(pending.peer) else { return Err(RespondError::Gone) };
            (Type::NonConfirmable, peer.next_message_id())
        };
        let span = self.octets.push(most, |out| content.write(message_type, message_id, out));
        let Some(span) = span else {
            self.counters.dropped += 1;
            return Err(RespondError::Option);
        };
        if let Some(memory) = pending.memory.filter(|_| pending.confirmable) {
            // A protected request is not processed again: its repetition is indistinguishable from a replay.
            let is_repeatable = code::is_safe(pending.method) && pending.protection.is_none();
            self.remembered.set(memory, Reply::Octets(span, is_repeatable));
        }
        self.reply(QueuedSend::Octets(pending.peer, span));
        Ok(())
    }

    fn is_verified(&self, peer: SlotKey) -> bool {
        self.peers.get(peer).is_some_and(|peer| peer.verified)
    }

    /// True if an answer of so many octets is too large for a peer whose address is not verified.
    #[inline]
    pub(super) fn is_too_much(&self, pending: &PendingRequest, octets: usize) -> bool {
        self.amplified(pending).is_some_and(|most| octets > most)
    }

    /// Answers with less: the response is too large for a peer whose address is not verified.
    #[cold]
    fn answer_less(
        &mut self,
        now: Instant,
        pending: &PendingRequest,
        content: &MessageContent<'_>,
    ) -> Result<(), RespondError> {
        // A request for a further block processes nothing.
        if code::is_safe(pending.method) || pending.block2.is_some_and(|block| block.num > 0) {
            self.challenge(now, pending);
            return Ok(());
        }
        // The request was processed, and is so short that no block fits: the code alone is no larger than the request.
        self.emit(now, pending, &MessageContent { options: &[], payload: &[], ..*content })
    }

    /// Stores a body of which not all parts were sent.
    fn hold(&mut self, now: Instant, pending: &PendingRequest, response: &Response<'_>) {
        let octets: Vec<u8> = response.payload.to_vec();
        self.hold_body(now, pending.peer, pending.transfer, response.code, response.options.clone(), octets);
    }
}
