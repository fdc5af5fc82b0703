//! Flows of profile 0x0081, and the interface of the profile.

use super::compress::{CoapSenderContext, CoapSenderMemory};
use super::{Base, CoapMemory, CoapMessage, CoapPath, decompress};
use crate::channel::{Integrity, ProfileSet};
use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig, FlowKey, OutgoingPacket, Refused};
use crate::contexts::ContextState;
use crate::decompressor::{
    self, Decompressor, DecompressorConfig, Failure, IncomingPacket, NackPolicy, Problem, ReceiverContext,
    Traced, Verified,
};
use crate::exchange::Linked;
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::arrival::Moment;
use crate::flow::health::{Evidence, Health, Verdict};
use crate::flow::sender::{Departure, Flows, Sender, Start};
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::packet::PacketHeader;
use crate::profile::Held;
use crate::storage::Slots;

impl Sender for CoapSenderContext {
    type Packet<'p> = CoapMessage<'p>;
    const PREDICTS: bool = true;

    #[inline]
    fn is_in_use(profiles: ProfileSet, _: &CoapMemory<'_>) -> bool {
        profiles.has(ProfileId::Coap)
    }

    #[inline(always)]
    fn compress_unparsed<'m>(
        &mut self,
        packet: &[u8],
        memory: &mut CoapMemory<'m>,
        departure: &mut Departure<'_, 'm>,
    ) -> Option<Compressed> {
        self.compress_message(packet, memory, departure)
    }

    #[inline(always)]
    fn recognize<'p>(
        packet: &OutgoingPacket<'p, 'p, '_>,
        flows: &mut Flows<'_, '_, Self>,
        recognized: &mut Option<CoapMessage<'p>>,
    ) {
        let message = recognized.insert(CoapMessage::new(packet.chain.packet()));
        let has_path = message.read_path(packet.chain).is_some();
        if has_path && message.read(packet.chain, &flows.config.coap.ports).is_some() {
            return;
        }
        if has_path && flows.memory.guessed > 0 {
            abandon(&message.path, flows);
        }
        *recognized = None;
    }

    #[inline]
    fn is_flow_of(&self, message: &CoapMessage<'_>, _: Cid, _: &CoapMemory<'_>) -> bool {
        self.is_flow_of(&message.path)
    }

    /// A datagram that only looks like CoAP stays with the flow that it has.
    fn yields(message: &CoapMessage<'_>) -> bool {
        message.by_parse
    }

    fn new(
        message: &CoapMessage<'_>,
        start: Start<'_, Self>,
        config: &CompressorConfig,
        memory: &mut CoapMemory<'_>,
    ) -> Self {
        let mut context = Self::new(message, start.now, config);
        memory.guessed = memory.guessed.saturating_add(u32::from(message.by_parse));
        context.begin_with_base(message, config, memory);
        context
    }

    #[inline(always)]
    fn compress<'m>(
        &mut self,
        message: &CoapMessage<'_>,
        _: Option<&Self>,
        memory: &mut CoapMemory<'m>,
        departure: &mut Departure<'_, 'm>,
    ) -> Result<Compressed, Refused> {
        if message.by_parse && self.is_abandoned() {
            return Err(Refused::ByThisPacket);
        }
        let (sent, received) = match departure.linked.take() {
            Some(linked) => (Some(linked.sent), Some(&*linked.received)),
            None => (None, None),
        };
        let CoapMemory { templates, bases, .. } = memory;
        self.compress(message, &mut CoapSenderMemory { templates, sent, received, bases }, departure)
    }
}

/// Handles a packet that is not CoAP. If only a parse showed its flow to be CoAP, the flow is not CoAP from
/// now on.
#[cold]
fn abandon(path: &CoapPath, flows: &mut Flows<'_, '_, CoapSenderContext>) {
    let found = flows.table.find_flow(path, |_, context: &CoapSenderContext| context.is_flow_of(path));
    if let Some(context) = found.ok().and_then(|cid| flows.table.context_mut::<CoapSenderContext>(cid)) {
        context.abandon();
    }
}

impl FlowKey for CoapMessage<'_> {
    #[inline]
    fn key(&self, word: impl FnMut(u64)) {
        self.path.key(word);
    }
}

impl FlowKey for CoapPath {
    #[inline]
    fn key(&self, mut word: impl FnMut(u64)) {
        let half = |octets: &[u8]| octets.first_chunk().map_or(0, |half| u64::from_ne_bytes(*half));
        let [s, d] = [&self.source, &self.destination];
        // IPv4 addresses have four octets each.
        word(half(s) ^ half(d).rotate_left(32));
        if self.v6 {
            word(half(&s[8..]));
            word(half(&d[8..]));
        }
        let ports = u32::from(self.source_port) << 16 | u32::from(self.destination_port);
        word(u64::from(ports) << 16 | ProfileId::Coap as u64);
    }
}

