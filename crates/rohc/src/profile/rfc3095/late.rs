//! Packets whose SN does not go on: late ones, duplicates, and those of a sender that counts anew. RFC 4224.
//!
//! A packet that was sent before the newest one must not set the context back. Both ends decide by the same rule which one was: the
//! compressor keeps as its context what the decompressor keeps.

use thinair_wire::range::SequenceRange;
use thinair_wire::serial::Serial;
use thinair_wire::time::Instant;

use super::attempt::ahead;
use super::compress::Rfc3095SenderContext;
use super::doubt::Reference;
use super::rtp::RtpFields;
use super::{IpFields, Rfc3095Fields, has_own_sn, has_rtp};
use crate::id::{Format, ProfileId};

/// Number of packets by which a packet may be late, or a duplicate.
pub(super) const LATE: i32 = 8;

/// Steps of a 32-bit SN from which on its low 16 bits may be ambiguous.
const FAR_SN_STEP: u32 = 1 << 11;

/// True if a packet that is `ahead` of the newest one by that much may be late or a duplicate.
#[inline]
pub(super) fn seems_late(ahead: i32) -> bool {
    (-LATE..=0).contains(&ahead)
}

/// The newest packet of a flow.
pub(super) struct NewestPacket<'a> {
    pub(super) profile: ProfileId,
    pub(super) sn: u32,
    pub(super) ips: &'a [IpFields],
    /// The fields of RTP, in its profiles.
    pub(super) rtp: Option<&'a RtpFields>,
}

impl NewestPacket<'_> {
    /// True if a packet that seems late was sent before this one.
    ///
    /// An IR or IR-DYN packet was if it has an earlier place in the pattern. If the SN of others is the sender's own, it may have
    /// gone back, while timestamp or IP-IDs continue. Without these, and with all of them as here, a packet with a larger format
    /// counts as a new one.
    pub(super) fn is_newer_than(&self, x: &Rfc3095Fields<'_>, format: Format) -> bool {
        if format.is_initialization() {
            return ahead(self.profile, x.sn, self.sn) < 0 && self.is_on_line(x);
        }
        if !has_own_sn(self.profile) {
            return true;
        }
        let (mut tells_order, mut goes_on, mut is_same) = (false, false, x.sn == self.sn);
        let mut step = |step: i32| {
            (tells_order, goes_on, is_same) = (true, goes_on || step > 0, is_same && step == 0);
        };
        if let Some(rtp) = self.rtp {
            step(x.rtp.ts.wrapping_sub(rtp.ts).cast_signed());
        }
        for (kept, ip) in self.ips.iter().zip(x.base()).filter(|(_, ip)| ip.holds_ip_id()) {
            // In another byte order they cannot be compared: the sender has said that it counts anew.
            let moved = ip.counted_id().wrapping_sub(kept.counted_id()).cast_signed();
            step(if ip.nbo == kept.nbo { moved.into() } else { 1 });
        }
        let is_new = goes_on || format.updates() && (is_same || !tells_order);
        !is_new
    }

    /// True if timestamp and IP-IDs of a packet differ from these as the SN does.
    fn is_on_line(&self, x: &Rfc3095Fields<'_>) -> bool {
        let rtp = self.rtp.map(|rtp| RtpFields { ts: x.rtp.ts, ..*rtp });
        let newest = Reference::new(self.sn, self.ips, self.rtp);
        Reference::new(x.sn, x.base(), rtp.as_ref()).moved_from(&newest) == (false, 0)
    }
}

impl Rfc3095SenderContext {
    /// True if an SN does not go on, and the decompressor may therefore take the packet as a late one.
    #[inline]
    pub(super) fn seems_late(&self, sn: u32) -> bool {
        has_own_sn(self.profile) && !self.sns.is_empty() && seems_late(ahead(self.profile, sn, self.sn))
    }

    /// True if a packet that seems late was sent before the newest one, in U- and O-mode.
    #[cold]
    pub(super) fn has_sent_newer(&self, x: &Rfc3095Fields<'_>, format: Format) -> bool {
        let ips = self.ips.get(..x.base_ips()).unwrap_or(&self.ips);
        let rtp = self.own.rtp().filter(|_| has_rtp(self.profile)).map(|rtp| &rtp.fields);
        let newest = NewestPacket { profile: self.profile, sn: self.sn, ips, rtp };
        !self.mode.is_secure() && newest.is_newer_than(x, format)
    }

    /// Records a packet that was sent before the newest one: a decompressor that has lost that one takes it as its reference.
    /// Otherwise nothing is kept of it, and its acknowledgment confirms no change.
    #[cold]
    pub(super) fn note_late(&mut self, now: Instant, x: &Rfc3095Fields<'_>, window: u8) {
        self.sns.include(x.sn as u16, usize::from(window));
        for (offsets, ip) in self.offsets.iter_mut().zip(&x.ips).take(x.base_ips()) {
            if ip.holds_ip_id() {
                offsets.include(ip.counted_id().wrapping_sub(x.sn as u16));
            }
        }
        let next = (self.sn as u16).plus(1);
        self.pending_since = next;
        if let Some(rtp) = self.own.rtp_mut() {
            rtp.timestamps.note_late(now, &x.rtp, next);
        }
        self.established = false;
    }

    /// Records an SN that has gone back by more than a late packet, or an SN of ESP far from the last one, whose window keeps 16
    /// bits of it.
    pub(super) fn note_sn(&mut self, sn: u32, repetitions: u8) {
        if !has_own_sn(self.profile) || self.sns.is_empty() {
            return;
        }
        self.note_old_sn(sn, repetitions);
        let step = ahead(self.profile, sn, self.sn);
        if self.profile == ProfileId::Esp && step.unsigned_abs() >= FAR_SN_STEP {
            self.sns = SequenceRange::new();
            self.require_dynamic(sn, repetitions);
        } else if step < -LATE {
            // The decompressor is in doubt (`doubt`), and a wrong reference fits CRC-3 once in eight times.
            self.strong = self.strong.max(repetitions.saturating_mul(2));
            self.established = false;
        }
    }
}
