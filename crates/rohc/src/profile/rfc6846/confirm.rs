//! Feedback at the compressor. RFC 6846, sections 5.2.2 and 8.3.

use thinair_wire::time::Instant;

use super::compress::TcpSenderContext;
use super::state::TcpRoom;
use crate::cid::Cid;
use crate::compressor::{CompressorConfig, SenderContext};
use crate::contexts::ContextState;
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::pending::Pending;
use crate::id::ProfileId;
use crate::storage::Slots;

impl SenderContext for TcpSenderContext {
    type Room = TcpRoom;

    fn form(&self) -> FeedbackForm {
        FeedbackForm::Rfc6846
    }

    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        config: &CompressorConfig,
        rooms: &mut Slots<'_, TcpRoom>,
    ) -> Option<Cid> {
        let room = rooms.get(feedback.cid.index())?;
        let missing_base = self.base.filter(|_| feedback.ack == AckType::StaticNack);
        if !self.establishment.admits(now, feedback) {
            return missing_base;
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
        missing_base
    }

    fn restart(&mut self, config: &CompressorConfig, _: &mut Slots<'_, TcpRoom>) {
        self.establishment.require_ir(config.repetitions);
        self.base = None;
        self.changed(self.msn.wrapping_add(1));
    }

    fn withdraw_as_base(&mut self) {
        self.confirmed = false;
    }

    fn context_state(&self, cid: Cid) -> ContextState {
        self.establishment.context_state(cid, ProfileId::Tcp, Some(self.msn.into()))
    }
}

impl TcpSenderContext {
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
