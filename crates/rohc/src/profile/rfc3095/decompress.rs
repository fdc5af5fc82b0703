//! Decompression of the packets of one context. RFC 3095, sections 5.3.2 and 5.4.2.

use thinair_wire::coder::{Reader, Refusal, Traced, Tracer};
use thinair_wire::crc::Check;
use thinair_wire::header::rtp::VERSION;

use super::attempt::{CandidateSearch, VerifiedHeader};
use super::cce::{Cce, CoverageContext};
use super::compress::CrcStatic;
use super::doubt::{By, Doubt};
use super::header::{ExtensionLists, datagram_len};
use super::ir;
use super::late::{LATE, NewestPacket, seems_late};
use super::list_state::ListState;
use super::list_update::{ListUpdate, list_owners};
use super::mode::DecompressorMode;
use super::proof::Twins;
use super::reliable::NO_MODE;
use super::rtp::RtpFields;
use super::table::{self, ItemTable, Pool};
use super::tail::{Tail, tail};
use super::{
    BASE_IPS, IP_ID, IpFields, LISTS, PacketType, Rfc3095Fields, TS, UdpFields, Upper, base, formats,
    has_rtp, has_t_bit_behind, upper,
};
use crate::decompressor::{Failure, IncomingPacket, Verified};
use crate::field::movement::Movement;
use crate::flow::arrival::{Arrivals, Moment};
use crate::flow::caution::REPEATED;
use crate::flow::health::Health;
use crate::flow::pace::steps;
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::packet::PacketHeader;
use crate::state::DecompressorState;

/// Number of packets that fit into a pause from which on it is unusual.
const PAUSE: u64 = 16;

/// Fields of the headers behind IP and UDP in a context, depending on its profile.
#[derive(Clone, Copy, Debug)]
pub(super) enum UpperFields {
    /// Also for profiles without such fields, which do not use it.
    Rtp(RtpFields),
    /// SPI.
    Esp(u32),
}

/// A packet of type 0, 1 or 2 whose header is verified, and is not late.
struct VerifiedPacket<'a, 'p> {
    format: Format,
    check: Check,
    /// Numbers of bits of the IP-ID and of TS.
    bits: (u32, u32),
    x: &'a Rfc3095Fields<'p>,
    passed: &'a VerifiedHeader,
    /// It was sent in R-mode.
    reliable: bool,
    /// It updates the context, not only numbers.
    updates: bool,
    /// Octets from the UDP-Lite header on.
    length: usize,
    /// How far it is ahead of ref 0.
    ahead: i32,
    /// Packets since the last one.
    packets: u32,
}

/// Evidence of the checksums of a flow, and V of RTP, in one octet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums(u8);

impl Sums {
    const RIGHT: u8 = 1;
    const UNEVEN: u8 = 2;
    const EVEN: u8 = 4;
    /// Place of V.
    const V: u32 = 6;

    /// No evidence.
    const NONE: Self = Self(VERSION << Self::V);

    /// V of RTP.
    #[inline]
    pub(super) fn version(self) -> u8 {
        self.0 >> Self::V
    }

    pub(super) fn set_version(&mut self, version: u8) {
        self.0 = self.0 & !(3 << Self::V) | version << Self::V;
    }

    /// True if the last packet with all fields had a correct UDP checksum.
    #[inline]
    pub(super) fn are_right(self) -> bool {
        self.0 & Self::RIGHT != 0
    }

    pub(super) fn set_right(&mut self, are_right: bool) {
        self.0 = self.0 & !Self::RIGHT | u8::from(are_right);
    }

    /// True if the RTP timestamp has jumped by another number than a multiple of its stride.
    pub(super) fn has_uneven_jumps(self) -> bool {
        self.0 & Self::UNEVEN != 0
    }

    /// True if the RTP timestamp has jumped, and always by a multiple of its stride.
    pub(super) fn has_even_jumps(self) -> bool {
        self.0 & (Self::EVEN | Self::UNEVEN) == Self::EVEN
    }

    fn note_jump(&mut self, is_even: bool) {
        self.0 |= if is_even { Self::EVEN } else { Self::UNEVEN };
    }
}

