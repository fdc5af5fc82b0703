//! Feedback at the compressor. RFC 6846, sections 5.2.2 and 8.3.

use thinair_wire::time::Instant;

use super::compress::TcpSenderContext;
use super::state::TcpRoom;
use crate::compressor::CompressorConfig;
use crate::feedback::{AckType, Feedback};

impl TcpSenderContext {
    /// Returns state, presence of feedback, and the MSN of the newest packet, for monitoring.
    pub(crate) fn summary(&self) -> (&'static str, bool, u16) {
        let state = match (self.left_ir, self.left_dyn) {
            (1.., _) => "IR",
            (0, 1..) => "FO",
            (0, 0) => "SO",
        };
        (state, self.two_way, self.msn)
    }

    /// Handles ACK, NACK and STATIC-NACK.
    pub(crate) fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        room: &TcpRoom,
        config: &CompressorConfig,
    ) {
        // Damage could look like FEEDBACK-1, and would end the refreshes of a channel without feedback.
        if !self.two_way && !feedback.protected {
            return;
        }
        if !self.two_way {
            self.two_way = true;
            self.timer.restart(now);
        }
        if feedback.ack != AckType::Ack {
            // RFC 4164, section 3.3.3.4.
            (self.confirmed, self.base) = (false, None);
        }
        match feedback.ack {
            AckType::Ack => self.acknowledge(feedback, room, config),
            AckType::Nack if self.caution.repeat_at_once() => {}
            AckType::Nack if feedback.sn_bits > 0 && self.is_rooted => {
                self.left_dyn = self.left_dyn.max(config.repetitions);
                self.since = room.0.msn.wrapping_add(1);
                self.refreshing = true;
            }
            // RFC 6846, section 8.3.2.2: without an MSN, a NACK has the meaning of a STATIC-NACK.
            AckType::Nack | AckType::StaticNack => {
                self.left_ir = self.left_ir.max(config.repetitions);
                self.since = room.0.msn.wrapping_add(1);
                self.refreshing = true;
            }
        }
    }

    fn acknowledge(&mut self, feedback: &Feedback, room: &TcpRoom, config: &CompressorConfig) {
        let bits = feedback.sn_bits.min(16);
        if bits == 0 {
            return;
        }
        // The newest MSN with these bits that was sent.
        let newest = room.0.msn;
        let mask = ((1_u32 << bits) - 1) as u16;
        let newer = newest.wrapping_sub(feedback.sn as u16) & mask;
        let acked = newest.wrapping_sub(newer);
        let width = usize::from(config.window);
        self.caution.acknowledge(newer.into());
        // Not every packet has timestamps, so that this is the largest number of newer ones.
        for numbers in &mut self.numbers {
            numbers.acknowledge(usize::from(newer));
        }
        for range in [&mut self.window, &mut self.ip_id_offset] {
            range.acknowledge(usize::from(newer), width);
        }
        if (acked.wrapping_sub(self.since) as i16) < 0 {
            return;
        }
        self.is_rooted = true;
        self.confirmed |= feedback.protected;
        self.base = None;
        // Every change is in the acknowledged packet, or in one before it.
        (self.left_ir, self.left_dyn, self.refreshing) = (0, 0, false);
        self.young = 0;
        self.note_established(&room.0.options);
        self.wrong_checksums = u8::MAX;
    }
}
