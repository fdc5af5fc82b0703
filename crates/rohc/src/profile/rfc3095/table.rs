//! Translation tables: the item of each index. RFC 3095, section 5.8.1, as corrected by RFC 4815, section 5.6 (an index belongs
//! to a header, not to a type).
//!
//! A context without extension headers holds no table. Others take blocks from a pool whose size the channel sets at start. One
//! block has room for four headers of 128 octets in total.

use super::list::Item;
use crate::id::ProfileId;
use crate::storage::{Room, Slots};
use thinair_wire::header::protocol;

/// Octets of header content in a block: four headers of 128 octets in total, whose Next Header fields are not kept.
pub(super) const DATA: usize = 124;

/// Number of items in a block.
const ENTRIES: usize = 4;

/// No block.
const NONE: u16 = u16::MAX;

/// Number of octets of an AH item before its changing fields: behind Next Header, up to the Sequence Number.
const AH_STABLE: usize = 7;

/// Block of 124 octets for the extension headers of a flow. A flow with more takes several.
#[derive(Clone, Copy, Debug)]
pub struct ExtensionBlock {
    /// Index of the next block of the context, or of the next free one.
    next: u16,
    used: u8,
    entries: [ItemEntry; ENTRIES],
    data: [u8; DATA],
}

impl Room for ExtensionBlock {
    const EMPTY: Self = Self { next: NONE, used: 0, entries: [ItemEntry::FREE; ENTRIES], data: [0; DATA] };
    const PROFILES: &'static [ProfileId] = &[
        ProfileId::Rtp,
        ProfileId::Udp,
        ProfileId::Esp,
        ProfileId::Ip,
        ProfileId::RtpUdpLite,
        ProfileId::UdpLite,
    ];
    type Shared<'m> = Pool<'m>;

    fn count(contexts: usize) -> usize {
        (8 * contexts).min(256)
    }

    fn share(rooms: Slots<'_, Self>) -> Pool<'_> {
        Pool::new(rooms)
    }
}

#[derive(Clone, Copy, Debug)]
struct ItemEntry {
    /// Index of the IP header (0 or 1) whose list has the item; [`ItemEntry::NOBODY`] if the entry is free.
    owner: u8,
    index: u8,
    kind: u8,
    at: u8,
    /// Octets from the length field on: the header without its Next Header field.
    len: u8,
    /// Number of times that the pair (index, item) was sent, as `list_plan` counts it.
    sent: u8,
}

impl ItemEntry {
    const NOBODY: u8 = u8::MAX;
    const FREE: Self = Self { owner: Self::NOBODY, index: 0, kind: 0, at: 0, len: 0, sent: 0 };
}

/// Blocks of a channel.
#[derive(Debug)]
pub(crate) struct Pool<'m> {
    blocks: Slots<'m, ExtensionBlock>,
    free: u16,
}

/// Error: the pool is empty, or an item is longer than a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory;

impl<'m> Pool<'m> {
    /// Creates a pool in which all of `blocks` are free. At most 65,535 are used.
    pub(crate) fn new(mut blocks: Slots<'m, ExtensionBlock>) -> Self {
        let count = blocks.len().min(usize::from(NONE));
        for (i, block) in blocks.iter_mut().take(count).enumerate() {
            *block = ExtensionBlock {
                next: if i + 1 < count { i as u16 + 1 } else { NONE },
                ..ExtensionBlock::EMPTY
            };
        }
        let free = if count > 0 { 0 } else { NONE };
        Self { blocks, free }
    }

    fn take(&mut self) -> Option<u16> {
        let id = self.free;
        let block = self.blocks.get_mut(usize::from(id))?;
        self.free = block.next;
        *block = ExtensionBlock::EMPTY;
        Some(id)
    }
}

/// Table of one context: a chain of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ItemTable {
    first: u16,
}

impl ItemTable {
    /// True if there are items.
    pub(super) fn is_used(self) -> bool {
        self.first != NONE
    }
}

impl Default for ItemTable {
    fn default() -> Self {
        Self { first: NONE }
    }
}

/// Place of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemPlace {
    block: u16,
    entry: u8,
}

impl ItemTable {
    /// Returns the blocks to the pool.
    pub(crate) fn release(&mut self, pool: &mut Pool<'_>) {
        while let Some(block) = pool.blocks.get_mut(usize::from(self.first)) {
            let next = block.next;
            block.next = pool.free;
            pool.free = self.first;
            self.first = next;
        }
    }

