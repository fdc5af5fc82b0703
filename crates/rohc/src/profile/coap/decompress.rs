//! Decompression of the packets of one context. Section 9 of `docs/coap-profile.md`.

use thinair_wire::coder::{Reader, Traced, Tracer};
use thinair_wire::crc::Check;
use thinair_wire::header::coap::Code;

use super::formats::{self, MSN, chain, format_of, has_check, is_long, long, short};
use super::header;
use super::outline::{HoleKind, Holes, is_outline};
use super::ports::RECENT;
use super::state::{ChecksumMode, CoapPath, CoapState, FlowName, PortMode, Template, Templates};
use super::{CoapMemory, HeaderFields, MOST_LOST, Whole, msn_interval};
use crate::channel::Integrity;
use crate::decompressor::{Failure, IncomingPacket, Verified};
use crate::exchange::{CoapExchange, Exchanges, OF_A_FLOW};
use crate::flow::arrival::{Arrivals, Moment};
use crate::flow::health::Health;
use crate::flow::pace::steps;
use crate::flow::search::{Proof, Search, SequenceBits, TRIALS};
use crate::id::{Format, ProfileId};
use crate::packet::PacketHeader;
use crate::state::DecompressorState;
use crate::work;

/// Number of packets per report of losses to the compressor.
const REPORT: u16 = 128;

/// Distance of MSNs from which on 4 bits may be those of a late packet.
const LATE: i32 = 8;

/// Memory of the channel that a context uses.
pub(crate) struct CoapReceiverMemory<'a, 'm> {
    pub(crate) templates: &'a mut Templates<'m>,
    /// Messages that this end has sent.
    pub(crate) sent: Option<&'a mut Exchanges<'m>>,
    /// Messages that this end has received.
    pub(crate) received: Option<&'a mut Exchanges<'m>>,
    pub(crate) bases: &'a [super::Base],
    /// True if UDP checksums may be left out on this channel.
    pub(crate) may_elide: bool,
}

impl<'a, 'm> CoapReceiverMemory<'a, 'm> {
    /// The memory of a channel, with the messages of both directions at an endpoint.
    pub(super) fn of(packet: &'a mut IncomingPacket<'_, '_, 'm>, memory: &'a mut CoapMemory<'m>) -> Self {
        let (sent, received) = match &mut packet.linked {
            Some(linked) => (Some(&mut *linked.sent), Some(&mut *linked.received)),
            None => (None, None),
        };
        let may_elide = packet.config.channel.integrity_below() != Integrity::None;
        Self { templates: &mut memory.templates, sent, received, bases: &memory.bases, may_elide }
    }
}

/// Packets of a flow that is likely to end soon.
const SHORT: u8 = 8;

/// Largest number of older messages with the same MSN that are tried for one packet, with all its MSNs.
const OLDER: u32 = 128;

/// The context of one flow at the decompressor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoapReceiverContext {
    pub(crate) health: Health,
    pub(super) shared: CoapState,
    /// Pace of the flow, in steps of the MSN.
    pub(crate) arrivals: Arrivals,
    pub(super) name: FlowName,
    /// After damage, one packet has passed a CRC of 8 bits; another one must follow.
    pub(super) trial: bool,
    /// The last packet has made a change that the compressor needs an acknowledgment of.
    pub(crate) ack_due: bool,
    /// Packets since the last report, and losses among them by the MSN.
    pub(super) seen: u16,
    pub(super) lost: u16,
    /// Packets since the port of the client changed, at most 255.
    pub(super) since_port: u8,
}

/// Fields read behind the base header of a packet.
pub(super) struct PacketTail<'a, 'p> {
    pub(super) format: Format,
    pub(super) reader: &'a Reader<'p>,
    pub(super) template: &'a Template,
    pub(super) outline: &'a [u8],
    pub(super) payload: &'p [u8],
    /// Sum of the payload, if a check needs it.
    pub(super) sum: u16,
}

