//! Search for the SN if its bits may stand for several, after a pause, or after a loss longer than they cover. RFC 3095, section
//! 5.3.2.2.4, tries one more SN and holds two packets back; a CRC of 3 bits accepts a wrong one once in eight times, and a wrong
//! one that was accepted will be again.
//!
//! Here all possible SNs are tried, and one is accepted if
//!
//! - the checksum of UDP or UDP-Lite is correct with it, and covers fields that follow from the SN: RTP; or
//!
//! - no other one that the carrier's count or the clock allow passes the CRC; or
//!
//! - it is the only one near the pace of a flow that has never paused.
//!
//! Otherwise nothing is delivered, and feedback requests more. The same applies if an IP-ID that moves against the SN may have
//! moved in a gap, since none of these rules covers it.

use thinair_wire::lsb::Shift;
use thinair_wire::time::Instant;

use super::attempt::{CandidateSearch, VerifiedHeader, ahead};
use super::compress::Rfc3095SenderContext;
use super::decompress::{Rfc3095ReceiverContext, UpperFields};
use super::doubt::{By, Reference};
use super::header::ExtensionLists;
use super::{IP_ID, IP_ID2, Rfc3095Fields, SN, TS, Upper, has_own_sn, has_rtp, upper};
use crate::arrival::{Moment, PassedPackets as Clock};
use crate::caution::REPEATED;
use crate::decompressor::Failure;
use crate::profile::{Format, ProfileId};
use crate::proof::{HALF, TRIALS};

impl CandidateSearch<'_, '_> {
    /// True if `k` bits may stand for other SNs than `sn`, by the carrier's count or by the clock, and the header depends on it.
    #[inline]
    pub(super) fn is_open(&self, sn: u32, k: u32, x: &Rfc3095Fields<'_>) -> bool {
        let arrivals = &self.context.arrivals;
        if k == 0 || k >= u16::BITS || !self.holds_sn(x) {
            return false;
        }
        if self.may_have_jumped(sn, x) || self.is_too_near(sn) {
            return true;
        }
        if self.context.is_next(self.now, 1 << k) {
            return false;
        }
        match arrivals.passed(self.now) {
            Clock::AtMost(most) => {
                let ahead = self.context.ahead(sn, self.context.sn);
                // An SN that the compressor does not generate may take such a step by itself. A late packet is not counted.
                let is_bounded = !has_own_sn(x.profile) && !(1..=i64::from(most)).contains(&i64::from(ahead));
                i64::from(ahead) + (1 << k) <= i64::from(most) || is_bounded
            }
            // An SN that goes back is not searched for before its bits may have come round: `by_sum` checks it.
            _ => self.context.ahead(sn, self.context.sn) > 0 || arrivals.is_open(self.now, 1 << k),
        }
    }

    /// True if the carrier counts lost packets, and that SN is among those that may follow, so that the packet is not late.
    pub(super) fn is_counted(&self, sn: u32) -> bool {
        let Clock::AtMost(most) = self.context.arrivals.passed(self.now) else { return false };
        (1..=i64::from(most)).contains(&i64::from(self.context.ahead(sn, self.context.sn)))
    }

    /// True if the packet depends on an IP-ID that may have moved in a gap, by the carrier's count: no checksum covers it, and a
    /// CRC may accept a wrong one. A packet with the full IP-ID does not depend on it.
    pub(super) fn misses_ip_id(&self, x: &Rfc3095Fields<'_>) -> bool {
        let context = self.context;
        let is_whole = |slot| self.reader.collected(slot).1 >= u16::BITS;
        let may_have_moved = |most: u32| most > REPEATED as u32 && context.may_have_moved(most);
        context.calm < u8::MAX
            && matches!(context.arrivals.passed(self.now), Clock::AtMost(most) if may_have_moved(most))
            && (0..x.base_ips()).any(|i| x.ips[i].holds_ip_id() && !x.ips[i].sid)
            && !is_whole(IP_ID)
            && !is_whole(IP_ID2)
    }

    /// True if the packet depends on a timestamp of which it has the low bits, and so many packets may be missing, by the carrier's
    /// count, that these bits have come round. No checksum proves it.
    pub(super) fn misses_timestamp(&self, x: &Rfc3095Fields<'_>) -> bool {
        let (_, bits) = self.reader.collected(TS);
        if bits == 0 || bits >= u32::BITS || x.rtp.time_stride > 0 || self.has_sum(x) {
            return false;
        }
        let step = if x.rtp_extra.scaled { 1 } else { x.rtp.stride };
        let turn = (1 << bits) - Shift::Ts.p(bits);
        matches!(self.context.arrivals.passed(self.now), Clock::AtMost(most) if most.saturating_mul(step) >= turn)
    }

    /// True if a correct checksum proves the SN.
    pub(super) fn has_sum(&self, x: &Rfc3095Fields<'_>) -> bool {
        self.context.sums && x.udp.checksum != 0 && is_proved_by_sum(x.profile)
    }

