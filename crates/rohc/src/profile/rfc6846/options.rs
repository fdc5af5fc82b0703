//! TCP options: the table of items, the compressed list, and the irregular items. RFC 6846, sections 6.3 and 8.2.

use thinair_wire::IS_SMALL;
use thinair_wire::coder::{Coder, Refusal, Step};
use thinair_wire::header::tcp::{TcpOptions as Walk, TcpOptionsEnd, kind};

use super::encodings::{Counter, refuse, sack_pure_lsb, ts_lsb, zeros};

/// Largest number of options in a list: `m` has 4 bits.
pub(super) const MAX_OPTIONS: usize = 15;

/// Largest size of the options of a header, in octets.
pub(super) const MAX_OCTETS: usize = 40;

/// Indices of the item table. RFC 6846, section 6.3.4.
pub(super) mod index {
    pub(in super::super) const NOP: u8 = 0;
    pub(in super::super) const EOL: u8 = 1;
    pub(in super::super) const MSS: u8 = 2;
    pub(in super::super) const WINDOW_SCALE: u8 = 3;
    pub(in super::super) const TIMESTAMP: u8 = 4;
    pub(in super::super) const SACK_PERMITTED: u8 = 5;
    pub(in super::super) const SACK: u8 = 6;
    /// The first generic option.
    pub(in super::super) const GENERIC: u8 = 7;
}

/// Number of items in the table.
pub(super) const ITEMS: usize = 16;

/// Number of generic options in the table.
const GENERICS: usize = 9;

/// Size of the generic options of a flow, in octets: those of a header, and some previous ones.
const ARENA: usize = 48;

/// The options of a header, and the table of items that they refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TcpOptionTable {
    pub(super) count: u8,
    structure: [u8; MAX_OPTIONS],
    /// The items of the header, a bit for each index.
    pub(super) used: u16,
    /// The items that are in the table, a bit each.
    pub(super) known: u16,
    /// Octets of padding behind the EOL option.
    pub(super) padding: u8,
    pub(super) wscale: u8,
    pub(super) mss: u16,
    /// `tsval` and `tsecho`.
    pub(super) timestamps: [u32; 2],
    /// Start and end of each block.
    pub(super) sack: [[u32; 2]; 4],
    pub(super) blocks: u8,
    /// Octets of each generic option, with type and length; 0 if there is none.
    lens: [u8; GENERICS],
    /// `option_static`, a bit each.
    pub(super) statics: u16,
    /// Generic options in the order of their last use, 4 bits each, counted from 0, the newest lowest. The oldest is left out,
    /// since it is the remaining one. **Both ends make room by this order**: an option that the compressor relies on was used
    /// later than any that only one of them holds, whatever CID or IR packet came before.
    recent: u32,
    arena: [u8; ARENA],
}

impl TcpOptionTable {
    pub(super) const EMPTY: Self = Self {
        count: 0,
        structure: [0; MAX_OPTIONS],
        used: 0,
        known: 0,
        padding: 0,
        wscale: 0,
        mss: 0,
        timestamps: [0; 2],
        sack: [[0; 2]; 4],
        blocks: 0,
        lens: [0; GENERICS],
        statics: 0,
        recent: 0x7654_3210,
        arena: [0; ARENA],
    };

    /// Index of each option, in their order.
    #[inline]
    pub(super) fn structure(&self) -> &[u8] {
        self.structure.get(..usize::from(self.count)).unwrap_or_default()
    }

    /// True if an item is in the table.
    #[inline]
    pub(super) fn has_item(&self, index: u8) -> bool {
        self.known >> index & 1 == 1
    }

