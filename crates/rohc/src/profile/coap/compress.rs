//! Compression of the packets of one context. Section 9 of `docs/coap-profile.md`.

use thinair_wire::coder::{Lsb, Step, Writer};
use thinair_wire::crc::Check;
use thinair_wire::time::Instant;
use thinair_wire::window::Window;

use super::confirm::DISTRUST;
use super::formats::{self, MSN, chain, control_crc, format_for, has_check, is_long, long, msn_bits, short};
use super::header;
use super::ip_id::IpIdWatcher;
use super::message::CoapMessage;
use super::note::changes;
use super::ports::{ContextUse, FormerPort};
use super::replicate::differences;
use super::state::{
    ChecksumMode, CoapPath, CoapState, FlowName, MessageIdMode, PortMode, Template, Templates, TokenMode,
};
use super::trial::Trial;
use super::{Base, Carries, CoapMemory, Differences, HeaderFields, Least, MOST_LOST, Whole, msn_interval};
use crate::compressor::{Compressed, CompressorConfig, FormatPolicy, Refused};
use crate::exchange::{CoapExchange, Exchanges};
use crate::flow::caution::Caution;
use crate::flow::establish::Establishment;
use crate::flow::pace::steps;
use crate::flow::pending::Pending;
use crate::flow::refresh::Due;
use crate::flow::search::TRIALS;
use crate::flow::sender::Departure;
use crate::framing::CidFrame;
use crate::id::{Format, ProfileId};

/// Memory of the channel that a context uses.
pub(crate) struct CoapSenderMemory<'a, 'm> {
    pub(crate) templates: &'a mut Templates<'m>,
    /// Messages that this end has sent.
    pub(crate) sent: Option<&'a mut Exchanges<'m>>,
    /// Messages that this end has received.
    pub(crate) received: Option<&'a Exchanges<'m>>,
    pub(crate) bases: &'a [Base],
}

/// The context of one flow at the compressor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoapSenderContext {
    pub(super) shared: CoapState,
    pub(super) name: FlowName,
    pub(super) establishment: Establishment,
    /// The decompressor has reported few losses.
    pub(super) clean: bool,
    /// Number of reports to wait for after a NACK, and after the next one.
    pub(super) distrust: u8,
    pub(super) next_distrust: u8,
    /// Templates that were established before a refresh and have to be defined again because of it, a bit each.
    pub(super) again: u16,
    /// The decompressor has the information that `pt_0` is in use.
    pub(super) knows_pt_0: bool,
    /// An IR or IR-CR packet was sent. The next ones keep the templates that it has defined.
    pub(super) opened: bool,
    /// The base that IR-CR packets replicate.
    pub(super) base: Option<u8>,
    pub(super) pending: Pending<{ changes::COUNT }>,
    /// MSN of the newest change.
    pub(super) since: u32,
    pub(super) msns: Window<u16>,
    pub(super) ip_id: IpIdWatcher,
    pub(super) last_message_id: u16,
    /// Own Message IDs were sent.
    pub(super) counts_own: bool,
    /// One bit per packet, the newest lowest: the template was another one than that of the packet before.
    pub(super) switches: u32,
    pub(super) caution: Caution,
    /// Ports that flows of the context had.
    pub(super) former: FormerPort,
    pub(super) used_for: ContextUse,
}

/// A packet whose encoding was chosen.
pub(super) struct MessageToSend<'a> {
    pub(super) now: Instant,
    pub(super) headers: &'a [u8],
    pub(super) payload: &'a [u8],
    /// The context determines all fields, and nothing has to be repeated.
    pub(super) is_quiet: bool,
}

impl CoapSenderContext {
    /// Creates a context for the flow of a packet.
    pub(crate) fn new(message: &CoapMessage<'_>, now: Instant, config: &CompressorConfig) -> Self {
        let mut shared = CoapState::new();
        shared.path = message.path;
        shared.settle();
        // The MSN starts at the Message ID, so that its anchor is 0.
        shared.msn = u32::from(message.message_id);
        let mut context = Self {
            name: shared.path.name(),
            shared,
            establishment: Establishment::new(now, config.refresh.ir_packets(config.repetitions)),
            clean: false,
            distrust: 0,
            next_distrust: DISTRUST.0,
            again: 0,
            knows_pt_0: false,
            opened: false,
            base: None,
            pending: Pending::NONE,
            since: u32::from(message.message_id),
            msns: Window::new(),
            ip_id: IpIdWatcher::default(),
            last_message_id: message.message_id,
            counts_own: false,
            switches: 0,
            caution: Caution::default(),
            former: FormerPort::default(),
            used_for: match shared.path.port_mode {
                PortMode::Fixed => ContextUse::OneFlow,
                PortMode::Source | PortMode::Destination | PortMode::SourceInEach => ContextUse::Shared,
            },
        };
        if !context.shared.path.v6 {
            context.shared.path.ip_id_mode = IpIdWatcher::first(message.ip_id);
        }
        context
    }

