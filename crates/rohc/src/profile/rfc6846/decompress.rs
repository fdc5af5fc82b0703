//! Decompression of the packets of one flow. RFC 6846, section 5.3.
//!
//! One wrong header in eight passes a CRC of 3 bits, so the TCP checksum is verified, too: `checksum`. Fields that it does not
//! cover, and packets after gaps: `doubt`.

use thinair_wire::coder::{Reader, Refusal, Traced, Tracer};
use thinair_wire::crc::Check;

use super::checksum::{CALM, is_right};
use super::formats::{base, formats, has_crc7};
use super::growth::{Mark, NUMBERS};
use super::options::index;
use super::replicate::{IrCrHead, ir_cr};
use super::segment::rebuild;
use super::state::{IpState, MAX_IP, TcpRoom, TcpState};
use super::{TcpFields, ir, ir_dyn, irregular};
use crate::cid::CidSpace;
use crate::decompressor::{Failure, Verified};
use crate::flow::arrival::{Arrivals, Moment};
use crate::flow::health::Health;
use crate::id::Format;
use crate::packet::PacketHeader;
use crate::state::DecompressorState;
use crate::work;

/// Context of one flow at the decompressor, apart from its [`TcpRoom`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpReceiverContext {
    pub(crate) health: Health,
    /// The last packet with 7 bits of CRC or more had a correct TCP checksum, and later ones must have one.
    pub(super) expects_right: bool,
    /// MSN of the last change of a field that the TCP checksum does not cover.
    pub(super) moved: u16,
    /// The IP-ID counts, and follows from the MSN.
    pub(super) counts: bool,
    /// A packet with proved numbers has failed: a field that the TCP checksum does not cover is wrong.
    pub(super) is_stale: bool,
    /// Number of packets in sequence without a gap or a failure, up to [`CALM`].
    pub(super) calm: u8,
    pub(crate) arrivals: Arrivals,
    /// The highest sequence number so far.
    pub(super) highest: u32,
    /// Two past packets, the older first.
    pub(super) marks: [Mark; 2],
    /// Largest change of the distance of the two timestamps from one packet to the next; it decays slowly.
    pub(super) drift: u16,
    /// The last packet has made a change that the compressor needs an acknowledgment of.
    pub(crate) ack_due: bool,
    /// Number of next packets that are not acknowledged.
    pub(super) unanswered: u8,
    pub(super) msn: u16,
    /// The flow has been silent at least once.
    pub(super) pauses: bool,
}

/// First octet of an IR-CR packet.
pub(super) const IR_CR: u8 = 0xFC;

/// Number of packets after an unacknowledged SYN that are not acknowledged: short connections have no more of them in one
/// direction.
pub(super) const SHORT: u8 = 2;

/// A packet that was read, and is not verified yet.
#[derive(Clone, Copy)]
pub(super) struct ReadPacket<'p> {
    pub(super) next: TcpState,
    pub(super) format: Format,
    pub(super) payload: &'p [u8],
    /// `header_crc`.
    pub(super) crc: u8,
    /// The packet has the full IP-ID.
    pub(super) has_whole_ip_id: bool,
    /// Turns of the numbers: difference between two values with equal bits; 0 if a number is determined.
    pub(super) turns: [u32; NUMBERS],
    /// Number of bits read of sequence and acknowledgment number, each unscaled and scaled, and of the timestamps.
    pub(super) number_bits: [u8; 6],
    /// Number of bits read of the offset of the IP-ID.
    pub(super) offset_bits: u8,
}

impl<'p> ReadPacket<'p> {
    /// A packet of a format that has all fields, as they are.
    #[inline(always)]
    pub(super) fn whole(next: TcpState, format: Format, payload: &'p [u8]) -> Self {
        Self {
            next,
            format,
            payload,
            crc: 0,
            has_whole_ip_id: true,
            turns: [0; NUMBERS],
            number_bits: [0; 6],
            offset_bits: 0,
        }
    }

    /// Writes the headers of a packet with all fields, and returns their octets.
    pub(super) fn rebuild(&mut self, out: &mut [u8]) -> Result<usize, Failure> {
        self.next.scale(self.payload.len());
        Ok(rebuild(&self.next, self.payload.len(), out)?)
    }

    /// Copies the payload behind the `len` octets of rebuilt headers.
    #[inline]
    pub(super) fn deliver(
        &self,
        packet: &PacketHeader<'_>,
        len: usize,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        Verified::deliver(packet, self.format, len, self.payload, out)
    }

    /// True if the rebuilt headers have the CRC of the packet.
    #[inline]
    pub(super) fn passes(&self, out: &[u8], len: usize) -> bool {
        let check = if has_crc7(self.format) { Check::Crc7 } else { Check::Crc3 };
        work::note(if has_crc7(self.format) { len } else { len / 8 });
        check.of(out.get(..len).unwrap_or_default()) == self.crc
    }
}