impl<'m> Decompressor<'m> {
    /// Sets the provisioned bases of profile 0x0081, which must be those of the compressor.
    pub fn with_bases(mut self, bases: Slots<'m, Base>) -> Self {
        self.shared.coap.bases = bases;
        self
    }
}

/// Returns the memory that the contexts of a channel share.
fn memory<'a, 'm>(
    linked: Option<Linked<'a, 'm>>,
    config: &DecompressorConfig,
    shared: &'a mut decompressor::SharedMemory<'m>,
) -> decompress::CoapReceiverMemory<'a, 'm> {
    let (sent, received) = match linked {
        Some(linked) => (Some(&*linked.sent), Some(linked.received)),
        None => (None, None),
    };
    let may_elide = config.channel.integrity_below() != Integrity::None;
    decompress::CoapReceiverMemory {
        templates: &mut shared.coap.templates,
        sent,
        received,
        bases: &shared.coap.bases,
        may_elide,
    }
}

impl ReceiverContext for decompress::CoapReceiverContext {
    fn new(_: ProfileId) -> Self {
        Self::new()
    }

    fn profile(&self) -> ProfileId {
        ProfileId::Coap
    }

    fn initialize<'m>(
        decompressor: &mut Decompressor<'m>,
        _: ProfileId,
        packet: IncomingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Result<Verified, Problem> {
        let (at, header) = (packet.at, packet.header);
        let Decompressor { config, shared, contexts, .. } = decompressor;
        let place =
            contexts.get_mut(header.cid.index()).map(|slot| &mut slot.place).ok_or(Problem::NoContext)?;
        let mut memory = memory(packet.linked, config, shared);
        if let Some(context) = Self::of_mut(place) {
            let verified = context.initialize(at, header, &mut memory, out);
            return verified.map_err(Problem::from);
        }
        let mut context = Self::new();
        let verified = context.initialize(at, header, &mut memory, out)?;
        decompressor.set(header.cid, context);
        Ok(verified)
    }

    fn decompress<'m>(
        &mut self,
        packet: IncomingPacket<'_, '_, 'm>,
        config: &DecompressorConfig,
        shared: &mut decompressor::SharedMemory<'m>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let mut memory = memory(packet.linked, config, shared);
        let verified = self.compressed(packet.at, packet.header, &mut memory, out);
        if verified.is_err() {
            self.arrivals.note_failure(packet.at);
        }
        verified
    }

    fn release(&mut self, shared: &mut decompressor::SharedMemory<'_>) {
        self.release(&mut shared.coap.templates);
    }

    fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        _: &DecompressorConfig,
        shared: &decompressor::SharedMemory<'_>,
        on_field: &mut dyn FnMut(Traced<'p>),
    ) -> Option<Format> {
        self.dissect(packet, &shared.coap.templates, &shared.coap.bases, on_field)
    }

    fn context_state(&self, cid: Cid, config: &DecompressorConfig) -> ContextState {
        let (state, sn) = (self.health.state.name(), Some(u32::from(self.msn())));
        ContextState { cid, profile: ProfileId::Coap, state, mode: config.mode, sn }
    }

    #[inline]
    fn note_success(&mut self, _: u8, _: Format, wanted: Mode) -> bool {
        self.health.note_success();
        wanted != Mode::Unidirectional && (self.ack_due || self.has_report())
    }

    fn health_mut(&mut self) -> Option<&mut Health> {
        Some(&mut self.health)
    }

    fn judge(&mut self, _: Moment, _: u8, failure: Option<&Failure>, policy: &NackPolicy<'_>) -> Verdict {
        if let Some(Failure::OnTrial(_)) = failure {
            return Verdict::NoEvidence(None);
        }
        // Earlier successes prove nothing any more.
        self.trial = false;
        Verdict::Evidence(Evidence {
            nack: policy.config.nack,
            // Waiting does not restore a template that was lost.
            is_urgent: matches!(failure, Some(Failure::UnknownTemplate(_))),
            is_repair: matches!(failure, Some(Failure::Crc(Format::CoCommon | Format::CoRepair))),
            static_nack: policy.static_nack(),
        })
    }

    fn complete(&mut self, element: Feedback, format: Option<Format>, _: &DecompressorConfig) -> Feedback {
        let element = Feedback {
            loss: self.report(),
            ..element.with_msn(FeedbackForm::Rfc6846, self.health.state, self.msn())
        };
        let is_first = format.is_some_and(Format::is_initialization);
        if element.ack != AckType::Ack || is_first || element.loss.is_some() {
            return element;
        }
        // FEEDBACK-1: the compressor has received feedback before.
        Feedback { sn: element.sn & 0xFF, sn_bits: 8, protected: false, ..element }
    }
}
