//! Contexts of profile 0x0006 at the decompressor: the interface to the framework, and what failures show.

use thinair_wire::coder::Reader;

use super::decompress::{IR_CR, TcpReceiverContext};
use super::replicate::{IrCrHead, ir_cr};
use super::state::TcpRoom;
use crate::cid::Cid;
use crate::contexts::ContextState;
use crate::decompressor::{
    DecompressorConfig, Failure, IncomingPacket, NackPolicy, ReceiverContext, Threshold, Traced, Verified,
};
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::arrival::Moment;
use crate::flow::health::{Evidence, Health, Verdict};
use crate::flow::receiver::Receiver;
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::packet::PacketHeader;
use crate::storage::Slots;

/// Threshold of U-mode if the IP-ID counts, which is soon repeated.
const COUNTS: Threshold = Threshold { k: 3, n: 3 };

impl ReceiverContext for TcpReceiverContext {
    fn profile(&self) -> ProfileId {
        ProfileId::Tcp
    }

    fn context_state(&self, cid: Cid, config: &DecompressorConfig) -> ContextState {
        let (state, sn) = (self.health.state.name(), Some(u32::from(self.msn)));
        ContextState { cid, profile: ProfileId::Tcp, state, mode: config.mode, sn }
    }

    #[inline]
    fn note_success(&mut self, _: u8, _: Format, _: Mode) -> bool {
        self.health.note_success();
        core::mem::take(&mut self.ack_due)
    }

    fn health_mut(&mut self) -> Option<&mut Health> {
        Some(&mut self.health)
    }

    fn judge(&mut self, _: Moment, _: u8, failure: Option<&Failure>, policy: &NackPolicy<'_>) -> Verdict {
        match failure {
            // It may be retransmitted, at growing intervals, and the next ones would look alike.
            Some(Failure::OnTrial(_) | Failure::Ambiguous(_)) => {
                return Verdict::NoEvidence(Some(AckType::Nack));
            }
            _ => self.calm = 0,
        }
        let nack = if !policy.is_two_way && self.counts { COUNTS } else { policy.nack() };
        // "The header MUST be discarded and a NACK SHOULD be sent" (RFC 6846, section 6.3.2).
        let is_urgent = matches!(failure, Some(Failure::UnknownItem(_)));
        let is_repair = matches!(
            failure,
            Some(Failure::Crc(Format::IrDyn | Format::CoCommon | Format::Rnd8 | Format::Seq8))
        );
        Verdict::Evidence(Evidence { nack, is_urgent, is_repair, static_nack: policy.static_nack() })
    }

    fn complete(&mut self, element: Feedback, _: Option<Format>, _: &DecompressorConfig) -> Feedback {
        element.with_msn(FeedbackForm::Rfc6846, self.health.state, self.msn)
    }
}

impl Receiver for TcpReceiverContext {
    type Room = TcpRoom;

    fn new(_: ProfileId) -> Self {
        Self::new()
    }

    fn base_of(packet: &IncomingPacket<'_, '_, '_>) -> Option<Cid> {
        let mut head = IrCrHead { crc7: 0, base: None };
        let mut reader = Reader::new(packet.header.first, packet.header.rest);
        ir_cr(&mut reader, packet.config.channel.cids(), &mut head).ok()?;
        Some(head.base.unwrap_or(packet.header.cid))
    }

    fn ir(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, '_>,
        base: Option<&Self>,
        rooms: &mut Slots<'_, TcpRoom>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let at = packet.header.cid.index();
        if packet.header.first == IR_CR {
            self.ir_cr(packet, base, rooms, out)
        } else {
            self.ir(packet, rooms.get_mut(at).ok_or(Failure::TooLarge)?, out)
        }
    }

    fn ir_dyn(
        &mut self,
        packet: &IncomingPacket<'_, '_, '_>,
        rooms: &mut Slots<'_, TcpRoom>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        self.ir_dyn(packet, rooms.get_mut(packet.header.cid.index()).ok_or(Failure::TooLarge)?, out)
    }

    #[inline(always)]
    fn compressed(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, '_>,
        rooms: &mut Slots<'_, TcpRoom>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let room = rooms.get_mut(packet.header.cid.index()).ok_or(Failure::TooLarge)?;
        self.compressed(packet.at, packet.header, room, out)
    }

    fn note_failure(&mut self, at: Moment) {
        self.calm = 0;
        self.arrivals.note_failure(at);
    }

    fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        config: &DecompressorConfig,
        rooms: &Slots<'_, TcpRoom>,
        on_field: &mut dyn FnMut(Traced<'p>),
    ) -> Option<Format> {
        self.dissect(packet, rooms.get(packet.cid.index())?, config.channel.cids(), on_field)
    }
}
