//! Feedback at the compressor. RFC 5225, section 5.2.

use thinair_wire::time::Instant;

use super::compress::DtlsSenderContext;
use crate::cid::Cid;
use crate::compressor::{CompressorConfig, SenderContext};
use crate::contexts::ContextState;
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::pending::Pending;
use crate::id::ProfileId;
use crate::storage::Shared;

impl SenderContext for DtlsSenderContext {
    type Room = ();

    fn form(&self) -> FeedbackForm {
        FeedbackForm::Rfc6846
    }

    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        config: &CompressorConfig,
        _: &mut Shared<'_, ()>,
    ) -> Option<Cid> {
        let missing_base = self.base.filter(|_| feedback.ack == AckType::StaticNack);
        if !self.establishment.admits(now, feedback) {
            return missing_base;
        }
        if feedback.ack != AckType::Ack {
            // RFC 4164, section 3.3.3.4.
            (self.is_confirmed, self.base) = (false, None);
        }
        match feedback.ack {
            AckType::Ack => self.acknowledge(feedback),
            AckType::Nack => self.repair(feedback.ack, true, config),
            AckType::StaticNack => self.repair(feedback.ack, false, config),
        }
        missing_base
    }

    fn restart(&mut self, config: &CompressorConfig, _: &mut Shared<'_, ()>) {
        self.establishment.require_ir(config.repetitions);
        self.base = None;
        self.since = self.state.msn.wrapping_add(1);
    }

    fn withdraw_as_base(&mut self) {
        self.is_confirmed = false;
    }

    fn context_state(&self, cid: Cid) -> ContextState {
        self.establishment.context_state(cid, ProfileId::Dtls, Some(self.state.msn.into()))
    }
}

impl DtlsSenderContext {
    fn repair(&mut self, ack: AckType, has_static: bool, config: &CompressorConfig) {
        self.establishment.repair(ack, has_static, config.repetitions);
        self.since = self.state.msn.wrapping_add(1);
    }

    /// Handles the arrival of a packet. If the newest change was in it, or in one before it, the decompressor has all of them.
    fn acknowledge(&mut self, feedback: &Feedback) {
        let Some(newer) = feedback.newer(self.state.msn.into()) else { return };
        let acked = self.state.msn.wrapping_sub(newer as u16);
        if acked.wrapping_sub(self.since).cast_signed() >= 0 {
            self.is_confirmed |= feedback.protected;
            self.base = None;
            self.establishment.acknowledge();
            self.pending = Pending::NONE;
        }
    }
}
