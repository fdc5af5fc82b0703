//! Decompressing the packets of one context. RFC 3095, sections 5.3.2 and 5.4.2.

use thinair_wire::coder::{Reader, Refusal, Traced, Tracer, Writer};
use thinair_wire::crc::Check;
use thinair_wire::header::extension::AH_FIXED;
use thinair_wire::header::protocol;
use thinair_wire::lsb::{self, Shift};
use thinair_wire::serial::Serial;
use thinair_wire::time::Instant;

use super::header::{self, Extension, ExtensionLists, Layout, Unbuildable};
use super::ir;
use super::list::{CompressedList, Item, MAX_ITEMS, Xi, encoding};
use super::table::{self, Pool, Table};
use super::tail::{Tail, tail};
use super::{BASE_IPS, FORMATS, Fields, IP_ID, IP_ID2, IpFields, SN, SN_SHIFT, UdpFields, base};
use crate::mode::Mode;
use crate::packet::Header;
use crate::profile::{Format, ProfileId};
use crate::state::DecompressorState;

/// Lists that may be named as references: those of the newest generations. RFC 3095, section 5.8.2.1, f).
const GENERATIONS: usize = 4;

/// Headers that must be decompressed after a repair before one is delivered, the repaired one included. RFC
/// 3095, sections 5.3.2.2.4 e) and 5.3.2.2.5.
const TRIAL: u8 = 2;

/// Why a packet is not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The octets cannot be a packet of this context.
    Malformed,
    /// The state does not allow to decompress this format (5.3.2.2.1).
    NotAllowed(Format),
    /// The CRC of the header does not match.
    Crc(Format),
    /// An item of a list is not in the translation table (5.8.1.1).
    UnknownItem(Format),
    /// The packet may be late or a duplicate (RFC 4224), so that its SN means something else than it seems to.
    Ambiguous(Format),
    /// Right, but not with the newest reference: late, or the beginning of a repair.
    Suspect(Format),
    /// The context was repaired just now; RFC 3095 holds its first packets back.
    OnTrial(Format),
    /// No memory for the extension headers.
    NoMemory,
    /// The caller's buffer is too short: octets needed.
    NoRoom(usize),
}

/// A verified packet, written to the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verified {
    pub(crate) format: Format,
    /// Octets of the ROHC header, CID included.
    pub(crate) header_in: usize,
    /// Octets of the rebuilt headers.
    pub(crate) header_out: usize,
    /// Octets of the packet; 0 if there is nothing to deliver.
    pub(crate) len: usize,
}

/// A list of indices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct List {
    len: u8,
    index: [u8; MAX_ITEMS],
}

/// What the decompressor keeps of the extension headers of one IP header.
#[derive(Clone, Copy, Debug, Default)]
struct ListState {
    current: List,
    /// Newest last; gen_id and list.
    generations: [(u8, List); GENERATIONS],
    generation_count: u8,
    /// Sequence number of the AH less the SN (RFC 4815, section 5.8).
    ah_offset: u32,
}

/// The context of one flow at the decompressor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub(crate) profile: ProfileId,
    pub(crate) state: DecompressorState,
    pub(crate) mode: Mode,
    ip_count: u8,
    ips: [IpFields; BASE_IPS],
    udp: UdpFields,
    /// Last verified SN and the one before: ref 0 and ref -1 of section 5.3.2.2.5.
    sn: u16,
    sn_before: u16,
    /// Packets still to be held back after a repair.
    trial: u8,
    /// The last packet was right with ref -1 only: it was late, or ref 0 is wrong.
    suspect: bool,
    /// The outcome of the last 16 packets, and of the last 16 updates: 1 is a failure.
    pub(crate) failures: u16,
    pub(crate) update_failures: u16,
    /// Check states after the CRC-STATIC octets: CRC-3 and CRC-7; `None` if they have changed.
    crc_static: Option<[u8; 2]>,
    lists: [ListState; BASE_IPS],
    table: Table,
    /// When the last packet was verified, and the smoothed time between packets in nanoseconds.
    arrival: Instant,
    gap: u64,
}

