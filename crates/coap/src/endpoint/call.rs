//! Effect of a response on its request: it ends it, requests the next block, or is one of many notifications. RFC 7252,
//! section 5.3; RFC 7641, section 3; RFC 7959, section 2; RFC 9175, section 2.3.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::hash::Hash;
use core::time::Duration;

use thinair_wire::header::coap::Type;
use thinair_wire::time::Instant;

use super::Endpoint;
use super::client::Call;
use super::digest::Digest;
use crate::block::{Block, BlockSize};
use crate::code;
use crate::congestion::part;
use crate::event::{CallError, CallId, Event};
use crate::message::Message;
use crate::number;
use crate::request::Received;
use crate::table::SlotKey;
use crate::token::Token;

/// Largest number of restarts of a transfer.
const RESTARTS: u8 = 3;

/// State of a client's observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Observing {
    No,
    /// The request contains Observe 0.
    Registering,
    /// Notifications are expected.
    Active,
    /// The request contains Observe 1.
    Leaving,
}

/// A body that is being sent to the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Upload {
    /// Offset of the block under way, in octets.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) size: BlockSize,
}

/// A body that is being received from the server.
#[derive(Clone, Debug)]
pub(super) struct BodyDownload {
    pub(super) octets: Vec<u8>,
    pub(super) size: BlockSize,
    etag: Option<Vec<u8>>,
    /// True if the first block was a notification.
    notification: bool,
    total: Option<usize>,
}

/// Action after a response.
enum NextStep<'d> {
    /// Send the next block of a transfer.
    Continue,
    /// Send the first message of a transfer: the request again, or one for the blocks that follow a notification.
    Begin,
    /// Ignore an old response.
    Ignore,
    Fail(CallError),
    /// Deliver the complete body; `true` if it is a notification.
    Deliver(Cow<'d, [u8]>, bool),
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    /// Fails a call at a response.
    pub(super) fn fail_at_response(
        &mut self,
        now: Instant,
        key: SlotKey,
        error: CallError,
    ) -> Event<'static, P> {
        self.end_call(now, key);
        Event::Failed { call: CallId(key), error }
    }

    /// Processes the response to a request.
    pub(super) fn call_response<'d>(
        &mut self,
        now: Instant,
        key: SlotKey,
        message: Message<'d>,
        digest: &Digest,
    ) -> Option<Event<'d, P>> {
        let stream = self
            .calls
            .get(key)
            .and_then(|call| self.peers.get(call.peer))
            .is_some_and(|p| p.stream.is_some());
        let limit = self.config.limits.max_body;
        let call = self.calls.get_mut(key)?;
        let next = call.next(now, &message, digest, stream, limit);
        let abandoned = match next {
            NextStep::Ignore => {
                self.keep_waiting(now, key);
                return None;
            }
            // A notification came while an older one was fetched, or the message that is answered is under way.
            _ => call.flight.take(),
        };
        if let Some(flight) = abandoned {
            self.land(now, flight);
        }
        match next {
            NextStep::Ignore => None,
            NextStep::Fail(error) => {
                self.end_call(now, key);
                Some(Event::Failed { call: CallId(key), error })
            }
            NextStep::Continue | NextStep::Begin => {
                let anew = matches!(next, NextStep::Begin);
                let call = self.calls.get(key)?;
                let sent = call.upload.map_or(call.body.len(), |upload| upload.start);
                let received = call.download.as_ref().map_or(0, |download| download.octets.len());
                let total = call.download.as_ref().and_then(|download| download.total);
                if let Err(error) = self.send_call(now, key, anew) {
                    self.end_call(now, key);
                    return Some(Event::Failed { call: CallId(key), error });
                }
                Some(Event::Progress { call: CallId(key), sent, received, total })
            }
            NextStep::Deliver(payload, notification) => {
                let max_age = message.options.max_age();
                let message = Received { code: message.code, options: message.options, payload };
                if notification {
                    self.keep_observing(now, key, max_age);
                    return Some(Event::Notification { call: CallId(key), message });
                }
                self.end_call(now, key);
                Some(Event::Response { call: CallId(key), message })
            }
        }
    }

    /// Sets the deadline of the next notification; if there is none within Max-Age and 5 to 15 s, the client registers
    /// again. RFC 7641, section 3.3.1.
    fn keep_observing(&mut self, now: Instant, key: SlotKey, max_age: u32) {
        let random = self.random();
        let Some(call) = self.calls.get_mut(key) else { return };
        let (peer, token) = (call.peer, call.token);
        if let Some(observed) = call.observed.filter(|observed| *observed != token) {
            call.token = observed;
            self.by_token.remove(&(peer, token));
        }
        let patience =
            Duration::from_secs(u64::from(max_age) + 5) + Duration::from_nanos(part(10_000_000_000, random));
        self.set_deadline(key, now + patience);
    }
}

