//! Finds the SN where its bits may stand for several: behind a pause, or behind a loss that is longer than they reach. RFC 3095,
//! section 5.3.2.2.4, tries one SN more and holds two packets back; a CRC of 3 bits lets a wrong one through once in eight times,
//! and a wrong one that has passed does so again.
//!
//! Here all that may be meant are tried, and one is believed if
//!
//! - the checksum of UDP or UDP-Lite is right with it, where that covers what follows from the SN: RTP and CoAP; or
//! - no other one passes the CRC, of those that the carrier's count or the clock allow; or
//! - it is the only one near to the pace of a flow that has never paused.
//!
//! Elsewhere nothing is delivered, and feedback asks for more. So it is, too, where an IP-ID that moves against the SN may have moved
//! in a gap: none of these covers that.

use super::attempt::{Attempt, Passed};
use super::decompress::Failure;
use super::doubt::By;
use super::header::ExtensionLists;
use super::{Fields, IP_ID, IP_ID2, SN, Upper, has_own_sn, has_rtp, upper};
use crate::arrival::Passed as Clock;
use crate::profile::{Format, ProfileId};

/// An SN that is farther ahead is taken for one that is behind.
const HALF: u32 = 0x7FFF;

/// Packets in which compressors repeat what has changed: where fewer are missing, nothing was missed.
const REPEATED: i32 = 4;

/// SNs that are tried at most.
const TRIALS: u32 = 256;

impl Attempt<'_, '_> {
    /// True if `k` bits may stand for other SNs than `sn`, by the carrier's count or by the clock, and the header depends on it.
    #[inline]
    pub(super) fn is_open(&self, sn: u32, k: u32, x: &Fields<'_>) -> bool {
        let pace = &self.context.pace;
        if k == 0 || k >= u16::BITS || pace.is_next(self.now, 1 << k) || !self.holds_sn(x) {
            return false;
        }
        match pace.passed(self.now) {
            Clock::AtMost(most) => {
                let ahead = self.context.ahead(sn, self.context.sn);
                // An SN that is not the compressor's may take such a step by itself. What is late is not counted.
                let is_bounded = !has_own_sn(x.profile) && !(1..=i64::from(most)).contains(&i64::from(ahead));
                ahead.max(0) as u32 + (1 << k) <= most || is_bounded
            }
            _ => pace.is_open(self.now, 1 << k),
        }
    }

    /// True if the carrier counts lost packets, and the SN counts packets: then none is late, and none is farther ahead.
    pub(super) fn is_counted(&self, x: &Fields<'_>) -> bool {
        !has_own_sn(x.profile) && matches!(self.context.pace.passed(self.now), Clock::AtMost(_))
    }

    /// True if the packet depends on an IP-ID that may have moved in a gap, as far as the carrier counts: no checksum covers it, and
    /// a CRC lets a wrong one through. A packet with the whole IP-ID does not.
    pub(super) fn misses_ip_id(&self, x: &Fields<'_>) -> bool {
        let context = self.context;
        let is_whole = |slot| self.reader.collected(slot).1 >= u16::BITS;
        let may_have_moved = |most: u32| most > REPEATED as u32 && context.may_have_moved(most);
        context.calm < u8::MAX
            && matches!(context.pace.passed(self.now), Clock::AtMost(most) if may_have_moved(most))
            && (0..x.base_ips()).any(|i| x.ips[i].holds_ip_id() && !x.ips[i].sid)
            && !is_whole(IP_ID)
            && !is_whole(IP_ID2)
    }

    /// True if a right checksum proves the SN.
    fn has_sum(&self, x: &Fields<'_>) -> bool {
        self.context.sums && x.udp.checksum != 0 && is_proved_by_sum(x.profile)
    }

