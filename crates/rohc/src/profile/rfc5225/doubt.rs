//! Search for the MSN of a packet: that of the next one, of one after a gap, or of a late one. RFC 5225, section 5.2.2; RFC 4224.
//!
//! The bits of the MSN have several interpretations. If the header depends on the MSN, all candidates that clock and carrier allow are
//! tried, and one is accepted if no other one is right, or if the UDP checksum proves it, which covers the fields of RTP that depend on
//! the MSN. If that checksum proves them, timestamps that do not continue from the last one are tried, too: those of packets sent before
//! a jump, and of packets after a jump in a gap.

use super::decompress::{Packet, V2ReceiverContext, Written};
use super::encodings::quarter;
use super::formats::{Stamp, is_strong, resolve, ts_p};
use super::late::latest;
use super::state::State;
use crate::decompressor::Failure;
use crate::flow::arrival::{Moment, Passed};
use crate::flow::caution::REPEATED;
use crate::flow::search::{
    COMBINATIONS, Candidates, HALF, Matches, Proof, SumEquation, TimestampBits, has_moved_by_count, trials,
};
use crate::id::Format;
use crate::state::DecompressorState;

/// Packets that are missing among those that may still come late, this one among them, where others are late, too.
const HOLES: u32 = 2;

/// Interpretation of the bits of an MSN.
pub(super) struct Interpretation {
    /// Its distance from the newest one.
    pub(super) ahead: i32,
    /// The largest distance of all candidates.
    most: u32,
    /// No other candidate is possible.
    pub(super) proved: bool,
    /// Octets of its headers, which were written.
    pub(super) len: usize,
}

/// A possible interpretation of the bits of an MSN.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Candidate {
    /// Its distance from the newest one.
    ahead: i32,
    /// Its timestamp, if that does not continue from the newest one.
    timestamp: Option<u32>,
}

impl From<i32> for Candidate {
    fn from(ahead: i32) -> Self {
        Self { ahead, timestamp: None }
    }
}

/// Search among candidates.
struct Search<'s, 'p> {
    found: &'s mut Packet<'p>,
    last: &'s State,
    out: &'s mut [u8],
    written: Written,
    /// Packets after which the bits of the MSN repeat.
    turn: u32,
    /// The UDP checksum proves the fields that depend on the MSN.
    proves: bool,
    /// Its equation; `None` if it is wrong with any MSN.
    equation: Option<SumEquation>,
    /// A late packet may have a timestamp from before it jumped.
    may_be_before_jump: bool,
    /// Encoding of the timestamp in the packet.
    stamp: Stamp,
    passed: Passed,
}

impl Search<'_, '_> {
    /// Writes the headers of a candidate. Returns their octets if it is right.
    fn attempt(&mut self, place: Candidate) -> Option<usize> {
        let x = &mut self.found.x;
        match place.timestamp {
            Some(timestamp) => (x.stamp, x.timestamp.value) = (Stamp::Unscaled, timestamp),
            None => x.stamp = self.stamp,
        }
        let msn = self.last.msn.wrapping_add_signed(place.ahead);
        let Packet { next, x, .. } = &mut *self.found;
        resolve(next, self.last, x, msn);
        let solves = |equation: SumEquation| equation.holds(msn as u16, next.timestamp());
        if self.proves && !self.equation.is_some_and(solves) {
            return None;
        }
        self.found.attempt_again(self.written, self.out)
    }

    /// Distance of two candidates with the same sum in a flow that pauses: so many packets more, and as much less silence.
    fn distinct(&self) -> u32 {
        let (stride, turn) = (self.last.ts_stride, self.turn);
        if !self.proves || self.stamp != Stamp::Inferred || stride == 0 {
            return u32::MAX;
        }
        // Their least common multiple, as `turn` is a power of two.
        stride.saturating_mul(turn >> stride.trailing_zeros().min(turn.trailing_zeros()))
    }

