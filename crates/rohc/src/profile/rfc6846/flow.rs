//! Flows of profile 0x0006, and the interface of the profile.

use thinair_wire::time::Instant;

use super::compress::TcpSenderContext;
use super::{Base, Pattern, TcpRoom, TcpSegment};
use crate::channel::ProfileSet;
use crate::cid::Cid;
use crate::compressor::{
    CompressError, Compressed, Compressor, CompressorConfig, OutgoingPacket, RECENT, Refused, SenderContext,
    SharedMemory,
};
use crate::contexts::ContextState;
use crate::exchange::Exchanges;
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::sender::Newcomer;
use crate::id::ProfileId;
use crate::mode::Mode;

/// Number of contexts from which on a channel has some for patterns.
const ENOUGH_FOR_PATTERNS: usize = 4;

impl SenderContext for TcpSenderContext {
    #[inline]
    fn compress_packet<'m>(
        compressor: &mut Compressor<'m>,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>> {
        if !compressor.config.channel.profiles().has(ProfileId::Tcp) {
            return None;
        }
        compressor.segment(packet, &TcpSegment::of(packet.chain)?, out)
    }

    #[inline]
    fn predicts(profiles: ProfileSet) -> bool {
        profiles.has(ProfileId::Tcp)
    }

    #[inline]
    fn compress_predicted<'m>(
        compressor: &mut Compressor<'m>,
        now: Instant,
        packet: &[u8],
        _: Option<&mut Exchanges<'m>>,
        out: &mut [u8],
    ) -> Option<Compressed> {
        compressor.compress_regular_segment(now, packet, out)
    }

    fn form(&self) -> FeedbackForm {
        FeedbackForm::Rfc6846
    }

    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        config: &CompressorConfig,
        shared: &mut SharedMemory<'_>,
    ) -> Option<Cid> {
        let base = self.named_base().filter(|_| feedback.ack == AckType::StaticNack);
        self.receive_feedback(now, feedback, shared.rooms.get(feedback.cid.index())?, config);
        base
    }

    fn restart(&mut self, config: &CompressorConfig, _: &mut SharedMemory<'_>) {
        self.restart(config);
    }

    fn withdraw_as_base(&mut self) {
        self.withdraw_as_base();
    }

    fn context_state(&self, cid: Cid) -> ContextState {
        let (state, two_way, msn) = self.summary();
        let mode = Mode::with_feedback(two_way);
        ContextState { cid, profile: ProfileId::Tcp, state, mode, sn: Some(u32::from(msn)) }
    }
}

impl<'m> Compressor<'m> {
    /// Compresses a TCP segment; `None` if another profile has to compress the packet.
    #[inline(never)]
    fn segment(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        segment: &TcpSegment<'_>,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>> {
        let rooms = &self.shared.rooms;
        let found = self.flows.find_flow(segment, |cid, context: &TcpSenderContext| {
            rooms.get(cid.index()).is_some_and(|room| context.is_flow_of(room, segment))
        });
        let cid = match found {
            Ok(cid) => cid,
            Err(_) if !segment.is_restorable() => return None,
            Err(hash) => self.begin_segment(packet, segment, hash)?,
        };
        let (now, base) = (packet.now, self.base_of(cid));
        let attempt = self.compress_with(cid, out, |context: &mut TcpSenderContext, config, shared, out| {
            let room = shared.rooms.get_mut(cid.index()).ok_or(Refused::ByThisPacket)?;
            context.compress(now, segment, room, base.as_ref(), cid, config, out)
        });
        attempt.done()
    }

    /// Returns a context of this profile, by its hash.
    fn find_segment(&self, hash: u32, is_it: impl Fn(&TcpSenderContext, &TcpRoom) -> bool) -> Option<Cid> {
        let rooms = &self.shared.rooms;
        self.flows.find::<TcpSenderContext>(hash, |cid, context| {
            rooms.get(cid.index()).is_some_and(|room| is_it(context, room))
        })
    }

