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
use super::doubt::By;
use super::{IP_ID, IP_ID2, Rfc3095Fields, SN, TS, Upper, has_own_sn, has_rtp, upper};
use crate::decompressor::Failure;
use crate::flow::arrival::{CLOCK_TURN, Intervals, Moment, Passed};
use crate::flow::caution::REPEATED;
use crate::flow::search::{
    Fit, Found, HALF, Jump, Proof, Search, SequenceBits, SumEquation, TimestampBits, has_moved_by_count,
    steps_to_repeat, trials,
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
        let (context, format) = (self.context, self.format);
        let turn = 1 << self.reader.collected(SN).1;
        let behind = context.ahead(sn, context.sn) <= 0 || self.is_too_near(sn);
        let sn = if behind { self.sn_plus(sn, turn) } else { sn };
        let bits = SequenceBits { first: context.ahead(sn, context.sn).cast_unsigned(), turn };
        let (has_sum, passed) = (self.has_sum(), context.arrivals.passed(self.now));
        if passed.is_counted && bits.first > passed.most && !has_own_sn(self.x.profile) {
            return Err(Failure::Ambiguous(format));
        }
        // Then no packet was missed, except one that was damaged.
        let is_awaited = bits.first <= REPEATED as u32 && context.arrivals.failed() <= 1;
        // A packet after a pause of a paced flow, or a counted one, is not late.
        let late = self.sn_plus(sn, turn.wrapping_neg());
        let may_be_late = !passed.is_counted && !passed.intervals.is_steady;
        let is_late = may_be_late && self.verify_late(late)?;
        if is_late && has_sum {
            self.passed.by = By::Late;
            return Ok(());
        }
        // The checksum is compared here, before the headers are written.
        let equation = if has_sum { self.equation()? } else { None };
        // Behind a pause a packet of a steady flow has a stronger CRC, or a timestamp.
        let tells_pause = self.check != Check::Crc3 || self.reader.collected(TS).1 > 0;
        let is_usual =
            is_awaited && context.arrivals.is_usual(self.now) && (tells_pause || !passed.intervals.is_steady);
        let is_doubtful = !has_sum && self.check == Check::Crc3 && context.health.is_doubtful();
        // The other CRC-DYNAMIC octets are few.
        let search = Search::new(bits, passed, trials(self.extensions.authenticated()));
        let may_have_jumped = has_rtp(context.profile);
        let search = Search { late: is_late.into(), is_usual, is_doubtful, may_have_jumped, ..search };
        let is_told = self.tells_timestamp(passed.intervals);
        let attempt = |ahead: u32| {
            let sn = self.sn_plus(context.sn, ahead);
            let is_right = (!has_sum || self.solves(equation, sn)?) && self.with(None, sn)?;
            if !is_right || has_sum && !is_told && !self.goes_on(ahead, bits, passed) {
                return Ok(Fit::No);
            }
            if !has_sum {
                return Ok(Fit::Yes);
            }
            let has_twin = !is_told && !passed.is_counted && self.has_twin(ahead, bits)?;
            if has_twin { Err(Failure::Ambiguous(format)) } else { Ok(Fit::Proved) }
        };
        let Found { proof, farthest } = search.find(|_| true, attempt)?;
        match proof {
            // An IP-ID that may have moved excludes none of those ahead.
            Proof::Late if !self.misses_bits_of_ip_id(farthest) => {
                self.verify_late(late)?;
                self.passed.by = By::Late;
            }
            Proof::Nothing if self.is_behind_jump(equation, bits, passed)? => self.passed.proved = true,
            // A timestamp that has jumped, or an IP-ID that has moved, is no evidence of a damaged context.
            Proof::Nothing if !has_rtp(self.x.profile) && !self.misses_bits_of_ip_id(farthest) => {
                return Err(Failure::Crc(format));
            }
            Proof::Nothing | Proof::Late | Proof::Ambiguous => return Err(Failure::Ambiguous(format)),
            Proof::Ahead(ahead, proved) => {
                self.with(None, self.sn_plus(context.sn, ahead))?;
                self.passed.proved = proved;
                if !has_sum {
                    // A CRC alone does not exclude a farther one.
                    self.passed.farthest = if is_usual && ahead == bits.first { ahead } else { farthest };
                }
            }
        }
        Ok(())
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

    /// True if the timestamp may go on from the last one, as with an SN whose checksum is right. In a flow that pauses each gap may hide a
    /// jump, as may one that has lasted for longer than the packets that the carrier counts: the SN has to account for the time, or be the
    /// nearest one of a few packets, or one of a few by the count.
    fn goes_on(&self, ahead: u32, bits: SequenceBits, passed: Passed) -> bool {
        let (arrivals, Passed { is_counted, most, intervals, .. }) = (&self.context.arrivals, passed);
        let accounts_for_time = |packets: u32| packets.saturating_add(intervals.off) >= intervals.number;
        let may_hide_jump = if is_counted { !accounts_for_time(most) } else { arrivals.has_paused() };
        !may_hide_jump
            || is_counted && most.saturating_sub(bits.first) / bits.turn < TRIED.into()
            || accounts_for_time(ahead)
            || ahead == bits.first && arrivals.failed() < TRIED
    }

    /// True if the packet may as well have an SN that is lower by TS_STRIDE, or a multiple of it, after a pause that is longer by as
    /// many packets: the sum is equal, and so is the time. In a flow whose timestamps jump by any number the SN may be lower by any.
    /// Packets before it behind the same gap may have excluded that.
    fn has_twin(&mut self, ahead: u32, bits: SequenceBits) -> Result<bool, Failure> {
        let (context, newest) = (self.context, self.context.newest());
        let UpperFields::Rtp(rtp) = &context.own else { return Ok(false) };
        let mut excluded = context.twins.excluded(context.sn as u16);
        let smallest = if context.sums.has_uneven_jumps() { 1 } else { rtp.stride };
        // The bits of the smallest format are equal after a least common multiple of the two.
        let SequenceBits { first, turn } = bits;
        let unit = smallest.saturating_mul(steps_to_repeat(CLOCK_TURN, smallest));
        let farthest = ahead.saturating_sub(first).checked_div(unit).unwrap_or(0);
        // One of so many fits.
        let step = steps_to_repeat(turn, unit);
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
            if self.with(Some(&reference), self.sn_plus(context.sn, ahead - less))? {
                has_twin = true;
            } else {
                excluded |= bit;
            }
        }
        self.passed.twins = Some(Twins { reference: context.sn as u16, excluded });
        Ok(has_twin)
    }

    /// True if the packet is right with the only SN and timestamp after a jump of the timestamp, as after silence, if the packets that
    /// carried it were lost. `false` unless all jumps that the flow has shown were multiples of TS_STRIDE: the right ones may not be among
    /// those that are tried, and others have the same sum.
    fn is_behind_jump(
        &mut self,
        equation: Option<SumEquation>,
        bits: SequenceBits,
        passed: Passed,
    ) -> Result<bool, Failure> {
        let (context, newest, off) = (self.context, self.context.newest(), passed.intervals.off);
        let (Some(equation), UpperFields::Rtp(rtp)) = (equation, &context.own) else { return Ok(false) };
        let is_known = has_rtp(self.x.profile)
            && self.x.rtp_extra.scaled
            && rtp.stride != 0
            && passed.intervals.number <= HALF
            && self.reader.collected(TS).1 == 0;
        if !is_known || !context.sums.has_even_jumps() {
            return Ok(false);
        }
        let mut fits = |Jump { ahead, intervals }| {
            let sn = self.sn_plus(context.sn, ahead);
            let timestamp = rtp.ts.wrapping_add(rtp.stride.wrapping_mul(intervals));
            let reference = newest.with_ts_moved_by(rtp.stride.wrapping_mul(intervals - ahead));
            Ok(equation.holds(sn as u16, timestamp) && self.with(Some(&reference), sn)?)
        };
        let found = Jump::find(bits, passed, off, &mut fits)?;
        found.map_or(Ok(false), fits)
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
