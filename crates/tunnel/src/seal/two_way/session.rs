//! One session with a peer.

use std::time::Duration;

use thinair_wire::time::Instant;

use crate::plan::Suite;
use crate::seal::direction::{Opener, Sealer};
use crate::seal::handshake::{Identity, Shared};
use crate::seal::key_file::KeyId;

/// How old keys get at most.
const EXPIRED: Duration = Duration::from_secs(2 * 3_600 + 600);

/// What is to be seen of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionState {
    /// Since when it is there.
    pub since: Instant,
    /// By which key of the file it was agreed on.
    pub key: KeyId,
    /// Packets that were sealed by it.
    pub sealed: u64,
    /// One more than the highest counter of a packet that was opened by it.
    pub opened: u64,
}

/// Both directions.
pub(super) struct Session {
    pub(super) sealer: Sealer,
    pub(super) opener: Opener,
    /// The index that we have given to it, and the one that the peer has.
    pub(super) ours: u8,
    pub(super) theirs: u8,
    /// Of the peer.
    pub(super) instance: [u8; 8],
    pub(super) hash: [u8; 32],
    pub(super) key: KeyId,
    pub(super) initiator: bool,
    pub(super) since: Instant,
    /// When it ends, if nothing new has taken its place by then.
    pub(super) until: Instant,
    /// Something was opened by it.
    pub(super) heard: bool,
    /// Both ends have asked at once, and the other session of the two is used.
    pub(super) passed_over: bool,
}

impl Session {
    /// `ours`, `theirs`: indices.
    pub(super) fn new(
        now: Instant,
        suite: Suite,
        shared: &Shared,
        initiator: bool,
        (ours, theirs): (u8, u8),
        key: KeyId,
        identity: &Identity,
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
            initiator,
            since: now,
            until: now + EXPIRED,
            heard: false,
            passed_over: false,
        })
    }

    pub(super) fn state(&self) -> SessionState {
        SessionState {
            since: self.since,
            key: self.key,
            sealed: self.sealer.counter(),
            opened: self.opener.next(),
        }
    }
}