    fn places<'t>(&self, pool: &'t Pool<'_>) -> impl Iterator<Item = (ItemPlace, &'t ItemEntry)> + use<'t> {
        let mut id = self.first;
        core::iter::from_fn(move || {
            let block = pool.blocks.get(usize::from(id))?;
            let this = id;
            id = block.next;
            Some((this, block))
        })
        .flat_map(|(block, b)| {
            b.entries.iter().enumerate().map(move |(i, e)| (ItemPlace { block, entry: i as u8 }, e))
        })
    }

    /// True if there is no block.
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Removes items for which `keep` is false, and returns empty blocks to the pool.
    pub(super) fn retain(&mut self, pool: &mut Pool<'_>, keep: impl Fn(usize, u8) -> bool) {
        let mut id = self.first;
        while let Some(block) = pool.blocks.get(usize::from(id)) {
            let (next, entries) = (block.next, block.entries);
            for (i, entry) in entries.iter().enumerate().filter(|(_, e)| e.owner != ItemEntry::NOBODY) {
                if !keep(usize::from(entry.owner), entry.index) {
                    remove(pool, ItemPlace { block: id, entry: i as u8 });
                }
            }
            id = next;
        }
        self.give_back_empty(pool);
    }

    fn give_back_empty(&mut self, pool: &mut Pool<'_>) {
        let (mut id, mut before) = (self.first, NONE);
        while let Some(block) = pool.blocks.get_mut(usize::from(id)) {
            let next = block.next;
            if block.entries.iter().any(|entry| entry.owner != ItemEntry::NOBODY) {
                before = id;
                id = next;
                continue;
            }
            block.next = pool.free;
            pool.free = id;
            match pool.blocks.get_mut(usize::from(before)) {
                Some(block) => block.next = next,
                None => self.first = next,
            }
            id = next;
        }
    }

    /// Returns the place of the item with that index.
    pub(super) fn find(&self, pool: &Pool<'_>, owner: usize, index: u8) -> Option<ItemPlace> {
        self.places(pool)
            .find(|(_, entry)| usize::from(entry.owner) == owner && entry.index == index)
            .map(|(place, _)| place)
    }

    /// Returns the index of an equal item, if there is one. The sequence number and the Integrity Check Value of an AH are not
    /// compared (RFC 3095, section 5.8.4.2).
    pub(super) fn find_item(&self, pool: &Pool<'_>, owner: usize, item: &Item<'_>) -> Option<u8> {
        self.places(pool)
            .find(|&(place, entry)| usize::from(entry.owner) == owner && same(&stored(pool, place), item))
            .map(|(_, entry)| entry.index)
    }

    /// Stores an item that was received at its index. An equal one stays in its place, which is then that at the compressor.
    pub(super) fn receive(
        &mut self,
        pool: &mut Pool<'_>,
        owner: usize,
        index: u8,
        item: &Item<'_>,
    ) -> Result<(), NoMemory> {
        match self.find(pool, owner, index) {
            Some(place) if stored(pool, place) == *item => Ok(()),
            _ => self.put(pool, owner, index, item),
        }
    }

    /// Stores an item at its index, in a new place.
    pub(super) fn put(
        &mut self,
        pool: &mut Pool<'_>,
        owner: usize,
        index: u8,
        item: &Item<'_>,
    ) -> Result<(), NoMemory> {
        let len = item.len() - 1;
        if len > DATA {
            return Err(NoMemory);
        }
        if let Some(place) = self.find(pool, owner, index) {
            remove(pool, place);
            self.give_back_empty(pool);
        }
        let mut id = self.first;
        let mut last = NONE;
        while let Some(block) = pool.blocks.get(usize::from(id)) {
            if usize::from(block.used) + len <= DATA
                && block.entries.iter().any(|e| e.owner == ItemEntry::NOBODY)
            {
                break;
            }
            last = id;
            id = block.next;
        }
        if id == NONE {
            id = pool.take().ok_or(NoMemory)?;
            match pool.blocks.get_mut(usize::from(last)) {
                Some(block) => block.next = id,
                None => self.first = id,
            }
        }
        let block = pool.blocks.get_mut(usize::from(id)).ok_or(NoMemory)?;
        let at = usize::from(block.used);
        let entry = block.entries.iter_mut().find(|e| e.owner == ItemEntry::NOBODY).ok_or(NoMemory)?;
        let room = block.data.get_mut(at..at + len).ok_or(NoMemory)?;
        *entry =
            ItemEntry { owner: owner as u8, index, kind: item.kind, at: at as u8, len: len as u8, sent: 0 };
        room[0] = item.length;
        room[1..].copy_from_slice(item.body);
        block.used += len as u8;
        Ok(())
    }
}

