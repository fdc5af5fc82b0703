//! Lists of extension headers or CSRC identifiers at the compressor: choice of the list to send, and of its encoding. RFC
//! 3095, sections 5.8.1 to 5.8.3.

use thinair_wire::header::chain::Ip;
use thinair_wire::header::extension::AH_FIXED;
use thinair_wire::header::protocol;

use super::IpExtra;
use super::list::{CompressedList, Item, Mask, Xi, encoding};
use super::mode::CompressorMode;
use super::pending::PendingChange;
use super::table::{self, ItemTable, NoMemory, Pool};
use crate::id::Format;
use crate::mode::Mode;

/// Number of indices of a list, and largest number of its items: the capacity of XI fields of 4 bits.
pub(crate) const INDICES: u8 = 8;

/// Number of generations, including the reference, that a decompressor is assumed to keep. RFC 3095, section 5.8.2.1, sets
/// no limit; the decompressor here keeps as many.
const GENERATIONS: u8 = 4;

/// Number of packets after which the SN of one no longer names its list, since 8 bits do.
const LONG_AGO: u16 = 128;

/// An upper limit for the number of packets that repeat one change.
const REPEATED: u32 = 1 << 9;

/// Extent of the lists in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Parts that the decompressor may not have.
    Changes,
    /// All items in full, as in the chains of IR and IR-DYN (RFC 3095, sections 5.7.7.3 and 5.7.7.4).
    Everything,
}

/// Conditions for items and lists to be established, and the naming of references.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assurance {
    /// Value that [`table::sent`] must have reached.
    enough: u8,
    /// Only acknowledged items are established: RFC 3095, section 5.8.1.1.
    secure: bool,
    /// A reference is named by the SN of an acknowledged packet, and not by a gen_id: RFC 3095, section 5.8.2.1.
    by_sn: bool,
}

impl Assurance {
    /// Count of an item that was sent, but may not have been stored.
    const NAMED: u8 = 1;
    /// Count of an item that was acknowledged.
    const ACKNOWLEDGED: u8 = u8::MAX;

    pub(super) fn of(mode: CompressorMode, repetitions: u8) -> Self {
        let secure = mode.is_secure();
        let counted = repetitions.saturating_add(Self::NAMED).min(Self::ACKNOWLEDGED - 1);
        let enough = if secure { Self::ACKNOWLEDGED } else { counted };
        Self { enough, secure, by_sn: mode.mode() == Mode::Reliable && !mode.is_pending() }
    }
}

/// A list of at most 8 indices of 3 bits each, the first one lowest, followed by their number. As octets, to avoid padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct List([u8; 4]);

impl List {
    fn len(self) -> u8 {
        self.0[3]
    }

    fn is_empty(self) -> bool {
        self.len() == 0
    }

    fn at(self, position: u8) -> u8 {
        (u32::from_le_bytes(self.0) >> (3 * u32::from(position)) & 0b111) as u8
    }

    fn iter(self) -> impl DoubleEndedIterator<Item = u8> + ExactSizeIterator {
        (0..self.len()).map(move |position| self.at(position))
    }

    fn has(self, index: u8) -> bool {
        self.iter().any(|other| other == index)
    }

    fn push(&mut self, index: u8) {
        if self.len() < INDICES {
            let indices = u32::from(index & 0b111) << (3 * u32::from(self.len()));
            self.0 = (u32::from_le_bytes(self.0) | indices).to_le_bytes();
            self.0[3] += 1;
        }
    }
}

/// State of the extension headers of one IP header at the compressor. RFC 3095, section 5.8.2.1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListState {
    current: List,
    gen_id: u8,
    pending: PendingChange,
    /// The list that the decompressor certainly has; empty if there is none. Its gen_id, or in R-mode the low bits of the SN
    /// of a packet that carried it.
    reference: List,
    reference_id: u8,
    /// There was a list, so that an empty one differs from none.
    used: bool,
    /// Sequence number of the AH less the SN (RFC 4815, section 5.8).
    ah_offset: [u8; 4],
    ah: PendingChange,
}

