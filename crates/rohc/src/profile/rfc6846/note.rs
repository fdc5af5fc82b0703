//! Changes by a packet, and the state of both ends after it was sent. RFC 6846, sections 5.2 and 6.1.

use thinair_wire::coder::Writer;
use thinair_wire::time::Instant;

use super::choose::compressed;
use super::compress::{PacketNeeds, TcpSenderContext, Written, changes};
use super::encodings::{Counter, ts_fits};
use super::formats::has_crc7;
use super::growth::{NUMBERS, numbers};
use super::ip::same_extensions;
use super::learn::IpIds;
use super::life::moment;
use super::numbers::Numbers;
use super::options::{ITEMS, ListEncoding, TcpOptionTable, index};
use super::segment::SegmentOctets;
use super::state::{Behavior, FIN, IpState, MAX_IP, SYN, TcpState};
use crate::compressor::CompressorConfig;
use crate::id::Format;
use crate::state::CompressorState;

/// Fields that the TCP checksum does not cover. If a change of them is lost, only a CRC of 3 bits detects it.
const UNCOVERED: u16 = 1 << changes::TTL | 1 << changes::DSCP | 1 << changes::DF | 1 << changes::OUTER_TTL;

/// Fields that only `co_common` has.
const COMMON: u16 = 1 << changes::DSCP
    | 1 << changes::DF
    | 1 << changes::URG_PTR
    | 1 << changes::STRIDE
    | 1 << changes::BEHAVIOR
    | 1 << changes::OUTER_TTL
    | 1 << changes::FLAGS;

/// Fields that only `rnd_8`, `seq_8` and `co_common` have.
const EXTENDED: u16 = 1 << changes::TTL | 1 << changes::ECN_USED | 1 << changes::LIST;

/// Without feedback, one packet in this many has a CRC of 7 bits and 8 bits of a counting IP-ID. The IP-ID follows from the MSN,
/// which is uncertain after a gap, and only the CRC covers it.
const ANEW: u16 = 16;

/// Minimum time before TCP retransmits an unacknowledged segment: 150 ms, and 200 in Linux.
const TIMEOUT: u32 = 143;

/// Returns the bit of a field if it has changed.
#[inline]
fn bit(what: usize, has_changed: bool) -> u16 {
    u16::from(has_changed) << what
}

impl TcpSenderContext {
    /// Returns the context as if the last packet were known to have arrived. This leaves out the IP-ID, since no TCP checksum
    /// detects an error in it.
    pub(super) fn behind(&self, last: &TcpState, config: &CompressorConfig) -> Self {
        let only = |value: u32| {
            let mut numbers = Numbers::NONE;
            numbers.push(value, 1);
            numbers
        };
        let mut context = *self;
        context.numbers = numbers(last).map(only);
        context.window.set_only(last.window);
        context.pending.drop_older(!UNCOVERED, config.repetitions);
        context.pending_items =
            (0..ITEMS).fold(0, |pending_items, at| pending_items | bit(at, self.sent_items[at] == 0));
        context
    }

    /// Completes a packet by its control fields, and records its changes since the `last` one.
    #[inline]
    pub(super) fn note(
        &mut self,
        now: Instant,
        next: &mut TcpState,
        last: &TcpState,
        has_other_options: bool,
        config: &CompressorConfig,
    ) {
        next.msn = last.msn.wrapping_add(1);
        let is_full = !self.establishment.is_established();
        if last.rsf == SYN {
            self.note_handshake(now, next, last);
        }
        let mut changed =
            bit(changes::FLAGS, (next.ack_flag, next.urg_flag) != (last.ack_flag, last.urg_flag))
                | bit(changes::URG_PTR, next.urg_ptr != last.urg_ptr);
        let mut ecn_changed = (next.reserved, next.ecn) != (last.reserved, last.ecn);
        let count = usize::from(next.ip_count).min(MAX_IP);
        for i in 0..count {
            let (ip, kept, is_inner) = (&mut next.ips[i], &last.ips[i], i + 1 == count);
            if !ip.is_v6() {
                ip.behavior = self.behavior(ip.header.id, kept, is_inner, is_full);
            }
            if !self.is_new && !ip.has_same_fields(kept) {
                let (fields, ecn) = self.note_ip(ip, kept, is_inner, next.msn, config);
                changed |= fields;
                ecn_changed |= ecn;
            }
        }
        if next.has_extensions() && !self.is_new && next.extensions != last.extensions {
            self.note_extensions(next, last, config);
        }
        next.ecn_used = !self.is_new && self.ecn.watch(last.ecn_used, ecn_changed);
        changed |= bit(changes::ECN_USED, next.ecn_used != last.ecn_used);
        if !self.is_new
            && let Some(stride) = self.strides.watch(next.ack.wrapping_sub(last.ack))
        {
            changed |= bit(changes::STRIDE, stride != next.ack_stride);
            next.ack_stride = stride;
        }
        if has_other_options {
            changed |= bit(changes::LIST, next.options.structure() != last.options.structure());
            self.note_items(&next.options, &last.options, next.msn);
        }
        if changed != 0 && !self.is_new {
            self.pending.require_all(changed, UNCOVERED, config.repetitions);
            self.changed(next.msn);
        }
    }