impl Context {
    pub(crate) fn new(profile: ProfileId) -> Self {
        Self {
            profile,
            state: DecompressorState::Nc,
            mode: Mode::Unidirectional,
            ip_count: 1,
            ips: [IpFields::default(); BASE_IPS],
            udp: UdpFields::default(),
            sn: 0,
            sn_before: 0,
            trial: 0,
            suspect: false,
            failures: 0,
            update_failures: 0,
            crc_static: None,
            lists: [ListState::default(); BASE_IPS],
            table: Table::default(),
            arrival: Instant::ZERO,
            gap: 0,
        }
    }

    /// The context as another profile takes it over: it starts in the initial mode (RFC 4815, section 7.2.2).
    pub(crate) fn taken_over(&self, profile: ProfileId) -> Self {
        Self { profile, mode: Mode::Unidirectional, ..*self }
    }

    /// Gives its memory back to the channel.
    pub(crate) fn release(&mut self, pool: &mut Pool<'_>) {
        self.table.release(pool);
    }

    /// The last verified SN.
    pub(crate) fn sn(&self) -> u16 {
        self.sn
    }

    #[inline(always)]
    fn fields(&self) -> Fields<'static> {
        let [outer, inner] = self.ips;
        let mut x = Fields::new(self.profile);
        x.ips = [outer, inner, IpFields::default(), IpFields::default()];
        x.ip_count = usize::from(self.ip_count);
        x.udp = self.udp;
        x.sn = self.sn;
        x
    }

    /// Fields with the static parts of all headers, those beyond the second included.
    fn all_fields(&self, pool: &Pool<'_>) -> Fields<'static> {
        let mut x = self.fields();
        for i in BASE_IPS..x.ip_count {
            if let Some(place) = self.table.find(pool, i, 0) {
                let item = table::stored(pool, place);
                let _ = ir::ip_static(&mut Reader::contiguous(item.body), &mut x.ips[i]);
            }
        }
        x
    }

    /// An IR packet whose profile is that of the context.
    pub(crate) fn ir(
        &mut self,
        now: Instant,
        packet: &Header<'_>,
        deliver_empty: bool,
        pool: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let mut reader = Reader::new(packet.first, packet.rest);
        let mut x = self.fields();
        let dynamic = ir::ir(&mut reader, &mut x, false).map_err(|_| Failure::Malformed)?;
        verify_crc8(packet, &reader, Format::Ir)?;
        if !dynamic {
            return self.static_only(&x, pool, packet.len_before(reader.remaining()));
        }
        self.initialize(now, packet, &reader, x, Format::Ir, deliver_empty, pool, out)
    }

    /// An IR-DYN packet whose profile is that of the context.
    pub(crate) fn ir_dyn(
        &mut self,
        now: Instant,
        packet: &Header<'_>,
        deliver_empty: bool,
        pool: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        if self.state == DecompressorState::Nc {
            return Err(Failure::NotAllowed(Format::IrDyn));
        }
        let mut reader = Reader::new(packet.first, packet.rest);
        let mut x = self.all_fields(pool);
        ir::ir_dyn(&mut reader, &mut x).map_err(|_| Failure::Malformed)?;
        verify_crc8(packet, &reader, Format::IrDyn)?;
        self.initialize(now, packet, &reader, x, Format::IrDyn, deliver_empty, pool, out)
    }

    /// RFC 4815, section 6.3: "an IR without a dynamic chain simply updates the static part".
    fn static_only(
        &mut self,
        x: &Fields<'_>,
        pool: &mut Pool<'_>,
        header_in: usize,
    ) -> Result<Verified, Failure> {
        self.keep_static(x, pool)?;
        self.crc_static = None;
        self.state.on_static();
        Ok(Verified { format: Format::Ir, header_in, header_out: 0, len: 0 })
    }

    fn keep_static(&mut self, x: &Fields<'_>, pool: &mut Pool<'_>) -> Result<(), Failure> {
        for i in BASE_IPS..x.ip_count {
            let mut octets = [0; 40];
            let mut ip = x.ips[i];
            let mut writer = Writer::new(&mut octets, 0);
            let _ = ir::ip_static(&mut writer, &mut ip);
            let len = writer.finish().map_err(|_| Failure::NoMemory)?;
            let item = Item { kind: 0, length: 0, body: octets.get(..len).unwrap_or_default() };
            self.table.put(pool, i, 0, &item).map_err(|_| Failure::NoMemory)?;
        }
        self.ip_count = x.ip_count as u8;
        self.ips.copy_from_slice(&x.ips[..BASE_IPS]);
        self.udp = x.udp;
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn initialize<'p>(
        &mut self,
        now: Instant,
        packet: &Header<'_>,
        reader: &Reader<'p>,
        x: Fields<'p>,
        format: Format,
        deliver_empty: bool,
        pool: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let payload = reader.remaining();
        let mut lists = ListUpdate::default();
        let layout = {
            let mut extensions = ExtensionLists::default();
            for i in 0..BASE_IPS.min(x.ip_count) {
                let (state, sent) = (&self.lists[i], x.extra[i].list());
                lists.lists[i] = if stays(sent, format) {
                    resolve_current(state, i, &self.table, pool, format, &mut extensions)?
                } else {
                    resolve_list(state, sent, i, &self.table, pool, format, &mut extensions)?
                };
            }
            let mut layout = Layout::default();
            header::rebuild(&x, &extensions, payload.len(), out, &mut layout).map_err(unbuildable)?;
            layout
        };
        self.commit_lists(&x, &lists, Some(format), pool)?;
        self.keep_static(&x, pool)?;
        self.sn_before = x.sn;
        self.sn = x.sn;
        self.trial = 0;
        self.crc_static = None;
        for (state, extra) in self.lists.iter_mut().zip(&x.extra) {
            if let Some(sn) = ah_sn(extra.list()) {
                state.ah_offset = sn.wrapping_sub(u32::from(x.sn));
            }
        }
        self.state.on_success();
        self.note_arrival(now);
        let header_in = packet.len_before(payload);
        // RFC 3095, section 5.7.7: delivered "if and only if the payload is non-empty".
        let len = if payload.is_empty() && !deliver_empty { 0 } else { deliver(&layout, payload, out)? };
        Ok(Verified { format, header_in, header_out: layout.len, len })
    }

    /// A compressed packet: type 0, 1 or 2.
    pub(crate) fn compressed(
        &mut self,
        now: Instant,
        packet: &Header<'_>,
        pool: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        if self.state == DecompressorState::Nc {
            return Err(Failure::NotAllowed(Format::Uo0));
        }
        let mut x = self.fields();
        let mut reader = Reader::new(packet.first, packet.rest);
        let format = read_base(packet, &mut reader, &mut x)?;
        let check = reader.crc_read().and_then(|(width, value)| Some((Check::of_width(width)?, value)));
        let Some((check, crc)) = check else { return Err(Failure::Malformed) };
        // 5.3.2.2.1, and RFC 5795, section 5.2.3: no attempt with 3 bits on an invalid dynamic context.
        if self.state == DecompressorState::Sc && check == Check::Crc3 {
            return Err(Failure::NotAllowed(format));
        }
        if x.ip_count > BASE_IPS {
            // The static parts of further headers lie in the table.
            let all = self.all_fields(pool);
            x.ips[BASE_IPS..].copy_from_slice(&all.ips[BASE_IPS..]);
        }
        let mut update = ListUpdate::default();
        let mut passed = Passed::default();
        let (found, payload) = {
            let mut extensions = ExtensionLists::default();
            let mut has = Tail { udp_checksum: self.udp.checksum != 0, icv: [0; BASE_IPS] };
            for i in 0..x.base_ips() {
                let has_list = x.extra[i].ipx && x.extra[i].has_list;
                if !has_list && self.lists[i].current.len == 0 {
                    continue;
                }
                update.lists[i] = if has_list {
                    resolve_list(
                        &self.lists[i],
                        x.extra[i].list(),
                        i,
                        &self.table,
                        pool,
                        format,
                        &mut extensions,
                    )?
                } else {
                    resolve_current(&self.lists[i], i, &self.table, pool, format, &mut extensions)?
                };
                has.icv[i] = compressed_icv_len(&extensions, i, x.extra[i].list());
            }
            tail(&mut reader, &mut x, &has).map_err(|_| Failure::Malformed)?;
            let payload = reader.remaining();
            let attempt = Attempt {
                context: self,
                reader: &reader,
                payload: payload.len(),
                check,
                crc,
                plain: !x.extra[0].flags && !x.extra[1].flags && x.ip_count <= BASE_IPS,
            };
            (attempt.find(now, format, &mut x, &mut extensions, out, &mut passed), payload)
        };
        found.inspect_err(|failure| self.suspect = matches!(failure, Failure::Suspect(_)))?;
        if passed.has_lists {
            self.commit_lists(&x, &update, None, pool)?;
            for (state, extra) in self.lists.iter_mut().zip(&passed.ah_sn) {
                if let Some(sn) = *extra {
                    state.ah_offset = sn.wrapping_sub(u32::from(x.sn));
                }
            }
        }
        self.sn_before = if passed.keeps_ref_before { self.sn_before } else { self.sn };
        self.sn = x.sn;
        for (kept, ip) in self.ips.iter_mut().zip(&x.ips).take(x.base_ips()) {
            *kept = *ip;
        }
        self.crc_static = Some(passed.crc_static);
        self.state.on_success();
        self.note_arrival(now);
        if passed.repaired {
            self.trial = if self.suspect { TRIAL - 1 } else { TRIAL };
        }
        self.suspect = false;
        if self.trial > 0 {
            self.trial -= 1;
            return Err(Failure::OnTrial(format));
        }
        let len = deliver(&passed.layout, payload, out)?;
        Ok(Verified { format, header_in: packet.len_before(payload), header_out: passed.layout.len, len })
    }

    /// Lists of generations and items are kept once the packet is verified.
    fn commit_lists(
        &mut self,
        x: &Fields<'_>,
        update: &ListUpdate,
        initialization: Option<Format>,
        pool: &mut Pool<'_>,
    ) -> Result<(), Failure> {
        for i in 0..BASE_IPS.min(x.ip_count) {
            let sent = x.extra[i].list();
            let has_list = initialization.is_some() || x.extra[i].ipx && x.extra[i].has_list;
            if !has_list {
                continue;
            }
            let mut items = sent.items.iter();
            for xi in sent.xis[..sent.xi_count().min(MAX_ITEMS)].iter().filter(|xi| xi.x) {
                let Some(item) = items.next() else { break };
                self.table.put(pool, i, xi.index, item).map_err(|_| Failure::NoMemory)?;
            }
            let state = &mut self.lists[i];
            // 5.8.2.1 d): a list without gen_id does not update the context; in an IR packet it is all there is.
            if initialization == Some(Format::Ir) || sent.has_gen_id {
                state.current = update.lists[i];
            }
            if sent.has_gen_id {
                state.remember(sent.gen_id, update.lists[i]);
                if sent.encoding != encoding::GENERIC {
                    state.forget_before(sent.ref_id);
                }
            }
        }
        Ok(())
    }

    /// Counts a packet that was right.
    #[inline]
    pub(crate) fn note_success(&mut self, update: bool) {
        self.failures <<= 1;
        if update {
            self.update_failures <<= 1;
        }
    }

    #[inline]
    fn note_arrival(&mut self, now: Instant) {
        let gap = now.nanos_since(self.arrival);
        self.gap = if self.gap == 0 { gap } else { self.gap - self.gap / 8 + gap / 8 };
        self.arrival = now;
    }

    /// Tells the fields of a packet, as far as this context can, and its format.
    pub(crate) fn dissect<'p>(
        &self,
        packet: &Header<'p>,
        pool: &Pool<'_>,
        mut tell: impl FnMut(Traced<'p>),
    ) -> Option<Format> {
        let reader = Reader::new(packet.first, packet.rest);
        let mut x = self.all_fields(pool).shorten();
        if packet.first & 0b1111_1110 == 0b1111_1100 {
            let _ = ir::ir(&mut Tracer::new(reader, tell), &mut x, false);
            return Some(Format::Ir);
        }
        if packet.first == 0b1111_1000 {
            let _ = ir::ir_dyn(&mut Tracer::new(reader, tell), &mut x);
            return Some(Format::IrDyn);
        }
        let format = read_base(packet, &mut { reader }, &mut x).ok()?;
        let mut tracer = Tracer::new(reader, &mut tell);
        base(format, &mut tracer, &mut x).ok()?;
        let mut extensions = ExtensionLists::default();
        let mut has = Tail { udp_checksum: self.udp.checksum != 0, icv: [0; BASE_IPS] };
        for i in 0..BASE_IPS.min(x.ip_count) {
            let list = x.extra[i].list();
            let resolved = if x.extra[i].ipx && x.extra[i].has_list {
                resolve_list(&self.lists[i], list, i, &self.table, pool, format, &mut extensions)
            } else {
                resolve_current(&self.lists[i], i, &self.table, pool, format, &mut extensions)
            };
            if resolved.is_err() {
                return Some(format);
            }
            has.icv[i] = compressed_icv_len(&extensions, i, list);
        }
        let _ = tail(&mut tracer, &mut x, &has);
        Some(format)
    }
}