    /// True if an item has equal octets in both tables.
    pub(super) fn has_same(&self, other: &Self, index: u8) -> bool {
        match index {
            index::NOP | index::SACK_PERMITTED => true,
            index::EOL => self.padding == other.padding,
            index::MSS => self.mss == other.mss,
            index::WINDOW_SCALE => self.wscale == other.wscale,
            index::TIMESTAMP => self.timestamps == other.timestamps,
            index::SACK => (self.blocks, &self.sack) == (other.blocks, &other.sack),
            _ => self.generic(index) == other.generic(index),
        }
    }

    /// True if the table has the options of a header unchanged, except for timestamps.
    pub(super) fn holds_all_of(&self, octets: &[u8]) -> bool {
        let mut options = *self;
        options.read(octets).is_some()
            && options.structure().iter().all(|&index| {
                index == index::TIMESTAMP || self.has_item(index) && self.has_same(&options, index)
            })
    }

    /// Returns a generic option, from its type on.
    pub(super) fn generic(&self, index: u8) -> &[u8] {
        let at = usize::from(index.saturating_sub(index::GENERIC));
        let start = self.lens.iter().take(at).map(|len| usize::from(*len)).sum::<usize>();
        let len = self.lens.get(at).map_or(0, |len| usize::from(*len));
        self.arena.get(start..start + len).unwrap_or_default()
    }

    /// Puts a generic option into the table. False if there is no room for it.
    fn set_generic(&mut self, index: u8, option: &[u8]) -> bool {
        let at = usize::from(index.saturating_sub(index::GENERIC));
        let Some(old) = self.lens.get(at).map(|len| usize::from(*len)) else { return false };
        let used = self.lens.iter().map(|len| usize::from(*len)).sum::<usize>();
        if used - old + option.len() > ARENA {
            return false;
        }
        let start = self.lens.iter().take(at).map(|len| usize::from(*len)).sum::<usize>();
        self.arena.copy_within(start + old..used, start + option.len());
        if let Some(room) = self.arena.get_mut(start..start + option.len()) {
            room.copy_from_slice(option);
        }
        // Unused octets are zero, so that equal tables compare equal.
        if let Some(behind) = self.arena.get_mut(used - old + option.len()..) {
            behind.fill(0);
        }
        self.lens[at] = option.len() as u8;
        true
    }

    /// Puts a generic option into the table. If there is no room, removes the least recently used ones, except those in `kept`, a
    /// bit for each index. False if there is no room for it.
    fn make_room(&mut self, index: u8, option: &[u8], kept: u16) -> bool {
        if self.set_generic(index, option) {
            return true;
        }
        let kept = kept | 1 << index;
        let recent = self.recent();
        for place in (0..GENERICS).rev() {
            let old = index::GENERIC + (recent >> (4 * place) & 0xF) as u8;
            if kept >> old & 1 == 0 && !self.generic(old).is_empty() {
                self.known &= !(1 << old);
                self.set_generic(old, &[]);
                if self.set_generic(index, option) {
                    return true;
                }
            }
        }
        false
    }

    /// Returns the items of the options before an item, and of later ones that are not `present` in the list, a bit for each
    /// place.
    fn kept(&self, index: u8, present: u16) -> u16 {
        let count = self.structure().iter().position(|i| *i == index).unwrap_or(0);
        let places = self.structure().iter().enumerate();
        let is_kept = places.filter(|(k, _)| *k < count || present >> k & 1 == 0);
        is_kept.fold(0, |kept, (_, index)| kept | 1 << index)
    }

    /// Returns all generic options in the order of their last use, including the oldest.
    fn recent(&self) -> u64 {
        let newer = u64::from(self.recent);
        let all = (0..GENERICS as u64).sum::<u64>();
        let oldest = all - (0..GENERICS - 1).map(|place| newer >> (4 * place) & 0xF).sum::<u64>();
        newer | oldest << (4 * (GENERICS - 1))
    }

