//! Decompression of the packets of one context. Section 7 of `docs/dtls-profile.md`.

use thinair_wire::coder::{Reader, Traced, Tracer};

use super::formats::{self, IR, IR_CR, MSN, format_of, has_check, is_long};
use super::header;
use super::state::{ChecksumMode, DtlsState};
use super::{HeaderFields, NonceSource, msn_interval};
use crate::channel::Integrity;
use crate::decompressor::{Failure, IncomingPacket, Verified, verify_crc8};
use crate::flow::arrival::{Arrivals, Moment};
use crate::flow::health::Health;
use crate::flow::pace::steps;
use crate::flow::search::{Proof, Search, SequenceBits, TRIALS};
use crate::id::Format;
use crate::packet::PacketHeader;
use crate::state::DecompressorState;
use crate::work;

/// Largest distance of MSNs by which long formats are late.
const MOST_LATE: i32 = 8;

/// The context of one flow at the decompressor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DtlsReceiverContext {
    pub(super) health: Health,
    pub(super) state: DtlsState,
    /// Pace of the flow, in steps of the MSN.
    pub(super) arrivals: Arrivals,
    /// After damage, one packet has passed a CRC of 8 bits; another one must follow.
    pub(super) trial: bool,
    /// The last packet has made a change that the compressor needs an acknowledgment of.
    pub(super) ack_due: bool,
}

/// A packet whose fields were read, and that is to be rebuilt.
struct Candidate<'a, 'p> {
    format: Format,
    reader: &'a Reader<'p>,
    /// The state before it, with the fields that it carries.
    next: &'a mut DtlsState,
    x: &'a mut HeaderFields,
    payload: &'p [u8],
    /// Sum of the payload, if a check needs it.
    sum: u16,
    out: &'a mut [u8],
}

impl DtlsReceiverContext {
    pub(super) const fn new(state: DtlsState) -> Self {
        Self { health: Health::NEW, state, arrivals: Arrivals::NEW, trial: false, ack_due: false }
    }