    /// The candidate at a distance behind the newest packet. It may have been sent before the timestamp jumped, once or several times, or
    /// have carried such a jump: `lines` are those before the jumps, the newest first.
    fn late(&mut self, late: i32, lines: &[u32]) -> Option<Candidate> {
        if self.attempt(late.into()).is_some() {
            return Some(late.into());
        }
        if !self.may_be_before_jump || self.stamp == Stamp::Unscaled {
            return None;
        }
        let msn = self.last.msn.wrapping_add_signed(late);
        // A CRC alone proves no more than one jump.
        for &line in lines.iter().take(if self.proves { lines.len() } else { 1 }) {
            let goes_on = line.wrapping_add(self.last.ts_stride.wrapping_mul(msn));
            let timestamp = self.told_behind(goes_on);
            let place = Candidate { ahead: late, timestamp: Some(timestamp) };
            if (self.proves || timestamp == goes_on) && self.attempt(place).is_some() {
                return Some(place);
            }
        }
        None
    }

    /// The timestamp of the packet for a decompressor whose reference predicts that one.
    fn told_behind(&self, goes_on: u32) -> u32 {
        let (told, stride) = (&self.found.x.ts_scaled, self.last.ts_stride);
        let bits = u32::from(told.bits);
        if self.stamp != Stamp::Scaled || self.last.time_stride != 0 || !(1..u32::BITS).contains(&bits) {
            return goes_on;
        }
        let (Some(reference), Some(offset)) = (goes_on.checked_div(stride), goes_on.checked_rem(stride))
        else {
            return goes_on;
        };
        let start = reference.wrapping_sub(ts_p(self.last, bits));
        let ahead = told.value.wrapping_sub(start) & ((1 << bits) - 1);
        start.wrapping_add(ahead).wrapping_mul(stride).wrapping_add(offset)
    }

    /// The candidate after a jump of the timestamp in lost packets, as after silence. The clock determines the timestamp.
    fn behind_jump(&mut self, first: u32, has_uneven_jumps: bool) -> Option<Candidate> {
        let intervals = self.passed.intervals;
        let most = intervals.most();
        if !self.proves
            || !intervals.is_steady
            || self.stamp != Stamp::Inferred
            || self.last.ts_stride == 0
            || most > self.distinct().min(HALF)
            || has_uneven_jumps
            || u64::from(2 * intervals.off + 1) * u64::from(most / self.turn + 1) > COMBINATIONS
        {
            return None;
        }
        let mut candidate = None;
        for steps in intervals.number.saturating_sub(intervals.off)..=most {
            let timestamp = self.last.timestamp().wrapping_add(self.last.ts_stride.wrapping_mul(steps));
            let packets = if self.passed.is_counted { steps.min(self.passed.most) } else { steps };
            for ahead in (first..=packets).step_by(self.turn as usize) {
                let place = Candidate { ahead: ahead.cast_signed(), timestamp: Some(timestamp) };
                let is_right = self.attempt(place).is_some();
                if is_right && candidate.is_some() {
                    return None;
                }
                candidate = candidate.or(is_right.then_some(place));
            }
        }
        candidate
    }
}

impl V2ReceiverContext {
    /// Finds the MSN of a packet, and writes its headers.
    pub(super) fn find(
        &self,
        now: Moment,
        found: &mut Packet<'_>,
        last: &State,
        out: &mut [u8],
    ) -> Result<Interpretation, Failure> {
        let (format, bits) = (found.format, u32::from(found.x.msn.bits));
        let (as_read, msn) = (found.x.msn.value.wrapping_sub(last.msn).cast_signed(), found.x.msn.value);
        let turn = 1_u32 << bits.min(16);
        let is_awaited = as_read == 1 && self.arrivals.has_not_failed() && self.is_next(now, turn, last);
        let depends = found.next.has_own_msn() || found.next.is_sequential() && !found.x.has_whole_id;
        let is_whole = bits == 0 || bits >= 16;
        let interpretation =
            if is_awaited && self.health.state == DecompressorState::Fc || is_whole || !depends {
                let len = found.attempt(last, msn, out)?.ok_or(Failure::Crc(format))?;
                Interpretation { ahead: as_read, most: as_read.max(0).unsigned_abs(), proved: is_whole, len }
            } else if self.misses_ip_id(now, found) {
                return Err(Failure::Ambiguous(format));
            } else {
                self.find_in_doubt(now, found, last, (as_read, turn), out)?
            };
        // It has everything.
        let is_repair = format == Format::CoRepair;
        if !is_repair
            && (self.misses_timestamp(now, found, interpretation.most)
                || self.misses_moved_ip_id(now, found, interpretation.most))
        {
            return Err(Failure::Ambiguous(format));
        }
        Ok(interpretation)
    }