impl TcpReceiverContext {
    pub(crate) const fn new() -> Self {
        Self {
            health: Health::NEW,
            expects_right: false,
            moved: 0,
            counts: false,
            is_stale: false,
            calm: CALM,
            arrivals: Arrivals::NEW,
            highest: 0,
            marks: [Mark::NEW; 2],
            drift: 0,
            ack_due: false,
            unanswered: 0,
            msn: 0,
            pauses: false,
        }
    }

    /// Decompresses a packet of an established context.
    #[inline(always)]
    pub(super) fn compressed(
        &mut self,
        now: Moment,
        packet: &PacketHeader<'_>,
        room: &mut TcpRoom,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let last = self.msn;
        let verified = self.verified(now, packet, room, out)?;
        self.arrivals.note(now, u32::from(self.msn.wrapping_sub(last).max(1)));
        Ok(verified)
    }

    #[inline(always)]
    fn verified(
        &mut self,
        now: Moment,
        packet: &PacketHeader<'_>,
        room: &mut TcpRoom,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        if self.health.state == DecompressorState::Nc {
            return Err(Failure::NotAllowed(Format::CoCommon));
        }
        let last = &room.0;
        // The state is copied once here, and back once it is verified.
        let mut found = ReadPacket::whole(*last, Format::CoCommon, &[]);
        self.read(packet, last, &mut found)?;
        let ahead = found.next.msn.wrapping_sub(last.msn) as i16;
        if !self.is_awaited(now, &found, ahead) {
            return self.compressed_in_doubt(now, packet, &mut found, room, out);
        }
        let mut len = rebuild(&found.next, found.payload.len(), out)?;
        let mut passes = found.passes(out, len);
        // By the notation, `ack_flag` is 1 where it is not sent; other compressors use the last one.
        if !passes && has_crc7(found.format) && found.format != Format::CoCommon && !last.ack_flag {
            found.next.ack_flag = false;
            len = rebuild(&found.next, found.payload.len(), out)?;
            passes = found.passes(out, len);
            found.next.ack_flag |= !passes;
        }
        let right = is_right(&found, out, len);
        if !(passes && (right || !self.expects_right)) {
            return self.compressed_in_doubt(now, packet, &mut found, room, out);
        }
        self.take(&found, room, ahead, right);
        found.deliver(packet, len, out)
    }

    /// Accepts a packet as the newest one, `ahead` of the last.
    #[inline(always)]
    pub(super) fn take(&mut self, found: &ReadPacket<'_>, room: &mut TcpRoom, ahead: i16, right: bool) {
        let is_strong = has_crc7(found.format);
        self.calm = if ahead == 1 { self.calm.saturating_add(1) } else { 0 };
        if is_strong {
            self.expects_right = right;
            self.is_stale = false;
        }
        let last = &room.0;
        if !is_unmoved(&found.next, last) {
            self.moved = found.next.msn;
        }
        let apart = |state: &TcpState| state.options.timestamps[0].wrapping_sub(state.options.timestamps[1]);
        let drift = apart(&found.next).wrapping_sub(apart(last)).cast_signed().unsigned_abs();
        self.drift = (self.drift - self.drift / 16).max(drift.min(0xFFFF) as u16);
        if self.marks[1].is_old(&found.next) {
            self.pauses |= self.arrivals.has_paused();
            self.marks = [self.marks[1], Mark::of(&found.next)];
        }
        self.ack_due = (is_strong || self.health.state == DecompressorState::Sc) && self.unanswered == 0;
        self.unanswered = self.unanswered.saturating_sub(1);
        self.accept(&found.next, room);
    }