    /// Returns the behavior of the IP-ID of a packet.
    #[inline]
    fn behavior(&mut self, id: u16, kept: &IpState, is_inner: bool, is_full: bool) -> Behavior {
        match (self.is_new, is_inner) {
            (true, true) => IpIds::first(id),
            (false, true) => self.ip_ids.watch(kept.behavior, kept.header.id, id, is_full),
            (true, false) if id == 0 => Behavior::Constant,
            (false, false) if kept.behavior == Behavior::Constant && id == 0 => Behavior::Constant,
            (_, false) => Behavior::Random,
        }
    }

    /// Records the fields of an IP header that have changed. Returns those that have an age, a bit each, and true if ECN has
    /// changed.
    #[cold]
    fn note_ip(
        &mut self,
        ip: &IpState,
        kept: &IpState,
        is_inner: bool,
        msn: u16,
        config: &CompressorConfig,
    ) -> (u16, bool) {
        let (header, before) = (&ip.header, &kept.header);
        if !ip.has_same_static(kept) {
            self.establishment.require_ir(config.repetitions);
            self.changed(msn);
            return (0, false);
        }
        if !is_inner {
            if (header.df, ip.behavior) != (before.df, kept.behavior) {
                self.establishment.require_dynamic(config.repetitions);
                self.changed(msn);
            }
            return (bit(changes::OUTER_TTL, header.ttl != before.ttl), header.tos != before.tos);
        }
        // Another behavior has other formats, or other octets in the irregular chain, so that the TCP checksum is in another
        // place; but not these two.
        let has_other = ip.behavior != kept.behavior;
        let is_swapped = has_other && ip.behavior.is_sequential() && kept.behavior.is_sequential();
        let changed = bit(changes::TTL, header.ttl != before.ttl)
            | bit(changes::DSCP, header.tos >> 2 != before.tos >> 2)
            | bit(changes::BEHAVIOR, has_other)
            | bit(changes::DF, header.df != before.df || is_swapped);
        (changed, header.tos & 0b11 != before.tos & 0b11)
    }

    /// Records extension headers whose octets have changed.
    #[cold]
    fn note_extensions(&mut self, next: &TcpState, last: &TcpState, config: &CompressorConfig) {
        let is_same = |(i, ip): (usize, &IpState)| {
            same_extensions(ip.header.protocol, next.extensions_of(i), last.extensions_of(i))
        };
        if !next.ips().iter().enumerate().all(is_same) {
            self.establishment.require_ir(config.repetitions);
            self.changed(next.msn);
        }
    }

