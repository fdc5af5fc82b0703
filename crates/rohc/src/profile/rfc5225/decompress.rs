//! Decompressing the packets of one flow. RFC 5225, sections 5.2.2, 5.2.3 and 6.3.

use thinair_wire::coder::{Reader, Refusal, Traced, Tracer};
use thinair_wire::crc::Check;

use super::chains::irregular_chain;
use super::doubt::Interpretation;
use super::encodings::{Counter, ReorderRatio};
use super::formats::{Fields, base, co_repair, formats, has_control_crc, ir, is_strong, resolve};
use super::headers::{Headers, Kind};
use super::late::PacketOrder;
use super::state::State;
use crate::decompressor::{Failure, Verified, verify_crc8};
use crate::field::movement::Movement;
use crate::flow::arrival::{Arrivals, Moment};
use crate::flow::health::Health;
use crate::flow::pace::steps;
use crate::id::{Format, ProfileId};
use crate::packet::PacketHeader;
use crate::state::DecompressorState;
use crate::work;

/// First octets of `IR`, `co_repair` and `co_common`.
const IR: u8 = 0xFD;
const CO_REPAIR: u8 = 0xFB;

/// The context of one flow at the decompressor, beside its [`V2Room`](super::V2Room).
#[derive(Clone, Copy, Debug)]
pub(crate) struct V2ReceiverContext {
    pub(super) profile: ProfileId,
    pub(super) health: Health,
    pub(super) arrivals: Arrivals,
    /// The last packet has made a change that the compressor needs an acknowledgment of.
    pub(super) ack_due: bool,
    /// The UDP checksum of the last packet with a CRC of 7 bits or more was right.
    pub(super) sums: bool,
    pub(super) movement: Movement,
    /// The compressor sends `time_stride`.
    pub(super) is_timed: bool,
    pub(super) msn: u32,
    /// The 16 MSNs up to the newest one that have been received, a bit each: its own is the lowest.
    pub(super) seen: u16,
    /// The MSN after that of the last packet, if that was late, or the numbers of the sender have jumped back.
    pub(super) behind: Option<u32>,
    pub(super) late: LateAck,
    /// Late packets that were acknowledged since the reorder ratio has changed.
    pub(super) late_acks: u8,
    /// The MSN since which no field has changed that no checksum covers.
    pub(super) moved: u32,
    /// The RTP timestamp of MSN 0 before the timestamp has jumped, and before earlier jumps.
    pub(super) lines_before: [u32; LINES],
    /// The timestamp has jumped, as after silence.
    pub(super) has_jumped: bool,
    /// It has jumped by another number than a multiple of its stride.
    pub(super) has_uneven_jumps: bool,
    /// Octets of the irregular chain of the predicted packet.
    pub(super) irregular: u8,
}

/// A packet as late as the reorder ratio allows. It is acknowledged after the newest one: two acknowledgments in the order of arrival
/// show the compressor by how much it was late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LateAck {
    None,
    /// The newest packet is acknowledged, this MSN with the next packet.
    Noted(u32),
    /// This MSN is acknowledged now.
    Due(u32),
}

/// Jumps of the timestamp over which a packet may be late.
const LINES: usize = 4;

/// Late packets that are acknowledged while the reorder ratio is unchanged: the compressor may ignore them.
const LATE_ACKS: u8 = 4;

/// A packet that was read, not verified.
#[derive(Clone, Copy)]
pub(super) struct Packet<'p> {
    pub(super) next: State,
    pub(super) x: Fields,
    pub(super) format: Format,
    pub(super) payload: &'p [u8],
}

/// Headers that were written with one candidate: others differ in fields that follow from the MSN.
#[derive(Clone, Copy)]
pub(super) struct Written {
    len: usize,
    /// Octets in front that do not depend on the MSN, and the state of the CRC behind them.
    same: usize,
    state: u8,
}

impl Written {
    /// Octets of which the CRC of each candidate is computed; with CRC-3, eight take as long as one.
    pub(super) fn compared(self, check: Check) -> usize {
        if check == Check::Crc3 { self.len / 8 } else { self.len - self.same }
    }
}