    /// True if too little time has passed for the bits of the MSN to repeat. In a flow of RTP with correct checksums half of that time is
    /// enough: after it the compressor only sends packets whose checksum is correct (`may_need_sum`).
    #[inline]
    pub(super) fn is_next(&self, now: Moment, turn: u32, last: &State) -> bool {
        let proves = self.sums && last.has_rtp();
        self.arrivals.is_next(now, if proves { turn / 2 } else { turn })
    }

    #[cold]
    fn find_in_doubt(
        &self,
        now: Moment,
        found: &mut Packet<'_>,
        last: &State,
        (as_read, turn): (i32, u32),
        out: &mut [u8],
    ) -> Result<Interpretation, Failure> {
        let (format, found_own) = (found.format, found.next.has_own_msn());
        let proves = self.sums && found.next.sum_covers_rtp();
        // A strong CRC is proof, too, if the context is not damaged.
        let may_be_before_jump = proves || is_strong(format) && !self.health.is_doubtful();
        let stamp = found.x.stamp;
        let passed = self.arrivals.passed(now);
        let written = found.write(out)?;
        let equation = if proves { found.next.equation(out, found.payload) } else { None };
        let trials = trials(written.compared(found.check()));
        let mut search =
            Search { found, last, out, written, turn, proves, equation, may_be_before_jump, stamp, passed };
        let first = if as_read > 0 { as_read } else { as_read + turn.cast_signed() };
        let late = first - turn.cast_signed();
        let most = passed.most;
        // No packet is so late, but the numbers of the sender may jump back.
        let goes_back = as_read < -latest(last) && found_own;
        // Such a packet, a duplicate, or one that is late where others are, too, may as well have overtaken others, whatever the clock is.
        let holes = (!self.seen & ((2 << latest(last)) - 1)).count_ones();
        let is_twice =
            late <= 0 && self.seen.checked_shr(late.unsigned_abs()).is_some_and(|seen| seen & 1 == 1);
        let is_counted_anew = now.is_in_order() && !passed.is_counted;
        let is_any = holes >= HOLES || is_twice || goes_back || is_counted_anew;
        let most = if is_any { most.max(latest(last).cast_unsigned() + 1) } else { most };
        // Without evidence that the bits of the MSN have repeated, they have not.
        let most = if self.is_next(now, turn, last) { most.min(first.cast_unsigned()) } else { most };
        let may_be_silent = self.arrivals.has_paused() || self.has_jumped;
        let most = if may_be_silent { most.min(search.distinct()) } else { most };
        let is_counted = passed.is_counted && (1..=passed.most).contains(&first.cast_unsigned());
        // Numbers of the sender that have jumped back continue from there.
        let behind = self.behind.map_or(0, |next| next.wrapping_sub(last.msn).cast_signed());
        let goes_on = behind != 0
            && !is_counted
            && !self.is_missing(behind)
            && (behind - as_read).cast_unsigned().is_multiple_of(turn);
        if goes_on && let Some(len) = search.attempt(behind.into()) {
            return Ok(Interpretation { ahead: behind, most: 0, proved: proves, len });
        }
        // A counted packet is not late, unless its sender has numbered it so.
        let may_be_late = late >= -latest(last)
            && !(1..=turn.cast_signed() / 2).contains(&as_read)
            && !is_counted
            && (found_own || !now.is_in_order());
        // Fields that a late packet does not carry may have changed since: only the CRC would then distinguish it from one ahead.
        let has_moved = !is_strong(format) && self.has_moved_since(last.msn.wrapping_add_signed(late));
        if may_be_late && !proves && has_moved {
            return Err(Failure::Ambiguous(format));
        }
        let late = if may_be_late || goes_back { search.late(late, &self.lines_before) } else { None };
        let candidates = Candidates::new(first.cast_unsigned(), turn, passed, trials, proves);
        let (mut fits, mut farthest) = (Matches::default(), 0);
        // Behind a context that is damaged the MSN may have taken any step.
        let is_open = |ahead: u32| ahead <= most || as_read > 0 && ahead == first.cast_unsigned();
        for ahead in candidates.distances().filter(|ahead| is_open(*ahead)) {
            let Ok(distance) = i32::try_from(ahead) else { continue };
            farthest = farthest.max(ahead);
            if search.attempt(distance.into()).is_some() {
                fits.add(ahead);
            }
        }
        let is_usual = (1..=REPEATED).contains(&first)
            && !passed.intervals.is_steady
            && self.arrivals.has_paused_as_usual(now);
        let misses_ip_id = |found: &Packet<'_>| self.misses_moved_ip_id(now, found, farthest);
        let (place, proved) = match (late, fits.proof(&candidates, is_usual)) {
            // An IP-ID or a timestamp that may have moved excludes none of those ahead.
            (Some(late), Proof::Nothing)
                if !misses_ip_id(search.found) && !self.misses_timestamp(now, search.found, farthest) =>
            {
                (late, true)
            }
            (Some(_), Proof::One(ahead, _)) if self.arrivals.has_held_back(now) => {
                (ahead.cast_signed().into(), false)
            }
            (Some(_), _) | (None, Proof::Ambiguous) => return Err(Failure::Ambiguous(format)),
            (None, Proof::One(ahead, proved)) => (ahead.cast_signed().into(), proved),
            (None, Proof::Nothing) => {
                let place = search.behind_jump(first.cast_unsigned(), self.has_uneven_jumps);
                // An IP-ID that may have moved is no evidence of a damaged context.
                let failure = if misses_ip_id(search.found) {
                    Failure::Ambiguous(format)
                } else {
                    Failure::Crc(format)
                };
                (place.ok_or(failure)?, true)
            }
        };
        let len = search.attempt(place).ok_or(Failure::Crc(format))?;
        let most = match place.ahead {
            ahead if ahead <= 0 => 0,
            // A CRC alone does not exclude a farther one.
            ahead if !(proves || is_usual && ahead == first) => farthest.max(ahead.unsigned_abs()),
            ahead => ahead.unsigned_abs(),
        };
        Ok(Interpretation { ahead: place.ahead, most, proved: proved && proves, len })
    }

