//! Decompression of IR, IR-DYN and IR-CR packets, which set up a context, or replace what it holds. RFC 6846, sections 7.1 and 7.2;
//! RFC 4164.

use thinair_wire::coder::Reader;
use thinair_wire::crc::Check;

use super::checksum::is_right;
use super::decompress::{ReadPacket, SHORT, TcpReceiverContext, has_options, is_unmoved, unreadable};
use super::growth::Mark;
use super::header::Replicate;
use super::replicate::{IrCrHead, ir_cr, replicate_chain};
use super::state::{IpState, MAX_IP, SYN, TcpRoom, TcpState};
use super::{TcpFields, ir, ir_dyn};
use crate::decompressor::{Failure, IncomingPacket, Verified, verify_crc8};
use crate::flow::arrival::{Arrivals, Moment};
use crate::flow::pace::steps;
use crate::id::Format;
use crate::state::DecompressorState;
use crate::storage::Slots;

/// Largest number of packets by which an IR or IR-DYN packet may be late. A compressor that restarts seldom hits these MSNs.
const LATE: u16 = 32;

impl TcpReceiverContext {
    /// Decompresses an IR packet. `self` is the context of the CID if it is of this profile, or a new one.
    pub(super) fn ir(
        &mut self,
        packet: &IncomingPacket<'_, '_, '_>,
        room: &mut TcpRoom,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let mut reader = Reader::new(packet.header.first, packet.header.rest);
        let is_known = self.health.state != DecompressorState::Nc;
        let mut next = if is_known { room.0 } else { TcpState::EMPTY };
        next.ips = [IpState::EMPTY; MAX_IP];
        next.extensions.fill(0);
        let mut sent = TcpFields::read(&next).options;
        let mut has_stride = false;
        ir(&mut reader, &mut next, &mut sent, &mut has_stride).map_err(unreadable)?;
        let is_kept = is_known && next.is_flow_of(&room.0);
        if !has_stride && !is_kept {
            next.ack_stride = 0;
        }
        let found = ReadPacket::whole(next, Format::Ir, reader.remaining());
        self.initialize(packet, &reader, found, sent.present, room, out)
    }

    /// Decompresses an IR-DYN packet.
    pub(super) fn ir_dyn(
        &mut self,
        packet: &IncomingPacket<'_, '_, '_>,
        room: &mut TcpRoom,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        if self.health.state == DecompressorState::Nc {
            return Err(Failure::NotAllowed(Format::IrDyn));
        }
        let mut reader = Reader::new(packet.header.first, packet.header.rest);
        let mut next = room.0;
        let mut sent = TcpFields::read(&next).options;
        ir_dyn(&mut reader, &mut next, &mut sent, &mut false).map_err(unreadable)?;
        let found = ReadPacket::whole(next, Format::IrDyn, reader.remaining());
        self.initialize(packet, &reader, found, sent.present, room, out)
    }

    /// Decompresses an IR or IR-DYN packet that was read, with a list of options of which those that are `present` are in the packet.
    fn initialize(
        &mut self,
        packet: &IncomingPacket<'_, '_, '_>,
        reader: &Reader<'_>,
        mut found: ReadPacket<'_>,
        present: u16,
        room: &mut TcpRoom,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        // RFC 6846, section 6.3.5: "all X-bits in the XI list MUST be set".
        if present.count_ones() != u32::from(found.next.options.count) || !is_sound(&found.next) {
            return Err(Failure::Malformed);
        }
        verify_crc8(packet.header, reader, found.format)?;
        let len = found.rebuild(out)?;
        if self.is_late(&found.next, room) {
            self.ack_due = false;
            return found.deliver(packet.header, len, out);
        }
        let right = is_right(&found, out, len);
        // No CRC of an IR-DYN packet covers the fields of the context.
        if found.format == Format::IrDyn && self.expects_right && !right && !found.next.goes_on(&room.0) {
            return Err(Failure::Crc(found.format));
        }
        self.expects_right = right;
        self.begin(packet.at, &found.next, room);
        found.deliver(packet.header, len, out)
    }

