//! Flows of the RFC 3095 family: choice of the highest profile of the channel that restores a packet, and of the context
//! of its flow.

use thinair_wire::header::chain::HeaderChain;
use thinair_wire::time::Instant;

use super::classify::ClassifiedPacket;
use super::compress::Rfc3095SenderContext;
use super::table::Pool;
use crate::channel::ProfileSet;
use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig, OutgoingPacket, Refused};
use crate::flow::sender::{Departure, Flows, Obstacle, Sender, Start};
use crate::id::ProfileId;

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
            Obstacle::NoBeginning | Obstacle::Brief | Obstacle::Rests => true,
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

    fn is_of_ports(plan: &ClassifiedPacket<'_>) -> bool {
        plan.profile == ProfileId::Udp
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
