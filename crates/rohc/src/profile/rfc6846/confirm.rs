//! Feedback at the compressor. RFC 6846, sections 5.2.2 and 8.3.

use thinair_wire::time::Instant;

use super::compress::TcpSenderContext;
use super::state::TcpRoom;
use crate::compressor::CompressorConfig;
use crate::feedback::{AckType, Feedback};
use crate::flow::pending::Pending;

impl TcpSenderContext {
    /// Returns state, presence of feedback, and the MSN of the newest packet, for monitoring.
    pub(crate) fn summary(&self) -> (&'static str, bool, u16) {
        (self.establishment.state().name(), self.establishment.is_two_way(), self.msn)
    }

    /// Handles ACK, NACK and STATIC-NACK.
    pub(crate) fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        room: &TcpRoom,
        config: &CompressorConfig,
    ) {
        if !self.establishment.admits(now, feedback) {
            return;
        }
        if feedback.ack != AckType::Ack {
            // RFC 4164, section 3.3.3.4.
            (self.confirmed, self.base) = (false, None);
        }
        match feedback.ack {
            AckType::Ack => self.acknowledge(feedback, room, config),
            AckType::Nack if self.caution.repeat_at_once() => {}
            AckType::Nack | AckType::StaticNack => {
                // RFC 6846, section 8.3.2.2: without an MSN, a NACK has the meaning of a STATIC-NACK.
                let has_static = self.is_rooted && feedback.sn_bits > 0;
                self.establishment.repair(feedback.ack, has_static, config.repetitions);
                self.since = room.0.msn.wrapping_add(1);
            }
        }
    }

    fn acknowledge(&mut self, feedback: &Feedback, room: &TcpRoom, config: &CompressorConfig) {
        let Some(newer) = feedback.newer(room.0.msn.into()) else { return };
        let acked = room.0.msn.wrapping_sub(newer as u16);
        let width = usize::from(config.window);
        self.caution.acknowledge(newer);
        // Not every packet has timestamps, so that this is the largest number of newer ones.
        for numbers in &mut self.numbers {
            numbers.acknowledge(newer as usize);
        }
        for range in [&mut self.window, &mut self.ip_id_offset] {
            range.acknowledge(newer as usize, width);
        }
        if (acked.wrapping_sub(self.since) as i16) < 0 {
            return;
        }
        self.is_rooted = true;
        self.confirmed |= feedback.protected;
        self.base = None;
        // Every change is in the acknowledged packet, or in one before it.
        self.establishment.acknowledge();
        self.pending = Pending::NONE;
        self.note_established(&room.0.options);
        self.wrong_checksums = u8::MAX;
    }
}
