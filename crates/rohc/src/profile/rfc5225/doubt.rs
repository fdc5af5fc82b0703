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
    Found, HALF, Jump, Proof, Search, SequenceBits, SumEquation, TimestampBits, has_moved_by_count,
    steps_to_repeat, trials,
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

/// A packet whose headers are written with one candidate after the other.
struct InDoubt<'s, 'p> {
    found: &'s mut Packet<'p>,
    last: &'s State,
    out: &'s mut [u8],
    written: Written,
    bits: SequenceBits,
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

impl InDoubt<'_, '_> {
    /// Writes the headers of a candidate. Returns their octets if it is right.
    fn write(&mut self, place: Candidate) -> Option<usize> {
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
        let stride = self.last.ts_stride;
        if !self.proves || self.stamp != Stamp::Inferred || stride == 0 {
            return u32::MAX;
        }
        stride.saturating_mul(steps_to_repeat(self.bits.turn, stride))
    }

    /// The candidate at a distance behind the newest packet. It may have been sent before the timestamp jumped, once or several times, or
    /// have carried such a jump: `lines` are those before the jumps, the newest first.
    fn late(&mut self, late: i32, lines: &[u32]) -> Option<Candidate> {
        if self.write(late.into()).is_some() {
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
            if (self.proves || timestamp == goes_on) && self.write(place).is_some() {
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
    fn behind_jump(&mut self, has_even_jumps: bool) -> Result<Option<Candidate>, Failure> {
        let (stride, most) = (self.last.ts_stride, self.passed.intervals.most());
        let is_known = self.proves && self.stamp == Stamp::Inferred && stride != 0;
        if !is_known || most > self.distinct().min(HALF) || !has_even_jumps {
            return Ok(None);
        }
        let timestamp = self.last.timestamp();
        let candidate = |Jump { ahead, intervals }| Candidate {
            ahead: ahead.cast_signed(),
            timestamp: Some(timestamp.wrapping_add(stride.wrapping_mul(intervals))),
        };
        let found = Jump::find(self.bits, self.passed, 0, |jump| Ok(self.write(candidate(jump)).is_some()))?;
        Ok(found.map(candidate))
    }
}

impl Packet<'_> {
    /// Number of packets behind which the bits of its MSN repeat.
    fn turn(&self) -> u32 {
        1 << u32::from(self.x.msn.bits).min(u16::BITS)
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
        let is_awaited =
            as_read == 1 && self.arrivals.has_not_failed() && self.is_next(now, found.turn(), last);
        let depends = found.next.has_own_msn() || found.next.is_sequential() && !found.x.has_whole_id;
        let is_whole = bits == 0 || bits >= 16;
        let interpretation =
            if is_awaited && self.health.state == DecompressorState::Fc || is_whole || !depends {
                let len = found.attempt(last, msn, out)?.ok_or(Failure::Crc(format))?;
                Interpretation { ahead: as_read, most: as_read.max(0).unsigned_abs(), proved: is_whole, len }
            } else if self.misses_ip_id(now, found) {
                return Err(Failure::Ambiguous(format));
            } else {
                self.find_in_doubt(now, found, last, out)?
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
        out: &mut [u8],
    ) -> Result<Interpretation, Failure> {
        let (format, found_own) = (found.format, found.next.has_own_msn());
        let as_read = found.x.msn.value.wrapping_sub(last.msn).cast_signed();
        let bits = SequenceBits::new(as_read, found.turn());
        let (SequenceBits { first, turn }, late) = (bits, bits.late());
        let proves = self.sums && found.next.sum_covers_rtp();
        // A strong CRC is proof, too, if the context is not damaged.
        let may_be_before_jump = proves || is_strong(format) && !self.health.is_doubtful();
        let stamp = found.x.stamp;
        let passed = self.arrivals.passed(now);
        let written = found.write(out)?;
        let equation = if proves { found.next.equation(out, found.payload) } else { None };
        let trials = trials(written.compared(found.check()));
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
        let most = if self.is_next(now, turn, last) { most.min(first) } else { most };
        let mut trial =
            InDoubt { found, last, out, written, bits, proves, equation, may_be_before_jump, stamp, passed };
        let may_be_silent = self.arrivals.has_paused() || self.has_jumped;
        let most = if may_be_silent { most.min(trial.distinct()) } else { most };
        let is_counted = passed.is_counted && (1..=passed.most).contains(&first);
        // Numbers of the sender that have jumped back continue from there.
        let behind = self.behind.map_or(0, |next| next.wrapping_sub(last.msn).cast_signed());
        let goes_on = behind != 0
            && !is_counted
            && !self.is_missing(behind)
            && (behind - as_read).cast_unsigned().is_multiple_of(turn);
        if goes_on && let Some(len) = trial.write(behind.into()) {
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
        let late = if may_be_late || goes_back { trial.late(late, &self.lines_before) } else { None };
        let is_usual = (1..=REPEATED as u32).contains(&first)
            && !passed.intervals.is_steady
            && self.arrivals.has_paused_as_usual(now);
        // Behind a context that is damaged the MSN may have taken any step.
        let is_possible = |ahead: u32| ahead <= most || as_read > 0 && ahead == first;
        let has_held_back = self.arrivals.has_held_back(now);
        let search = Search::new(bits, passed, trials);
        let search = Search { proves, late: late.is_some().into(), is_usual, has_held_back, ..search };
        let attempt = |ahead: u32| Ok(trial.write(ahead.cast_signed().into()).is_some().into());
        let Found { proof, farthest } = search.find(is_possible, attempt)?;
        let misses_ip_id = self.misses_moved_ip_id(now, trial.found, farthest);
        let (place, proved) = match (proof, late) {
            (Proof::Ahead(ahead, proved), _) => (ahead.cast_signed().into(), proved),
            // An IP-ID or a timestamp that may have moved excludes none of those ahead.
            (Proof::Late, Some(late))
                if !misses_ip_id && !self.misses_timestamp(now, trial.found, farthest) =>
            {
                (late, true)
            }
            (Proof::Ambiguous | Proof::Late, _) => return Err(Failure::Ambiguous(format)),
            (Proof::Nothing, _) => {
                let candidate = trial.behind_jump(self.has_jumped && !self.has_uneven_jumps)?;
                // An IP-ID that may have moved is no evidence of a damaged context.
                let failure = if misses_ip_id { Failure::Ambiguous(format) } else { Failure::Crc(format) };
                (candidate.ok_or(failure)?, true)
            }
        };
        let len = trial.write(place).ok_or(Failure::Crc(format))?;
        let most = match place.ahead {
            ahead if ahead <= 0 => 0,
            // A CRC alone does not exclude a farther one.
            ahead if !(proves || is_usual && ahead.cast_unsigned() == first) => {
                farthest.max(ahead.unsigned_abs())
            }
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
            Stamp::Inferred => Some(TimestampBits::Inferred { turn: found.turn() }),
            Stamp::Scaled => sent(found.x.ts_scaled.bits, 1),
            Stamp::Unscaled => sent(found.x.timestamp.bits, next.ts_stride),
        };
        bits.is_some_and(|bits| bits.may_hide_jump(&self.arrivals, now, packets, self.has_jumped))
    }
}
