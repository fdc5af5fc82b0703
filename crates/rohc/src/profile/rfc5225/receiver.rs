//! Contexts of RFC 5225 at the decompressor: the interface to the framework, and what failures show.

use super::decompress::V2ReceiverContext;
use super::formats::is_strong;
use super::state::{V2Room, has_rtp};
use crate::cid::Cid;
use crate::contexts::ContextState;
use crate::decompressor::{
    DecompressorConfig, Failure, IncomingPacket, NackPolicy, ReceiverContext, Traced, Verified,
};
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::arrival::Moment;
use crate::flow::health::{Evidence, Health, Verdict};
use crate::flow::receiver::Receiver;
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::packet::PacketHeader;
use crate::storage::Slots;

impl ReceiverContext for V2ReceiverContext {
    fn profile(&self) -> ProfileId {
        self.profile
    }

    fn context_state(&self, cid: Cid, config: &DecompressorConfig) -> ContextState {
        let (profile, state, sn) =
            (self.profile, self.health.state.name(), Some(msn_of(self.profile, self.msn)));
        ContextState { cid, profile, state, mode: config.mode, sn }
    }

    fn note_success(&mut self, _: u8, _: Format, _: Mode) -> bool {
        self.note_success()
    }

    fn health_mut(&mut self) -> Option<&mut Health> {
        Some(&mut self.health)
    }

    fn judge(&mut self, _: Moment, _: u8, failure: Option<&Failure>, policy: &NackPolicy<'_>) -> Verdict {
        match failure {
            // It may be sent again, ever more seldom, and the next ones would look the same.
            Some(Failure::OnTrial(_) | Failure::Ambiguous(_)) => Verdict::NoEvidence(Some(AckType::Nack)),
            _ => Verdict::Evidence(Evidence {
                nack: policy.nack(),
                is_urgent: false,
                is_repair: matches!(failure, Some(Failure::Crc(format)) if is_strong(*format)),
                static_nack: policy.static_nack(),
            }),
        }
    }

    fn complete(&mut self, element: Feedback, _: Option<Format>, config: &DecompressorConfig) -> Feedback {
        // RFC 5225, section 6.6.9: zero, if there is no clock, and one is counted on.
        let clock = config.clock.filter(|_| has_rtp(self.profile)).or(self.is_timed.then_some(0));
        let late = self.late_to_acknowledge().filter(|_| element.ack == AckType::Ack);
        let msn = late.unwrap_or(self.msn);
        Feedback { clock, ..element.with_msn(FeedbackForm::Rfc5225, self.health.state, msn as u16) }
    }
}

impl Receiver for V2ReceiverContext {
    type Room = V2Room;

    fn new(profile: ProfileId) -> Self {
        Self::new(profile)
    }

    fn ir(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, '_>,
        _: Option<&Self>,
        rooms: &mut Slots<'_, V2Room>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let room = rooms.get_mut(packet.header.cid.index()).ok_or(Failure::TooLarge)?;
        self.ir(packet.at, packet.header, &mut room.0, out)
    }

    #[inline(always)]
    fn predicted(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, '_>,
        rooms: &mut Slots<'_, V2Room>,
        out: &mut [u8],
    ) -> Option<Verified> {
        let room = rooms.get_mut(packet.header.cid.index())?;
        self.next_in_line(packet.at, packet.header, &mut room.0, out)
    }

    fn compressed(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, '_>,
        rooms: &mut Slots<'_, V2Room>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let room = rooms.get_mut(packet.header.cid.index()).ok_or(Failure::TooLarge)?;
        self.compressed(packet.at, packet.header, &mut room.0, out)
    }

    fn note_failure(&mut self, at: Moment) {
        self.arrivals.note_failure(at);
    }

    fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        _: &DecompressorConfig,
        rooms: &Slots<'_, V2Room>,
        on_field: &mut dyn FnMut(Traced<'p>),
    ) -> Option<Format> {
        self.dissect(packet, &rooms.get(packet.cid.index())?.0, on_field)
    }
}

/// An MSN in the bits that it has.
pub(super) const fn msn_of(profile: ProfileId, msn: u32) -> u32 {
    if matches!(profile, ProfileId::EspV2) { msn } else { msn & 0xFFFF }
}