impl Fields<'static> {
    /// The same fields, ready to borrow from a packet.
    fn shorten<'p>(self) -> Fields<'p> {
        self
    }
}

/// The lists that a packet leads to.
#[derive(Clone, Copy, Debug, Default)]
struct ListUpdate {
    lists: [List; BASE_IPS],
}

/// Finds the compressed format of a packet.
#[inline]
fn read_base<'p>(
    packet: &Header<'p>,
    reader: &mut Reader<'p>,
    x: &mut Fields<'p>,
) -> Result<Format, Failure> {
    for format in FORMATS {
        *reader = Reader::new(packet.first, packet.rest);
        match base(format, reader, x) {
            Ok(()) => return Ok(format),
            Err(Refusal::NotThis) => {}
            Err(Refusal::Malformed | Refusal::DoesNotFit) => return Err(Failure::Malformed),
        }
    }
    Err(Failure::Malformed)
}

/// RFC 3095, section 5.9.1: over the header with the CRC field zero, CID included, payload not.
fn verify_crc8(packet: &Header<'_>, reader: &Reader<'_>, format: Format) -> Result<(), Failure> {
    let len = packet.len_before(reader.remaining());
    // The CRC stands behind the profile octet, which is the first of what follows first octet and CID.
    let at = packet.len_before(packet.rest) + 1;
    let (head, behind) = (packet.whole.get(..at), packet.whole.get(at + 1..len));
    let (Some(head), Some(behind), Some((8, crc))) = (head, behind, reader.crc_read()) else {
        return Err(Failure::Malformed);
    };
    let check = Check::Crc8;
    let state = check.update(check.update(check.of(head), &[0]), behind);
    if state == crc { Ok(()) } else { Err(Failure::Crc(format)) }
}