/// Returns the item in a place.
pub(super) fn stored<'t>(pool: &'t Pool<'_>, place: ItemPlace) -> Item<'t> {
    let found = pool.blocks.get(usize::from(place.block)).and_then(|block| {
        let entry = block.entries.get(usize::from(place.entry))?;
        let octets = block.data.get(usize::from(entry.at)..)?.get(..usize::from(entry.len))?;
        let (&length, body) = octets.split_first()?;
        Some(Item { kind: entry.kind, length, body })
    });
    found.unwrap_or_default()
}

/// Number of times that the pair (index, item) was sent.
pub(super) fn sent<'t>(pool: &'t mut Pool<'_>, place: ItemPlace) -> Option<&'t mut u8> {
    let block = pool.blocks.get_mut(usize::from(place.block))?;
    block.entries.get_mut(usize::from(place.entry)).map(|entry| &mut entry.sent)
}

/// True if two items are equal, except for the changing fields of an AH.
pub(super) fn same(a: &Item<'_>, b: &Item<'_>) -> bool {
    if a.kind != b.kind || a.length != b.length {
        return false;
    }
    if a.kind == protocol::AH {
        // `body` starts behind the length field, one octet later than the stable part.
        let stable = AH_STABLE - 1;
        return a.body.get(..stable) == b.body.get(..stable);
    }
    a.body == b.body
}

fn remove(pool: &mut Pool<'_>, place: ItemPlace) {
    let Some(block) = pool.blocks.get_mut(usize::from(place.block)) else { return };
    let Some(entry) = block.entries.get_mut(usize::from(place.entry)) else { return };
    let (at, len) = (entry.at, entry.len);
    *entry = ItemEntry::FREE;
    block.data.copy_within(usize::from(at) + usize::from(len)..usize::from(block.used), usize::from(at));
    block.used -= len;
    for entry in block.entries.iter_mut().filter(|e| e.owner != ItemEntry::NOBODY && e.at > at) {
        entry.at -= len;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn item(kind: u8, octets: &[u8]) -> Item<'_> {
        Item { kind, length: (octets.len() / 8) as u8, body: octets }
    }

    #[test]
    fn items_keep_their_content_when_others_are_replaced() {
        let mut pool = Pool::new(Slots::owned(vec![ExtensionBlock::EMPTY; 3]));
        let mut table = ItemTable::default();
        let contents: Vec<Vec<u8>> = (0..8).map(|i| vec![i; 6 + 8 * usize::from(i)]).collect();
        for (i, content) in contents.iter().enumerate() {
            table.put(&mut pool, i % 2, i as u8, &item(60, content)).unwrap();
        }
        table.put(&mut pool, 0, 2, &item(0, &contents[5])).unwrap();
        for (i, content) in contents.iter().enumerate() {
            let place = table.find(&pool, i % 2, i as u8).unwrap();
            let expected = if i == 2 { item(0, &contents[5]) } else { item(60, content) };
            assert_eq!(stored(&pool, place), expected, "item {i}");
        }
        assert_eq!(table.find(&pool, 1, 2), None);
        assert_eq!(table.find_item(&pool, 0, &item(0, &contents[5])), Some(2));
    }

    #[test]
    fn an_empty_pool_is_told_and_blocks_come_back() {
        let mut pool = Pool::new(Slots::owned(vec![ExtensionBlock::EMPTY; 1]));
        let (mut a, mut b) = (ItemTable::default(), ItemTable::default());
        a.put(&mut pool, 0, 0, &item(60, &[1; 6])).unwrap();
        assert_eq!(b.put(&mut pool, 0, 0, &item(60, &[1; 6])), Err(NoMemory));
        a.release(&mut pool);
        b.put(&mut pool, 0, 0, &item(60, &[1; 6])).unwrap();
        assert_eq!(a.find(&pool, 0, 0), None);
        assert_eq!(b.put(&mut pool, 0, 1, &item(60, &[1; 134])), Err(NoMemory));
    }
}