    /// Refuses a header that its CRC, or none, has let through behind a gap, a failure or a packet in doubt, if its
    /// checksum shows that it is wrong.
    #[inline]
    pub(super) fn by_sum(
        &self,
        format: Format,
        x: &Fields<'_>,
        out: &[u8],
        passed: &Passed,
    ) -> Result<(), Failure> {
        let context = self.context;
        let is_awaited = passed.by == By::Newest
            && (1..=REPEATED).contains(&context.ahead(x.sn, context.sn))
            && context.pace.has_not_failed();
        if is_awaited || passed.proved || !self.has_sum(x) {
            return Ok(());
        }
        let is_right = passed.layout.has_right_sum(out, self.reader.remaining());
        if is_right { Ok(()) } else { Err(Failure::Ambiguous(format)) }
    }

    /// Finds the SN among `sn` and those that are whole turns of its bits later.
    #[cold]
    pub(super) fn by_proof<'i, 'p: 'i>(
        &self,
        format: Format,
        sn: u32,
        x: &mut Fields<'p>,
        extensions: &mut ExtensionLists<'i>,
        out: &mut [u8],
        passed: &mut Passed,
    ) -> Result<(), Failure> {
        let context = self.context;
        let turn = 1 << self.reader.collected(SN).1;
        // Whoever comes behind a pause is not late.
        let behind = context.ahead(sn, context.sn) <= 0;
        let sn = if behind { self.sn_plus(sn, turn) } else { sn };
        let first = context.ahead(sn, context.sn) as u32;
        let (has_sum, clock) = (self.has_sum(x), context.pace.passed(self.now));
        let most = match clock {
            Clock::AtMost(most) | Clock::Perhaps(most) => most,
            Clock::About { packets, off } if !has_sum => packets.saturating_add(off),
            Clock::About { packets, .. } => packets.saturating_mul(2),
        };
        if matches!(clock, Clock::AtMost(_)) && first > most && !has_own_sn(x.profile) {
            return Err(Failure::Ambiguous(format));
        }
        let is_near = |ahead: u32| match clock {
            Clock::About { packets, off } => ahead.abs_diff(packets) <= off,
            _ => true,
        };
        let turns = most.min(HALF).saturating_sub(first) / turn;
        let is_paced = matches!(clock, Clock::About { .. }) && !has_sum;
        let is_complete = is_paced || turns < TRIALS;
        let (mut fits, mut near) = (Found::default(), Found::default());
        for n in (0..=turns).rev().take(TRIALS as usize).chain((turns >= TRIALS).then_some(0)) {
            let ahead = first + n * turn;
            if !has_sum && n > 0 && !is_near(ahead) {
                continue;
            }
            if !self.with(None, self.sn_plus(context.sn, ahead), x, extensions, out, passed)? {
                continue;
            }
            if has_sum {
                if passed.layout.has_right_sum(out, self.reader.remaining()) {
                    passed.proved = true;
                    return Ok(());
                }
                continue;
            }
            fits.add(ahead);
            if is_near(ahead) {
                near.add(ahead);
            }
        }
        let usual = context.pace.is_usual(self.now);
        let (ahead, proved) = match (fits.count, near.count, clock) {
            (0, ..) => return Err(Failure::Crc(format)),
            (1, ..) if is_complete => (fits.last, true),
            // A flow that pauses like this has paused once more.
            (.., Clock::Perhaps(_)) if usual && fits.last == first => (first, false),
            (_, 1, Clock::About { .. }) if !usual => (near.last, true),
            _ => return Err(Failure::Ambiguous(format)),
        };
        self.with(None, self.sn_plus(context.sn, ahead), x, extensions, out, passed)?;
        passed.proved = proved;
        Ok(())
    }
}

/// True if the checksum of UDP or UDP-Lite covers fields that follow from the SN.
pub(super) const fn is_proved_by_sum(profile: ProfileId) -> bool {
    match upper(profile) {
        Upper::Udp => has_rtp(profile) || matches!(profile, ProfileId::Coap2015),
        Upper::UdpLite => has_rtp(profile),
        Upper::None | Upper::Esp => false,
    }
}

/// SNs that fit, and how much ahead the last one is.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    count: u32,
    last: u32,
}

impl Found {
    fn add(&mut self, ahead: u32) {
        *self = Self { count: self.count + 1, last: ahead };
    }
}