    /// Reads a compressed packet into `found`, whose state is initially the last one.
    #[inline]
    fn read<'p>(
        &self,
        packet: &PacketHeader<'p>,
        last: &TcpState,
        found: &mut ReadPacket<'p>,
    ) -> Result<(), Failure> {
        let next = &mut found.next;
        let mut x = TcpFields::read(last);
        next.set_implied_flags();
        let (format, mut reader) = read_base(packet, next, &mut x)?;
        apply(&x, format, last, next)?;
        // Without a list the options are those of the last packet, all of which are in the table.
        if x.full.list && !has_options(next, x.options.present) {
            return Err(Failure::UnknownItem(format));
        }
        irregular(&mut reader, next, &mut x).map_err(unreadable)?;
        let payload = reader.remaining();
        if matches!(format, Format::Rnd2 | Format::Rnd6 | Format::Seq2 | Format::Seq6) {
            if payload.is_empty() || !last.has_scaled {
                return Err(Failure::Malformed);
            }
            let scaled = x.seq_scaled.value.wrapping_mul(payload.len() as u32);
            next.seq = scaled.wrapping_add(last.seq_residue);
        }
        next.scale(payload.len());
        (found.format, found.payload, found.has_whole_ip_id) = (format, payload, x.has_whole_ip_id);
        found.crc = if has_crc7(format) { x.crc7 } else { x.crc3 };
        let [value, echo] = &x.options.timestamps;
        let numbers = [&x.seq, &x.seq_scaled, &x.ack, &x.ack_scaled, value, echo];
        found.number_bits = numbers.map(|number| number.bits);
        found.offset_bits = x.ip_id_offset.bits;
        Ok(())
    }

    #[inline]
    pub(super) fn accept(&mut self, next: &TcpState, room: &mut TcpRoom) {
        if (next.seq.wrapping_sub(self.highest) as i32) > 0 {
            self.highest = next.seq;
        }
        self.msn = next.msn;
        self.health.note_repair();
        self.counts = next.inner().behavior.is_sequential();
        room.0 = *next;
        self.health.state.on_success();
    }

    /// Passes the fields of a packet to `on_field`, as far as this context allows, and returns its format.
    pub(crate) fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        room: &TcpRoom,
        space: CidSpace,
        mut on_field: impl FnMut(Traced<'p>),
    ) -> Option<Format> {
        let reader = Reader::new(packet.first, packet.rest);
        let mut next = room.0;
        let mut x = TcpFields::read(&next);
        let mut tracer = Tracer::new(reader, &mut on_field);
        match packet.first {
            0xFD => {
                next.ips = [IpState::EMPTY; MAX_IP];
                let _ = ir(&mut tracer, &mut next, &mut x.options, &mut false);
                return Some(Format::Ir);
            }
            0xF8 => {
                let _ = ir_dyn(&mut tracer, &mut next, &mut x.options, &mut false);
                return Some(Format::IrDyn);
            }
            IR_CR => {
                let _ = ir_cr(&mut tracer, space, &mut IrCrHead { crc7: 0, base: None });
                return Some(Format::IrCr);
            }
            _ => {}
        }
        next.set_implied_flags();
        let (format, _) = read_base(packet, &mut { next }, &mut { x }).ok()?;
        base(format, &mut tracer, &mut next, &mut x).ok()?;
        apply(&x, format, &room.0, &mut next).ok()?;
        let _ = irregular(&mut tracer, &mut next, &mut x);
        Some(format)
    }
}

/// Finds the format of a packet and reads its base header.
#[inline]
fn read_base<'p>(
    packet: &PacketHeader<'p>,
    next: &mut TcpState,
    x: &mut TcpFields,
) -> Result<(Format, Reader<'p>), Failure> {
    for &(format, _) in formats(next) {
        let mut reader = Reader::new(packet.first, packet.rest);
        match base(format, &mut reader, next, x) {
            Ok(()) => return Ok((format, reader)),
            Err(Refusal::NotThis) => {}
            Err(refusal) => return Err(unreadable(refusal)),
        }
    }
    Err(Failure::Malformed)
}

/// Updates the state by the fields of a base header.
#[inline]
fn apply(x: &TcpFields, format: Format, last: &TcpState, next: &mut TcpState) -> Result<(), Failure> {
    next.msn = x.msn.value;
    next.seq = x.seq.value;
    next.ack = x.ack.value;
    if matches!(format, Format::Rnd4 | Format::Seq4) {
        let stride = u32::from(last.ack_stride);
        let residue = last.ack.checked_rem(stride).ok_or(Failure::Malformed)?;
        next.ack = x.ack_scaled.value.wrapping_mul(stride).wrapping_add(residue);
    }
    next.window = x.window.value;
    let msn = next.msn;
    let ip = next.inner_mut();
    ip.header.ttl = x.ttl.value;
    if !x.has_whole_ip_id && ip.behavior.is_sequential() {
        ip.header.id = ip.behavior.counted(x.ip_id_offset.value.wrapping_add(msn));
    }
    Ok(())
}

/// True if the fields that the TCP checksum does not cover are unchanged, except IP-IDs. Extension headers behind the last IP
/// header do not change.
#[inline]
pub(super) fn is_unmoved(next: &TcpState, last: &TcpState) -> bool {
    let fields = |ip: &IpState| (ip.header.tos, ip.header.ttl, ip.header.df, ip.behavior);
    next.ips().iter().zip(last.ips()).all(|(ip, kept)| fields(ip) == fields(kept))
}

/// True if the options of a list that were not `present` in it are in the table.
pub(super) fn has_options(state: &TcpState, present: u16) -> bool {
    state.options.structure().iter().enumerate().all(|(k, &index)| {
        let has_content = !matches!(index, index::NOP | index::SACK_PERMITTED);
        !has_content || present >> k & 1 == 1 || state.options.has_item(index)
    })
}

/// Returns the failure for octets that could not be read, or not be stored.
pub(super) fn unreadable(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::DoesNotFit => Failure::TooLarge,
        Refusal::NotThis | Refusal::Malformed => Failure::Malformed,
    }
}
