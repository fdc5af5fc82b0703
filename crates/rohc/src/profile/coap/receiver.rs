//! Contexts of profile 0x0081 at the decompressor: the interface to the framework, and what failures show.

use super::Base;
use super::decompress::{CoapReceiverContext, CoapReceiverMemory};
use crate::channel::Integrity;
use crate::cid::Cid;
use crate::contexts::ContextState;
use crate::decompressor::{
    self, Decompressor, DecompressorConfig, Failure, IncomingPacket, NackPolicy, Problem, ReceiverContext,
    Traced, Verified,
};
use crate::exchange::Linked;
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::arrival::Moment;
use crate::flow::health::{Evidence, Health, Verdict};
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::packet::PacketHeader;
use crate::profile::Held;
use crate::storage::Slots;

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
) -> CoapReceiverMemory<'a, 'm> {
    let (sent, received) = match linked {
        Some(linked) => (Some(&*linked.sent), Some(linked.received)),
        None => (None, None),
    };
    let may_elide = config.channel.integrity_below() != Integrity::None;
    CoapReceiverMemory {
        templates: &mut shared.coap.templates,
        sent,
        received,
        bases: &shared.coap.bases,
        may_elide,
    }
}

impl ReceiverContext for CoapReceiverContext {
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
