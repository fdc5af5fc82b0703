//! Flows of profile 0x0081, and the interface of the profile.

use thinair_wire::time::Instant;

use super::compress::{CoapSenderContext, CoapSenderMemory};
use super::{Base, CoapMemory, CoapMessage, CoapPath, decompress};
use crate::channel::{Integrity, ProfileSet};
use crate::cid::Cid;
use crate::compressor::{
    CompressError, Compressed, Compressor, CompressorConfig, FlowKey, OutgoingPacket, Refused, SenderContext,
    SharedMemory,
};
use crate::contexts::ContextState;
use crate::decompressor::{
    self, Decompressor, DecompressorConfig, Failure, IncomingPacket, NackPolicy, Problem, ReceiverContext,
    Traced, Verified,
};
use crate::exchange::{Exchanges, Linked};
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::arrival::Moment;
use crate::flow::health::{Evidence, Health, Verdict};
use crate::flow::sender::Attempt;
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::packet::PacketHeader;
use crate::profile::Held;
use crate::storage::Slots;

impl SenderContext for CoapSenderContext {
    #[inline]
    fn compress_packet<'m>(
        compressor: &mut Compressor<'m>,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>> {
        if !compressor.config.channel.profiles().has(ProfileId::Coap) {
            return None;
        }
        compressor.coap(packet, out)
    }

    #[inline]
    fn predicts(profiles: ProfileSet) -> bool {
        profiles.has(ProfileId::Coap)
    }

    #[inline]
    fn compress_predicted<'m>(
        compressor: &mut Compressor<'m>,
        now: Instant,
        packet: &[u8],
        sent: Option<&mut Exchanges<'m>>,
        out: &mut [u8],
    ) -> Option<Compressed> {
        compressor.compress_message(now, packet, sent, out)
    }

    fn form(&self) -> FeedbackForm {
        FeedbackForm::Rfc6846
    }

    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        config: &CompressorConfig,
        shared: &mut SharedMemory<'_>,
    ) -> Option<Cid> {
        self.receive_feedback(now, feedback, config.repetitions, &mut shared.coap.templates);
        None
    }

    fn restart(&mut self, config: &CompressorConfig, shared: &mut SharedMemory<'_>) {
        self.restart(config.repetitions, &mut shared.coap.templates);
    }

    fn release(&mut self, shared: &mut SharedMemory<'_>) -> bool {
        self.release(&mut shared.coap.templates)
    }

    fn context_state(&self, cid: Cid) -> ContextState {
        let (state, two_way, msn) = self.summary();
        ContextState {
            cid,
            profile: ProfileId::Coap,
            state,
            mode: Mode::with_feedback(two_way),
            sn: Some(msn),
        }
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

impl<'m> Compressor<'m> {
    /// Sets the provisioned bases of profile 0x0081, of which at most 256 are used. They are a parameter of the
    /// channel: the decompressor must have the same, in the same order.
    pub fn with_bases(mut self, bases: Slots<'m, Base>) -> Self {
        self.shared.coap.bases = bases;
        self
    }

    /// Iterates over the templates that the contexts of profile 0x0081 have learned, as bases for similar flows,
    /// by CID.
    pub fn learned_bases(&self) -> impl Iterator<Item = Base> + '_ {
        let contexts = self.flows.places().filter_map(|(_, place)| CoapSenderContext::of(place));
        contexts.map(|context| context.learned(&self.shared.coap.templates))
    }

    /// Compresses a CoAP message; `None` if another profile has to compress the packet.
    #[inline(never)]
    fn coap(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>> {
        let mut path = CoapPath::default();
        let read = path.read(packet.chain)?;
        let Some(message) = CoapMessage::of(packet.chain, &path, read, &self.config.coap.ports) else {
            if self.shared.coap.guessed > 0 {
                self.not_coap(&path);
            }
            return None;
        };
        self.message(&message, packet, out)?.done()
    }

    /// Compresses a CoAP message.
    #[inline(always)]
    fn message(
        &mut self,
        message: &CoapMessage<'_>,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Attempt> {
        let now = packet.now;
        let is_it = |_, context: &CoapSenderContext| context.is_flow_of(message.path);
        let found = self.flows.find_flow(message.path, is_it);
        let cid = match found {
            Ok(cid) => cid,
            // A datagram that only looks like CoAP stays with the flow that it has.
            Err(_) if message.by_parse && self.has_flow(packet) => return None,
            Err(hash) => {
                let newcomer = self.admit(now, hash, message.packet)?;
                let cid = self.begin(packet, newcomer, None)?;
                self.flows.set(cid, CoapSenderContext::new(message, now, &self.config));
                let guessed = &mut self.shared.coap.guessed;
                *guessed = guessed.saturating_add(u32::from(message.by_parse));
                cid
            }
        };
        let (sent, received) = match packet.linked.take() {
            Some(linked) => (Some(linked.sent), Some(&*linked.received)),
            None => (None, None),
        };
        Some(self.compress_with(cid, out, |context: &mut CoapSenderContext, config, shared, out| {
            let CoapMemory { templates, bases, .. } = &mut shared.coap;
            let mut memory = CoapSenderMemory { templates, sent, received, bases };
            if message.by_parse && context.is_abandoned() {
                return Err(Refused::ByThisPacket);
            }
            if found.is_err() {
                context.begin_with_base(message, config, &mut memory);
            }
            context.compress(now, message, cid, config, &mut memory, out)
        }))
    }

    /// Handles a packet that is not CoAP. If only a parse showed its flow to be CoAP, the flow is not CoAP from
    /// now on.
    #[cold]
    fn not_coap(&mut self, path: &CoapPath) {
        let found = self.flows.find_flow(path, |_, context: &CoapSenderContext| context.is_flow_of(path));
        if let Some(context) = found.ok().and_then(|cid| self.flows.context_mut::<CoapSenderContext>(cid)) {
            context.abandon();
        }
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
