//! Requests to peers, from their first octet to their response. RFC 7252, section 5.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::hash::Hash;

use thinair_wire::header::coap::Code;
use thinair_wire::time::Instant;

use super::flight::Owner;
use super::receive::is_method;
use super::{Endpoint, Timed};
use crate::config::Tokens;
use crate::event::{CallError, CallId, Event, RequestError};
use crate::option::{OptionList, Options};
use crate::request::{Received, Request};
use crate::table::Key;
use crate::token::Token;

/// A request under way.
pub(crate) struct Call {
    peer: Key,
    method: Code,
    confirmable: bool,
    options: OptionList,
    body: Vec<u8>,
    token: Token,
    pub(super) flight: Option<Key>,
    deadline: Option<Instant>,
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    /// Sends a request. Events tell what becomes of it.
    pub fn request(&mut self, now: Instant, peer: P, request: &Request<'_>) -> Result<CallId, RequestError> {
        if !is_method(request.method) {
            return Err(RequestError::NotAMethod(request.method));
        }
        if request.options.is_incomplete() {
            return Err(RequestError::Option);
        }
        if self.calls.is_full() {
            return Err(RequestError::TooManyCalls);
        }
        if self.flights.is_full() {
            return Err(RequestError::TooManyFlights);
        }
        let peer = self.peer_key(peer).ok_or(RequestError::TooManyPeers)?;
        let token = self.new_token(peer);
        let call = Call {
            peer,
            method: request.method,
            confirmable: request.confirmable,
            options: request.options.clone(),
            body: request.payload.to_vec(),
            token,
            flight: None,
            deadline: None,
        };
        let key = self.calls.insert(call).map_err(|_| RequestError::TooManyCalls)?;
        self.peers.pin(peer);
        self.by_token.insert((peer, token), key);
        self.send_call(now, key);
        Ok(CallId(key))
    }

    /// A Token that no request to this peer has.
    fn new_token(&mut self, peer_key: Key) -> Token {
        loop {
            let random = match self.config.tokens {
                Tokens::Counting => 0,
                Tokens::Random(_) => self.random(),
            };
            let Some(peer) = self.peers.get_mut(peer_key) else { return Token::EMPTY };
            match self.config.tokens {
                Tokens::Random(len) => {
                    let token = Token::of(random, usize::from(len.max(1)));
                    if !self.by_token.contains_key(&(peer_key, token)) {
                        return token;
                    }
                }
                Tokens::Counting => {
                    for len in 1..=8 {
                        for _ in 0..32 {
                            let token = Token::of(peer.token, len);
                            peer.token = peer.token.wrapping_add(1);
                            if !self.by_token.contains_key(&(peer_key, token)) {
                                return token;
                            }
                        }
                    }
                }
            }
        }
    }

    fn send_call(&mut self, now: Instant, key: Key) {
        let Some(call) = self.calls.get(key) else { return };
        let (peer, confirmable, method, token) = (call.peer, call.confirmable, call.method, call.token);
        let options = call.options.clone();
        let body = core::mem::take(&mut self.calls.get_mut(key).expect("it was there").body);
        let flight =
            self.send(now, peer, Owner::Call(key), confirmable, method, &token, options.octets(), &body);
        if let Some(call) = self.calls.get_mut(key) {
            call.body = body;
            call.flight = flight;
        }
        if !confirmable {
            self.call_acknowledged(now, key);
        }
    }

    /// The server has the request: now the response has its time.
    pub(super) fn call_acknowledged(&mut self, now: Instant, key: Key) {
        let Some(call) = self.calls.get_mut(key) else { return };
        if call.confirmable {
            call.flight = None;
        }
        let deadline = now + self.config.response_timeout;
        if let Some(before) = call.deadline.replace(deadline) {
            self.timers.remove(&(before, Timed::Call(key)));
        }
        self.timers.insert((deadline, Timed::Call(key)));
    }

    pub(super) fn call_timeout(&mut self, now: Instant, key: Key) {
        if let Some(call) = self.calls.get_mut(key) {
            call.deadline = None;
            if let Some(flight) = call.flight {
                self.land(now, flight);
            }
            self.call_failed(key, CallError::NoResponse);
        }
    }

    pub(super) fn call_failed(&mut self, key: Key, error: CallError) {
        if self.end_call(key).is_some() {
            self.events.push_back(Event::Failed { call: CallId(key), error });
        }
    }

    fn end_call(&mut self, key: Key) -> Option<Call> {
        let call = self.calls.remove(key)?;
        self.by_token.remove(&(call.peer, call.token));
        if let Some(deadline) = call.deadline {
            self.timers.remove(&(deadline, Timed::Call(key)));
        }
        self.peers.unpin(call.peer);
        Some(call)
    }

    /// Gives a request up. [`Event::Failed`] says so; what arrives for it later is rejected.
    pub fn cancel(&mut self, now: Instant, call: CallId) {
        if let Some(flight) = self.calls.get(call.0).and_then(|call| call.flight) {
            self.land(now, flight);
        }
        self.call_failed(call.0, CallError::Cancelled);
    }

    /// The response to a request has arrived.
    pub(super) fn call_response<'d>(
        &mut self,
        _now: Instant,
        key: Key,
        code: Code,
        options: Options<'d>,
        payload: &'d [u8],
    ) -> Option<Event<'d, P>> {
        self.end_call(key)?;
        let message = Received { code, options, payload: Cow::Borrowed(payload) };
        Some(Event::Response { call: CallId(key), message })
    }
}