/// Context of one flow at the decompressor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rfc3095ReceiverContext {
    pub(crate) profile: ProfileId,
    pub(crate) health: Health,
    pub(crate) mode: DecompressorMode,
    pub(super) ip_count: u8,
    pub(super) ips: [IpFields; BASE_IPS],
    pub(super) udp: UdpFields,
    pub(super) coverage: CoverageContext,
    pub(super) own: UpperFields,
    /// Last verified SN. With the IP-IDs and the RTP timestamp, it is ref 0 of RFC 3095, section 5.3.2.2.5.
    pub(super) sn: u32,
    /// Ref -1, while ref 0 is in doubt.
    pub(super) doubt: Doubt,
    /// R-mode: number of successive updates of one kind, as counted for acknowledgments.
    pub(super) sequence: u8,
    /// States of CRC-3 and CRC-7 after the CRC-STATIC octets. Only stored for at most two IP headers without lists.
    pub(super) crc_static: CrcStatic,
    /// Extension headers of both base headers, and CSRC identifiers.
    pub(super) lists: [ListState; LISTS],
    pub(super) table: ItemTable,
    /// Arrival of the last verified packet, and pace of the flow.
    pub(crate) arrivals: Arrivals,
    pub(super) movement: Movement,
    pub(super) sums: Sums,
    pub(super) twins: Twins,
}

impl Rfc3095ReceiverContext {
    pub(crate) fn new(profile: ProfileId) -> Self {
        Self {
            profile,
            health: Health::NEW,
            mode: DecompressorMode::default(),
            ip_count: 1,
            ips: [IpFields::default(); BASE_IPS],
            udp: UdpFields::default(),
            coverage: CoverageContext::default(),
            own: match profile {
                ProfileId::Esp => UpperFields::Esp(0),
                _ => UpperFields::Rtp(RtpFields::INITIAL),
            },
            sn: 0,
            doubt: Doubt::default(),
            sequence: 0,
            crc_static: CrcStatic::UNKNOWN,
            lists: [ListState::default(); LISTS],
            table: ItemTable::default(),
            arrivals: Arrivals::NEW,
            movement: Movement::NONE,
            sums: Sums::NONE,
            twins: Twins::default(),
        }
    }

    /// Records the movement of IP-IDs against the SN, by a packet that carries them, `packets` behind the last one.
    pub(super) fn note_offsets(&mut self, x: &Rfc3095Fields<'_>, packets: u32) {
        let moved = self.reference(x).offsets_moved_from(&self.newest());
        self.movement.note(moved, packets);
    }

    #[inline(always)]
    pub(super) fn fields<'p>(&self) -> Rfc3095Fields<'p> {
        let [outer, inner] = self.ips;
        let mut x = Rfc3095Fields::new(self.profile);
        x.ips[0] = outer;
        x.ips[1] = inner;
        x.ip_count = usize::from(self.ip_count);
        x.udp = self.udp;
        match self.own {
            UpperFields::Rtp(rtp) => {
                x.rtp = rtp;
                x.rtp_extra.version = self.sums.version();
            }
            UpperFields::Esp(spi) => x.spi = spi,
        }
        x.sn = self.sn;
        x
    }

    /// Adds the static parts of the IP headers beyond the second, which are in the table.
    pub(super) fn inner_ips(&self, x: &mut Rfc3095Fields<'_>, pool: &Pool<'_>) {
        for i in BASE_IPS..x.ip_count {
            if let Some(place) = self.table.find(pool, i, 0) {
                let item = table::stored(pool, place);
                let _ = ir::ip_static(&mut Reader::contiguous(item.body), &mut x.ips[i]);
            }
        }
    }

