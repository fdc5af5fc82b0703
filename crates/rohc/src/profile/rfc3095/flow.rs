//! Flows of the RFC 3095 family: choice of the highest profile of the channel that restores a packet, and of the context
//! of its flow.

use thinair_wire::header::chain::HeaderChain;
use thinair_wire::time::Instant;

use super::classify::ClassifiedPacket;
use super::compress::Rfc3095SenderContext;
use super::decompress;
use super::table::Pool;
use crate::channel::ProfileSet;
use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig, OutgoingPacket, Refused};
use crate::contexts::ContextState;
use crate::decompressor::{
    self, Decompressor, DecompressorConfig, Failure, IncomingPacket, NackPolicy, Problem, ReceiverContext,
    Traced, Verified,
};
use crate::feedback::{AckType, Feedback};
use crate::flow::arrival::Moment;
use crate::flow::health::{Evidence, Health, Verdict};
use crate::flow::sender::{Departure, Flows, Obstacle, Sender, Start};
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::packet::PacketHeader;
use crate::profile::{Held, ReceiverPlace};
use crate::state::DecompressorState;

/// Number of packets in a row that may have been right and were not delivered after which feedback requests a packet
/// without doubt.
const HELD_BACK: u8 = 2;

impl Sender for Rfc3095SenderContext {
    type Packet<'p> = ClassifiedPacket<'p>;

    #[inline]
    fn is_in_use(_: ProfileSet, _: &Pool<'_>) -> bool {
        true
    }

    #[inline(always)]
    fn compress_next(
        &mut self,
        chain: &HeaderChain<'_>,
        _: &mut Pool<'_>,
        departure: &mut Departure<'_, '_>,
    ) -> Option<Compressed> {
        self.compress_expected(chain, departure)
    }

    #[inline(always)]
    fn recognize<'p>(
        packet: &OutgoingPacket<'p, 'p, '_>,
        flows: &mut Flows<'_, '_, Self>,
        recognized: &mut Option<ClassifiedPacket<'p>>,
    ) {
        let timer = flows.clock.limits(flows.config);
        let plan = recognized.insert(ClassifiedPacket::new(packet.now, packet.chain, timer));
        plan.may_become_rtp = flows.config.rtp.guesses();
        if !plan.choose(packet.chain, flows.config) {
            *recognized = None;
        }
    }

    /// Returns the context of a packet's flow. A datagram uses a profile with RTP while the packets of its flow look like
    /// RTP; a flow whose sequence numbers jump is detected anew.
    #[inline(always)]
    fn find(plan: &mut ClassifiedPacket<'_>, flows: &mut Flows<'_, '_, Self>) -> Result<Cid, u32> {
        let datagram = (plan.profile, plan.header_len);
        let may_be_rtp = plan.may_become_rtp
            && matches!(plan.profile, ProfileId::Udp | ProfileId::UdpLite)
            && plan.choose_rtp(flows.config.channel.profiles());
        let known = flows.find(plan);
        let context = known.ok().and_then(|known| flows.context(known));
        if !may_be_rtp || context.is_some_and(|context| context.goes_on_as_rtp(plan)) {
            return known;
        }
        let rtp = (plan.profile, plan.header_len);
        let can_begin = known.is_ok() || !plan.lacks_payload();
        (plan.profile, plan.header_len) = datagram;
        let found = flows.find(plan);
        let context = found.ok().and_then(|cid| flows.table.context_mut::<Self>(cid));
        if context.is_some_and(|context| context.watch_for_rtp(plan.rtp.as_ref())) && can_begin {
            (plan.profile, plan.header_len) = rtp;
            return known;
        }
        found
    }

    /// A packet without payload is for a lower profile, where a context that refuses it has been in use, or there is none.
    fn fall(plan: &mut ClassifiedPacket<'_>, obstacle: Obstacle, flows: &mut Flows<'_, '_, Self>) -> bool {
        plan.may_become_rtp = false;
        let may_fall = match obstacle {
            Obstacle::NoBeginning | Obstacle::Rests => true,
            Obstacle::NotAdmitted => false,
            Obstacle::Refused { is_new } => !is_new && plan.lacks_payload(),
        };
        may_fall && plan.fall(flows.config.channel.profiles())
    }

    #[inline]
    fn is_flow_of(&self, plan: &ClassifiedPacket<'_>, _: Cid, _: &Pool<'_>) -> bool {
        self.is_flow_of(plan)
    }

    fn has_flow(chain: &HeaderChain<'_>, flows: &Flows<'_, '_, Self>) -> bool {
        let mut plan = ClassifiedPacket::new(Instant::ZERO, chain, None);
        plan.choose(chain, flows.config) && flows.find(&plan).is_ok()
    }

    fn may_begin(plan: &ClassifiedPacket<'_>) -> bool {
        !plan.lacks_payload()
    }

    fn new(
        plan: &ClassifiedPacket<'_>,
        start: Start<'_, Self>,
        config: &CompressorConfig,
        _: &mut Pool<'_>,
    ) -> Self {
        let mut context = Self::new(plan, start.random.next() as u16);
        context.start(start.before, start.random.0 as u8, config);
        context
    }

    #[inline(always)]
    fn compress(
        &mut self,
        plan: &ClassifiedPacket<'_>,
        _: Option<&Self>,
        pool: &mut Pool<'_>,
        departure: &mut Departure<'_, '_>,
    ) -> Result<Compressed, Refused> {
        self.caution.join(departure.group);
        let regular = (!departure.is_irregular).then(|| self.compress_as_regular(plan, departure));
        match regular.flatten() {
            Some(done) => Ok(done),
            None => self.compress(plan, pool, departure),
        }
    }
}

