//! Flows of profile 0x0081, and the interface of the profile.

use thinair_wire::time::Instant;

use super::compress::{CoapSenderContext, CoapSenderMemory};
use super::{Base, CoapMemory, CoapMessage, CoapPath};
use crate::channel::ProfileSet;
use crate::cid::Cid;
use crate::compressor::{
    CompressError, Compressed, Compressor, CompressorConfig, FlowKey, OutgoingPacket, Refused, SenderContext,
    SharedMemory,
};
use crate::contexts::ContextState;
use crate::exchange::Exchanges;
use crate::feedback::{Feedback, FeedbackForm};
use crate::flow::sender::Attempt;
use crate::id::ProfileId;
use crate::mode::Mode;
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