/// Search for the MSN of a packet, whose headers are rebuilt with one candidate after the other.
struct MsnSearch<'a, 'p> {
    context: &'a CoapReceiverContext,
    packet: &'a PacketTail<'a, 'p>,
    x: &'a mut HeaderFields<'p>,
    out: &'a mut [u8],
    /// The packet would refer to an unknown message.
    is_unknown: bool,
    /// Older messages with the same MSN that were tried.
    older: u32,
}

impl CoapReceiverContext {
    pub(crate) const fn new() -> Self {
        Self {
            health: Health::NEW,
            shared: CoapState::new(),
            arrivals: Arrivals::NEW,
            name: FlowName::NONE,
            trial: false,
            ack_due: false,
            seen: 0,
            lost: 0,
            since_port: u8::MAX,
        }
    }

    /// Number of lost packets since the last report, if a report is due.
    pub(crate) fn report(&mut self) -> Option<u8> {
        (self.seen >= REPORT).then(|| {
            let lost = self.lost.min(255) as u8;
            (self.seen, self.lost) = (0, 0);
            lost
        })
    }

    /// True if a report is due.
    #[inline]
    pub(crate) fn has_report(&self) -> bool {
        self.seen >= REPORT
    }

    /// Decompresses a packet of an established context.
    #[inline(never)]
    pub(crate) fn compressed(
        &mut self,
        now: Moment,
        packet: &PacketHeader<'_>,
        memory: &mut CoapReceiverMemory<'_, '_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        if self.health.state == DecompressorState::Nc {
            return Err(Failure::NotAllowed(Format::Pt1));
        }
        self.shared.check();
        let format = format_of(packet.first, &self.shared).ok_or(Failure::Malformed)?;
        if is_long(format) {
            let last = self.shared.msn;
            let verified = self.common(packet, format, memory, out)?;
            self.arrivals.note(now, steps(self.shared.msn.wrapping_sub(last).cast_signed()));
            return Ok(verified);
        }
        let mut x = HeaderFields::new(self.shared.current);
        let mut reader = Reader::new(packet.first, packet.rest);
        short(format, &mut reader, &mut x).map_err(|_| Failure::Malformed)?;
        // RFC 5795, section 5.2.3: packets with a CRC of 3 bits are not used on a damaged context.
        if self.health.state == DecompressorState::Sc && format == Format::Pt0 {
            return Err(Failure::NotAllowed(format));
        }
        let template =
            self.shared.template(x.template, memory.templates).ok_or(Failure::UnknownTemplate(format))?;
        let outline = self.shared.outline(template);
        if !template.is_plain() {
            x.holes = Holes::of(outline, template.holes);
        }
        chain(&mut reader, &self.shared, template, has_check(format), &mut x)
            .map_err(|_| Failure::Malformed)?;
        let payload = reader.remaining();
        let sum = sum_for(&self.shared, payload);
        let found = PacketTail { format, reader: &reader, template, outline, payload, sum };
        let len = self.find(now, &found, &mut x, memory.sent.as_deref(), out)?;
        let ahead = x.msn.wrapping_sub(self.shared.msn).cast_signed();
        if self.may_be_of_another_flow(&self.shared.path, &x) {
            return Err(Failure::Ambiguous(format));
        }
        if self.health.state == DecompressorState::Sc && !has_check(format) && !self.trial {
            // A single 8-bit CRC does not prove that a damaged context is repaired; two in a row do.
            self.trial = true;
            return Err(Failure::OnTrial(format));
        }
        self.count_losses(x.msn);
        self.arrivals.note(now, steps(ahead));
        let is_due = !x.carries.is_nothing() && !self.is_answered(&x, template, memory);
        self.ack_due = is_due || self.health.state == DecompressorState::Sc;
        self.accept(&x, memory);
        Verified::deliver(packet, format, len, payload, out)
    }

