//! Changes of a packet, the fields that it has to carry, and the state of both ends after sending. RFC 5225, sections 5.2.1 and 6.3.

use thinair_wire::time::Instant;

use super::chains::csrc_of;
use super::compress::{Outbound, V2SenderContext};
use super::encodings::{Counter, ReorderRatio, quarter};
use super::formats::{Fields, Indicators, NUMBERS, Stamp};
use super::headers::{CSRC, GRE_SEQUENCE, Headers, Item, Kind, MAX_IP, gre_sequence};
use super::state::{Behavior, State, coverage};
use crate::compressor::CompressorConfig;
use crate::field::timer::{ClockComparison, ticks};
use crate::flow::caution::Moved;
use crate::flow::pace::steps;
use crate::id::Format;

/// Fields that a packet carries only after a change: indices in [`Pending`](crate::flow::pending::Pending).
pub(super) mod changes {
    pub(in super::super) const TTL: usize = 0;
    pub(in super::super) const TOS: usize = 1;
    pub(in super::super) const DF: usize = 2;
    /// `coverage_behavior`, padding and extension.
    pub(in super::super) const FLAGS2: usize = 3;
    pub(in super::super) const OUTER: usize = 4;
    pub(in super::super) const PT: usize = 5;
    pub(in super::super) const LIST: usize = 6;
    pub(in super::super) const STRIDE: usize = 7;
    pub(in super::super) const BEHAVIOR: usize = 8;
    pub(in super::super) const REORDER_RATIO: usize = 9;
    pub(in super::super) const COUNT: usize = 10;
}

/// Fields that no checksum covers: if a change of them is lost, only a CRC of 3 bits detects it.
const UNCOVERED: u16 = 1 << changes::TTL | 1 << changes::TOS | 1 << changes::DF | 1 << changes::OUTER;

/// Largest step of a sequence number of the sender that is no leap, and bits of a number after a leap, which come with a CRC of 7 bits.
const LEAP: u32 = 4;
const LEAP_BITS: u32 = 7;

/// Bits of a packet that [`may_be_far`](V2SenderContext::may_be_far): its formats have a CRC of 7 bits.
const FAR_BITS: u32 = 6;

fn bit(what: usize, has_changed: bool) -> u16 {
    u16::from(has_changed) << what
}

impl V2SenderContext {
    /// Completes a packet by its control fields, and records its changes since the `last` one.
    pub(super) fn note(
        &mut self,
        outbound: &Outbound<'_>,
        next: &mut State,
        last: &State,
        config: &CompressorConfig,
    ) {
        next.reorder_ratio = self.reorder_ratio;
        if self.is_new {
            (self.since, self.acknowledged) = (next.msn, next.msn);
        }
        let mut changed = self.note_ips(next, last);
        let mut repair = false;
        for (item, kept) in next.headers.items().iter().zip(last.headers.items()) {
            // Their options are in the dynamic chain alone.
            let is_said = matches!(item.kind, Kind::HopByHop | Kind::Destination);
            repair |= is_said && next.headers.of(*item) != last.headers.of(*kept);
        }
        next.checksum_used = next.headers.upper(Kind::Udp).is_some_and(|udp| next.headers.word(udp, 6) != 0);
        repair |= next.checksum_used != last.checksum_used;
        changed |= self.note_coverage(next, last, outbound.octets.len() + outbound.payload.len());
        if let Some(rtp) = next.headers.upper(Kind::Rtp) {
            changed |= self.note_rtp(next, last, rtp);
            self.note_clock(outbound, next, last);
            // All fields that depend on it are sent in full.
            repair |= next.time_stride != last.time_stride;
        }
        if self.is_new {
            return;
        }
        if self.caution.begin_packet(outbound.now) {
            self.note_moved(next, last);
        }
        for (place, (item, at)) in numbers(&next.headers).enumerate().take(NUMBERS) {
            let counter = Counter::between(next.headers.long(item, at), self.numbers[place].bounds());
            repair |= !counter.fits(31, quarter(31));
        }
        let outer = (0..next.headers.inner_index()).filter(|at| next.headers.items()[*at].kind.is_ip());
        repair |= outer.clone().enumerate().any(|(ip, at)| {
            let item = next.headers.items()[at];
            let df = |state: &State| item.kind == Kind::V4 && state.headers.of(item)[6] & 0x40 != 0;
            next.behaviors[ip] != last.behaviors[ip] || df(next) != df(last)
        });
        if repair {
            self.establishment.require_dynamic(config.repetitions);
            self.changed(next.msn);
        }
        if changed != 0 {
            self.pending.require_all(changed, UNCOVERED, config.repetitions);
            self.changed(next.msn);
        }
    }

