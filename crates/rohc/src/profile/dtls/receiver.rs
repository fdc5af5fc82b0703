//! The interface of the profile at the decompressor: states, and feedback. RFC 5225, section 5.3.

use thinair_wire::coder::Reader;

use super::HeaderFields;
use super::decompress::DtlsReceiverContext;
use super::formats::ir_cr_head;
use super::state::DtlsState;
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
use crate::storage::Shared;

impl ReceiverContext for DtlsReceiverContext {
    fn profile(&self) -> ProfileId {
        ProfileId::Dtls
    }

    fn context_state(&self, cid: Cid, config: &DecompressorConfig) -> ContextState {
        let (state, sn) = (self.health.state.name(), Some(self.state.msn.into()));
        ContextState { cid, profile: ProfileId::Dtls, state, mode: config.mode, sn }
    }

    #[inline]
    fn note_success(&mut self, _: u8, _: Format, wanted: Mode) -> bool {
        self.health.note_success();
        wanted != Mode::Unidirectional && self.ack_due
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
            is_urgent: false,
            is_repair: matches!(failure, Some(Failure::Crc(Format::CoRepair))),
            static_nack: policy.static_nack(),
        })
    }

    fn complete(&mut self, element: Feedback, format: Option<Format>, _: &DecompressorConfig) -> Feedback {
        let element = element.with_msn(FeedbackForm::Rfc6846, self.health.state, self.state.msn);
        let is_first = format.is_some_and(Format::is_initialization);
        if element.ack != AckType::Ack || is_first {
            return element;
        }
        // FEEDBACK-1: the compressor has received feedback before.
        Feedback { sn: element.sn & 0xFF, sn_bits: 8, protected: false, ..element }
    }
}

impl Receiver for DtlsReceiverContext {
    type Room = ();

    fn new(_: ProfileId) -> Self {
        Self::new(DtlsState::default())
    }

    fn base_of(packet: &IncomingPacket<'_, '_, '_>) -> Option<Cid> {
        let mut x = HeaderFields::default();
        let mut reader = Reader::new(packet.header.first, packet.header.rest);
        ir_cr_head(&mut reader, &mut x, &mut DtlsState::default()).ok()?;
        x.base
    }

    fn ir<'m>(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, 'm>,
        base: Option<&Self>,
        _: &mut Shared<'m, ()>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        self.initialize(packet, base, out)
    }

    fn compressed<'m>(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, 'm>,
        _: &mut Shared<'m, ()>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        self.receive(packet, out)
    }

    fn note_failure(&mut self, at: Moment) {
        self.arrivals.note_failure(at);
    }

    fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        _: &DecompressorConfig,
        _: &Shared<'_, ()>,
        on_field: &mut dyn FnMut(Traced<'p>),
    ) -> Option<Format> {
        self.fields(packet, on_field)
    }
}
