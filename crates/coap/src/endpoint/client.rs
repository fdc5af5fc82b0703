//! Requests to peers: sending, division into messages, completion. RFC 7252, section 5.

use alloc::vec::Vec;
use core::hash::Hash;

use thinair_wire::header::coap::Code;
use thinair_wire::time::Instant;

use super::call::{BodyDownload, Observing, Upload};
use super::flight::{MessageContent, Owner};
use super::protection::{CallProtection, ProtectedContent};
use super::receive::is_method;
use super::{Endpoint, Timed};
use crate::block::{Block, BlockSize};
use crate::config::Tokens;
use crate::congestion::CongestionControl;
use crate::event::{CallError, CallId, Event, RequestError};
use crate::number;
use crate::option::OptionList;
use crate::request::Request;
use crate::table::SlotKey;
use crate::token::Token;

/// A request under way.
pub(crate) struct Call {
    pub(super) peer: SlotKey,
    pub(super) method: Code,
    confirmable: bool,
    options: OptionList,
    pub(super) body: Vec<u8>,
    /// Token of the latest message: one for all messages of a transfer.
    pub(super) token: Token,
    pub(super) flight: Option<SlotKey>,
    deadline: Option<Instant>,
    /// True while it waits for the CSM of the other side.
    parked: bool,
    pub(super) observing: Observing,
    /// The Token of the observation.
    pub(super) observed: Option<Token>,
    /// Value and arrival time of the latest Observe.
    pub(super) sequence: Option<(u32, Instant)>,
    pub(super) upload: Option<Upload>,
    pub(super) download: Option<BodyDownload>,
    /// Value that the server wants to see in Echo. RFC 9175.
    pub(super) echo: Option<Vec<u8>>,
    /// Number of restarts of a block-wise transfer.
    pub(super) restarts: u8,
    /// True if the last octet of the Token counts transmissions.
    counted: bool,
    pub(super) protection: Option<CallProtection>,
}

impl Call {
    pub(super) const fn is_counted(&self) -> bool {
        self.counted
    }

    /// True if there was a notification with this Token.
    pub(super) fn is_observing(&self, token: &Token) -> bool {
        self.sequence.is_some() && self.observed == Some(*token)
    }
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    /// Sends a request, in blocks if its body is too large for one message. Its outcome is an event.
    pub fn request(&mut self, now: Instant, peer: P, request: &Request<'_>) -> Result<CallId, RequestError> {
        self.begin_call(now, peer, request, None)
    }

    pub(super) fn begin_call(
        &mut self,
        now: Instant,
        peer: P,
        request: &Request<'_>,
        protection: Option<CallProtection>,
    ) -> Result<CallId, RequestError> {
        if !is_method(request.method) {
            return Err(RequestError::NotAMethod(request.method));
        }
        if request.options.is_incomplete() {
            return Err(RequestError::Option);
        }
        if self.calls.is_full() {
            return Err(RequestError::TooManyCalls);
        }
        self.peers.now = now;
        let peer = self.peer_key(peer).ok_or(RequestError::TooManyPeers)?;
        if self.flights.is_full() {
            return Err(RequestError::TooManyFlights);
        }
        if self.peers.get(peer).and_then(|peer| peer.stream.as_ref()).is_some_and(|stream| stream.released) {
            return Err(RequestError::Closed);
        }
        let options = self.distinguished(peer, request);
        let counted = request.confirmable
            && !request.observe
            && self.peers.get(peer).is_some_and(|p| p.stream.is_none() && p.controller.counts_in_token());
        let token = self.new_token(peer, counted);
        let call = Call {
            peer,
            method: request.method,
            confirmable: request.confirmable,
            options,
            body: request.payload.to_vec(),
            token,
            flight: None,
            deadline: None,
            parked: false,
            observing: if request.observe { Observing::Registering } else { Observing::No },
            observed: None,
            sequence: None,
            upload: None,
            download: None,
            echo: None,
            restarts: 0,
            counted,
            protection,
        };
        let key = self.calls.insert(call).map_err(|_| RequestError::TooManyCalls)?;
        self.peers.pin(peer);
        self.by_token.insert((peer, token), key);
        if let Err(error) = self.send_call(now, key, false) {
            self.end_call(now, key);
            return Err(match error {
                CallError::MessageTooLarge { limit } => RequestError::TooLarge { limit },
                CallError::NoSequenceNumber => RequestError::NoSequenceNumber,
                _ => RequestError::Closed,
            });
        }
        Ok(CallId(key))
    }