    /// Records fields that do not follow from the MSN.
    #[cold]
    fn note_moved(&mut self, next: &State, last: &State) {
        if next.is_sequential() && next.offset_of_id() != last.offset_of_id() {
            self.caution.note_moved(Moved::IpId);
        }
        if next.has_rtp() && next.time_stride == 0 && next.line() != last.line() {
            self.caution.note_moved(Moved::Timestamp);
            if next.ts_stride == 0 || next.ts_offset() != last.ts_offset() {
                self.caution.note_moved(Moved::TimestampOffset);
            }
        }
    }

    /// Records that a change is sent from this packet on.
    pub(super) fn changed(&mut self, msn: u32) {
        self.since = msn;
        self.establishment.changed();
    }

    /// Records the IP headers: behaviors of their IP-IDs, and changed fields. Returns those, a bit each.
    fn note_ips(&mut self, next: &mut State, last: &State) -> u16 {
        let (mut changed, mut ip) = (0, 0);
        for at in 0..=next.headers.inner_index() {
            let Some(item) = next.headers.items().get(at).copied() else { break };
            if !item.kind.is_ip() || ip >= MAX_IP {
                continue;
            }
            let is_inner = at == next.headers.inner_index();
            if item.kind == Kind::V4 {
                next.behaviors[ip] = self.behavior(next, last, item, ip, is_inner);
            }
            if !self.is_new {
                let fields = |headers: &Headers| {
                    let h = headers.of(item);
                    match item.kind {
                        Kind::V4 => (h[1], h[8], h[6] & 0x40),
                        _ => (h[0] << 4 | h[1] >> 4, h[7], 0),
                    }
                };
                let ((tos, ttl, df), before) = (fields(&next.headers), fields(&last.headers));
                changed |= if is_inner {
                    let other_behavior = next.behaviors[ip] != last.behaviors[ip];
                    bit(changes::TOS, tos != before.0)
                        | bit(changes::TTL, ttl != before.1)
                        | bit(changes::DF, df != before.2)
                        | bit(changes::BEHAVIOR, other_behavior)
                } else {
                    bit(changes::OUTER, (tos, ttl) != (before.0, before.1))
                };
            }
            ip += 1;
        }
        changed
    }

    /// The behavior of the IP-ID of a packet. RFC 5225, section 6.3.3: that of an outer header is random or zero.
    fn behavior(&mut self, next: &State, last: &State, item: Item, ip: usize, is_inner: bool) -> Behavior {
        let id = next.headers.word(item, 4);
        let df = next.headers.of(item)[6] & 0x40 != 0;
        let before = last.behaviors[ip];
        match (is_inner, self.is_new) {
            (true, true) => self.watchers[ip].first(id, df, true),
            (true, false) => {
                let kept = last.headers.word(item, 4);
                let behavior = self.watchers[ip].next(before, id, kept, id == 0);
                // A sequential one is sent in full: the MSN may have taken another step.
                if behavior == Behavior::Constant && id != 0 { Behavior::Random } else { behavior }
            }
            (false, true) if id == 0 && df => Behavior::Constant,
            (false, false) if id == 0 && before == Behavior::Constant => Behavior::Constant,
            (false, _) => Behavior::Random,
        }
    }

