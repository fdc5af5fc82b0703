//! Choice among the packets that compressed numbers may stand for: the next one, one after a gap, or a late one. RFC 6846,
//! section 5.3; RFC 4224.
//!
//! The MSN has 4 bits in compressed packets, and other numbers have few more. After a long gap, or with late packets, these bits
//! stand for several values. One is proved as follows:
//!
//! - The TCP checksum covers the TCP header, its options and the addresses: `solve` finds the numbers with which it is correct.
//!
//! - A counting IP-ID follows from the MSN, and is wrong if that is. The carrier's count, the clock, the octets that were sent
//!   meanwhile by the proved numbers, and a CRC leave one distance, or the packet is not delivered (`crate::flow::search`).
//!
//! - Only the CRC covers TTL, DSCP and DF. The compressor here repeats a change of them for longer than losses last
//!   (`flow::pending`), so they are established, unless the packet is older than the change.

use core::ops::RangeInclusive;

use thinair_wire::crc::Check;

use super::checksum::{is_right, is_to_come, sum};
use super::decompress::{ReadPacket, TcpReceiverContext};
use super::formats::has_crc7;
use super::growth::NUMBERS;
use super::segment::rebuild;
use super::solve::{STEPS, Solutions, Steps};
use super::state::{TcpRoom, TcpState};
use crate::decompressor::{Failure, Verified};
use crate::field::ip::set_id;
use crate::flow::arrival::{Moment, Passed};
use crate::flow::search::{Fit, Proof, Search, SequenceBits, TRIALS};
use crate::packet::PacketHeader;
use crate::state::DecompressorState;
use crate::work;

/// Number of MSNs that 4 bits distinguish.
pub(super) const TURN: i16 = 16;

/// Distance from which on a packet that seems to be ahead may be a late one.
pub(super) const LATE_FROM: i16 = 5;

/// A possible interpretation of a packet.
#[derive(Clone, Copy, Debug)]
struct Interpretation {
    /// Turns of its numbers.
    turns: [i32; NUMBERS],
    /// Its distance from the last packet.
    ahead: i16,
    /// Turns of the offset of its IP-ID.
    offset: i16,
}

/// A packet that was read, and the evidence beside it.
struct Arrived<'a, 'p> {
    now: Moment,
    passed: Passed,
    found: &'a ReadPacket<'p>,
    last: &'a TcpState,
}

/// Distances from the last packet that the bits of an MSN may stand for, without the clock.
struct MsnBits {
    bits: SequenceBits,
    /// The likely one of a packet that has nothing new: it is repeated, or late.
    otherwise: i16,
    /// The numbers of the packet are new.
    goes_on: bool,
    /// Number of packets by the octets of the flow.
    by_octets: Option<u32>,
}

impl TcpReceiverContext {
    /// True if the packet is the next one, or one of the next, by clock and carrier.
    #[inline]
    pub(super) fn is_awaited(&self, now: Moment, found: &ReadPacket<'_>, ahead: i16) -> bool {
        (1..LATE_FROM).contains(&ahead)
            && self.health.state == DecompressorState::Fc
            && (!found.next.inner().behavior.is_sequential() || self.arrivals.is_next(now, TURN as u32))
    }