    /// Decompresses a packet of type 0, 1 or 2 that is not just the one [next in line](Self::next_in_line).
    #[inline(never)]
    pub(super) fn compressed(
        &mut self,
        incoming: &IncomingPacket<'_, '_, '_>,
        pool: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        if self.health.state == DecompressorState::Nc {
            return Err(Failure::NotAllowed(Format::Uo0));
        }
        let (now, packet) = (incoming.at, incoming.header);
        let mut x = self.fields();
        x.mode = NO_MODE;
        let mut reader = Reader::new(packet.first, packet.rest);
        let reliable = self.mode.mode() == Mode::Reliable;
        let format = read_base(packet, &mut reader, &mut x, self.mode.mode())?;
        // Without a CRC nothing is compared, so that these values do not matter.
        let (width, crc) = reader.crc_read().unwrap_or((3, 0));
        let check = Check::of_width(width).ok_or(Failure::Malformed)?;
        // RFC 3095, section 5.3.2.2.1, and RFC 5795, section 5.2.3: packets with a CRC of 3 bits, or none, are not used on an
        // invalid dynamic context.
        if self.health.state == DecompressorState::Sc && check == Check::Crc3 {
            return Err(Failure::NotAllowed(format));
        }
        if x.ip_count > BASE_IPS {
            self.inner_ips(&mut x, pool);
        }
        let mut update = ListUpdate::default();
        let mut length = 0;
        let mut passed = VerifiedHeader::default();
        let (found, payload) = {
            let mut extensions = ExtensionLists::default();
            let mut has = self.tail_of(&x);
            for i in list_owners(&x) {
                update.lists[i] = self.resolve(&x, i, pool, format, &mut extensions, &mut has)?;
            }
            tail(&mut reader, &mut x, &has).map_err(|_| Failure::Malformed)?;
            let payload = reader.remaining();
            if upper(self.profile) == Upper::UdpLite {
                length = datagram_len(self.profile, extensions.csrc_len(), payload.len());
                if !has.coverage && self.coverage.inferred {
                    x.udp.coverage = length as u16;
                }
            }
            let mut search = CandidateSearch {
                now,
                format,
                context: self,
                reader: &reader,
                payload: payload.len(),
                check,
                crc,
                plain: !x.extra[0].flags && !x.extra[1].flags && !x.rtp_extra.flags && x.ip_count <= BASE_IPS,
                has_failed: incoming.has_failed,
                x: &mut x,
                extensions: &mut extensions,
                out,
                passed: &mut passed,
            };
            let found = if reliable { search.find_securely() } else { search.find() };
            let found = found.and_then(|()| search.by_sum());
            let misses_ip_id = !reliable && found.is_ok() && search.misses_moved_ip_id();
            let found = if misses_ip_id { Err(Failure::Ambiguous(format)) } else { found };
            (found, payload)
        };
        let ahead = self.ahead(x.sn, self.sn);
        let is_late = !passed.proved && self.is_late(ahead);
        self.twins = passed.twins.unwrap_or(self.twins);
        found.map_err(|failure| match failure {
            // It is no evidence about the context.
            Failure::Crc(format) if is_late || passed.looks_late && self.is_steady() => {
                Failure::Ambiguous(format)
            }
            failure => failure,
        })?;
        let (sent, len) = (x.cce.map_or(format, Cce::format), passed.layout.len);
        let deliver = |out: &mut [u8]| Verified::deliver(packet, sent, len, payload, out);
        if passed.by == By::Late
            || passed.by == By::Newest
                && is_late
                && (format.updates() || !reliable)
                && self.newest_packet().is_newer_than(&x, format)
        {
            return deliver(out);
        }
        if let By::Before { suspect, deliver: is_delivered } = passed.by {
            self.note_before(&self.reference(&x), suspect);
            if !is_delivered {
                return Err(Failure::Suspect(format));
            }
            self.arrivals.note(now, 1);
            return deliver(out);
        }
        let updates = format != Format::Uo1IdExt3 || incoming.config.interop.uo_1_id_updates;
        // In R-mode the reference is older than the last packet.
        let ahead_of_last =
            if reliable { i32::from((x.sn as u16).wrapping_sub(self.doubt.sn).cast_signed()) } else { ahead };
        let packets = steps(ahead_of_last);
        if reliable && self.only_delivers(&x, format) {
            // A timer counts from the arrival of the reference.
            if x.rtp.time_stride == 0 {
                self.arrivals.note(now, packets);
            }
            return Verified::deliver(packet, format, len, payload, out);
        }
        if updates {
            self.note_mode_received(x.mode);
        }
        if passed.has_lists {
            self.commit_lists(&x, &update, None, updates, pool)?;
        }
        let bits = (reader.collected(IP_ID).1, reader.collected(TS).1);
        let (x, passed) = (&x, &passed);
        let verified =
            VerifiedPacket { format, check, bits, x, passed, reliable, updates, length, ahead, packets };
        self.note_verified(now, &verified)?;
        deliver(out)
    }

