//! Flows of RFC 5225: the highest profile of the channel that restores a packet, and the context of its flow.

use thinair_wire::header::chain::HeaderChain;

use super::compress::V2SenderContext;
use super::headers::{Headers, Kind, MAX_IP, upper};
use super::state::{State, V2Room};
use crate::channel::ProfileSet;
use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig, FlowKey, OutgoingPacket, Refused};
use crate::field::rtp::is_step;
use crate::flow::sender::{Departure, Flows, Obstacle, Sender, Start};
use crate::id::ProfileId;
use crate::storage::Slots;

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

/// A packet in the highest of the profiles that restore it, and that were not tried yet.
pub(crate) struct V2Packet<'p> {
    octets: &'p [u8],
    /// Its IP headers, as far as they could be parsed, and the protocol behind them.
    ips: Option<(Headers, u8)>,
    /// Number of profiles tried.
    tried: usize,
    classified: ClassifiedPacket,
    /// Profile, SSRC and sequence number of the packet as RTP, if its flow has not proved to be that.
    rtp: Option<(ProfileId, Option<(u32, u16)>)>,
}

impl<'p> V2Packet<'p> {
    /// A packet for which [`advance`](Self::advance) finds the first profile.
    #[inline(always)]
    fn new(octets: &'p [u8]) -> Self {
        let classified = ClassifiedPacket { profile: ProfileId::IpV2, headers: Headers::EMPTY };
        Self { octets, ips: Headers::parse_ips(octets, MAX_IP), tried: 0, classified, rtp: None }
    }

    /// Puts the packet into the next profile that restores it. False if there is none.
    fn advance(&mut self, profiles: ProfileSet) -> bool {
        while let Some(profile) = V2Room::PROFILES.get(self.tried) {
            self.tried += 1;
            if profiles.has(*profile)
                && let Some(classified) = ClassifiedPacket::of(*profile, self.ips.as_ref(), self.octets)
            {
                self.classified = classified;
                return true;
            }
        }
        false
    }

    /// Puts a packet that may be RTP into a profile without RTP unless its flow is RTP; or the other way round, if its flow has just proved
    /// to be RTP. False if no profile is left.
    fn detect_rtp(&mut self, flows: &mut Flows<'_, '_, V2SenderContext>) -> bool {
        while matches!(self.classified.profile, ProfileId::RtpV2 | ProfileId::RtpUdpLiteV2)
            && !self.is_rtp(flows)
        {
            self.rtp = Some((self.classified.profile, self.classified.proof()));
            if !self.advance(flows.config.channel.profiles()) {
                return false;
            }
        }
        self.raise(flows);
        true
    }

    /// True if a datagram that may be RTP is compressed by a profile with RTP: its port is listed, or its flow has proved to be RTP.
    fn is_rtp(&self, flows: &Flows<'_, '_, V2SenderContext>) -> bool {
        let Some((_, sn)) = self.classified.proof() else { return false };
        if self.classified.port().is_some_and(|port| flows.config.rtp.has(port)) {
            return true;
        }
        let known = flows.find(self).ok().and_then(|cid| flows.context(cid));
        flows.config.rtp.guesses() && known.is_some_and(|known| is_step(sn.wrapping_sub(known.msn as u16)))
    }

    /// Makes the packet RTP if its flow has just proved to be RTP.
    fn raise(&mut self, flows: &mut Flows<'_, '_, V2SenderContext>) {
        let wants = match self.classified.profile {
            ProfileId::UdpV2 => ProfileId::RtpV2,
            ProfileId::UdpLiteV2 => ProfileId::RtpUdpLiteV2,
            _ => return,
        };
        if let Some((rtp, proof)) = self.rtp
            && rtp == wants
            && flows.config.rtp.guesses()
            && let Ok(cid) = flows.find(self)
            && let Some(context) = flows.table.context_mut::<V2SenderContext>(cid)
            && context.guess.goes_on()
            && context.guess.look(proof)
            && let Some(rtp) = ClassifiedPacket::of(rtp, self.ips.as_ref(), self.octets)
        {
            self.classified = rtp;
        }
    }
}