    /// Rejects a header that its CRC has accepted, or that has none, after a gap, a failure or a packet in doubt, if its checksum
    /// shows that it is wrong: that of RTP covers what follows from the SN, and each covers addresses and ports.
    #[inline]
    pub(super) fn by_sum(
        &self,
        format: Format,
        x: &Rfc3095Fields<'_>,
        out: &[u8],
        passed: &VerifiedHeader,
    ) -> Result<(), Failure> {
        let context = self.context;
        let is_awaited = passed.by == By::Newest
            && (1..=REPEATED).contains(&context.ahead(x.sn, context.sn))
            && context.arrivals.has_not_failed();
        if is_awaited || passed.proved && self.has_sum(x) || !context.has_right_sums(x) {
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
        x: &mut Rfc3095Fields<'p>,
        extensions: &mut ExtensionLists<'i>,
        out: &mut [u8],
        passed: &mut VerifiedHeader,
    ) -> Result<(), Failure> {
        let context = self.context;
        let turn = 1 << self.reader.collected(SN).1;
        let behind = context.ahead(sn, context.sn) <= 0 || self.is_too_near(sn);
        let sn = if behind { self.sn_plus(sn, turn) } else { sn };
        let first = context.ahead(sn, context.sn) as u32;
        let (has_sum, clock) = (self.has_sum(x), context.arrivals.passed(self.now));
        let most = match clock {
            Clock::AtMost(most) | Clock::Perhaps(most) => most,
            Clock::About { packets, off } => packets.saturating_add(off),
        };
        let is_counted = matches!(clock, Clock::AtMost(_));
        if is_counted && first > most && !has_own_sn(x.profile) {
            return Err(Failure::Ambiguous(format));
        }
        let usual = context.arrivals.is_usual(self.now);
        // Then no packet was missed, except one that was damaged.
        let is_awaited = first <= REPEATED as u32 && context.arrivals.failed() <= 1;
        let is_determined = self.reader.collected(TS).1 > 0;
        // A flow that never pauses keeps its pace, unless the timestamp in the packet has jumped.
        let is_near = |ahead: u32| match clock {
            Clock::About { packets, off } if !usual && !is_determined => ahead.abs_diff(packets) <= off,
            _ => true,
        };
        // A packet after a pause of a paced flow, or a counted one, is not late.
        let late = self.sn_plus(sn, turn.wrapping_neg());
        let is_late =
            matches!(clock, Clock::Perhaps(_)) && self.verify_late(late, x, extensions, out, passed)?;
        if is_late && has_sum {
            passed.by = By::Late;
            return Ok(());
        }
        let turns = most.min(HALF).saturating_sub(first) / turn;
        let is_complete = turns < TRIALS;
        let mut fits = SnMatches::default();
        for n in (0..=turns).rev().take(TRIALS as usize).chain((turns >= TRIALS).then_some(0)) {
            let ahead = first + n * turn;
            if !(has_sum || is_near(ahead) || n == 0 && is_awaited && !has_rtp(x.profile)) {
                continue;
            }
            if !self.with(None, self.sn_plus(context.sn, ahead), x, extensions, out, passed)? {
                continue;
            }
            if has_sum {
                let is_right = passed.layout.has_right_sum(out, self.reader.remaining());
                if is_right && (is_counted || !self.may_have_twin(ahead, turn)) {
                    passed.proved = true;
                    return Ok(());
                }
                continue;
            }
            fits = SnMatches { count: fits.count + 1, last: ahead };
        }
        if is_late {
            if fits.count > 0 {
                return Err(Failure::Ambiguous(format));
            }
            self.verify_late(late, x, extensions, out, passed)?;
            passed.by = By::Late;
            return Ok(());
        }
        if has_sum && self.by_jump(first, turn, clock, x, extensions, out, passed)? {
            passed.proved = true;
            return Ok(());
        }
        // The timestamp may have jumped in lost packets. Fewer were lost if the clock leaves no time for a jump.
        let may_have_jumped = has_rtp(x.profile) && usual;
        let has_no_time = fits.last <= turn
            && matches!(context.arrivals.passed_by_clock(self.now), Clock::About { packets, off } if packets <= fits.last + off);
        let (ahead, proved) = match fits.count {
            0 => return Err(Failure::Crc(format)),
            1 if is_complete && (!may_have_jumped || has_no_time || is_awaited) => (fits.last, true),
            // A flow that pauses regularly has paused once more.
            _ if usual && is_awaited && fits.last == first && !is_counted => (first, false),
            _ => return Err(Failure::Ambiguous(format)),
        };
        self.with(None, self.sn_plus(context.sn, ahead), x, extensions, out, passed)?;
        passed.proved = proved;
        Ok(())
    }

    /// True if another SN and timestamp have an equal sum, in a flow that pauses: an SN that is lower by TS_STRIDE, or a multiple
    /// of it, after a pause that is longer by as many packets. The time that has passed is equal, too.
    fn may_have_twin(&self, ahead: u32, turn: u32) -> bool {
        let UpperFields::Rtp(rtp) = &self.context.own else { return false };
        ahead > rtp.stride.max(turn) && self.context.arrivals.has_paused()
    }

    /// True if more packets have failed since the last verified packet than lie between it and that SN. A few may have been late.
    #[inline]
    fn is_too_near(&self, sn: u32) -> bool {
        let ahead = self.context.ahead(sn, self.context.sn);
        let failed = i32::from(self.context.arrivals.failed());
        ahead > 0 && ahead + REPEATED < failed && self.context.arrivals.had_time_for(self.now, failed as u32)
    }

    /// True if enough packets were lost to include all that carried a jump of the timestamp, and the clock indicates a jump.
    fn may_have_jumped(&self, sn: u32, x: &Rfc3095Fields<'_>) -> bool {
        let (context, clock) = (self.context, self.context.arrivals.passed(self.now));
        let ahead = context.ahead(sn, context.sn);
        has_rtp(x.profile)
            && self.reader.collected(TS).1 == 0
            && ahead > REPEATED
            && matches!(clock, Clock::About { packets, off } if packets > ahead as u32 + off)
    }

    /// Finds SN and timestamp after a jump of the timestamp, as after silence, if the packets that carried it were lost. The
    /// clock gives the timestamps, and the checksum covers both.
    #[allow(clippy::too_many_arguments)]
    fn by_jump<'i, 'p: 'i>(
        &self,
        first: u32,
        turn: u32,
        clock: Clock,
        x: &mut Rfc3095Fields<'p>,
        extensions: &mut ExtensionLists<'i>,
        out: &mut [u8],
        passed: &mut VerifiedHeader,
    ) -> Result<bool, Failure> {
        let (context, newest) = (self.context, self.context.newest());
        let (UpperFields::Rtp(rtp), Clock::About { packets, off }) = (&context.own, clock) else {
            return Ok(false);
        };
        if !has_rtp(x.profile) || !x.rtp_extra.scaled || rtp.stride == 0 || packets > HALF {
            return Ok(false);
        }
        let mut found: Option<Reference> = None;
        let mut trials = 0;
        for strides in packets.saturating_sub(off)..=packets + off {
            for ahead in (first..=strides).step_by(turn as usize) {
                trials += 1;
                if trials > TRIALS {
                    return Ok(false);
                }
                let (sn, jump) = (self.sn_plus(context.sn, ahead), rtp.stride.wrapping_mul(strides - ahead));
                let reference = newest.with_ts_moved_by(jump);
                if !self.with(Some(&reference), sn, x, extensions, out, passed)?
                    || !passed.layout.has_right_sum(out, self.reader.remaining())
                {
                    continue;
                }
                let this = self.context.reference(x);
                if found.is_some_and(|other| other != this) {
                    return Ok(false);
                }
                found = Some(this);
            }
        }
        let Some(this) = found else { return Ok(false) };
        self.with(Some(&this), this.sn, x, extensions, out, passed)
    }
}