    /// True if a packet may have another port than the context. A CRC does not prove the port: a late packet may be one of the flow before,
    /// and the packets that carry another port may be lost.
    #[inline]
    pub(super) fn may_be_of_another_flow(&self, path: &CoapPath, x: &HeaderFields<'_>) -> bool {
        let ahead = x.msn.wrapping_sub(self.shared.msn).cast_signed();
        let is_late = ahead < 0 && self.since_port < SHORT;
        let has_missed = ahead > MOST_LOST && self.since_port < RECENT;
        (is_late || has_missed) && !knows_port(path, x)
    }

    /// True if the answer to a packet acknowledges it: a request of a new flow.
    #[cold]
    fn is_answered(
        &self,
        x: &HeaderFields<'_>,
        template: &Template,
        memory: &CoapReceiverMemory<'_, '_>,
    ) -> bool {
        let is_request = template.code.class() == 0 && template.code != Code::EMPTY;
        let is_new = x.port != self.shared.path.port() || self.since_port < SHORT;
        is_new && memory.received.is_some() && is_request
    }

    /// Finds the MSN with which the packet passes its check.
    #[inline(always)]
    fn find<'p>(
        &self,
        now: Moment,
        packet: &PacketTail<'_, 'p>,
        x: &mut HeaderFields<'p>,
        sent: Option<&Exchanges<'_>>,
        out: &mut [u8],
    ) -> Result<usize, Failure> {
        let (bits, k) = packet.reader.collected(MSN);
        let (below, _) = msn_interval(k);
        let start = self.shared.msn.wrapping_sub(below);
        let first = start.wrapping_add(bits.wrapping_sub(start) & ((1 << k) - 1));
        let mut search = MsnSearch { context: self, packet, x, out, is_unknown: false, older: 0 };
        let is_near = k >= u16::BITS || self.arrivals.is_next(now, 1 << k);
        let found = if is_near { search.with(first, sent)? } else { None };
        let found = match found {
            None if is_near => search.find_late(first, sent)?,
            None => search.find_in_doubt(now, first, sent)?,
            found => found,
        };
        let is_unknown = search.is_unknown;
        found.ok_or(if is_unknown { Failure::NoRequest(packet.format) } else { Failure::Crc(packet.format) })
    }

    /// Finds the message of the other direction that a packet refers to.
    #[inline(always)]
    pub(super) fn request<'e>(
        &self,
        state: &CoapState,
        template: &Template,
        name: FlowName,
        x: &mut HeaderFields<'_>,
        sent: Option<&'e Exchanges<'_>>,
    ) -> Option<&'e CoapExchange> {
        x.names_request = template.refers;
        if !x.names_request {
            return None;
        }
        x.request_msn = header::named(state, template, x);
        sent?.by_msn(name.answers(), x.port_of_request(state), x.request_msn)
    }

    /// Rebuilds the headers with the MSN of `x`; `None` if they do not pass the check.
    #[inline]
    pub(super) fn build(
        &self,
        state: &CoapState,
        packet: &PacketTail<'_, '_>,
        x: &mut HeaderFields<'_>,
        out: &mut [u8],
    ) -> Result<Option<usize>, Failure> {
        let PacketTail { template, outline, payload, .. } = *packet;
        work::note_candidate();
        let len = header::rebuild(state, template, outline, x, |_| payload.len(), out)?;
        Ok(packet.verify(state, x, len, out).then_some(len))
    }

    /// [`build`](Self::build) if a newer message than the one that the packet refers to has the same MSN, since the other end had not
    /// received the newer one yet. `older` counts the older messages that were tried.
    #[cold]
    pub(super) fn build_by_older(
        &self,
        state: &CoapState,
        packet: &PacketTail<'_, '_>,
        x: &mut HeaderFields<'_>,
        sent: Option<&Exchanges<'_>>,
        older: &mut u32,
        out: &mut [u8],
    ) -> Result<Option<usize>, Failure> {
        let Some(sent) = sent else { return Ok(None) };
        let port = x.port_of_request(state);
        for request in sent.all_by_msn(state.path.name().answers(), port, x.request_msn).skip(1) {
            if *older == OLDER {
                return Err(Failure::Ambiguous(packet.format));
            }
            *older += 1;
            if header::infer(state, packet.template, Some(request), x)
                && let Some(len) = self.build(state, packet, x, out)?
            {
                return Ok(Some(len));
            }
        }
        Ok(None)
    }

    #[inline]
    pub(super) fn accept(&mut self, x: &HeaderFields<'_>, memory: &mut CoapReceiverMemory<'_, '_>) {
        self.trial = false;
        self.health.note_repair();
        let is_same = x.port == self.shared.path.port();
        self.since_port = if is_same { self.since_port.saturating_add(1) } else { 0 };
        if let Some(template) = self.shared.template_mut(x.template, memory.templates) {
            self.shared.accept(x, template);
        }
        self.health.state.on_success();
        if let Some(sent) = &mut memory.sent
            && x.names_request
        {
            sent.note_answer(self.name.answers(), x.port, x.request_msn);
        }
        if let Some(received) = &mut memory.received
            && Template::is_own(x.message_type)
        {
            received.note(CoapExchange::of(self.name, x));
        }
    }

    #[inline(always)]
    pub(super) fn count_losses(&mut self, msn: u32) {
        let ahead = msn.wrapping_sub(self.shared.msn) as i32;
        self.seen = self.seen.saturating_add(1);
        match ahead {
            2..256 => self.lost = self.lost.saturating_add(ahead as u16 - 1),
            // A late packet was counted as lost.
            -8..0 => self.lost = self.lost.saturating_sub(1),
            _ => {}
        }
    }

    /// Passes the fields of a packet to `on_field`, as far as this context allows, and returns its format.
    pub(crate) fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        templates: &Templates<'_>,
        bases: &[super::Base],
        mut on_field: impl FnMut(Traced<'p>),
    ) -> Option<Format> {
        let reader = Reader::new(packet.first, packet.rest);
        let (mut x, mut whole) = (HeaderFields::new(self.shared.current), Whole::new(self.shared.path));
        let format = match packet.first {
            0xFD => Format::Ir,
            0xFC => Format::IrCr,
            first => format_of(first, &self.shared)?,
        };
        let mut tracer = Tracer::new(reader, &mut on_field);
        if is_long(format) {
            long(format, &mut tracer, &mut x, &mut whole).ok()?;
        } else {
            short(format, &mut tracer, &mut x).ok()?;
        }
        let mut state = self.shared;
        let mut found = None;
        x.has_checksum = format == Format::Ir;
        if format == Format::IrCr {
            if let Some(base) = bases.get(usize::from(whole.base)) {
                whole.next = base.path();
                formats::differences(&mut tracer, &mut x, &mut whole).ok()?;
                x.carries.ip_id = true;
                found = base.template(x.template);
            }
        } else if x.has_definition && is_outline(whole.outline) {
            found = Some((whole.definition, whole.outline));
        } else {
            let template = self.shared.template(x.template, templates).copied();
            found = template.map(|template| (template, self.shared.outline(&template)));
        }
        let Some((mut template, outline)) = found else { return Some(format) };
        state.path = whole.next;
        template.settle(outline);
        x.holes = Holes::of(outline, template.holes);
        let _ = chain(&mut tracer, &state, &template, has_check(format), &mut x);
        Some(format)
    }
}

