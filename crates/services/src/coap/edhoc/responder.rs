//! The Responder: a server. RFC 9528, sections 5.2 to 5.5.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lakers::{ConnId, CredentialTransfer, EDHOCMethod, EdhocResponder, EdhocResponderWaitM3};
use thinair_coap::oscore::{Established, KeyExchange};
use thinair_coap::{Code, Endpoint, Received, Response, code};
use thinair_wire::time::Instant;

use super::crypto::EdhocCrypto;
use super::initiator::TRUE;
use super::{ExchangeError, Identity, context, guarded, message, reason, short_ids};

/// Largest number of exchanges under way; a further one ends the oldest.
pub const MAX_EXCHANGES: usize = 32;

/// Time limit of an exchange: MAX_TRANSMIT_WAIT of its third message. RFC 7252, section 4.8.2.
const LIFETIME: Duration = Duration::from_secs(93);

/// Largest number of contexts of a peer; a further one replaces the oldest.
pub const MAX_CONTEXTS: usize = 16;

/// A Responder. Its copies have one state: an endpoint has one for messages 3 in protected requests, its application another one.
#[derive(Clone)]
pub struct Responder(Arc<Mutex<State>>);

struct State {
    identity: Identity,
    /// Owner of the contexts of the first peer.
    first_owner: u32,
    /// Exchanges under way, by the connection identifier of this end.
    exchanges: BTreeMap<Vec<u8>, Exchange>,
    /// Recipient IDs of the contexts of each peer, the oldest first.
    contexts: BTreeMap<u32, VecDeque<Vec<u8>>>,
}

struct Exchange {
    state: EdhocResponderWaitM3<EdhocCrypto>,
    initiator: Vec<u8>,
    start: Instant,
}

impl Responder {
    /// Creates a Responder. The contexts of the peers in `identity` have owners from `first_owner` on, in the order of the peers.
    pub fn new(identity: Identity, first_owner: u32) -> Self {
        let state = State { identity, first_owner, exchanges: BTreeMap::new(), contexts: BTreeMap::new() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns the number of exchanges under way.
    pub fn exchanges(&self) -> usize {
        self.state().exchanges.len()
    }

    /// Returns the connection identifiers of the exchanges under way.
    #[cfg(test)]
    pub(super) fn ids(&self) -> Vec<Vec<u8>> {
        self.state().exchanges.keys().cloned().collect()
    }

    /// Answers a request to [`PATH`](super::PATH): with message 2; or with message 4, and then `endpoint` has the new context.
    pub fn handle<P: Copy + Eq + Hash>(
        &self,
        now: Instant,
        endpoint: &mut Endpoint<P>,
        request: &Received<'_>,
    ) -> Response<'static> {
        if request.code != Code::POST {
            return Response::new(code::METHOD_NOT_ALLOWED);
        }
        let answer = match request.payload.split_first() {
            Some((&TRUE, message_1)) => {
                let is_free = |id: &[u8]| endpoint.context_with(id).is_none();
                self.state().begin(now, message_1, is_free)
            }
            _ => message::identified(&request.payload).ok_or(ExchangeError::Malformed(3)).and_then(
                |(id, message_3)| {
                    let (established, message_4) = self.state().complete(now, id, message_3)?;
                    endpoint.establish(established)?;
                    Ok(message_4)
                },
            ),
        };
        match answer {
            Ok(message) => Response::new(Code::CHANGED).payload(message),
            Err(why) => refusal(&why),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it has the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder").field("exchanges", &self.exchanges()).finish_non_exhaustive()
    }
}

impl KeyExchange for Responder {
    fn complete(
        &mut self,
        now: Instant,
        id: &[u8],
        message_3: &[u8],
    ) -> Result<Established, Response<'static>> {
        let completed = self.state().complete(now, id, message_3);
        completed.map(|(established, _)| established).map_err(|why| refusal(&why))
    }
}

/// Returns the response with an error message. RFC 9528, appendix A.2.3.
fn refusal(why: &ExchangeError) -> Response<'static> {
    tracing::debug!(%why, "a key exchange has failed");
    Response::new(code::BAD_REQUEST).payload(message::error(why))
}