impl ListState {
    /// Sets the first gen_id.
    pub(super) fn start(&mut self, gen_id: u8) {
        self.gen_id = gen_id;
    }

    /// True if there is or was a list.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.used
    }

    pub(super) fn forget_reference(&mut self) {
        self.reference = List::default();
    }

    /// Records the extension headers of a packet: items in the table, and a new generation if the list has changed.
    pub(super) fn note<'p>(
        &mut self,
        items: impl Iterator<Item = Option<Item<'p>>>,
        sn: u32,
        repetitions: u8,
        assurance: Assurance,
        sent_items: &mut SentItems<'_, '_>,
    ) -> Result<(), NoMemory> {
        self.used = true;
        let mut list = List::default();
        let mut is_new = false;
        for item in items {
            let item = item.ok_or(NoMemory)?;
            let index = match sent_items.find(&item) {
                Some(index) => {
                    // A packet that was not sent in the end has put it into the table.
                    if sent_items.times_sent(index) == 0 {
                        is_new = true;
                        self.forget_reference();
                    }
                    index
                }
                None => {
                    is_new = true;
                    let index = sent_items.free_index(&list).ok_or(NoMemory)?;
                    sent_items.put(index, &item)?;
                    if self.reference.has(index) {
                        // The reference would differ from the acknowledged list from now on.
                        self.forget_reference();
                    }
                    index
                }
            };
            list.push(index);
            if item.kind == protocol::AH && self.note_ah(&item, sn, repetitions) {
                is_new = true;
                // An item of the reference would not be sent again.
                self.forget_reference();
                if let Some(sent) = sent_items.sent(index) {
                    *sent = 0;
                }
            }
        }
        if is_new || list != self.current {
            if assurance.by_sn && self.pending.is_due() {
                // One of two newer lists may have been sent with the SN that names the reference.
                self.forget_reference();
            }
            self.current = list;
            self.gen_id = self.gen_id.wrapping_add(1);
            self.pending.start(sn as u16, repetitions);
            if !assurance.by_sn && self.gen_id.wrapping_sub(self.reference_id) >= GENERATIONS {
                self.forget_reference();
            }
        }
        Ok(())
    }

    /// Records an AH. Returns true if the sequence number must be sent in full: the format has 31 bits for it, which replace
    /// those of the expected number (RFC 4815, section 8.9).
    fn note_ah(&mut self, ah: &Item<'_>, sn: u32, repetitions: u8) -> bool {
        // The part in front of the body has two octets.
        let Some(&[a, b, c, d]) = ah.body.get(AH_FIXED - 6..AH_FIXED - 2) else { return false };
        let ah_sn = u32::from_be_bytes([a, b, c, d]);
        let offset = ah_sn.wrapping_sub(sn);
        let before = u32::from_le_bytes(self.ah_offset);
        if offset == before {
            return false;
        }
        let expected = before.wrapping_add(sn);
        self.ah_offset = offset.to_le_bytes();
        self.ah.start(sn as u16, repetitions);
        // The highest bit must not change while the change is repeated.
        let stays = |value: u32| (value ^ value.wrapping_add(REPEATED)) >> 31 == 0;
        (ah_sn ^ expected) >> 31 != 0 || !stays(ah_sn) || !stays(expected)
    }

    /// Fills in the fields for the list in a packet.
    pub(super) fn fill<'p>(
        &self,
        extra: &mut IpExtra<'p>,
        items: impl Iterator<Item = Option<Item<'p>>> + Clone,
        sn: u32,
        scope: Scope,
        assurance: Assurance,
        sent_items: &mut SentItems<'_, '_>,
    ) {
        extra.has_list = self.pending.is_due() || scope == Scope::Everything;
        extra.list = extra.has_list.then(|| {
            let mut known =
                |index| scope == Scope::Changes && sent_items.times_sent(index) >= assurance.enough;
            let mut list: CompressedList<'p> = self.encode(sn as u16, scope, assurance);
            let mut sent = 0;
            let current = self.current;
            let says = list;
            let positions = (0..current.len()).filter(|position| has_xi(&says, *position));
            for (xi, position) in list.xis.iter_mut().zip(positions) {
                let index = current.at(position);
                let x = !known(index);
                *xi = Xi { x, index };
                if let (true, Some(item)) = (x, items.clone().nth(usize::from(position)).flatten()) {
                    list.items[sent] = item;
                    sent += 1;
                }
            }
            list
        });
        extra.has_ah_sn = self.ah.is_due() && scope == Scope::Changes && !sends_ah(extra.list());
        extra.ah_sn_long = true;
        extra.ah_sn = u32::from_le_bytes(self.ah_offset).wrapping_add(sn) & 0x7FFF_FFFF;
    }

    /// Returns the shortest encoding of the current list, without its XI fields.
    fn encode<'p>(&self, sn: u16, scope: Scope, assurance: Assurance) -> CompressedList<'p> {
        let generic = CompressedList {
            encoding: encoding::GENERIC,
            has_gen_id: self.used && !assurance.by_sn,
            gen_id: if assurance.by_sn { 0 } else { self.gen_id },
            count: self.current.len(),
            ..CompressedList::default()
        };
        let ambiguous = assurance.by_sn && self.is_reference_ambiguous(sn);
        if scope == Scope::Everything || self.reference.is_empty() || ambiguous {
            return generic;
        }
        let current = self.current;
        // Greedy, as RFC 3095, section 5.8.3, suggests: items of the reference that the list does not have are removed.
        let mut removal = Mask::default();
        let mut insertion = Mask::default();
        let mut at = 0;
        for (i, index) in self.reference.iter().enumerate() {
            match current.iter().skip(at).position(|c| c == index) {
                Some(ahead) => {
                    for inserted in at..at + ahead {
                        insertion.mark(inserted);
                    }
                    at += ahead + 1;
                }
                None => removal.mark(i),
            }
        }
        for inserted in at..usize::from(current.len()) {
            insertion.mark(inserted);
        }
        let encoding = match (removal.bits, insertion.bits) {
            (0, _) => encoding::INSERTION,
            (_, 0) => encoding::REMOVAL,
            _ => encoding::REMOVE_THEN_INSERT,
        };
        let count = if encoding == encoding::REMOVAL { self.reference.len() } else { 0 };
        let ref_id = self.reference_id;
        let referring = CompressedList { encoding, ref_id, removal, insertion, count, ..generic };
        if len(&referring) < len(&generic) { referring } else { generic }
    }

    /// True if a newer list was sent with equal bits of SN.
    fn is_reference_ambiguous(&self, sn: u16) -> bool {
        let since = self.pending.since();
        u16::from(self.reference_id.wrapping_sub(since as u8)) <= sn.wrapping_sub(since)
    }

    /// Delays the SN from which on an acknowledgment confirms the changes recorded with the packet of an SN.
    pub(super) fn count_since(&mut self, sn: u16, since: u16) {
        for pending in [&mut self.pending, &mut self.ah] {
            if pending.since() == sn {
                pending.mark(since);
            }
        }
    }

    /// Repeats pending changes from now on.
    pub(super) fn repeat(&mut self, sn: u16, repetitions: u8) {
        for pending in [&mut self.pending, &mut self.ah] {
            if pending.is_due() {
                pending.start(sn, repetitions);
            }
        }
        self.forget_reference();
    }

    /// Records a packet that was sent, with its fields for the list.
    pub(super) fn commit(
        &mut self,
        extra: &IpExtra<'_>,
        format: Format,
        is_sent: bool,
        assurance: Assurance,
        sent_items: &mut SentItems<'_, '_>,
    ) {
        if !is_sent {
            return;
        }
        if !assurance.secure && (format.is_initialization() || extra.has_ah_sn) {
            self.ah.sent();
        }
        if !(format.is_initialization() || extra.has_list) {
            return;
        }
        let list = extra.list();
        for xi in list.xis.iter().take(list.xi_count()).filter(|xi| xi.x) {
            if let Some(sent) = sent_items.sent(xi.index) {
                let count = if assurance.secure { 0 } else { 1 };
                let most = Assurance::ACKNOWLEDGED - 1;
                if *sent < most {
                    *sent = (*sent).max(Assurance::NAMED) + count;
                }
            }
        }
        if self.pending.is_due() && !assurance.secure {
            self.pending.sent();
            if !self.pending.is_due() {
                self.establish();
            }
        }
    }

    /// Makes the newest list the reference, after a packet with it was acknowledged, or it was sent often enough.
    fn establish(&mut self) {
        self.reference = self.current;
        self.reference_id = self.gen_id;
    }

    /// Handles the acknowledgment of a packet.
    pub(super) fn acknowledge(
        &mut self,
        sn: u16,
        newest: u16,
        assurance: Assurance,
        sent_items: &mut SentItems<'_, '_>,
    ) {
        self.ah.acknowledge(sn);
        if !self.pending.is_due() {
            return;
        }
        self.pending.acknowledge(sn);
        if !self.pending.is_due() {
            self.establish();
            if assurance.by_sn {
                self.reference_id = sn as u8;
            }
            if newest.wrapping_sub(sn) > LONG_AGO {
                self.forget_reference();
            }
            for index in self.current.iter() {
                if let Some(sent) = sent_items.sent(index) {
                    *sent = Assurance::ACKNOWLEDGED;
                }
            }
        }
    }
}

