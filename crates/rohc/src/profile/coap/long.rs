//! Decompression of packets in long formats, which carry control fields and templates: `IR`, `IR-CR`, `co_common` and `co_repair`.
//! Sections 6 and 9 of `docs/coap-profile.md`.

use thinair_wire::coder::Reader;

use super::decompress::{CoapReceiverContext, CoapReceiverMemory, PacketTail, nearest, sum_for};
use super::formats::{self, MSN, chain, control_crc, long};
use super::header;
use super::outline::Holes;
use super::state::{ChecksumMode, CoapPath, CoapState, Template, Templates};
use super::{HeaderFields, Whole};
use crate::decompressor::{Failure, Verified, verify_crc8};
use crate::exchange::Exchanges;
use crate::flow::arrival::{Arrivals, Moment};
use crate::flow::pace::steps;
use crate::id::Format;
use crate::packet::PacketHeader;
use crate::state::DecompressorState;

/// Largest distance of MSNs by which packets are late.
const MOST_LATE: u32 = 8;

impl CoapReceiverContext {
    /// Decompresses an IR or IR-CR packet. `self` is the context of the CID if it is of this profile, or a new one.
    #[inline(never)]
    pub(crate) fn initialize(
        &mut self,
        at: Moment,
        packet: &PacketHeader<'_>,
        memory: &mut CoapReceiverMemory<'_, '_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let replicates = packet.first == 0xFC;
        let format = if replicates { Format::IrCr } else { Format::Ir };
        let mut reader = Reader::new(packet.first, packet.rest);
        let mut x = HeaderFields::new(0);
        x.has_definition = true;
        let mut whole = Whole::new(CoapPath::default());
        long(format, &mut reader, &mut x, &mut whole).map_err(|_| Failure::Malformed)?;
        let mut next = CoapState::new();
        let mut template;
        let outline: &[u8];
        let base = match replicates {
            true => Some(memory.bases.get(usize::from(whole.base)).ok_or(Failure::Malformed)?),
            false => None,
        };
        if let Some(base) = base {
            whole.next = base.path();
            formats::differences(&mut reader, &mut x, &mut whole).map_err(|_| Failure::Malformed)?;
            (template, outline) = base.template(x.template).ok_or(Failure::Malformed)?;
            (next.own, next.echoed) = (0, 0);
            x.carries.ip_id = true;
        } else {
            (template, outline) = (whole.definition, whole.outline);
            template.settle(outline);
            next = self.shared;
        }
        next.path = whole.next;
        if next.path.checksum == ChecksumMode::Elided && !memory.may_elide {
            return Err(Failure::Malformed);
        }
        next.settle();
        x.holes = Holes::of(outline, template.holes);
        x.has_checksum = !replicates;
        chain(&mut reader, &next, &template, false, &mut x).map_err(|_| Failure::Malformed)?;
        // It is in the static part.
        (x.port, x.carries.port) = (next.path.port(), true);
        let payload = reader.remaining();
        verify_crc8(packet, &reader, format)?;

        let (bits, _) = reader.collected(MSN);
        // A late packet or a duplicate begins no context: templates that were defined behind it are in use.
        let behind = self.shared.msn.wrapping_sub(nearest(bits, self.shared.msn));
        let keeps = !replicates
            && (x.keep || behind <= MOST_LATE)
            && self.shared.path.keeps(&next.path)
            && self.health.state != DecompressorState::Nc;
        x.msn = if keeps { nearest(bits, self.shared.msn) } else { bits };
        let name = next.path.name();
        let request = self.request(&next, &template, name, &mut x, memory.sent.as_deref());
        if !header::infer(&next, &template, request, &mut x) {
            return Err(Failure::NoRequest(format));
        }
        let sum = sum_for(&next, payload);
        let found = PacketTail { format, reader: &reader, template: &template, outline, payload, sum };
        let len = self.build_with_older(&next, &found, &mut x, memory.sent.as_deref(), out)?;
        let len = len.ok_or(Failure::Crc(format))?;
        if replicates
            && header::crc_of_headers(out.get(..len).unwrap_or_default(), next.path.v6) != whole.header_crc
        {
            return Err(Failure::Crc(format));
        }
        let is_late = (1..=MOST_LATE).contains(&behind) && self.health.state == DecompressorState::Fc;
        let is_old = is_late
            && !(x.keep && self.undoes_nothing(&next.path, x.template, &template, outline, memory.templates));
        if keeps && is_old {
            return Verified::deliver(packet, format, len, payload, out);
        }
        // Verified: the context is created, or continues.
        let ahead = x.msn.wrapping_sub(self.shared.msn).cast_signed();
        self.arrivals = if keeps { self.arrivals.behind(at, ahead) } else { Arrivals::NEW };
        self.arrivals.note(at, steps(ahead));
        if keeps {
            // The port of a packet that goes back changes nothing, as in short formats.
            let port = if ahead < 0 { self.shared.path.port() } else { next.path.port() };
            next = self.shared.on_path(next.path.with_port(port));
        } else {
            self.shared.forget_all(memory.templates);
            next = CoapState::new().on_path(next.path);
        }
        let is_defined = match base {
            Some(base) => base.define_all(&mut next, memory.templates),
            None => next.define(x.template, &template, outline, memory.templates),
        };
        self.shared = next;
        if !is_defined {
            return Err(Failure::NoMemory);
        }
        self.name = name;
        self.ack_due = true;
        (self.seen, self.lost, self.since_port) = (0, 0, u8::MAX);
        self.accept(&x, memory);
        Verified::deliver(packet, format, len, payload, out)
    }

