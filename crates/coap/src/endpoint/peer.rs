//! What is known of peers.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::hash::Hash;
use core::time::Duration;

use thinair_wire::time::Instant;

use super::Endpoint;
use super::digest::ECHO;
use super::pace::Pace;
use super::stream::Stream;
use crate::congestion::{Algorithm, CongestionControl, Controller, Transmission};
use crate::table::{Index, Key, KeyedHasher, Order, Slab};

/// One peer.
pub(crate) struct Peer<P> {
    pub(crate) address: P,
    /// The next Message ID. They count: what counts is compressed well.
    pub(crate) message_id: u16,
    pub(crate) transmission: Transmission,
    pub(crate) controller: Controller,
    /// Messages that count against NSTART.
    pub(crate) in_flight: usize,
    /// Flights that wait for NSTART.
    pub(crate) waiting: VecDeque<Key>,
    /// The next Token.
    pub(crate) token: u64,
    /// The value that the peer has to echo, and whether it has. RFC 9175.
    pub(crate) echo: Option<[u8; ECHO]>,
    pub(crate) verified: bool,
    /// The stream to it, if it is not reached by datagrams.
    pub(crate) stream: Option<Box<Stream>>,
    /// What refers to the peer: it is not forgotten before that is over.
    pub(crate) pins: usize,
    pub(crate) pace: Pace,
    /// Acknowledgements that were told to `controller`.
    pub(crate) samples: u64,
    pub(crate) retransmissions: u64,
    /// When it was last measured.
    measured: Option<Instant>,
}

impl<P> Peer<P> {
    pub(crate) fn next_message_id(&mut self) -> u16 {
        let message_id = self.message_id;
        self.message_id = message_id.wrapping_add(1);
        message_id
    }
}

/// How long what was measured of a peer is kept, if there is room: "at least 255 s" (CoCoA).
const WARM: Duration = Duration::from_secs(255);

/// Peers by address; the one that was not heard of for longest is forgotten, and those that were measured lately last.
pub(crate) struct Peers<P> {
    slab: Slab<Peer<P>>,
    index: Index,
    /// Those that were not measured, those that were.
    use_order: [Order; 2],
    /// The latest time that is known here.
    pub(crate) now: Instant,
    hash_key: u64,
    /// The one that was heard of last.
    latest: Option<(P, Key)>,
}

impl<P: Copy + Eq + Hash> Peers<P> {
    pub(crate) fn new(bound: usize, hash_key: u64) -> Self {
        Self {
            slab: Slab::new(bound),
            index: Index::default(),
            use_order: [Order::default(), Order::default()],
            now: Instant::ZERO,
            hash_key,
            latest: None,
        }
    }

    /// Octets of memory.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        let orders: usize = self.use_order.iter().map(Order::capacity).sum();
        self.slab.capacity() + self.index.capacity() + orders
    }

    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<&Peer<P>> {
        self.slab.get(key)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut Peer<P>> {
        self.slab.get_mut(key)
    }

    pub(crate) const fn len(&self) -> usize {
        self.slab.len()
    }

    #[inline]
    fn hash(&self, address: &P) -> u32 {
        KeyedHasher::of(self.hash_key, address) as u32
    }

    /// The peer at `address`, if it is known.
    #[inline]
    pub(crate) fn find(&self, address: &P) -> Option<Key> {
        let slot = self.index.find(self.hash(address), |slot| {
            self.slab.at(slot).is_some_and(|(_, peer)| peer.address == *address)
        })?;
        self.slab.at(slot).map(|(key, _)| key)
    }

    #[inline]
    pub(crate) fn touch(&mut self, key: Key) {
        let measured = self.get(key).is_some_and(|peer| peer.measured.is_some());
        self.use_order[usize::from(measured)].move_to_back(key.slot);
    }

    /// The path to a peer was measured.
    pub(crate) fn measured(&mut self, now: Instant, key: Key) {
        let Some(peer) = self.slab.get_mut(key).filter(|peer| peer.controller.has_sample()) else { return };
        if peer.measured.replace(now).is_none() {
            self.use_order[0].remove(key.slot);
            self.use_order[1].push_back(key.slot);
        }
    }

    /// The one of an order that was not heard of for longest and that nothing refers to.
    fn oldest(&mut self, order: usize) -> Option<(Key, Option<Instant>)> {
        for _ in 0..self.slab.len() {
            let slot = self.use_order[order].front()?;
            let (key, peer) = self.slab.at(slot)?;
            if peer.pins == 0 {
                return Some((key, peer.measured));
            }
            // It is in use.
            self.use_order[order].move_to_back(slot);
        }
        None
    }

    /// Who is forgotten if there has to be room.
    fn victim(&mut self) -> Option<Key> {
        let measured = self.oldest(1);
        let is_warm = |(_, at): &(Key, Option<Instant>)| at.is_some_and(|at| self.now.since(at) < WARM);
        match measured.filter(|measured| !is_warm(measured)) {
            Some((key, _)) => Some(key),
            None => self.oldest(0).or(measured).map(|(key, _)| key),
        }
    }

    /// One more peer, in the place of the one that was not heard of for longest, if there has to be.
    fn insert(&mut self, peer: Peer<P>) -> Option<Key> {
        if self.slab.is_full() {
            let oldest = self.victim()?;
            self.index.remove(oldest.slot);
            let measured = self.get(oldest).is_some_and(|peer| peer.measured.is_some());
            self.use_order[usize::from(measured)].remove(oldest.slot);
            self.slab.remove(oldest);
            // Another one is about to be.
            self.latest = None;
        }
        let hash = self.hash(&peer.address);
        let key = self.slab.insert(peer).ok()?;
        self.index.insert(hash, key.slot);
        self.use_order[0].push_back(key.slot);
        Some(key)
    }

    pub(crate) fn pin(&mut self, key: Key) {
        if let Some(peer) = self.get_mut(key) {
            peer.pins += 1;
        }
    }

    pub(crate) fn unpin(&mut self, key: Key) {
        if let Some(peer) = self.get_mut(key) {
            peer.pins = peer.pins.saturating_sub(1);
        }
    }
}