fn unbuildable(why: Unbuildable) -> Failure {
    match why {
        Unbuildable::TooLong => Failure::Malformed,
        Unbuildable::NoRoom(need) => Failure::NoRoom(need),
    }
}

/// Copies the payload behind the rebuilt headers.
#[inline]
fn deliver(layout: &Layout, payload: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
    let end = layout.len + payload.len();
    out.get_mut(layout.len..end).ok_or(Failure::NoRoom(end))?.copy_from_slice(payload);
    Ok(end)
}

/// Attempts to rebuild one header with one SN after the other.
struct Attempt<'a, 'p> {
    context: &'a Context,
    reader: &'a Reader<'p>,
    payload: usize,
    check: Check,
    crc: u8,
    /// No CRC-STATIC octet can have changed.
    plain: bool,
}

/// What is known of a header when it has passed its CRC.
#[derive(Default)]
struct Passed {
    layout: Layout,
    crc_static: [u8; 2],
    /// There are extension headers, or the packet says that there are none any more.
    has_lists: bool,
    ah_sn: [Option<u32>; BASE_IPS],
    /// The SN was found by a repair.
    repaired: bool,
    /// RFC 3095, section 5.3.2.2.5 f): ref -1 is not changed.
    keeps_ref_before: bool,
}

impl Attempt<'_, '_> {
    /// Decodes with the references in the order of RFC 3095, section 5.3.2.2.3.
    #[inline]
    fn find<'i, 'p: 'i>(
        &self,
        now: Instant,
        format: Format,
        x: &mut Fields<'p>,
        extensions: &mut ExtensionLists<'i>,
        out: &mut [u8],
        passed: &mut Passed,
    ) -> Result<(), Failure> {
        let context = self.context;
        let (bits, k) = self.reader.collected(SN);
        let sn = lsb::decode(bits, k, context.sn, SN_SHIFT);
        let waited = now.nanos_since(context.arrival);
        if self.seems_late(sn, k, waited, x) {
            return Err(Failure::Ambiguous(format));
        }
        if self.with_sn(sn, x, extensions, out, passed)? {
            return Ok(());
        }
        // 5.3.2.2.4: the SN has wrapped around if that much time has passed.
        if context.gap > 0 && waited / context.gap >= 1 << k {
            let sn = lsb::decode(bits, k, context.sn.plus(1 << k), SN_SHIFT);
            passed.repaired = true;
            let right = self.with_sn(sn, x, extensions, out, passed)?;
            return if right { Ok(()) } else { Err(Failure::Crc(format)) };
        }
        // 5.3.2.2.5: the reference may have been updated wrongly. An SN that ref 0 has had is a duplicate's.
        let sn2 = lsb::decode(bits, k, context.sn_before, SN_SHIFT);
        if sn2 == sn || sn2 == context.sn || !self.with_sn(sn2, x, extensions, out, passed)? {
            return Err(Failure::Crc(format));
        }
        if !context.suspect {
            // Right with ref -1 alone: on a channel that reorders it is rather late than ref 0 wrong. It counts
            // as the first of the three headers of the repair, if another one follows.
            return Err(Failure::Suspect(format));
        }
        passed.repaired = true;
        passed.keeps_ref_before = true;
        Ok(())
    }

    /// RFC 4224: on a channel that reorders or duplicates, a packet that is late by `d` looks like one that is
    /// ahead by `2^k - d`. One that is really that far ahead comes after a loss, and so after a pause.
    #[inline]
    fn seems_late(&self, sn: u16, k: u32, waited: u64, x: &Fields<'_>) -> bool {
        if k == 0 || k >= u16::BITS {
            return false;
        }
        let ahead = u64::from(sn.since(self.context.sn));
        // Where nothing in the header depends on the SN, late or not makes no difference.
        let matters = || {
            (0..BASE_IPS.min(x.ip_count)).any(|i| x.ips[i].holds_ip_id() && !x.ips[i].sid)
                || self.context.lists.iter().any(|list| list.current.len > 0)
        };
        ahead >= 1 << (k - 1) && waited < self.context.gap.saturating_mul(ahead / 2) && matters()
    }

    /// Rebuilds the header with that SN; false if its CRC does not match.
    #[inline]
    fn with_sn<'i, 'p: 'i>(
        &self,
        sn: u16,
        x: &mut Fields<'p>,
        extensions: &mut ExtensionLists<'i>,
        out: &mut [u8],
        passed: &mut Passed,
    ) -> Result<bool, Failure> {
        x.sn = sn;
        self.resolve_ip_ids(x);
        passed.has_lists = !extensions.is_empty() || x.extra.iter().any(|extra| extra.ipx);
        if passed.has_lists {
            passed.ah_sn = self.resolve_ah(x, extensions);
        }
        header::rebuild(x, extensions, self.payload, out, &mut passed.layout).map_err(unbuildable)?;
        let layout = &passed.layout;
        let header = out.get(..layout.len).unwrap_or_default();
        let cached = self.context.crc_static.filter(|_| self.plain && !passed.has_lists);
        passed.crc_static = cached.unwrap_or_else(|| {
            [layout.crc_static(Check::Crc3, header), layout.crc_static(Check::Crc7, header)]
        });
        let state = passed.crc_static[usize::from(self.check != Check::Crc3)];
        Ok(layout.crc_dynamic(self.check, state, header) == self.crc)
    }

    /// RFC 3095, section 4.5.5.
    #[inline]
    fn resolve_ip_ids(&self, x: &mut Fields<'_>) {
        let holder = x.ip_id_holder();
        for i in 0..x.base_ips() {
            if !x.ips[i].holds_ip_id() {
                continue;
            }
            let reference = self.context.ips[i];
            if x.ips[i].sid {
                x.ips[i].id = reference.id;
                continue;
            }
            let mut bits = (0, 0);
            if holder == Some(i) {
                bits = self.reader.collected(IP_ID);
            }
            // The outer one of two may stand in a slot of its own, or in the only one.
            if i == 0 && x.ip_count > 1 && bits.1 == 0 {
                bits = self.reader.collected(IP_ID2);
            }
            let ip = &mut x.ips[i];
            let counted = IpFields { nbo: ip.nbo, ..reference }.counted_id();
            let offset = counted.wrapping_sub(self.context.sn);
            let offset = lsb::decode(bits.0, bits.1, offset, Shift::Zero);
            ip.id = offset.wrapping_add(x.sn);
            ip.id = ip.counted_id();
        }
    }

    /// RFC 4815, sections 5.8 and 8.9: the offset from the SN is constant, or the low bits are sent.
    fn resolve_ah<'i>(&self, x: &Fields<'i>, extensions: &mut ExtensionLists<'i>) -> [Option<u32>; BASE_IPS] {
        let mut sns = [None; BASE_IPS];
        for (i, extra) in x.extra.iter().enumerate() {
            let state = &self.context.lists[i];
            let mut sn = state.ah_offset.wrapping_add(u32::from(x.sn));
            if extra.has_ah_sn {
                let mask = if extra.ah_sn_long { 0x7FFF_FFFF } else { 0x7F };
                sn = sn & !mask | extra.ah_sn & mask;
            }
            if let Some(sn) = ah_sn(extra.list()) {
                sns[i] = Some(sn);
                continue;
            }
            for extension in extensions.of_mut(i).iter_mut().filter(|e| e.item.kind == protocol::AH) {
                extension.ah = Some((sn, extra.icv));
                sns[i] = Some(sn);
            }
        }
        sns
    }
}