    /// Decompresses a packet that is not [awaited](Self::is_awaited), or failed with its bits as read.
    #[cold]
    pub(super) fn compressed_in_doubt(
        &mut self,
        now: Moment,
        packet: &PacketHeader<'_>,
        found: &mut ReadPacket<'_>,
        room: &mut TcpRoom,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let format = found.format;
        found.turns = found.turns_of(&room.0);
        // RFC 5795, section 5.2.3: packets with a CRC of 3 bits are not used on a damaged context, unless a checksum proves
        // them.
        let is_strong = has_crc7(format);
        if self.health.state == DecompressorState::Sc && !is_strong && (!self.expects_right || self.is_stale)
        {
            return Err(Failure::NotAllowed(format));
        }
        let interpretation = self.find(now, found, &room.0, out)?;
        let ahead = interpretation.ahead;
        *found = found.interpreted(&interpretation, &room.0);
        let len = rebuild(&found.next, found.payload.len(), out)?;
        let right = is_right(found, out, len);
        if ahead > 0 {
            self.note_gap(now, &found.next, &room.0, ahead.into());
            self.take(found, room, ahead, right);
        } else {
            // Fields that a late packet does not carry may have changed since.
            let has_moved = found.next.msn.wrapping_sub(self.moved).cast_signed() < 0;
            let is_shared = found.next.inner().behavior.is_sequential() && self.grown_offset(&room.0).0 > 0;
            if !is_strong && (has_moved || is_shared) {
                return Err(Failure::Ambiguous(format));
            }
            (self.ack_due, self.calm) = (false, 0);
        }
        found.deliver(packet, len, out)
    }

    /// Finds the interpretation of the packet, if one is proved.
    fn find(
        &mut self,
        now: Moment,
        found: &ReadPacket<'_>,
        last: &TcpState,
        out: &mut [u8],
    ) -> Result<Interpretation, Failure> {
        let passed = self.arrivals.passed(now);
        let (format, is_strong) = (found.format, has_crc7(found.format));
        let len = rebuild(&found.next, found.payload.len(), out)?;
        let as_read = found.next.msn.wrapping_sub(last.msn).cast_signed();
        let sum = sum(found, out, len);
        let mut solutions = Solutions::AS_READ;
        // One in 2^16 checksums equals the sum of the pseudo-header by chance.
        let is_to_come = self.expects_right && is_to_come(found, len);
        let proves = self.expects_right && !is_to_come;
        let may_be_next =
            (1..LATE_FROM).contains(&as_read) && (!is_to_come || self.arrivals.is_next(now, TURN as u32));
        if proves {
            let mut steps = Steps::new(STEPS);
            solutions = self.solve(found, last, passed, sum, &mut steps).ok_or(Failure::Ambiguous(format))?;
            if solutions.count == 0 {
                let may_be_wrong = found.passes(out, len) && self.may_be_wrong(now, found, last, as_read);
                let as_read = Interpretation { turns: [0; NUMBERS], ahead: as_read, offset: 0 };
                return if may_be_wrong { Ok(as_read) } else { Err(Failure::Crc(format)) };
            }
        } else if !is_strong && !may_be_next {
            return Err(Failure::Ambiguous(format));
        }
        let (mut fits, mut interpretation) = (0, None);
        // A CRC of 7 bits takes longer.
        let mut steps = Steps::new(if is_strong { CANDIDATES / 2 } else { CANDIDATES });
        let arrived = Arrived { now, passed, found, last };
        for turns in solutions.iter() {
            match self.place(&arrived, turns, &mut steps, out)? {
                Placed::Nowhere => {}
                Placed::Anywhere => fits += 2,
                Placed::At(ahead, offset) => {
                    fits += 1;
                    interpretation = Some(Interpretation { turns: *turns, ahead, offset });
                }
            }
        }
        match interpretation {
            Some(interpretation) if fits == 1 => Ok(interpretation),
            None if fits == 0 => {
                // The numbers are right, so that another field is wrong.
                self.is_stale |= proves;
                Err(Failure::Crc(format))
            }
            _ => Err(Failure::Ambiguous(format)),
        }
    }