    /// Records the use of the options in the list.
    fn note_use(&mut self) {
        self.used = 0;
        for index in self.structure.into_iter().take(usize::from(self.count)) {
            self.used |= 1 << (index & 0xF);
            let Some(option) = index.checked_sub(index::GENERIC).map(u64::from) else { continue };
            let mut recent = self.recent();
            let Some(place) = (0..GENERICS).find(|place| recent >> (4 * place) & 0xF == option) else {
                continue;
            };
            let newer = recent & ((1 << (4 * place)) - 1);
            let older = recent >> (4 * (place + 1)) << (4 * (place + 1));
            recent = older | newer << 4 | option;
            self.recent = recent as u32;
        }
    }

    /// Reads the options of a header. Returns true if they differ from the last ones by more than timestamps; `None` if a list
    /// cannot encode them.
    #[inline]
    pub(super) fn take(&mut self, octets: &[u8]) -> Option<bool> {
        if let Some(timestamps) = self.timestamps_of(octets) {
            self.timestamps = timestamps;
            return Some(false);
        }
        self.read(octets).map(|()| true)
    }

    /// Returns the timestamps of options that are otherwise equal to the last ones. Returns `None` also for options beside NOPs.
    #[inline]
    pub(super) fn timestamps_of(&self, mut octets: &[u8]) -> Option<[u32; 2]> {
        // Most headers have these.
        if !IS_SMALL
            && let (
                [index::NOP, index::NOP, index::TIMESTAMP],
                [kind::NOP, kind::NOP, kind::TIMESTAMPS, 10, a, b, c, d, e, f, g, h],
            ) = (self.structure(), octets)
        {
            return Some([[*a, *b, *c, *d], [*e, *f, *g, *h]].map(u32::from_be_bytes));
        }
        let mut timestamps = self.timestamps;
        for &index in self.structure() {
            octets = match (index, octets) {
                (index::NOP, [kind::NOP, behind @ ..]) => behind,
                (index::TIMESTAMP, [kind::TIMESTAMPS, 10, a, b, c, d, e, f, g, h, behind @ ..]) => {
                    timestamps = [[*a, *b, *c, *d], [*e, *f, *g, *h]].map(u32::from_be_bytes);
                    behind
                }
                _ => return None,
            };
        }
        octets.is_empty().then_some(timestamps)
    }

    /// Reads the options of a header. `None` if a list cannot encode them; the table is then invalid.
    pub(super) fn read(&mut self, octets: &[u8]) -> Option<()> {
        (self.count, self.used) = (0, 0);
        if octets.is_empty() {
            return Some(());
        }
        let mut used = 0_u16;
        let mut walk = Walk::new(octets);
        for (kind, option) in walk.by_ref() {
            let is_free = |index: u8| used >> index & 1 == 0;
            let index = match (kind, option) {
                (kind::NOP, _) => index::NOP,
                (kind::TIMESTAMPS, &[_, _, a, b, c, d, e, f, g, h]) if is_free(index::TIMESTAMP) => {
                    self.timestamps = [[a, b, c, d], [e, f, g, h]].map(u32::from_be_bytes);
                    index::TIMESTAMP
                }
                (kind::SACK, &[_, 10 | 18 | 26 | 34, ref blocks @ ..]) if is_free(index::SACK) => {
                    self.sack = [[0; 2]; 4];
                    self.blocks = (blocks.len() / 8) as u8;
                    for (block, octets) in self.sack.as_flattened_mut().iter_mut().zip(blocks.chunks_exact(4))
                    {
                        *block = octets.try_into().map_or(0, u32::from_be_bytes);
                    }
                    index::SACK
                }
                (kind::MSS, &[_, _, high, low]) if is_free(index::MSS) => {
                    self.mss = u16::from_be_bytes([high, low]);
                    index::MSS
                }
                (kind::WINDOW_SCALE, &[_, _, wscale]) if is_free(index::WINDOW_SCALE) => {
                    self.wscale = wscale;
                    index::WINDOW_SCALE
                }
                (kind::SACK_PERMITTED, &[_, _]) if is_free(index::SACK_PERMITTED) => index::SACK_PERMITTED,
                _ => self.place_generic(option, used)?,
            };
            used |= 1 << index;
            self.append(index)?;
        }
        match walk.end()? {
            TcpOptionsEnd::Exhausted => {}
            // 8 bits have the number of bits of padding.
            TcpOptionsEnd::EndOfOptionList { padding }
                if padding.len() <= 31 && padding.iter().all(|octet| *octet == 0) =>
            {
                self.padding = padding.len() as u8;
                self.append(index::EOL)?;
                used |= 1 << index::EOL;
            }
            TcpOptionsEnd::EndOfOptionList { .. } | TcpOptionsEnd::Malformed { .. } => return None,
        }
        self.known |= used;
        self.note_use();
        Some(())
    }