    /// True if a packet belongs to this flow.
    #[inline]
    pub(crate) fn is_flow_of(&self, path: &CoapPath) -> bool {
        self.shared.path.is_flow_of(path)
    }

    /// True if a packet of another flow may take over the context.
    #[inline]
    pub(crate) fn is_shared_by(&self, path: &CoapPath) -> bool {
        self.used_for == ContextUse::Shared
            && path.port_mode != PortMode::Fixed
            && self.shared.path.is_alike(path)
    }

    /// True if the flow is not CoAP after all.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.used_for == ContextUse::Abandoned
    }

    /// Marks the flow as not CoAP.
    pub(crate) fn abandon(&mut self) {
        self.used_for = ContextUse::Abandoned;
    }

    /// Returns the learned templates as a base for similar flows.
    pub(crate) fn learned(&self, memory: &CoapMemory<'_>) -> Base {
        Base::of(&self.shared, &memory.templates)
    }

    /// Compresses a packet of this flow.
    #[inline(always)]
    pub(crate) fn compress(
        &mut self,
        message: &CoapMessage<'_>,
        memory: &mut CoapSenderMemory<'_, '_>,
        departure: &mut Departure<'_, '_>,
    ) -> Result<Compressed, Refused> {
        let (now, config) = (departure.now, departure.config);
        self.note_answer(memory);
        let policy = config.policy(self.establishment.is_two_way());
        if self.establishment.begin_packet(now, policy) == Due::Everything {
            self.refresh_templates(memory.templates);
        }
        self.note_path(message, config);
        let mut trial = Trial::new(self.shared.current);
        self.choose(message, &mut trial, config, memory)?;
        self.note_controls(message, &mut trial.x, config);
        if self.would_be_late(&trial.x, memory.templates) {
            trial = self.trial(trial.x.template, message, memory).ok_or(Refused::ByThisPacket)?;
        }
        // The checksum, which may have proved the port, may not be carried any more.
        trial.x.carries.port |= self.pending.has(changes::CONTROL) && self.needs_port(&trial.x);
        let Trial { x, payload, .. } = &mut trial;
        let headers = &message.packet[..message.packet.len() - payload.len()];
        let known = self.shared.template(x.template, memory.templates).ok_or(Refused::ByThisPacket)?;
        let is_quiet = self.is_quiet(x, known);
        if !is_quiet {
            self.repeat(x, config, memory.templates);
        }
        self.send(&MessageToSend { now, headers, payload, is_quiet }, x, memory, departure)
    }

    /// Writes a packet whose encoding was chosen, and records it.
    pub(super) fn send(
        &mut self,
        message: &MessageToSend<'_>,
        x: &mut HeaderFields<'_>,
        memory: &mut CoapSenderMemory<'_, '_>,
        departure: &mut Departure<'_, '_>,
    ) -> Result<Compressed, Refused> {
        let (cid, config) = (departure.cid, departure.config);
        let MessageToSend { now, headers, payload, is_quiet } = *message;
        if is_quiet || !self.establishment.is_ir() {
            self.shared.check();
        }
        let known = self.shared.template_mut(x.template, memory.templates).ok_or(Refused::ByThisPacket)?;
        let frame = CidFrame::new(cid, config.channel.cids());
        let mut writer = Writer::new(departure.out, frame.len());
        let format = self.write(message, &mut writer, x, known, config, memory.bases);
        let format = format.map_err(|_| Refused::ByThisPacket)?;
        let end = writer.finish()?;
        let len = frame.close(end, payload, departure.out)?;
        let initializes = !is_quiet && format.is_initialization();
        if initializes {
            frame.fill_crc8(end, departure.out);
        }
        self.former.note(x.msn, x.port, self.shared.path.port());
        self.caution.sent(now, steps(x.msn.wrapping_sub(self.shared.msn).cast_signed()));
        self.shared.accept(x, known);
        self.msns.push(x.msn as u16, usize::from(config.window));
        known.uses = known.uses.saturating_add(1);
        if Template::is_own(x.message_type) {
            self.counts_own = true;
            if let Some(sent) = &mut memory.sent {
                sent.note(CoapExchange::of(self.name, x));
            }
        }
        let refresh = !is_quiet && self.note_sent(x, format, config, memory.templates);
        let (profile, header_in) = (ProfileId::Coap, headers.len());
        let compressed = Compressed { cid, profile, format, header_in, header_out: end, len, refresh };
        let policy = config.policy(self.establishment.is_two_way());
        self.establishment.sent(now, &compressed, initializes, policy);
        Ok(compressed)
    }

    /// True if every packet carries all fields anyway, so that changes of templates cost nothing.
    pub(super) fn is_unsettled(&self) -> bool {
        self.establishment.is_ir()
    }

    /// True if no packet was sent yet.
    pub(super) fn is_first(&self) -> bool {
        self.msns.is_empty()
    }

    /// True if the next packet of a template makes a change that would not be taken over from a late one: its MSN must not go back.
    pub(super) fn is_changing(&self, number: u8, template: &Template) -> bool {
        let has = |field: usize| self.pending.has(field);
        let is_again = self.again >> (number & 0xF) & 1 != 0;
        let is_new = template.left > 0 && !is_again;
        is_new || has(changes::CONTROL) || has(changes::IP) || has(changes::PORT)
    }

    /// True if the MSN of a packet goes back.
    fn goes_back(&self, x: &HeaderFields<'_>) -> bool {
        !self.is_first() && x.msn.wrapping_sub(self.shared.msn).cast_signed() < 0
    }

    /// True if a packet whose MSN goes back makes a change after all.
    #[inline]
    fn would_be_late(&self, x: &HeaderFields<'_>, templates: &Templates<'_>) -> bool {
        let known = || self.shared.template(x.template, templates);
        self.goes_back(x) && known().is_none_or(|known| self.is_changing(x.template, known))
    }

    /// True if a decompressor may take a packet for one of another flow, since it goes back or far ahead.
    pub(super) fn needs_port(&self, x: &HeaderFields<'_>) -> bool {
        let ahead = x.msn.wrapping_sub(self.shared.msn).cast_signed();
        let is_next = (0..=MOST_LOST).contains(&ahead) || !self.former.is_recent() || x.names_request;
        !is_next
            && self.shared.path.checksum != ChecksumMode::Carried
            && self.shared.path.port_mode != PortMode::SourceInEach
    }

    /// True if the context determines all fields of a packet, and nothing has to be repeated.
    #[inline]
    fn is_quiet(&self, x: &HeaderFields<'_>, template: &Template) -> bool {
        self.is_settled(template) && x.carries.is_nothing()
    }

    /// True if nothing of the context or of a template has to be repeated.
    #[inline]
    pub(super) fn is_settled(&self, template: &Template) -> bool {
        let is_known = template.left | template.anchors_left == 0;
        is_known && self.establishment.is_established() && self.pending.is_none()
    }

    /// Writes the smallest format that has all fields.
    #[inline]
    fn write(
        &self,
        message: &MessageToSend<'_>,
        writer: &mut Writer<'_>,
        x: &mut HeaderFields<'_>,
        template: &Template,
        config: &CompressorConfig,
        bases: &[Base],
    ) -> Step<Format> {
        let MessageToSend { now, headers, payload, is_quiet } = *message;
        let shared = &self.shared;
        let needed = self.needed_bits(now, x);
        writer.offer(MSN, Lsb { value: u32::from(x.msn as u16), needed });
        let initializes = !is_quiet && self.establishment.is_ir();
        if initializes {
            let format = self.write_ir(writer, x, template, headers, bases)?;
            chain(writer, shared, template, has_check(format), x)?;
            return Ok(format);
        }
        x.carries.msn = needed > 8;
        let format = format_for(shared, self.least(is_quiet, x, template, config), x.template, needed);
        if is_long(format) {
            self.write_long(format, writer, x, template)?;
        } else {
            x.check = self.check_of(format, x, template);
            short(format, writer, x)?;
        }
        chain(writer, shared, template, has_check(format), x)?;
        self.fill_crc(format, writer, x, template, payload);
        Ok(format)
    }

    /// Returns the CHECK of a packet, if its format has one.
    #[inline(always)]
    pub(super) fn check_of(&self, format: Format, x: &HeaderFields<'_>, template: &Template) -> u16 {
        if has_check(format) { header::check16(&self.shared, template, x, x.checksum) } else { 0 }
    }

    /// Writes the CRC of a packet, if its format has one.
    #[inline(always)]
    pub(super) fn fill_crc(
        &self,
        format: Format,
        writer: &mut Writer<'_>,
        x: &HeaderFields<'_>,
        template: &Template,
        payload: &[u8],
    ) {
        if let Some(check) = Check::of_width(writer.crc_width()) {
            let sent = if x.carries.msn { 16 } else { msn_bits(format) };
            let is_elided = self.shared.path.checksum == ChecksumMode::Elided;
            let sum = if is_elided { header::payload_sum(payload) } else { 0 };
            let payload = header::Payload { len: payload.len(), sum };
            writer.fill_crc(header::crc(&self.shared, template, x, check, sent, payload));
        }
    }

    /// Writes `co_common` or `co_repair` up to the chain.
    #[inline(never)]
    fn write_long(
        &self,
        format: Format,
        writer: &mut Writer<'_>,
        x: &mut HeaderFields<'_>,
        template: &Template,
    ) -> Step {
        x.has_ip = self.pending.has(changes::IP);
        x.has_control = self.pending.has(changes::CONTROL);
        x.has_definition = template.left > 0;
        let mut whole = self.whole(template, x);
        whole.control_crc = control_crc(&self.shared, x.template, template);
        long(format, writer, x, &mut whole)
    }

    /// Returns the fields of long formats.
    fn whole(&self, template: &Template, x: &HeaderFields<'_>) -> Whole<'_> {
        let outline = self.shared.outline(template);
        let next = self.shared.path.with_port(x.port);
        Whole { definition: *template, outline, ..Whole::new(next) }
    }

    /// Writes IR or IR-CR up to the chain.
    #[cold]
    fn write_ir(
        &self,
        writer: &mut Writer<'_>,
        x: &mut HeaderFields<'_>,
        template: &Template,
        headers: &[u8],
        bases: &[Base],
    ) -> Step<Format> {
        let shared = &self.shared;
        let mut whole = self.whole(template, x);
        x.carries.port = false;
        if let Some((number, base)) = self.base.and_then(|n| Some((n, bases.get(usize::from(n))?))) {
            let own_id = x.message_id.wrapping_sub(x.msn as u16);
            let counted = template.message_id == MessageIdMode::Counted;
            x.carries = Carries {
                ip_id: true,
                message_id: counted && own_id != 0,
                token: template.token_mode != TokenMode::Static
                    && template.token_mode != TokenMode::Irregular,
                numbers: !template.is_plain(),
                ..Carries::NOTHING
            };
            if let Some(differences) = differences(&base.path(), &whole.next) {
                whole.base = number;
                let more = x.template != 0 || differences.flow_label;
                whole.differences = Differences { template: more, ..differences };
                let says = x.carries.message_id || x.carries.token || x.carries.numbers;
                whole.differs = says || whole.differences != Differences::default();
                whole.header_crc = header::crc_of_headers(headers, shared.path.v6);
                long(Format::IrCr, writer, x, &mut whole)?;
                formats::differences(writer, x, &mut whole)?;
                return Ok(Format::IrCr);
            }
        }
        x.keep = self.opened;
        x.has_checksum = true;
        long(Format::Ir, writer, x, &mut whole)?;
        Ok(Format::Ir)
    }

    #[inline]
    pub(super) fn least(
        &self,
        is_quiet: bool,
        x: &HeaderFields<'_>,
        template: &Template,
        config: &CompressorConfig,
    ) -> Least {
        let has = |field: usize| self.pending.has(field);
        if !is_quiet {
            if !self.establishment.is_established() {
                return Least::CoRepair;
            }
            if has(changes::CONTROL) || has(changes::IP) || template.left > 0 {
                return Least::CoCommon;
            }
            let switches = has(changes::SWITCH) && !self.shared.path.switching;
            if switches || !x.carries.is_nothing() {
                return Least::Pt2;
            }
        }
        let is_carried = self.shared.path.checksum == ChecksumMode::Carried;
        if self.shared.path.pt_0 && self.knows_pt_0 || is_carried && config.coap.format != FormatPolicy::Pt1 {
            Least::Pt0
        } else {
            Least::Pt1
        }
    }

    /// Number of bits of the MSN that are enough for every MSN that the decompressor may have: 4, 6, 7, 8 or 16. After a pause
    /// the decompressor tries up to 256 turns of these. Checks distinguish them, unless the packet carries a field that the MSN
    /// determines elsewhere.
    #[inline]
    fn needed_bits(&self, now: Instant, x: &HeaderFields<'_>) -> u32 {
        // The CRC of 3 bits of the smallest format does not.
        let has_check =
            !(self.shared.path.pt_0 && self.knows_pt_0) || self.shared.path.checksum == ChecksumMode::Carried;
        let told_apart = if x.carries.is_nothing() && has_check { TRIALS.ilog2() } else { 0 };
        self.bits_for(x.msn as u16, self.caution.bits(now, 1).saturating_sub(told_apart))
    }

    /// Number of bits for an MSN, at least as many as a `careful` compressor sends.
    #[inline]
    pub(super) fn bits_for(&self, low: u16, careful: u32) -> u32 {
        let Some((lowest, highest)) = self.msns.bounds() else { return 16 };
        let fits = |k: u32| {
            let (below, _) = msn_interval(k);
            let ahead = |reference: u16| u32::from(low.wrapping_sub(reference).wrapping_add(below as u16));
            k >= careful && ahead(lowest) < 1 << k && ahead(highest) < 1 << k
        };
        if fits(4) { 4 } else { [6, 7, 8].into_iter().find(|&k| fits(k)).unwrap_or(16) }
    }
}