    /// Decompresses a packet of an established context.
    #[inline]
    pub(super) fn receive(
        &mut self,
        packet: &IncomingPacket<'_, '_, '_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        if self.health.state == DecompressorState::Nc {
            return Err(Failure::NotAllowed(Format::Pt1));
        }
        let IncomingPacket { at, header, .. } = *packet;
        let format = format_of(header.first, &self.state.path).ok_or(Failure::Malformed)?;
        let (mut next, mut x) = (self.state, HeaderFields::default());
        let mut reader = Reader::new(header.first, header.rest);
        let mut candidate = Candidate::read(format, &mut reader, &mut next, &mut x, out)?;
        let payload = candidate.payload;
        let (len, is_late) = if is_long(format) {
            if !candidate.is_allowed(packet) {
                return Err(Failure::Malformed);
            }
            let len = candidate.with(candidate.long_msn())?.ok_or(Failure::Crc(format))?;
            (len, self.is_late(candidate.x.msn))
        } else {
            let len = self.find(at, &mut candidate)?.ok_or(Failure::Crc(format))?;
            if self.health.state == DecompressorState::Sc && !has_check(format) && !self.trial {
                // A single 8-bit CRC does not prove that a damaged context is repaired; two in a row do.
                self.trial = true;
                return Err(Failure::OnTrial(format));
            }
            (len, self.state.ahead(candidate.x.msn) <= 0)
        };
        let is_change = is_long(format) || x.carries.record | x.carries.number | x.carries.ip_id;
        self.ack_due = is_change || self.health.state == DecompressorState::Sc;
        self.arrivals.note(at, steps(self.state.ahead(x.msn)));
        if !is_late {
            if is_change {
                self.state = next;
            }
            self.state.accept(&x);
        }
        self.note_proof();
        Verified::deliver(header, format, len, payload, out)
    }

    /// Decompresses an IR packet, or an IR-CR packet with the base that it names. `self` is the context of the CID if it is of this profile, or
    /// a new one.
    pub(super) fn initialize(
        &mut self,
        packet: &IncomingPacket<'_, '_, '_>,
        base: Option<&Self>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let IncomingPacket { at, header, .. } = *packet;
        let (mut next, mut x) = (DtlsState::default(), HeaderFields::default());
        let format = match header.first {
            IR => Format::Ir,
            IR_CR => Format::IrCr,
            _ => return Err(Failure::Malformed),
        };
        if format == Format::IrCr {
            next.path = base.ok_or(Failure::NoBase)?.state.path;
        }
        let v6 = next.path.v6;
        let mut reader = Reader::new(header.first, header.rest);
        let mut candidate = Candidate::read(format, &mut reader, &mut next, &mut x, out)?;
        let payload = candidate.payload;
        if !candidate.is_allowed(packet) || format == Format::IrCr && candidate.next.path.v6 != v6 {
            return Err(Failure::Malformed);
        }
        verify_crc8(header, candidate.reader, format)?;
        let len = candidate.with(candidate.long_msn())?.ok_or(Failure::Crc(format))?;
        let is_same = self.state.path.is_flow_of(&next.path) && self.health.state != DecompressorState::Nc;
        if !(is_same && self.is_late(x.msn)) {
            let ahead = self.state.ahead(x.msn);
            self.arrivals = if is_same { self.arrivals.behind(at, ahead) } else { Arrivals::NEW };
            self.arrivals.note(at, steps(ahead));
            self.state = next;
            self.state.accept(&x);
        }
        self.ack_due = true;
        self.note_proof();
        Verified::deliver(header, format, len, payload, out)
    }

    fn note_proof(&mut self) {
        self.trial = false;
        self.health.note_repair();
        self.health.state.on_success();
    }

    /// True if a long format is late, or a duplicate: the compressor sends none that goes back.
    fn is_late(&self, msn: u16) -> bool {
        (-MOST_LATE..=0).contains(&self.state.ahead(msn)) && self.health.state == DecompressorState::Fc
    }

    /// Finds the MSN with which the packet passes its check. Returns the length of its headers.
    #[inline]
    fn find(&self, now: Moment, candidate: &mut Candidate<'_, '_>) -> Result<Option<usize>, Failure> {
        let (bits, k) = candidate.reader.collected(MSN);
        let (below, _) = msn_interval(k);
        let start = u32::from(self.state.msn).wrapping_sub(below);
        let first = start.wrapping_add(bits.wrapping_sub(start) & ((1 << k) - 1));
        if k >= u16::BITS || self.arrivals.is_next(now, 1 << k) {
            return candidate.with(first as u16);
        }
        self.find_in_doubt(now, first, k, candidate)
    }

    /// Finds the MSN if more than a turn of MSNs may have passed.
    #[cold]
    fn find_in_doubt(
        &self,
        now: Moment,
        first: u32,
        k: u32,
        candidate: &mut Candidate<'_, '_>,
    ) -> Result<Option<usize>, Failure> {
        let format = candidate.format;
        let ahead = first.wrapping_sub(self.state.msn.into()).cast_signed();
        let bits = SequenceBits::new(ahead, 1 << k);
        let passed = self.arrivals.passed(now);
        // Each candidate is one more that may pass a CRC of 8 bits by chance, where more than the MSN was missed.
        let (_, turns) = msn_interval(k);
        let is_bounded = has_check(format) || passed.is_counted || passed.intervals.is_steady;
        let below = if is_bounded { u32::MAX } else { bits.first + bits.turn * (turns + 1) };
        let msn = self.state.msn;
        let mut with = |ahead: i32| candidate.with(msn.wrapping_add_signed(ahead as i16));
        let is_late = ahead <= 0 && with(ahead)?.is_some();
        let is_usual = !passed.intervals.is_steady && self.arrivals.has_paused_as_usual(now);
        let search = Search { late: is_late.into(), is_usual, ..Search::new(bits, passed, TRIALS) };
        let attempt = |ahead: u32| Ok(with(ahead.cast_signed())?.is_some().into());
        match search.find(|ahead| ahead < below, attempt)?.proof {
            _ if is_late && is_usual => with(ahead),
            Proof::Late => with(ahead),
            Proof::Nothing => Ok(None),
            Proof::Ahead(ahead, _) => with(ahead.cast_signed()),
            Proof::Ambiguous => Err(Failure::Ambiguous(format)),
        }
    }

    /// Passes the fields of a packet to `on_field`, as far as this context allows, and returns its format.
    pub(super) fn fields<'p>(
        &self,
        packet: &PacketHeader<'p>,
        mut on_field: impl FnMut(Traced<'p>),
    ) -> Option<Format> {
        let format = match packet.first {
            IR => Format::Ir,
            IR_CR => Format::IrCr,
            first => format_of(first, &self.state.path)?,
        };
        let mut tracer = Tracer::new(Reader::new(packet.first, packet.rest), &mut on_field);
        let _ = formats::packet(format, &mut tracer, &mut HeaderFields::default(), &mut { self.state });
        Some(format)
    }
}