    /// Updates the context by a verified packet. An error if the packet is not delivered, because the context may be damaged.
    #[inline]
    fn note_verified(&mut self, now: Moment, verified: &VerifiedPacket<'_, '_>) -> Result<(), Failure> {
        let &VerifiedPacket { format, check, x, passed, reliable, updates, ahead, packets, .. } = verified;
        let (ip_id_bits, ts_bits) = verified.bits;
        if passed.has_lists {
            for (state, extra) in self.lists.iter_mut().zip(&passed.ah_sn) {
                if let Some(sn) = *extra {
                    state.note_ah_sn(sn, x.sn);
                }
            }
        }
        // It may be late, or a duplicate (RFC 4224): the previous reference is kept.
        let may_be_late = !reliable && check != Check::Crc3 && ahead <= 0;
        match passed.by {
            By::Repair => self.note_repair(),
            By::Newest if may_be_late => self.note_repair(),
            By::Newest if check == Check::Crc3 => self.note_update(x, ip_id_bits, ts_bits),
            By::Newest | By::Before { .. } | By::Late => {}
        }
        if ip_id_bits > 0 {
            self.note_offsets(x, ahead.max(0).unsigned_abs());
        } else {
            self.movement.note_calm();
        }
        // An SN that leaps is no gap.
        let is_behind_gap =
            ahead > REPEATED && has_rtp(self.profile) && self.arrivals.is_behind(now, u64::from(packets / 2));
        self.arrivals.note_intervals(now, packets, self.intervals(x, packets));
        if let Some(rtp) = self.rtp() {
            let stride = rtp.stride;
            let jump = x.rtp.ts.wrapping_sub(rtp.ts).wrapping_sub(stride.wrapping_mul(packets));
            if ahead > 0 && jump != 0 && stride != 0 {
                self.sums.note_jump(jump.is_multiple_of(stride));
            }
        }
        self.sn = x.sn;
        self.keep(x, updates, verified.length);
        if passed.proved || check != Check::Crc3 && !may_be_late || format == Format::Uo1IdExt3 && updates {
            let since = self.doubt.leap;
            if is_behind_gap {
                self.trust_newest_behind_gap();
            } else {
                self.trust_newest();
            }
            if reliable {
                self.doubt.leap = since;
            }
        }
        let is_plain = updates && !passed.has_lists && x.ip_count <= BASE_IPS;
        self.crc_static = if is_plain { CrcStatic(passed.crc_static) } else { CrcStatic::UNKNOWN };
        self.health.state.on_success();
        if passed.proved {
            self.health.note_proof();
        } else if check == Check::Crc3 && self.health.is_doubtful() {
            // CRC-3 accepts one in eight of the headers that a damaged context produces.
            self.health.note_success();
            return Err(Failure::OnTrial(format));
        }
        Ok(())
    }

    /// Number of times between packets from ref 0 to a packet `ahead` of it: RTP timestamps continue in pauses.
    fn intervals(&self, x: &Rfc3095Fields<'_>, ahead: u32) -> u32 {
        match &self.own {
            UpperFields::Rtp(rtp) if has_rtp(self.profile) => {
                let (step, stride) = (x.rtp.ts.wrapping_sub(rtp.ts), stride_behind(x, rtp));
                let strides = step.checked_div(stride).unwrap_or(0);
                if stride > 1 && step.is_multiple_of(stride) { strides.max(ahead) } else { ahead }
            }
            _ => ahead,
        }
    }

    /// Returns the fields in the tail of a packet, without extension headers.
    fn tail_of(&self, x: &Rfc3095Fields<'_>) -> Tail {
        let coverage = self.coverage.present || x.cce.is_some();
        Tail { udp_checksum: self.udp.checksum != 0, coverage, icv: [0; BASE_IPS] }
    }

    /// Stores the fields of a verified packet, which has `length` octets from the UDP-Lite header on.
    #[inline]
    fn keep(&mut self, x: &Rfc3095Fields<'_>, updates: bool, length: usize) {
        if !updates {
            // RFC 4815, section 6.2: such packets "only [update] TS, SN, IP-ID".
            for (kept, ip) in self.ips.iter_mut().zip(&x.ips) {
                kept.header.id = ip.header.id;
            }
            if let UpperFields::Rtp(rtp) = &mut self.own {
                rtp.ts = x.rtp.ts;
            }
            return;
        }
        for (kept, ip) in self.ips.iter_mut().zip(&x.ips).take(x.base_ips()) {
            *kept = *ip;
        }
        if let (true, UpperFields::Rtp(rtp)) = (has_rtp(self.profile), &mut self.own) {
            *rtp = RtpFields { m: false, stride: stride_behind(x, rtp), ..x.rtp };
        }
        if x.cce == Some(Cce::Off) {
            self.udp.coverage = x.udp.coverage;
        }
        self.coverage.update(x.cce, x.udp.coverage, length);
    }

