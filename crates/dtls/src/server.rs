//! A server: cookies before any state, handshakes, sessions.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::Hash;
use core::time::Duration;

use thinair_wire::time::Instant;
use zeroize::Zeroizing;

use crate::alert::{Alert, AlertDescription};
use crate::association::Association;
use crate::client::random32;
use crate::config::ServerConfig;
use crate::cookie::Cookies;
use crate::flight::{Due, Flight};
use crate::handshake::{Failure, Handshake};
use crate::incoming::body;
use crate::message::{
    CLIENT_HELLO, CLIENT_KEY_EXCHANGE, ClientHello, FINISHED, Fragment, HELLO_VERIFY_REQUEST, MESSAGE_HEADER,
    SERVER_HELLO, SERVER_HELLO_DONE, ServerHello, header, read_client_key_exchange,
};
use crate::prf::MasterSecret;
use crate::psk::Psk;
use crate::record::{
    ALERT, APPLICATION_DATA, HANDSHAKE, HEADER, Record, SendError, TLS12_CID, VERSION, write_plain,
};
use crate::sessions::{CID, SessionId, Sessions};
use crate::short::Short;

/// Version in a HelloVerifyRequest, whatever is negotiated. RFC 6347, section 4.2.1.
const DTLS_10: u16 = 0xfeff;

