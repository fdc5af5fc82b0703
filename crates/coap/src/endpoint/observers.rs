//! Peers that observe resources: their entries and notifications. RFC 7641, section 4.

use alloc::vec::Vec;
use core::hash::Hash;

use thinair_wire::header::coap::{Code, Type};
use thinair_wire::time::Instant;

use super::flight::{FlightOutcome, MessageContent, Owner};
use super::protection::{ContextId, Protection};
use super::server::PendingRequest;
use super::{Endpoint, QueuedSend};
use crate::block::BlockSize;
use crate::code::{self, MessageKind};
use crate::event::{Event, Gone, Observe, ObserverId, RequestId, RespondError};
use crate::number;
use crate::option::OptionList;
use crate::request::Response;
use crate::table::SlotKey;
use crate::token::Token;

/// One entry of the list of observers.
pub(crate) struct Observer {
    peer: SlotKey,
    token: Token,
    method: Code,
    transfer: (Option<ContextId>, u64),
    protection: Option<Protection>,
    /// Block size that the client has requested.
    size: Option<BlockSize>,
    stream: bool,
    /// Number of the latest Observe; its option has the low 24 bits.
    sequence: u32,
    /// Time of the latest proof that the client still wants notifications.
    confirmed: Instant,
    /// Confirmable notification under way.
    flight: Option<SlotKey>,
    /// State to send after that notification, or when the client may be notified again: only the latest one is kept.
    pub(super) waiting: Option<WaitingState>,
    /// Content-Format of the first 2.05, or its absence; `None` as long as there was none: 2.03 has no Content-Format.
    format: Option<Option<u16>>,
    /// Message ID of the latest Non-confirmable notification.
    message_id: Option<u16>,
}

/// A state that waits.
pub(super) struct WaitingState {
    pub(super) code: Code,
    pub(super) options: OptionList,
    pub(super) payload: Vec<u8>,
    /// Time since which a state waits; a newer state that replaces it keeps the time.
    since: Instant,
}

impl Observer {
    /// Returns the time since which a state waits, unless a Confirmable notification is under way.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        self.waiting.as_ref().filter(|_| self.flight.is_none()).map(|state| state.since)
    }
}

/// A notification as sent.
struct Notification {
    code: Code,
    options: OptionList,
    payload: Vec<u8>,
    /// True if it ends the observation.
    last: bool,
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    /// Adds the client of a request to the list of observers. Call it before [`respond`](Self::respond), whose response
    /// is the first notification. `None` if the request does not contain Observe 0, or the list is full, or has enough
    /// entries of the client ([`Limits::max_observers_of_peer`](crate::Limits::max_observers_of_peer)): then the response has no Observe option. A client that is on the list already keeps its entry.
    pub fn accept(&mut self, now: Instant, id: RequestId) -> Option<ObserverId> {
        let pending = *self.requests.get(id.0)?;
        if pending.observe != Some(Observe::Register) {
            return None;
        }
        let entry = (pending.peer, pending.token);
        let key = match self.by_observer.get(&entry) {
            Some(&key) => {
                let observer = self.observers.get_mut(key)?;
                // A request that is not protected does not replace an observation that is: RFC 8613, section 4.1.3.5.
                if observer.transfer.0 != pending.transfer.0 {
                    return None;
                }
                (observer.confirmed, observer.transfer) = (now, pending.transfer);
                observer.protection = pending.protection;
                observer.size = pending.block2.map(|block| block.size);
                key
            }
            None => {
                let of_peer =
                    self.observers.iter().filter(|(_, observer)| observer.peer == pending.peer).count();
                if of_peer >= self.config.limits.max_observers_of_peer {
                    return None;
                }
                let observer = Observer {
                    peer: pending.peer,
                    token: pending.token,
                    method: pending.method,
                    transfer: pending.transfer,
                    protection: pending.protection,
                    size: pending.block2.map(|block| block.size),
                    stream: pending.stream,
                    sequence: self.ended_sequence,
                    confirmed: now,
                    flight: None,
                    waiting: None,
                    format: None,
                    message_id: None,
                };
                let key = self.observers.insert(observer).ok()?;
                self.by_observer.insert(entry, key);
                self.peers.pin(pending.peer);
                key
            }
        };
        self.requests.get_mut(id.0)?.observer = Some(key);
        Some(ObserverId(key))
    }

    /// Returns the value of the next Observe option. RFC 7641, section 4.4.
    pub(super) fn next_sequence(&mut self, key: SlotKey) -> Option<u32> {
        let observer = self.observers.get_mut(key)?;
        observer.sequence = observer.sequence.wrapping_add(1);
        Some(observer.sequence & 0xFF_FFFF)
    }

    /// Stores the Content-Format of the response to a registration.
    pub(super) fn observed_as(&mut self, key: SlotKey, code: Code, options: &OptionList) {
        if let Some(observer) = self.observers.get_mut(key).filter(|_| code == Code::CONTENT) {
            observer.format = Some(options.as_options().content_format());
        }
    }

