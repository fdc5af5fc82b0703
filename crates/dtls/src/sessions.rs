//! Sessions of a server: by number, by connection ID, by address.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use thinair_wire::time::Instant;

use crate::association::Association;
use crate::cid::Cid;
use crate::handshake::Handshake;
use crate::resumption::SESSION_ID;

/// Octets of a connection ID of a server.
pub(crate) const CID: usize = 2;

/// Identifies a session of a server. Numbers of sessions that are over are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    generation: u32,
    slot: u16,
}

/// A session, or a handshake that makes one.
pub(crate) struct Session<P> {
    pub(crate) peer: P,
    /// Place of the identity among those of the server.
    pub(crate) identity: u32,
    /// Session ID, if the session can be resumed.
    pub(crate) session_id: Option<[u8; SESSION_ID]>,
    /// Time of the latest record.
    pub(crate) used: Instant,
    pub(crate) is_established: bool,
    /// Keys, once ClientKeyExchange has arrived.
    pub(crate) association: Option<Association>,
    /// Handshake: until the client has sent data, as it may need the last flight again.
    pub(crate) handshake: Option<Box<Handshake>>,
}

struct Slot<P> {
    generation: u32,
    session: Option<Session<P>>,
}

/// Sessions at an address that are found by it.
#[derive(Clone, Copy, Default)]
struct AtAddress {
    /// Session whose records have no connection ID.
    established: Option<u16>,
    /// Handshake.
    pending: Option<u16>,
}

pub(crate) struct Sessions<P> {
    slots: Vec<Slot<P>>,
    free: Vec<u16>,
    by_address: BTreeMap<P, AtAddress>,
    /// Slots that have a handshake, in the order of their starts.
    handshakes: Vec<u16>,
    established: usize,
    /// Difference of connection IDs to slots, so that those of an earlier server are of none, most probably.
    mask: u16,
}

impl<P: Copy + Ord> Sessions<P> {
    pub(crate) const fn new(mask: u16) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_address: BTreeMap::new(),
            handshakes: Vec::new(),
            established: 0,
            mask,
        }
    }

    /// Returns the number of established sessions.
    pub(crate) const fn established(&self) -> usize {
        self.established
    }

    /// Returns the slots that have a handshake, in the order of their starts.
    pub(crate) fn handshakes(&self) -> &[u16] {
        &self.handshakes
    }

    /// Adds the handshake of a client. `None` if there are as many sessions as there are connection IDs.
    pub(crate) fn insert(&mut self, peer: P, now: Instant, handshake: Handshake) -> Option<u16> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u16::try_from(self.slots.len()).ok()?;
                self.slots.push(Slot { generation: 0, session: None });
                slot
            }
        };
        let place = self.slots.get_mut(usize::from(slot))?;
        place.generation = place.generation.wrapping_add(1);
        place.session = Some(Session {
            peer,
            identity: 0,
            session_id: handshake.session_id.as_slice().try_into().ok(),
            used: now,
            is_established: false,
            association: None,
            handshake: Some(Box::new(handshake)),
        });
        self.handshakes.push(slot);
        self.by_address.entry(peer).or_default().pending = Some(slot);
        Some(slot)
    }

    /// Returns the connection ID of a slot.
    pub(crate) fn cid(&self, slot: u16) -> Cid {
        Cid::new(&(slot ^ self.mask).to_be_bytes()).unwrap_or(Cid::EMPTY)
    }

    /// Returns the slot of a connection ID.
    pub(crate) fn slot(&self, cid: &Cid) -> Option<u16> {
        Some(u16::from_be_bytes(cid.octets().try_into().ok()?) ^ self.mask)
    }

    pub(crate) fn id(&self, slot: u16) -> SessionId {
        let generation = self.slots.get(usize::from(slot)).map_or(0, |slot| slot.generation);
        SessionId { generation, slot }
    }

    /// Returns the slot of a session, if it is established.
    pub(crate) fn find(&self, id: SessionId) -> Option<u16> {
        let session = self.get(id.slot)?;
        (session.is_established && self.id(id.slot) == id).then_some(id.slot)
    }

    pub(crate) fn get(&self, slot: u16) -> Option<&Session<P>> {
        self.slots.get(usize::from(slot))?.session.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: u16) -> Option<&mut Session<P>> {
        self.slots.get_mut(usize::from(slot))?.session.as_mut()
    }

    /// Returns the session at an address whose records have no connection ID.
    pub(crate) fn established_at(&self, peer: &P) -> Option<u16> {
        self.by_address.get(peer)?.established
    }

    /// Returns the handshake at an address.
    pub(crate) fn pending_at(&self, peer: &P) -> Option<u16> {
        self.by_address.get(peer)?.pending
    }

    /// Makes a session of a handshake. Returns the session that was found by the same address.
    pub(crate) fn establish(&mut self, slot: u16) -> Option<u16> {
        let session = self.get_mut(slot).filter(|session| !session.is_established)?;
        session.is_established = true;
        let peer = session.peer;
        let has_cid = session.association.as_ref().is_some_and(Association::has_read_cid);
        self.established += 1;
        let at = self.by_address.entry(peer).or_default();
        at.pending = None;
        if has_cid {
            self.tidy(&peer);
            return None;
        }
        at.established.replace(slot)
    }

    /// Ends the handshake of a session that is established.
    pub(crate) fn confirm(&mut self, slot: u16) {
        if let Some(session) = self.get_mut(slot)
            && session.handshake.take().is_some()
        {
            self.handshakes.retain(|other| *other != slot);
        }
    }

    /// Removes a session or handshake.
    pub(crate) fn remove(&mut self, slot: u16) -> Option<Session<P>> {
        let session = self.slots.get_mut(usize::from(slot))?.session.take()?;
        self.free.push(slot);
        if session.handshake.is_some() {
            self.handshakes.retain(|other| *other != slot);
        }
        self.established -= usize::from(session.is_established);
        if let Some(at) = self.by_address.get_mut(&session.peer) {
            for place in [&mut at.established, &mut at.pending] {
                if *place == Some(slot) {
                    *place = None;
                }
            }
        }
        self.tidy(&session.peer);
        Some(session)
    }

    fn tidy(&mut self, peer: &P) {
        if self.by_address.get(peer).is_some_and(|at| at.established.is_none() && at.pending.is_none()) {
            self.by_address.remove(peer);
        }
    }

    /// Returns the least recently used session.
    pub(crate) fn least_recently_used(&self) -> Option<u16> {
        let used = self.slots.iter().zip(0..).filter_map(|(slot, number)| {
            let session = slot.session.as_ref().filter(|session| session.is_established)?;
            Some((session.used, number))
        });
        used.min().map(|(_, slot)| slot)
    }

    /// Returns all established sessions.
    pub(crate) fn all(&self) -> Vec<SessionId> {
        (0..=u16::MAX)
            .take(self.slots.len())
            .filter(|slot| self.get(*slot).is_some_and(|session| session.is_established))
            .map(|slot| self.id(slot))
            .collect()
    }
}

#[cfg(test)]
impl<P> Sessions<P> {
    /// Octets of a slot, and of its place among the free ones.
    pub(crate) const fn slot_octets() -> usize {
        size_of::<Slot<P>>() + size_of::<u16>()
    }
}