/// Time for which the last flight of a handshake can be sent again, if the client sends no data.
const LINGER: Duration = Duration::from_secs(60);

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
        let (outgoing, events) = (VecDeque::new(), VecDeque::new());
        Self { keys, config, random: Box::new(random), cookies, sessions, outgoing, events }
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
                if Alert::read(opened.content).is_some_and(Alert::ends_session) {
                    self.end(slot);
                }
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

    /// Processes a record that may have the Finished message of a handshake. Returns true if it is authentic. `is_only`: it can be
    /// of no other session.
    fn handle_finished(
        &mut self,
        now: Instant,
        peer: P,
        slot: u16,
        record: Record<'_>,
        is_only: bool,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(slot) else { return false };
        let (Some(association), Some(handshake)) = (&mut session.association, &mut session.handshake) else {
            return false;
        };
        let Some(opened) = association.open(record) else {
            if is_only && !handshake.is_refused {
                handshake.is_refused = true;
                let sequence = handshake.sequence;
                handshake.sequence += 1;
                // A forged record is not the end of the handshake: the right one may follow.
                self.refuse(peer, sequence, AlertDescription::BAD_RECORD_MAC);
                self.failed(peer, Failure::Refused(AlertDescription::BAD_RECORD_MAC));
            }
            return false;
        };
        let mut content = &*opened.content;
        while opened.content_type == HANDSHAKE
            && let Some(fragment) = Fragment::take(&mut content)
        {
            if fragment.kind == FINISHED && handshake.incoming.add(&fragment) {
                if handshake.is_finished_by(true) {
                    self.establish(now, slot);
                } else {
                    let sequence = handshake.sequence;
                    self.sessions.remove(slot);
                    self.refuse(peer, sequence, AlertDescription::DECRYPT_ERROR);
                    self.failed(peer, Failure::Refused(AlertDescription::DECRYPT_ERROR));
                }
                break;
            }
        }
        true
    }

    /// Answers Finished: the session is established.
    fn establish(&mut self, now: Instant, slot: u16) {
        if self.sessions.established() >= self.config.max_sessions.clamp(1, MOST_SESSIONS)
            && let Some(oldest) = self.sessions.least_recently_used()
        {
            self.end(oldest);
        }
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let Some(handshake) = &mut session.handshake else { return };
        handshake.accept_message();
        handshake.flight = Flight::default();
        handshake.flight.change_cipher_spec();
        let hash = handshake.hash();
        let Some(secret) = handshake.secret.take() else { return };
        let finished = secret.verify_data(false, &hash);
        handshake.push(FINISHED, |out| out.extend_from_slice(&finished));
        handshake.flight.linger(now, LINGER);
        session.used = now;
        let peer = session.peer;
        if let Some(previous) = self.sessions.establish(slot) {
            let id = self.sessions.id(previous);
            self.sessions.remove(previous);
            self.events.push_back(ServerEvent::Closed { session: id });
        }
        self.events.push_back(ServerEvent::Connected { session: self.sessions.id(slot), peer });
    }

    /// Processes handshake messages without protection.
    fn handle_messages(&mut self, now: Instant, peer: P, sequence: u64, mut content: &[u8]) {
        while let Some(fragment) = Fragment::take(&mut content) {
            if fragment.kind == CLIENT_HELLO {
                self.handle_client_hello(now, peer, sequence, &fragment);
                continue;
            }
            let Some(slot) = self.sessions.pending_at(&peer) else { return };
            let Some(handshake) = self.sessions.get_mut(slot).and_then(|session| session.handshake.as_mut())
            else {
                return;
            };
            // Finished is never without protection.
            if fragment.kind == CLIENT_KEY_EXCHANGE
                && handshake.secret.is_none()
                && handshake.incoming.add(&fragment)
                && let Err(description) = self.handle_client_key_exchange(now, slot)
            {
                if let Some(session) = self.sessions.remove(slot) {
                    let sequence = session.handshake.map_or(0, |handshake| handshake.sequence);
                    self.refuse(peer, sequence, description);
                    self.failed(peer, Failure::Refused(description));
                }
                return;
            }
        }
    }

    /// Answers a ClientHello: without a valid cookie, by one, and nothing is kept. A ClientHello in fragments is dropped.
    fn handle_client_hello(&mut self, now: Instant, peer: P, sequence: u64, fragment: &Fragment<'_>) {
        let Some(hello) = ClientHello::read(fragment.body).filter(|_| fragment.is_whole()) else { return };
        if !self.cookies.is_valid(now, &peer, &hello) {
            let cookie = self.cookies.make(now, &peer, &hello);
            let reply = Short::new(|out| hello_verify_request(out, sequence, fragment.sequence, &cookie));
            // It is never longer than its cause: the shortest ClientHello has more octets than the longest reply.
            return self.reply(peer, reply);
        }
        if let Some(slot) = self.sessions.pending_at(&peer) {
            let handshake = self.sessions.get_mut(slot).and_then(|session| session.handshake.as_mut());
            if let Some(handshake) = handshake
                && handshake.client_random == *hello.random
                && handshake.hello == fragment.sequence
            {
                // The client has not received the answer.
                if handshake.secret.is_none() {
                    handshake.flight.repeat(now, &self.config.retransmission);
                }
                return;
            }
            // Another handshake, as of a client that was restarted.
            self.sessions.remove(slot);
        }
        let refused = match &hello {
            hello if !hello.is_version_12 => Some(AlertDescription::PROTOCOL_VERSION),
            hello if !hello.has_suite || !hello.has_extended_master_secret => {
                Some(AlertDescription::HANDSHAKE_FAILURE)
            }
            _ => None,
        };
        if let Some(description) = refused {
            self.refuse(peer, sequence, description);
            return self.failed(peer, Failure::Refused(description));
        }
        if self.sessions.handshakes().len() >= self.config.max_handshakes.clamp(1, MOST_HANDSHAKES)
            && let Some(oldest) = self.sessions.handshakes().first().copied()
        {
            match self.sessions.get(oldest).is_some_and(|session| session.is_established) {
                true => self.sessions.confirm(oldest),
                false => {
                    self.sessions.remove(oldest);
                }
            }
        }
        self.start(now, peer, sequence, fragment, &hello);
    }

    /// Starts a handshake: the client has proved its address.
    fn start(
        &mut self,
        now: Instant,
        peer: P,
        sequence: u64,
        fragment: &Fragment<'_>,
        hello: &ClientHello<'_>,
    ) {
        let mut handshake = Handshake::new(fragment.sequence.wrapping_add(1), fragment.sequence, sequence);
        handshake.hash_message(&header(CLIENT_HELLO, fragment.len, fragment.sequence, 0, fragment.len));
        handshake.hash_message(fragment.body);
        handshake.hello = fragment.sequence;
        handshake.client_random = *hello.random;
        handshake.server_random = random32(&mut *self.random);
        handshake.has_cids = self.config.has_cids && hello.cid.is_some();
        handshake.write_cid = hello.cid.filter(|_| handshake.has_cids).unwrap_or(crate::Cid::EMPTY);
        let Some(slot) = self.sessions.insert(peer, now, handshake) else { return };
        let cid = self.sessions.cid(slot);
        let Some(handshake) = self.sessions.get_mut(slot).and_then(|session| session.handshake.as_mut())
        else {
            return;
        };
        let (random, cid) = (handshake.server_random, handshake.has_cids.then_some(cid));
        handshake.push(SERVER_HELLO, |out| {
            ServerHello::write(out, &random, hello.has_renegotiation_info, cid.as_ref());
        });
        handshake.push(SERVER_HELLO_DONE, |_| {});
        handshake.flight.start(now, &self.config.retransmission);
    }

    /// Derives keys from the ClientKeyExchange that is complete.
    fn handle_client_key_exchange(&mut self, now: Instant, slot: u16) -> Result<(), AlertDescription> {
        let Some(session) = self.sessions.get_mut(slot) else { return Ok(()) };
        let Some(handshake) = &mut session.handshake else { return Ok(()) };
        let (_, message) = handshake.incoming.message();
        let identity = read_client_key_exchange(body(message)).ok_or(AlertDescription::DECODE_ERROR)?;
        let found = self.keys.binary_search_by(|psk| psk.identity().cmp(identity));
        let place = found.map_err(|_| AlertDescription::UNKNOWN_PSK_IDENTITY)?;
        let psk = self.keys.get(place).ok_or(AlertDescription::UNKNOWN_PSK_IDENTITY)?;
        handshake.accept_message();
        let secret = MasterSecret::new(psk, &handshake.hash());
        let keys = secret.keys(&handshake.client_random, &handshake.server_random);
        let read_cid_len = if handshake.has_cids { CID } else { 0 };
        session.association =
            Some(Association::new(keys.server, keys.client, handshake.write_cid, read_cid_len));
        session.identity = place as u32;
        handshake.secret = Some(secret);
        // The client retransmits until it has the next flight.
        handshake.flight = Flight::default();
        handshake.flight.start(now, &self.config.retransmission);
        Ok(())
    }
}

/// Largest number of sessions: behind them, and handshakes, there is room in 2 octets.
const MOST_SESSIONS: usize = 50_000;

/// Largest number of handshakes.
const MOST_HANDSHAKES: usize = 10_000;

/// Writes a HelloVerifyRequest. RFC 6347, section 4.2.1.
fn hello_verify_request(out: &mut [u8], sequence: u64, number: u16, cookie: &[u8]) -> Option<usize> {
    let len = 2 + 1 + cookie.len();
    let mut message = Vec::with_capacity(MESSAGE_HEADER + len);
    message.extend_from_slice(&header(HELLO_VERIFY_REQUEST, len, number, 0, len));
    message.extend_from_slice(&DTLS_10.to_be_bytes());
    message.push(cookie.len() as u8);
    message.extend_from_slice(cookie);
    debug_assert!(HEADER + message.len() <= HEADER + MESSAGE_HEADER + 2 + 32 + 1 + 1 + 4 + 2);
    write_plain(out, HANDSHAKE, DTLS_10, sequence, &message)
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
}
