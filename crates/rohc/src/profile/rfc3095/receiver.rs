//! Contexts of the RFC 3095 family at the decompressor: the interface to the framework, and what failures show.

use super::decompress::Rfc3095ReceiverContext;
use super::table::{ExtensionBlock, Pool};
use crate::cid::Cid;
use crate::contexts::ContextState;
use crate::decompressor::{
    DecompressorConfig, Failure, IncomingPacket, NackPolicy, ReceiverContext, Traced, Verified,
};
use crate::feedback::{AckType, Feedback};
use crate::flow::arrival::Moment;
use crate::flow::health::{Evidence, Health, Verdict};
use crate::flow::receiver::Receiver;
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::packet::PacketHeader;
use crate::state::DecompressorState;

/// Number of packets in a row that may have been right and were not delivered after which feedback requests a packet
/// without doubt.
const HELD_BACK: u8 = 2;

impl ReceiverContext for Rfc3095ReceiverContext {
    fn profile(&self) -> ProfileId {
        self.profile
    }

    fn context_state(&self, cid: Cid, _: &DecompressorConfig) -> ContextState {
        let (profile, state) = (self.profile, self.health.state.name());
        ContextState { cid, profile, state, mode: self.mode.mode(), sn: Some(self.sn) }
    }

    fn is_two_way(&self) -> bool {
        self.mode.is_two_way()
    }

    #[inline]
    fn note_success(&mut self, first: u8, format: Format, wanted: Mode) -> bool {
        self.note_success(self.is_update(first));
        (format == Format::Ir || !self.mode.is_quiet(wanted)) && self.acknowledges(format, wanted)
    }

    fn health_mut(&mut self) -> Option<&mut Health> {
        Some(&mut self.health)
    }

    fn judge(
        &mut self,
        at: Moment,
        first: u8,
        failure: Option<&Failure>,
        policy: &NackPolicy<'_>,
    ) -> Verdict {
        let is_behind_pause = self.is_behind_pause(at);
        // None of these shows that the context is damaged, and a packet with a strong CRC would decide. A request
        // can wait while other packets are in flight; after a pause each of them may be the last one for long.
        if let Some(Failure::OnTrial(_) | Failure::Ambiguous(_) | Failure::Suspect(_)) = failure {
            let is_due = policy.failures_since_nack >= HELD_BACK || is_behind_pause;
            return Verdict::NoEvidence(is_due.then_some(AckType::Nack));
        }
        let (state, is_update) = (self.health.state, self.is_update(first));
        if self.mode.mode() == Mode::Reliable && state != DecompressorState::Nc && !is_update {
            // RFC 3095, section 5.5.2.2: "Feedback is never sent for packets not updating the context".
            return Verdict::NoEvidence(None);
        }
        Verdict::Evidence(Evidence {
            nack: policy.nack(),
            is_urgent: is_behind_pause,
            is_repair: is_update && state != DecompressorState::Fc,
            static_nack: Some(policy.config.static_nack.k),
        })
    }

    fn complete(
        &mut self,
        mut element: Feedback,
        format: Option<Format>,
        config: &DecompressorConfig,
    ) -> Feedback {
        element.mode = Some(self.mode.named());
        if self.health.state != DecompressorState::Nc {
            element.sn_bits = self.feedback_sn_bits(format);
            element.sn = self.sn & ((1 << element.sn_bits) - 1);
        }
        if element.ack == AckType::Ack && matches!(self.profile, ProfileId::Rtp | ProfileId::RtpUdpLite) {
            element.clock = config.clock;
        }
        element
    }
}

impl Receiver for Rfc3095ReceiverContext {
    type Room = ExtensionBlock;

    fn new(profile: ProfileId) -> Self {
        Self::new(profile)
    }

    fn ir(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, '_>,
        _: Option<&Self>,
        pool: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        self.ir(packet, pool, out)
    }

    /// It continues the modes. RFC 4815, section 7.2.2.
    fn succeed(&mut self, before: Option<&Self>) {
        self.mode = before.map(|before| before.mode.after()).unwrap_or_default();
    }

    /// RFC 3843, section 3.5: the IP profile may take over a static chain by IR-DYN. It starts in the initial mode (RFC 4815, section 7.2.2).
    fn taken_over(&self, profile: ProfileId) -> Option<Self> {
        let taken = || Self { own: Self::new(profile).own, profile, mode: self.mode.after(), ..*self };
        (profile == ProfileId::Ip).then(taken)
    }

    fn ir_dyn(
        &mut self,
        packet: &IncomingPacket<'_, '_, '_>,
        pool: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        self.ir_dyn(packet, pool, out)
    }

    #[inline(always)]
    fn predicted(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, '_>,
        _: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Option<Verified> {
        self.next_in_line(packet.at, packet.header, out)
    }

    fn compressed(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, '_>,
        pool: &mut Pool<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        self.compressed(packet, pool, out)
    }

    fn note_failure(&mut self, at: Moment) {
        self.arrivals.note_failure(at);
    }

    fn release(&mut self, pool: &mut Pool<'_>) {
        self.table.release(pool);
    }

    fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        _: &DecompressorConfig,
        pool: &Pool<'_>,
        on_field: &mut dyn FnMut(Traced<'p>),
    ) -> Option<Format> {
        self.dissect(packet, pool, on_field)
    }
}