    /// Finds the distance from the last packet with these turns of the numbers.
    fn place(
        &self,
        arrived: &Arrived<'_, '_>,
        turns: &[i32; NUMBERS],
        steps: &mut Steps,
        out: &mut [u8],
    ) -> Result<Placed, Failure> {
        let &Arrived { passed, found, last, .. } = arrived;
        let as_read = found.next.msn.wrapping_sub(last.msn).cast_signed();
        let bits = SequenceBits::new(as_read.into(), TURN as u32);
        let next = found.interpreted(&Interpretation { turns: *turns, ahead: as_read, offset: 0 }, last).next;
        // Candidates differ in their IP-ID.
        let len = rebuild(&next, found.payload.len(), out)?;
        // The headers in front of the innermost IP header do not change.
        let unchanged = has_crc7(found.format).then(|| {
            let at = next.ip_len() - next.inner().len();
            (at, Check::Crc7.of(out.get(..at).unwrap_or_default()))
        });
        let mut passes = |ahead: i16, offset: i16| {
            if !steps.take() {
                return Err(Failure::Ambiguous(found.format));
            }
            work::note_candidate();
            found.set_ip_id(found.ip_id(ahead, offset, last), &next, out);
            Ok(match unchanged {
                Some((at, state)) => {
                    work::note(len - at);
                    Check::Crc7.update(state, out.get(at..len).unwrap_or_default()) == found.crc
                }
                None => found.passes(out, len),
            })
        };
        let goes_on = goes_on(&next, last, self.highest);
        // Without evidence from numbers: a repeated packet, or a late one.
        let otherwise = if (1..LATE_FROM).contains(&as_read) { as_read } else { bits.late() as i16 };
        let by_octets = self.packets_by_octets(&next, last);
        let is_counting = found.next.inner().behavior.is_sequential();
        if !is_counting || found.has_whole_ip_id {
            // A full IP-ID determines the MSN if it counts only the packets of this flow.
            let counted = next.inner().behavior.counted(next.inner().header.id).wrapping_sub(last_id(last));
            let is_turn = counted.wrapping_sub(bits.first as u16).is_multiple_of(TURN as u16);
            let is_told = is_counting && is_turn && (1..LARGEST).contains(&counted);
            let ahead = match is_told && u32::from(counted) <= passed.most {
                true => counted.cast_signed(),
                false if goes_on => nearest(bits, passed),
                false => otherwise,
            };
            return Ok(if passes(ahead, 0)? { Placed::At(ahead, 0) } else { Placed::Nowhere });
        }
        // A sequence number one payload after the last packet leaves no room for a lost one, and these bits are those of the
        // next packet.
        let goes_on_at_once = as_read == 1
            && !found.payload.is_empty()
            && found.payload.len() as u32 == next.seq.wrapping_sub(last.seq)
            && next.ack == last.ack;
        if goes_on_at_once && !passed.is_counted {
            return Ok(if passes(1, 0)? { Placed::At(1, 0) } else { Placed::Nowhere });
        }
        self.place_by_ip_id(arrived, MsnBits { bits, otherwise, goes_on, by_octets }, passes)
    }

