//! Flows of RFC 5225: the highest profile of the channel that restores a packet, and the context of its flow.

use thinair_wire::header::chain::HeaderChain;

use super::compress::{Outbound, V2SenderContext};
use super::headers::{Headers, Kind, MAX_IP, upper};
use super::receiver::msn_of;
use super::state::{State, V2Room, has_rtp};
use crate::cid::Cid;
use crate::compressor::{
    CompressError, Compressed, Compressor, CompressorConfig, FlowKey, OutgoingPacket, Refused, SenderContext,
    SharedMemory,
};
use crate::contexts::ContextState;
use crate::feedback::{Feedback, FeedbackForm};
use crate::field::rtp::is_step;
use crate::flow::sender::Attempt;
use crate::id::ProfileId;
use crate::mode::Mode;

/// A packet whose headers a profile can restore.
#[derive(Clone, Copy, Debug)]
struct ClassifiedPacket {
    profile: ProfileId,
    headers: Headers,
}

impl ClassifiedPacket {
    /// The packet in a profile, with its IP headers as far as they could be parsed; `None` if it is not restored.
    fn of(profile: ProfileId, ips: Option<&(Headers, u8)>, packet: &[u8]) -> Option<Self> {
        let is_restored = |headers: &Headers| headers.is_restored(packet.len(), false);
        let all = ips.and_then(|(ips, next)| ips.with_upper(*next, profile, packet));
        let headers = all.filter(is_restored).or_else(|| {
            // IP alone may end at any IP header; a transport header follows the last one.
            let fewer = (1..MAX_IP).rev().filter(|_| profile == ProfileId::IpV2);
            fewer.filter_map(|most| Some(Headers::parse_ips(packet, most)?.0)).find(is_restored)
        })?;
        Some(Self { profile, headers })
    }

    /// SSRC and sequence number of an RTP header.
    fn proof(&self) -> Option<(u32, u16)> {
        let rtp = self.headers.upper(Kind::Rtp)?;
        Some((self.headers.long(rtp, 8), self.headers.word(rtp, 2)))
    }

    /// Destination port of UDP.
    fn port(&self) -> Option<u16> {
        let kind = upper(self.profile).first().filter(|kind| **kind != Kind::Esp)?;
        Some(self.headers.word(self.headers.upper(*kind)?, 2))
    }
}

impl FlowKey for ClassifiedPacket {
    fn key(&self, mut word: impl FnMut(u64)) {
        self.headers.words(&mut word);
        word(self.profile as u64);
    }
}

impl SenderContext for V2SenderContext {
    #[inline]
    fn compress_packet<'m>(
        compressor: &mut Compressor<'m>,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>> {
        // A channel without these profiles has no memory for them.
        if compressor.shared.v2_rooms.is_empty() { None } else { compressor.next_or_any(packet, out) }
    }

    fn has_flow(compressor: &Compressor<'_>, packet: &OutgoingPacket<'_, '_, '_>) -> bool {
        compressor.in_profiles(packet.chain).any(|classified| compressor.find_rfc5225(&classified).is_some())
    }

    fn form(&self) -> FeedbackForm {
        FeedbackForm::Rfc5225
    }

    fn receive_feedback(
        &mut self,
        now: thinair_wire::time::Instant,
        feedback: &Feedback,
        config: &CompressorConfig,
        shared: &mut SharedMemory<'_>,
    ) -> Option<Cid> {
        self.note_feedback(now, feedback, config);
        if has_rtp(self.profile) {
            shared.clock.note(feedback);
        }
        None
    }

    fn restart(&mut self, config: &CompressorConfig, _: &mut SharedMemory<'_>) {
        self.restart(config);
    }

    fn context_state(&self, cid: Cid) -> ContextState {
        let state = self.establishment.state().name();
        let mode = Mode::with_feedback(self.establishment.is_two_way());
        ContextState { cid, profile: self.profile, state, mode, sn: Some(msn_of(self.profile, self.msn)) }
    }
}

