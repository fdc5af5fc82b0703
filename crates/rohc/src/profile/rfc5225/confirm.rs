//! What feedback tells the compressor. RFC 5225, sections 5.2.1 and 6.9.

use thinair_wire::time::Instant;

use super::compress::V2SenderContext;
use super::note::said;
use crate::compressor::{CompressorConfig, ReorderRatio};
use crate::feedback::{AckType, Feedback};

/// Packets by which no packet is late: such an acknowledgment was late itself.
const LATE: u32 = 16;

impl V2SenderContext {
    /// ACK, NACK and STATIC-NACK.
    pub(super) fn note_feedback(&mut self, now: Instant, feedback: &Feedback, config: &CompressorConfig) {
        // Damage could look like FEEDBACK-1, and would end the refreshes of a channel without feedback.
        if !self.two_way && !feedback.protected {
            return;
        }
        if !self.two_way {
            self.two_way = true;
            self.timer.restart(now);
        }
        match feedback.ack {
            AckType::Ack => self.acknowledge(feedback, config),
            AckType::Nack if self.caution.repeat_at_once() => {}
            // Section 6.9.2.2: without an MSN, a NACK means the same as a STATIC-NACK.
            AckType::Nack if feedback.sn_bits > 0 && self.is_rooted => {
                self.left_repair = self.left_repair.max(config.repetitions);
                self.ask_for_repair();
            }
            AckType::Nack | AckType::StaticNack => {
                self.left_ir = self.left_ir.max(config.repetitions);
                self.ask_for_repair();
            }
        }
    }

    fn ask_for_repair(&mut self) {
        self.since = self.msn.wrapping_add(1);
        self.refreshing = true;
        self.caution.refused();
    }

    fn acknowledge(&mut self, feedback: &Feedback, config: &CompressorConfig) {
        let bits = feedback.sn_bits.min(16);
        if bits == 0 {
            return;
        }
        // The newest MSN with these bits that was sent.
        let newer = self.msn.wrapping_sub(feedback.sn) & ((1 << bits) - 1);
        self.note_lateness(self.msn.wrapping_sub(newer));
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
        (self.left_ir, self.left_repair, self.refreshing, self.due) = (0, 0, false, 0);
    }

    /// An acknowledgment behind that of a newer packet: the packet came late. From the next packet on later ones are borne.
    fn note_lateness(&mut self, msn: u32) {
        let late = self.acknowledged.wrapping_sub(msn);
        if late.cast_signed() <= 0 {
            self.acknowledged = msn;
            return;
        }
        let needed = ReorderRatio::beyond(late);
        if late < LATE && needed > self.reorder_ratio {
            self.reorder_ratio = needed;
            self.due |= 1 << said::REORDER_RATIO;
            self.ages[said::REORDER_RATIO] = 0;
            self.changed(self.msn.wrapping_add(1));
        }
    }
}
