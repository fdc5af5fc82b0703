//! Bounded tables: reusable slots, an index by hash, an order of use.
//!
//! All of them grow with their content, up to a bound, and allocate nothing once they have grown.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// Absence of a slot.
const NONE: u32 = u32::MAX;

/// A slot and its generation. A later use of a slot has another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SlotKey {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// Values in slots.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<SlabSlot<T>>,
    free: u32,
    len: usize,
    bound: usize,
}

#[derive(Clone, Debug)]
struct SlabSlot<T> {
    generation: u32,
    next_free: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    /// Creates a slab of at most `bound` values.
    pub(crate) fn new(bound: usize) -> Self {
        Self { slots: Vec::new(), free: NONE, len: 0, bound: bound.min(NONE as usize - 1) }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Octets of memory.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.slots.capacity() * core::mem::size_of::<SlabSlot<T>>()
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.len >= self.bound
    }

    /// Inserts a value and returns its key; returns the value if there is no free slot.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> Result<SlotKey, T> {
        if self.is_full() {
            return Err(value);
        }
        self.len += 1;
        if let Some(slot) = self.slots.get_mut(self.free as usize) {
            let key = SlotKey { slot: self.free, generation: slot.generation };
            self.free = slot.next_free;
            slot.value = Some(value);
            return Ok(key);
        }
        let key = SlotKey { slot: self.slots.len() as u32, generation: 0 };
        self.slots.push(SlabSlot { generation: 0, next_free: NONE, value: Some(value) });
        Ok(key)
    }

    #[inline]
    pub(crate) fn get(&self, key: SlotKey) -> Option<&T> {
        let slot = self.slots.get(key.slot as usize).filter(|slot| slot.generation == key.generation)?;
        slot.value.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: SlotKey) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.slot as usize).filter(|slot| slot.generation == key.generation)?;
        slot.value.as_mut()
    }

    #[inline]
    pub(crate) fn remove(&mut self, key: SlotKey) -> Option<T> {
        let slot = self.slots.get_mut(key.slot as usize).filter(|slot| slot.generation == key.generation)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        slot.next_free = self.free;
        self.free = key.slot;
        self.len -= 1;
        Some(value)
    }

    /// Returns the value in a slot, in any generation.
    #[inline]
    pub(crate) fn at(&self, slot: u32) -> Option<(SlotKey, &T)> {
        let SlabSlot { generation, value, .. } = self.slots.get(slot as usize)?;
        Some((SlotKey { slot, generation: *generation }, value.as_ref()?))
    }

    /// All values, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SlotKey, &T)> {
        (0..self.slots.len() as u32).filter_map(|slot| self.at(slot))
    }
}

/// Slots by the hash of their content. The index does not store keys: the caller compares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// First slot of each bucket; the number of buckets is a power of two.
    buckets: Vec<u32>,
    /// For each slot: next slot of its bucket, and hash.
    links: Vec<(u32, u32)>,
    len: usize,
}

impl Index {
    /// Octets of memory.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.buckets.capacity() * 4 + self.links.capacity() * 8
    }

    /// Number of slots in the fullest bucket.
    #[cfg(all(test, feature = "oscore"))]
    pub(crate) fn longest_bucket(&self) -> usize {
        let next =
            |slot: &u32| self.links.get(*slot as usize).map(|(next, _)| *next).filter(|next| *next != NONE);
        let len =
            |first: &u32| core::iter::successors(Some(*first).filter(|first| *first != NONE), next).count();
        self.buckets.iter().map(len).max().unwrap_or(0)
    }

    #[inline]
    fn bucket(&self, hash: u32) -> usize {
        hash as usize & (self.buckets.len().wrapping_sub(1))
    }

    /// Returns the first slot with this hash for which `is` returns true.
    #[inline]
    pub(crate) fn find(&self, hash: u32, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut slot = *self.buckets.get(self.bucket(hash))?;
        while let Some(&(next, its_hash)) = self.links.get(slot as usize) {
            if its_hash == hash && is(slot) {
                return Some(slot);
            }
            slot = next;
        }
        None
    }

    /// Inserts a slot, which must not be in the index.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u32, slot: u32) {
        if self.len >= self.buckets.len() {
            self.grow();
        }
        if self.links.len() <= slot as usize {
            self.extend(slot);
        }
        let bucket = self.bucket(hash);
        self.links[slot as usize] = (self.buckets[bucket], hash);
        self.buckets[bucket] = slot;
        self.len += 1;
    }

    /// Removes a slot. No effect if the slot is not in the index.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(&(after, hash)) = self.links.get(slot as usize) else { return };
        let bucket = self.bucket(hash);
        let Some(&first) = self.buckets.get(bucket) else { return };
        if first == slot {
            self.buckets[bucket] = after;
            self.len -= 1;
            return;
        }
        let mut at = first;
        while let Some(&(next, _)) = self.links.get(at as usize) {
            if next == slot {
                self.links[at as usize].0 = after;
                self.len -= 1;
                return;
            }
            at = next;
        }
    }

    #[cold]
    fn extend(&mut self, slot: u32) {
        self.links.resize(slot as usize + 1, (NONE, 0));
    }

    #[cold]
    fn grow(&mut self) {
        let count = (self.buckets.len() * 2).max(8);
        let old = core::mem::replace(&mut self.buckets, alloc::vec![NONE; count]);
        for mut slot in old {
            while let Some(&(next, hash)) = self.links.get(slot as usize) {
                let bucket = self.bucket(hash);
                self.links[slot as usize].0 = self.buckets[bucket];
                self.buckets[bucket] = slot;
                slot = next;
            }
        }
    }
}

