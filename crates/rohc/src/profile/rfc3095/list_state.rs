//! Lists of extension headers or CSRC identifiers at the decompressor. RFC 3095, sections 5.8.1 to 5.8.3.

use thinair_wire::header::extension::AH_FIXED;
use thinair_wire::header::protocol;

use super::header::{ExtensionItem, ExtensionLists};
use super::list::{CompressedList, Item, MAX_ITEMS, Xi, encoding};
use super::table::{self, ItemTable, Pool};
use crate::decompressor::Failure;
use crate::id::Format;

/// Number of lists that may be named as references: those of the newest generations. RFC 3095, section 5.8.2.1, f).
const GENERATIONS: usize = 4;

/// Number of SNs that are kept for one list in R-mode. A compressor that receives the acknowledgment of an older one cannot
/// name it by 8 bits.
const LONGEST: u8 = 200;

/// A list of at most 15 indices of 4 bits each, the first one lowest, and their number above them. As octets, to avoid
/// padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct List([u8; 8]);

impl List {
    pub(super) fn len(self) -> usize {
        usize::from(self.0[7] >> 4)
    }

    pub(super) fn is_empty(self) -> bool {
        self.len() == 0
    }

    pub(super) fn has(&self, index: u8) -> bool {
        self.iter().any(|other| other == index)
    }

    fn iter(self) -> impl Iterator<Item = u8> {
        (0..self.len()).map(move |position| self.0[position / 2] >> (4 * (position % 2)) & 0xF)
    }

    fn push(&mut self, index: u8) -> Option<()> {
        let len = self.len();
        if len >= MAX_ITEMS || index > 0xF {
            return None;
        }
        self.0[len / 2] |= index << (4 * (len % 2));
        self.0[7] += 1 << 4;
        Some(())
    }
}

/// State of the extension headers of one IP header at the decompressor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListState {
    pub(super) current: List,
    /// Lists of the last generations, newest last, and their gen_ids.
    generations: [List; GENERATIONS],
    gen_ids: [u8; GENERATIONS],
    /// In R-mode a list is named by the low bits of the SN of a packet that carried it: any from the one in `gen_ids` to the
    /// one here.
    lasts: [u8; GENERATIONS],
    generation_count: u8,
    /// Sequence number of the AH less the SN (RFC 4815, section 5.8). As octets, to avoid padding.
    ah_offset: [u8; 4],
}

impl ListState {
    /// Returns the sequence number of the AH of a packet with that SN.
    pub(super) fn ah_sn(&self, sn: u32) -> u32 {
        u32::from_le_bytes(self.ah_offset).wrapping_add(sn)
    }

    /// Records the sequence number of the AH of a packet.
    pub(super) fn note_ah_sn(&mut self, ah_sn: u32, sn: u32) {
        self.ah_offset = ah_sn.wrapping_sub(sn).to_le_bytes();
    }

    /// Puts a list into the window of generations. The newest list with a gen_id is used, since a compressor that took over
    /// the CID may use one again.
    pub(super) fn remember(&mut self, gen_id: u8, list: List) {
        if let Some(at) = self.position(gen_id) {
            self.generations[at] = list;
            return;
        }
        self.push(gen_id, list);
    }

    /// [`remember`](Self::remember) in R-mode. It is unknown which of the packets with this list the compressor will have
    /// acknowledged.
    pub(super) fn remember_by_sn(&mut self, sn: u8, list: List) {
        let newest = usize::from(self.generation_count).checked_sub(1);
        let Some(at) = newest.filter(|at| self.generations[*at] == list) else {
            self.push(sn, list);
            return;
        };
        self.lasts[at] = sn;
        if sn.wrapping_sub(self.gen_ids[at]) > LONGEST {
            self.gen_ids[at] = sn.wrapping_sub(LONGEST);
        }
    }

    /// Drops all generations, because references are named in another way from now on.
    pub(super) fn forget_generations(&mut self) {
        self.generation_count = 0;
    }

    fn push(&mut self, id: u8, list: List) {
        if usize::from(self.generation_count) == GENERATIONS {
            self.forget(1);
        }
        let at = usize::from(self.generation_count);
        self.generations[at] = list;
        self.gen_ids[at] = id;
        self.lasts[at] = id;
        self.generation_count += 1;
    }

    /// Drops older generations. RFC 3095, section 5.8.2.1 g): "All lists with generations older than ref_id are removed".
    pub(super) fn forget_before(&mut self, ref_id: u8) {
        if let Some(at) = self.position(ref_id) {
            self.forget(at);
        }
    }

    fn forget(&mut self, oldest: usize) {
        self.generations.rotate_left(oldest);
        self.gen_ids.rotate_left(oldest);
        self.lasts.rotate_left(oldest);
        self.generation_count -= oldest as u8;
    }

    fn position(&self, gen_id: u8) -> Option<usize> {
        (0..usize::from(self.generation_count)).rev().find(|&at| {
            let (first, last) = (self.gen_ids[at], self.lasts[at]);
            gen_id.wrapping_sub(first) <= last.wrapping_sub(first)
        })
    }

    fn generation(&self, ref_id: u8) -> Option<&List> {
        self.position(ref_id).and_then(|at| self.generations.get(at))
    }
}