    /// Returns the options of a request; with a Request-Tag if another request under way has equal options and may have a
    /// body, so that the server does not mix blocks of the two. RFC 9175, section 3.3.
    fn distinguished(&mut self, peer: SlotKey, request: &Request<'_>) -> OptionList {
        let mut options = request.options.clone();
        let same =
            |call: &Call| call.peer == peer && call.method == request.method && call.options == options;
        // A FETCH has a body, too.
        if request.method != Code::GET && self.calls.iter().any(|(_, call)| same(call)) {
            self.request_tag = self.request_tag.wrapping_add(1);
            options.push_uint(number::REQUEST_TAG, self.request_tag);
        }
        options
    }

    /// Returns a Token that no request to this peer uses; if it is `counted`, with another octet, which is zero.
    fn new_token(&mut self, peer_key: SlotKey, counted: bool) -> Token {
        let longest = if counted { 7 } else { 8 };
        let whole = |value: u64, len: usize| match counted {
            true => Token::of(value << 8, len + 1),
            false => Token::of(value, len),
        };
        let (shortest, attempts) = match self.config.policy.tokens {
            Tokens::Counting => (1, 32),
            Tokens::Random(len) => (usize::from(len), 32),
            // Only as many are in use.
            Tokens::Sequence(len) => (usize::from(len), self.by_token.len() + 1),
        };
        loop {
            for len in shortest.clamp(1, longest)..=longest {
                for _ in 0..attempts {
                    let random = match self.config.policy.tokens {
                        Tokens::Counting | Tokens::Sequence(_) => 0,
                        Tokens::Random(_) => self.random(),
                    };
                    let Some(peer) = self.peers.get_mut(peer_key) else { return Token::EMPTY };
                    let token = whole(random ^ peer.token, len);
                    peer.token = peer.token.wrapping_add(1);
                    if !self.by_token.contains_key(&(peer_key, token)) {
                        return token;
                    }
                }
            }
        }
    }

    /// Returns the call of a Token, and the number of its transmission if the Token contains it.
    pub(super) fn call_of(&self, peer: SlotKey, token: &Token) -> Option<(SlotKey, Option<u8>)> {
        let call = |token: &Token| self.by_token.get(&(peer, *token)).copied();
        let is_counted = |call: &SlotKey| self.calls.get(*call).is_some_and(Call::is_counted);
        if let Some(key) = call(token) {
            return Some((key, is_counted(&key).then_some(0)));
        }
        if self.peers.get(peer).is_none_or(|peer| !peer.controller.counts_in_token()) {
            return None;
        }
        let count = token.last()?;
        Some((call(&token.with_last(0)?).filter(is_counted)?, Some(count)))
    }

    /// Processes the answer to a registration that came with its acknowledgement. It is no older than the state observed
    /// before, even if the server has restarted its sequence.
    pub(super) fn registered(&mut self, key: SlotKey) {
        if let Some(call) = self.calls.get_mut(key).filter(|call| call.observing == Observing::Registering) {
            call.sequence = None;
        }
    }

    /// Ignores a response. If it has answered the message under way, another response has to come.
    pub(super) fn keep_waiting(&mut self, now: Instant, key: SlotKey) {
        let Some(call) = self.calls.get(key) else { return };
        let under_way = call.flight.is_some_and(|flight| self.flights.get(flight).is_some());
        if !under_way && call.deadline.is_none() {
            if let Some(call) = self.calls.get_mut(key) {
                call.flight = None;
            }
            self.set_deadline(key, now + self.config.timing.response_timeout);
        }
    }

    /// Gives a call another Token, to distinguish late responses from those that follow (RFC 9175, section 4.2); the Token
    /// of an observation stays.
    fn renew_token(&mut self, key: SlotKey) -> Option<Token> {
        let call = self.calls.get(key)?;
        let (peer, token, counted) = (call.peer, call.token, call.counted);
        let next = match (call.observing, call.observed) {
            (Observing::Registering | Observing::Leaving, Some(observed)) if call.download.is_none() => {
                observed
            }
            _ => self.new_token(peer, counted),
        };
        let call = self.calls.get_mut(key)?;
        if call.observed != Some(token) {
            self.by_token.remove(&(peer, token));
        }
        call.token = next;
        self.by_token.insert((peer, next), key);
        Some(next)
    }

