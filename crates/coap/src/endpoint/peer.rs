//! State of peers.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::hash::Hash;
use core::time::Duration;

use thinair_wire::time::Instant;

use super::Endpoint;
use super::digest::ECHO;
use super::pace::PeerPace;
use super::stream::StreamState;
use crate::congestion::{Algorithm, CongestionControl, Controller, Transmission};
use crate::event::Gone;
use crate::table::{Index, KeyedHasher, Order, Slab, SlotKey};

/// One peer.
pub(crate) struct PeerState<P> {
    pub(crate) address: P,
    /// Hash of the address, equal for its next state.
    pub(crate) hash: u64,
    /// Next Message ID. Message IDs are consecutive, which compresses well.
    pub(crate) message_id: u16,
    pub(crate) transmission: Transmission,
    pub(crate) controller: Controller,
    /// Messages that count against NSTART.
    pub(crate) in_flight: usize,
    /// Flights that wait for NSTART.
    pub(crate) waiting: VecDeque<SlotKey>,
    /// Next Token.
    pub(crate) token: u64,
    /// Value that the peer has to echo, and whether it has. RFC 9175.
    pub(crate) echo: Option<[u8; ECHO]>,
    pub(crate) verified: bool,
    /// Stream to the peer, unless it is reached by datagrams.
    pub(crate) stream: Option<Box<StreamState>>,
    /// Number of references to the peer, which keep it from being dropped.
    pub(crate) pins: usize,
    pub(crate) pace: PeerPace,
    /// Acknowledgements given to `controller`.
    pub(crate) samples: u64,
    pub(crate) retransmissions: u64,
    /// Time of the latest measurement.
    measured: Option<Instant>,
}

impl<P> PeerState<P> {
    pub(crate) fn next_message_id(&mut self) -> u16 {
        let message_id = self.message_id;
        self.message_id = message_id.wrapping_add(1);
        message_id
    }
}

/// Time for which the measurement of a peer is kept if there is room: "at least 255 s" (CoCoA).
const WARM: Duration = Duration::from_secs(255);

/// Peers by address. The least recently active one is dropped first; recently measured ones are dropped last.
pub(crate) struct Peers<P> {
    slab: Slab<PeerState<P>>,
    index: Index,
    /// Slots of peers without and with a measurement.
    use_order: [Order; 2],
    /// Latest time.
    pub(crate) now: Instant,
    hash_key: u64,
    /// Most recently active peer.
    latest: Option<(P, SlotKey)>,
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
    pub(crate) fn get(&self, key: SlotKey) -> Option<&PeerState<P>> {
        self.slab.get(key)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: SlotKey) -> Option<&mut PeerState<P>> {
        self.slab.get_mut(key)
    }

    pub(crate) const fn len(&self) -> usize {
        self.slab.len()
    }

    #[inline]
    fn hash(&self, address: &P) -> u64 {
        KeyedHasher::of(self.hash_key, address)
    }

    /// Returns the peer at `address`, if it has a state.
    #[inline]
    pub(crate) fn find(&self, address: &P) -> Option<SlotKey> {
        let slot = self.index.find(self.hash(address) as u32, |slot| {
            self.slab.at(slot).is_some_and(|(_, peer)| peer.address == *address)
        })?;
        self.slab.at(slot).map(|(key, _)| key)
    }

    #[inline]
    pub(crate) fn touch(&mut self, key: SlotKey) {
        let measured = self.get(key).is_some_and(|peer| peer.measured.is_some());
        self.use_order[usize::from(measured)].move_to_back(key.slot);
    }

    /// Records a measurement of the path to a peer.
    pub(crate) fn measured(&mut self, now: Instant, key: SlotKey) {
        let Some(peer) = self.slab.get_mut(key).filter(|peer| peer.controller.has_sample()) else { return };
        if peer.measured.replace(now).is_none() {
            self.use_order[0].remove(key.slot);
            self.use_order[1].push_back(key.slot);
        }
    }

    /// Returns the least recently active peer of an order that nothing refers to.
    fn oldest(&mut self, order: usize) -> Option<(SlotKey, Option<Instant>)> {
        for _ in 0..self.slab.len() {
            let slot = self.use_order[order].front()?;
            let (key, peer) = self.slab.at(slot)?;
            if peer.pins == 0 {
                return Some((key, peer.measured));
            }
            // Referenced.
            self.use_order[order].move_to_back(slot);
        }
        None
    }

