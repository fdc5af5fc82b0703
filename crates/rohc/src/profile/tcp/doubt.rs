//! Which packet it is: the next one, one behind a gap, or one that is late. RFC 6846, section 5.3; RFC 4224.
//!
//! The MSN has 4 bits in compressed packets, and 16 packets later it is the same again. Behind a long gap, or where packets
//! are late, these bits alone do not tell which packet it is. Three kinds of fields are guarded by different things:
//!
//! - The TCP checksum covers the TCP header, its options and the addresses.
//! - TTL, DSCP and DF are covered by the CRC alone. A compressor here repeats a change of them for longer than losses last
//!   (`compress::SURE`), so they are known, unless the packet is older than the change.
//! - An IP-ID that counts is told by the MSN, and is wrong if that is. Behind a gap such a context takes no CRC of 3 bits:
//!   it waits for 7 bits (Static Context state), and there it tries which turn of the MSN it is.
//!
//! A gap of 16 to 19 packets, or 32 to 35, looks like one of up to 3; nothing but the CRC tells that the IP-ID is another.

use super::checksum::{is_right, is_to_come};
use super::decompress::{Context, Packet, deliver, unbuildable};
use super::formats::has_crc7;
use super::segment::{headers_of, rebuild};
use super::state::{EXTENSIONS, State, TcpRoom};
use crate::packet::Header;
use crate::profile::Format;
use crate::profile::rfc3095::decompress::{Failure, Verified};
use crate::state::DecompressorState;

/// MSNs that 4 bits tell apart.
pub(super) const TURN: i16 = 16;

/// From here on a packet that seems to be so much ahead may as well be one that is late; a compressor repeats changes for
/// less than that.
pub(super) const FAR: i16 = 5;

/// Turns of the MSN that a gap may have: up to 123 packets.
const TURNS: i16 = 7;

/// Packets that must be right behind a packet for which a turn was guessed.
const TRIAL: u8 = 2;

/// Octets that the headers of a packet can have.
const MAX_HEADERS: usize = 2 * 40 + EXTENSIONS + 60;

impl Context {
    /// Whether the IP-ID of a packet hangs on an MSN that may be another.
    #[inline]
    pub(super) fn is_doubtful(&self, found: &Packet<'_>, ahead: i16) -> bool {
        let is_behind_stray = self.stray.is_some_and(|stray| follows(stray, found));
        found.next.inner().behavior.is_sequential()
            && (!(1..FAR).contains(&ahead) || self.state == DecompressorState::Sc || is_behind_stray)
    }

    /// A packet of which [`is_doubtful`](Self::is_doubtful) says so.
    #[cold]
    pub(super) fn compressed_in_doubt(
        &mut self,
        packet: &Header<'_>,
        found: &mut Packet<'_>,
        room: &mut TcpRoom,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let (last, format) = (&room.0, found.format);
        let mut len = rebuild(&found.next, found.payload.len(), out).map_err(unbuildable)?;
        // An IP-ID is none of its business.
        let right = is_right(found, out, len);
        if self.expects_right && !right && !is_to_come(found, len) {
            return Err(Failure::Crc(format));
        }
        let ahead = if has_crc7(format) {
            let ahead = self.find_turn(found, last, out)?;
            len = rebuild(&found.next, found.payload.len(), out).map_err(unbuildable)?;
            ahead
        } else {
            let ahead = found.next.msn.wrapping_sub(last.msn) as i16;
            self.judge(found, last, ahead, found.passes(out, len))?;
            ahead
        };
        if ahead <= 0 {
            self.accept_late(found, last, -ahead, right)?;
        } else {
            self.take(found, room, ahead, right)?;
            if ahead > TURN {
                self.trial = TRIAL;
                return Err(Failure::OnTrial(format));
            }
        }
        deliver(packet, found, len, out)
    }

    /// A packet with 3 bits of CRC: is it late, or is the context in doubt from now on?
    fn judge(&mut self, found: &Packet<'_>, last: &State, ahead: i16, passes: bool) -> Result<(), Failure> {
        let goes_on = goes_on(&found.next, last, self.highest);
        let is_behind_stray = self.stray.is_some_and(|stray| follows(stray, found));
        self.stray = None;
        if ahead <= 0 && !goes_on {
            return if passes { Ok(()) } else { Err(Failure::Crc(found.format)) };
        }
        if ahead >= FAR && !goes_on && (!passes || may_be_late(found)?) {
            return Err(Failure::Ambiguous(found.format));
        }
        if passes || is_behind_stray {
            // Packets are missing of which one may have said more than this one.
            self.state.on_dynamic_damage();
            return Err(Failure::NotAllowed(found.format));
        }
        // The gap may be damage of the MSN; the next packet tells.
        self.stray = Some(found.next.msn as u8 & 0xF);
        Err(Failure::Crc(found.format))
    }