    fn append(&mut self, index: u8) -> Option<()> {
        *self.structure.get_mut(usize::from(self.count))? = index;
        self.count += 1;
        Some(())
    }

    /// Gives the generic options of a header, which was read, the lowest indices. A list with one of them has then half as many
    /// octets of indices. Only for a packet that has all options in full.
    #[cold]
    pub(super) fn renumber(&mut self, octets: &[u8]) -> Option<()> {
        if self.structure().iter().all(|index| *index <= index::GENERIC) {
            return Some(());
        }
        self.known &= (1 << index::GENERIC) - 1;
        (self.lens, self.arena) = ([0; GENERICS], [0; ARENA]);
        self.read(octets)
    }

    /// Finds an index for a generic option: that of an option of its type, a free one, or that of an option that is not in the
    /// header.
    fn place_generic(&mut self, option: &[u8], used: u16) -> Option<u8> {
        let kind = option.first();
        let all = || (index::GENERIC..ITEMS as u8).filter(|index| used >> index & 1 == 0);
        let found = all()
            .find(|index| self.generic(*index) == option)
            .or_else(|| all().find(|index| self.generic(*index).first() == kind))
            .or_else(|| all().find(|index| self.generic(*index).is_empty()))
            .or_else(|| all().next())?;
        let before = self.generic(found);
        if before == option {
            return Some(found);
        }
        // An option in more than one header may change: most have numbers or digests. rohc-lib cannot read static ones.
        self.statics &= !(1 << found);
        self.make_room(found, option, used).then_some(found)
    }

    /// Writes the options as in a header, and returns their octets. `None` if they are too long, or not whole words.
    pub(super) fn write(&self, out: &mut [u8; MAX_OCTETS]) -> Option<usize> {
        let [[a, b, c, d], [e, f, g, h]] = self.timestamps.map(u32::to_be_bytes);
        if let [index::NOP, index::NOP, index::TIMESTAMP] = self.structure() {
            let octets = [kind::NOP, kind::NOP, kind::TIMESTAMPS, 10, a, b, c, d, e, f, g, h];
            *out.first_chunk_mut()? = octets;
            return Some(octets.len());
        }
        let mut at = 0;
        for &index in self.structure() {
            let mut put = |octets: &[u8]| {
                out.get_mut(at..at + octets.len())?.copy_from_slice(octets);
                at += octets.len();
                Some(())
            };
            match index {
                index::NOP => put(&[kind::NOP])?,
                index::EOL => (0..=self.padding).try_for_each(|_| put(&[kind::EOL]))?,
                index::MSS => {
                    put(&[kind::MSS, 4])?;
                    put(&self.mss.to_be_bytes())?;
                }
                index::WINDOW_SCALE => put(&[kind::WINDOW_SCALE, 3, self.wscale])?,
                index::TIMESTAMP => put(&[kind::TIMESTAMPS, 10, a, b, c, d, e, f, g, h])?,
                index::SACK_PERMITTED => put(&[kind::SACK_PERMITTED, 2])?,
                index::SACK => {
                    put(&[kind::SACK, 2 + 8 * self.blocks])?;
                    let blocks = self.sack.iter().take(usize::from(self.blocks));
                    blocks.flatten().try_for_each(|edge| put(&edge.to_be_bytes()))?;
                }
                _ => put(self.generic(index))?,
            }
        }
        (at % 4 == 0).then_some(at)
    }
}

