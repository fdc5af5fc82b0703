//! Flows of the RFC 3095 family: choice of the highest profile of the channel that restores a packet, and of the context
//! of its flow.

use thinair_wire::time::Instant;

use super::BASE_IPS;
use super::classify::ClassifiedPacket;
use super::compress::Rfc3095SenderContext;
use super::next::RegularOutcome;
use crate::cid::Cid;
use crate::compressor::{
    CompressError, Compressed, Compressor, CompressorConfig, OutgoingPacket, SenderContext, SharedMemory,
};
use crate::contexts::ContextState;
use crate::feedback::{Feedback, FeedbackForm};
use crate::flow::sender::Attempt;
use crate::id::ProfileId;

impl SenderContext for Rfc3095SenderContext {
    fn compress_packet<'m>(
        compressor: &mut Compressor<'m>,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>> {
        match compressor.compress_next(packet, out) {
            RegularOutcome::Regular(done) => Some(Ok(done)),
            RegularOutcome::Irregular => compressor.rfc3095(packet, false, out),
            RegularOutcome::Other => compressor.rfc3095(packet, true, out),
        }
    }

    fn has_flow(compressor: &Compressor<'_>, packet: &OutgoingPacket<'_, '_, '_>) -> bool {
        let mut plan = ClassifiedPacket::new(packet.chain, None);
        plan.choose(packet.chain, &compressor.config) && compressor.find_rfc3095(&plan).is_some()
    }

    /// In R-mode packets carry everything until it is acknowledged, however long that takes.
    fn is_charged(&self) -> bool {
        !self.mode.is_secure()
    }

    fn form(&self) -> FeedbackForm {
        FeedbackForm::Rfc3095
    }

    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        config: &CompressorConfig,
        shared: &mut SharedMemory<'_>,
    ) -> Option<Cid> {
        self.receive_feedback(now, feedback, config, &mut shared.pool);
        if matches!(self.profile, ProfileId::Rtp | ProfileId::RtpUdpLite) {
            shared.clock.note(feedback);
        }
        None
    }

    fn restart(&mut self, config: &CompressorConfig, _: &mut SharedMemory<'_>) {
        self.restart(config);
    }

    fn release(&mut self, shared: &mut SharedMemory<'_>) -> bool {
        self.release(&mut shared.pool)
    }

    fn context_state(&self, cid: Cid) -> ContextState {
        let (profile, state) = (self.profile, self.establishment.state().name());
        ContextState { cid, profile, state, mode: self.mode.mode(), sn: Some(self.sn) }
    }
}

impl<'m> Compressor<'m> {
    /// Compresses a packet, which may be regular, with the highest profile that accepts it; `None` if none does.
    #[inline(never)]
    pub(super) fn rfc3095(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        may_be_regular: bool,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>> {
        let mut plan = ClassifiedPacket::new(packet.chain, self.shared.clock.limits(&self.config));
        if !plan.choose(packet.chain, &self.config) {
            return None;
        }
        let mut found = self.flow_of(&mut plan);
        loop {
            let cid = match found {
                None if plan.lacks_payload() => None,
                None => Some(self.begin_rfc3095(packet, &plan)?),
                found => found,
            };
            if let Some(cid) = cid {
                match self.by_context(packet.now, &plan, cid, may_be_regular, out) {
                    Attempt::Done(done) => return Some(done),
                    Attempt::Refused if found.is_none() || !plan.lacks_payload() => return None,
                    Attempt::Refused | Attempt::Rests => {}
                }
            }
            if !plan.fall(self.config.channel.profiles()) {
                return None;
            }
            found = self.find_rfc3095(&plan);
        }
    }

    /// Compresses a packet with a context of its flow.
    #[inline(always)]
    fn by_context(
        &mut self,
        now: Instant,
        plan: &ClassifiedPacket<'_>,
        cid: Cid,
        may_be_regular: bool,
        out: &mut [u8],
    ) -> Attempt {
        let group = self.group;
        self.compress_with(cid, out, |context: &mut Rfc3095SenderContext, config, shared, out| {
            context.join(group);
            let regular = may_be_regular.then(|| context.compress_as_regular(now, plan, cid, config, out));
            match regular.flatten() {
                Some(done) => Ok(done),
                None => context.compress(now, plan, cid, config, &mut shared.pool, out),
            }
        })
    }

    /// Creates a context for a new flow; `None` if the flow is sent uncompressed.
    #[cold]
    fn begin_rfc3095(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        plan: &ClassifiedPacket<'_>,
    ) -> Option<Cid> {
        let newcomer = self.admit(packet.now, self.flows.hash(plan), plan.chain.packet())?;
        let sn = self.next_random() as u16;
        let mut context = Rfc3095SenderContext::new(plan, packet.now, sn);
        let cid = self.begin(packet, newcomer, None)?;
        context.start(self.flows.context(cid), self.random as u8, &self.config);
        self.flows.set(cid, context);
        Some(cid)
    }

    /// Returns the context of a packet's flow, which is often that of the previous packet.
    fn find_rfc3095(&self, plan: &ClassifiedPacket<'_>) -> Option<Cid> {
        let is_it = |context: &Rfc3095SenderContext| context.is_flow_of(plan);
        let newest = self.flows.latest().next()?;
        // Further IP headers are distinguished by their hash alone.
        if plan.ip_count <= BASE_IPS && self.flows.context(newest).is_some_and(is_it) {
            return Some(newest);
        }
        self.flows.find(self.flows.hash(plan), |_, context| is_it(context))
    }

    /// Returns the context of a packet's flow. A datagram uses a profile with RTP while the packets of its flow look like
    /// RTP; a flow whose sequence numbers jump is detected anew.
    #[inline]
    fn flow_of(&mut self, plan: &mut ClassifiedPacket<'_>) -> Option<Cid> {
        let datagram = (plan.profile, plan.header_len);
        let may_be_rtp = self.config.rtp.guesses()
            && matches!(plan.profile, ProfileId::Udp | ProfileId::UdpLite)
            && plan.choose_rtp(self.config.channel.profiles());
        let known = self.find_rfc3095(plan);
        let context = known.and_then(|known| self.flows.context::<Rfc3095SenderContext>(known));
        if !may_be_rtp || context.is_some_and(|context| context.goes_on_as_rtp(plan)) {
            return known;
        }
        let rtp = (plan.profile, plan.header_len);
        let can_begin = known.is_some() || !plan.lacks_payload();
        (plan.profile, plan.header_len) = datagram;
        let found = self.find_rfc3095(plan);
        let context = found.and_then(|cid| self.flows.context_mut::<Rfc3095SenderContext>(cid));
        if context.is_some_and(|context| context.watch_for_rtp(plan.rtp.as_ref())) && can_begin {
            (plan.profile, plan.header_len) = rtp;
            return known;
        }
        found
    }
}