impl PacketTail<'_, '_> {
    /// True if rebuilt headers of `len` octets pass the check of the packet. Writes their UDP checksum.
    #[inline]
    pub(super) fn verify(&self, state: &CoapState, x: &HeaderFields<'_>, len: usize, out: &mut [u8]) -> bool {
        let Self { format, template, payload, sum, .. } = *self;
        let mode = state.path.checksum;
        let coap_at = state.path.ip_len() + 8;
        let coap = out.get(coap_at..len).unwrap_or_default();
        let checksum = match mode {
            ChecksumMode::Zero => 0,
            ChecksumMode::Raw => x.checksum,
            ChecksumMode::Carried | ChecksumMode::Elided => {
                header::udp_checksum(state, x.port, coap, header::Payload { len: payload.len(), sum })
            }
        };
        let is_right = if has_check(format) {
            header::check16(state, template, x, checksum) == x.check
        } else {
            let is_carried = mode == ChecksumMode::Carried || mode == ChecksumMode::Elided && x.has_checksum;
            let carried_is_right = !is_carried || x.checksum == checksum;
            carried_is_right && crc_is_right(state, self, x)
        };
        if is_right && let Some(field) = out.get_mut(coap_at - 2..coap_at) {
            field.copy_from_slice(&checksum.to_be_bytes());
        }
        is_right
    }
}

