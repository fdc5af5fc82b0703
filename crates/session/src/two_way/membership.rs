//! Peers that are added, changed and removed during operation.

use std::net::SocketAddr;

use thinair_wire::time::Instant;

use super::peer::PeerState;
use super::timers::PeerTimer;
use super::{BadPeers, Over, PEERS, PeerKeys, TwoWay};
use crate::canonical;
use crate::key::{Key, Keys};
use crate::two_way::credential::Credential;

impl TwoWay {
    /// Checks if these peers are valid as a whole; errors contain their numbers.
    pub fn check(&self, peers: &[PeerKeys]) -> Result<(), BadPeers> {
        super::check(self.over, peers)
    }

    /// Adds a peer, at the number of one that was [removed](Self::remove), or after all others.
    pub fn add(&mut self, now: Instant, number: usize, peer: PeerKeys) -> Result<(), BadPeers> {
        if number >= PEERS || number > self.peers.len() {
            return Err(BadPeers::Count(number + 1));
        }
        let mut peer = PeerState::new(now, self.over, peer);
        peer.rekey = self.rekey;
        peer.has_bare_keepalives = self.has_bare_keepalives;
        self.known.add(number, &peer.keys);
        match self.peers.get_mut(number) {
            Some(vacant) => {
                self.known.remove(number, &vacant.keys);
                *vacant = peer;
            }
            None => self.peers.push(peer),
        }
        self.schedule.set(number, Some(now));
        Ok(())
    }

    /// Removes a peer: its sessions end, and its keys decrypt nothing any more. Its number becomes vacant.
    pub fn remove(&mut self, now: Instant, number: usize) {
        // A vacant number has an unknown random key.
        let mut unknown = [0; 32];
        self.random.fill(&mut unknown);
        let vacant = PeerKeys { keys: Keys::one(Key::new(unknown)).into(), address: None, keepalive: None };
        if let Some(peer) = self.peers.get_mut(number) {
            self.known.remove(number, &peer.keys);
            *peer = PeerState::new(now, self.over, vacant);
            peer.timers.stop(PeerTimer::Try);
            self.known.add(number, &peer.keys);
            self.moves += 1;
        }
    }

    /// Updates a peer to its current configuration. Its session continues if its keys allow that. Returns
    /// true if something changed.
    pub fn change(&mut self, now: Instant, number: usize, to: &PeerKeys) -> Result<bool, BadPeers> {
        let Some(peer) = self.peers.get_mut(number) else { return Err(BadPeers::Count(number)) };
        let keepalive = to.keepalive.filter(|keepalive| !keepalive.is_zero());
        let is_same =
            |(known, new): (&Credential, &Credential)| (&known.key, &known.public) == (&new.key, &new.public);
        let new = Credential::of(&to.keys);
        let has_keys = new.len() == peer.keys.len() && peer.keys.iter().zip(&new).all(is_same);
        let differs = !has_keys || peer.keepalive != keepalive || peer.home != to.address.map(canonical);
        peer.keepalive = keepalive;
        if !has_keys {
            self.set_keys(now, number, &to.keys)?;
        }
        self.move_to(now, number, to.address);
        Ok(differs)
    }

    /// Sets a new configured address of a peer, and starts a key exchange there if there is no working
    /// session.
    pub fn move_to(&mut self, now: Instant, number: usize, home: Option<SocketAddr>) {
        let Some(peer) = self.peers.get_mut(number) else { return };
        let home = home.map(canonical);
        if home == peer.home || self.over == Over::Line {
            return;
        }
        peer.home = home;
        if home.is_some() {
            peer.address = home;
            peer.try_by(now);
            self.schedule.set(number, Some(now));
        }
    }
}