impl State {
    /// Processes message 1, and returns message 2.
    fn begin(
        &mut self,
        now: Instant,
        message_1: &[u8],
        is_free: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<u8>, ExchangeError> {
        let message_1 = message::message_1(message_1)?;
        let Identity { key, credential, .. } = &self.identity;
        let responder =
            EdhocResponder::new(EdhocCrypto, EDHOCMethod::StatStat, key.octets(), credential.inner());
        let why = |error| reason(&error, 1, "its credential");
        let (state, initiator, data) = guarded(1, || responder.process_message_1(&message_1).map_err(why))?;
        if data.is_some_and(|data| data.is_critical) {
            return Err(ExchangeError::Malformed(1));
        }
        self.exchanges.retain(|_, exchange| now.since(exchange.start) < LIFETIME);
        if self.exchanges.len() >= MAX_EXCHANGES {
            let oldest = self.exchanges.iter().min_by_key(|(_, exchange)| exchange.start);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.exchanges.remove(&oldest);
            }
        }
        let is_free =
            |id: &Vec<u8>| *id != initiator.as_slice() && !self.exchanges.contains_key(id) && is_free(id);
        let id = free_id(is_free);
        let id_2 = ConnId::from_slice(&id);
        let (state, message_2) =
            state.prepare_message_2(CredentialTransfer::ByReference, id_2, &None).map_err(why)?;
        let initiator = initiator.as_slice().to_vec();
        self.exchanges.insert(id, Exchange { state, initiator, start: now });
        Ok(message_2.as_slice().to_vec())
    }

    /// Processes message 3, and returns message 4. An exchange ends at its first message 3, whatever that is: section 5.4.3.
    fn complete(
        &mut self,
        now: Instant,
        id: &[u8],
        message_3: &[u8],
    ) -> Result<(Established, Vec<u8>), ExchangeError> {
        let message_3 = message::message_3(message_3)?;
        let exchange = self.exchanges.remove(id);
        let exchange = exchange.filter(|exchange| now.since(exchange.start) < LIFETIME);
        let Exchange { state, initiator, .. } = exchange.ok_or(ExchangeError::Unknown)?;
        let unknown = |error| reason(&error, 3, "its credential");
        let (state, credential, data) = guarded(3, || state.parse_message_3(&message_3).map_err(unknown))?;
        if data.is_some_and(|data| data.is_critical) {
            return Err(ExchangeError::Malformed(3));
        }
        let peer = self.identity.peer_of(&credential)?;
        let number = self.identity.peers.iter().take_while(|other| !std::ptr::eq(*other, peer)).count();
        let why = |error| reason(&error, 3, &peer.name);
        let (state, _) = guarded(3, || state.verify_message_3(peer.credential.inner()).map_err(why))?;
        let (mut done, message_4) = state.prepare_message_4(&None).map_err(why)?;
        let context = context(&mut |label, len| done.edhoc_exporter(label, &[], len), id, &initiator)?;
        let owner = self.first_owner + number as u32;
        let contexts = self.contexts.entry(owner).or_default();
        let replaced = (contexts.len() >= MAX_CONTEXTS).then(|| contexts.pop_front()).flatten();
        contexts.push_back(id.to_vec());
        tracing::debug!(peer = peer.name, "a key exchange has succeeded");
        let established = Established { context: context.with_owner(owner), replaced };
        Ok((established, message_4.as_slice().to_vec()))
    }
}

/// Returns a connection identifier that is free: of one octet, which takes one in a message, while there is one.
fn free_id(is_free: impl Fn(&Vec<u8>) -> bool) -> Vec<u8> {
    let [first] = super::random();
    let short = short_ids(first).map(|id| vec![id]).find(&is_free);
    short.unwrap_or_else(|| {
        // Few of 2^24 are taken.
        loop {
            let id = super::random::<3>().to_vec();
            if is_free(&id) {
                return id;
            }
        }
    })
}
