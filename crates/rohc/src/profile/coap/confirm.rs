//! Feedback at the compressor: fields that need not be repeated, and the quality of the channel. Section 9.5 of
//! `docs/coap-profile.md`.

use thinair_wire::time::Instant;

use super::compress::CoapSenderContext;
use super::state::Templates;
use crate::feedback::{AckType, Feedback};
use crate::flow::pending::Pending;

/// Largest number of lost packets in 128 for the use of `pt_0` and steps. Message IDs that jump, because the sender
/// also communicates with others, count as losses; a NACK reports losses that matter.
const CLEAN: u8 = 6;

/// Number of reports without a NACK after which the channel counts as clean again: at first, and at most. Each NACK
/// doubles it.
pub(super) const DISTRUST: (u8, u8) = (2, 64);

impl CoapSenderContext {
    /// Returns state, presence of feedback, and the MSN of the newest packet, for monitoring. The state is FO while
    /// packets carry all fields that can change.
    pub(crate) fn summary(&self) -> (&'static str, bool, u32) {
        (self.establishment.state().name(), self.establishment.is_two_way(), self.shared.msn)
    }

    /// True if the decompressor has reported that nearly every packet arrives.
    pub(super) fn is_clean(&self) -> bool {
        self.establishment.is_two_way() && self.clean && self.distrust == 0
    }

    /// True if nothing indicates that packets are lost.
    pub(super) fn is_trusted(&self) -> bool {
        self.establishment.is_two_way() && self.distrust == 0
    }

    /// Handles ACK, NACK and STATIC-NACK. RFC 5225, section 5.2.
    pub(crate) fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        repetitions: u8,
        templates: &mut Templates<'_>,
    ) {
        if !self.establishment.admits(now, feedback) {
            return;
        }
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
    }

    fn acknowledge(&mut self, feedback: &Feedback, templates: &mut Templates<'_>) {
        let Some(newer) = feedback.newer(self.shared.msn) else { return };
        let acked = self.shared.msn.wrapping_sub(newer);
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
