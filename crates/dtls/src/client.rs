//! A client: its session with one server, and the handshake that makes it or renews it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use thinair_wire::time::Instant;

use crate::alert::{Alert, AlertDescription};
use crate::association::Association;
use crate::config::ClientConfig;
use crate::flight::{Due, Flight};
use crate::handshake::{Failure, Handshake};
use crate::incoming::body;
use crate::message::{
    CLIENT_HELLO, CLIENT_KEY_EXCHANGE, ClientHello, FINISHED, Fragment, HELLO_VERIFY_REQUEST, SERVER_HELLO,
    SERVER_HELLO_DONE, SERVER_KEY_EXCHANGE, ServerHello, read_hello_verify_request,
};
use crate::prf::{MasterSecret, Random};
use crate::psk::Psk;
use crate::record::{ALERT, APPLICATION_DATA, HANDSHAKE, Record, SendError, VERSION, write_plain};
use crate::resumption::Resumable;
use crate::short::Short;

/// Shortest time from one handshake to the next one that the client starts by itself.
const INTERVAL: Duration = Duration::from_secs(10);

/// Largest number of HelloVerifyRequests that a handshake follows.
const MOST_COOKIES: u8 = 4;

/// An event of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// There is a session; a previous one is over.
    Connected,
    /// The server has ended the session.
    Closed(AlertDescription),
    /// A handshake has failed. A session that exists stays.
    Failed(Failure),
}

/// Progress of a handshake.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// HelloVerifyRequest or ServerHello is expected.
    ServerHello,
    /// ServerKeyExchange or ServerHelloDone is expected.
    ServerKeyExchange,
    /// ServerHelloDone is expected.
    ServerHelloDone,
    /// Finished is expected.
    Finished,
}

struct ClientHandshake {
    step: Step,
    /// Cookie of the latest HelloVerifyRequest, and number of them.
    cookie: Vec<u8>,
    cookies: u8,
    common: Handshake,
    /// Keys of the session that it makes.
    association: Option<Association>,
}

/// A client of one server.
///
/// **Call order:** [`connect`](Self::connect); then, after every call, [`poll_datagram`](Self::poll_datagram) until it returns `None`, and
/// [`handle_timeout`](Self::handle_timeout) at the time of [`poll_timeout`](Self::poll_timeout).
pub struct Client {
    psk: Psk,
    config: ClientConfig,
    random: Box<dyn FnMut() -> u64 + Send>,
    association: Option<Association>,
    handshake: Option<Box<ClientHandshake>>,
    /// Handshake that has resumed the session: until the server has sent data, as it may need the last flight again.
    resumed: Option<Box<Handshake>>,
    /// Session that the next handshake offers to resume.
    resumable: Option<Resumable>,
    /// An alert to send.
    alert: Option<Short>,
    events: VecDeque<ClientEvent>,
    /// Start of the latest handshake that the client has started by itself.
    renewed: Option<Instant>,
    /// Time of the first record that was sent since the latest one of the server.
    unanswered: Option<Instant>,
}

impl Client {
    /// Creates a client. `random` must be impossible to guess.
    pub fn new(psk: Psk, config: ClientConfig, random: impl FnMut() -> u64 + Send + 'static) -> Self {
        Self {
            psk,
            config,
            random: Box::new(random),
            association: None,
            handshake: None,
            resumed: None,
            resumable: None,
            alert: None,
            events: VecDeque::new(),
            renewed: None,
            unanswered: None,
        }
    }

    /// Starts a handshake, unless there is one. A session that exists is used until it has succeeded. The latest session of this
    /// client is resumed if the server still has its secret.
    pub fn connect(&mut self, now: Instant) {
        if self.handshake.is_some() {
            return;
        }
        let mut common = Handshake::new(0, 0, 0);
        common.client_random = random32(&mut *self.random);
        if let Some(resumable) = &self.resumable {
            common.session_id.extend_from_slice(&resumable.session_id);
        }
        hello(&mut common, &self.config, now, &[]);
        let step = Step::ServerHello;
        let handshake = ClientHandshake { step, cookie: Vec::new(), cookies: 0, common, association: None };
        self.handshake = Some(Box::new(handshake));
    }

    /// True if there is a session.
    pub const fn is_connected(&self) -> bool {
        self.association.is_some()
    }

    /// True if there is a handshake.
    pub const fn is_connecting(&self) -> bool {
        self.handshake.is_some()
    }