    /// Chooses `coverage_behavior`: inferred as long as the coverage is the length, static as long as it stays. Returns the
    /// changed fields.
    fn note_coverage(&mut self, next: &mut State, last: &State, total: usize) -> u16 {
        let Some(udp) = next.headers.upper(Kind::UdpLite) else { return 0 };
        let (field, before) = (next.headers.word(udp, 4), last.headers.word(udp, 4));
        let length = total.saturating_sub(usize::from(udp.at));
        let is_whole = usize::from(field) == length;
        next.coverage_behavior = match last.coverage_behavior {
            _ if self.is_new => {
                if is_whole {
                    coverage::INFERRED
                } else {
                    coverage::STATIC
                }
            }
            coverage::INFERRED if is_whole => coverage::INFERRED,
            coverage::STATIC if field == before => coverage::STATIC,
            _ => coverage::IRREGULAR,
        };
        bit(changes::FLAGS2, next.coverage_behavior != last.coverage_behavior && !self.is_new)
    }

    /// Records an RTP header. Returns the changed fields, a bit each.
    fn note_rtp(&mut self, next: &mut State, last: &State, rtp: Item) -> u16 {
        Self::assign_csrcs(next, rtp);
        let h = next.headers.of(rtp);
        let (first, second) = (h[0], h[1]);
        if self.is_new {
            return 0;
        }
        let kept = last.headers.upper(Kind::Rtp).unwrap_or(rtp);
        let before = last.headers.of(kept);
        let diff = next.timestamp().wrapping_sub(last.timestamp());
        let ahead = next.msn.wrapping_sub(last.msn);
        next.ts_stride = self.strides.watch(last.ts_stride, diff, ahead);
        if next.ts_stride != last.ts_stride {
            self.lines.clear();
            self.ts_offsets.clear();
        }
        let has_other_list = h.get(12..) != before.get(12..);
        bit(changes::FLAGS2, (first ^ before[0]) & 0x30 != 0)
            | bit(changes::PT, (second ^ before[1]) & 0x7F != 0)
            | bit(changes::LIST, has_other_list)
            | bit(changes::STRIDE, next.ts_stride != last.ts_stride)
    }

    /// Sets TIME_STRIDE: once clock and timestamps were compared for long enough, as long as the stride of the timestamps stays.
    fn note_clock(&mut self, outbound: &Outbound<'_>, next: &mut State, last: &State) {
        let (now, ts_scaled) = (outbound.now, next.ts_scaled());
        next.time_stride = match outbound.timer {
            _ if self.is_new || next.ts_stride != last.ts_stride => {
                self.comparison = ClockComparison::start(now, ts_scaled);
                0
            }
            Some(_) if last.time_stride > 0 => last.time_stride,
            Some(_) if next.ts_stride > 1 => self.comparison.time_stride(now, ts_scaled).unwrap_or(0),
            _ => 0,
        };
        if next.time_stride != last.time_stride {
            self.timestamps.clear();
        }
    }

    /// Gives each CSRC identifier an item of the table.
    fn assign_csrcs(next: &mut State, rtp: Item) {
        let count = (usize::from(rtp.len) - 12) / CSRC;
        if count == 0 {
            return;
        }
        for i in 0..count {
            let csrc = csrc_of(next, rtp, i);
            if next.csrcs.contains(&csrc) {
                continue;
            }
            let is_listed = |known: &[u8; 4]| (0..count).any(|i| csrc_of(next, rtp, i) == *known);
            if let Some(free) = next.csrcs.iter().position(|known| !is_listed(known)) {
                next.csrcs[free] = csrc;
                next.known &= !(1 << free);
            }
        }
    }

    /// Records that the other side has the CSRC identifiers of the last packet, once no change is pending.
    fn know_csrcs(&self, next: &mut State) {
        let Some(rtp) = next.headers.upper(Kind::Rtp).filter(|rtp| rtp.len > 12) else { return };
        if self.establishment.is_established() && !self.pending.has(changes::LIST) {
            for i in 0..(usize::from(rtp.len) - 12) / CSRC {
                let csrc = csrc_of(next, rtp, i);
                next.known |= next.csrcs.iter().position(|known| *known == csrc).map_or(0, |at| 1 << at);
            }
        }
    }