impl ListState {
    /// Puts a list into the window of generations. The newest list with a gen_id counts: a compressor that
    /// took over the CID may use one again.
    fn remember(&mut self, gen_id: u8, list: List) {
        let count = usize::from(self.generation_count);
        let known = self.generations[..count].iter_mut().find(|(id, _)| *id == gen_id);
        if let Some(slot) = known {
            slot.1 = list;
            return;
        }
        if count == GENERATIONS {
            self.generations.rotate_left(1);
            self.generation_count -= 1;
        }
        self.generations[usize::from(self.generation_count)] = (gen_id, list);
        self.generation_count += 1;
    }

    /// RFC 3095, section 5.8.2.1 g): "All lists with generations older than ref_id are removed".
    fn forget_before(&mut self, ref_id: u8) {
        let count = usize::from(self.generation_count);
        if let Some(at) = self.generations[..count].iter().position(|(id, _)| *id == ref_id) {
            self.generations.rotate_left(at);
            self.generation_count -= at as u8;
        }
    }

    fn generation(&self, ref_id: u8) -> Option<&List> {
        let count = usize::from(self.generation_count);
        self.generations[..count].iter().find(|(id, _)| *id == ref_id).map(|(_, list)| list)
    }
}

impl List {
    fn push(&mut self, index: u8) -> Option<()> {
        *self.index.get_mut(usize::from(self.len))? = index;
        self.len += 1;
        Some(())
    }