    /// [`place`](Self::place) if the IP-ID counts, and follows from the MSN: it is wrong if the distance is.
    fn place_by_ip_id(
        &self,
        arrived: &Arrived<'_, '_>,
        msn: MsnBits,
        mut passes: impl FnMut(i16, i16) -> Result<bool, Failure>,
    ) -> Result<Placed, Failure> {
        let &Arrived { now, passed, found, last } = arrived;
        let MsnBits { bits, otherwise, goes_on, by_octets } = msn;
        let is_next = (1..LATE_FROM as u32).contains(&bits.first);
        let most_trials = if has_crc7(found.format) { MOST_TRIALS } else { MOST_TRIALS >> 4 };
        // Distances times offsets that are tried. Distances with one offset each are bounded elsewhere.
        let mut trials = 0;
        let mut offset_of = |ahead: i16| -> Result<Placed, Failure> {
            let mut placed = Placed::Nowhere;
            let offsets = self.offsets(found, ahead, last);
            let others = offsets.clone().count().saturating_sub(1);
            trials += others;
            if others > 0 && trials > most_trials {
                return Ok(Placed::Anywhere);
            }
            for offset in offsets {
                if !passes(ahead, offset)? {
                    continue;
                }
                if !matches!(placed, Placed::Nowhere) {
                    return Ok(Placed::Anywhere);
                }
                placed = Placed::At(ahead, offset);
            }
            Ok(placed)
        };
        let late = if !goes_on && otherwise <= 0 { offset_of(otherwise)? } else { Placed::Nowhere };
        // A flow that pauses regularly has paused once more, whatever its octets indicate.
        let may_be_next = is_next && self.arrivals.failed() <= 1;
        let is_paused = may_be_next && self.arrivals.is_usual(now);
        let is_usual = is_paused && !passed.intervals.is_steady;
        if is_usual && !passed.is_counted && matches!(late, Placed::Nowhere) {
            let next = offset_of(bits.first as i16)?;
            if matches!(next, Placed::At(..)) {
                return Ok(next);
            }
        }
        // Without a count or a pace, packets may be faster than before; octets may not.
        let Passed { is_counted, intervals, .. } = passed;
        let is_loose = !is_counted && !intervals.is_steady;
        let most = by_octets.filter(|_| is_loose).map_or(passed.most, |packets| passed.most.max(packets * 2));
        // Octets may have been retransmitted, and the clock may have stood still. One acknowledgment may be that of any number of segments.
        let is_likely = |ahead: u32| match by_octets {
            Some(packets) if !is_counted => {
                ahead <= packets * 2 + 2 || intervals.is_steady && intervals.contain(ahead)
            }
            _ => true,
        };
        // A paced flow that pauses regularly has paused once more, or all packets of the pause are lost.
        let is_paced = is_paused && intervals.is_steady && !is_counted;
        let has_paused = self.has_paused();
        let is_possible = |ahead: u32| {
            let is_first = ahead == bits.first;
            // A packet that seems so far ahead is late if it has no new octets, unless enough time has passed.
            let is_late = ahead >= LATE_FROM as u32 && !goes_on;
            !(ahead > most && (is_late || is_counted))
                && (!is_paced || is_first || intervals.contain(ahead))
                // Lost packets may have had no octets, and time proves none where the flow has paused.
                && (is_first && (is_usual || is_next || has_paused) || is_likely(ahead))
        };
        let search = Search::new(bits, Passed { most, ..passed }, TRIALS);
        let search = Search { late: late.fit(), is_usual, ..search };
        match search.find(is_possible, |ahead| Ok(offset_of(ahead as i16)?.fit()))?.proof {
            Proof::Nothing => Ok(Placed::Nowhere),
            Proof::Late => Ok(late),
            // Other flows use IP-IDs, and the offset may have grown by more than is tried.
            Proof::Ahead(ahead, _)
                if !(may_be_next && ahead == bits.first)
                    && self.grown_offset(last).0 > 0
                    && intervals.is_steady
                    && !is_counted
                    && !intervals.contain(ahead) =>
            {
                Ok(Placed::Anywhere)
            }
            Proof::Ahead(ahead, _) => offset_of(ahead as i16),
            Proof::Ambiguous => Ok(Placed::Anywhere),
        }
    }

    /// Turns that may be added to the offset of an IP-ID from the MSN. If only this flow uses IP-IDs, the offset does not change;
    /// after few losses its bits are enough.
    fn offsets(&self, found: &ReadPacket<'_>, ahead: i16, last: &TcpState) -> RangeInclusive<i16> {
        let (grown, packets) = self.grown_offset(last);
        if grown == 0 || found.offset_bits == 0 || (1..LATE_FROM).contains(&ahead) {
            return 0..=0;
        }
        let most = 2 * i32::from(ahead.max(0)) * i32::from(grown) / i32::from(packets) + 2 * i32::from(TURN);
        let turns = most >> found.offset_bits;
        -1..=turns.min(MOST_OFFSETS) as i16
    }
}

/// Largest number of turns of an offset that are tried.
const MOST_OFFSETS: i32 = 32;

