//! Flows of RFC 5225: the highest profile of the channel that restores a packet, and the context of its flow.

use thinair_wire::header::chain::HeaderChain;

use super::compress::{Outbound, V2SenderContext};
use super::decompress;
use super::headers::{Headers, Kind, MAX_IP, upper};
use super::state::{V2Room, has_rtp};
use crate::arrival::Moment;
use crate::channel::ProfileSet;
use crate::cid::Cid;
use crate::compressor::{
    CompressError, Compressed, Compressor, CompressorConfig, FlowKey, OutgoingPacket, Refused, SenderContext,
    SharedMemory,
};
use crate::contexts::ContextState;
use crate::decompressor::{
    self, Decompressor, DecompressorConfig, Failure, IncomingPacket, NackPolicy, Problem, ReceiverContext,
    Traced, Verified, on_failure,
};
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::field::rtp::is_step;
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::packet::PacketHeader;
use crate::profile::Held;

/// A packet whose headers a profile can restore.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    profile: ProfileId,
    headers: Headers,
}

impl Candidate {
    /// The packet in a profile; `None` if the channel does not have that, or it does not restore the packet.
    fn of(profile: ProfileId, packet: &[u8], profiles: ProfileSet) -> Option<Self> {
        if !profiles.has(profile) {
            return None;
        }
        // IP alone may end at any IP header; a transport header follows the last one.
        let least = if profile == ProfileId::IpV2 { 1 } else { MAX_IP };
        let headers = (least..=MAX_IP).rev().filter_map(|most| Headers::parse(profile, packet, most));
        let headers = headers.into_iter().find(|headers| headers.is_restored(packet.len(), false))?;
        Some(Self { profile, headers })
    }

    /// SSRC and sequence number of an RTP header.
    fn proof(&self) -> Option<(u32, u16)> {
        let rtp = self.headers.upper(Kind::Rtp)?;
        Some((self.headers.long(rtp, 8), self.headers.word(rtp, 2)))
    }

    /// UDP port that the packet goes to.
    fn port(&self) -> Option<u16> {
        let kind = upper(self.profile).first().filter(|kind| **kind != Kind::Esp)?;
        Some(self.headers.word(self.headers.upper(*kind)?, 2))
    }
}

impl FlowKey for Candidate {
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
        compressor.candidates(packet.chain).any(|candidate| compressor.find_rfc5225(&candidate).is_some())
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
        let state = match (self.left_ir, self.left_repair) {
            (1.., _) => "IR",
            (0, 1..) => "FO",
            (0, 0) => "SO",
        };
        let mode = Mode::with_feedback(self.two_way);
        ContextState { cid, profile: self.profile, state, mode, sn: Some(msn_of(self.profile, self.msn)) }
    }
}

impl Compressor<'_> {
    /// Compresses a packet that is the next one of the newest flow, or any.
    #[inline(never)]
    fn next_or_any(
        &mut self,
        packet: &OutgoingPacket<'_, '_, '_>,
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
    fn candidates<'a>(&self, chain: &'a HeaderChain<'_>) -> impl Iterator<Item = Candidate> + use<'a> {
        let profiles = self.config.channel.profiles();
        V2Room::PROFILES
            .into_iter()
            .filter_map(move |profile| Candidate::of(profile, chain.packet(), profiles))
    }

    /// Compresses a packet by the highest profile that takes it; `None` if none does.
    fn rfc5225(
        &mut self,
        packet: &OutgoingPacket<'_, '_, '_>,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>> {
        let mut rtp = None;
        for candidate in self.candidates(packet.chain) {
            let candidate = match candidate.profile {
                ProfileId::RtpV2 | ProfileId::RtpUdpLiteV2 => {
                    if !self.is_rtp(&candidate) {
                        rtp = Some(candidate);
                        continue;
                    }
                    candidate
                }
                _ => self.raised(candidate, rtp.as_ref()),
            };
            let cid = match self.find_rfc5225(&candidate) {
                Some(cid) => cid,
                None => match self.begin_rfc5225(packet, &candidate) {
                    Some(cid) => cid,
                    None => continue,
                },
            };
            self.flows.touch(cid);
            if self.flows.rests(cid) {
                continue;
            }
            let outbound = Outbound {
                now: packet.now,
                headers: &candidate.headers,
                packet: packet.chain.packet(),
                timer: self.shared.clock.limits(&self.config),
            };
            let room = &mut self.shared.v2_rooms.get_mut(cid.index())?.0;
            let group = self.group;
            let context = self.flows.context_mut::<V2SenderContext>(cid)?;
            context.caution.join(group);
            match context.compress(&outbound, room, cid, &self.config, out) {
                Ok(compressed) => {
                    self.note_cost(&compressed);
                    return Some(Ok(compressed));
                }
                Err(Refused::NoRoom) => return Some(Err(CompressError::OutputTooSmall { have: out.len() })),
                Err(Refused::ByThisPacket) => {}
            }
        }
        None
    }

    /// True if a datagram that may be RTP goes by a profile with RTP: its port says so, or its flow has proved to be.
    fn is_rtp(&self, candidate: &Candidate) -> bool {
        let Some((_, sn)) = candidate.proof() else { return false };
        if candidate.port().is_some_and(|port| self.config.rtp.has(port)) {
            return true;
        }
        let known = self.find_rfc5225(candidate).and_then(|cid| self.flows.context::<V2SenderContext>(cid));
        self.config.rtp.guesses() && known.is_some_and(|known| is_step(sn.wrapping_sub(known.msn as u16)))
    }

    /// The candidate, or the same packet as RTP if its flow has just proved to be RTP.
    fn raised(&mut self, candidate: Candidate, rtp: Option<&Candidate>) -> Candidate {
        let wants = match candidate.profile {
            ProfileId::UdpV2 => ProfileId::RtpV2,
            ProfileId::UdpLiteV2 => ProfileId::RtpUdpLiteV2,
            _ => return candidate,
        };
        let Some(rtp) = rtp.filter(|rtp| rtp.profile == wants && self.config.rtp.guesses()) else {
            return candidate;
        };
        let Some(cid) = self.find_rfc5225(&candidate) else { return candidate };
        let Some(context) = self.flows.context_mut::<V2SenderContext>(cid) else { return candidate };
        if context.guess.goes_on() && context.guess.look(rtp.proof()) { *rtp } else { candidate }
    }

    /// The context of a flow: often that of the packet before.
    fn find_rfc5225(&self, candidate: &Candidate) -> Option<Cid> {
        let is_it = |cid: Cid, context: &V2SenderContext| {
            context.profile == candidate.profile
                && self
                    .shared
                    .v2_rooms
                    .get(cid.index())
                    .is_some_and(|room| room.0.headers.is_flow_of(&candidate.headers))
        };
        let newest = self.flows.latest().next()?;
        if self.flows.context(newest).is_some_and(|context| is_it(newest, context)) {
            return Some(newest);
        }
        self.flows.find::<V2SenderContext>(self.flows.hash(candidate), is_it)
    }

    /// A context for a new flow; `None` if that goes by another profile.
    #[cold]
    fn begin_rfc5225(&mut self, packet: &OutgoingPacket<'_, '_, '_>, candidate: &Candidate) -> Option<Cid> {
        let (hash, pair) = (self.flows.hash(candidate), self.flows.pair(packet.chain.packet()));
        if self.flows.is_rejected(hash, packet.now) || !self.flows.admits(hash, pair) {
            return None;
        }
        if self.flows.next(pair)?.index() >= self.shared.v2_rooms.len() {
            return None;
        }
        let msn = self.next_random() as u32 & 0xFFFF;
        let cid = self.flows.claim(hash, pair)?;
        self.release(cid);
        let mut context = V2SenderContext::new(candidate.profile, msn, packet.now, &self.config);
        context.guess.look(candidate.proof());
        let room = self.shared.v2_rooms.get_mut(cid.index())?;
        room.0 = super::state::State {
            msn,
            headers: candidate.headers,
            ..super::state::State::new(candidate.profile)
        };
        self.flows.set(cid, context);
        Some(cid)
    }
}

