//! Restarts: addresses that are kept across them, farewells, and peers that do not answer.

use std::net::SocketAddr;

use thinair_wire::time::Instant;

use super::TwoWay;
use super::peer::{PeerState, Unanswered};
use crate::{AddressPair, KeyId, canonical};

/// Last address of a peer without a configured address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    /// Number of the peer.
    pub peer: usize,
    /// Id of the key used first in a key exchange.
    pub key: KeyId,
    /// Source of its last authenticated datagram, and the own address at which it has asked for the session.
    pub addresses: AddressPair,
}

impl TwoWay {
    /// Sets the address of a peer before this start: up to 6 requests are sent there if it has no configured
    /// address, otherwise one before those to the configured one. Call it before the first
    /// [`poll`](crate::Seal::poll).
    pub fn remember(&mut self, now: Instant, number: usize, addresses: AddressPair) {
        if let Some(peer) = self.peers.get_mut(number) {
            peer.remember(now, addresses.canonical());
            self.schedule.set(number, Some(now));
        }
    }

    /// Returns addresses to [remember](Self::remember): authenticated ones that are not configured.
    pub fn whereabouts(&self) -> impl Iterator<Item = Whereabouts> {
        let at = |(peer, known): (usize, &PeerState)| {
            let pair = known.pair()?;
            (Some(pair.peer) != known.home).then_some(Whereabouts {
                peer,
                key: known.keys[0].id,
                addresses: pair,
            })
        };
        self.peers.iter().enumerate().filter_map(at)
    }

    /// Changes with every change of [`whereabouts`](Self::whereabouts).
    pub fn moves(&self) -> u64 {
        self.moves
    }

    pub(crate) fn key(&self, peer: usize) -> Option<KeyId> {
        Some(self.peers.get(peer)?.keys[0].id)
    }

    /// Returns the peer that may be at `from`, without proof: the only one there, or else the only one
    /// without a session. Of many peers none is looked for: anybody can cause the search.
    pub(super) fn who_may(&self, from: Option<SocketAddr>) -> Option<usize> {
        let only = |test: &dyn Fn(&PeerState) -> bool| {
            let mut fitting = self.peers.iter().enumerate().filter(|(_, peer)| test(peer));
            let first = fitting.next()?;
            fitting.next().is_none().then_some(first.0)
        };
        if self.has_many() {
            return None;
        }
        only(&|peer| from.is_some() && (peer.address == from || peer.home == from))
            .or_else(|| only(&|peer| peer.current().is_none()))
    }

    pub(crate) fn note_unreachable(&mut self, now: Instant, address: SocketAddr) {
        let address = canonical(address);
        for (number, peer) in self.peers.iter_mut().enumerate() {
            if peer.address == Some(address) && peer.current().is_some() {
                peer.suspect(now);
                self.schedule.by(number, peer.timers.first());
            }
        }
    }

    pub(crate) fn poll_unanswered(&mut self) -> Option<(usize, Unanswered)> {
        while let Some(number) = self.unanswered.pop_front() {
            if let Some(unanswered) = self.peers.get_mut(number).and_then(|peer| peer.unanswered.take()) {
                return Some((number, unanswered));
            }
        }
        None
    }

    pub(crate) fn farewell(&mut self, now: Instant) {
        for (number, peer) in self.peers.iter_mut().enumerate() {
            peer.part(now);
            self.schedule.set(number, peer.timers.first());
        }
    }
}