/// Encoding of the options of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListEncoding {
    /// Options that are in the list in full, a bit for each place: X.
    pub(super) present: u16,
    /// Items that the other side may hold with other content, a bit for each index. (Writing only.)
    pub(super) changed: u16,
    /// `tsval` and `tsecho`, with their references.
    pub(super) timestamps: [Counter; 2],
}

/// `list_tcp_options`. RFC 6846, section 6.3.3.
pub(super) fn list_tcp_options<'p, C: Coder<'p>>(
    c: &mut C,
    options: &mut TcpOptionTable,
    sent: &mut ListEncoding,
    ack: u32,
) -> Step {
    zeros(c, "reserved", 3)?;
    let wide = c.flag("PS", &mut options.structure().iter().any(|index| *index > 7))?;
    c.uint("m", 4, &mut options.count)?;
    let count = usize::from(options.count);
    let mut present = 0;
    for (k, index) in options.structure.iter_mut().enumerate().take(count) {
        let is_present = c.flag("X", &mut (sent.present >> k & 1 == 1))?;
        present |= u16::from(is_present) << k;
        if wide {
            zeros(c, "reserved", 3)?;
        }
        c.uint("Index", if wide { 4 } else { 3 }, index)?;
    }
    sent.present = present;
    if !wide && count % 2 == 1 {
        zeros(c, "Padding", 4)?;
    }
    for k in 0..count {
        if present >> k & 1 == 1 {
            let index = options.structure[k];
            list_item(c, index, options, sent, ack)?;
            options.known |= 1 << index;
        }
    }
    options.note_use();
    Ok(())
}

/// The formats of options whose names end in `_list_item`.
pub(super) fn list_item<'p, C: Coder<'p>>(
    c: &mut C,
    index: u8,
    options: &mut TcpOptionTable,
    sent: &mut ListEncoding,
    ack: u32,
) -> Step {
    match index {
        index::NOP | index::SACK_PERMITTED => Ok(()),
        index::EOL => {
            let mut bits = options.padding * 8;
            c.uint("pad_len", 8, &mut bits)?;
            options.padding = bits / 8;
            c.require(bits.is_multiple_of(8))
        }
        index::MSS => c.uint("mss", 16, &mut options.mss),
        index::WINDOW_SCALE => c.uint("wscale", 8, &mut options.wscale),
        index::TIMESTAMP => {
            for ((value, stamp), name) in
                sent.timestamps.iter_mut().zip(&mut options.timestamps).zip(["tsval", "tsecho"])
            {
                value.irregular(c, name, 32)?;
                *stamp = value.value;
            }
            Ok(())
        }
        index::SACK => {
            let mut blocks = options.blocks;
            c.uint("discriminator", 8, &mut blocks)?;
            c.require((1..=4).contains(&blocks))?;
            sack_blocks(c, options, blocks, ack)
        }
        _ => {
            let mut option = [0; MAX_OCTETS];
            let before = options.generic(index);
            let mut len = before.len() as u8;
            if let Some(room) = option.get_mut(..before.len()) {
                room.copy_from_slice(before);
            }
            c.uint("type", 8, &mut option[0])?;
            let is_static = c.flag("option_static", &mut (options.statics >> index & 1 == 1))?;
            c.uint("length_lsb", 7, &mut len)?;
            c.require((2..=MAX_OCTETS as u8).contains(&len))?;
            option[1] = len;
            for octet in option.iter_mut().take(usize::from(len)).skip(2) {
                c.uint("contents", 8, octet)?;
            }
            options.statics = options.statics & !(1 << index) | u16::from(is_static) << index;
            let option = option.get(..usize::from(len)).unwrap_or_default();
            let kept = options.kept(index, sent.present);
            if !options.make_room(index, option, kept) {
                return refuse();
            }
            Ok(())
        }
    }
}