    /// Takes a context for a packet that has none: that of its flow, or a pattern that the packet becomes.
    fn begin_segment(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        segment: &TcpSegment<'_>,
        hash: u32,
    ) -> Option<Cid> {
        let newcomer = self.admit(packet.now, hash, segment.packet())?;
        let base = self.find_base(segment);
        let Some(pattern) = Pattern::of(segment) else {
            return self.claim_segment(packet, newcomer, base, false);
        };
        let pattern_hash = self.flows.hash(&pattern);
        match self.find_segment(pattern_hash, |context, room| context.is_pattern() && pattern.is_in(room)) {
            Some(cid) if self.is_pattern_of(cid, &pattern) => {
                self.claim_segment(packet, newcomer, Some(cid), false)
            }
            // It was not acknowledged, or differs: it is sent again.
            Some(cid) => {
                let base = base.filter(|base| *base != cid);
                self.set_segment(packet.now, cid, base, true)
            }
            None if self.is_third(base) && self.flows.capacity() >= ENOUGH_FOR_PATTERNS => {
                self.claim_segment(packet, newcomer.with_hash(pattern_hash), base, true)
            }
            None => self.claim_segment(packet, newcomer, base, false),
        }
    }

    /// True if a connection with this base follows two others between the same hosts.
    fn is_third(&self, base: Option<Cid>) -> bool {
        base.and_then(|base| self.flows.context::<TcpSenderContext>(base))
            .is_some_and(TcpSenderContext::is_replica)
    }

    /// True if a pattern may be the base of a SYN.
    fn is_pattern_of(&self, cid: Cid, pattern: &Pattern<'_>) -> bool {
        let is_base = self.flows.context::<TcpSenderContext>(cid).is_some_and(TcpSenderContext::is_base);
        is_base && self.shared.rooms.get(cid.index()).is_some_and(|room| pattern.is_like(room))
    }

    /// Takes a context. A flow gets that of a connection that is over, with the lowest CID, since CID 0 takes no octet; or the
    /// next one.
    fn claim_segment(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        newcomer: Newcomer,
        base: Option<Cid>,
        is_pattern: bool,
    ) -> Option<Cid> {
        let is_over = |cid: &Cid| {
            let context = self.flows.context::<TcpSenderContext>(*cid);
            context.is_some_and(|context| context.is_over(packet.now)) && Some(*cid) != base
        };
        let over = || self.flows.latest().take(RECENT).filter(is_over).min();
        let over = if is_pattern { None } else { over() };
        let next = over
            .or_else(|| self.next_context(newcomer))
            .filter(|cid| cid.index() < self.shared.rooms.len())?;
        let base = base.filter(|base| *base != next);
        if let Some(base) = base {
            self.flows.touch(base);
        }
        let cid = self.begin(packet, newcomer, over)?;
        self.set_segment(packet.now, cid, base, is_pattern)
    }

    /// Starts a new context in a place.
    fn set_segment(&mut self, now: Instant, cid: Cid, base: Option<Cid>, is_pattern: bool) -> Option<Cid> {
        let msn = self.next_random() as u16;
        let reused = self.flows.context::<TcpSenderContext>(cid).is_some();
        let room = self.shared.rooms.get_mut(cid.index())?;
        let context = TcpSenderContext::new(room, reused, base, msn, now, &self.config);
        self.flows.set(cid, if is_pattern { context.pattern() } else { context });
        Some(cid)
    }

    /// Returns a context from which that of a new flow can be replicated (RFC 4164, section 3.3.3.1): the newest suitable one
    /// among the recently used ones.
    fn find_base(&self, segment: &TcpSegment<'_>) -> Option<Cid> {
        let suits = |cid: &Cid| {
            self.flows.context::<TcpSenderContext>(*cid).is_some_and(TcpSenderContext::is_base)
                && self.shared.rooms.get(cid.index()).is_some_and(|room| segment.suits(room))
        };
        self.flows.latest().take(RECENT).find(suits)
    }

    /// Returns the current state of the base that the next packet of a flow may name.
    fn base_of(&self, cid: Cid) -> Option<Base> {
        let base = self.flows.context::<TcpSenderContext>(cid)?.base()?;
        let context = self.flows.context::<TcpSenderContext>(base).filter(|context| context.is_base())?;
        let room = *self.shared.rooms.get(base.index())?;
        Some(Base { cid: base, room, is_exact: context.is_pattern() })
    }
}