    /// Writes a recorded packet, if it needs no IR or IR-DYN packet.
    pub(super) fn write(
        &self,
        now: Instant,
        writer: &mut Writer<'_>,
        next: &mut TcpState,
        last: &TcpState,
        segment: &SegmentOctets<'_>,
        config: &CompressorConfig,
    ) -> Written {
        let is_right = segment.has_right_checksum(&next.inner().header);
        let is_wrong_now = self.is_wrong_now(is_right, config);
        let (is_careful, is_moved) = self.ip_id_in_doubt(now, next, last.ip_id_offset());
        let in_full = |format: Format| Written { format, present: 0, is_right };
        let state = self.establishment.state();
        if state == CompressorState::Ir || is_wrong_now && !next.goes_on(last) {
            return in_full(Format::Ir);
        }
        if state == CompressorState::Fo
            || is_wrong_now
            || is_moved
            || !matches!(next.rsf, 0b000 | 0b001 | 0b010 | 0b100)
            || self.is_repeated(now, next, (last.seq, last.rsf), segment.payload.len())
        {
            return in_full(Format::IrDyn);
        }
        let plan = self.plan(next, is_careful);
        let (sent, payload) = (self.sent(next, &last.options, config), segment.payload.len() as u32);
        let mut x = self.fields(next, (last.ack, last.seq_residue), sent, payload, &plan, config);
        match compressed(writer, next, segment.headers, &plan, &mut x) {
            Some(format) => Written { format, present: x.options.present, is_right },
            None => in_full(Format::IrDyn),
        }
    }

    /// Writes a packet as if the last one were known to have arrived.
    #[cold]
    pub(super) fn write_farewell(
        &self,
        now: Instant,
        writer: &mut Writer<'_>,
        next: &mut TcpState,
        last: &TcpState,
        segment: &SegmentOctets<'_>,
        config: &CompressorConfig,
    ) -> Written {
        let context = self.behind(last, config);
        let config = CompressorConfig { repetitions: 1, window: 1, ..*config };
        context.write(now, writer, next, last, segment, &config)
    }

    /// True if a checksum is wrong after correct ones, which must not look like damage.
    #[inline]
    pub(super) fn is_wrong_now(&self, is_right: bool, config: &CompressorConfig) -> bool {
        !is_right && (self.expects_right || self.wrong_checksums < config.repetitions)
    }

    /// Returns the fields that a compressed packet has to carry.
    #[inline]
    pub(super) fn plan(&self, next: &TcpState, is_careful: bool) -> PacketNeeds {
        let due = self.pending.fields();
        let common = !next.ack_flag
            || is_careful
            || next.urg_flag
            || due & COMMON != 0
            || self.repeats_ip_id(next.inner().behavior, next.msn);
        PacketNeeds { due, extended: next.rsf != 0 || due & EXTENDED != 0, common, ip_id: is_careful }
    }

    /// True if a segment, by its sequence number and flags, is a retransmission after a timeout. Much was lost then, or packets
    /// that others depended on; and if this one cannot be decompressed either, TCP waits for twice as long. `last` has the sequence
    /// number and the flags of the one before it.
    #[inline]
    pub(super) fn is_repeated(&self, now: Instant, next: &TcpState, last: (u32, u8), payload: usize) -> bool {
        if !self.has_timed_out(now) {
            return false;
        }
        let len = payload as u32 + u32::from(next.rsf & FIN);
        let (seq, rsf) = last;
        let end = seq.wrapping_add(u32::from(self.payload)).wrapping_add(u32::from(rsf & FIN));
        len > 0 && end.wrapping_sub(next.seq.wrapping_add(len)) as i32 >= 0
    }

    /// True if enough time has passed since the last packet for TCP to retransmit it.
    #[inline]
    fn has_timed_out(&self, now: Instant) -> bool {
        moment(now).wrapping_sub(self.sent) >= TIMEOUT
    }

    /// Infers from TCP that IR packets have arrived. A host that continues after its SYN, and its data, has received the answer
    /// of the other side, and the SYN was an IR packet. One is therefore enough, even without feedback. A SYN that is repeated
    /// after a timeout shows that it, or its answer, did not arrive; one that is repeated at once shows nothing.
    #[cold]
    fn note_handshake(&mut self, now: Instant, next: &TcpState, last: &TcpState) {
        let goes_on = next.seq.wrapping_sub(last.seq).wrapping_sub(1);
        let is_next = next.ack_flag && goes_on <= u32::from(self.payload);
        match next.rsf & SYN == 0 {
            true if self.establishment.is_ir() && !self.establishment.is_refresh() && is_next => {
                self.establishment.end_ir();
                self.note_established(&last.options);
            }
            false if !self.establishment.is_two_way() && self.has_timed_out(now) => {
                self.establishment.require_ir(1);
            }
            _ => {}
        }
    }

