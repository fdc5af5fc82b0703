//! What a packet changes, and what both ends know once it is sent. RFC 6846, sections 5.2 and 6.1.

use thinair_wire::time::Instant;

use super::compress::{Context, Plan, aged};
use super::encodings::{Counter, ts_fits};
use super::formats::has_crc7;
use super::ip::same_extensions;
use super::learn::IpIds;
use super::life::moment;
use super::numbers::Numbers;
use super::options::{ITEMS, Options, Sent, index};
use super::segment::{Segment, checksum_is_right};
use super::state::{Behavior, FIN, SYN, State};
use crate::compressor::CompressorConfig;
use crate::profile::Format;
use crate::refresh::{Due, Refresh};

/// What the TCP checksum does not cover: where a change of it is lost, a CRC of 3 bits is all that tells.
const UNCOVERED: [usize; 4] = [aged::TTL, aged::DSCP, aged::DF, aged::OUTER_TTL];

/// Packets that say such a change with a CRC of 7 bits, until one is acknowledged: more in a row than are likely to be
/// lost. Routes change seldom.
const SURE: u8 = 48;

/// Without feedback, one packet of so many has a CRC of 7 bits and 8 bits of IP-ID where the IP-ID counts: it is told by the
/// MSN, which cannot be trusted behind a gap, and nothing but the CRC covers it.
const ANEW: u16 = 16;

/// The least that TCP waits for before it sends again what was not acknowledged: 150 ms, and 200 in Linux.
const TIMEOUT: u32 = 143;