    /// A packet with 7 bits of CRC: turns it to the one turn of the MSN that fits, and says how much ahead that is.
    fn find_turn(&mut self, found: &mut Packet<'_>, last: &State, out: &mut [u8]) -> Result<i16, Failure> {
        let format = found.format;
        let ahead = found.next.msn.wrapping_sub(last.msn) as i16;
        let goes_on = goes_on(&found.next, last, self.highest);
        let next = i16::from(ahead <= 0);
        let turns = match (found.has_whole_ip_id, goes_on) {
            // An IP-ID that stands there as a whole does not tell the turn.
            (true, true) => next..=next,
            (false, true) => next..=TURNS,
            (_, false) => next - 1..=next - 1,
        };
        let mut fitting = None;
        for turn in turns {
            let turned = found.turned(turn);
            let len = rebuild(&turned.next, turned.payload.len(), out).map_err(unbuildable)?;
            if turned.passes(out, len) {
                if fitting.is_some() {
                    return Err(Failure::Ambiguous(format));
                }
                fitting = Some(turn);
            }
        }
        match fitting {
            Some(turn) => {
                *found = found.turned(turn);
                Ok(ahead + turn * TURN)
            }
            None if goes_on => {
                self.state.on_dynamic_damage();
                Err(Failure::Crc(format))
            }
            None => Err(Failure::Ambiguous(format)),
        }
    }

    /// How much ahead a packet is that seems to be far ahead, late, or a duplicate, where the IP-ID does not depend on that.
    #[cold]
    pub(super) fn place(&self, found: &Packet<'_>, last: &State, ahead: i16, right: bool) -> i16 {
        // What the TCP checksum does not cover has not changed for long, so it is the same in all of these packets.
        let is_still = last.msn.wrapping_sub(self.moved) as i16 >= TURN;
        let is_known = right && self.expects_right && is_still || has_crc7(found.format);
        if ahead <= 0 || goes_on(&found.next, last, last.seq) && is_known { ahead } else { ahead - TURN }
    }

    /// Whether the packet that is so much behind the newest one has not come yet.
    fn is_missing(&self, behind: i16) -> bool {
        let bit = u32::try_from(behind - 1).ok().and_then(|at| 1_u16.checked_shl(at));
        bit.is_some_and(|bit| self.came & bit == 0)
    }

    /// A packet that is late, or a duplicate. RFC 6846, section 5.3.1.1: it need not update the context. What it does not
    /// say may have changed since, so it must be proved to be right.
    #[cold]
    pub(super) fn accept_late(
        &mut self,
        found: &Packet<'_>,
        last: &State,
        behind: i16,
        right: bool,
    ) -> Result<(), Failure> {
        let msn = last.msn.wrapping_sub(behind as u16);
        let is_unmoved = msn.wrapping_sub(self.moved) as i16 >= 0;
        let is_proved = has_crc7(found.format) || right && self.expects_right && is_old(&found.next, last);
        if !(self.is_missing(behind) && is_unmoved && is_proved) {
            return Err(Failure::Ambiguous(found.format));
        }
        self.came |= 1 << (behind - 1);
        (self.ack_due, self.calm) = (false, 0);
        Ok(())
    }
}

impl Packet<'_> {
    /// The same packet, so many turns of the MSN later.
    fn turned(&self, turn: i16) -> Self {
        let mut turned = *self;
        let by = (turn * TURN) as u16;
        turned.next.msn = turned.next.msn.wrapping_add(by);
        if !self.has_whole_ip_id {
            let ip = turned.next.inner_mut();
            ip.id = ip.behavior.nbo(ip.behavior.nbo(ip.id).wrapping_add(by));
        }
        turned
    }
}

/// Whether the MSN of a packet is the one behind 4 bits of another.
fn follows(stray: u8, found: &Packet<'_>) -> bool {
    (stray + 1) & 0xF == found.next.msn as u8 & 0xF
}

/// Whether a packet has a number that is beyond that of the last one, or beyond a sequence number.
fn goes_on(next: &State, last: &State, seq: u32) -> bool {
    let goes_on = |new: u32, old: u32| (new.wrapping_sub(old) as i32) > 0;
    let mut stamps = next.options.timestamps.iter().zip(last.options.timestamps);
    goes_on(next.seq, seq) || goes_on(next.ack, last.ack) || stamps.any(|(new, old)| goes_on(*new, old))
}

/// Whether a packet that seems to be far ahead has a right CRC as one that is late, too: with an IP-ID that is a turn of the
/// MSN earlier, and perhaps one of the bits of its offset.
fn may_be_late(found: &Packet<'_>) -> Result<bool, Failure> {
    let bits = match found.format {
        Format::Seq4 => 3,
        Format::Seq7 => 5,
        Format::Seq2 | Format::Seq6 => 7,
        _ => 4,
    };
    for offset in [0, 1 << bits] {
        let mut late = found.turned(-1);
        let ip = late.next.inner_mut();
        ip.id = ip.behavior.nbo(ip.behavior.nbo(ip.id).wrapping_sub(offset));
        let mut headers = [0; MAX_HEADERS];
        let len = headers_of(&late.next, late.payload.len(), &mut headers).map_err(unbuildable)?;
        if late.passes(&headers, len) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a late packet says of what its TCP checksum does not cover nothing that is newer than the context.
fn is_old(next: &State, last: &State) -> bool {
    let (ip, kept) = (next.inner(), last.inner());
    let is_behind = next.ip_id_offset().wrapping_sub(last.ip_id_offset()) as i16 <= 0;
    (ip.ttl, ip.behavior, ip.df) == (kept.ttl, kept.behavior, kept.df)
        && (!ip.behavior.is_sequential() || is_behind)
}
