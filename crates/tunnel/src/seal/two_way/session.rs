//! One session with a peer.

use std::time::Duration;

use thinair_wire::time::Instant;

use crate::seal::direction::{Opener, Sealer};
use crate::seal::handshake::{EndIdentity, SharedSecrets};
use crate::seal::key_file::KeyId;
use crate::site_config::Suite;

/// Maximum age of keys.
const EXPIRED: Duration = Duration::from_secs(2 * 3_600 + 600);

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
    pub(super) ours: u8,
    pub(super) theirs: u8,
    /// Instance of the peer.
    pub(super) instance: [u8; 8],
    pub(super) hash: [u8; 32],
    pub(super) key: KeyId,
    suite: Suite,
    pub(super) initiator: bool,
    pub(super) since: Instant,
    /// Octets of bodies in both directions.
    pub(super) octets: u64,
    /// Time at which it ends unless a new session replaces it before.
    pub(super) until: Instant,
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
        (ours, theirs): (u8, u8),
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
            since: now,
            octets: 0,
            until: now + EXPIRED,
            heard: false,
            passed_over: false,
        })
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