    /// Sends the state of its resource to an observer. If it has not acknowledged the previous one, this state is sent
    /// after the acknowledgement, or instead of the next retransmission; if it was notified less than a round trip ago (3
    /// s if that is not known; RFC 7641, section 4.5.1), the state is sent when that time is over. Intermediate states
    /// are never sent. A response that is not a success ends the observation, and so does another Content-Format than
    /// that of the first 2.05, which is replaced by 4.06 (section 4.2). At least every
    /// [`Timing::confirm_notifications`](crate::Timing::confirm_notifications) the notification is Confirmable,
    /// regardless of `confirmable`.
    pub fn notify(
        &mut self,
        now: Instant,
        id: ObserverId,
        response: &Response<'_>,
        confirmable: bool,
    ) -> Result<(), RespondError> {
        let observer = self.observers.get_mut(id.0).ok_or(RespondError::Gone)?;
        if code::kind(response.code) != MessageKind::Response {
            return Err(RespondError::NotAResponse(response.code));
        }
        if response.options.is_incomplete() {
            return Err(RespondError::Option);
        }
        let not_acceptable = Response::new(code::NOT_ACCEPTABLE);
        let format = response.options.as_options().content_format();
        let same = response.code != Code::CONTENT || observer.format.is_none_or(|first| first == format);
        let response = if same { response } else { &not_acceptable };
        let (peer, under_way) = (observer.peer, observer.flight.is_some());
        let due = now.since(observer.confirmed) >= self.config.timing.confirm_notifications;
        let goes = observer.stream || response.code.class() != 2 || confirmable || due;
        if under_way || !goes && !self.is_to_be_confirmed(peer) && self.wait_for_pace(now, peer) {
            let observer = self.observers.get_mut(id.0).ok_or(RespondError::Gone)?;
            let since = observer.waiting.as_ref().map_or(now, |state| state.since);
            let (options, payload) = (response.options.clone(), response.payload.to_vec());
            observer.waiting = Some(WaitingState { code: response.code, options, payload, since });
            return Ok(());
        }
        let confirmable = confirmable || due || self.is_to_be_confirmed(peer);
        self.send_notification(now, id.0, response, confirmable)
    }

    /// Removes an observer from the list without a message: its client registers again when its representation is older
    /// than Max-Age. RFC 7641, section 3.3.1. No event follows.
    pub fn forget_observer(&mut self, id: ObserverId) {
        self.take_observer(id.0);
    }

    /// Removes an observer; false if it is gone. Later ones continue its sequence, since its client may register again
    /// with the same Token. RFC 7641, section 4.4.
    fn take_observer(&mut self, key: SlotKey) -> bool {
        let Some(observer) = self.observers.remove(key) else { return false };
        self.by_observer.remove(&(observer.peer, observer.token));
        self.peers.unpin(observer.peer);
        self.ended_sequence = self.ended_sequence.max(observer.sequence);
        true
    }

    /// Returns the number of observers.
    pub const fn observers(&self) -> usize {
        self.observers.len()
    }

    fn notification(
        &mut self,
        now: Instant,
        key: SlotKey,
        response: &Response<'_>,
    ) -> Result<Notification, RespondError> {
        let mut options = response.options.clone();
        if response.code.class() == 2 {
            let sequence = self.next_sequence(key).ok_or(RespondError::Gone)?;
            options.push_uint(number::OBSERVE, sequence);
        }
        let observer = self.observers.get_mut(key).ok_or(RespondError::Gone)?;
        if response.code == Code::CONTENT {
            observer.format.get_or_insert(response.options.as_options().content_format());
        }
        // As for a response to a request.
        let pending = PendingRequest {
            peer: observer.peer,
            token: observer.token,
            message_id: 0,
            confirmable: false,
            stream: observer.stream,
            separate: true,
            method: observer.method,
            memory: None,
            no_response: 0,
            transfer: observer.transfer,
            octets: 0,
            block1: None,
            block2: observer.size.map(|size| crate::Block { num: 0, more: false, size }),
            observe: None,
            observer: None,
            protection: observer.protection,
            deadline: now,
        };
        let part = self.part(&pending, options, response.payload.len())?.ok_or(RespondError::Option)?;
        let payload = response.payload.get(part.start..part.end).unwrap_or_default().to_vec();
        if part.more {
            let (octets, options) = (response.payload.to_vec(), response.options.clone());
            self.hold_body(now, pending.peer, pending.transfer, response.code, options, octets);
        }
        let last = response.code.class() != 2;
        let content = MessageContent {
            code: response.code,
            token: pending.token,
            options: part.options.octets(),
            payload: &payload,
        };
        if let Some(protected) = self.protect_response(pending.protection, &content)? {
            let (code, (options, payload)) = (protected.as_content().code, protected.into_parts());
            return Ok(Notification { code, options, payload, last });
        }
        Ok(Notification { code: response.code, options: part.options, payload, last })
    }