impl Call {
    fn next<'d>(
        &mut self,
        now: Instant,
        message: &Message<'d>,
        digest: &Digest,
        stream: bool,
        limit: usize,
    ) -> NextStep<'d> {
        if let Some(number) = digest.refused {
            return NextStep::Fail(CallError::BadOption { number });
        }
        let observed = self.observed == Some(message.token);
        if let Some(sequence) = digest.observe.filter(|_| observed && message.code.class() == 2) {
            // Protected notifications are ordered already.
            let is_ordered = stream || self.protection.is_some();
            if self.observing == Observing::Leaving || !is_ordered && !self.is_fresh(now, sequence) {
                return NextStep::Ignore;
            }
            self.sequence = Some((sequence, now));
            self.download = None;
        } else if observed && self.token != message.token {
            // The observation has ended while its last state was fetched.
            self.download = None;
        }
        if message.code == code::UNAUTHORIZED
            && self.echo.is_none()
            && let Some(echo) = message.options.first(number::ECHO)
        {
            self.echo = Some(echo.to_vec());
            let is_within = self.download.is_some() || self.upload.is_some_and(|upload| upload.start > 0);
            return if is_within { NextStep::Continue } else { NextStep::Begin };
        }
        if !stream && message.message_type != Type::Acknowledgement && self.is_late(&message.token, digest) {
            return NextStep::Ignore;
        }
        if let Some(next) = self.next_block1(message, digest) {
            return next;
        }
        if message.code == code::CONTINUE {
            return NextStep::Fail(CallError::UnexpectedContinue);
        }
        if self.is_worth_a_restart(message, digest) {
            self.download = None;
            return NextStep::Begin;
        }
        self.next_block2(message, digest, stream, limit)
    }

    /// True if a response is to an earlier message of the transfer than the one under way. A server that processes a
    /// retransmission again sends a second separate response.
    pub(super) fn is_late(&self, token: &Token, digest: &Digest) -> bool {
        let is_before = |block: Block, at: usize, size: BlockSize| {
            // A block may be acknowledged in a smaller size.
            block.offset() < at && (block.num as usize) < at / size.octets()
        };
        let is_late =
            |block: Option<Block>, at: usize, size| block.is_some_and(|block| is_before(block, at, size));
        self.token == *token
            && match (&self.download, self.upload) {
                (Some(download), _) => is_late(digest.block2, download.octets.len(), download.size),
                (None, Some(upload)) => is_late(digest.block1, upload.start, upload.size),
                (None, None) => false,
            }
    }

    /// True if the first block is fetched again, in a larger size: a server that does not know yet whether the client
    /// receives at its address sends small blocks, with a value to echo if there is room. RFC 9175, section 2.3.
    fn is_worth_a_restart(&mut self, message: &Message<'_>, digest: &Digest) -> bool {
        let Some(echo) = message.options.first(number::ECHO).filter(|_| self.echo.is_none()) else {
            return false;
        };
        self.echo = Some(echo.to_vec());
        let is_small = digest.block2.is_some_and(|block| block.more && block.size < BlockSize::MAX);
        is_small && message.code.class() == 2 && code::is_safe(self.method) && self.observing == Observing::No
    }

    /// True if a notification is newer than the latest. RFC 7641, section 3.4. A stream preserves the order: RFC 8323,
    /// section 7.1.
    fn is_fresh(&self, now: Instant, sequence: u32) -> bool {
        let Some((last, at)) = self.sequence else { return true };
        let ahead = sequence.wrapping_sub(last) & 0xFF_FFFF;
        0 < ahead && ahead < 1 << 23 || now > at + Duration::from_secs(128)
    }

    /// Returns the next step of an upload; `None` if it is complete. RFC 7959, sections 2.5 and 2.9.
    fn next_block1<'d>(&mut self, message: &Message<'d>, digest: &Digest) -> Option<NextStep<'d>> {
        let hint = digest.block1.map(|block| block.size);
        let size = self.upload.map(|upload| upload.size);
        if message.code == code::REQUEST_ENTITY_TOO_LARGE {
            let smaller =
                hint.filter(|hint| size.is_none_or(|size| *hint < size) && hint.octets() < self.body.len())?;
            self.upload = Some(Upload { start: 0, end: 0, size: smaller });
            return Some(NextStep::Begin);
        }
        let upload = self.upload.as_mut()?;
        if message.code == code::REQUEST_ENTITY_INCOMPLETE && upload.start > 0 && self.restarts < RESTARTS {
            self.restarts += 1;
            (upload.start, upload.end) = (0, 0);
            return Some(NextStep::Begin);
        }
        if upload.end >= self.body.len() || message.code.class() != 2 {
            return None;
        }
        if hint.is_none() && message.code != code::CONTINUE {
            // The server has taken the block for the whole body.
            return Some(NextStep::Fail(CallError::BadBlock));
        }
        upload.start = upload.end;
        if let Some(hint) = hint {
            upload.size = upload.size.min(hint);
        }
        Some(NextStep::Continue)
    }

    /// Returns the step after a response: the next block, delivery of the body, or failure. RFC 7959, section 2.4.
    fn next_block2<'d>(
        &mut self,
        message: &Message<'d>,
        digest: &Digest,
        stream: bool,
        limit: usize,
    ) -> NextStep<'d> {
        if digest.block2.is_none() && self.download.is_some() && message.code.class() == 2 {
            return NextStep::Fail(CallError::BadBlock);
        }
        let registering = matches!(self.observing, Observing::Registering | Observing::Active);
        let notification = registering && digest.observe.is_some() && message.code.class() == 2;
        let Some(block) =
            digest.block2.filter(|block| block.more || block.num > 0 || self.download.is_some())
        else {
            return self.complete(Cow::Borrowed(message.payload), notification);
        };
        if !is_sound(block, message.payload.len(), stream) {
            return NextStep::Fail(CallError::BadBlock);
        }
        let etag = message.options.etag().map(<[u8]>::to_vec);
        let total = digest.size2.map(|size| size as usize);
        let end = block.offset() + message.payload.len();
        if end > limit || total.is_some_and(|total| total > limit) {
            return NextStep::Fail(CallError::TooLarge { limit });
        }
        let mut download = match self.download.take() {
            Some(download) if block.num > 0 => download,
            _ if block.num == 0 => {
                BodyDownload { octets: Vec::new(), size: block.size, etag: etag.clone(), notification, total }
            }
            _ => return NextStep::Fail(CallError::BadBlock),
        };
        if download.etag != etag {
            self.restarts += 1;
            if self.restarts > RESTARTS || !code::is_safe(self.method) {
                return NextStep::Fail(CallError::Changed);
            }
            // From the first block, with Observe 0 again if the transfer was a notification.
            if self.observing == Observing::Active {
                self.observing = Observing::Registering;
            }
            return NextStep::Begin;
        }
        if download.octets.len() != block.offset() {
            return NextStep::Fail(CallError::BadBlock);
        }
        download.octets.extend_from_slice(message.payload);
        download.size = download.size.min(block.size);
        if !block.more {
            let notification = download.notification;
            return self.complete(Cow::Owned(download.octets), notification);
        }
        if download.notification {
            self.observing = Observing::Active;
        }
        self.download = Some(download);
        // The blocks of a notification are fetched by another Token than that of the observation. RFC 7959, section 2.6.
        if self.observed.is_some() && block.num == 0 { NextStep::Begin } else { NextStep::Continue }
    }

    fn complete<'d>(&mut self, payload: Cow<'d, [u8]>, notification: bool) -> NextStep<'d> {
        self.download = None;
        if notification {
            self.observing = Observing::Active;
            self.upload = None;
            self.restarts = 0;
        }
        NextStep::Deliver(payload, notification)
    }
}

/// True if a block has the number of octets that its option requires.
fn is_sound(block: Block, octets: usize, stream: bool) -> bool {
    match (block.size, block.more) {
        (BlockSize::BERT, _) if !stream => false,
        (BlockSize::BERT, true) => octets > 0 && octets.is_multiple_of(1_024),
        (BlockSize::BERT, false) => true,
        (size, true) => octets == size.octets(),
        (size, false) => octets <= size.octets(),
    }
}