    /// Returns the peer to drop if there is no room.
    fn victim(&mut self) -> Option<SlotKey> {
        let measured = self.oldest(1);
        let is_warm = |(_, at): &(SlotKey, Option<Instant>)| at.is_some_and(|at| self.now.since(at) < WARM);
        match measured.filter(|measured| !is_warm(measured)) {
            Some((key, _)) => Some(key),
            None => self.oldest(0).or(measured).map(|(key, _)| key),
        }
    }

    /// Inserts a peer, in place of the least recently active one if there is no room.
    fn insert(&mut self, peer: PeerState<P>) -> Option<SlotKey> {
        if self.slab.is_full() {
            let oldest = self.victim()?;
            self.index.remove(oldest.slot);
            let measured = self.get(oldest).is_some_and(|peer| peer.measured.is_some());
            self.use_order[usize::from(measured)].remove(oldest.slot);
            self.slab.remove(oldest);
            // The latest peer changes.
            self.latest = None;
        }
        let hash = peer.hash;
        let key = self.slab.insert(peer).ok()?;
        self.index.insert(hash as u32, key.slot);
        self.use_order[0].push_back(key.slot);
        Some(key)
    }

    pub(crate) fn pin(&mut self, key: SlotKey) {
        if let Some(peer) = self.get_mut(key) {
            peer.pins += 1;
        }
    }

    pub(crate) fn unpin(&mut self, key: SlotKey) {
        if let Some(peer) = self.get_mut(key) {
            peer.pins = peer.pins.saturating_sub(1);
        }
    }
}

/// State of the path to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// Transmission parameters.
    pub transmission: Transmission,
    /// First timeout of a message that was sent now, without dither.
    pub rto: Duration,
    /// SRTT, if the algorithm has one and there was a sample.
    pub srtt: Option<Duration>,
    /// True if there is a measurement.
    pub has_sample: bool,
    /// Messages that were acknowledged or answered.
    pub samples: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Messages that wait for their acknowledgement.
    pub in_flight: usize,
    /// Messages that wait for NSTART.
    pub waiting: usize,
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    /// Returns the state of the path to a peer; `None` if the peer has no state.
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

    /// Returns the congestion control of a peer, for inspection.
    pub fn controller(&self, peer: &P) -> Option<&Controller> {
        Some(&self.peers.get(self.peers.find(peer)?)?.controller)
    }

    /// Returns the number of peers with a state.
    pub const fn peers(&self) -> usize {
        self.peers.len()
    }

    /// Sets the transmission parameters of a peer, for messages that are sent from now on, and drops its measurements.
    /// False if there is no room for one more peer.
    pub fn set_peer(&mut self, peer: P, transmission: Transmission, congestion: &Algorithm) -> bool {
        let Some(key) = self.peer_key(peer) else { return false };
        if let Some(peer) = self.peers.get_mut(key) {
            peer.controller = Controller::new(congestion, &transmission);
            peer.transmission = transmission;
        }
        true
    }

    /// Sets whether the address of a peer is verified, as by the handshake of DTLS. False if there is no room for one more peer.
    pub fn set_verified(&mut self, now: Instant, peer: P, is_verified: bool) -> bool {
        self.peers.now = now;
        let Some(key) = self.peer_key(peer) else { return false };
        if let Some(peer) = self.peers.get_mut(key) {
            peer.verified = is_verified;
        }
        true
    }

    /// Registers that a peer of datagrams is gone, as a session of DTLS that is over: requests under way fail, and observers are
    /// removed.
    pub fn forget_peer(&mut self, now: Instant, peer: &P) {
        if let Some(key) = self.peers.find(peer) {
            self.fail_calls(now, key);
            self.remove_observers(key, Gone::Closed);
        }
    }

    /// Returns the peer at `address`, and creates it if necessary.
    #[inline]
    pub(super) fn peer_key(&mut self, address: P) -> Option<SlotKey> {
        if let Some((_, key)) = self.peers.latest.filter(|(latest, _)| *latest == address) {
            return Some(key);
        }
        self.other_peer_key(address)
    }

    fn other_peer_key(&mut self, address: P) -> Option<SlotKey> {
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
    fn new_peer(&mut self, address: P) -> Option<SlotKey> {
        let random = self.random();
        let transmission = self.config.timing.transmission;
        self.peers.insert(PeerState {
            address,
            hash: self.peers.hash(&address),
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
            pace: PeerPace::default(),
            samples: 0,
            retransmissions: 0,
            measured: None,
        })
    }
}
