//! Sessions that can be resumed. RFC 5246, sections 7.4.1.2 and F.1.4; RFC 7627, section 5.3.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use thinair_wire::time::Instant;

use crate::prf::MasterSecret;

/// Octets of a session ID of a server: two sessions have the same one most improbably.
pub(crate) const SESSION_ID: usize = 8;

/// Time for which a session can be resumed. RFC 5246, section F.1.4.
const LIFETIME: Duration = Duration::from_secs(24 * 3_600);

/// A session that a client can resume.
pub(crate) struct Resumable {
    pub(crate) session_id: Vec<u8>,
    pub(crate) secret: MasterSecret,
}

/// A session that a client of the server can resume.
pub(crate) struct ResumableAtServer {
    secret: MasterSecret,
    identity: u32,
    since: Instant,
}

/// Sessions that clients of a server can resume, the newest ones.
pub(crate) struct Resumables {
    /// Largest number.
    most: usize,
    sessions: BTreeMap<[u8; SESSION_ID], ResumableAtServer>,
    /// Session IDs in the order of their handshakes, also of sessions that were removed.
    order: VecDeque<[u8; SESSION_ID]>,
}

impl Resumables {
    pub(crate) const fn new(most: usize) -> Self {
        Self { most, sessions: BTreeMap::new(), order: VecDeque::new() }
    }

    /// Returns a session ID by a random number; it is empty if no session can be resumed.
    pub(crate) fn session_id(&self, number: u64) -> Vec<u8> {
        if self.most == 0 { Vec::new() } else { number.to_be_bytes().to_vec() }
    }

    /// Adds a session of the identity at this place.
    pub(crate) fn insert(&mut self, now: Instant, session_id: &[u8], secret: MasterSecret, identity: u32) {
        let Ok(session_id) = session_id.try_into() else { return };
        while self.order.len() >= self.most.max(1) {
            let Some(oldest) = self.order.pop_front() else { break };
            self.sessions.remove(&oldest);
        }
        self.order.push_back(session_id);
        self.sessions.insert(session_id, ResumableAtServer { secret, identity, since: now });
    }

    /// Returns master secret and identity of a session.
    pub(crate) fn find(&self, now: Instant, session_id: &[u8]) -> Option<(MasterSecret, u32)> {
        let found = self.sessions.get::<[u8; SESSION_ID]>(session_id.try_into().ok()?)?;
        (now.since(found.since) < LIFETIME).then(|| (found.secret.clone(), found.identity))
    }

    /// Removes a session, which a fatal alert has ended. RFC 5246, section 7.2.2.
    pub(crate) fn remove(&mut self, session_id: &[u8]) {
        if let Ok(session_id) = <&[u8; SESSION_ID]>::try_from(session_id) {
            self.sessions.remove(session_id);
        }
    }
}

#[cfg(test)]
impl Resumables {
    /// Octets of a session: in a tree whose nodes are half full, and in a queue that has grown.
    pub(crate) const fn session_octets() -> usize {
        2 * (SESSION_ID + size_of::<ResumableAtServer>() + 16) + 2 * SESSION_ID
    }
}