impl MsnSearch<'_, '_> {
    /// Tries a packet that seems to be so far ahead as a late one.
    #[cold]
    fn find_late(&mut self, first: u32, sent: Option<&Exchanges<'_>>) -> Result<Option<usize>, Failure> {
        let (_, k) = self.packet.reader.collected(MSN);
        let is_late = k == 4 && first.wrapping_sub(self.context.shared.msn).cast_signed() >= LATE;
        if is_late { self.with(first.wrapping_sub(1 << k), sent) } else { Ok(None) }
    }

    /// Finds the MSN if more than a turn of MSNs may have passed.
    #[cold]
    fn find_in_doubt(
        &mut self,
        now: Moment,
        first: u32,
        sent: Option<&Exchanges<'_>>,
    ) -> Result<Option<usize>, Failure> {
        let (context, packet) = (self.context, self.packet);
        let (_, k) = packet.reader.collected(MSN);
        let ahead = first.wrapping_sub(context.shared.msn).cast_signed();
        let bits = SequenceBits::new(ahead, 1 << k);
        let passed = context.arrivals.passed(now);
        let mut messages = [0; OF_A_FLOW];
        let messages = match sent {
            Some(sent) if packet.template.refers => sent.msns(context.name.answers(), &mut messages),
            _ => &[],
        };
        // Each candidate is one more that may pass a CRC of 8 bits by chance, where more than the MSN was missed.
        let (_, turns) = msn_interval(k);
        let few = if packet.format == Format::Pt0 { bits.turn } else { bits.turn * (turns + 1) };
        let is_bounded = has_check(packet.format) || passed.is_counted || passed.intervals.is_steady;
        let below = if is_bounded { u32::MAX } else { bits.first + few };
        let mut with = |ahead: i32| {
            self.x.msn = context.shared.msn.wrapping_add_signed(ahead);
            // Most candidates of a packet that refers to a message would refer to none.
            let named = || header::named(&context.shared, packet.template, self.x);
            let is_none = packet.template.refers && !messages.contains(&named());
            self.with(self.x.msn, sent.filter(|_| !is_none))
        };
        // Messages may be repeated.
        let is_again = ahead <= 0 && with(ahead)?.is_some();
        let is_usual = !passed.intervals.is_steady && context.arrivals.has_paused_as_usual(now);
        let search = Search { late: is_again.into(), is_usual, ..Search::new(bits, passed, TRIALS) };
        let attempt = |ahead: u32| Ok(with(ahead.cast_signed())?.is_some().into());
        match search.find(|ahead| ahead < below, attempt)?.proof {
            _ if is_again && is_usual => with(ahead),
            Proof::Late => with(ahead),
            Proof::Nothing => Ok(None),
            Proof::Ahead(ahead, _) => with(ahead.cast_signed()),
            Proof::Ambiguous => Err(Failure::Ambiguous(packet.format)),
        }
    }