    fn send_notification(
        &mut self,
        now: Instant,
        key: SlotKey,
        response: &Response<'_>,
        confirmable: bool,
    ) -> Result<(), RespondError> {
        let Notification { code, options, payload, last } = self.notification(now, key, response)?;
        let observer = self.observers.get(key).ok_or(RespondError::Gone)?;
        let (peer, token, stream) = (observer.peer, observer.token, observer.stream);
        let content = MessageContent { code, token, options: options.octets(), payload: &payload };
        if let Some(observer) = self.observers.get_mut(key) {
            // A waiting state is older.
            observer.waiting = None;
        }
        if stream {
            if !self.write_frame(now, peer, &content) {
                return Err(RespondError::Gone);
            }
        } else if confirmable {
            let owner = Owner::Observer(key);
            let flight = self.send(now, peer, owner, true, &content).ok_or(RespondError::TooManyFlights)?;
            if let Some(observer) = self.observers.get_mut(key) {
                observer.flight = Some(flight);
            }
        } else {
            let message_id = self.peers.get_mut(peer).ok_or(RespondError::Gone)?.next_message_id();
            let write = |out: &mut [u8]| content.write(Type::NonConfirmable, message_id, out);
            let span = self.octets.push(content.most(), write);
            self.reply(QueuedSend::Octets(peer, span.ok_or(RespondError::Option)?));
            if let Some(observer) = self.observers.get_mut(key) {
                observer.message_id = Some(message_id);
            }
            self.notified(now, peer, content.most());
        }
        if last {
            self.remove_observer(key, Gone::Error);
        }
        Ok(())
    }

    /// Processes the outcome of a Confirmable notification.
    pub(super) fn notification_done(
        &mut self,
        now: Instant,
        key: SlotKey,
        outcome: FlightOutcome,
        transmissions: u8,
    ) {
        let Some(observer) = self.observers.get_mut(key) else { return };
        observer.flight = None;
        match outcome {
            FlightOutcome::Reset => self.remove_observer(key, Gone::Reset),
            FlightOutcome::Timeout => self.remove_observer(key, Gone::Timeout { transmissions }),
            FlightOutcome::Acknowledged => {
                observer.confirmed = now;
                if let Some(WaitingState { code, options, payload, .. }) = observer.waiting.take() {
                    let response = Response { code, options, payload: payload.into() };
                    let _ = self.send_notification(now, key, &response, true);
                }
            }
        }
    }

    /// Returns the waiting state as octets, to replace the notification that is about to be retransmitted. An error ends
    /// the observation. RFC 7641, sections 4.2 and 4.5.2.
    pub(super) fn newer_notification(&mut self, now: Instant, key: SlotKey) -> Option<Vec<u8>> {
        let WaitingState { code, options, payload, .. } = self.observers.get_mut(key)?.waiting.take()?;
        let response = Response { code, options, payload: payload.into() };
        let Notification { code, options, payload, last } = self.notification(now, key, &response).ok()?;
        let token = self.observers.get(key)?.token;
        let content = MessageContent { code, token, options: options.octets(), payload: &payload };
        let mut octets = alloc::vec![0; content.most()];
        let len = content.write(Type::Confirmable, 0, &mut octets)?;
        octets.truncate(len);
        if last {
            self.remove_observer(key, Gone::Error);
        }
        Some(octets)
    }

    /// Processes a Reset of a Non-confirmable notification. False if there was none with this Message ID.
    pub(super) fn notification_reset(&mut self, peer: SlotKey, message_id: u16) -> bool {
        let of_peer = (peer, Token::EMPTY)..;
        let key = self
            .by_observer
            .range(of_peer)
            .take_while(|((other, _), _)| *other == peer)
            .map(|(_, key)| *key)
            .find(|&key| {
                self.observers.get(key).is_some_and(|observer| observer.message_id == Some(message_id))
            });
        if let Some(key) = key {
            self.remove_observer(key, Gone::Reset);
        }
        key.is_some()
    }

    /// Removes the observer that has sent a request, unless its observation is protected otherwise.
    pub(super) fn remove_observer_of(&mut self, request: &PendingRequest, reason: Gone) {
        if let Some(&key) = self.by_observer.get(&(request.peer, request.token))
            && self.observers.get(key).is_some_and(|observer| observer.transfer.0 == request.transfer.0)
        {
            self.remove_observer(key, reason);
        }
    }

    pub(super) fn remove_observer(&mut self, key: SlotKey, reason: Gone) {
        if self.take_observer(key) {
            self.events.push_back(Event::ObserverGone { observer: ObserverId(key), reason });
        }
    }

    /// Removes every observer of a peer that is gone.
    pub(super) fn remove_observers(&mut self, peer: SlotKey, reason: Gone) {
        let keys: Vec<SlotKey> =
            self.observers.iter().filter(|(_, observer)| observer.peer == peer).map(|(key, _)| key).collect();
        keys.into_iter().for_each(|key| self.remove_observer(key, reason));
    }
}