    /// True if an IR, IR-DYN or IR-CR packet is late: the context is newer.
    fn is_late(&self, next: &TcpState, room: &TcpRoom) -> bool {
        let behind = self.msn.wrapping_sub(next.msn);
        self.health.state == DecompressorState::Fc && behind <= LATE && next.is_flow_of(&room.0)
    }

    /// Decompresses an IR-CR packet with the base context that it names.
    pub(super) fn ir_cr(
        &mut self,
        packet: &IncomingPacket<'_, '_, '_>,
        base: Option<&Self>,
        rooms: &mut Slots<'_, TcpRoom>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let cid = packet.header.cid;
        if cid.index() >= rooms.len() {
            return Err(Failure::TooLarge);
        }
        let mut reader = Reader::new(packet.header.first, packet.header.rest);
        let mut head = IrCrHead { crc7: 0, base: None };
        ir_cr(&mut reader, packet.config.channel.cids(), &mut head).map_err(unreadable)?;
        // RFC 4164, section 3.4: without its base the packet cannot be decompressed.
        base.ok_or(Failure::NoBase)?;
        let base = *rooms.get(head.base.unwrap_or(cid).index()).ok_or(Failure::NoBase)?;
        let room = rooms.get_mut(cid.index()).ok_or(Failure::TooLarge)?;
        let mut next = base.0;
        let mut sent = TcpFields::read(&next).options;
        let mut parts = Replicate::default();
        replicate_chain(&mut reader, &mut next, &mut parts, &mut [false; MAX_IP], &mut sent)
            .map_err(unreadable)?;
        verify_crc8(packet.header, &reader, Format::IrCr)?;
        if !is_sound(&next) {
            return Err(Failure::Malformed);
        }
        if parts.list && !has_options(&next, sent.present) {
            return Err(Failure::UnknownItem(Format::IrCr));
        }
        let mut found = ReadPacket::whole(next, Format::IrCr, reader.remaining());
        let len = found.rebuild(out)?;
        if Check::Crc7.of(out.get(..len).unwrap_or_default()) != head.crc7 {
            return Err(Failure::Crc(Format::IrCr));
        }
        if self.is_late(&found.next, room) {
            self.ack_due = false;
            return found.deliver(packet.header, len, out);
        }
        self.expects_right = is_right(&found, out, len);
        self.begin(packet.at, &found.next, room);
        if found.next.rsf == SYN && !parts.list {
            // Its base is also that of a SYN, and the better base for later ones. TCP itself shows the compressor that the SYN
            // has arrived.
            (self.ack_due, self.unanswered) = (false, SHORT);
        }
        found.deliver(packet.header, len, out)
    }

    /// Starts the context with all fields of this packet.
    fn begin(&mut self, now: Moment, next: &TcpState, room: &mut TcpRoom) {
        self.is_stale = false;
        let is_new = self.health.state == DecompressorState::Nc || !next.is_flow_of(&room.0);
        let ahead = i32::from(next.msn.wrapping_sub(self.msn).cast_signed());
        if !is_new {
            self.note_gap(now, next, &room.0, ahead);
        }
        self.arrivals = if is_new { Arrivals::NEW } else { self.arrivals.behind(now, ahead) };
        self.arrivals.note(now, steps(ahead));
        if is_new {
            self.marks = [Mark::of(next); 2];
        }
        if is_new || !is_unmoved(next, &room.0) {
            self.moved = next.msn;
        }
        self.highest = next.seq;
        self.accept(next, room);
        (self.ack_due, self.unanswered) = (true, 0);
    }
}

/// True if a compressor may send such headers: "a compressor MUST NOT assign [a sequential behavior] to tunneling headers" (RFC
/// 6846, section 6.1.2).
fn is_sound(state: &TcpState) -> bool {
    let outer = state.ips().split_last().map_or(&[][..], |(_, outer)| outer);
    outer.iter().all(|ip| ip.is_v6() || !ip.behavior.is_sequential())
}