fn sack_blocks<'p, C: Coder<'p>>(c: &mut C, options: &mut TcpOptionTable, blocks: u8, ack: u32) -> Step {
    options.blocks = blocks;
    let (used, unused) = options.sack.split_at_mut(usize::from(blocks).min(4));
    unused.fill([0; 2]);
    let mut base = ack;
    for [start, end] in used {
        sack_pure_lsb(c, "block_start", base, start)?;
        sack_pure_lsb(c, "block_end", *start, end)?;
        base = *end;
    }
    Ok(())
}

/// Items without an irregular part, a bit for each index.
const SILENT: u16 = 1 << index::NOP
    | 1 << index::EOL
    | 1 << index::MSS
    | 1 << index::WINDOW_SCALE
    | 1 << index::SACK_PERMITTED;

/// Irregular items of all options that are not in a list in full. RFC 6846, section 6.3.6.
#[inline]
pub(super) fn irregular<'p, C: Coder<'p>>(
    c: &mut C,
    options: &mut TcpOptionTable,
    sent: &mut ListEncoding,
    ack: u32,
) -> Step {
    if sent.present == 0 && options.used & !SILENT == 1 << index::TIMESTAMP {
        return timestamps_irregular(c, options, sent);
    }
    for k in 0..usize::from(options.count).min(MAX_OPTIONS) {
        let index = options.structure[k];
        if index != index::NOP && sent.present >> k & 1 == 0 {
            irregular_item(c, index, options, sent, ack)?;
        }
    }
    Ok(())
}

/// `tsopt_irregular`.
#[inline(always)]
fn timestamps_irregular<'p, C: Coder<'p>>(
    c: &mut C,
    options: &mut TcpOptionTable,
    sent: &mut ListEncoding,
) -> Step {
    let [value, echo] = &mut sent.timestamps;
    ts_lsb(c, "tsval", value)?;
    ts_lsb(c, "tsecho", echo)?;
    options.timestamps = [value.value, echo.value];
    Ok(())
}

/// The formats of options whose names end in `_irregular`.
#[inline]
pub(super) fn irregular_item<'p, C: Coder<'p>>(
    c: &mut C,
    index: u8,
    options: &mut TcpOptionTable,
    sent: &mut ListEncoding,
    ack: u32,
) -> Step {
    let has_changed = || sent.changed >> index & 1 == 1;
    match index {
        index::NOP | index::EOL | index::MSS | index::WINDOW_SCALE | index::SACK_PERMITTED => Ok(()),
        index::TIMESTAMP => timestamps_irregular(c, options, sent),
        index::SACK => {
            let mut blocks = if has_changed() { options.blocks } else { 0 };
            c.uint("discriminator", 8, &mut blocks)?;
            c.require(blocks <= 4)?;
            if blocks == 0 { Ok(()) } else { sack_blocks(c, options, blocks, ack) }
        }
        _ if options.statics >> index & 1 == 1 => Ok(()),
        _ => {
            let mut discriminator = if has_changed() { 0 } else { 0xFF_u8 };
            c.uint("discriminator", 8, &mut discriminator)?;
            if discriminator == 0xFF {
                return Ok(());
            }
            c.require(discriminator == 0)?;
            let mut option = [0; MAX_OCTETS];
            let before = options.generic(index);
            let len = before.len();
            option.get_mut(..len).ok_or(Refusal::Malformed)?.copy_from_slice(before);
            for octet in option.iter_mut().take(len).skip(2) {
                c.uint("contents", 8, octet)?;
            }
            options.set_generic(index, option.get(..len).unwrap_or_default());
            Ok(())
        }
    }
}