/// True if the list of the context stays. An empty list without gen_id in an IR-DYN packet does "not update the context"
/// (RFC 3095, section 5.8.2.1 d). Compressors send it for an established list.
pub(super) fn stays(sent: &CompressedList<'_>, format: Format) -> bool {
    format == Format::IrDyn && sent.is_empty() && !sent.has_gen_id
}

/// Returns the indices of a compressed list. `None` if it is inconsistent by itself or with its reference.
fn indices(state: &ListState, sent: &CompressedList<'_>) -> Option<List> {
    let mut xis = sent.xis.get(..sent.xi_count())?.iter().map(|xi: &Xi| xi.index);
    let mut list = List::default();
    if sent.encoding == encoding::GENERIC {
        for index in xis {
            list.push(index)?;
        }
        return Some(list);
    }
    // RFC 4815, section 5.7: "ref_id MUST refer to a non-empty list".
    let reference = state.generation(sent.ref_id).filter(|list| !list.is_empty())?;
    if sent.encoding == encoding::REMOVAL && usize::from(sent.count) != reference.len() {
        return None;
    }
    let mut kept = List::default();
    let removes = sent.encoding != encoding::INSERTION;
    for (i, index) in reference.iter().enumerate() {
        if !(removes && sent.removal.has(i)) {
            kept.push(index)?;
        }
    }
    if sent.encoding == encoding::REMOVAL {
        return Some(kept);
    }
    // A marked position takes the next inserted item, an unmarked one the next item that was kept; positions beyond the mask
    // are kept (RFC 4815, section 5.3).
    let mut kept = kept.iter();
    for position in 0..sent.insertion.len() {
        if sent.insertion.has(position) {
            list.push(xis.next()?)?;
        } else if let Some(index) = kept.next() {
            list.push(index)?;
        }
    }
    for index in kept {
        list.push(index)?;
    }
    xis.next().is_none().then_some(list)
}

/// Resolves the list that a packet carries for header `owner`.
pub(super) fn resolve_list<'i>(
    state: &ListState,
    sent: &CompressedList<'i>,
    owner: usize,
    table: &ItemTable,
    pool: &'i Pool<'_>,
    format: Format,
    extensions: &mut ExtensionLists<'i>,
) -> Result<List, Failure> {
    let list = indices(state, sent).ok_or(Failure::Malformed)?;
    let xis = &sent.xis[..sent.xi_count().min(MAX_ITEMS)];
    fill(&list, owner, extensions, |index| {
        let received = xis.iter().filter(|xi| xi.x).zip(&sent.items).rev_find(index);
        received.or_else(|| table.find(pool, owner, index).map(|place| table::stored(pool, place)))
    })
    .ok_or(Failure::UnknownItem(format))?;
    Ok(list)
}

/// Resolves the list of the context.
pub(super) fn resolve_current<'i>(
    state: &ListState,
    owner: usize,
    table: &ItemTable,
    pool: &'i Pool<'_>,
    format: Format,
    extensions: &mut ExtensionLists<'i>,
) -> Result<List, Failure> {
    fill(&state.current, owner, extensions, |index| {
        table.find(pool, owner, index).map(|place| table::stored(pool, place))
    })
    .ok_or(Failure::UnknownItem(format))?;
    Ok(state.current)
}

fn fill<'i>(
    list: &List,
    owner: usize,
    extensions: &mut ExtensionLists<'i>,
    mut item: impl FnMut(u8) -> Option<Item<'i>>,
) -> Option<()> {
    let slots = extensions.set_len(owner, list.len());
    for (slot, index) in slots.iter_mut().zip(list.iter()) {
        *slot = ExtensionItem { item: item(index)?, ah: None };
    }
    Some(())
}

/// Search for the item that was sent with an index: the last one, if there are several.
trait RevFind<'a, 'i> {
    fn rev_find(self, index: u8) -> Option<Item<'i>>;
}

impl<'a, 'i: 'a, I: Iterator<Item = (&'a Xi, &'a Item<'i>)>> RevFind<'a, 'i> for I {
    fn rev_find(self, index: u8) -> Option<Item<'i>> {
        self.filter(|(xi, _)| xi.index == index).last().map(|(_, item)| *item)
    }
}

/// Number of octets of AH data in the tail: the Integrity Check Value of an AH that is not sent in full.
pub(super) fn compressed_icv_len(
    extensions: &ExtensionLists<'_>,
    owner: usize,
    sent: &CompressedList<'_>,
) -> usize {
    let Some(ah) = extensions.of(owner).iter().find(|e| e.item.kind == protocol::AH) else { return 0 };
    if ah_sn(sent).is_some() { 0 } else { ah.item.len().saturating_sub(AH_FIXED) }
}

/// Returns the sequence number of the AH that a list carries in full.
pub(super) fn ah_sn(sent: &CompressedList<'_>) -> Option<u32> {
    sent.items.iter().find(|item| item.kind == protocol::AH).and_then(sn_of)
}

fn sn_of(item: &Item<'_>) -> Option<u32> {
    // Reserved and SPI stand between the length field and the sequence number.
    let octets = item.body.get(6..10)?;
    Some(u32::from_be_bytes([octets[0], octets[1], octets[2], octets[3]]))
}
