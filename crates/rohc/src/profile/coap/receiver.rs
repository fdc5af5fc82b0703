//! Contexts of profile 0x0181 at the decompressor: the interface to the framework, and what failures show.

use super::CoapMemory;
use super::decompress::{CoapReceiverContext, CoapReceiverMemory};
use super::state::Template;
use crate::cid::Cid;
use crate::contexts::ContextState;
use crate::decompressor::{
    DecompressorConfig, Failure, IncomingPacket, NackPolicy, ReceiverContext, Traced, Verified,
};
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::arrival::Moment;
use crate::flow::health::{Evidence, Health, Verdict};
use crate::flow::receiver::Receiver;
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::packet::PacketHeader;
use thinair_wire::IS_SMALL;

impl ReceiverContext for CoapReceiverContext {
    fn profile(&self) -> ProfileId {
        ProfileId::Coap
    }

    fn context_state(&self, cid: Cid, config: &DecompressorConfig) -> ContextState {
        let (state, sn) = (self.health.state.name(), Some(self.shared.msn & 0xFFFF));
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
            ..element.with_msn(FeedbackForm::Rfc6846, self.health.state, self.shared.msn as u16)
        };
        let is_first = format.is_some_and(Format::is_initialization);
        if element.ack != AckType::Ack || is_first || element.loss.is_some() {
            return element;
        }
        // FEEDBACK-1: the compressor has received feedback before.
        Feedback { sn: element.sn & 0xFF, sn_bits: 8, protected: false, ..element }
    }
}

impl Receiver for CoapReceiverContext {
    type Room = Template;

    fn new(_: ProfileId) -> Self {
        Self::new()
    }

    fn ir<'m>(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, 'm>,
        _: Option<&Self>,
        memory: &mut CoapMemory<'m>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let (at, header) = (packet.at, packet.header);
        self.initialize(at, header, &mut CoapReceiverMemory::of(packet, memory), out)
    }

    #[inline(always)]
    fn predicted<'m>(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, 'm>,
        memory: &mut CoapMemory<'m>,
        out: &mut [u8],
    ) -> Option<Verified> {
        if IS_SMALL { None } else { self.decompress_message(packet, memory, out) }
    }

    fn compressed<'m>(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, 'm>,
        memory: &mut CoapMemory<'m>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let (at, header) = (packet.at, packet.header);
        self.compressed(at, header, &mut CoapReceiverMemory::of(packet, memory), out)
    }

    fn note_failure(&mut self, at: Moment) {
        self.arrivals.note_failure(at);
    }

    fn release(&mut self, memory: &mut CoapMemory<'_>) {
        self.shared.forget_all(&mut memory.templates);
    }

    fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        _: &DecompressorConfig,
        memory: &CoapMemory<'_>,
        on_field: &mut dyn FnMut(Traced<'p>),
    ) -> Option<Format> {
        self.dissect(packet, &memory.templates, &memory.bases, on_field)
    }
}