    fn as_slice(&self) -> &[u8] {
        self.index.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// An empty list without gen_id in an IR-DYN packet says nothing of the list: it "do[es] not update the
/// context" (RFC 3095, section 5.8.2.1 d). Compressors send it for a list that is established.
fn stays(sent: &CompressedList<'_>, format: Format) -> bool {
    format == Format::IrDyn && sent.is_empty() && !sent.has_gen_id
}

/// The indices of a compressed list. `None` if it contradicts itself or its reference.
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
    let reference = state.generation(sent.ref_id).filter(|list| list.len > 0)?;
    if sent.encoding == encoding::REMOVAL && sent.count != reference.len {
        return None;
    }
    let mut kept = List::default();
    let removes = sent.encoding != encoding::INSERTION;
    for (i, &index) in reference.as_slice().iter().enumerate() {
        if !(removes && sent.removal.has(i)) {
            kept.push(index)?;
        }
    }
    if sent.encoding == encoding::REMOVAL {
        return Some(kept);
    }
    // A mark takes the next inserted item, a blank the next one that was kept; positions beyond the mask are
    // kept (RFC 4815, section 5.3).
    let mut kept = kept.as_slice().iter();
    for position in 0..sent.insertion.len() {
        if sent.insertion.has(position) {
            list.push(xis.next()?)?;
        } else if let Some(&index) = kept.next() {
            list.push(index)?;
        }
    }
    for &index in kept {
        list.push(index)?;
    }
    xis.next().is_none().then_some(list)
}

/// Resolves the list that a packet carries for header `owner`.
fn resolve_list<'i>(
    state: &ListState,
    sent: &CompressedList<'i>,
    owner: usize,
    table: &Table,
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
fn resolve_current<'i>(
    state: &ListState,
    owner: usize,
    table: &Table,
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
    let slots = extensions.set_len(owner, usize::from(list.len));
    for (slot, &index) in slots.iter_mut().zip(list.as_slice()) {
        *slot = Extension { item: item(index)?, ah: None };
    }
    Some(())
}