    /// Returns the headers with an MSN if they pass their check with it. Records a reference to an unknown message.
    #[inline(always)]
    fn with(&mut self, msn: u32, sent: Option<&Exchanges<'_>>) -> Result<Option<usize>, Failure> {
        let Self { context, packet, .. } = *self;
        self.x.msn = msn;
        let request = context.request(&context.shared, packet.template, context.name, self.x, sent);
        if !header::infer(&context.shared, packet.template, request, self.x) {
            self.is_unknown = true;
            return Ok(None);
        }
        match context.build(&context.shared, packet, self.x, self.out)? {
            None if self.x.names_request => {
                context.build_by_older(&context.shared, packet, self.x, sent, &mut self.older, self.out)
            }
            found => Ok(found),
        }
    }
}

impl CoapExchange {
    /// The message of a packet.
    #[inline]
    pub(super) fn of(flow: FlowName, x: &HeaderFields<'_>) -> Self {
        let mut exchange = Self::new(flow, x.msn as u16, x.message_id, x.token, x.block());
        exchange.port = x.port;
        exchange
    }
}

impl HeaderFields<'_> {
    /// Port of the client in the message that a packet refers to, as far as it is known before.
    #[inline]
    fn port_of_request(&self, state: &CoapState) -> Option<u16> {
        match state.path.port_mode {
            _ if self.carries.port => Some(self.port),
            PortMode::SourceInEach => Some(self.port),
            PortMode::Destination => None,
            PortMode::Fixed | PortMode::Source => Some(state.path.port()),
        }
    }

    /// Number in its Observe option.
    #[inline]
    pub(super) fn observed(&self) -> Option<u32> {
        let mut dynamic = self.holes.as_slice().iter().zip(&self.numbers).rev();
        dynamic.find(|(hole, _)| hole.is_observe && hole.is_number()).map(|(_, number)| *number)
    }

    /// NUM of the Block option of a packet, where it is a number.
    #[inline(always)]
    pub(super) fn block(&self) -> Option<u32> {
        let mut blocks = self.holes.as_slice().iter().zip(&self.numbers);
        blocks
            .find(|(hole, _)| matches!(hole.kind, HoleKind::Block | HoleKind::BlockOfRequest))
            .map(|(_, n)| *n)
    }
}

/// Sum of a payload if a packet of that state is checked with it, otherwise 0.
#[inline]
pub(super) fn sum_for(state: &CoapState, payload: &[u8]) -> u16 {
    match state.path.checksum {
        ChecksumMode::Elided | ChecksumMode::Carried => header::payload_sum(payload),
        ChecksumMode::Zero | ChecksumMode::Raw => 0,
    }
}

/// True if a packet names its port, or a checksum proves it.
#[cold]
fn knows_port(path: &CoapPath, x: &HeaderFields<'_>) -> bool {
    let is_proved = path.checksum == ChecksumMode::Carried;
    x.carries.port || x.names_request || is_proved || path.port_mode == PortMode::SourceInEach
}

#[inline]
fn crc_is_right(state: &CoapState, packet: &PacketTail<'_, '_>, x: &HeaderFields<'_>) -> bool {
    let PacketTail { format, reader, template, payload, sum, .. } = *packet;
    // The check of IR and IR-CR covers their octets.
    if format.is_initialization() {
        return true;
    }
    let Some((width, read)) = reader.crc_read() else { return false };
    let Some(check) = Check::of_width(width) else { return false };
    let (_, sent) = reader.collected(MSN);
    header::crc(state, template, x, check, sent, header::Payload { len: payload.len(), sum }) == read
}

/// Returns the MSN near the last one whose 16 low bits are `bits`.
pub(super) fn nearest(bits: u32, last: u32) -> u32 {
    let ahead = (bits as u16).wrapping_sub(last as u16) as i16;
    last.wrapping_add_signed(i32::from(ahead))
}

const _: () = assert!(ProfileId::Coap.low_octet() == 0x81);