    /// Processes records of a datagram, until one has application data: it is decrypted in place, and returned. **Call it until
    /// nothing is left of the datagram.**
    pub fn handle_datagram<'d>(&mut self, now: Instant, datagram: &mut &'d mut [u8]) -> Option<&'d [u8]> {
        let cid_len = self.config.cid.map_or(0, |cid| cid.len());
        while let Some(record) = Record::take(datagram, cid_len) {
            if let Some(content) = self.handle_record(now, record) {
                return Some(content);
            }
        }
        None
    }

    /// Writes a record with application data, and returns its length.
    ///
    /// # Errors
    /// There is no session, or the record is too long.
    pub fn send(&mut self, now: Instant, content: &[u8], out: &mut [u8]) -> Result<usize, SendError> {
        let association = self.association.as_mut().ok_or(SendError::NotConnected)?;
        let len = association.seal(APPLICATION_DATA, content, out)?;
        let since = *self.unanswered.get_or_insert(now);
        if self.config.silence.is_some_and(|silence| now.since(since) >= silence) {
            self.renew(now);
        }
        Ok(len)
    }

    /// Ends session and handshake; the server is sent an alert.
    pub fn close(&mut self) {
        (self.handshake, self.resumed) = (None, None);
        if let Some(mut association) = self.association.take() {
            self.alert = Short::new(|out| association.seal_alert(Alert::CLOSE_NOTIFY, out));
        }
    }

    /// Writes the next datagram, and returns its length. `None` if there is none to send.
    pub fn poll_datagram(&mut self, _now: Instant, out: &mut [u8]) -> Option<usize> {
        if let Some(alert) = self.alert.take() {
            return alert.write(out);
        }
        let room = out.len().min(self.config.max_datagram);
        let out = out.get_mut(..room)?;
        if let Some(resumed) = &mut self.resumed {
            let Handshake { flight, sequence, .. } = &mut **resumed;
            if let Some(len) = flight.poll(sequence, self.association.as_mut(), out) {
                return Some(len);
            }
        }
        let handshake = self.handshake.as_mut()?;
        let Handshake { flight, sequence, .. } = &mut handshake.common;
        flight.poll(sequence, handshake.association.as_mut(), out)
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// Returns the time of the next [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.handshake.as_ref()?.common.flight.timeout()
    }

    /// Retransmits, or ends, a handshake that is not answered.
    pub fn handle_timeout(&mut self, now: Instant) {
        let Some(handshake) = &mut self.handshake else { return };
        match handshake.common.flight.handle_timeout(now, &self.config.retransmission) {
            Due::Nothing | Due::Again => {}
            Due::Over { transmissions } => {
                let failure = match handshake.step {
                    Step::Finished => Failure::NotConfirmed { transmissions },
                    Step::ServerHello | Step::ServerKeyExchange | Step::ServerHelloDone => {
                        Failure::NoAnswer { transmissions }
                    }
                };
                self.fail(failure);
            }
        }
    }

    /// Starts a handshake by itself: seldom, since whoever knows the addresses can cause it.
    fn renew(&mut self, now: Instant) {
        if self.renewed.is_none_or(|renewed| now.since(renewed) >= INTERVAL) {
            self.renewed = Some(now);
            self.connect(now);
        }
    }

    fn fail(&mut self, failure: Failure) {
        let Some(handshake) = self.handshake.take() else { return };
        if !matches!(failure, Failure::NoAnswer { .. }) {
            // The next handshake does not depend on it: RFC 5246, section 7.2.2.
            self.resumable = None;
        }
        if let Failure::Refused(description) = failure {
            let alert = Alert::fatal(description).octets();
            let sequence = handshake.common.sequence;
            self.alert = Short::new(|out| write_plain(out, ALERT, VERSION, sequence, &alert));
        }
        self.events.push_back(ClientEvent::Failed(failure));
    }

    fn handle_record<'d>(&mut self, now: Instant, record: Record<'d>) -> Option<&'d [u8]> {
        match (record.epoch, record.content_type) {
            (0, HANDSHAKE) => {
                self.handle_messages(now, record.fragment, false);
                None
            }
            (0, ALERT) => {
                self.handle_plain_alert(now, Alert::read(record.fragment)?);
                None
            }
            (0, _) => None,
            _ => self.handle_protected(now, record),
        }
    }

    fn handle_plain_alert(&mut self, now: Instant, alert: Alert) {
        if !alert.ends_session() {
            return;
        }
        if self.is_connected() {
            // Not authentic: a server that has lost the session, or anybody. The session stays, and a handshake continues.
            self.renew(now);
        } else {
            self.fail(Failure::Alert(alert.description));
        }
    }

    fn handle_protected<'d>(&mut self, now: Instant, record: Record<'d>) -> Option<&'d [u8]> {
        if let Some(association) =
            self.handshake.as_mut().and_then(|handshake| handshake.association.as_mut())
            && let Some(mut copy) = Short::copied(record.fragment)
        {
            // It may belong to the session that exists: only a copy is decrypted.
            let copied = Record { fragment: copy.octets_mut(), ..record };
            if let Some(opened) = association.open(copied) {
                match opened.content_type {
                    HANDSHAKE => self.handle_messages(now, opened.content, true),
                    ALERT => {
                        if let Some(alert) = Alert::read(opened.content).filter(|alert| alert.ends_session())
                        {
                            self.fail(Failure::Alert(alert.description));
                        }
                    }
                    // Data that has overtaken Finished.
                    _ => {}
                }
                return None;
            }
        }
        let opened = self.association.as_mut()?.open(record)?;
        self.unanswered = None;
        match opened.content_type {
            APPLICATION_DATA => {
                self.resumed = None;
                Some(opened.content)
            }
            ALERT => {
                let alert = Alert::read(opened.content).filter(|alert| alert.ends_session())?;
                if alert.is_fatal {
                    self.resumable = None;
                }
                self.resumed = None;
                let mut association = self.association.take()?;
                self.alert = Short::new(|out| association.seal_alert(Alert::CLOSE_NOTIFY, out));
                self.events.push_back(ClientEvent::Closed(alert.description));
                None
            }
            HANDSHAKE => {
                // The server has not received the last flight. HelloRequest: there is no renegotiation.
                let is_finished =
                    Fragment::take(&mut &*opened.content).is_some_and(|fragment| fragment.kind == FINISHED);
                if let Some(resumed) = self.resumed.as_mut().filter(|_| is_finished) {
                    resumed.flight.repeat(now, &self.config.retransmission);
                }
                None
            }
            _ => None,
        }
    }

    /// Processes handshake messages of a record.
    fn handle_messages(&mut self, now: Instant, mut content: &[u8], is_protected: bool) {
        while let Some(fragment) = Fragment::take(&mut content) {
            let Some(handshake) = &mut self.handshake else { return };
            if handshake.step == Step::ServerHello && !is_protected {
                match fragment.kind {
                    HELLO_VERIFY_REQUEST => {
                        // A duplicate changes nothing: the hash of both ends is that of the latest ClientHello.
                        if let Some(cookie) =
                            read_hello_verify_request(fragment.body).filter(|_| fragment.is_whole())
                            && handshake.cookies < MOST_COOKIES
                            && handshake.cookie != cookie
                        {
                            handshake.cookies += 1;
                            handshake.cookie = cookie.to_vec();
                            hello(&mut handshake.common, &self.config, now, cookie);
                        }
                        continue;
                    }
                    // A server without state counts from the number of the ClientHello.
                    SERVER_HELLO if fragment.offset == 0 => {
                        handshake.common.incoming.expect(fragment.sequence);
                    }
                    _ => {}
                }
            }
            if handshake.step == Step::Finished && fragment.kind == SERVER_HELLO_DONE && !is_protected {
                // The server has not received the answer.
                handshake.common.flight.repeat(now, &self.config.retransmission);
                continue;
            }
            if handshake.common.incoming.add(&fragment)
                && let Err(description) = self.handle_message(now, is_protected)
            {
                return self.fail(Failure::Refused(description));
            }
        }
    }

    /// Processes the complete message.
    fn handle_message(&mut self, now: Instant, is_protected: bool) -> Result<(), AlertDescription> {
        let Some(handshake) = &mut self.handshake else { return Ok(()) };
        let ClientHandshake { step, common, association, .. } = &mut **handshake;
        let (kind, message) = common.incoming.message();
        match (*step, kind, is_protected) {
            (Step::ServerHello, SERVER_HELLO, false) => {
                let hello = ServerHello::read(body(message)).ok_or(AlertDescription::DECODE_ERROR)?;
                if !hello.is_version_12 {
                    return Err(AlertDescription::PROTOCOL_VERSION);
                }
                if hello.has_other_extension || hello.cid.is_some() && self.config.cid.is_none() {
                    return Err(AlertDescription::UNSUPPORTED_EXTENSION);
                }
                if !hello.has_suite || !hello.has_extended_master_secret {
                    return Err(AlertDescription::HANDSHAKE_FAILURE);
                }
                let (random, cid, session_id) = (*hello.random, hello.cid, hello.session_id.to_vec());
                common.server_random = random;
                common.write_cid = cid.unwrap_or(crate::Cid::EMPTY);
                common.has_cids = cid.is_some();
                let is_resumed = !session_id.is_empty() && session_id == common.session_id;
                common.session_id = session_id;
                common.accept_message();
                *step = Step::ServerKeyExchange;
                if let Some(resumable) = self.resumable.as_ref().filter(|_| is_resumed) {
                    common.is_resumed = true;
                    common.secret = Some(resumable.secret.clone());
                    *association = new_association(common, &self.config);
                    *step = Step::Finished;
                }
            }
            // Its contents, a hint of which identity to use, are not needed: there is one.
            (Step::ServerKeyExchange, SERVER_KEY_EXCHANGE, false) => {
                *step = Step::ServerHelloDone;
                common.accept_message();
            }
            (Step::ServerKeyExchange | Step::ServerHelloDone, SERVER_HELLO_DONE, false) => {
                common.accept_message();
                let identity = self.psk.identity();
                common.flight = Flight::default();
                common.push(CLIENT_KEY_EXCHANGE, |out| {
                    // At most `MAX_IDENTITY`.
                    out.extend_from_slice(&(identity.len() as u16).to_be_bytes());
                    out.extend_from_slice(identity);
                });
                common.secret = Some(MasterSecret::new(&self.psk, &common.hash()));
                *association = new_association(common, &self.config);
                common.finish(true);
                common.flight.start(now, &self.config.retransmission);
                *step = Step::Finished;
            }
            (Step::Finished, FINISHED, true) => {
                if !common.is_finished_by(false) {
                    return Err(AlertDescription::DECRYPT_ERROR);
                }
                common.accept_message();
                self.association = association.take();
                (self.resumed, self.unanswered) = (None, None);
                let Some(ended) = self.handshake.take() else { return Ok(()) };
                let ClientHandshake { mut common, .. } = *ended;
                if common.is_resumed {
                    common.flight = Flight::default();
                    common.finish(true);
                    common.flight.linger(now);
                    self.resumed = Some(Box::new(common));
                } else {
                    let session_id = core::mem::take(&mut common.session_id);
                    let secret = common.secret.filter(|_| !session_id.is_empty());
                    self.resumable = secret.map(|secret| Resumable { session_id, secret });
                }
                self.events.push_back(ClientEvent::Connected);
            }
            _ => return Err(AlertDescription::UNEXPECTED_MESSAGE),
        }
        Ok(())
    }
}