/// The item that was sent with an index: the last one, should there be several.
trait RevFind<'a, 'i> {
    fn rev_find(self, index: u8) -> Option<Item<'i>>;
}

impl<'a, 'i: 'a, I: Iterator<Item = (&'a Xi, &'a Item<'i>)>> RevFind<'a, 'i> for I {
    fn rev_find(self, index: u8) -> Option<Item<'i>> {
        self.filter(|(xi, _)| xi.index == index).last().map(|(_, item)| *item)
    }
}

/// Octets of AH data in the tail: the Integrity Check Value of an AH that is not sent in full.
fn compressed_icv_len(extensions: &ExtensionLists<'_>, owner: usize, sent: &CompressedList<'_>) -> usize {
    let Some(ah) = extensions.of(owner).iter().find(|e| e.item.kind == protocol::AH) else { return 0 };
    if ah_sn(sent).is_some() { 0 } else { ah.item.len().saturating_sub(AH_FIXED) }
}

/// The sequence number of the AH that a list carries in full.
fn ah_sn(sent: &CompressedList<'_>) -> Option<u32> {
    sent.items.iter().find(|item| item.kind == protocol::AH).and_then(sn_of)
}

fn sn_of(item: &Item<'_>) -> Option<u32> {
    // Reserved and SPI stand between the length field and the sequence number.
    let octets = item.body.get(6..10)?;
    Some(u32::from_be_bytes([octets[0], octets[1], octets[2], octets[3]]))
}