impl<'m> Compressor<'m> {
    /// Compresses a packet that is the next one of the newest flow, or any.
    #[inline(never)]
    fn next_or_any(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>> {
        if let Some(done) = self.compress_predicted(packet, out) {
            return Some(Ok(done));
        }
        let profiles = self.config.channel.profiles();
        if !V2Room::PROFILES.iter().any(|profile| profiles.has(*profile)) {
            return None;
        }
        self.rfc5225(packet, out)
    }

    /// The packet in each profile that restores it, the highest first.
    fn in_profiles<'a>(
        &self,
        chain: &'a HeaderChain<'_>,
    ) -> impl Iterator<Item = ClassifiedPacket> + use<'a> {
        let (profiles, packet) = (self.config.channel.profiles(), chain.packet());
        let ips = Headers::parse_ips(packet, MAX_IP);
        let profiles = V2Room::PROFILES.into_iter().filter(move |profile| profiles.has(*profile));
        profiles.filter_map(move |profile| ClassifiedPacket::of(profile, ips.as_ref(), packet))
    }

    /// Compresses a packet with the highest profile that accepts it; `None` if none does.
    fn rfc5225(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>> {
        let mut rtp = None;
        for classified in self.in_profiles(packet.chain) {
            let classified = match classified.profile {
                ProfileId::RtpV2 | ProfileId::RtpUdpLiteV2 => {
                    if !self.is_rtp(&classified) {
                        rtp = Some(classified);
                        continue;
                    }
                    classified
                }
                _ => self.raised(classified, rtp.as_ref()),
            };
            let cid = match self.find_rfc5225(&classified) {
                Some(cid) => cid,
                None => match self.begin_rfc5225(packet, &classified) {
                    Some(cid) => cid,
                    None => continue,
                },
            };
            let outbound = Outbound {
                now: packet.now,
                headers: &classified.headers,
                packet: packet.chain.packet(),
                timer: self.shared.clock.limits(&self.config),
            };
            let group = self.group;
            let attempt =
                self.compress_with(cid, out, |context: &mut V2SenderContext, config, shared, out| {
                    context.caution.join(group);
                    let room = shared.v2_rooms.get_mut(cid.index()).ok_or(Refused::ByThisPacket)?;
                    context.compress(&outbound, &mut room.0, cid, config, out)
                });
            match attempt {
                Attempt::Done(done) => return Some(done),
                _ if packet.owed.is_some() => return None,
                Attempt::Rests | Attempt::Refused => {}
            }
        }
        None
    }

    /// True if a datagram that may be RTP is compressed by a profile with RTP: its port is listed, or its flow has proved to be RTP.
    fn is_rtp(&self, classified: &ClassifiedPacket) -> bool {
        let Some((_, sn)) = classified.proof() else { return false };
        if classified.port().is_some_and(|port| self.config.rtp.has(port)) {
            return true;
        }
        let known = self.find_rfc5225(classified).and_then(|cid| self.flows.context::<V2SenderContext>(cid));
        self.config.rtp.guesses() && known.is_some_and(|known| is_step(sn.wrapping_sub(known.msn as u16)))
    }

    /// The packet as it is, or as RTP if its flow has just proved to be RTP.
    fn raised(&mut self, classified: ClassifiedPacket, rtp: Option<&ClassifiedPacket>) -> ClassifiedPacket {
        let wants = match classified.profile {
            ProfileId::UdpV2 => ProfileId::RtpV2,
            ProfileId::UdpLiteV2 => ProfileId::RtpUdpLiteV2,
            _ => return classified,
        };
        let Some(rtp) = rtp.filter(|rtp| rtp.profile == wants && self.config.rtp.guesses()) else {
            return classified;
        };
        let Some(cid) = self.find_rfc5225(&classified) else { return classified };
        let Some(context) = self.flows.context_mut::<V2SenderContext>(cid) else { return classified };
        if context.guess.goes_on() && context.guess.look(rtp.proof()) { *rtp } else { classified }
    }

    /// The context of a flow: often that of the packet before.
    fn find_rfc5225(&self, classified: &ClassifiedPacket) -> Option<Cid> {
        let is_it = |cid: Cid, context: &V2SenderContext| {
            context.profile == classified.profile
                && self
                    .shared
                    .v2_rooms
                    .get(cid.index())
                    .is_some_and(|room| room.0.headers.is_flow_of(&classified.headers))
        };
        let newest = self.flows.latest().next()?;
        if self.flows.context(newest).is_some_and(|context| is_it(newest, context)) {
            return Some(newest);
        }
        self.flows.find::<V2SenderContext>(self.flows.hash(classified), is_it)
    }

    /// Creates a context for a new flow; `None` if another profile has to compress it.
    #[cold]
    fn begin_rfc5225(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        classified: &ClassifiedPacket,
    ) -> Option<Cid> {
        let newcomer = self.admit(packet.now, self.flows.hash(classified), packet.chain.packet())?;
        if self.next_context(newcomer)?.index() >= self.shared.v2_rooms.len() {
            return None;
        }
        let msn = self.next_random() as u32 & 0xFFFF;
        let cid = self.begin(packet, newcomer, None)?;
        let mut context = V2SenderContext::new(classified.profile, msn, packet.now, &self.config);
        context.guess.look(classified.proof());
        let room = self.shared.v2_rooms.get_mut(cid.index())?;
        room.0 = State { msn, headers: classified.headers, ..State::new(classified.profile) };
        self.flows.set(cid, context);
        Some(cid)
    }
}
