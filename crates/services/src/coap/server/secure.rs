//! Sessions of DTLS at a server: `coaps://`. RFC 7252, section 9.1.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use thinair_coap::Event;
use thinair_dtls::{OVERHEAD, Psk, Server, ServerConfig, ServerEvent, SessionId};
use thinair_wire::time::Instant;

use super::resource::Moment;
use super::rights::Rights;
use super::{LONGEST_DATAGRAM, ResourceServer};
use crate::coap::CoapPeer;

/// Octets that a record adds to a message, with the longest connection ID of a client.
const ROOM: usize = OVERHEAD + thinair_dtls::MAX_CID + 1;

/// Shortest time between two reports of failed handshakes.
const REPORTS: Duration = Duration::from_secs(1);

/// Addresses and keys of `coaps://`.
#[derive(Clone, Debug, Default)]
pub struct SecureSettings {
    /// Addresses; true: the server starts without it where the machine does not have the address.
    pub listen: Vec<(SocketAddr, bool)>,
    /// Keys of clients, with their rights.
    pub clients: Vec<(Psk, Rights)>,
}

/// Sessions.
pub(super) struct SecureSessions {
    engine: Server<CoapPeer>,
    rights: BTreeMap<Vec<u8>, Rights>,
    /// A received datagram, which is decrypted in place.
    received: Vec<u8>,
    /// A datagram to send.
    sent: Vec<u8>,
    reported: Option<Instant>,
}

impl std::fmt::Debug for SecureSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecureSessions").finish_non_exhaustive()
    }
}

impl SecureSessions {
    pub(super) fn new(
        clients: &[(Psk, Rights)],
        max_message: usize,
        random: impl FnMut() -> u64 + Send + 'static,
    ) -> Self {
        let keys = clients.iter().map(|(psk, _)| psk.clone()).collect();
        let rights = clients.iter().map(|(psk, rights)| (psk.identity().to_vec(), rights.clone())).collect();
        Self {
            engine: Server::new(keys, ServerConfig::default(), random),
            rights,
            received: Vec::with_capacity(LONGEST_DATAGRAM),
            sent: vec![0; max_message + ROOM],
            reported: None,
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.engine.poll_timeout()
    }

    /// Returns the rights of the client of a session.
    pub(super) fn rights(&self, session: SessionId) -> Option<&Rights> {
        self.rights.get(self.engine.identity(session)?)
    }

    /// Returns the address of the client of a session.
    pub(super) fn address(&self, session: SessionId) -> Option<SocketAddr> {
        match self.engine.peer(session)? {
            CoapPeer::Udp { address, .. } => Some(address),
            CoapPeer::Dtls(_) | CoapPeer::Tcp(_) => None,
        }
    }

    /// Encrypts a message. Returns destination and datagram.
    pub(super) fn seal(&mut self, session: SessionId, message: &[u8]) -> Option<(CoapPeer, &[u8])> {
        let (peer, len) = self.engine.send(session, message, &mut self.sent).ok()?;
        Some((peer, self.sent.get(..len)?))
    }

    /// Returns the next datagram of a handshake, and its destination.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(CoapPeer, &[u8])> {
        let (peer, len) = self.engine.poll_datagram(now, &mut self.sent)?;
        Some((peer, self.sent.get(..len)?))
    }

    /// Ends all sessions. Calls `send` for the datagrams of this.
    pub(super) fn close(&mut self, now: Instant, mut send: impl FnMut(CoapPeer, &[u8])) {
        for session in self.engine.sessions() {
            self.engine.close(session);
            while let Some((peer, datagram)) = self.poll(now) {
                send(peer, datagram);
            }
        }
    }
}

impl ResourceServer {
    /// Processes a datagram of DTLS.
    pub(super) fn secure_datagram(&mut self, at: Moment, peer: CoapPeer, datagram: &[u8]) {
        let Some(secure) = &mut self.secure else { return };
        // Moved out: requests are processed meanwhile.
        let mut received = std::mem::take(&mut secure.received);
        received.clear();
        received.extend_from_slice(datagram);
        let mut rest = &mut received[..];
        while let Some(secure) = self.secure.as_mut().filter(|_| !rest.is_empty()) {
            let message = secure.engine.handle_datagram(at.now, peer, &mut rest);
            self.secure_events(at);
            let Some((session, message)) = message else { continue };
            match self.endpoint.handle_datagram(at.now, CoapPeer::Dtls(session), message) {
                Some(Event::Request { id, peer, observe, message }) => {
                    self.request(at, id, peer, observe, &message);
                }
                Some(event) => self.event(at, event),
                None => {}
            }
        }
        if let Some(secure) = &mut self.secure {
            secure.received = received;
        }
    }

    /// Retransmits messages of handshakes that are due.
    pub(super) fn secure_timeout(&mut self, at: Moment) {
        if let Some(secure) = &mut self.secure
            && secure.poll_timeout().is_some_and(|timeout| timeout <= at.now)
        {
            secure.engine.handle_timeout(at.now);
            self.secure_events(at);
        }
    }

    fn secure_events(&mut self, at: Moment) {
        while let Some(secure) = &mut self.secure
            && let Some(event) = secure.engine.poll_event()
        {
            match event {
                ServerEvent::Connected { session, .. } => {
                    // By the cookie of the handshake.
                    self.endpoint.set_verified(at.now, CoapPeer::Dtls(session), true);
                    self.statistics.sessions += 1;
                }
                // RFC 9146, section 6: the client has to show that it receives at its new address, by an Echo (RFC 9175).
                ServerEvent::Moved { session, .. } => {
                    self.endpoint.set_verified(at.now, CoapPeer::Dtls(session), false);
                }
                ServerEvent::Closed { session } => {
                    let peer = CoapPeer::Dtls(session);
                    self.endpoint.forget_peer(at.now, &peer);
                    self.due.retain(|_, due| due.peer != peer);
                }
                ServerEvent::Failed { peer: CoapPeer::Udp { address, .. }, failure } => {
                    self.statistics.failed_handshakes += 1;
                    if secure.reported.is_none_or(|reported| at.now.since(reported) >= REPORTS) {
                        secure.reported = Some(at.now);
                        tracing::warn!("no session with {address}: {failure}");
                    }
                }
                _ => {}
            }
        }
    }
}
