//! Search for the SN if its bits may stand for several, after a pause, or after a loss longer than they cover. RFC 3095, section
//! 5.3.2.2.4, tries one more SN and holds two packets back; a CRC of 3 bits accepts a wrong one once in eight times, and a wrong
//! one that was accepted will be again.
//!
//! Here all SNs that clock and carrier allow are tried (`flow::arrival`), and one is accepted if
//!
//! - the checksum of UDP or UDP-Lite is correct with it, and covers fields that follow from the SN: RTP; or
//!
//! - no other one passes the CRC.
//!
//! Otherwise nothing is delivered, and feedback requests more. The same applies if an IP-ID that moves against the SN, or a timestamp
//! without checksum, may have moved in a gap, since none of these rules covers it.

use thinair_wire::crc::Check;
use thinair_wire::lsb::Shift;
use thinair_wire::time::Instant;

use super::attempt::{CandidateSearch, ahead};
use super::compress::Rfc3095SenderContext;
use super::decompress::{Rfc3095ReceiverContext, UpperFields};
use super::doubt::{By, Reference};
use super::{IP_ID, IP_ID2, Rfc3095Fields, SN, TS, Upper, has_own_sn, has_rtp, upper};
use crate::decompressor::Failure;
use crate::flow::arrival::{CLOCK_TURN, Intervals, Moment, Passed};
use crate::flow::caution::REPEATED;
use crate::flow::search::{
    COMBINATIONS, Candidates, HALF, Matches, Proof, SumEquation, TimestampBits, has_moved_by_count, trials,
};
use crate::id::ProfileId;
use crate::mode::Mode;

/// Number of packets behind a gap whose nearest SN a checksum proves, with a CRC of 3 bits: each more may be right by chance.
const TRIED: u8 = 16;

/// Number of SNs with an equal checksum that are tried.
const TWINS: u32 = 16;

/// SNs with an equal checksum that the packets behind a gap exclude.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Twins {
    /// SN before the gap.
    reference: u16,
    /// Bit `k`: none that is lower by `k + 1` times the smallest difference.
    excluded: u16,
}

impl Twins {
    fn excluded(self, reference: u16) -> u16 {
        if self.reference == reference { self.excluded } else { 0 }
    }
}