/// Items of one list in the table of a context.
pub(super) struct SentItems<'a, 'm> {
    pub(super) owner: usize,
    pub(super) table: &'a mut ItemTable,
    pub(super) pool: &'a mut Pool<'m>,
}

impl SentItems<'_, '_> {
    fn find(&self, item: &Item<'_>) -> Option<u8> {
        self.table.find_item(self.pool, self.owner, item)
    }

    fn put(&mut self, index: u8, item: &Item<'_>) -> Result<(), NoMemory> {
        self.table.put(self.pool, self.owner, index, item)
    }

    /// Number of times that an item was sent.
    fn sent(&mut self, index: u8) -> Option<&mut u8> {
        table::sent(self.pool, self.table.find(self.pool, self.owner, index)?)
    }

    fn times_sent(&mut self, index: u8) -> u8 {
        self.sent(index).map_or(0, |sent| *sent)
    }

    /// Returns an index for a new item: a free one, or one that the new list does not use.
    fn free_index(&self, list: &List) -> Option<u8> {
        let is_free = |index: &u8| self.table.find(self.pool, self.owner, *index).is_none();
        (0..INDICES).find(is_free).or_else(|| (0..INDICES).find(|index| !list.has(*index)))
    }
}

/// True if an encoding has an XI field for a position of the list.
fn has_xi(list: &CompressedList<'_>, position: u8) -> bool {
    match list.encoding {
        encoding::GENERIC => true,
        encoding::REMOVAL => false,
        _ => list.insertion.has(usize::from(position)),
    }
}