impl fmt::Debug for Client {
    /// Without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (is_connected, is_connecting) = (self.is_connected(), self.is_connecting());
        f.debug_struct("Client")
            .field("psk", &self.psk)
            .field("is_connected", &is_connected)
            .field("is_connecting", &is_connecting)
            .finish_non_exhaustive()
    }
}

/// Starts the flight of a ClientHello.
fn hello(common: &mut Handshake, config: &ClientConfig, now: Instant, cookie: &[u8]) {
    common.restart_transcript();
    common.flight = Flight::default();
    let (random, session_id) = (common.client_random, common.session_id.clone());
    common.push(CLIENT_HELLO, |out| {
        ClientHello::write(out, &random, &session_id, cookie, config.cid.as_ref());
    });
    common.flight.start(now, &config.retransmission);
}

/// Returns the association of a handshake that has a master secret.
fn new_association(common: &Handshake, config: &ClientConfig) -> Option<Association> {
    let keys = common.keys()?;
    let read_cid = config.cid.filter(|_| common.has_cids).map_or(0, |cid| cid.len());
    Some(Association::new(keys.client, keys.server, common.write_cid, read_cid))
}

/// Returns 32 random octets.
pub(crate) fn random32(random: &mut dyn FnMut() -> u64) -> Random {
    let mut octets = [0; 32];
    octets.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random().to_be_bytes()));
    octets
}

#[cfg(test)]
impl Client {
    /// Continues with a sequence number.
    pub(crate) fn set_sequence(&mut self, sequence: u64) {
        if let Some(association) = &mut self.association {
            association.sequence = sequence;
        }
    }

    /// Writes a fatal alert in the session.
    pub(crate) fn seal_fatal_alert(&mut self, out: &mut [u8]) -> Option<usize> {
        self.association.as_mut()?.seal_alert(Alert::fatal(AlertDescription::DECODE_ERROR), out)
    }

    /// Replaces the secret of the session that is offered.
    pub(crate) fn set_secret(&mut self, secret: MasterSecret) {
        if let Some(resumable) = &mut self.resumable {
            resumable.secret = secret;
        }
    }
}
