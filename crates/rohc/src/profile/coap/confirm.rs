//! Feedback at the compressor: fields that need not be repeated, and the quality of the channel. Section 9.5 of
//! `docs/coap-profile.md`.

use thinair_wire::time::Instant;

use super::CoapMemory;
use super::compress::{CoapSenderContext, CoapSenderMemory};
use super::state::{Template, Templates};
use crate::cid::Cid;
use crate::compressor::{CompressorConfig, SenderContext};
use crate::contexts::ContextState;
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::pending::Pending;
use crate::id::ProfileId;

/// Largest number of lost packets in 128 for the use of `pt_0` and steps. Message IDs that jump, because the sender
/// also communicates with others, count as losses; a NACK reports losses that matter.
const CLEAN: u8 = 6;

/// Number of reports without a NACK after which the channel counts as clean again: at first, and at most. Each NACK
/// doubles it.
pub(super) const DISTRUST: (u8, u8) = (2, 64);

impl SenderContext for CoapSenderContext {
    type Room = Template;

    fn form(&self) -> FeedbackForm {
        FeedbackForm::Rfc6846
    }

    /// Handles ACK, NACK and STATIC-NACK. RFC 5225, section 5.2.
    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        config: &CompressorConfig,
        memory: &mut CoapMemory<'_>,
    ) -> Option<Cid> {
        if !self.establishment.admits(now, feedback) {
            return None;
        }
        let (repetitions, templates) = (config.repetitions, &mut memory.templates);
        if let Some(lost) = feedback.loss {
            self.clean = lost <= CLEAN;
            self.distrust = self.distrust.saturating_sub(1);
        }
        match feedback.ack {
            AckType::Ack => self.acknowledge(feedback, templates),
            AckType::Nack => {
                self.distrust = self.next_distrust;
                self.next_distrust = self.next_distrust.saturating_mul(2).min(DISTRUST.1);
                self.establishment.repair(feedback.ack, true, repetitions);
                self.since = self.shared.msn.wrapping_add(1);
                self.define_again(1, templates);
            }
            AckType::StaticNack => {
                self.clean = false;
                self.establishment.repair(feedback.ack, false, repetitions);
                self.opened = false;
                self.since = self.shared.msn.wrapping_add(1);
                self.base = None;
                self.define_again(repetitions, templates);
            }
        }
        None
    }

    fn restart(&mut self, config: &CompressorConfig, memory: &mut CoapMemory<'_>) {
        self.establishment.require_ir(config.repetitions);
        self.base = None;
        self.since = self.shared.msn.wrapping_add(1);
        self.define_again(config.repetitions, &mut memory.templates);
    }

    fn release(&mut self, memory: &mut CoapMemory<'_>) -> bool {
        let had_some = self.shared.numbers().next().is_some();
        self.shared.forget_all(&mut memory.templates);
        had_some
    }

    /// State of the context. It is FO while packets carry all fields that can change.
    fn context_state(&self, cid: Cid) -> ContextState {
        self.establishment.context_state(cid, ProfileId::Coap, Some(self.shared.msn))
    }
}

impl CoapSenderContext {
    /// True if the decompressor has reported that nearly every packet arrives.
    pub(super) fn is_clean(&self) -> bool {
        self.establishment.is_two_way() && self.clean && self.distrust == 0
    }

    /// True if nothing indicates that packets are lost.
    pub(super) fn is_trusted(&self) -> bool {
        self.establishment.is_two_way() && self.distrust == 0
    }

    /// Takes the answer to a message as an acknowledgment: the other end has verified what it answers.
    #[inline]
    pub(super) fn note_answer(&mut self, memory: &mut CoapSenderMemory<'_, '_>) {
        let template = self.shared.template(self.shared.current, memory.templates);
        if template.is_none_or(|template| self.is_settled(template)) {
            return;
        }
        let answered =
            memory.sent.as_ref().and_then(|sent| sent.answered(self.name, self.shared.path.port()));
        if let Some(msn) = answered {
            self.confirm(
                self.shared.msn.wrapping_sub(u32::from((self.shared.msn as u16).wrapping_sub(msn))),
                memory.templates,
            );
        }
    }

    fn acknowledge(&mut self, feedback: &Feedback, templates: &mut Templates<'_>) {
        if let Some(newer) = feedback.newer(self.shared.msn) {
            self.confirm(self.shared.msn.wrapping_sub(newer), templates);
        }
    }

    /// Handles the arrival of the packet with that MSN.
    fn confirm(&mut self, acked: u32, templates: &mut Templates<'_>) {
        if acked.wrapping_sub(self.since) as i32 >= 0 {
            self.establishment.acknowledge();
            self.pending = Pending::NONE;
            self.knows_pt_0 = true;
            for number in self.shared.numbers() {
                // A template is established if a packet that used it is acknowledged.
                if let Some(template) = self.shared.template_mut(number, templates)
                    && acked.wrapping_sub(template.used) as i32 >= 0
                    && template.uses > 0
                    && number == self.shared.current
                {
                    template.left = 0;
                    template.anchors_left = 0;
                }
            }
        }
    }
}