impl ReceiverContext for decompress::V2ReceiverContext {
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
        let (header, cid) = (packet.header, packet.header.cid);
        let Decompressor { shared, contexts, .. } = decompressor;
        let room = shared.v2_rooms.get_mut(cid.index()).ok_or(Failure::NoMemory)?;
        let held = contexts.get(cid.index()).and_then(|slot| Self::of(&slot.place));
        let mut context = held.copied().filter(|held| held.profile == profile).unwrap_or(Self::new(profile));
        let verified = context.ir(packet.at, header, &mut room.0, out)?;
        decompressor.set(cid, context);
        Ok(verified)
    }

    fn decompress<'m>(
        &mut self,
        packet: IncomingPacket<'_, '_, 'm>,
        _: &DecompressorConfig,
        shared: &mut decompressor::SharedMemory<'m>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let room = shared.v2_rooms.get_mut(packet.header.cid.index()).ok_or(Failure::NoMemory)?;
        self.compressed(packet.at, packet.header, &mut room.0, out)
    }

    fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        _: &DecompressorConfig,
        shared: &decompressor::SharedMemory<'_>,
        tell: &mut dyn FnMut(Traced<'p>),
    ) -> Option<Format> {
        self.dissect(packet, &shared.v2_rooms.get(packet.cid.index())?.0, tell)
    }

    fn context_state(&self, cid: Cid, config: &DecompressorConfig) -> ContextState {
        let (profile, state, sn) = (self.profile, self.state.name(), Some(msn_of(self.profile, self.msn)));
        ContextState { cid, profile, state, mode: config.mode, sn }
    }

    fn note_success(&mut self, _: u8, _: Format, _: Mode) -> bool {
        self.note_success()
    }

    fn note_failure(
        &mut self,
        _: Moment,
        _: u8,
        failure: Option<&Failure>,
        policy: &NackPolicy<'_>,
    ) -> Option<AckType> {
        // It may be sent again, ever more seldom, and the next ones would look the same.
        if let Some(Failure::OnTrial(_) | Failure::Ambiguous(_)) = failure {
            return Some(AckType::Nack);
        }
        self.note_failure(failure);
        if let Some(Failure::NoMemory) = failure {
            return Some(AckType::StaticNack);
        }
        let has_many_failures = policy.nack().is_reached(self.failures);
        let is_damaged = policy.is_two_way && self.unrepaired >= policy.config.static_nack.k;
        on_failure(&mut self.state, has_many_failures, false, is_damaged)
    }

    fn complete(&mut self, element: Feedback, _: Option<Format>, config: &DecompressorConfig) -> Feedback {
        // RFC 5225, section 6.6.9: zero, if there is no clock, and one is counted on.
        let clock = config.clock.filter(|_| has_rtp(self.profile)).or(self.is_timed.then_some(0));
        let late = self.late_to_acknowledge().filter(|_| element.ack == AckType::Ack);
        let msn = late.unwrap_or(self.msn);
        Feedback { clock, ..element.with_msn(FeedbackForm::Rfc5225, self.state, msn as u16) }
    }
}

/// An MSN in the bits that it has.
const fn msn_of(profile: ProfileId, msn: u32) -> u32 {
    if matches!(profile, ProfileId::EspV2) { msn } else { msn & 0xFFFF }
}