impl FlowKey for V2Packet<'_> {
    fn key(&self, mut word: impl FnMut(u64)) {
        self.classified.headers.words(&mut word);
        word(self.classified.profile as u64);
    }
}

impl Sender for V2SenderContext {
    type Packet<'p> = V2Packet<'p>;

    /// A channel without these profiles has no memory for them.
    #[inline]
    fn is_in_use(_: ProfileSet, rooms: &Slots<'_, V2Room>) -> bool {
        !rooms.is_empty()
    }

    #[inline(always)]
    fn compress_next(
        &mut self,
        chain: &HeaderChain<'_>,
        rooms: &mut Slots<'_, V2Room>,
        departure: &mut Departure<'_, '_>,
    ) -> Option<Compressed> {
        let room = rooms.get_mut(departure.cid.index())?;
        self.compress_predicted(chain.packet(), &mut room.0, departure)
    }

    #[inline(always)]
    fn recognize<'p>(
        packet: &OutgoingPacket<'p, 'p, '_>,
        flows: &mut Flows<'_, '_, Self>,
        recognized: &mut Option<V2Packet<'p>>,
    ) {
        let packet = recognized.insert(V2Packet::new(packet.chain.packet()));
        if !Self::fall(packet, Obstacle::NoBeginning, flows) {
            *recognized = None;
        }
    }

    fn fall(packet: &mut V2Packet<'_>, _: Obstacle, flows: &mut Flows<'_, '_, Self>) -> bool {
        packet.advance(flows.config.channel.profiles()) && packet.detect_rtp(flows)
    }

    #[inline]
    fn is_flow_of(&self, packet: &V2Packet<'_>, cid: Cid, rooms: &Slots<'_, V2Room>) -> bool {
        let ClassifiedPacket { profile, headers } = &packet.classified;
        let is_of = |room: &V2Room| room.0.headers.is_flow_of(headers);
        self.profile == *profile && rooms.get(cid.index()).is_some_and(is_of)
    }

    fn has_flow(chain: &HeaderChain<'_>, flows: &Flows<'_, '_, Self>) -> bool {
        let profiles = flows.config.channel.profiles();
        let mut packet = V2Packet::new(chain.packet());
        while packet.advance(profiles) {
            if flows.find(&packet).is_ok() {
                return true;
            }
        }
        false
    }

    fn is_of_ports(packet: &V2Packet<'_>) -> bool {
        packet.classified.profile == ProfileId::UdpV2
    }

    fn has_room(cid: Cid, rooms: &Slots<'_, V2Room>) -> bool {
        cid.index() < rooms.len()
    }

    fn new(
        packet: &V2Packet<'_>,
        start: Start<'_, Self>,
        config: &CompressorConfig,
        rooms: &mut Slots<'_, V2Room>,
    ) -> Self {
        let ClassifiedPacket { profile, headers } = packet.classified;
        let msn = start.random.next() as u32 & 0xFFFF;
        let mut context = Self::new(profile, msn, start.now, config);
        context.guess.look(packet.classified.proof());
        // `has_room` was true.
        rooms[start.cid.index()].0 = State { msn, headers, ..State::new(profile) };
        context
    }

    #[inline(always)]
    fn compress(
        &mut self,
        packet: &V2Packet<'_>,
        _: Option<&Self>,
        rooms: &mut Slots<'_, V2Room>,
        departure: &mut Departure<'_, '_>,
    ) -> Result<Compressed, Refused> {
        self.caution.join(departure.group);
        let room = rooms.get_mut(departure.cid.index()).ok_or(Refused::ByThisPacket)?;
        self.compress(&packet.classified.headers, packet.octets, &mut room.0, departure)
    }
}