    /// True if a packet that is `ahead` of ref 0 by that much is late or a duplicate (RFC 4224), and does not show that ref 0 is
    /// wrong.
    pub(super) fn is_late(&self, ahead: i32) -> bool {
        seems_late(ahead) && self.is_steady()
    }

    /// The packet of ref 0.
    pub(super) fn newest_packet(&self) -> NewestPacket<'_> {
        let ips = self.ips.get(..usize::from(self.ip_count)).unwrap_or(&self.ips);
        NewestPacket { profile: self.profile, sn: self.sn, ips, rtp: self.rtp() }
    }

    fn is_steady(&self) -> bool {
        self.health.is_steady() && self.arrivals.failed() < LATE as u8
    }

    /// Counts a verified packet.
    #[inline]
    pub(crate) fn note_success(&mut self, update: bool) {
        self.health.note_success();
        if update {
            // It was verified by 7 or 8 bits.
            self.health.note_proof();
            self.health.note_repair();
        }
    }

    /// True if nothing was verified for so long that no channel would have delayed a packet until now.
    pub(crate) fn is_behind_pause(&self, now: Moment) -> bool {
        self.arrivals.is_behind(now, PAUSE)
    }

    /// Passes the fields of a packet to `on_field`, as far as this context allows, and returns its format.
    pub(crate) fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        pool: &Pool<'_>,
        mut on_field: impl FnMut(Traced<'p>),
    ) -> Option<Format> {
        let reader = Reader::new(packet.first, packet.rest);
        let mut x = self.fields();
        self.inner_ips(&mut x, pool);
        if packet.first & 0b1111_1110 == 0b1111_1100 {
            let _ = ir::ir(&mut Tracer::new(reader, on_field), &mut x, false);
            return Some(Format::Ir);
        }
        if packet.first == 0b1111_1000 {
            let _ = ir::ir_dyn(&mut Tracer::new(reader, on_field), &mut x);
            return Some(Format::IrDyn);
        }
        let format = read_base(packet, &mut { reader }, &mut x, self.mode.mode()).ok()?;
        let mut tracer = Tracer::new(reader, &mut on_field);
        base(format, &mut tracer, &mut x).ok()?;
        let mut extensions = ExtensionLists::default();
        let mut has = self.tail_of(&x);
        for i in list_owners(&x) {
            if self.resolve(&x, i, pool, format, &mut extensions, &mut has).is_err() {
                return Some(format);
            }
        }
        let _ = tail(&mut tracer, &mut x, &has);
        Some(format)
    }
}

/// TS_STRIDE behind a packet. RFC 4815, section 4.6: with Tsc = 1, "field(TS_STRIDE) MUST be ignored and discarded".
fn stride_behind(x: &Rfc3095Fields<'_>, kept: &RtpFields) -> u32 {
    if x.rtp_extra.scaled { kept.stride } else { x.rtp.stride }
}

/// Finds the compressed format of a packet.
#[inline]
fn read_base<'p>(
    packet: &PacketHeader<'p>,
    reader: &mut Reader<'p>,
    x: &mut Rfc3095Fields<'p>,
    mode: Mode,
) -> Result<Format, Failure> {
    let mut first = packet.first;
    if upper(x.profile) == Upper::UdpLite
        && let Some(kind) = Cce::of(packet.first)
    {
        x.cce = Some(kind);
        first = packet.rest.first().copied().ok_or(Failure::Malformed)?;
    }
    let packet_type = PacketType::of(first);
    for &format in formats(x.profile, mode).iter().filter(|format| packet_type.has(**format)) {
        *reader = Reader::new(packet.first, packet.rest);
        let step = if has_t_bit_behind(format) {
            // An extension 3 of another format may have changed fields of the IP headers before the mismatch is found.
            let mut read = *x;
            base(format, reader, &mut read).map(|()| *x = read)
        } else {
            base(format, reader, x)
        };
        match step {
            // RFC 4019, section 5.3.2.2: only packets that update the context change the coverage.
            Ok(()) if !format.updates() && matches!(x.cce, Some(Cce::On | Cce::Off)) => {
                return Err(Failure::Malformed);
            }
            Ok(()) => return Ok(format),
            Err(Refusal::NotThis) => {}
            Err(Refusal::Malformed | Refusal::DoesNotFit) => return Err(Failure::Malformed),
        }
    }
    Err(Failure::Malformed)
}
