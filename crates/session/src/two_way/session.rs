//! One session with a peer.

use std::time::Duration;

use thinair_wire::time::Instant;

use crate::Suite;
use crate::direction::{Opener, Sealer};
use crate::handshake::{EndIdentity, SharedSecrets};
use crate::header::Index;
use crate::key::KeyId;

/// Age from which on traffic replaces keys.
pub(super) const REKEY: Duration = Duration::from_secs(2 * 3_600);
/// Additional time of the responder, so that not both ends initiate.
pub(super) const REKEY_LATER: Duration = Duration::from_secs(60);
/// Time from that first traffic to the end of the keys.
const REPLACED_WITHIN: Duration = Duration::from_secs(600);
/// Time without any datagram after which keys end.
const EXPIRED: Duration = Duration::from_secs(2 * 3_600 + 600);
/// Maximum age of keys with keepalives alone.
const OLDEST: Duration = Duration::from_secs(24 * 3_600);

/// Public state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionState {
    /// Time of its start.
    pub since: Instant,
    /// Id of the key with which it was agreed on.
    pub key: KeyId,
    /// Cipher and tag length.
    pub suite: Suite,
    /// Number of packets encrypted.
    pub sealed: u64,
    /// Highest counter of a decrypted packet, plus one.
    pub opened: u64,
}

/// Both directions.
pub(super) struct Session {
    pub(super) sealer: Sealer,
    pub(super) opener: Opener,
    /// Index that we have assigned to it, and the one that the peer has assigned.
    pub(super) ours: Index,
    pub(super) theirs: Index,
    /// Instance of the peer.
    pub(super) instance: [u8; 8],
    pub(super) hash: [u8; 32],
    pub(super) key: KeyId,
    suite: Suite,
    initiator: bool,
    /// True if the peer requests an answer when it needs one, and waits for none otherwise.
    pub(super) asks: bool,
    pub(super) since: Instant,
    /// Octets of bodies in both directions.
    pub(super) octets: u64,
    /// Time at which it ends unless a new session replaces it before.
    pub(super) until: Instant,
    /// True if packets were sent or received with old keys, which then end soon.
    is_outdated: bool,
    /// True if a packet was decrypted with it.
    pub(super) heard: bool,
    /// True if both ends have initiated at once, and the other session is used.
    pub(super) passed_over: bool,
}

impl Session {
    /// `ours`, `theirs`: indices.
    pub(super) fn new(
        now: Instant,
        suite: Suite,
        shared: &SharedSecrets,
        initiator: bool,
        (ours, theirs): (Index, Index),
        key: KeyId,
        identity: &EndIdentity,
    ) -> Box<Self> {
        let (sealer, opener) = shared.directions(suite, initiator);
        Box::new(Self {
            sealer,
            opener,
            ours,
            theirs,
            instance: identity.instance,
            hash: shared.hash,
            key,
            suite,
            initiator,
            asks: identity.asks,
            since: now,
            octets: 0,
            until: now + EXPIRED,
            is_outdated: false,
            heard: false,
            passed_over: false,
        })
    }

    /// True if the peer has requested the session.
    pub(super) fn is_of_peer(&self) -> bool {
        !self.initiator
    }

    /// Time that an end waits before it replaces the keys, besides their age.
    pub(super) const fn later(&self) -> Duration {
        if self.initiator { Duration::ZERO } else { REKEY_LATER }
    }

    /// Records a datagram in either direction.
    pub(super) fn note_datagram(&mut self, now: Instant) {
        if !self.is_outdated {
            self.until = self.until.max((now + EXPIRED).min(self.since + OLDEST));
        }
    }

    /// Records a packet in either direction. Returns true if the keys are older than `age`: then they end soon.
    pub(super) fn is_old_for_packet(&mut self, now: Instant, age: Duration) -> bool {
        let is_old = now >= self.since + age + self.later();
        if is_old {
            self.is_outdated = true;
            self.until = self.until.min(now + REPLACED_WITHIN);
        }
        is_old
    }

    pub(super) fn state(&self) -> SessionState {
        SessionState {
            since: self.since,
            key: self.key,
            suite: self.suite,
            sealed: self.sealer.counter(),
            opened: self.opener.next(),
        }
    }
}