/// What is known of the path to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// Its transmission parameters.
    pub transmission: Transmission,
    /// The first timeout of a message that were sent now, without dither.
    pub rto: Duration,
    /// SRTT, if the algorithm has one and there was a sample.
    pub srtt: Option<Duration>,
    /// Whether anything was measured.
    pub has_sample: bool,
    /// Messages that were acknowledged or answered.
    pub samples: u64,
    /// Messages that were sent again.
    pub retransmissions: u64,
    /// Messages that wait for their acknowledgement.
    pub in_flight: usize,
    /// Messages that wait for NSTART.
    pub waiting: usize,
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    /// What is known of the path to a peer; nothing if the peer is not known.
    pub fn peer(&self, now: Instant, peer: &P) -> Option<PeerStatus> {
        let peer = self.peers.get(self.peers.find(peer)?)?;
        Some(PeerStatus {
            transmission: peer.transmission,
            rto: peer.controller.rto(now, &peer.transmission),
            srtt: peer.controller.srtt(),
            has_sample: peer.controller.has_sample(),
            samples: peer.samples,
            retransmissions: peer.retransmissions,
            in_flight: peer.in_flight,
            waiting: peer.waiting.len(),
        })
    }

    /// The congestion control of a peer, to look at.
    pub fn controller(&self, peer: &P) -> Option<&Controller> {
        Some(&self.peers.get(self.peers.find(peer)?)?.controller)
    }

    /// Peers of which something is known.
    pub const fn peers(&self) -> usize {
        self.peers.len()
    }

    /// Sets the transmission parameters of a peer, for messages that are sent from now on, and forgets what was measured.
    /// False if there is no room for one more peer.
    pub fn set_peer(&mut self, peer: P, transmission: Transmission, congestion: &Algorithm) -> bool {
        let Some(key) = self.peer_key(peer) else { return false };
        if let Some(peer) = self.peers.get_mut(key) {
            peer.controller = Controller::new(congestion, &transmission);
            peer.transmission = transmission;
        }
        true
    }

    /// The peer at `address`, known from now on.
    #[inline]
    pub(super) fn peer_key(&mut self, address: P) -> Option<Key> {
        if let Some((_, key)) = self.peers.latest.filter(|(latest, _)| *latest == address) {
            return Some(key);
        }
        self.other_peer_key(address)
    }

    fn other_peer_key(&mut self, address: P) -> Option<Key> {
        let key = match self.peers.find(&address) {
            Some(key) => {
                self.peers.touch(key);
                key
            }
            None => self.new_peer(address)?,
        };
        self.peers.latest = Some((address, key));
        Some(key)
    }

    #[cold]
    fn new_peer(&mut self, address: P) -> Option<Key> {
        let random = self.random();
        let transmission = self.config.timing.transmission;
        self.peers.insert(Peer {
            address,
            message_id: random as u16,
            transmission,
            controller: Controller::new(&self.config.timing.congestion, &transmission),
            in_flight: 0,
            waiting: VecDeque::new(),
            token: random >> 16,
            echo: None,
            verified: false,
            stream: None,
            pins: 0,
            pace: Pace::default(),
            samples: 0,
            retransmissions: 0,
            measured: None,
        })
    }
}