    /// Returns the fields that a packet has to carry if no IR packet is needed.
    pub(super) fn fields(&self, outbound: &Outbound<'_>, next: &State, config: &CompressorConfig) -> Fields {
        let is_due = |field: usize| self.pending.has(field);
        let now = outbound.now;
        let proves = self.sums && next.sum_covers_rtp();
        let leaps = !proves
            && !(1..=LEAP).contains(&next.msn.wrapping_sub(self.msn))
            && self.caution.may_have_turned(now);
        let repeats_jump = next.has_rtp()
            && next.time_stride == 0
            && if proves {
                self.caution.repeats(Moved::Timestamp) && self.caution.is_behind_long_pause()
            } else {
                leaps || self.caution.may_hide_changes()
            };
        let repeats_offset = next.time_stride == 0 && self.caution.repeats(Moved::TimestampOffset);
        let ts_scaled = self.scaled(outbound, next).map(|counter| {
            if !repeats_jump {
                return counter;
            }
            // The decompressor may have a value from before the pause, or from before one that has just ended.
            let value = next.ts_scaled();
            let (oldest, high) = self.timestamps.bounds().unwrap_or((u32::MAX, 0));
            let (oldest, high) = (oldest / next.ts_stride, high / next.ts_stride);
            let step = next.msn.wrapping_sub(self.msn).cast_signed();
            let bits = self.caution.spread_bits().max(self.caution.bits(now, step));
            let low = value.saturating_sub(1 << bits.min(30)).min(oldest);
            Counter::between(value, Some((low, high.max(low))))
        });
        let stamp = match &ts_scaled {
            _ if is_due(changes::STRIDE) || repeats_offset => Stamp::Unscaled,
            None => Stamp::Unscaled,
            Some(_) if repeats_jump => Stamp::Scaled,
            Some(_) if Counter::between(next.line(), self.lines.bounds()).is_static() => Stamp::Inferred,
            Some(_) => Stamp::Scaled,
        };
        let flags2 =
            is_due(changes::PT) || is_due(changes::LIST) || is_due(changes::FLAGS2) && next.has_rtp();
        let coverage = is_due(changes::FLAGS2) && !next.has_rtp();
        // A number of the sender that does not continue looks like a late one, or one after a gap.
        let step = next.msn.wrapping_sub(self.msn);
        let bits_of_leap = match next.has_own_msn() && !(1..=LEAP).contains(&step) {
            // After a pause, one that repeats or jumps back also looks like one whose bits have repeated.
            true if step.cast_signed() <= 0 && self.caution.may_have_turned(now) => u16::BITS,
            true => LEAP_BITS,
            false => 0,
        };
        // With bits of the timestamp after silence, the UDP checksum proves the number of RTP (`doubt`).
        let is_proved = proves
            && (stamp == Stamp::Scaled || next.time_stride > 0 && self.caution.is_spread())
            && !self.caution.is_behind_nack(config.repetitions);
        let depends = next.has_own_msn() && !is_proved || next.is_sequential();
        let far_bits = if Self::may_be_far(next) { FAR_BITS } else { 0 };
        let cautious_bits = if depends { self.caution.bits(now, step.cast_signed()) } else { 0 };
        let least_bits = cautious_bits.max(bits_of_leap).max(far_bits);
        let outer = is_due(changes::OUTER);
        let (ttl, tos) = (is_due(changes::TTL), is_due(changes::TOS));
        let mut flags1 = is_due(changes::DF) || is_due(changes::BEHAVIOR) || outer || coverage;
        flags1 |= next.has_rtp() && (ttl || tos || is_due(changes::REORDER_RATIO));
        let mut numbers = [Counter::read(0); NUMBERS];
        for (place, (item, at)) in self::numbers(&next.headers).enumerate().take(NUMBERS) {
            numbers[place] = Counter::between(next.headers.long(item, at), self.numbers[place].bounds());
        }
        Fields {
            msn: Counter::between(next.msn, self.msns.bounds()),
            least_bits,
            ip_id_offset: Counter::between(next.offset_of_id(), self.ip_id_offsets.bounds()),
            has_whole_id: is_due(changes::BEHAVIOR) || self.caution.repeats(Moved::IpId),
            timestamp: Counter::between(
                next.timestamp(),
                self.timestamps.bounds().filter(|_| next.time_stride == 0 && !repeats_offset && !leaps),
            ),
            ts_scaled: ts_scaled.unwrap_or(Counter::read(0)),
            stamp,
            outer_ip: outer,
            indicators: Indicators {
                flags1,
                flags2,
                ttl,
                tos,
                pt: is_due(changes::PT),
                list: is_due(changes::LIST),
                ts_stride: is_due(changes::STRIDE),
                time_stride: false,
            },
            numbers,
            crc3: 0,
            crc7: 0,
            control_crc3: 0,
        }
    }

