//! Choice of a compressed format: the cheapest one with room for all fields of a packet. RFC 3095, sections 5.3.1.2 and 5.7.

use thinair_wire::coder::{Lsb, LsbSlot, Writer};
use thinair_wire::lsb::Shift;
use thinair_wire::time::Instant;

use super::attempt::ahead;
use super::cce::Cce;
use super::classify::ClassifiedPacket;
use super::compress::Rfc3095SenderContext;
use super::list_plan::{icv, sends_ah};
use super::pending::changes;
use super::proof::is_proved_by_sum;
use super::tail::{Tail, tail};
use super::timestamp::{Needed, Timestamps};
use super::{
    BASE_IPS, IP_ID, IP_ID2, Rfc3095Fields, SN, TS, base, formats, has_own_sn, has_rtp, rtp, sn_shift,
};
use crate::flow::caution::{Moved, REPEATED};
use crate::id::Format;

/// One packet in this many has the full IP-ID, if it moves and the carrier counts lost packets, except in R-mode.
const WHOLE_ID_EVERY: u32 = 16;

/// Bits that a packet needs in each slot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NeededBits {
    sn: u32,
    ip_id: u32,
    ts: Needed,
    /// The own number of the sender leaps behind a pause. To the decompressor that looks like lost packets, in which the IP-ID may have
    /// moved, unless a CRC of 7 bits shows the leap.
    is_leap: bool,
}

impl NeededBits {
    /// Sets the bits of each slot in extension 3 of that format of RTP; false if another format is shorter.
    fn shape(&self, format: Format, x: &mut Rfc3095Fields<'_>) -> bool {
        let ts =
            |base| if self.ts.inferable { 0 } else { rtp::sdvl_octets(self.ts.bits.saturating_sub(base)) };
        let with_ts = 2 * u8::from(self.ip_id > 0) + ts(5);
        let with_id = 2 * u8::from(self.ip_id > 5) + ts(0);
        let has_room_with_id = self.ts.inferable || self.ts.bits <= rtp::sdvl_bits(4);
        x.ext3_sn = self.sn > 6;
        match format {
            Format::Uo1IdExt3 => {
                (x.ext3_sn, x.ext3_id, x.rtp_extra.ts) = (self.sn > 4, self.ip_id > 5, ts(0));
                // The base header is an octet shorter than that of UOR-2. Extensions 0 to 2 take up to three octets, and
                // that of extension 2 has 16 bits of a scaled TS.
                let octets = with_id + u8::from(self.sn > 4);
                let is_shorter = octets < 1 + with_ts.min(with_id) + u8::from(self.sn > 6);
                has_room_with_id && is_shorter && (octets <= 2 || !self.ts.scaled || self.ts.bits > 16)
            }
            Format::Uor2IdExt3 => {
                (x.ext3_id, x.rtp_extra.ts) = (self.ip_id > 5, ts(0));
                has_room_with_id
            }
            Format::Uor2Ext3 => {
                (x.ext3_id, x.rtp_extra.ts) = (false, ts(6));
                true
            }
            _ => {
                (x.ext3_id, x.rtp_extra.ts) = (self.ip_id > 0, ts(5));
                with_ts <= with_id || !has_room_with_id
            }
        }
    }

    /// True if a format has sent no bits of TS, or enough.
    fn is_ts_right(&self, writer: &Writer<'_>) -> bool {
        writer.sent(TS) == 0 || writer.sent(TS) >= self.ts.bits
    }
}

/// True if a format has extension 3.
#[inline]
pub(super) fn has_extension_3(format: Format) -> bool {
    matches!(format, Format::Uor2Ext3 | Format::Uor2IdExt3 | Format::Uor2TsExt3)
}

/// True if a format has an extension 3 whose changes are not kept, so that it is never sent.
#[inline]
fn is_only_read(format: Format) -> bool {
    matches!(format, Format::R1Ext3 | Format::R1IdExt3 | Format::R1TsExt3)
}

/// True if a format has an extension with bits of an IP-ID in a profile without RTP. RFC 3095, section 5.11.4, does not say what
/// these bits are where no IP-ID is compressed, and rohc-lib refuses the packet.
#[inline]
fn extends_ip_id(format: Format) -> bool {
    use Format::{R1Ext0, R1Ext1, R1Ext2, Uor2Ext0, Uor2Ext1, Uor2Ext2};
    matches!(format, Uor2Ext0 | Uor2Ext1 | Uor2Ext2 | R1Ext0 | R1Ext1 | R1Ext2)
}

/// True if a format has the CRC of 3 bits.
#[inline]
pub(super) fn has_crc_3(format: Format) -> bool {
    use Format::{Uo0, Uo1, Uo1Id, Uo1IdExt0, Uo1IdExt1, Uo1IdExt2, Uo1IdExt3, Uo1Ts};
    matches!(format, Uo0 | Uo1 | Uo1Id | Uo1Ts | Uo1IdExt0 | Uo1IdExt1 | Uo1IdExt2 | Uo1IdExt3)
}