impl Context {
    /// The refresh policy of the mode.
    pub(super) fn policy<'c>(&self, config: &'c CompressorConfig) -> &'c Refresh {
        if self.two_way { &config.refresh_two_way } else { &config.refresh }
    }

    /// What is due by count or by clock.
    #[inline]
    pub(super) fn note_refresh(&mut self, now: Instant, config: &CompressorConfig) {
        let policy = self.policy(config);
        match self.timer.tick(now, policy) {
            Due::Nothing => {}
            Due::Everything if self.left_ir == 0 => {
                self.left_ir = match policy {
                    Refresh::Cycle { ir, .. } => u8::try_from(*ir).unwrap_or(u8::MAX),
                    Refresh::Budget { .. } | Refresh::Periodic { .. } | Refresh::Off => 1,
                };
                self.refreshing = true;
            }
            Due::Dynamic if self.left_ir == 0 => {
                self.left_dyn = self.left_dyn.max(1);
                self.refreshing = true;
            }
            Due::Everything | Due::Dynamic => {}
        }
    }

    /// The context of a compressor that knows that its last packet has arrived. Not so of the IP-ID: whoever is wrong there is
    /// found out by no TCP checksum.
    pub(super) fn behind(&self, last: &State) -> Self {
        let only = |value: u32| {
            let mut numbers = Numbers::NONE;
            numbers.push(value, 1);
            numbers
        };
        let mut context = *self;
        (context.seq, context.ack) = (only(last.seq), only(last.ack));
        context.timestamps = last.options.timestamps.map(only);
        context.window.set_only(last.window);
        context
    }

    /// Completes a packet by its control fields, and notes what has changed since the `last` one.
    pub(super) fn note(&mut self, next: &mut State, last: &State, config: &CompressorConfig) {
        let repetitions = config.repetitions;
        next.msn = last.msn.wrapping_add(1);
        next.ack_stride = last.ack_stride;
        (next.seq_scaled, next.seq_residue, next.has_scaled) =
            (last.seq_scaled, last.seq_residue, last.has_scaled);
        let is_said = self.left_ir > 0 || self.left_dyn > 0;
        self.note_handshake(next, last);
        let mut changed = [false; aged::COUNT];
        let innermost = usize::from(next.ip_count).saturating_sub(1);
        let mut ecn_changed = (next.reserved, next.ecn) != (last.reserved, last.ecn);
        for i in 0..=innermost {
            let (ip, kept) = (&mut next.ips[i], &last.ips[i]);
            let is_inner = i == innermost;
            if !ip.v6 {
                ip.behavior = match (self.is_new, is_inner) {
                    (true, true) => IpIds::first(ip.id),
                    (true, false) if ip.id == 0 => Behavior::Zero,
                    (false, true) => self.ip_ids.watch(kept.behavior, kept.id, ip.id, is_said),
                    (false, false) if kept.behavior == Behavior::Zero && ip.id == 0 => Behavior::Zero,
                    (_, false) => Behavior::Random,
                };
            }
            if self.is_new {
                continue;
            }
            if !ip.is_static(kept) {
                self.left_ir = self.left_ir.max(repetitions);
                self.changed(next.msn);
                continue;
            }
            if is_inner {
                changed[aged::TTL] = ip.ttl != kept.ttl;
                changed[aged::DSCP] = ip.tos >> 2 != kept.tos >> 2;
                changed[aged::BEHAVIOR] = ip.behavior != kept.behavior;
                // Another behaviour has other formats, or other octets in the irregular chain, and then the TCP checksum
                // stands elsewhere; but not these two.
                let is_swapped = ip.behavior.is_sequential() && kept.behavior.is_sequential();
                changed[aged::DF] = ip.df != kept.df || changed[aged::BEHAVIOR] && is_swapped;
                ecn_changed |= ip.tos & 0b11 != kept.tos & 0b11;
            } else {
                changed[aged::OUTER_TTL] = ip.ttl != kept.ttl;
                ecn_changed |= ip.tos != kept.tos;
                if (ip.df, ip.behavior) != (kept.df, kept.behavior) {
                    self.left_dyn = self.left_dyn.max(repetitions);
                    self.changed(next.msn);
                }
            }
        }
        if next.extensions != last.extensions && !self.is_new {
            let same = (0..=innermost)
                .all(|i| same_extensions(next.ips[i].protocol, next.extensions_of(i), last.extensions_of(i)));
            if !same {
                self.left_ir = self.left_ir.max(repetitions);
                self.changed(next.msn);
            }
        }
        next.ecn_used = !self.is_new && self.ecn.watch(last.ecn_used, ecn_changed);
        changed[aged::ECN_USED] = next.ecn_used != last.ecn_used;
        changed[aged::URG_PTR] = next.urg_ptr != last.urg_ptr;
        if !self.is_new
            && let Some(stride) = self.strides.watch(next.ack.wrapping_sub(last.ack))
        {
            changed[aged::STRIDE] = stride != next.ack_stride;
            next.ack_stride = stride;
        }
        // Formats that do not say these flags mean one value of them; other decompressors take the last one.
        changed[aged::FLAGS] = (next.ack_flag, next.urg_flag) != (last.ack_flag, last.urg_flag);
        changed[aged::LIST] = next.options.structure() != last.options.structure();
        self.note_items(&next.options, &last.options, next.msn);
        let mut any = false;
        for (age, changed) in self.ages.iter_mut().zip(changed) {
            if changed && !self.is_new {
                *age = 0;
                any = true;
            }
        }
        if any {
            self.changed(next.msn);
        }
    }

    /// What a packet that was noted has to say.
    pub(super) fn plan(
        &self,
        now: Instant,
        next: &State,
        last: &State,
        segment: &Segment<'_>,
        config: &CompressorConfig,
    ) -> Plan {
        let is_due = |what: usize| self.is_due(what, config);
        let is_right = checksum_is_right(next.inner(), segment.tcp(), segment.payload());
        // A wrong checksum after right ones must not be taken for damage.
        let is_wrong_now = !is_right && (self.expects_right || self.told_wrong < config.repetitions);
        let (is_careful, is_moved) = self.ip_id_in_doubt(now, next, last);
        let has_many = !matches!(next.rsf, 0b000 | 0b001 | 0b010 | 0b100);
        let dynamic = is_wrong_now
            || is_moved
            || has_many
            || self.is_repeated(now, (next.seq, next.rsf), last, segment.payload().len());
        let common = !next.ack_flag
            || is_careful
            || next.urg_flag
            || is_due(aged::FLAGS)
            || is_due(aged::DSCP)
            || is_due(aged::DF)
            || is_due(aged::URG_PTR)
            || is_due(aged::STRIDE)
            || is_due(aged::BEHAVIOR)
            || next.ip_count > 1 && is_due(aged::OUTER_TTL)
            || self.says_ip_id_anew(next.inner().behavior, next.msn);
        let extended = next.rsf != 0 || is_due(aged::TTL) || is_due(aged::ECN_USED) || is_due(aged::LIST);
        Plan {
            whole: is_wrong_now && !next.goes_on(last),
            dynamic,
            is_right,
            extended,
            common,
            ip_id: is_careful,
            last: (last.ack, last.seq_residue),
        }
    }

    /// Whether a segment, by its sequence number and flags, was sent before, and TCP has waited before it is sent again. Much was
    /// lost then, be it that packets stood on another one that was; and if this one cannot be read either, it waits for twice
    /// as long.
    #[inline]
    pub(super) fn is_repeated(
        &self,
        now: Instant,
        (seq, rsf): (u32, u8),
        last: &State,
        payload: usize,
    ) -> bool {
        if moment(now).wrapping_sub(self.sent) < TIMEOUT {
            return false;
        }
        let len = payload as u32 + u32::from(rsf & FIN);
        let end = last.seq.wrapping_add(u32::from(self.payload)).wrapping_add(u32::from(last.rsf & FIN));
        len > 0 && end.wrapping_sub(seq.wrapping_add(len)) as i32 >= 0
    }

    /// What TCP itself tells of the IR packets: who goes on behind its SYN, and what that carried, has heard of the other side
    /// that it arrived, and it was an IR packet. So one is enough, without feedback as well. A SYN that is repeated says that
    /// it did not.
    fn note_handshake(&mut self, next: &State, last: &State) {
        let goes_on = next.seq.wrapping_sub(last.seq).wrapping_sub(1);
        let is_next = next.ack_flag && goes_on <= u32::from(self.payload);
        match (last.rsf == SYN, next.rsf & SYN == 0) {
            (true, true) if self.left_ir > 0 && !self.refreshing && is_next => {
                self.left_ir = 0;
                for &index in last.options.structure() {
                    self.told[usize::from(index) % ITEMS] = u8::MAX;
                }
            }
            (true, false) if !self.two_way => self.left_ir = self.left_ir.max(1),
            _ => {}
        }
    }

    /// Notes which items of the option table have changed.
    #[inline]
    fn note_items(&mut self, next: &Options, last: &Options, msn: u16) {
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
            if is_other || !last.knows(index) {
                self.told[at] = 0;
                changed = true;
            }
        }
        if changed {
            self.changed(msn);
        }
    }

    /// Whether a packet must say something that has changed.
    #[inline]
    pub(super) fn is_due(&self, what: usize, config: &CompressorConfig) -> bool {
        let enough = if UNCOVERED.contains(&what) { SURE } else { 0 };
        self.ages[what] < config.repetitions.max(enough)
    }

    /// Whether it is the turn of a packet that can be told without the MSN.
    #[inline]
    pub(super) fn says_ip_id_anew(&self, behavior: Behavior, msn: u16) -> bool {
        !self.two_way && behavior.is_sequential() && msn.is_multiple_of(ANEW)
    }

    /// Where the IP-ID counts, the decompressor may not be sure of the MSN behind a pause. Returns whether the IP-ID must be sent as
    /// a whole, and whether not even that will do, since others have taken IP-IDs meanwhile: they look like lost packets.
    #[inline]
    pub(super) fn ip_id_in_doubt(&self, now: Instant, next: &State, last: &State) -> (bool, bool) {
        if !next.inner().behavior.is_sequential() || !self.caution.is_behind_any_pause(now) {
            return (false, false);
        }
        let is_careful = !self.caution.is_quiet(now);
        let is_whole = is_careful || !Counter::write(next.ip_id_offset(), &self.ip_id_offset).fits(8, 3);
        (is_careful, is_whole && next.ip_id_offset() != last.ip_id_offset())
    }

    /// A packet is sent.
    #[inline]
    pub(super) fn note_sent(&mut self, now: Instant, config: &CompressorConfig) {
        self.sent = moment(now);
        self.caution.sent(now, 1, config.repetitions);
    }

    /// Something is said from this packet on.
    pub(super) fn changed(&mut self, msn: u16) {
        self.since = msn;
        self.confirmed = false;
        self.timer.changed();
    }

    /// How the options of a packet are to be sent.
    #[inline]
    pub(super) fn sent(&self, next: &State, last: &State, config: &CompressorConfig) -> Sent {
        let [value, echo] = &self.timestamps;
        let timestamps = [
            Counter::between(next.options.timestamps[0], value.bounds()),
            Counter::between(next.options.timestamps[1], echo.bounds()),
        ];
        let mut sent = Sent { present: 0, changed: 0, timestamps };
        for (k, &index) in next.options.structure().iter().enumerate() {
            let at = usize::from(index) % ITEMS;
            let is_told = self.told[at] >= config.repetitions;
            let fits = index != index::TIMESTAMP || timestamps.iter().all(ts_fits);
            sent.present |= u16::from(!is_told || !fits) << k;
            let is_same = self.same[at] >= config.repetitions.max(config.window) && last.options.knows(index);
            sent.changed |= u16::from(!is_same) << index;
        }
        sent
    }

    /// A packet was written: both ends know what it said.
    pub(super) fn commit(
        &mut self,
        next: &mut State,
        last: &State,
        sent: &Sent,
        format: Format,
        (payload, is_right): (usize, bool),
        config: &CompressorConfig,
    ) {
        let mut present = 0_u16;
        let mut used = 0_u16;
        for (k, &index) in next.options.structure().iter().enumerate() {
            used |= 1 << index;
            present |= (sent.present >> k & 1) << index;
        }
        if format == Format::Ir {
            // Whether anything else is in the table of the other side hangs on what it had before.
            next.options.known = used;
            for (index, told) in self.told.iter_mut().enumerate() {
                *told = if used >> index & 1 == 1 { *told } else { 0 };
            }
        }
        let mut left = used;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            left &= left - 1;
            self.told[at] = self.told[at].saturating_add((present >> at & 1) as u8);
            self.same[at] = self.same[at].saturating_add(1);
        }
        for age in &mut self.ages {
            *age = age.saturating_add(1);
        }
        let has_stamps = used >> index::TIMESTAMP & 1 == 1;
        if next.ack_stride != last.ack_stride {
            self.scaled_acks = 0;
        }
        self.note_numbers(next, (last.ack, last.seq_residue), has_stamps, payload, config);
        if format.is_initialization() || has_crc7(format) {
            self.expects_right = is_right;
            self.told_wrong = if is_right { 0 } else { self.told_wrong.saturating_add(1) };
        }
        let said = |left: &mut u8, is: bool| *left -= u8::from(is && *left > 0);
        said(&mut self.left_ir, matches!(format, Format::Ir | Format::IrCr));
        said(&mut self.left_dyn, format.is_initialization());
        if self.left_ir == 0 && self.left_dyn == 0 {
            self.refreshing = false;
        }
        self.msn = next.msn;
        self.is_new = false;
    }

    /// Notes the numbers of a packet that was sent; `last` has the acknowledgment number of the one before it, and its
    /// `seq_number_residue`.
    #[inline(always)]
    pub(super) fn note_numbers(
        &mut self,
        next: &mut State,
        last: (u32, u32),
        has_stamps: bool,
        payload: usize,
        config: &CompressorConfig,
    ) {
        let width = usize::from(config.window);
        self.seq.push(next.seq, width);
        self.ack.push(next.ack, width);
        self.window.push(next.window, width);
        if next.inner().behavior.is_sequential() {
            self.ip_id_offset.push(next.ip_id_offset(), width);
        } else {
            self.ip_id_offset.clear();
        }
        if has_stamps {
            for (range, value) in self.timestamps.iter_mut().zip(next.options.timestamps) {
                range.push(value, width);
            }
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
