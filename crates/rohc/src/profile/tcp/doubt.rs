//! Which packet it is: the next one, one behind a gap, or one that is late. RFC 6846, section 5.3; RFC 4224.
//!
//! The MSN has 4 bits in compressed packets, and other numbers have few more. Behind a long gap, or where packets are late, these
//! bits stand for several values. What proves one:
//!
//! - The TCP checksum covers the TCP header, its options and the addresses: `solve` finds the numbers with which it is right.
//! - An IP-ID that counts is told by the MSN, and is wrong if that is. The carrier's count, the clock, the octets that the proved
//!   numbers say were sent meanwhile, and a CRC leave one distance, or the packet is not delivered (`crate::proof`).
//! - TTL, DSCP and DF are covered by the CRC alone. A compressor here repeats a change of them for longer than losses last
//!   (`note::SURE`), so they are known, unless the packet is older than the change.

use super::checksum::{is_right, is_to_come, sum};
use super::decompress::{Context, Packet, deliver, unbuildable};
use super::formats::has_crc7;
use super::segment::rebuild;
use super::solve::{NUMBERS, Solutions};
use super::state::{State, TcpRoom};
use crate::arrival::{Moment, Passed};
use crate::packet::Header;
use crate::profile::rfc3095::decompress::{Failure, Verified};
use crate::proof::{Candidates, Fits, Proof};
use crate::state::DecompressorState;

/// MSNs that 4 bits tell apart.
pub(super) const TURN: i16 = 16;

/// From here on a packet that seems to be so much ahead may as well be one that is late.
pub(super) const FAR: i16 = 5;

/// A packet as it may be meant: turns of its numbers, and its distance from the last one.
type Meant = ([i32; NUMBERS], i16);

impl Context {
    /// Whether the packet is the next one, or one of the next, as far as clock and carrier tell.
    #[inline]
    pub(super) fn is_awaited(&self, now: Moment, found: &Packet<'_>, ahead: i16) -> bool {
        (1..FAR).contains(&ahead)
            && self.state == DecompressorState::Fc
            && (!found.next.inner().behavior.is_sequential() || self.pace.is_next(now, TURN as u32))
    }

    /// A packet that is not [awaited](Self::is_awaited), or not right as it was read.
    #[cold]
    pub(super) fn compressed_in_doubt(
        &mut self,
        now: Moment,
        packet: &Header<'_>,
        found: &mut Packet<'_>,
        room: &mut TcpRoom,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let format = found.format;
        // RFC 5795, section 5.2.3: no attempt with 3 bits on a context that is damaged, unless a checksum proves it.
        let is_strong = has_crc7(format);
        if self.state == DecompressorState::Sc && !is_strong && (!self.expects_right || self.is_stale) {
            return Err(Failure::NotAllowed(format));
        }
        let (turns, ahead) = self.find(now, found, &room.0, out)?;
        *found = found.meant(&turns, ahead, &room.0);
        let len = rebuild(&found.next, found.payload.len(), out).map_err(unbuildable)?;
        let right = is_right(found, out, len);
        if ahead > 0 {
            self.take(found, room, ahead, right);
        } else {
            // What a late packet does not say may have changed since.
            if found.next.msn.wrapping_sub(self.moved).cast_signed() < 0 && !is_strong {
                return Err(Failure::Ambiguous(format));
            }
            (self.ack_due, self.calm) = (false, 0);
        }
        deliver(packet, found, len, out)
    }

    /// What is meant, if that is proved.
    fn find(
        &mut self,
        now: Moment,
        found: &Packet<'_>,
        last: &State,
        out: &mut [u8],
    ) -> Result<Meant, Failure> {
        let clock = self.pace.passed(now);
        let (format, is_strong) = (found.format, has_crc7(found.format));
        let len = rebuild(&found.next, found.payload.len(), out).map_err(unbuildable)?;
        let as_read = found.next.msn.wrapping_sub(last.msn).cast_signed();
        let sum = sum(found, out, len);
        let mut solutions = Solutions::AS_READ;
        let proves = self.expects_right && !is_to_come(found, len);
        if proves {
            solutions = self.solve(found, last, clock, sum).ok_or(Failure::Ambiguous(format))?;
            if solutions.count == 0 {
                let may_be_wrong = found.passes(out, len) && self.may_be_wrong(now, found, len, last, as_read);
                return if may_be_wrong { Ok(([0; NUMBERS], as_read)) } else { Err(Failure::Crc(format)) };
            }
        } else if !is_strong && !(1..FAR).contains(&as_read) {
            return Err(Failure::Ambiguous(format));
        }
        let (mut fits, mut meant) = (0, None);
        for turns in solutions.iter() {
            let ahead = self.place(now, found, turns, last, clock, out)?;
            match ahead {
                Placed::Nowhere => {}
                Placed::Anywhere => fits += 2,
                Placed::At(ahead) => {
                    fits += 1;
                    meant = Some((*turns, ahead));
                }
            }
        }
        match meant {
            Some(meant) if fits == 1 => Ok(meant),
            None if fits == 0 => {
                // The numbers are right: it is another field that is not.
                self.is_stale |= proves;
                Err(Failure::Crc(format))
            }
            _ => Err(Failure::Ambiguous(format)),
        }
    }