impl Rfc3095SenderContext {
    /// True if the headers depend on the SN, and no checksum proves it (`proof`).
    #[inline]
    fn depends_on_sn(&self, x: &Rfc3095Fields<'_>) -> bool {
        if self.initialization.has_right_sum() && x.udp.checksum != 0 && is_proved_by_sum(self.profile) {
            return false;
        }
        has_own_sn(self.profile)
            || x.base().iter().any(|ip| ip.holds_ip_id() && !ip.sid)
            || self.table.is_used()
    }

    /// Number of bits of the SN that a packet needs. An SN that the compressor does not generate may take a step that makes the
    /// packet look late (RFC 4224), unless the interval is twice as long.
    #[inline]
    fn sn_bits(&self, now: Instant, x: &Rfc3095Fields<'_>) -> u32 {
        let sn = x.sn;
        let needed = self.sns.needed_bits(sn as u16, sn_shift(self.profile));
        let step = sn.wrapping_sub(self.sn) as u16;
        // By RTP timestamps the other end may take the pace for steadier, so that no pause is usual there. Without a checksum the bits
        // alone tell which packet follows it: those of a step that does not go on.
        let is_unproved = has_rtp(self.profile) && x.udp.checksum == 0;
        let cautious_step = if is_unproved { 0 } else { i32::from(step.cast_signed()) };
        let careful = if self.depends_on_sn(x) { self.caution.bits(now, cautious_step) } else { 0 };
        let needed = needed.max(careful);
        match step {
            _ if !has_own_sn(self.profile) => needed,
            8..0x8000 => needed.max(u16::BITS - step.leading_zeros() + 1),
            // Behind a pause an SN that does not go on looks like one that is ahead by a turn of its bits.
            0 | 0x8000.. if self.caution.may_have_turned(now) && !self.mode.is_secure() => u16::BITS,
            _ => needed,
        }
    }

    /// Sends a timestamp that has jumped at a pause once more, for a decompressor that has missed the packets since, or takes a leap of the
    /// SN for a loss.
    fn repeat_jump(&self, now: Instant, timestamps: &Timestamps, needed: &mut Needed, x: &Rfc3095Fields<'_>) {
        if x.rtp.time_stride > 0 || self.mode.is_secure() {
            return;
        }
        let (caution, step) = (&self.caution, ahead(self.profile, x.sn, self.sn));
        let leaps = !(1..=REPEATED).contains(&step) && caution.may_have_turned(now);
        let (is_due, bits) = match self.depends_on_sn(x) {
            true if leaps => (true, caution.bits(now, step)),
            true => (caution.may_hide_changes(), caution.spread_bits()),
            false => {
                (caution.repeats(Moved::Timestamp) && caution.is_behind_long_pause(), caution.spread_bits())
            }
        };
        if caution.repeats(Moved::TimestampOffset) || is_due && !needed.scaled {
            let bits = (bits + u32::BITS - x.rtp.stride.leading_zeros()).min(u32::BITS);
            let unscaled = timestamps.unscaled(&x.rtp);
            *needed = Needed { bits: bits.max(unscaled.bits), ..unscaled };
        } else if is_due {
            (needed.inferable, needed.bits) = (false, needed.bits.max(bits));
        } else if needed.inferable && caution.may_hide_changes() {
            // A format that has bits of it nevertheless, with those of an IP-ID, needs as many.
            needed.bits = needed.bits.max(bits);
        }
    }

    /// Number of bits of an IP-ID offset that a packet needs. An IP-ID that moves against the SN is sent in full now and then: no
    /// checksum covers it, and a decompressor that has missed a few packets waits for it. References of R-mode are never missed.
    #[inline]
    pub(super) fn moving_id_bits(&self, i: usize, sn: u32, offset: u16, counted: bool) -> u32 {
        let bits = self.offsets[i].needed_bits(offset, Shift::Zero);
        let is_due = bits > 0 && sn.is_multiple_of(WHOLE_ID_EVERY);
        if counted && is_due && !self.mode.is_secure() { u16::BITS } else { bits }
    }

    /// Offers the IP-ID of a header. Returns the bits that it needs.
    #[inline]
    fn offer_ip_id(
        &self,
        writer: &mut Writer<'_>,
        slot: LsbSlot,
        i: usize,
        x: &Rfc3095Fields<'_>,
        counted: bool,
    ) -> u32 {
        let ip = &x.ips[i];
        let offset = ip.counted_id().wrapping_sub(x.sn as u16);
        let bits = if ip.sid {
            0
        } else if self.pending[i].has(changes::ID) || self.caution.repeats(Moved::IpId) {
            u16::BITS
        } else {
            self.moving_id_bits(i, x.sn, offset, counted)
        };
        writer.offer(slot, Lsb { value: u32::from(offset), needed: bits });
        bits
    }