impl Packet<'_> {
    /// Writes the headers with that MSN behind the last packet, and returns their octets if the CRCs are right.
    pub(super) fn attempt(
        &mut self,
        last: &State,
        msn: u32,
        out: &mut [u8],
    ) -> Result<Option<usize>, Failure> {
        if self.format != Format::CoRepair {
            resolve(&mut self.next, last, &self.x, msn);
        }
        work::note_candidate();
        let len = self.rebuild(out)?;
        let headers = out.get(..len).unwrap_or_default();
        work::note(if is_strong(self.format) { len } else { len / 8 });
        Ok(self.has_right_crcs(self.check().of(headers)).then_some(len))
    }

    /// The CRC over the headers.
    pub(super) fn check(&self) -> Check {
        if is_strong(self.format) { Check::Crc7 } else { Check::Crc3 }
    }

    /// True if that is the CRC over the headers, and the one over the control fields is right.
    fn has_right_crcs(&self, crc: u8) -> bool {
        crc == if is_strong(self.format) { self.x.crc7 } else { self.x.crc3 }
            && (!has_control_crc(self.format) || self.next.control_crc3() == self.x.control_crc3)
    }

    /// Writes the headers, for candidates to follow.
    pub(super) fn write(&mut self, out: &mut [u8]) -> Result<Written, Failure> {
        let len = self.rebuild(out)?;
        let same = self.next.same_octets().min(len);
        let state = self.check().of(out.get(..same).unwrap_or_default());
        Ok(Written { len, same, state })
    }

    /// [`attempt`](Self::attempt) behind [`write`](Self::write), with the MSN [resolved](resolve).
    pub(super) fn attempt_again(&self, written: Written, out: &mut [u8]) -> Option<usize> {
        work::note_candidate();
        let Written { len, same, state } = written;
        work::note(written.compared(self.check()));
        self.next.renumber(out);
        let crc = match self.check() {
            // It takes less time over all octets.
            Check::Crc3 => Check::Crc3.of(out.get(..len).unwrap_or_default()),
            check => check.update(state, out.get(same..len).unwrap_or_default()),
        };
        self.has_right_crcs(crc).then_some(len)
    }

    /// Writes the headers in front of room for the payload.
    pub(super) fn rebuild(&self, out: &mut [u8]) -> Result<usize, Failure> {
        let need = self.next.headers.len() + self.payload.len();
        if out.len() < need {
            return Err(Failure::NoRoom(need));
        }
        work::note(self.next.headers.len() / 8);
        self.next.rebuild(self.payload.len(), out).ok_or(Failure::Malformed)
    }
}

impl V2ReceiverContext {
    pub(super) const fn new(profile: ProfileId) -> Self {
        Self {
            profile,
            health: Health::NEW,
            arrivals: Arrivals::NEW,
            ack_due: false,
            sums: false,
            movement: Movement::NONE,
            is_timed: false,
            msn: 0,
            seen: u16::MAX,
            behind: None,
            late: LateAck::None,
            late_acks: 0,
            moved: 0,
            lines_before: [0; LINES],
            has_jumped: false,
            has_uneven_jumps: false,
            irregular: 0,
        }
    }

    /// An IR packet. `self` is the context of the CID if it is of this profile, or a new one.
    pub(super) fn ir(
        &mut self,
        now: Moment,
        packet: &PacketHeader<'_>,
        room: &mut State,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let is_known = self.health.state != DecompressorState::Nc;
        let mut next = State::new(self.profile);
        if is_known {
            (next.csrcs, next.known, next.msn) = (room.csrcs, room.known, room.msn);
        }
        let mut reader = Reader::new(packet.first, packet.rest);
        ir(&mut reader, &mut next).map_err(unreadable)?;
        verify_crc8(packet, &reader, Format::Ir)?;
        let payload = reader.remaining();
        let found = Packet { next, x: Fields::read(&next), format: Format::Ir, payload };
        let len = found.rebuild(out)?;
        let goes_on = next.headers.is_flow_of(&room.headers);
        let is_same_flow = is_known && goes_on;
        let ahead = next.msn.wrapping_sub(self.msn).cast_signed();
        if is_same_flow && self.is_late(&found, room) {
            self.ack_due = false;
            return Verified::deliver(packet, Format::Ir, len, payload, out);
        }
        if !is_same_flow {
            *self = Self {
                health: self.health.of_other_flow(),
                arrivals: self.arrivals,
                ..Self::new(self.profile)
            };
            self.moved = next.msn;
        }
        self.arrivals = if goes_on { self.arrivals.behind(now, ahead) } else { Arrivals::NEW };
        self.sums = next.has_right_sum(out, payload);
        self.accept(now, &found, room, steps(ahead).cast_signed());
        Verified::deliver(packet, Format::Ir, len, payload, out)
    }