    /// Sends the next message of a call; `anew` if it does not continue a transfer, but begins another one.
    pub(super) fn send_call(&mut self, now: Instant, key: SlotKey, anew: bool) -> Result<(), CallError> {
        self.clear_deadline(key);
        if anew {
            self.renew_token(key).ok_or(CallError::Cancelled)?;
        }
        let call = self.calls.get(key).ok_or(CallError::Cancelled)?;
        let stream =
            self.peers.get(call.peer).and_then(|peer| peer.stream.as_ref()).map(|stream| stream.is_ready());
        let mut options = call.options.clone();
        if let Some(echo) = &call.echo {
            options.push(number::ECHO, echo);
        }
        let context = call.protection.as_ref().map(CallProtection::context);
        let limits = self.limits(call.peer, context);
        let overhead = self.overhead(call.token.len(), &options, context);
        let too_large = CallError::MessageTooLarge { limit: limits.message };
        let (mut start, mut end, mut upload) = (0, 0, None);
        if let Some(download) = &call.download {
            let size = download.size.min(limits.block);
            options.push_uint(number::BLOCK2, Block::at(download.octets.len(), false, size).to_uint());
            if overhead > limits.message {
                return Err(too_large);
            }
        } else {
            match call.observing {
                Observing::Registering => options.push_uint(number::OBSERVE, 0),
                Observing::Leaving => options.push_uint(number::OBSERVE, 1),
                Observing::No | Observing::Active => {}
            }
            let len = call.body.len();
            let fits =
                overhead + 1 + len <= limits.message && (stream.is_some() || len <= limits.block.octets());
            if stream == Some(false) && !fits {
                // The largest message that the peer accepts is not known yet.
                self.calls.get_mut(key).ok_or(CallError::Cancelled)?.parked = true;
                self.set_deadline(key, now + self.config.timing.response_timeout);
                return Ok(());
            }
            if call.upload.is_some() || !fits {
                let wanted = call.upload.as_ref().map(|upload| upload.size);
                start = call.upload.as_ref().map_or(0, |upload| upload.start);
                let (size, octets) = limits.block(overhead, wanted).ok_or(too_large)?;
                end = len.min(start + octets);
                options.push_uint(number::BLOCK1, Block::at(start, end < len, size).to_uint());
                if start == 0 {
                    options.push_uint(number::SIZE1, u32::try_from(len).unwrap_or(u32::MAX));
                }
                upload = Some(Upload { start, end, size });
            } else {
                end = len;
            }
            if limits.block < BlockSize::MAX {
                // Early negotiation: RFC 7959, section 2.4.
                options
                    .push_uint(number::BLOCK2, Block { num: 0, more: false, size: limits.block }.to_uint());
            }
        }
        self.send_message(now, key, &options, start, end, upload)
    }

    fn send_message(
        &mut self,
        now: Instant,
        key: SlotKey,
        options: &OptionList,
        start: usize,
        end: usize,
        upload: Option<Upload>,
    ) -> Result<(), CallError> {
        let call = self.calls.get_mut(key).ok_or(CallError::Cancelled)?;
        let (peer, confirmable, method, token) = (call.peer, call.confirmable, call.method, call.token);
        if call.observing == Observing::Registering && call.download.is_none() {
            call.observed = Some(token);
        }
        if upload.is_some() {
            call.upload = upload;
        }
        let body = core::mem::take(&mut call.body);
        let payload = body.get(start..end).unwrap_or_default();
        let stream = self.peers.get(peer).is_some_and(|peer| peer.stream.is_some());
        let content = MessageContent { code: method, token, options: options.octets(), payload };
        let protected = self.protect_request(key, &content).map_err(|_| CallError::NoSequenceNumber)?;
        let content = protected.as_ref().map_or(content, ProtectedContent::as_content);
        let sent = if stream {
            self.write_frame(now, peer, &content).then_some(None)
        } else {
            let owner = Owner::Call(key);
            self.send(now, peer, owner, confirmable, &content).map(Some)
        };
        let call = self.calls.get_mut(key).ok_or(CallError::Closed)?;
        call.body = body;
        call.flight = sent.ok_or(CallError::Closed)?;
        if stream || !confirmable {
            self.call_acknowledged(now, key);
        }
        Ok(())
    }

    /// Starts the time limit of the response: the server has the request.
    pub(super) fn call_acknowledged(&mut self, now: Instant, key: SlotKey) {
        if let Some(call) = self.calls.get_mut(key) {
            if call.confirmable {
                call.flight = None;
            }
            self.set_deadline(key, now + self.config.timing.response_timeout);
        }
    }