    /// Offers the slots of a compressed header, with the bits that the window of each needs.
    #[inline]
    pub(super) fn offer(
        &self,
        now: Instant,
        writer: &mut Writer<'_>,
        x: &mut Rfc3095Fields<'_>,
        plan: &ClassifiedPacket<'_>,
        counted: bool,
    ) -> NeededBits {
        let mut needed = NeededBits { sn: self.sn_bits(now, x), ..NeededBits::default() };
        writer.offer(SN, Lsb { value: x.sn, needed: needed.sn });
        x.ext3_sn = needed.sn > 5;
        if let Some(i) = x.ip_id_holder() {
            needed.ip_id = self.offer_ip_id(writer, IP_ID, i, x, counted);
            x.ext3_id = needed.ip_id > 0;
        }
        if x.ip_id2_holder().is_some() {
            x.extra[0].id = self.offer_ip_id(writer, IP_ID2, 0, x, counted) > 0;
        }
        if let Some(rtp) = self.own.rtp() {
            needed.ts = rtp.timestamps.needed(now, &x.rtp, plan.timer.as_ref());
            self.repeat_jump(now, &rtp.timestamps, &mut needed.ts, x);
            if !needed.ts.inferable {
                // Without any bits the SN would determine it.
                needed.ts.bits = needed.ts.bits.max(1);
            }
            let Needed { value, bits, inferable, .. } = needed.ts;
            writer.offer(TS, Lsb { value, needed: if inferable { 0 } else { bits } });
            rtp.fill_extension(x, &needed.ts, self.mode.is_pending());
        }
        needed.is_leap = has_own_sn(self.profile)
            && !(1..=REPEATED).contains(&ahead(self.profile, x.sn, self.sn))
            && self.caution.may_have_turned(now)
            && x.base().iter().any(|ip| ip.holds_ip_id() && !ip.sid);
        for i in 0..x.base_ips() {
            let pending = &self.pending[i];
            let extra = &mut x.extra[i];
            extra.tos = pending.has(changes::TOS);
            extra.ttl = pending.has(changes::TTL);
            extra.ipx = extra.has_list || extra.has_ah_sn;
            extra.flags =
                extra.tos || extra.ttl || extra.ipx || pending.has(changes::FLAGS) || i == 0 && extra.id;
        }
        needed
    }

    /// Writes the first compressed format that has all fields, with its tail.
    #[inline]
    pub(super) fn write_compressed<'p>(
        &self,
        writer: &mut Writer<'_>,
        x: &mut Rfc3095Fields<'p>,
        plan: &ClassifiedPacket<'p>,
        needed: NeededBits,
        reliable_crc: bool,
    ) -> Option<Format> {
        // Only extension 3 has flags and fields of IP headers and of RTP.
        let flags = x.rtp_extra.flags
            || (0..x.base_ips()).any(|i| {
                x.extra[i].tos || x.extra[i].ttl || x.extra[i].ipx || self.pending[i].has(changes::FLAGS)
            });
        let (is_rtp, has_own_sn) = (has_rtp(self.profile), has_own_sn(self.profile));
        // RFC 4019, section 5.3.2: these "MUST NOT be used to extend R-0 and R-1* headers".
        let sets_coverage = matches!(x.cce, Some(Cce::On | Cce::Off));
        let secure = self.mode.is_secure();
        // It need not be sent as soon as there is a reference from which the SN determines it.
        let has_more = needed.ip_id > 0 || x.extra[0].id || is_rtp && !needed.ts.inferable;
        let update_due = secure && (reliable_crc || self.is_update_due(x.sn as u16, has_more));
        let is_strong = self.strong > 0 || self.caution.repeats_any() || needed.is_leap && !secure;
        let format = formats(self.profile, self.mode.mode()).iter().copied().find(|&format| {
            if secure && !self.is_allowed_by_mode(format, update_due || sets_coverage) {
                return false;
            }
            if has_extension_3(format) {
                if is_rtp && !needed.shape(format, x) {
                    return false;
                }
            } else if flags
                || is_only_read(format)
                || is_strong && has_crc_3(format)
                || !is_rtp && extends_ip_id(format) && x.ip_id_holder().is_none()
            {
                return false;
            } else if format == Format::Uo1IdExt3 {
                // RFC 3095, section 5.7.3: it updates SN, TS and IP-ID, and is sent with these alone.
                if x.rtp.m || x.extra[0].flags || x.cce.is_some() || !needed.shape(format, x) {
                    return false;
                }
            } else if !x.rtp_extra.scaled {
                return false;
            }
            writer.rewind();
            base(format, writer, x).is_ok()
                && writer.is_complete()
                && (!is_rtp || needed.is_ts_right(writer))
                && (!has_own_sn || self.sns.fits(x.sn as u16, writer.sent(SN), Shift::Sn))
        })?;
        let mut has = Tail {
            udp_checksum: self.udp.checksum != 0,
            coverage: x.cce.is_some() || self.coverage.is_present(),
            icv: [0; BASE_IPS],
        };
        let extended = if plan.has_extensions { plan.ips() } else { &[] };
        for (i, ip) in extended.iter().take(BASE_IPS).enumerate() {
            if ip.extension_count > 0 && !sends_ah(x.extra[i].list()) {
                x.extra[i].icv = icv(ip);
                has.icv[i] = x.extra[i].icv.len();
            }
        }
        tail(writer, x, &has).ok()?;
        Some(format)
    }
}