/// An ordered list of slots: inserted at the back, removed anywhere.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// For each slot: previous and next slot.
    links: Vec<(u32, u32)>,
    front: u32,
    back: u32,
}

impl Default for Order {
    fn default() -> Self {
        Self { links: Vec::new(), front: NONE, back: NONE }
    }
}

impl Order {
    /// Octets of memory.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.links.capacity() * 8
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<u32> {
        (self.front != NONE).then_some(self.front)
    }

    /// Iterates from the front to the back.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        core::iter::successors(self.front(), |&slot| {
            let next = self.links.get(slot as usize)?.1;
            (next != NONE).then_some(next)
        })
    }

    /// Appends a slot, which must not be in the order.
    #[inline]
    pub(crate) fn push_back(&mut self, slot: u32) {
        if self.links.len() <= slot as usize {
            self.extend(slot);
        }
        self.links[slot as usize] = (self.back, NONE);
        match self.links.get_mut(self.back as usize) {
            Some(back) => back.1 = slot,
            None => self.front = slot,
        }
        self.back = slot;
    }

    #[cold]
    fn extend(&mut self, slot: u32) {
        self.links.resize(slot as usize + 1, (NONE, NONE));
    }

    /// Removes a slot, which must be in the order.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(&(before, behind)) = self.links.get(slot as usize) else { return };
        match self.links.get_mut(before as usize) {
            Some(before) => before.1 = behind,
            None => self.front = behind,
        }
        match self.links.get_mut(behind as usize) {
            Some(behind) => behind.0 = before,
            None => self.back = before,
        }
    }

    #[inline]
    pub(crate) fn move_to_back(&mut self, slot: u32) {
        if self.back != slot {
            self.remove(slot);
            self.push_back(slot);
        }
    }
}

/// Keyed hash: without the key, colliding values cannot be chosen.
///
/// One multiplication for each integer; only for spreading slots over buckets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyedHasher(u64);

impl KeyedHasher {
    #[inline]
    pub(crate) fn of(key: u64, value: &impl Hash) -> u64 {
        let mut hasher = Self(key);
        value.hash(&mut hasher);
        hasher.finish()
    }

    #[inline]
    fn mix(&mut self, word: u64) {
        // Both halves of a product of 128 bits (wyhash).
        let product = u128::from(self.0 ^ word) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
        self.0 = (product as u64) ^ (product >> 64) as u64;
        self.0 = self.0.rotate_left(23).wrapping_add(word);
    }
}

impl Hasher for KeyedHasher {
    #[inline]
    fn write(&mut self, octets: &[u8]) {
        let mut chunks = octets.chunks_exact(8);
        for chunk in &mut chunks {
            self.mix(u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            self.mix(rest.iter().fold(0, |word, &octet| word << 8 | u64::from(octet)));
        }
    }

    #[inline]
    fn write_u8(&mut self, i: u8) {
        self.mix(u64::from(i));
    }

    #[inline]
    fn write_u16(&mut self, i: u16) {
        self.mix(u64::from(i));
    }

    #[inline]
    fn write_u32(&mut self, i: u32) {
        self.mix(u64::from(i));
    }

    #[inline]
    fn write_u64(&mut self, i: u64) {
        self.mix(i);
    }

    #[inline]
    fn write_usize(&mut self, i: usize) {
        self.mix(i as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        let product = u128::from(self.0) * u128::from(0xd6e8_feb8_6659_fd93_u64);
        (product as u64) ^ (product >> 64) as u64
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_slot_that_is_used_again_has_another_key() {
        let mut slab = Slab::new(2);
        let first = slab.insert('a').unwrap();
        slab.insert('b').unwrap();
        assert_eq!(slab.insert('c'), Err('c'));
        assert_eq!(slab.remove(first), Some('a'));
        let again = slab.insert('c').unwrap();
        assert_eq!(again.slot, first.slot);
        assert_eq!((slab.get(first), slab.get(again)), (None, Some(&'c')));
        assert_eq!(slab.remove(first), None);
    }

    proptest! {
        #[test]
        fn an_index_finds_what_a_map_finds(steps in vec((any::<bool>(), 0..40_u32), 0..200)) {
            let mut index = Index::default();
            let mut map = BTreeMap::new();
            // Colliding hashes.
            let hash = |slot: u32| slot % 7;
            for (insert, slot) in steps {
                if insert && !map.contains_key(&slot) {
                    index.insert(hash(slot), slot);
                    map.insert(slot, ());
                } else if !insert {
                    index.remove(slot);
                    map.remove(&slot);
                }
                for slot in 0..40 {
                    let found = index.find(hash(slot), |other| other == slot);
                    prop_assert_eq!(found.is_some(), map.contains_key(&slot));
                }
            }
        }

        #[test]
        fn an_order_is_that_of_coming(steps in vec((0..3_u8, 0..12_u32), 0..100)) {
            let mut order = Order::default();
            let mut expected: std::vec::Vec<u32> = std::vec![];
            for (step, slot) in steps {
                let within = expected.contains(&slot);
                match step {
                    0 if !within => {
                        order.push_back(slot);
                        expected.push(slot);
                    }
                    1 if within => {
                        order.remove(slot);
                        expected.retain(|&other| other != slot);
                    }
                    2 if within => {
                        order.move_to_back(slot);
                        expected.retain(|&other| other != slot);
                        expected.push(slot);
                    }
                    _ => {}
                }
                prop_assert_eq!(order.iter().collect::<std::vec::Vec<_>>(), expected.clone());
            }
        }
    }
}
