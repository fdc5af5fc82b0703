//! A server: records of its sessions, and the calls of its owner. Handshakes are in `server/handshakes.rs`.

mod handshakes;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::hash::Hash;

use thinair_wire::time::Instant;
use zeroize::Zeroizing;

use crate::alert::{Alert, AlertDescription};
use crate::client::random32;
use crate::config::ServerConfig;
use crate::cookie::Cookies;
use crate::flight::Due;
use crate::handshake::{Failure, Handshake};
use crate::message::{FINISHED, Fragment};
use crate::psk::Psk;
use crate::record::{ALERT, APPLICATION_DATA, HANDSHAKE, Record, SendError, TLS12_CID, VERSION, write_plain};
use crate::resumption::Resumables;
use crate::sessions::{CID, SessionId, Sessions};
use crate::short::Short;

/// Largest number of datagrams that wait to be sent without a session, and of failures that wait to be reported.
const MOST_WAITING: usize = 64;

/// An event of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent<P> {
    /// There is a session.
    Connected {
        /// The session.
        session: SessionId,
        /// Address of its client.
        peer: P,
    },
    /// The client of a session has another address. RFC 9146, section 6.
    Moved {
        /// The session.
        session: SessionId,
        /// The new address. **That it receives anything is not proved yet.**
        peer: P,
    },
    /// A session is over: its client has ended it, or a new one has displaced it.
    Closed {
        /// The session.
        session: SessionId,
    },
    /// A handshake has failed behind its cookie. If many fail, not each is reported.
    Failed {
        /// Address of the client.
        peer: P,
        /// Reason.
        failure: Failure,
    },
}

/// A server for clients at addresses of type `P`, by which cookies are bound.
///
/// **Call order:** after every call, [`poll_datagram`](Self::poll_datagram) until it returns `None`, [`poll_event`](Self::poll_event)
/// likewise, and [`handle_timeout`](Self::handle_timeout) at the time of [`poll_timeout`](Self::poll_timeout).
pub struct Server<P> {
    /// By identity.
    keys: Vec<Psk>,
    config: ServerConfig,
    random: Box<dyn FnMut() -> u64 + Send>,
    cookies: Cookies,
    sessions: Sessions<P>,
    resumables: Resumables,
    /// Datagrams without a session, and alerts.
    outgoing: VecDeque<(P, Short)>,
    events: VecDeque<ServerEvent<P>>,
}

impl<P: Copy + Ord + Hash> Server<P> {
    /// Creates a server with the keys of its clients. `random` must be impossible to guess.
    pub fn new(
        mut keys: Vec<Psk>,
        config: ServerConfig,
        mut random: impl FnMut() -> u64 + Send + 'static,
    ) -> Self {
        keys.sort_by(|one, other| one.identity().cmp(other.identity()));
        let cookies = Cookies::new(Zeroizing::new(random32(&mut random)));
        let sessions = Sessions::new(random() as u16);
        let resumables = Resumables::new(config.max_resumable);
        let (outgoing, events) = (VecDeque::new(), VecDeque::new());
        Self { keys, config, random: Box::new(random), cookies, sessions, resumables, outgoing, events }
    }