    pub(super) fn set_deadline(&mut self, key: SlotKey, deadline: Instant) {
        self.clear_deadline(key);
        if let Some(call) = self.calls.get_mut(key) {
            call.deadline = Some(deadline);
            self.timers.insert((deadline, Timed::Call(key)));
        }
    }

    pub(super) fn clear_deadline(&mut self, key: SlotKey) {
        if let Some(deadline) = self.calls.get_mut(key).and_then(|call| call.deadline.take()) {
            self.timers.remove(&(deadline, Timed::Call(key)));
        }
    }

    /// Processes the expiry of a call's deadline: a response is missing, or the observed representation is too old.
    pub(super) fn call_timeout(&mut self, now: Instant, key: SlotKey) {
        let Some(call) = self.calls.get_mut(key) else { return };
        call.deadline = None;
        if call.observing == Observing::Active && call.download.is_none() {
            // RFC 7641, section 3.3.1.
            call.observing = Observing::Registering;
            self.repeat_call(now, key);
            return;
        }
        self.call_failed(now, key, CallError::NoResponse);
    }

    /// Sends a request of a call again; if that is impossible, the call fails.
    pub(super) fn repeat_call(&mut self, now: Instant, key: SlotKey) {
        if let Err(error) = self.send_call(now, key, true) {
            self.call_failed(now, key, error);
        }
    }

    pub(super) fn call_failed(&mut self, now: Instant, key: SlotKey, error: CallError) {
        if self.end_call(now, key).is_some() {
            self.events.push_back(Event::Failed { call: CallId(key), error });
        }
    }

    pub(super) fn end_call(&mut self, now: Instant, key: SlotKey) -> Option<Call> {
        self.clear_deadline(key);
        let call = self.calls.remove(key)?;
        if let Some(flight) = call.flight {
            self.land(now, flight);
        }
        self.by_token.remove(&(call.peer, call.token));
        if let Some(observed) = call.observed {
            self.by_token.remove(&(call.peer, observed));
        }
        self.peers.unpin(call.peer);
        Some(call)
    }

    /// Cancels a request or an observation. [`Event::Failed`] follows; later messages for it are rejected, which also
    /// ends an observation at the server. Over a stream, where nothing is rejected, the client deregisters explicitly.
    /// RFC 8323, section 7.4.
    pub fn cancel(&mut self, now: Instant, call: CallId) {
        if let Some(state) = self.calls.get(call.0)
            && let Some(token) = state.observed.filter(|_| state.observing != Observing::Leaving)
            && self.peers.get(state.peer).is_some_and(|peer| peer.stream.is_some())
        {
            let mut options = state.options.clone();
            options.push_uint(number::OBSERVE, 1);
            let (peer, code) = (state.peer, state.method);
            let content = MessageContent { code, token, options: options.octets(), payload: &[] };
            if let Ok(protected) = self.protect_request(call.0, &content) {
                let content = protected.as_ref().map_or(content, ProtectedContent::as_content);
                self.write_frame(now, peer, &content);
            }
        }
        self.call_failed(now, call.0, CallError::Cancelled);
    }

    /// Requests the end of an observation: Observe 1. The response to it is an [`Event::Response`]. False if nothing is
    /// observed. RFC 7641, section 3.6.
    pub fn deregister(&mut self, now: Instant, call: CallId) -> bool {
        let Some(state) = self.calls.get_mut(call.0) else { return false };
        if state.observed.is_none() || !matches!(state.observing, Observing::Active) {
            return false;
        }
        state.observing = Observing::Leaving;
        state.download = None;
        if let Some(flight) = state.flight.take() {
            self.land(now, flight);
        }
        self.repeat_call(now, call.0);
        true
    }

    /// Sends the calls that waited for the CSM of the other side.
    pub(super) fn send_waiting_calls(&mut self, now: Instant, peer: SlotKey) {
        for key in self.calls_of(peer) {
            let Some(call) = self.calls.get_mut(key) else { continue };
            if core::mem::replace(&mut call.parked, false)
                && let Err(error) = self.send_call(now, key, false)
            {
                self.call_failed(now, key, error);
            }
        }
    }

    /// Fails all calls to a peer whose stream is closed.
    pub(super) fn fail_calls(&mut self, now: Instant, peer: SlotKey) {
        for key in self.calls_of(peer) {
            self.call_failed(now, key, CallError::Closed);
        }
    }

    fn calls_of(&self, peer: SlotKey) -> Vec<SlotKey> {
        self.calls.iter().filter(|(_, call)| call.peer == peer).map(|(key, _)| key).collect()
    }
}