impl<'a, 'p> Candidate<'a, 'p> {
    /// Reads the fields of a packet behind a state.
    #[inline(always)]
    fn read(
        format: Format,
        reader: &'a mut Reader<'p>,
        next: &'a mut DtlsState,
        x: &'a mut HeaderFields,
        out: &'a mut [u8],
    ) -> Result<Self, Failure> {
        formats::packet(format, reader, x, next).map_err(|_| Failure::Malformed)?;
        let payload = reader.remaining();
        let sum = match next.path.checksum {
            ChecksumMode::Zero => 0,
            ChecksumMode::Carried | ChecksumMode::Elided => header::payload_sum(payload),
        };
        Ok(Self { format, reader, next, x, payload, sum, out })
    }

    /// True if the values of a long format are allowed on the channel. Addresses of a base have to be verified by a checksum.
    fn is_allowed(&self, packet: &IncomingPacket<'_, '_, '_>) -> bool {
        let may_elide = packet.config.channel.integrity_below() != Integrity::None;
        // The context may lack the difference.
        let is_whole = self.x.nonce_source != NonceSource::Difference;
        let is_verified = self.format != Format::IrCr || self.next.path.checksum != ChecksumMode::Zero;
        is_whole && is_verified && (may_elide || self.next.path.checksum != ChecksumMode::Elided)
    }

    /// The MSN of a long format.
    fn long_msn(&self) -> u16 {
        if self.x.has_msn { self.reader.collected(MSN).0 as u16 } else { self.x.number as u16 }
    }

    /// Rebuilds the headers with an MSN. `None` if they do not pass the check.
    #[inline]
    fn with(&mut self, msn: u16) -> Result<Option<usize>, Failure> {
        let Self { format, next, x, payload, sum, .. } = self;
        work::note_candidate();
        x.msn = msn;
        if !next.infer(x) {
            return Ok(None);
        }
        if x.carries.record {
            next.set_nonce(x);
        }
        if x.carries.record | x.carries.number {
            next.settle();
        }
        let len = header::rebuild(next, x, payload.len(), self.out)?;
        let at = next.record_at();
        let record = self.out.get(at..len).unwrap_or_default();
        let checksum = match next.path.checksum {
            ChecksumMode::Zero => 0,
            ChecksumMode::Carried | ChecksumMode::Elided => {
                header::udp_checksum(next, record, payload.len(), *sum)
            }
        };
        let is_right = if has_check(*format) {
            header::check16(next, x, checksum) == x.check
        } else {
            let is_carried = is_long(*format) && next.path.checksum != ChecksumMode::Zero;
            let sum = if next.path.checksum == ChecksumMode::Elided { *sum } else { 0 };
            let sent = if is_long(*format) { u16::BITS } else { self.reader.collected(MSN).1 };
            let is_verified = match *format {
                // Its CRC covers its octets.
                Format::Ir => true,
                Format::IrCr => x.check == next.digest,
                _ => self.reader.crc_read() == Some((8, header::crc8(next, x, sent, sum))),
            };
            is_verified && (!is_carried || x.checksum == checksum)
        };
        if !is_right {
            return Ok(None);
        }
        if let Some(field) = self.out.get_mut(at - 2..at) {
            field.copy_from_slice(&checksum.to_be_bytes());
        }
        Ok(Some(len))
    }
}