/// Largest number of combinations of distances and offsets that are tried with a CRC of 7 bits. With more, a wrong one may pass
/// alone.
const MOST_TRIALS: usize = 16;

/// Largest number of headers that are compared with the CRC of one packet.
const CANDIDATES: u32 = 128;

/// Position of a packet.
enum Placed {
    /// No CRC matches with these numbers.
    Nowhere,
    /// Several match.
    Anywhere,
    /// Distance ahead of the last packet, and turns of the offset of its IP-ID.
    At(i16, i16),
}

impl Placed {
    fn fit(&self) -> Fit {
        match self {
            Self::Nowhere => Fit::No,
            Self::Anywhere => Fit::Several,
            Self::At(..) => Fit::Yes,
        }
    }
}

/// Largest number of IP-IDs by which a packet may be ahead.
const LARGEST: u16 = 4_096;

fn last_id(last: &TcpState) -> u16 {
    last.inner().behavior.counted(last.inner().header.id)
}

/// Returns the distance that is nearest by carrier or clock, or the first one.
fn nearest(bits: SequenceBits, passed: Passed) -> i16 {
    let SequenceBits { first, turn } = bits;
    let (packets, off) = match passed {
        Passed { most, is_counted: true, .. } => (most, turn / 2),
        Passed { intervals, .. } if intervals.is_steady => (intervals.number, intervals.off),
        _ => return first as i16,
    };
    let turns = (packets.min(u32::from(LARGEST)).saturating_sub(first) + turn / 2) / turn;
    let nearest = first + turns * turn;
    (if packets.abs_diff(nearest) <= off { nearest } else { first }) as i16
}

impl ReadPacket<'_> {
    /// Returns the packet in an interpretation, after the `last` one.
    fn interpreted(&self, interpretation: &Interpretation, last: &TcpState) -> Self {
        let mut packet = *self;
        let next = &mut packet.next;
        let by =
            |number: usize| self.turns[number].wrapping_mul(interpretation.turns[number].cast_unsigned());
        next.seq = next.seq.wrapping_add(by(0));
        next.ack = next.ack.wrapping_add(by(1));
        next.options.timestamps[0] = next.options.timestamps[0].wrapping_add(by(2));
        next.options.timestamps[1] = next.options.timestamps[1].wrapping_add(by(3));
        next.scale(self.payload.len());
        next.msn = last.msn.wrapping_add_signed(interpretation.ahead);
        next.inner_mut().header.id = self.ip_id(interpretation.ahead, interpretation.offset, last);
        packet
    }

    /// Returns the IP-ID at a distance from the `last` packet.
    fn ip_id(&self, ahead: i16, offset: i16, last: &TcpState) -> u16 {
        let (next, ip) = (&self.next, self.next.inner());
        if self.has_whole_ip_id || !ip.behavior.is_sequential() {
            return ip.header.id;
        }
        let msn = last.msn.wrapping_add_signed(ahead);
        let by = msn.wrapping_sub(next.msn).wrapping_add_signed(offset << self.offset_bits);
        ip.behavior.counted(ip.behavior.counted(ip.header.id).wrapping_add(by))
    }

    /// Changes the IP-ID of a packet with rebuilt headers, and the checksum of its innermost IP header.
    fn set_ip_id(&self, id: u16, next: &TcpState, out: &mut [u8]) {
        if next.inner().is_v6() {
            return;
        }
        set_id(out, next.ip_len() - next.inner().len(), id);
    }
}

/// True if a packet has a number beyond that of the last one, or beyond a sequence number.
fn goes_on(next: &TcpState, last: &TcpState, seq: u32) -> bool {
    let goes_on = |new: u32, old: u32| (new.wrapping_sub(old) as i32) > 0;
    let mut stamps = next.options.timestamps.iter().zip(last.options.timestamps);
    goes_on(next.seq, seq) || goes_on(next.ack, last.ack) || stamps.any(|(new, old)| goes_on(*new, old))
}
