//! Compressed lists of extension headers and of CSRC identifiers: the four encodings. RFC 3095, sections 5.8.3 and 5.8.6; RFC 4815,
//! sections 5.3 and 5.7.

use thinair_wire::coder::{Coder, Step};
use thinair_wire::header::extension::{is_extension, octets_of};

use super::rtp::CSRC_LEN;

/// Largest number of items in a list: the capacity of a CC field and a mask.
pub(crate) const MAX_ITEMS: usize = 15;

/// Kind of the items of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListKind {
    ExtensionHeader,
    Csrc,
}

/// Encoding types.
pub(super) mod encoding {
    pub(crate) const GENERIC: u8 = 0;
    pub(crate) const INSERTION: u8 = 1;
    pub(crate) const REMOVAL: u8 = 2;
    pub(crate) const REMOVE_THEN_INSERT: u8 = 3;
}

/// An extension header as an uncompressed list item, with its own type in its Next Header field (RFC 3095, section 5.8.4.1). A
/// CSRC identifier only uses `body`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Item<'p> {
    /// Type of the header.
    pub(crate) kind: u8,
    /// Second octet: the length, in the units of the type.
    pub(crate) length: u8,
    /// The octets behind it.
    pub(crate) body: &'p [u8],
}

impl<'p> Item<'p> {
    /// Returns the item of a header as in a packet; `None` if it is too short.
    pub(super) fn of(kind: u8, header: &'p [u8]) -> Option<Self> {
        let &[_, length, ref body @ ..] = header else { return None };
        Some(Self { kind, length, body })
    }

    /// Octets of the header.
    pub(super) fn len(&self) -> usize {
        self.body.len() + 2
    }
}

/// `XI`: an index, and a flag that is set if its item is in the list of items (`X`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Xi {
    pub(super) x: bool,
    pub(super) index: u8,
}

/// Bit mask of 7 or 15 positions; bit 14 of `bits` is the first position in both lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mask {
    pub(super) long: bool,
    pub(super) bits: u16,
}

impl Mask {
    /// Number of positions.
    pub(super) fn len(self) -> usize {
        if self.long { 15 } else { 7 }
    }

    /// True if the position is marked.
    pub(super) fn has(self, position: usize) -> bool {
        position < self.len() && self.bits >> (14 - position) & 1 == 1
    }

    /// Marks a position of a short mask, which becomes a long one if necessary.
    pub(super) fn mark(&mut self, position: usize) {
        self.bits |= 1 << (14 - position);
        self.long |= position >= 7;
    }

    fn code<'p, C: Coder<'p>>(&mut self, c: &mut C, name: &'static str) -> Step {
        if c.flag("long", &mut self.long)? {
            return c.uint(name, 15, &mut self.bits);
        }
        let mut short = self.bits >> 8;
        c.uint(name, 7, &mut short)?;
        self.bits = short << 8;
        Ok(())
    }
}

/// A compressed list as in a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CompressedList<'p> {
    /// ET.
    pub(super) encoding: u8,
    /// GP, true if there is a gen_id.
    pub(super) has_gen_id: bool,
    pub(super) gen_id: u8,
    /// PS: XI fields of 8 bits instead of 4.
    pub(super) wide: bool,
    /// CC of the generic scheme: number of XI fields.
    pub(super) count: u8,
    pub(super) ref_id: u8,
    pub(super) removal: Mask,
    pub(super) insertion: Mask,
    pub(super) xis: [Xi; MAX_ITEMS],
    /// The items of the XI fields with X, in their order.
    pub(super) items: [Item<'p>; MAX_ITEMS],
}

/// An empty list, which encodes no change.
pub(super) const EMPTY: CompressedList<'static> = CompressedList {
    encoding: encoding::GENERIC,
    has_gen_id: false,
    gen_id: 0,
    wide: false,
    count: 0,
    ref_id: 0,
    removal: Mask { long: false, bits: 0 },
    insertion: Mask { long: false, bits: 0 },
    xis: [Xi { x: false, index: 0 }; MAX_ITEMS],
    items: [Item { kind: 0, length: 0, body: &[] }; MAX_ITEMS],
};

