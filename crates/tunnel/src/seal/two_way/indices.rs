//! Indices of sessions, which the receiver assigns: random ones, so that they tell nothing of the peer.

use super::peer::{PeerState, SESSIONS};
use super::{Over, TwoWay};
use crate::seal::Random;

/// Number of indices.
const ALL: usize = 256;

/// The peer for which each index was assigned last.
pub(super) struct Indices {
    owners: [u8; ALL],
    /// On a line, start of the search for a free index: released ones rest as long as possible.
    next: u8,
}

impl Indices {
    pub(super) const fn new() -> Self {
        Self { owners: [0; ALL], next: 0 }
    }

    /// Peer for which an index was assigned last.
    pub(super) fn owner(&self, index: u8) -> usize {
        usize::from(self.owners[usize::from(index)])
    }

    /// Assigns an index.
    pub(super) fn assign(&mut self, index: u8, peer: usize) {
        self.owners[usize::from(index)] = peer as u8;
        self.next = index.wrapping_add(1) % SESSIONS;
    }

    /// Returns an index that no session of any peer has. `None`: each peer has all its sessions.
    pub(super) fn free(&self, over: Over, peers: &[PeerState], random: &mut dyn Random) -> Option<u8> {
        let mut used = [false; ALL];
        for index in peers.iter().flat_map(PeerState::indices) {
            used[usize::from(index)] = true;
        }
        let is_free = |index: &u8| !used[usize::from(*index)];
        match over {
            Over::Line => (0..SESSIONS).map(|step| (self.next + step) % SESSIONS).find(is_free),
            Over::Datagrams => {
                let mut start = [0];
                random.fill(&mut start);
                (0..=u8::MAX).map(|step| start[0].wrapping_add(step)).find(is_free)
            }
        }
    }
}

impl TwoWay {
    /// Returns an index that no session has.
    pub(super) fn free_index(&mut self) -> Option<u8> {
        self.indices.free(self.over, &self.peers, &mut *self.random)
    }
}