/// Number of octets of an encoding without its items.
fn len(list: &CompressedList<'_>) -> usize {
    let mask = |mask: &Mask| if mask.long { 2 } else { 1 };
    match list.encoding {
        encoding::GENERIC => 2 + list.xi_count().div_ceil(2),
        encoding::REMOVAL => 3 + mask(&list.removal),
        encoding::INSERTION => 3 + mask(&list.insertion) + list.xi_count().saturating_sub(1).div_ceil(2),
        _ => 3 + mask(&list.removal) + mask(&list.insertion) + list.xi_count().saturating_sub(1).div_ceil(2),
    }
}

/// True if a list carries the full AH.
pub(super) fn sends_ah(list: &CompressedList<'_>) -> bool {
    list.items.iter().any(|item| item.kind == protocol::AH)
}

/// Returns the extension headers of an IP header as items of a list.
pub(super) fn items<'p>(ip: &Ip<'p>) -> impl Iterator<Item = Option<Item<'p>>> + Clone {
    ip.walk().take(ip.extension_count).map(|(kind, header)| Item::of(kind, header))
}

/// Returns the Integrity Check Value of the AH behind an IP header; empty if there is none.
pub(super) fn icv<'p>(ip: &Ip<'p>) -> &'p [u8] {
    ip.walk()
        .take(ip.extension_count)
        .find(|(kind, _)| *kind == protocol::AH)
        .and_then(|(_, octets)| octets.get(AH_FIXED..))
        .unwrap_or_default()
}