    /// How much ahead of the last packet one is whose numbers have these turns.
    fn place(
        &self,
        now: Moment,
        found: &Packet<'_>,
        turns: &[i32; NUMBERS],
        last: &State,
        clock: Passed,
        out: &mut [u8],
    ) -> Result<Placed, Failure> {
        let mut passes = |ahead: i16| {
            let meant = found.meant(turns, ahead, last);
            rebuild(&meant.next, meant.payload.len(), out)
                .map(|len| meant.passes(out, len))
                .map_err(unbuildable)
        };
        let as_read = found.next.msn.wrapping_sub(last.msn).cast_signed();
        let first = if as_read > 0 { as_read } else { as_read + TURN };
        let next = found.meant(turns, as_read, last).next;
        let goes_on = goes_on(&next, last, self.highest);
        let is_counting = found.next.inner().behavior.is_sequential();
        if !is_counting {
            let ahead = if goes_on {
                nearest(first, clock)
            } else if (1..FAR).contains(&as_read) {
                as_read
            } else {
                first - TURN
            };
            return Ok(if passes(ahead)? { Placed::At(ahead) } else { Placed::Nowhere });
        }
        let counted = next.inner().behavior.nbo(next.inner().id).wrapping_sub(last_id(last));
        if found.has_whole_ip_id {
            // It does not hang on the MSN, but tells it where the IP-ID counts the packets of this flow alone.
            let is_near = counted.wrapping_sub(first as u16).is_multiple_of(TURN as u16) && counted < LARGEST;
            let ahead = match is_near && counted > 0 {
                true => counted.cast_signed(),
                false if goes_on => nearest(first, clock),
                false => first - TURN,
            };
            return Ok(if passes(ahead)? { Placed::At(ahead) } else { Placed::Nowhere });
        }
        let is_late = !goes_on && passes(first - TURN)?;
        if matches!(clock, Passed::AtMost(most) if first as u32 > most) {
            return Ok(if is_late { Placed::At(first - TURN) } else { Placed::Nowhere });
        }
        let candidates = Candidates::new(first as u32, TURN as u32, clock, false);
        let (at_least, at_most) = self.packets_by_octets(&next, last).unwrap_or((0, u32::MAX));
        let mut fits = Fits::default();
        for ahead in candidates.distances().filter(|ahead| (at_least..=at_most).contains(ahead)) {
            let Ok(distance) = i16::try_from(ahead) else { continue };
            // One that looks so far ahead is late if it does not go on, unless that much time has passed.
            let is_far = distance >= FAR && !goes_on && !is_old_enough(ahead, clock);
            if !is_far && passes(distance)? {
                fits.add(ahead, &candidates);
            }
        }
        if is_late {
            return Ok(if fits.is_none() { Placed::At(first - TURN) } else { Placed::Anywhere });
        }
        Ok(match fits.proof(&candidates, self.pace.is_usual(now)) {
            Proof::Nothing => Placed::Nowhere,
            Proof::Ambiguous => Placed::Anywhere,
            Proof::Meant(ahead, _) => Placed::At(ahead as i16),
        })
    }
}

/// Where a packet belongs.
enum Placed {
    /// With these numbers, no CRC is right.
    Nowhere,
    /// Several are.
    Anywhere,
    At(i16),
}

/// IP-IDs by which a packet may be ahead.
const LARGEST: u16 = 4_096;

fn last_id(last: &State) -> u16 {
    last.inner().behavior.nbo(last.inner().id)
}

/// Whether a packet may be so much ahead, as far as the clock tells.
fn is_old_enough(ahead: u32, clock: Passed) -> bool {
    match clock {
        Passed::AtMost(most) | Passed::Perhaps(most) => ahead <= most,
        Passed::About { packets, off } => ahead <= packets + off,
    }
}

/// The distance that is nearest to what the clock tells.
fn nearest(first: i16, clock: Passed) -> i16 {
    let packets = match clock {
        Passed::AtMost(most) => most,
        Passed::About { packets, .. } => packets,
        Passed::Perhaps(most) => most.saturating_sub(2) / 2,
    };
    let turn = TURN as u32;
    let turns = (packets.min(u32::from(LARGEST)).saturating_sub(first as u32) + turn / 2) / turn;
    first + turns as i16 * TURN
}

impl Packet<'_> {
    /// The packet with turns of its numbers added, `ahead` of the last one.
    fn meant(&self, turns: &[i32; NUMBERS], ahead: i16, last: &State) -> Self {
        let mut meant = *self;
        let next = &mut meant.next;
        let by = |number: usize| self.turns[number].wrapping_mul(turns[number].cast_unsigned());
        next.seq = next.seq.wrapping_add(by(0));
        next.ack = next.ack.wrapping_add(by(1));
        next.options.timestamps[0] = next.options.timestamps[0].wrapping_add(by(2));
        next.options.timestamps[1] = next.options.timestamps[1].wrapping_add(by(3));
        next.scale(self.payload.len());
        let msn = last.msn.wrapping_add_signed(ahead);
        let by = msn.wrapping_sub(next.msn);
        next.msn = msn;
        let ip = next.inner_mut();
        if !self.has_whole_ip_id && ip.behavior.is_sequential() {
            ip.id = ip.behavior.nbo(ip.behavior.nbo(ip.id).wrapping_add(by));
        }
        meant
    }
}

/// Whether a packet has a number that is beyond that of the last one, or beyond a sequence number.
fn goes_on(next: &State, last: &State, seq: u32) -> bool {
    let goes_on = |new: u32, old: u32| (new.wrapping_sub(old) as i32) > 0;
    let mut stamps = next.options.timestamps.iter().zip(last.options.timestamps);
    goes_on(next.seq, seq) || goes_on(next.ack, last.ack) || stamps.any(|(new, old)| goes_on(*new, old))
}