    /// Records the items of the option table that have changed.
    #[inline]
    fn note_items(&mut self, next: &TcpOptionTable, last: &TcpOptionTable, msn: u16) {
        let mut changed = false;
        for &index in next.structure() {
            let at = usize::from(index) % ITEMS;
            let is_other = match index {
                index::EOL => next.padding != last.padding,
                index::MSS => next.mss != last.mss,
                index::WINDOW_SCALE => next.wscale != last.wscale,
                index::SACK => {
                    let is_same = (next.blocks, &next.sack) == (last.blocks, &last.sack);
                    self.same[at] = if is_same { self.same[at] } else { 0 };
                    false
                }
                index::NOP | index::TIMESTAMP | index::SACK_PERMITTED => false,
                _ => {
                    let (new, old) = (next.generic(index), last.generic(index));
                    let irregular = (next.statics | last.statics) >> index & 1 == 0;
                    let is_alike = new.len() == old.len() && new.first() == old.first();
                    if new == old || irregular && is_alike {
                        self.same[at] = if new == old { self.same[at] } else { 0 };
                        (next.statics ^ last.statics) >> index & 1 == 1
                    } else {
                        true
                    }
                }
            };
            if is_other || !last.has_item(index) {
                self.sent_items[at] = 0;
                self.pending_items |= 1 << at;
                changed = true;
            }
        }
        if changed {
            self.changed(msn);
        }
    }

    /// True if the next packet has to be one that does not depend on the MSN.
    #[inline]
    pub(super) fn repeats_ip_id(&self, behavior: Behavior, msn: u16) -> bool {
        !self.establishment.is_two_way() && behavior.is_sequential() && msn.is_multiple_of(ANEW)
    }

    /// Checks a counting IP-ID after a pause, when the decompressor may be uncertain of the MSN. Returns two flags: the full
    /// IP-ID has to be sent, and even that is not enough, since other flows have used IP-IDs meanwhile, which look like lost
    /// packets.
    #[inline]
    pub(super) fn ip_id_in_doubt(&self, now: Instant, next: &TcpState, last_offset: u16) -> (bool, bool) {
        if !next.inner().behavior.is_sequential() || !self.caution.is_behind_any_pause(now) {
            return (false, false);
        }
        let is_careful = !self.caution.is_quiet(self.caution.waited(now));
        let is_whole = is_careful || !Counter::beside(next.ip_id_offset(), &self.ip_id_offset).fits(8, 3);
        (is_careful, is_whole && next.ip_id_offset() != last_offset)
    }

    /// Records that a packet is sent.
    #[inline]
    pub(super) fn note_sent(&mut self, now: Instant) {
        self.sent = moment(now);
        self.caution.sent(now, 1);
    }

    /// Records that a change is sent from this packet on.
    pub(super) fn changed(&mut self, msn: u16) {
        self.since = msn;
        self.confirmed = false;
        self.establishment.changed();
    }

    /// Returns the encoding of the options of a packet.
    #[inline]
    pub(super) fn sent(
        &self,
        next: &TcpState,
        last: &TcpOptionTable,
        config: &CompressorConfig,
    ) -> ListEncoding {
        let [.., value, echo] = &self.numbers;
        let timestamps = [
            Counter::within(next.options.timestamps[0], value.bounds()),
            Counter::within(next.options.timestamps[1], echo.bounds()),
        ];
        let mut sent = ListEncoding { present: 0, changed: 0, timestamps };
        let pending_items =
            self.pending_items | bit(index::TIMESTAMP.into(), !timestamps.iter().all(ts_fits));
        // Only a list carries the content of the items before that of SACK.
        if next.options.used & (pending_items | u16::MAX << index::SACK) != 0 {
            self.look_at_items(&mut sent, pending_items, next, last, config.repetitions.max(config.window));
        }
        sent
    }