impl CompressedList<'_> {
    /// True if it encodes that there is no extension header.
    pub(super) fn is_empty(&self) -> bool {
        self.encoding == encoding::GENERIC && self.count == 0
    }

    /// Number of XI fields.
    pub(super) fn xi_count(&self) -> usize {
        match self.encoding {
            encoding::GENERIC => usize::from(self.count),
            encoding::INSERTION | encoding::REMOVE_THEN_INSERT => self.insertion.bits.count_ones() as usize,
            _ => 0,
        }
    }
}

/// A compressed list of any encoding. RFC 3095, sections 5.8.6.1 to 5.8.6.4.
pub(super) fn compressed_list<'p, C: Coder<'p>>(
    c: &mut C,
    x: &mut CompressedList<'p>,
    kind: ListKind,
) -> Step {
    c.uint("ET", 2, &mut x.encoding)?;
    c.flag("GP", &mut x.has_gen_id)?;
    match x.encoding {
        encoding::GENERIC => {
            c.flag("PS", &mut x.wide)?;
            c.uint("CC", 4, &mut x.count)?;
            gen_id(c, x)?;
            xi_list(c, x, 0)?;
        }
        encoding::REMOVAL => {
            c.reserved(1)?;
            c.uint("Count", 4, &mut x.count)?;
            gen_id(c, x)?;
            c.uint("ref_id", 8, &mut x.ref_id)?;
            x.removal.code(c, "removal bit mask")?;
        }
        _ => {
            // The first octet holds XI 1 if XI fields have 4 bits; otherwise these bits are reserved.
            if c.flag("PS", &mut x.wide)? {
                c.reserved(4)?;
            } else {
                xi(c, &mut x.xis[0], 3)?;
            }
            gen_id(c, x)?;
            c.uint("ref_id", 8, &mut x.ref_id)?;
            if x.encoding == encoding::REMOVE_THEN_INSERT {
                x.removal.code(c, "removal bit mask")?;
            }
            x.insertion.code(c, "insertion bit mask")?;
            xi_list(c, x, usize::from(!x.wide))?;
        }
    }
    let sent = x.xis[..x.xi_count()].iter().filter(|xi| xi.x).count();
    for item in &mut x.items[..sent] {
        match kind {
            ListKind::ExtensionHeader => uncompressed_item(c, item)?,
            ListKind::Csrc => c.slice("CSRC", CSRC_LEN, &mut item.body)?,
        }
    }
    Ok(())
}

fn gen_id<'p, C: Coder<'p>>(c: &mut C, x: &mut CompressedList<'p>) -> Step {
    if x.has_gen_id { c.uint("gen_id", 8, &mut x.gen_id) } else { Ok(()) }
}

/// The XI fields from the one at `first` on, padded to an octet.
fn xi_list<'p, C: Coder<'p>>(c: &mut C, x: &mut CompressedList<'p>, first: usize) -> Step {
    let count = x.xi_count();
    c.require(count <= MAX_ITEMS)?;
    let xis = x.xis.get_mut(first..count).unwrap_or_default();
    let width = if x.wide { 7 } else { 3 };
    let padding = !x.wide && xis.len() % 2 == 1;
    for field in xis {
        xi(c, field, width)?;
    }
    if padding {
        c.reserved(4)?;
    }
    Ok(())
}

fn xi<'p, C: Coder<'p>>(c: &mut C, x: &mut Xi, width: u32) -> Step {
    c.flag("X", &mut x.x)?;
    c.uint("Index", width, &mut x.index)
}

/// An uncompressed item. Its own type determines its length.
fn uncompressed_item<'p, C: Coder<'p>>(c: &mut C, x: &mut Item<'p>) -> Step {
    c.uint("Next Header", 8, &mut x.kind)?;
    c.require(is_extension(x.kind))?;
    c.uint("Hdr Ext Len", 8, &mut x.length)?;
    let len = octets_of(x.kind, x.length);
    c.require(len >= 8)?;
    c.slice("item", len.saturating_sub(2), &mut x.body)
}
