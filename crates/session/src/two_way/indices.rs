//! Indices of sessions, which the receiver assigns: random ones, so that they tell nothing of the peer. An index of one
//! octet suffices for few peers; an end with many assigns those of three octets, and identifies the peer of a datagram by a
//! look into a table.

use std::collections::HashMap;

use super::peer::{PeerState, SESSIONS};
use super::{FEW, Over, TwoWay};
use crate::Random;
use crate::header::{Index, LONG};

/// Number of short indices.
const SHORT: usize = 256;
/// Long indices of a peer, on average, above which those of ended sessions are removed.
const KEPT: usize = 2 * SESSIONS as usize;
/// Attempts to find a free long index, of which more than 99 % are free.
const ATTEMPTS: usize = 32;

/// The peer for which each index was assigned last.
pub(super) struct Indices {
    short: [u32; SHORT],
    long: HashMap<[u8; LONG], u32>,
    /// On a line, start of the search for a free index: released ones rest as long as possible.
    next: u8,
}

impl Indices {
    pub(super) fn new() -> Self {
        Self { short: [0; SHORT], long: HashMap::new(), next: 0 }
    }

    /// Peer for which an index was assigned last.
    pub(super) fn owner(&self, index: Index) -> Option<usize> {
        match index {
            Index::Short(index) => self.short.get(usize::from(index)),
            Index::Long(index) => self.long.get(&index),
        }
        .map(|peer| *peer as usize)
    }

    /// Assigns an index.
    pub(super) fn assign(&mut self, index: Index, peer: usize, peers: &[PeerState]) {
        let peer = peer as u32;
        match index {
            Index::Short(index) => {
                self.short[usize::from(index)] = peer;
                self.next = index.wrapping_add(1) % SESSIONS;
            }
            Index::Long(octets) => {
                if self.long.len() >= KEPT * peers.len().max(FEW) {
                    self.long.retain(|octets, owner| is_used(peers, *owner, Index::Long(*octets)));
                }
                self.long.insert(octets, peer);
            }
        }
    }

    /// Returns an index that no session of any peer has. `None`: there is none left.
    fn free(&self, over: Over, is_long: bool, peers: &[PeerState], random: &mut dyn Random) -> Option<Index> {
        if is_long {
            let mut octets = [0; LONG];
            let mut draw = || {
                random.fill(&mut octets);
                octets
            };
            return (0..ATTEMPTS)
                .map(|_| draw())
                .find(|octets| !self.long.contains_key(octets))
                .map(Index::Long);
        }
        let is_free = |index: &u8| !is_used(peers, self.short[usize::from(*index)], Index::Short(*index));
        let index = match over {
            Over::Line => (0..SESSIONS).map(|step| (self.next + step) % SESSIONS).find(is_free),
            Over::Datagrams => {
                let mut start = [0];
                random.fill(&mut start);
                (0..=u8::MAX).map(|step| start[0].wrapping_add(step)).find(is_free)
            }
        };
        index.map(Index::Short)
    }
}

/// True if a session of its owner has an index.
fn is_used(peers: &[PeerState], owner: u32, index: Index) -> bool {
    peers.get(owner as usize).is_some_and(|peer| peer.indices().any(|used| used == index))
}

impl TwoWay {
    /// Returns an index that no session has. A long one identifies one of many peers; an end of an earlier version takes a
    /// short one only.
    pub(super) fn free_index(&mut self, takes_long: bool) -> Option<Index> {
        let is_long = takes_long && self.has_many();
        self.indices.free(self.over, is_long, &self.peers, &mut *self.random)
    }

    /// True if short indices would not identify the sessions of all peers.
    pub(super) fn has_many(&self) -> bool {
        self.peers.len() > FEW
    }
}
