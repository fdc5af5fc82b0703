//! Contexts of profile 0x0006 at the decompressor: the interface to the framework, and what failures show.

use super::decompress::TcpReceiverContext;
use crate::cid::Cid;
use crate::contexts::ContextState;
use crate::decompressor::{
    self, Decompressor, DecompressorConfig, Failure, IncomingPacket, NackPolicy, Problem, ReceiverContext,
    Threshold, Traced, Verified,
};
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::arrival::Moment;
use crate::flow::health::{Evidence, Health, Verdict};
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::packet::PacketHeader;
use crate::profile::Held;
use crate::state::DecompressorState;

/// Threshold of U-mode if the IP-ID counts, which is soon repeated.
const COUNTS: Threshold = Threshold { k: 3, n: 3 };

impl ReceiverContext for TcpReceiverContext {
    fn new(_: ProfileId) -> Self {
        Self::new()
    }

    fn profile(&self) -> ProfileId {
        ProfileId::Tcp
    }

    fn initialize<'m>(
        decompressor: &mut Decompressor<'m>,
        _: ProfileId,
        packet: IncomingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Result<Verified, Problem> {
        let (header, cid, space) = (packet.header, packet.header.cid, decompressor.config.channel.cids());
        let Decompressor { shared, contexts, .. } = decompressor;
        if cid.index() >= shared.rooms.len() {
            return Err(Failure::NoMemory.into());
        }
        let held = |cid: Cid| contexts.get(cid.index()).and_then(|slot| Self::of(&slot.place));
        let mut context = held(cid).copied().unwrap_or(Self::new());
        let verified = if header.first == 0xFC {
            let base = Self::base_of(header, space)?.unwrap_or(cid);
            // RFC 4164, section 3.4: without its base the packet cannot be decompressed.
            held(base).filter(|base| base.health.state == DecompressorState::Fc).ok_or(Problem::NoContext)?;
            let base = *shared.rooms.get(base.index()).ok_or(Problem::NoContext)?;
            context.ir_cr(packet.at, header, space, &base, &mut shared.rooms[cid.index()], out)?
        } else {
            context.ir(packet.at, header, &mut shared.rooms[cid.index()], out)?
        };
        decompressor.set(cid, context);
        Ok(verified)
    }

    fn decompress_ir_dyn(
        &mut self,
        profile: ProfileId,
        packet: IncomingPacket<'_, '_, '_>,
        _: &DecompressorConfig,
        shared: &mut decompressor::SharedMemory<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let room = shared.rooms.get_mut(packet.header.cid.index()).filter(|_| profile == ProfileId::Tcp);
        self.ir_dyn(packet.at, packet.header, room.ok_or(Failure::Malformed)?, out)
    }

    fn decompress<'m>(
        &mut self,
        packet: IncomingPacket<'_, '_, 'm>,
        _: &DecompressorConfig,
        shared: &mut decompressor::SharedMemory<'m>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let room = shared.rooms.get_mut(packet.header.cid.index()).ok_or(Failure::NoMemory)?;
        self.compressed(packet.at, packet.header, room, out)
    }

    fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        config: &DecompressorConfig,
        shared: &decompressor::SharedMemory<'_>,
        on_field: &mut dyn FnMut(Traced<'p>),
    ) -> Option<Format> {
        self.dissect(packet, shared.rooms.get(packet.cid.index())?, config.channel.cids(), on_field)
    }

    fn context_state(&self, cid: Cid, config: &DecompressorConfig) -> ContextState {
        let (state, sn) = (self.health.state.name(), Some(u32::from(self.msn())));
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
        element.with_msn(FeedbackForm::Rfc6846, self.health.state, self.msn())
    }
}