    /// True if a packet in the smallest format is easily confused with a late one: three quarters of its interpretation interval lie behind
    /// the newest packet, and no checksum covers the IP-ID that depends on the MSN. Not for numbers of RTP and ESP: after bursts they are
    /// wrong for long, and then as often with 6 bits.
    fn may_be_far(next: &State) -> bool {
        next.reorder_ratio == ReorderRatio::ThreeQuarters && !next.has_own_msn() && next.is_sequential()
    }

    /// The scaled timestamp, if every reference has the same `ts_offset`. None may have wrapped around, which changes `ts_offset`.
    fn scaled(&self, outbound: &Outbound<'_>, next: &State) -> Option<Counter> {
        let stride = next.ts_stride;
        let offset = next.timestamp().checked_rem(stride)?;
        if !Counter::between(offset, self.ts_offsets.bounds()).is_static() {
            return None;
        }
        let (low, high) = self.timestamps.bounds()?;
        let bounds = match (next.time_stride, outbound.timer) {
            (time_stride @ 1.., Some(timer)) => {
                // Where the decompressor expects it, by its clock.
                let (at, margin) = (ticks(outbound.now, time_stride), timer.margin(time_stride));
                (low.wrapping_add(at).wrapping_sub(margin), high.wrapping_add(at).wrapping_add(margin))
            }
            _ if low <= high => (low / stride, high / stride),
            _ => return None,
        };
        Some(Counter::between(next.ts_scaled(), Some(bounds)))
    }

    /// Updates the state of both ends by a packet that was written.
    pub(super) fn commit(
        &mut self,
        now: Instant,
        next: &mut State,
        last: &State,
        format: Format,
        config: &CompressorConfig,
    ) {
        let width = usize::from(config.window);
        let step = next.msn.wrapping_sub(last.msn).cast_signed();
        if format == Format::Ir {
            self.caution.leap(now, step);
        }
        self.caution.sent(now, steps(step));
        self.msns.push(next.msn, width);
        self.is_steady = !Self::may_be_far(next);
        if next.is_sequential() {
            self.ip_id_offsets.push(next.offset_of_id(), width);
        } else {
            self.ip_id_offsets.clear();
        }
        if next.has_rtp() {
            self.timestamps.push(next.stamp(now), width);
            self.ts_offsets.push(next.ts_offset(), width);
            let line = next.line();
            self.lines.push(line, width);
            self.is_steady &= self.lines.holds_only(line);
        }
        for (place, (item, at)) in numbers(&next.headers).enumerate().take(NUMBERS) {
            self.numbers[place].push(next.headers.long(item, at), width);
        }
        self.is_steady &= !next.is_sequential() || self.ip_id_offsets.holds_only(next.offset_of_id());
        (self.msn, self.is_new) = (next.msn, false);
        self.pending.count_all();
        self.establishment.count(format);
        self.know_csrcs(next);
    }
}

/// The headers with a sequence number of their own in front of the transport header, and where that is.
pub(super) fn numbers(headers: &Headers) -> impl Iterator<Item = (Item, usize)> + '_ {
    headers.items().iter().filter_map(|item| match item.kind {
        Kind::Ah => Some((*item, 8)),
        Kind::Gre if headers.of(*item)[0] & GRE_SEQUENCE != 0 => {
            Some((*item, gre_sequence(headers.of(*item))))
        }
        _ => None,
    })
}