    /// A packet of an established context that is not the [next in line](Self::next_in_line).
    #[inline(never)]
    pub(super) fn compressed(
        &mut self,
        now: Moment,
        packet: &PacketHeader<'_>,
        room: &mut State,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        if self.health.state == DecompressorState::Nc {
            return Err(Failure::NotAllowed(Format::CoCommon));
        }
        let mut found = self.read(now, packet, room)?;
        let (format, payload) = (found.format, found.payload);
        if self.health.state == DecompressorState::Sc && !is_strong(format) {
            return Err(Failure::NotAllowed(format));
        }
        let Interpretation { ahead, proved, len, .. } = self.find(now, &mut found, room, out)?;
        if self.is_late(&found, room) {
            let place = 1_u16.checked_shl(ahead.unsigned_abs()).unwrap_or(0);
            let is_at_limit = self.seen & place == 0 && self.is_at_limit(ahead, room);
            self.seen |= place;
            // Fields that a late packet does not carry may have changed since.
            if !is_strong(format) && self.has_moved_since(found.next.msn) {
                return Err(Failure::Ambiguous(format));
            }
            self.ack_due = is_at_limit;
            // A jump of the timestamp may be in late packets alone.
            let line = found.next.line();
            if proved && found.next.has_rtp() && line != room.line() {
                self.note_line(line);
            }
            if is_at_limit {
                (self.late, self.late_acks) = (LateAck::Noted(found.next.msn), self.late_acks + 1);
            }
            return Verified::deliver(packet, format, len, payload, out);
        }
        if is_strong(format) {
            self.sums = found.next.has_right_sum(out, payload);
        }
        let is_on_trial = !is_strong(format) && !proved && self.health.is_doubtful();
        self.accept(now, &found, room, ahead);
        if is_on_trial {
            // A CRC of 3 bits accepts one in eight of the headers that a damaged context produces.
            self.health.note_success();
            return Err(Failure::OnTrial(format));
        }
        Verified::deliver(packet, format, len, payload, out)
    }

    /// True if a packet was sent before the newest one, or is a duplicate of it.
    fn is_late(&mut self, found: &Packet<'_>, last: &State) -> bool {
        let is_whole = found.x.msn.bits == 0;
        let pair = PacketOrder { next: &found.next, last, format: found.format, is_whole };
        // A missing number is late. A sender whose numbers have jumped back repeats others.
        self.behind = self.behind.filter(|msn| !self.is_missing(msn.wrapping_sub(last.msn).cast_signed()));
        self.health.state == DecompressorState::Fc && pair.is_late(&mut self.behind)
    }

    /// True if the number at a distance is one of the last ones, and has not been received.
    pub(super) fn is_missing(&self, ahead: i32) -> bool {
        ahead < 0 && self.seen.checked_shr(ahead.unsigned_abs()).is_some_and(|seen| seen & 1 == 0)
    }

    /// True if a field that no checksum covers has changed since that MSN.
    pub(super) fn has_moved_since(&self, msn: u32) -> bool {
        msn.wrapping_sub(self.moved).cast_signed() < 0
    }

    /// True if a late packet at that distance from the newest one is as late as the reorder ratio allows, and a higher ratio exists.
    fn is_at_limit(&self, ahead: i32, last: &State) -> bool {
        let ratio = last.reorder_ratio;
        ahead.unsigned_abs() >= ratio.p(4)
            && ratio != ReorderRatio::ThreeQuarters
            && self.late_acks < LATE_ACKS
            && self.late == LateAck::None
    }

    /// Records a line that is not that of the newest packet.
    fn note_line(&mut self, line: u32) {
        let held = self.lines_before.iter().take(LINES - 1).take_while(|held| **held != line).count();
        self.lines_before[..=held].rotate_right(1);
        self.lines_before[0] = line;
    }

