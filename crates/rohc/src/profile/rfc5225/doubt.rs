//! Which packet it is: the next one, one behind a gap, or one that is late. RFC 5225, section 5.2.2; RFC 4224.
//!
//! The bits of the MSN stand for several MSNs. Where the header depends on the MSN, all that clock and carrier allow are tried, and one
//! is believed if no other one is right, or if the UDP checksum proves it: that covers what follows from the MSN in RTP.

use super::decompress::{Packet, V2ReceiverContext};
use super::headers::Kind;
use super::late::latest;
use super::state::State;
use crate::arrival::{Moment, PassedPackets};
use crate::decompressor::Failure;
use crate::proof::{Candidates, Fits, Proof};
use crate::state::DecompressorState;

/// Packets in which compressors repeat what has changed: where fewer are missing, nothing was missed.
const REPEATED: i32 = 4;

/// An IP-ID that has moved within so many times the packets of a gap may have moved in the gap.
const MEMORY: u32 = 8;

/// Packets that are missing among those that may still come late, where most are late.
const HOLES: u32 = 3;

/// The packet that is meant.
pub(super) struct Meant {
    /// Its distance from the newest one.
    pub(super) ahead: i32,
    /// No other one comes into question.
    pub(super) proved: bool,
    /// Octets of its headers, which were written.
    pub(super) len: usize,
}

impl V2ReceiverContext {
    /// Finds the packet that is meant, and writes its headers.
    pub(super) fn find(
        &self,
        now: Moment,
        found: &mut Packet<'_>,
        last: &State,
        out: &mut [u8],
    ) -> Result<Meant, Failure> {
        let (format, bits) = (found.format, u32::from(found.x.msn.bits));
        let (as_read, msn) = (found.x.msn.value.wrapping_sub(last.msn).cast_signed(), found.x.msn.value);
        let turn = 1_u32 << bits.min(16);
        let is_awaited = as_read == 1 && self.arrivals.has_not_failed() && self.arrivals.is_next(now, turn);
        let depends = found.next.has_own_msn() || found.next.is_sequential() && !found.x.has_whole_id;
        let is_whole = bits == 0 || bits >= 16;
        if is_awaited && self.state == DecompressorState::Fc || is_whole || !depends {
            let len = found.attempt(last, msn, out)?.ok_or(Failure::Crc(format))?;
            return Ok(Meant { ahead: as_read, proved: is_whole, len });
        }
        if self.misses_ip_id(now, found) {
            return Err(Failure::Ambiguous(format));
        }
        self.find_in_doubt(now, found, last, (as_read, turn), out)
    }

    #[cold]
    fn find_in_doubt(
        &self,
        now: Moment,
        found: &mut Packet<'_>,
        last: &State,
        (as_read, turn): (i32, u32),
        out: &mut [u8],
    ) -> Result<Meant, Failure> {
        let format = found.format;
        let proves = self.sums
            && found.next.has_rtp()
            && found.next.headers.upper(Kind::Udp).is_none_or(|_| found.next.checksum_used);
        let found_own = found.next.has_own_msn();
        let mut attempt = |ahead: i32| -> Result<Option<usize>, Failure> {
            let len = found.attempt(last, last.msn.wrapping_add_signed(ahead), out)?;
            Ok(len.filter(|len| {
                !proves || found.next.has_right_sum(out.get(..*len).unwrap_or_default(), found.payload)
            }))
        };
        // A number of the sender that has gone back goes on from there.
        let behind = self.behind.map_or(0, |next| next.wrapping_sub(last.msn).cast_signed());
        let goes_on = behind != 0 && (behind - as_read).cast_unsigned().is_multiple_of(turn);
        if goes_on && let Some(len) = attempt(behind)? {
            return Ok(Meant { ahead: behind, proved: proves, len });
        }
        let clock = self.arrivals.passed(now);
        let first = if as_read > 0 { as_read } else { as_read + turn.cast_signed() };
        let late = first - turn.cast_signed();
        let most = match clock {
            PassedPackets::AtMost(most) | PassedPackets::Perhaps(most) => most,
            PassedPackets::About { packets, off } => packets.saturating_add(off),
        };
        // Where many are late, or this one would be a duplicate, it may as well have overtaken others, whatever the clock tells.
        let holes = (!self.seen & ((1 << latest(last)) - 1)).count_ones();
        let is_twice =
            late <= 0 && self.seen.checked_shr(late.unsigned_abs()).is_some_and(|seen| seen & 1 == 1);
        let most = if holes >= HOLES || is_twice { most.max(latest(last).cast_unsigned() + 1) } else { most };
        // Where nothing tells that the bits of the MSN have come round, they have not.
        let most = if self.arrivals.is_next(now, turn) { most.min(first.cast_unsigned()) } else { most };
        let is_counted =
            matches!(clock, PassedPackets::AtMost(most) if (1..=most).contains(&first.cast_unsigned()));
        // A packet that is counted is not late; nor is one late by more than packets ever are, but a number of the sender may go back.
        let goes_back = as_read < -latest(last) && found_own;
        let may_be_late = late >= -latest(last) && !(1..=turn.cast_signed() / 2).contains(&as_read);
        let is_late = (may_be_late && !is_counted || goes_back) && attempt(late)?.is_some();
        let candidates = Candidates::new(first.cast_unsigned(), turn, clock, proves);
        let mut fits = Fits::default();
        // Behind a context that is damaged the MSN may have taken any step.
        let is_open = |ahead: u32| ahead <= most || as_read > 0 && ahead == first.cast_unsigned();
        for ahead in candidates.distances().filter(|ahead| is_open(*ahead)) {
            let Ok(distance) = i32::try_from(ahead) else { continue };
            if attempt(distance)?.is_some() {
                fits.add(ahead, &candidates);
            }
        }
        let is_usual = (1..=REPEATED).contains(&first) && self.arrivals.has_paused_as_usual(now);
        let (ahead, proved) = match (is_late, fits.proof(&candidates, is_usual)) {
            (true, Proof::Nothing) => (late, true),
            (true, Proof::Meant(ahead, _)) if self.arrivals.has_held_back(now) => {
                (ahead.cast_signed(), false)
            }
            (true, _) => return Err(Failure::Ambiguous(format)),
            (false, Proof::Nothing) => return Err(Failure::Crc(format)),
            (false, Proof::Meant(ahead, proved)) => (ahead.cast_signed(), proved),
            (false, Proof::Ambiguous) => return Err(Failure::Ambiguous(format)),
        };
        let len = attempt(ahead)?.ok_or(Failure::Crc(format))?;
        Ok(Meant { ahead, proved: proved && proves, len })
    }

    /// True if the packet depends on an IP-ID that may have moved in a gap, as far as the carrier counts: no checksum covers it, and a
    /// CRC lets a wrong one through.
    fn misses_ip_id(&self, now: Moment, found: &Packet<'_>) -> bool {
        let may_have_moved = |most: u32| u32::from(self.calm) < most.saturating_mul(MEMORY);
        self.calm < u8::MAX
            && found.next.is_sequential()
            && !found.x.has_whole_id
            && matches!(self.arrivals.passed(now), PassedPackets::AtMost(most) if most > REPEATED as u32 && may_have_moved(most))
    }
}
