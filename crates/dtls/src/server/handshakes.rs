//! Handshakes at a server, from a ClientHello to the session. RFC 6347, section 4.2; RFC 4279; RFC 9146, section 3; resumed sessions:
//! RFC 5246, section 7.3.

use alloc::vec::Vec;
use core::hash::Hash;

use thinair_wire::time::Instant;

use super::{Server, ServerEvent};
use crate::alert::AlertDescription;
use crate::association::Association;
use crate::client::random32;
use crate::flight::Flight;
use crate::handshake::{Failure, Handshake};
use crate::incoming::body;
use crate::message::{
    CLIENT_HELLO, CLIENT_KEY_EXCHANGE, ClientHello, FINISHED, Fragment, HELLO_VERIFY_REQUEST, MESSAGE_HEADER,
    SERVER_HELLO, SERVER_HELLO_DONE, ServerHello, header, read_client_key_exchange,
};
use crate::prf::MasterSecret;
use crate::record::{HANDSHAKE, HEADER, Record, write_plain};
use crate::sessions::CID;
use crate::short::Short;

/// Version in a HelloVerifyRequest, whatever is negotiated. RFC 6347, section 4.2.1.
const DTLS_10: u16 = 0xfeff;

/// Largest number of sessions: behind them, and handshakes, there is room in 2 octets.
const MOST_SESSIONS: usize = 50_000;

/// Largest number of handshakes.
const MOST_HANDSHAKES: usize = 10_000;

impl<P: Copy + Ord + Hash> Server<P> {
    /// Processes a record that may have the Finished message of a handshake. Returns true if it is authentic. `is_only`: it can be
    /// of no other session.
    pub(super) fn handle_finished(
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
                    self.resumables.remove(&handshake.session_id);
                    self.sessions.remove(slot);
                    self.refuse(peer, sequence, AlertDescription::DECRYPT_ERROR);
                    self.failed(peer, Failure::Refused(AlertDescription::DECRYPT_ERROR));
                }
                break;
            }
        }
        true
    }

    /// Answers Finished, if the session is a new one: it is established.
    fn establish(&mut self, now: Instant, slot: u16) {
        if self.sessions.established() >= self.config.max_sessions.clamp(1, MOST_SESSIONS)
            && let Some(oldest) = self.sessions.least_recently_used()
        {
            self.end(oldest);
        }
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let Some(handshake) = &mut session.handshake else { return };
        let is_resumed = handshake.is_resumed;
        handshake.accept_message();
        handshake.flight = Flight::default();
        if !is_resumed {
            handshake.finish(false);
            handshake.flight.linger(now);
        }
        if let Some(secret) = handshake.secret.take().filter(|_| !is_resumed) {
            self.resumables.insert(now, &handshake.session_id, secret, session.identity);
        }
        session.used = now;
        let peer = session.peer;
        if let Some(previous) = self.sessions.establish(slot) {
            let id = self.sessions.id(previous);
            self.sessions.remove(previous);
            self.events.push_back(ServerEvent::Closed { session: id });
        }
        self.events.push_back(ServerEvent::Connected { session: self.sessions.id(slot), peer });
        if is_resumed {
            self.sessions.confirm(slot);
        }
    }

    /// Processes handshake messages without protection.
    pub(super) fn handle_messages(&mut self, now: Instant, peer: P, sequence: u64, mut content: &[u8]) {
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
                if handshake.secret.is_none() || handshake.is_resumed {
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
        let resumable = self.resumables.find(now, hello.session_id);
        handshake.is_resumed = resumable.is_some();
        handshake.session_id = match resumable {
            Some(_) => hello.session_id.to_vec(),
            None => self.resumables.session_id((self.random)()),
        };
        let Some(slot) = self.sessions.insert(peer, now, handshake) else { return };
        let cid = self.sessions.cid(slot);
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let Some(handshake) = &mut session.handshake else { return };
        let (random, cid) = (handshake.server_random, handshake.has_cids.then_some(cid));
        let session_id = handshake.session_id.clone();
        handshake.push(SERVER_HELLO, |out| {
            ServerHello::write(out, &random, &session_id, hello.has_renegotiation_info, cid.as_ref());
        });
        match resumable {
            None => handshake.push(SERVER_HELLO_DONE, |_| {}),
            Some((secret, identity)) => {
                handshake.secret = Some(secret);
                session.identity = identity;
                session.association = new_association(handshake);
                handshake.finish(false);
            }
        }
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
        handshake.secret = Some(MasterSecret::new(psk, &handshake.hash()));
        session.association = new_association(handshake);
        session.identity = place as u32;
        // The client retransmits until it has the next flight.
        handshake.flight = Flight::default();
        handshake.flight.start(now, &self.config.retransmission);
        Ok(())
    }
}

/// Returns the association of a handshake that has a master secret.
fn new_association(handshake: &Handshake) -> Option<Association> {
    let keys = handshake.keys()?;
    let read_cid_len = if handshake.has_cids { CID } else { 0 };
    Some(Association::new(keys.server, keys.client, handshake.write_cid, read_cid_len))
}

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