impl Rfc3095ReceiverContext {
    /// True if too little time has passed for the bits of the SN to come round. Where checksums prove the SN, half as much time counts
    /// as enough: the compressor has made sure by then that the checksum is right (`may_need_sum`).
    #[inline]
    pub(super) fn is_next(&self, now: Moment, turn: u32) -> bool {
        let proves = self.sums && is_proved_by_sum(self.profile) && self.arrivals.has_settled();
        self.arrivals.is_next(now, if proves { turn / 2 } else { turn })
    }

    /// True if checksums are carried, and the last one was right.
    pub(super) fn has_right_sums(&self, x: &Rfc3095Fields<'_>) -> bool {
        self.sums && x.udp.checksum != 0 && matches!(upper(self.profile), Upper::Udp | Upper::UdpLite)
    }
}

impl Rfc3095SenderContext {
    /// True if the decompressor may deliver a packet only if its checksum is right (`proof`): behind a pause, or a request for
    /// repair, with an SN that takes an unusual step, and in R-mode, whose references are older. A wrong one needs a format that
    /// does not depend on it.
    #[inline]
    pub(super) fn may_need_sum(&self, now: Instant, x: &Rfc3095Fields<'_>) -> bool {
        self.initialization.has_right_sum()
            && x.udp.checksum != 0
            && is_proved_by_sum(self.profile)
            && (self.mode.is_secure()
                || !(1..=REPEATED).contains(&ahead(self.profile, x.sn, self.sn))
                || self.caution.is_behind_any_pause(now))
    }
}

/// True if the checksum of UDP or UDP-Lite covers fields that follow from the SN. Profile 0x0080 sends Message ID and token.
pub(super) const fn is_proved_by_sum(profile: ProfileId) -> bool {
    match upper(profile) {
        Upper::Udp | Upper::UdpLite => has_rtp(profile),
        Upper::None | Upper::Esp => false,
    }
}

/// Number of SNs that fit, and distance of the last one.
#[derive(Clone, Copy, Debug, Default)]
struct SnMatches {
    count: u32,
    last: u32,
}