    /// Accepts a packet as the newest one.
    fn accept(&mut self, now: Moment, found: &Packet<'_>, room: &mut State, ahead: i32) {
        let next = &found.next;
        let packets = steps(ahead);
        let (mut is_covered, mut intervals) = (true, packets);
        let (line, before) = (next.line(), room.line());
        if next.has_rtp() && line != before {
            self.note_line(before);
            self.has_jumped |= next.ts_stride == room.ts_stride;
            is_covered = next.sum_covers_rtp();
            // Timestamps advance in pauses. Without a checksum that proves them, a pause could as well be a loss.
            let silence = line.wrapping_sub(before);
            let is_jump = self.health.state != DecompressorState::Nc && next.ts_stride == room.ts_stride;
            self.has_uneven_jumps |= is_jump && next.ts_stride > 1 && !silence.is_multiple_of(next.ts_stride);
            if is_covered && next.ts_stride > 1 && silence.is_multiple_of(next.ts_stride) {
                intervals = packets.saturating_add(silence / next.ts_stride);
            }
        }
        if !is_covered || !has_same_fields(&next.headers, &room.headers) {
            self.moved = next.msn;
        }
        if found.format == Format::Ir {
            self.movement.note_calm();
        } else {
            let moved = next.ip_id_offset.wrapping_sub(room.ip_id_offset);
            self.movement.note(moved, ahead.max(0).unsigned_abs());
        }
        let is_repaired = self.health.state == DecompressorState::Sc;
        self.ack_due = found.format == Format::Ir || is_strong(found.format) || is_repaired;
        if let LateAck::Noted(msn) = self.late {
            (self.late, self.ack_due) = (LateAck::Due(msn), true);
        }
        if next.reorder_ratio != room.reorder_ratio {
            self.late_acks = 0;
        }
        self.arrivals.note_intervals(now, packets, intervals);
        // Nothing is known of the numbers before one that has jumped back.
        self.seen =
            if ahead < 0 { u16::MAX } else { self.seen.checked_shl(ahead.unsigned_abs()).unwrap_or(0) | 1 };
        (self.msn, self.is_timed) = (next.msn, next.time_stride != 0);
        self.health.note_repair();
        self.irregular = next.irregular_octets();
        *room = *next;
        self.health.state.on_success();
    }

    /// Reads a compressed packet.
    fn read<'p>(&self, now: Moment, packet: &PacketHeader<'p>, last: &State) -> Result<Packet<'p>, Failure> {
        let (mut next, mut x) = (*last, Fields::read(last));
        let (mut format, mut payload) = self.read_to(now, packet, &mut next, &mut x)?;
        if next.time_stride != last.time_stride && format != Format::CoRepair {
            // It follows the timestamp in the packet, and governs it.
            next = State { time_stride: next.time_stride, ..*last };
            x = Fields::read(last);
            (format, payload) = self.read_to(now, packet, &mut next, &mut x)?;
        }
        Ok(Packet { next, x, format, payload })
    }

    /// Reads a compressed packet to the last one, and fields that are to be read behind it. Returns its format and payload.
    fn read_to<'p>(
        &self,
        now: Moment,
        packet: &PacketHeader<'p>,
        next: &mut State,
        x: &mut Fields,
    ) -> Result<(Format, &'p [u8]), Failure> {
        if let Some(rtp) = next.headers.upper(Kind::Rtp) {
            // The marker is not set where it is not sent.
            let second = next.headers.of(rtp)[1] & 0x7F;
            next.headers.set(rtp, 1, [second]);
        }
        if next.time_stride != 0 {
            // The clock advances the timestamp by whole strides.
            let elapsed = now.now.nanos_since(self.arrivals.last()) / 1_000_000 / u64::from(next.time_stride);
            x.ts_scaled = Counter::read(x.ts_scaled.value.wrapping_add(elapsed as u32));
        }
        if packet.first == CO_REPAIR {
            let mut reader = Reader::new(packet.first, packet.rest);
            co_repair(&mut reader, next, x).map_err(unreadable)?;
            x.msn.value = next.msn;
            return Ok((Format::CoRepair, reader.remaining()));
        }
        let (format, mut reader) = read_base(packet, next, x)?;
        irregular_chain(&mut reader, next, x).map_err(unreadable)?;
        Ok((format, reader.remaining()))
    }

    /// Counts a packet that was right. Returns true if it is acknowledged.
    pub(super) fn note_success(&mut self) -> bool {
        self.health.note_success();
        core::mem::take(&mut self.ack_due)
    }

    /// The MSN of a late packet whose turn it is to be acknowledged.
    pub(super) fn late_to_acknowledge(&mut self) -> Option<u32> {
        let LateAck::Due(msn) = self.late else { return None };
        self.late = LateAck::None;
        Some(msn)
    }

    /// Passes the fields of a packet to `on_field`, as far as this context allows, and returns its format.
    pub(super) fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        room: &State,
        mut tell: impl FnMut(Traced<'p>),
    ) -> Option<Format> {
        let reader = Reader::new(packet.first, packet.rest);
        if packet.first == IR {
            let mut next = State { headers: Headers::EMPTY, ..State::new(self.profile) };
            let _ = ir(&mut Tracer::new(reader, &mut tell), &mut next);
            return Some(Format::Ir);
        }
        if self.health.state == DecompressorState::Nc {
            return None;
        }
        let (mut next, mut x) = (*room, Fields::read(room));
        let mut tracer = Tracer::new(reader, &mut tell);
        if packet.first == CO_REPAIR {
            let _ = co_repair(&mut tracer, &mut next, &mut x);
            return Some(Format::CoRepair);
        }
        let (format, _) = read_base(packet, &mut { next }, &mut { x }).ok()?;
        base(format, &mut tracer, &mut next, &mut x).ok()?;
        let _ = irregular_chain(&mut tracer, &mut next, &mut x);
        Some(format)
    }
}