    /// Processes records of a datagram, until one has application data: it is decrypted in place, and returned with its session. **Call it
    /// until nothing is left of the datagram.**
    pub fn handle_datagram<'d>(
        &mut self,
        now: Instant,
        peer: P,
        datagram: &mut &'d mut [u8],
    ) -> Option<(SessionId, &'d [u8])> {
        let cid_len = if self.config.has_cids { CID } else { 0 };
        while let Some(record) = Record::take(datagram, cid_len) {
            if let Some(received) = self.handle_record(now, peer, record) {
                return Some(received);
            }
        }
        None
    }

    /// Writes a record with application data. Returns the address of the client, and the length.
    ///
    /// # Errors
    /// There is no such session, or the record is too long.
    pub fn send(
        &mut self,
        session: SessionId,
        content: &[u8],
        out: &mut [u8],
    ) -> Result<(P, usize), SendError> {
        let slot = self.sessions.find(session).ok_or(SendError::NotConnected)?;
        let session = self.sessions.get_mut(slot).ok_or(SendError::NotConnected)?;
        let association = session.association.as_mut().ok_or(SendError::NotConnected)?;
        Ok((session.peer, association.seal(APPLICATION_DATA, content, out)?))
    }

    /// Ends a session; its client is sent an alert.
    pub fn close(&mut self, session: SessionId) {
        if let Some(slot) = self.sessions.find(session) {
            self.end(slot);
        }
    }

    /// Returns the sessions.
    pub fn sessions(&self) -> Vec<SessionId> {
        self.sessions.all()
    }

    /// Returns the identity of the client of a session.
    pub fn identity(&self, session: SessionId) -> Option<&[u8]> {
        let session = self.sessions.get(self.sessions.find(session)?)?;
        Some(self.keys.get(session.identity as usize)?.identity())
    }

    /// Returns the address of the client of a session.
    pub fn peer(&self, session: SessionId) -> Option<P> {
        Some(self.sessions.get(self.sessions.find(session)?)?.peer)
    }

    /// Writes the next datagram. Returns its destination and length; `None` if there is none to send.
    pub fn poll_datagram(&mut self, _now: Instant, out: &mut [u8]) -> Option<(P, usize)> {
        while let Some((peer, reply)) = self.outgoing.pop_front() {
            if let Some(len) = reply.write(out) {
                return Some((peer, len));
            }
        }
        let room = out.len().min(self.config.max_datagram);
        let out = out.get_mut(..room)?;
        for place in 0..self.sessions.handshakes().len() {
            let slot = *self.sessions.handshakes().get(place)?;
            let session = self.sessions.get_mut(slot)?;
            let handshake = session.handshake.as_mut()?;
            let Handshake { flight, sequence, .. } = &mut **handshake;
            if let Some(len) = flight.poll(sequence, session.association.as_mut(), out) {
                return Some((session.peer, len));
            }
        }
        None
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<ServerEvent<P>> {
        self.events.pop_front()
    }

    /// Returns the time of the next [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let flights = self
            .sessions
            .handshakes()
            .iter()
            .filter_map(|slot| self.sessions.get(*slot)?.handshake.as_ref()?.flight.timeout());
        flights.min()
    }

    /// Retransmits, or ends, handshakes that are not answered.
    pub fn handle_timeout(&mut self, now: Instant) {
        for slot in self.sessions.handshakes().to_vec() {
            let Some(session) = self.sessions.get_mut(slot) else { continue };
            let Some(handshake) = &mut session.handshake else { continue };
            match handshake.flight.handle_timeout(now, &self.config.retransmission) {
                Due::Nothing | Due::Again => {}
                Due::Over { .. } if session.is_established => self.sessions.confirm(slot),
                Due::Over { transmissions } => {
                    let (peer, is_reported) = (session.peer, handshake.is_refused);
                    let failure = match handshake.secret {
                        Some(_) => Failure::NotConfirmed { transmissions },
                        None => Failure::NoAnswer { transmissions },
                    };
                    self.sessions.remove(slot);
                    if !is_reported {
                        self.failed(peer, failure);
                    }
                }
            }
        }
    }

    fn failed(&mut self, peer: P, failure: Failure) {
        if self.events.len() < MOST_WAITING {
            self.events.push_back(ServerEvent::Failed { peer, failure });
        }
    }

    fn reply(&mut self, peer: P, reply: Option<Short>) {
        if let Some(reply) = reply.filter(|_| self.outgoing.len() < MOST_WAITING) {
            self.outgoing.push_back((peer, reply));
        }
    }

    fn refuse(&mut self, peer: P, sequence: u64, description: AlertDescription) {
        let alert = Alert::fatal(description).octets();
        self.reply(peer, Short::new(|out| write_plain(out, ALERT, VERSION, sequence, &alert)));
    }

    /// Ends a session, with an alert.
    fn end(&mut self, slot: u16) {
        let id = self.sessions.id(slot);
        let Some(mut session) = self.sessions.remove(slot) else { return };
        let alert = session
            .association
            .as_mut()
            .and_then(|association| Short::new(|out| association.seal_alert(Alert::CLOSE_NOTIFY, out)));
        self.reply(session.peer, alert);
        self.events.push_back(ServerEvent::Closed { session: id });
    }

    fn handle_record<'d>(
        &mut self,
        now: Instant,
        peer: P,
        record: Record<'d>,
    ) -> Option<(SessionId, &'d [u8])> {
        match (record.epoch, record.content_type) {
            (0, HANDSHAKE) => {
                self.handle_messages(now, peer, record.sequence, record.fragment);
                None
            }
            (0, ALERT) => {
                let alert = Alert::read(record.fragment).filter(|alert| alert.is_fatal)?;
                let slot = self.sessions.pending_at(&peer)?;
                self.sessions.remove(slot);
                self.failed(peer, Failure::Alert(alert.description));
                None
            }
            (0, _) => None,
            (_, TLS12_CID) => {
                let slot = self.sessions.slot(&record.cid).filter(|slot| self.sessions.get(*slot).is_some());
                match slot {
                    Some(slot) => self.handle_protected(now, peer, slot, record),
                    None => {
                        self.unknown(peer);
                        None
                    }
                }
            }
            _ => {
                let established = self.sessions.established_at(&peer);
                let pending = self.sessions.pending_at(&peer);
                if let Some(slot) = pending
                    && let Some(mut copy) = Short::copied(record.fragment)
                {
                    let copied = Record { fragment: copy.octets_mut(), ..record };
                    let is_only = established.is_none();
                    if self.handle_finished(now, peer, slot, copied, is_only) || is_only {
                        return None;
                    }
                }
                match established {
                    Some(slot) => self.handle_protected(now, peer, slot, record),
                    None => {
                        if pending.is_none() {
                            self.unknown(peer);
                        }
                        None
                    }
                }
            }
        }
    }

    /// Answers a record of no session: its sender may have one that this server has lost. The alert is shorter than any protected
    /// record, and not authentic.
    fn unknown(&mut self, peer: P) {
        self.refuse(peer, 0, AlertDescription::UNEXPECTED_MESSAGE);
    }

    /// Processes a record of a handshake or session that was found by connection ID or address.
    fn handle_protected<'d>(
        &mut self,
        now: Instant,
        peer: P,
        slot: u16,
        record: Record<'d>,
    ) -> Option<(SessionId, &'d [u8])> {
        let session = self.sessions.get_mut(slot)?;
        if !session.is_established {
            if session.peer == peer {
                self.handle_finished(now, peer, slot, record, true);
            }
            return None;
        }
        let is_new_peer = session.peer != peer;
        let Some(opened) = session.association.as_mut()?.open(record) else {
            if is_new_peer {
                // Most probably of an earlier session with this connection ID.
                self.unknown(peer);
            }
            return None;
        };
        session.used = now;
        let id = self.sessions.id(slot);
        if is_new_peer && opened.is_newest {
            if let Some(session) = self.sessions.get_mut(slot) {
                session.peer = peer;
            }
            self.events.push_back(ServerEvent::Moved { session: id, peer });
        }
        match opened.content_type {
            APPLICATION_DATA => {
                self.sessions.confirm(slot);
                Some((id, opened.content))
            }
            ALERT => {
                let alert = Alert::read(opened.content).filter(|alert| alert.ends_session())?;
                if let Some(session_id) = self.sessions.get(slot)?.session_id.filter(|_| alert.is_fatal) {
                    self.resumables.remove(&session_id);
                }
                self.end(slot);
                None
            }
            HANDSHAKE => {
                // The client has not received the last flight.
                let mut content = &*opened.content;
                let is_finished =
                    Fragment::take(&mut content).is_some_and(|fragment| fragment.kind == FINISHED);
                let handshake = self.sessions.get_mut(slot)?.handshake.as_mut()?;
                if is_finished {
                    handshake.flight.repeat(now, &self.config.retransmission);
                }
                None
            }
            _ => None,
        }
    }
}

impl<P> fmt::Debug for Server<P> {
    /// Without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("keys", &self.keys)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
impl<P: Copy + Ord + Hash> Server<P> {
    /// Returns the number of handshakes.
    pub(crate) fn handshakes(&self) -> usize {
        self.sessions.handshakes().len()
    }

    /// Octets of a session in its slot.
    pub(crate) const fn session_octets() -> usize {
        Sessions::<P>::slot_octets()
    }

    /// Octets of a session that can be resumed.
    pub(crate) const fn resumable_octets() -> usize {
        Resumables::session_octets()
    }
}