    /// [`build`](Self::build), with older messages of the same MSN, too.
    fn build_with_older(
        &self,
        state: &CoapState,
        packet: &PacketTail<'_, '_>,
        x: &mut HeaderFields<'_>,
        sent: Option<&Exchanges<'_>>,
        out: &mut [u8],
    ) -> Result<Option<usize>, Failure> {
        match self.build(state, packet, x, out)? {
            None if x.names_request => self.build_by_older(state, packet, x, sent, &mut 0, out),
            found => Ok(found),
        }
    }

    /// True if a long format with that path and that template undoes nothing; the port of the client may differ. Then it may have been sent
    /// with an MSN that goes back. Otherwise it is late.
    fn undoes_nothing(
        &self,
        path: &CoapPath,
        number: u8,
        template: &Template,
        outline: &[u8],
        templates: &Templates<'_>,
    ) -> bool {
        let known = self.shared.template(number, templates);
        let is_known = |known: &Template| known.is_alike(template) && self.shared.outline(known) == outline;
        self.shared.path == path.with_port(self.shared.path.port()) && known.is_none_or(is_known)
    }

    /// Decompresses `co_common` or `co_repair`.
    #[inline(never)]
    pub(super) fn common(
        &mut self,
        packet: &PacketHeader<'_>,
        format: Format,
        memory: &mut CoapReceiverMemory<'_, '_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let (x, whole) = (&mut HeaderFields::new(self.shared.current), &mut Whole::new(self.shared.path));
        let reader = &mut Reader::new(packet.first, packet.rest);
        long(format, reader, x, whole).map_err(|_| Failure::Malformed)?;
        let mut next = self.shared;
        next.path = whole.next;
        if next.path.checksum == ChecksumMode::Elided && !memory.may_elide {
            return Err(Failure::Malformed);
        }
        next.settle();
        next.check();
        let mut template;
        let outline: &[u8];
        if x.has_definition {
            template = whole.definition;
            outline = whole.outline;
            template.settle(outline);
        } else {
            template =
                *next.template(x.template, memory.templates).ok_or(Failure::UnknownTemplate(format))?;
            outline = self.shared.outline(&template);
        }
        x.holes = Holes::of(outline, template.holes);
        chain(reader, &next, &template, false, x).map_err(|_| Failure::Malformed)?;
        if control_crc(&next, x.template, &template) != whole.control_crc {
            return Err(Failure::Crc(format));
        }
        let (bits, _) = reader.collected(MSN);
        x.msn = nearest(bits, self.shared.msn);
        let name = next.path.name();
        let request = self.request(&next, &template, name, x, memory.sent.as_deref());
        if !header::infer(&next, &template, request, x) {
            return Err(Failure::NoRequest(format));
        }
        let payload = reader.remaining();
        let sum = sum_for(&next, payload);
        let found = PacketTail { format, reader, template: &template, outline, payload, sum };
        let len = self.build_with_older(&next, &found, x, memory.sent.as_deref(), out)?;
        let len = len.ok_or(Failure::Crc(format))?;
        if self.may_be_of_another_flow(&next.path, x) {
            return Err(Failure::Ambiguous(format));
        }
        let behind = self.shared.msn.wrapping_sub(x.msn);
        let is_late = (1..=MOST_LATE).contains(&behind) && self.health.state == DecompressorState::Fc;
        if is_late && !self.undoes_nothing(&next.path, x.template, &template, outline, memory.templates) {
            return Verified::deliver(packet, format, len, payload, out);
        }
        // The checks that repair a damaged context have more than 8 bits: CRC-7, control CRC, and all fields.
        if x.has_definition && !next.define(x.template, &template, outline, memory.templates) {
            self.shared = next;
            return Err(Failure::NoMemory);
        }
        (self.shared, self.name) = (next, name);
        self.count_losses(x.msn);
        self.ack_due = true;
        self.accept(x, memory);
        Verified::deliver(packet, format, len, payload, out)
    }
}