/// True if two headers of a flow have the same fields, as far as no checksum covers them: TOS, TTL and DF.
fn has_same_fields(a: &Headers, b: &Headers) -> bool {
    let fields = |headers: &Headers, at: usize| {
        let h = headers.items().get(at).map_or(&[][..], |item| headers.of(*item));
        match headers.items().get(at).map(|item| item.kind) {
            Some(Kind::V4) => [h[1], h[8], h[6]],
            Some(Kind::V6) => [h[0], h[1], h[7]],
            _ => [0; 3],
        }
    };
    (0..=a.inner_index()).all(|at| fields(a, at) == fields(b, at))
}

/// Reads the base header of a compressed packet.
fn read_base<'p>(
    packet: &PacketHeader<'p>,
    next: &mut State,
    x: &mut Fields,
) -> Result<(Format, Reader<'p>), Failure> {
    for &format in formats(next) {
        let (mut reader, mut read, mut fields) = (Reader::new(packet.first, packet.rest), *next, *x);
        match base(format, &mut reader, &mut read, &mut fields) {
            Ok(()) => {
                (*next, *x) = (read, fields);
                return Ok((format, reader));
            }
            Err(Refusal::NotThis) => {}
            Err(Refusal::Malformed | Refusal::DoesNotFit) => return Err(Failure::Malformed),
        }
    }
    Err(Failure::Malformed)
}

/// A refusal to read.
fn unreadable(_: Refusal) -> Failure {
    Failure::Malformed
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use thinair_wire::coder::Writer;
    use thinair_wire::time::Instant;

    use super::*;
    use crate::cid::CidSpace;
    use crate::profile::rfc5225::formats::Stamp;
    use crate::profile::rfc5225::headers::MAX_IP;
    use crate::profile::rfc5225::state::Behavior;

    /// RFC 5225, section 6.8.2.4: `time_stride` follows the timestamp that it governs.
    #[test]
    fn a_time_stride_governs_the_packet_that_tells_it() {
        let mut last = State { ts_stride: 160, ..State::new(ProfileId::RtpV2) };
        last.headers.push(Kind::V6, &[0; 40]).unwrap();
        last.headers.end_ips();
        last.headers.push(Kind::Udp, &[0; 8]).unwrap();
        last.headers.push(Kind::Rtp, &[0; 12]).unwrap();
        last.behaviors = [Behavior::Random; MAX_IP];
        let mut next = State { msn: 1, time_stride: 20, ..last };
        let mut x = Fields::read(&last);
        // After 10 s, as the clock expects it: the 500th.
        (x.msn, x.ts_scaled) = (Counter::within(1, (0, 0)), Counter::within(502, (500, 500)));
        (x.indicators.flags2, x.indicators.time_stride, x.stamp) = (true, true, Stamp::Scaled);
        let mut octets = [0; 32];
        let mut writer = Writer::new(&mut octets, 0);
        base(Format::CoCommon, &mut writer, &mut next, &mut x).unwrap();
        let end = writer.finish().unwrap();

        let mut context = V2ReceiverContext::new(ProfileId::RtpV2);
        context.arrivals.note(Instant::ZERO.into(), 1);
        let packet = PacketHeader::read(&octets[..end], CidSpace::Small).unwrap();
        let found = context.read(Instant::from_millis(10_000).into(), &packet, &last).unwrap();
        assert_eq!((found.next.time_stride, found.x.ts_scaled.value), (20, 502));
    }
}