    /// True if the packet depends on an IP-ID that may have moved in a gap, by the carrier's count.
    fn misses_ip_id(&self, now: Moment, found: &Packet<'_>) -> bool {
        found.next.is_sequential()
            && !found.x.has_whole_id
            && has_moved_by_count(&self.arrivals, now, &self.movement)
    }

    /// True if the packet, which is at most so many behind the last one, has too few bits of an IP-ID that moves.
    fn misses_moved_ip_id(&self, now: Moment, found: &Packet<'_>, most: u32) -> bool {
        if most <= REPEATED as u32 || !found.next.is_sequential() || found.x.has_whole_id {
            return false;
        }
        let bits = u32::from(found.x.ip_id_offset.bits);
        // The own number of a sender may leap, and then no packet is missing.
        let most = if found.next.has_own_msn() { most.min(self.arrivals.passed(now).most) } else { most };
        // Without bits it is the predicted one.
        let room = if bits == 0 { 0 } else { (1 << bits) - 1 - quarter(bits) };
        !self.movement.is_told(room, most)
    }

    /// True if the timestamp may have jumped in lost packets, no checksum proves it, and the packet has too few bits of it.
    fn misses_timestamp(&self, now: Moment, found: &Packet<'_>, packets: u32) -> bool {
        let next = &found.next;
        if !next.has_rtp() || next.time_stride != 0 || self.sums && next.sum_covers_rtp() {
            return false;
        }
        let sent = |bits: u8, step: u32| match u32::from(bits) {
            bits @ 1..u32::BITS => Some(TimestampBits::Sent { reach: (1 << bits) - ts_p(next, bits), step }),
            _ => None,
        };
        let bits = match found.x.stamp {
            Stamp::Inferred => {
                Some(TimestampBits::Inferred { turn: 1 << u32::from(found.x.msn.bits).min(u16::BITS) })
            }
            Stamp::Scaled => sent(found.x.ts_scaled.bits, 1),
            Stamp::Unscaled => sent(found.x.timestamp.bits, next.ts_stride),
        };
        bits.is_some_and(|bits| bits.may_hide_jump(&self.arrivals, now, packets, self.has_jumped))
    }
}
