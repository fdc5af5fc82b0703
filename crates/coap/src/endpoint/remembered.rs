//! Messages of peers that were seen, so that duplicates are told. RFC 7252, section 4.5.
//!
//! A ring: memory is bounded and known, the oldest is forgotten for a new one. Responses lie in a ring of octets.

use alloc::vec::Vec;

use thinair_wire::time::Instant;

use crate::ring::Span;
use crate::table::{Index, Key, KeyedHasher};

/// What a duplicate is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Nothing: it was not confirmable, or the application has not answered yet.
    Nothing,
    /// An Empty Acknowledgement.
    Acknowledgement,
    /// A Reset.
    Reset,
    /// The response that was piggybacked; `true` if the request may be done again once its octets are gone.
    Octets(Span, bool),
}

/// One message that was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    peer: Key,
    message_id: u16,
    pub(crate) reply: Reply,
    expires: Instant,
}

/// Which message, as long as it is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) slot: u32,
    pub(crate) peer: Key,
    pub(crate) message_id: u16,
}

/// The latest messages.
#[derive(Clone, Debug)]
pub(crate) struct Remembered {
    seen: Vec<Seen>,
    index: Index,
    bound: usize,
    next: usize,
}

impl Remembered {
    pub(crate) fn new(bound: usize) -> Self {
        Self { seen: Vec::new(), index: Index::default(), bound: bound.clamp(1, 1 << 30), next: 0 }
    }

    /// Octets of memory.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.seen.capacity() * core::mem::size_of::<Seen>() + self.index.capacity()
    }

    /// Under which a message is found.
    #[inline]
    pub(crate) fn hash(peer: Key, message_id: u16) -> u32 {
        // Slots and generations are ours, Message IDs are the peer's own: nobody can choose who shares its bucket.
        KeyedHasher::of(u64::from(peer.slot) << 32 | u64::from(peer.generation), &message_id) as u32
    }

    /// The message, if it was seen and is not too old.
    #[inline]
    pub(crate) fn find(
        &self,
        now: Instant,
        hash: u32,
        peer: Key,
        message_id: u16,
    ) -> Option<(Memory, Reply)> {
        let slot = self.index.find(hash, |slot| {
            self.seen
                .get(slot as usize)
                .is_some_and(|seen| seen.message_id == message_id && seen.peer == peer && seen.expires > now)
        })?;
        Some((Memory { slot, peer, message_id }, self.seen.get(slot as usize)?.reply))
    }

    /// Remembers a message in the place of the oldest one; says whether that was too early.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        hash: u32,
        peer: Key,
        message_id: u16,
        expires: Instant,
    ) -> (Memory, bool) {
        let slot = self.next as u32;
        let seen = Seen { peer, message_id, reply: Reply::Nothing, expires };
        let mut early = false;
        match self.seen.get_mut(self.next) {
            Some(place) => {
                early = place.expires > now;
                self.index.remove(slot);
                *place = seen;
            }
            None => self.seen.push(seen),
        }
        self.index.insert(hash, slot);
        self.next = if self.next + 1 < self.bound { self.next + 1 } else { 0 };
        (Memory { slot, peer, message_id }, early)
    }

    /// What a duplicate is answered with from now on. Nothing happens if the message was forgotten.
    #[inline]
    pub(crate) fn set(&mut self, memory: Memory, reply: Reply) {
        if let Some(seen) = self.seen.get_mut(memory.slot as usize)
            && seen.peer == memory.peer
            && seen.message_id == memory.message_id
        {
            seen.reply = reply;
        }
    }

    /// The message may be acted on again.
    pub(crate) fn forget(&mut self, memory: Memory) {
        if let Some(seen) = self.seen.get_mut(memory.slot as usize)
            && seen.peer == memory.peer
            && seen.message_id == memory.message_id
        {
            seen.expires = Instant::ZERO;
        }
    }
}
