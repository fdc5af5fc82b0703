//! Received messages that are stored to detect duplicates. RFC 7252, section 4.5.
//!
//! A ring of fixed size: a new message replaces the oldest. Responses are stored in a ring of octets.

use alloc::vec::Vec;

use thinair_wire::time::Instant;

use crate::ring::OctetSpan;
use crate::table::{Index, KeyedHasher};

/// Reply to a duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Nothing: it was Non-confirmable, or the application has not answered yet.
    Nothing,
    /// An Empty Acknowledgement.
    Acknowledgement,
    /// A Reset.
    Reset,
    /// The piggybacked response; `true` if the request may be processed again once its octets are overwritten.
    Octets(OctetSpan, bool),
}

/// A stored message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredMessage {
    /// Hash of the peer's address: the message is stored for longer than the state of the peer may be.
    peer: u64,
    message_id: u16,
    pub(crate) reply: Reply,
    expires: Instant,
}

/// Identifies a stored message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageRef {
    pub(crate) slot: u32,
    /// Hash of the peer's address.
    pub(crate) peer: u64,
    pub(crate) message_id: u16,
}

/// The latest messages.
#[derive(Clone, Debug)]
pub(crate) struct Remembered {
    seen: Vec<StoredMessage>,
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
        self.seen.capacity() * core::mem::size_of::<StoredMessage>() + self.index.capacity()
    }

    /// Returns the hash of a message.
    #[inline]
    pub(crate) fn hash(peer: u64, message_id: u16) -> u32 {
        // The key of the peer's hash is secret, Message IDs are chosen by the peer itself: no peer can choose its neighbors
        // in a bucket.
        KeyedHasher::of(peer, &message_id) as u32
    }

    /// Returns the message if it is stored and not too old.
    #[inline]
    pub(crate) fn find(
        &self,
        now: Instant,
        hash: u32,
        peer: u64,
        message_id: u16,
    ) -> Option<(MessageRef, Reply)> {
        let slot = self.index.find(hash, |slot| {
            self.seen
                .get(slot as usize)
                .is_some_and(|seen| seen.message_id == message_id && seen.peer == peer && seen.expires > now)
        })?;
        Some((MessageRef { slot, peer, message_id }, self.seen.get(slot as usize)?.reply))
    }

    /// Stores a message in place of the oldest one; true if that one was dropped too early.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        hash: u32,
        peer: u64,
        message_id: u16,
        expires: Instant,
    ) -> (MessageRef, bool) {
        let slot = self.next as u32;
        let seen = StoredMessage { peer, message_id, reply: Reply::Nothing, expires };
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
        (MessageRef { slot, peer, message_id }, early)
    }

    /// Sets the reply to later duplicates. No effect if the message is no longer stored.
    #[inline]
    pub(crate) fn set(&mut self, memory: MessageRef, reply: Reply) {
        if let Some(seen) = self.seen.get_mut(memory.slot as usize)
            && seen.peer == memory.peer
            && seen.message_id == memory.message_id
        {
            seen.reply = reply;
        }
    }

    /// Drops the message, so that a duplicate is processed again.
    pub(crate) fn forget(&mut self, memory: MessageRef) {
        if let Some(seen) = self.seen.get_mut(memory.slot as usize)
            && seen.peer == memory.peer
            && seen.message_id == memory.message_id
        {
            seen.expires = Instant::ZERO;
        }
    }
}