    /// Sets the encoding of each item of the options, some of which are `pending_items`. Unchanged content was in `repetitions`
    /// packets.
    #[cold]
    fn look_at_items(
        &self,
        sent: &mut ListEncoding,
        pending_items: u16,
        next: &TcpState,
        last: &TcpOptionTable,
        enough: u8,
    ) {
        for (place, &index) in next.options.structure().iter().enumerate() {
            let at = usize::from(index) % ITEMS;
            sent.present |= (pending_items >> at & 1) << place;
            if index >= index::SACK {
                let is_same = self.same[at] >= enough && last.has_item(index);
                sent.changed |= bit(at, !is_same);
            }
        }
    }

    /// Counts the items of the options that were sent.
    #[cold]
    fn note_sent_items(&mut self, options: &TcpOptionTable, written: &Written, config: &CompressorConfig) {
        let places = options.structure().iter().enumerate();
        let present = places.fold(0, |items, (k, &index)| items | (written.present >> k & 1) << index);
        for at in (0..ITEMS).filter(|at| options.used >> at & 1 == 1) {
            self.sent_items[at] = self.sent_items[at].saturating_add((present >> at & 1) as u8);
            self.same[at] = self.same[at].saturating_add(1);
            self.pending_items &= !bit(at, self.sent_items[at] >= config.repetitions);
        }
    }

    /// Records that the other side has the items of these options.
    pub(super) fn note_established(&mut self, options: &TcpOptionTable) {
        for &index in options.structure() {
            self.sent_items[usize::from(index) % ITEMS] = u8::MAX;
        }
        self.pending_items &= !options.used;
    }

    /// Updates the state of both ends by a packet that was written. `last` has the acknowledgment number and `seq_number_residue` of the one
    /// before it.
    #[inline]
    pub(super) fn commit(
        &mut self,
        next: &mut TcpState,
        last: (u32, u32),
        written: &Written,
        payload: usize,
        config: &CompressorConfig,
    ) {
        let Written { format, is_right, .. } = *written;
        if format == Format::Ir {
            // Other items in the table of the other side depend on its previous content.
            next.options.known = next.options.used;
        }
        if written.present != 0 || next.options.used >> index::SACK != 0 {
            self.note_sent_items(&next.options, written, config);
        }
        self.pending.count_all();
        let has_stamps = next.options.used >> index::TIMESTAMP & 1 == 1;
        self.note_numbers(next, last, has_stamps, payload, config);
        if format.is_initialization() || has_crc7(format) {
            self.expects_right = is_right;
            self.wrong_checksums = if is_right { 0 } else { self.wrong_checksums.saturating_add(1) };
        }
        self.establishment.count(format);
        self.msn = next.msn;
        self.is_new = false;
    }

    /// Records the numbers of a packet that was sent. `last` has the acknowledgment number and `seq_number_residue` of the one
    /// before it.
    #[inline(always)]
    pub(super) fn note_numbers(
        &mut self,
        next: &mut TcpState,
        last: (u32, u32),
        has_stamps: bool,
        payload: usize,
        config: &CompressorConfig,
    ) {
        let width = usize::from(config.window);
        let count = if has_stamps { NUMBERS } else { NUMBERS - 2 };
        for (held, value) in self.numbers.iter_mut().zip(numbers(next)).take(count) {
            held.push(value, width);
        }
        self.window.push(next.window, width);
        if next.inner().behavior.is_sequential() {
            self.ip_id_offset.push(next.ip_id_offset(), width);
        } else {
            self.ip_id_offset.clear();
        }
        if width == 1 {
            self.window.set_only(next.window);
        }
        let is_scaled = payload > 0 && payload == usize::from(self.payload);
        next.scale(payload);
        self.payload = u16::try_from(payload).unwrap_or(0);
        let goes_on = is_scaled && last.1 == next.seq_residue;
        self.scaled_seqs =
            if goes_on { self.scaled_seqs.saturating_add(1) } else { u8::from(self.payload > 0) };
        let stride = u32::from(next.ack_stride);
        let goes_on = self.scaled_acks > 0 && stride != 0 && next.ack % stride == last.0 % stride;
        self.scaled_acks = if goes_on { self.scaled_acks.saturating_add(1) } else { u8::from(stride != 0) };
    }
}