impl ReceiverContext for decompress::Rfc3095ReceiverContext {
    fn new(profile: ProfileId) -> Self {
        Self::new(profile)
    }

    fn profile(&self) -> ProfileId {
        self.profile
    }

    fn initialize<'m>(
        decompressor: &mut Decompressor<'m>,
        profile: ProfileId,
        packet: IncomingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Result<Verified, Problem> {
        let (at, header) = (packet.at, packet.header);
        let deliver_empty = decompressor.config.interop.deliver_empty;
        let Decompressor { shared, contexts, .. } = decompressor;
        let slot = contexts.get_mut(header.cid.index()).ok_or(Problem::NoContext)?;
        let before = Self::of_mut(&mut slot.place);
        // Mode of a new context that replaces another one (RFC 4815, section 7.2.2).
        let mode = before.as_ref().map(|before| before.mode.after()).unwrap_or_default();
        if let Some(context) = before.filter(|context| context.profile == profile) {
            return Ok(context.ir(at, header, deliver_empty, &mut shared.pool, out)?);
        }
        // A new context (RFC 5795, section 5.1.1), once the packet is verified.
        let mut context = Self::new(profile);
        let mut verified = context.ir(at, header, deliver_empty, &mut shared.pool, out);
        if verified == Err(Failure::NoMemory) {
            // Its CRC was right: the compressor has released the memory of the previous context.
            context.release(&mut shared.pool);
            slot.release(shared);
            slot.place = ReceiverPlace::Free;
            context = Self::new(profile);
            verified = context.ir(at, header, deliver_empty, &mut shared.pool, out);
        }
        let verified = verified.inspect_err(|_| context.release(&mut shared.pool))?;
        context.mode = mode;
        decompressor.set(header.cid, context);
        Ok(verified)
    }

    fn decompress_ir_dyn(
        &mut self,
        profile: ProfileId,
        packet: IncomingPacket<'_, '_, '_>,
        config: &DecompressorConfig,
        shared: &mut decompressor::SharedMemory<'_>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let (at, header, pool) = (packet.at, packet.header, &mut shared.pool);
        if self.profile == profile {
            return self.ir_dyn(at, header, config.interop.deliver_empty, pool, out);
        }
        // RFC 3843, section 3.5: the IP profile may take over a static chain by IR-DYN.
        if profile != ProfileId::Ip {
            return Err(Failure::Malformed);
        }
        let mut taken = self.taken_over(profile);
        let verified = taken.ir_dyn(at, header, config.interop.deliver_empty, pool, out)?;
        *self = taken;
        Ok(verified)
    }

    fn decompress<'m>(
        &mut self,
        packet: IncomingPacket<'_, '_, 'm>,
        config: &DecompressorConfig,
        shared: &mut decompressor::SharedMemory<'m>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        if let Some(verified) = self.next_in_line(packet.at, packet.header, out) {
            return Ok(verified);
        }
        let updates = config.interop.uo_1_id_updates;
        let verified =
            self.compressed(packet.at, packet.header, updates, packet.has_failed, &mut shared.pool, out);
        if verified.is_err() {
            self.arrivals.note_failure(packet.at);
        }
        verified
    }

    fn release(&mut self, shared: &mut decompressor::SharedMemory<'_>) {
        self.release(&mut shared.pool);
    }

    fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        _: &DecompressorConfig,
        shared: &decompressor::SharedMemory<'_>,
        on_field: &mut dyn FnMut(Traced<'p>),
    ) -> Option<Format> {
        self.dissect(packet, &shared.pool, on_field)
    }

    fn context_state(&self, cid: Cid, _: &DecompressorConfig) -> ContextState {
        let (profile, state) = (self.profile, self.health.state.name());
        ContextState { cid, profile, state, mode: self.mode.mode(), sn: Some(self.sn()) }
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
            element.sn = self.sn() & ((1 << element.sn_bits) - 1);
        }
        if element.ack == AckType::Ack && matches!(self.profile, ProfileId::Rtp | ProfileId::RtpUdpLite) {
            element.clock = config.clock;
        }
        element
    }
}