impl CandidateSearch<'_, '_, '_> {
    /// True if `k` bits may stand for other SNs than `sn`, by the carrier's count or by the clock, and the header depends on it.
    #[inline]
    pub(super) fn is_open(&self, sn: u32, k: u32) -> bool {
        let arrivals = &self.context.arrivals;
        if k == 0 || k >= u16::BITS || !self.holds_sn() {
            return false;
        }
        if self.may_have_jumped(sn) || self.is_too_near(sn) {
            return true;
        }
        if self.context.is_next(self.now, 1 << k) {
            return false;
        }
        let (ahead, passed) = (self.context.ahead(sn, self.context.sn), arrivals.passed(self.now));
        if passed.is_counted {
            let most = i64::from(passed.most);
            // An SN that the compressor does not generate may take such a step by itself. A late packet is not counted.
            let is_bounded = !has_own_sn(self.x.profile) && !(1..=most).contains(&i64::from(ahead));
            return i64::from(ahead) + (1 << k) <= most || is_bounded;
        }
        // An SN that goes back is not searched for before its bits may have come round: `by_sum` checks it.
        ahead > 0 || arrivals.is_open(self.now, 1 << k)
    }

    /// True if the carrier counts lost packets, and that SN is among those that may follow, so that the packet is not late.
    pub(super) fn is_counted(&self, sn: u32) -> bool {
        let passed = self.context.arrivals.passed(self.now);
        passed.is_counted
            && (1..=i64::from(passed.most)).contains(&i64::from(self.context.ahead(sn, self.context.sn)))
    }

    /// True if the packet depends on an IP-ID that may have moved in a gap, by the carrier's count. One with the full IP-ID does not.
    pub(super) fn misses_ip_id(&self) -> bool {
        let is_whole = |slot| self.reader.collected(slot).1 >= u16::BITS;
        has_moved_by_count(&self.context.arrivals, self.now, &self.context.movement)
            && self.has_counting_ip_id()
            && !is_whole(IP_ID)
            && !is_whole(IP_ID2)
    }

    /// True if the packet, whose SN was found, has too few bits of an IP-ID that moves, for as many packets as may lie between it and
    /// the last one.
    pub(super) fn misses_moved_ip_id(&self) -> bool {
        let packets = self.most_ahead();
        packets > REPEATED as u32 && self.passed.by != By::Late && self.misses_bits_of_ip_id(packets)
    }

    /// The largest distance from the last packet that came into question.
    fn most_ahead(&self) -> u32 {
        self.passed.farthest.max(self.context.ahead(self.x.sn, self.context.sn).max(0).unsigned_abs())
    }

    pub(super) fn misses_bits_of_ip_id(&self, packets: u32) -> bool {
        let bits = self.reader.collected(IP_ID).1.max(self.reader.collected(IP_ID2).1).min(u16::BITS);
        // The own number of a sender may leap, and then no packet is missing: it has sent enough bits, and a CRC of 7 bits.
        let may_be_leap =
            has_own_sn(self.x.profile) && packets >> self.reader.collected(SN).1.min(u16::BITS) == 0;
        let most = if may_be_leap { self.context.arrivals.passed(self.now).most } else { packets };
        let is_told = || self.context.movement.is_told((1 << bits) - 1, packets.min(most));
        (!may_be_leap || self.check == Check::Crc3) && !is_told() && self.has_counting_ip_id()
    }

    fn has_counting_ip_id(&self) -> bool {
        (0..self.x.base_ips()).any(|i| self.x.ips[i].holds_ip_id() && !self.x.ips[i].sid)
    }

    /// True if the timestamp may have jumped in lost packets, no checksum proves it, and the packet has too few bits of it.
    fn misses_timestamp(&self) -> bool {
        if !has_rtp(self.x.profile) || self.x.rtp.time_stride > 0 || self.has_sum() {
            return false;
        }
        let bits = match self.reader.collected(TS).1 {
            0 => TimestampBits::Inferred { turn: 1 << self.reader.collected(SN).1.min(u16::BITS) },
            u32::BITS.. => return false,
            bits => TimestampBits::Sent { reach: (1 << bits) - Shift::Ts.p(bits), step: self.ts_step() },
        };
        bits.may_hide_jump(&self.context.arrivals, self.now, self.most_ahead(), false)
    }

    /// True if the packet has enough bits of the timestamp for the time that has passed, so that no lost packet hides a jump of it.
    fn tells_timestamp(&self, intervals: Intervals) -> bool {
        let (_, bits) = self.reader.collected(TS);
        let most = intervals.most().saturating_mul(self.ts_step());
        bits >= u32::BITS || bits > 0 && most < (1 << bits) - Shift::Ts.p(bits)
    }

    /// Step of the bits of the timestamp from one packet to the next.
    fn ts_step(&self) -> u32 {
        if self.x.rtp_extra.scaled { 1 } else { self.x.rtp.stride }
    }

    /// True if a correct checksum proves the SN.
    pub(super) fn has_sum(&self) -> bool {
        self.context.sums.are_right() && self.x.udp.checksum != 0 && is_proved_by_sum(self.x.profile)
    }

    /// Rejects a header that its CRC has accepted, or that has none, after a gap, a failure or a packet in doubt, if its checksum
    /// shows that it is wrong: that of RTP covers what follows from the SN, and each covers addresses and ports.
    #[inline]
    pub(super) fn by_sum(&self) -> Result<(), Failure> {
        let context = self.context;
        if self.passed.by == By::Newest && context.mode.mode() != Mode::Reliable && self.misses_timestamp() {
            return Err(Failure::Ambiguous(self.format));
        }
        let is_awaited = self.passed.by == By::Newest
            && (1..=REPEATED).contains(&context.ahead(self.x.sn, context.sn))
            && context.arrivals.has_not_failed()
            && !context.doubt.is_behind_gap();
        if is_awaited || self.passed.proved && self.has_sum() || !context.has_right_sums(self.x) {
            return Ok(());
        }
        let is_right = self.passed.layout.has_right_sum(self.out, self.reader.remaining());
        if is_right { Ok(()) } else { Err(Failure::Ambiguous(self.format)) }
    }

    /// Finds the SN among `sn` and those that are whole turns of its bits later.
    #[cold]
    pub(super) fn by_proof(&mut self, sn: u32) -> Result<(), Failure> {
        let context = self.context;
        let turn = 1 << self.reader.collected(SN).1;
        let behind = context.ahead(sn, context.sn) <= 0 || self.is_too_near(sn);
        let sn = if behind { self.sn_plus(sn, turn) } else { sn };
        let first = context.ahead(sn, context.sn) as u32;
        let (has_sum, now) = (self.has_sum(), context.arrivals.passed(self.now));
        if now.is_counted && first > now.most && !has_own_sn(self.x.profile) {
            return Err(Failure::Ambiguous(self.format));
        }
        // Then no packet was missed, except one that was damaged.
        let is_awaited = first <= REPEATED as u32 && context.arrivals.failed() <= 1;
        // A packet after a pause of a paced flow, or a counted one, is not late.
        let late = self.sn_plus(sn, turn.wrapping_neg());
        let may_be_late = !now.is_counted && !now.intervals.is_steady;
        let is_late = may_be_late && self.verify_late(late)?;
        if is_late && has_sum {
            self.passed.by = By::Late;
            return Ok(());
        }
        // The checksum is compared here, before the headers are written.
        let equation = if has_sum { self.equation()? } else { None };
        // The other CRC-DYNAMIC octets are few.
        let trials = trials(self.extensions.authenticated());
        let candidates = Candidates::new(first, turn, now, trials, false);
        let is_told = self.tells_timestamp(now.intervals);
        let (mut fits, mut farthest) = (Matches::default(), 0);
        for ahead in candidates.distances() {
            farthest = farthest.max(ahead);
            let sn = self.sn_plus(context.sn, ahead);
            if has_sum && !self.solves(equation, sn)? || !self.with(None, sn)? {
                continue;
            }
            if !has_sum {
                fits.add(ahead);
            } else if is_told || self.goes_on(ahead, first, now) {
                if !is_told && !now.is_counted && self.has_twin(ahead, (first, turn))? {
                    return Err(Failure::Ambiguous(self.format));
                }
                self.with(None, sn)?;
                self.passed.proved = true;
                return Ok(());
            }
        }
        if is_late {
            // If the IP-ID may have moved, none of those ahead is excluded.
            if !fits.is_none() || self.misses_bits_of_ip_id(farthest) {
                return Err(Failure::Ambiguous(self.format));
            }
            self.verify_late(late)?;
            self.passed.by = By::Late;
            return Ok(());
        }
        if let Some(equation) = equation
            && self.by_jump(equation, (first, turn), now)?
        {
            self.passed.proved = true;
            return Ok(());
        }
        // Behind a pause a packet of a steady flow has a stronger CRC, or a timestamp.
        let tells_pause = self.check != Check::Crc3 || self.reader.collected(TS).1 > 0;
        let is_usual =
            is_awaited && context.arrivals.is_usual(self.now) && (tells_pause || !now.intervals.is_steady);
        let (ahead, proved) = match fits.proof(&candidates, is_usual) {
            // A timestamp that has jumped, or an IP-ID that has moved, is no evidence of a damaged context.
            Proof::Nothing if has_rtp(self.x.profile) || self.misses_bits_of_ip_id(farthest) => {
                return Err(Failure::Ambiguous(self.format));
            }
            Proof::Nothing => return Err(Failure::Crc(self.format)),
            Proof::Ambiguous => return Err(Failure::Ambiguous(self.format)),
            // Where the packets before it fit nowhere, the one that was sent is hardly among the candidates.
            Proof::One(..) if !has_sum && self.check == Check::Crc3 && context.health.is_doubtful() => {
                return Err(Failure::Ambiguous(self.format));
            }
            Proof::One(ahead, proved) => (ahead, proved),
        };
        self.with(None, self.sn_plus(context.sn, ahead))?;
        self.passed.proved = proved;
        // A CRC alone does not exclude a farther one.
        self.passed.farthest = if is_usual && ahead == first { first } else { farthest };
        Ok(())
    }

    /// True if the timestamp may go on from the last one, as with an SN whose checksum is right. In a flow that pauses each gap may hide a
    /// jump: the SN has to account for the time, or be the nearest one of a few packets.
    fn goes_on(&self, ahead: u32, first: u32, now: Passed) -> bool {
        let arrivals = &self.context.arrivals;
        now.is_counted
            || !arrivals.has_paused()
            || ahead + now.intervals.off >= now.intervals.number
            || ahead == first && arrivals.failed() < TRIED
    }

    /// True if the packet may as well have an SN that is lower by TS_STRIDE, or a multiple of it, after a pause that is longer by as
    /// many packets: the sum is equal, and so is the time. In a flow whose timestamps jump by any number the SN may be lower by any.
    /// Packets before it behind the same gap may have excluded that.
    fn has_twin(&mut self, ahead: u32, (first, turn): (u32, u32)) -> Result<bool, Failure> {
        let (context, newest) = (self.context, self.context.newest());
        let UpperFields::Rtp(rtp) = &context.own else { return Ok(false) };
        let mut excluded = context.twins.excluded(context.sn as u16);
        let smallest = if context.sums.has_uneven_jumps() { 1 } else { rtp.stride };
        // The bits of the smallest format are equal after a least common multiple of the two.
        let unit =
            smallest.saturating_mul(CLOCK_TURN >> smallest.trailing_zeros().min(CLOCK_TURN.trailing_zeros()));
        let farthest = ahead.saturating_sub(first).checked_div(unit).unwrap_or(0);
        // One of so many fits.
        let step = turn >> unit.trailing_zeros().min(turn.trailing_zeros());
        if farthest / step > TWINS {
            return Ok(true);
        }
        let mut has_twin = false;
        for twin in (step..=farthest).step_by(step as usize) {
            let bit = 1_u16.checked_shl(twin - 1).unwrap_or(0);
            if excluded & bit > 0 {
                continue;
            }
            let less = twin * unit;
            let reference = newest.with_ts_moved_by(rtp.stride.wrapping_mul(less).wrapping_add(less));
            let sn = self.sn_plus(context.sn, ahead - less);
            if self.with(Some(&reference), sn)? {
                has_twin = true;
            } else {
                excluded |= bit;
            }
        }
        self.passed.twins = Some(Twins { reference: context.sn as u16, excluded });
        Ok(has_twin)
    }

    /// True if more packets have failed since the last verified packet than lie between it and that SN. A few may have been late.
    #[inline]
    fn is_too_near(&self, sn: u32) -> bool {
        let ahead = self.context.ahead(sn, self.context.sn);
        let failed = i32::from(self.context.arrivals.failed());
        ahead > 0 && ahead + REPEATED < failed && self.context.arrivals.had_time_for(self.now, failed as u32)
    }

    /// True if enough packets were lost to include all that carried a jump of the timestamp, and the clock indicates a jump.
    fn may_have_jumped(&self, sn: u32) -> bool {
        let ahead = self.context.ahead(sn, self.context.sn);
        let intervals = self.context.arrivals.passed(self.now).intervals;
        has_rtp(self.x.profile)
            && self.reader.collected(TS).1 == 0
            && ahead > REPEATED
            && intervals.is_steady
            && intervals.number > ahead.unsigned_abs() + intervals.off
    }

    /// Finds SN and timestamp after a jump of the timestamp, as after silence, if the packets that carried it were lost. The
    /// clock gives the timestamps, and the checksum covers both. `false` in a flow whose timestamps jump by any number: the right ones
    /// may not be among those that are tried, and others have the same sum.
    fn by_jump(
        &mut self,
        equation: SumEquation,
        (first, turn): (u32, u32),
        now: Passed,
    ) -> Result<bool, Failure> {
        let (context, newest) = (self.context, self.context.newest());
        let (UpperFields::Rtp(rtp), intervals) = (&context.own, now.intervals) else { return Ok(false) };
        let is_known = intervals.is_steady && intervals.number <= HALF && self.reader.collected(TS).1 == 0;
        if !has_rtp(self.x.profile) || !self.x.rtp_extra.scaled || rtp.stride == 0 || !is_known {
            return Ok(false);
        }
        // A sum that is right just outside of these limits is as good.
        let (least, most) = (intervals.number.saturating_sub(intervals.off), intervals.most());
        let tried = u64::from(2 * intervals.off + 1) * u64::from(most / turn + 1);
        if tried > COMBINATIONS || context.sums.has_uneven_jumps() {
            return Ok(false);
        }
        let mut found: Option<Reference> = None;
        for strides in least.saturating_sub(intervals.off)..=most + intervals.off {
            let farthest = if now.is_counted { strides.min(now.most) } else { strides };
            let timestamp = rtp.ts.wrapping_add(rtp.stride.wrapping_mul(strides));
            for ahead in (first..=farthest).step_by(turn as usize) {
                let (sn, jump) = (self.sn_plus(context.sn, ahead), rtp.stride.wrapping_mul(strides - ahead));
                if !equation.holds(sn as u16, timestamp) {
                    continue;
                }
                let reference = newest.with_ts_moved_by(jump);
                if !self.with(Some(&reference), sn)? {
                    continue;
                }
                let this = self.context.reference(self.x);
                if !(least..=most).contains(&strides) || found.is_some_and(|other| other != this) {
                    return Ok(false);
                }
                found = Some(this);
            }
        }
        let Some(this) = found else { return Ok(false) };
        self.with(Some(&this), this.sn)
    }
}

impl Rfc3095ReceiverContext {
    /// True if too little time has passed for the bits of the SN to come round. Where checksums prove the SN, half as much time counts
    /// as enough: the compressor has made sure by then that the checksum is right (`may_need_sum`).
    #[inline]
    pub(super) fn is_next(&self, now: Moment, turn: u32) -> bool {
        let proves = self.sums.are_right() && is_proved_by_sum(self.profile) && self.arrivals.has_settled();
        self.arrivals.is_next(now, if proves { turn / 2 } else { turn })
    }

    /// True if checksums are carried, and the last one was right.
    pub(super) fn has_right_sums(&self, x: &Rfc3095Fields<'_>) -> bool {
        self.sums.are_right()
            && x.udp.checksum != 0
            && matches!(upper(self.profile), Upper::Udp | Upper::UdpLite)
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

/// True if the checksum of UDP or UDP-Lite covers fields that follow from the SN.
pub(super) const fn is_proved_by_sum(profile: ProfileId) -> bool {
    match upper(profile) {
        Upper::Udp | Upper::UdpLite => has_rtp(profile),
        Upper::None | Upper::Esp => false,
    }
}
