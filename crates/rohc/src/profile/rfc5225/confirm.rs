//! Feedback at the compressor. RFC 5225, sections 5.2.1 and 6.9.

use thinair_wire::time::Instant;

use super::compress::V2SenderContext;
use super::note::changes;
use super::receiver::msn_of;
use super::state::{V2Room, has_rtp};
use crate::cid::Cid;
use crate::compressor::{CompressorConfig, ReorderRatio, SenderContext};
use crate::contexts::ContextState;
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::pending::Pending;
use crate::storage::Slots;

/// Packets by which no packet is late: such an acknowledgment was late itself.
const LATE: u32 = 16;

impl SenderContext for V2SenderContext {
    type Room = V2Room;

    fn form(&self) -> FeedbackForm {
        FeedbackForm::Rfc5225
    }

    fn has_timestamps(&self) -> bool {
        has_rtp(self.profile)
    }

    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        config: &CompressorConfig,
        _: &mut Slots<'_, V2Room>,
    ) -> Option<Cid> {
        if !self.establishment.admits(now, feedback) {
            return None;
        }
        match feedback.ack {
            AckType::Ack => self.acknowledge(feedback, config),
            AckType::Nack if self.caution.repeat_at_once() => {}
            AckType::Nack | AckType::StaticNack => {
                // Section 6.9.2.2: without an MSN, a NACK has the meaning of a STATIC-NACK.
                let has_static = self.is_rooted && feedback.sn_bits > 0;
                self.establishment.repair(feedback.ack, has_static, config.repetitions);
                self.since = self.msn.wrapping_add(1);
                self.caution.refused();
            }
        }
        None
    }

    fn restart(&mut self, config: &CompressorConfig, _: &mut Slots<'_, V2Room>) {
        self.establishment.require_ir(config.refresh.ir_packets(config.repetitions));
        self.changed(self.msn.wrapping_add(1));
    }

    fn context_state(&self, cid: Cid) -> ContextState {
        self.establishment.context_state(cid, self.profile, Some(msn_of(self.profile, self.msn)))
    }
}

impl V2SenderContext {
    fn acknowledge(&mut self, feedback: &Feedback, config: &CompressorConfig) {
        let Some(newer) = feedback.newer(self.msn) else { return };
        self.note_lateness(self.msn.wrapping_sub(newer), config);
        let (width, count) = (usize::from(config.window), newer as usize);
        self.caution.acknowledge(newer);
        self.msns.acknowledge(count, width);
        self.ip_id_offsets.acknowledge(count, width);
        self.timestamps.acknowledge(count, width);
        self.ts_offsets.acknowledge(count, width);
        self.lines.acknowledge(count, width);
        for numbers in &mut self.numbers {
            numbers.acknowledge(count, width);
        }
        if self.msn.wrapping_sub(newer).wrapping_sub(self.since).cast_signed() < 0 {
            return;
        }
        self.is_rooted = true;
        // Everything that has changed is in the packet that was acknowledged, or in one before it.
        self.establishment.acknowledge();
        self.pending = Pending::NONE;
    }

    /// Records an acknowledgment. One that follows that of a newer packet shows that the packet was late: the reorder ratio is raised from
    /// the next packet on.
    fn note_lateness(&mut self, msn: u32, config: &CompressorConfig) {
        let late = self.acknowledged.wrapping_sub(msn);
        if late.cast_signed() <= 0 {
            self.acknowledged = msn;
            return;
        }
        let needed = ReorderRatio::beyond(late);
        if late < LATE && needed > self.reorder_ratio {
            self.reorder_ratio = needed;
            self.pending.require(changes::REORDER_RATIO, config.repetitions);
            self.changed(self.msn.wrapping_add(1));
        }
    }
}
