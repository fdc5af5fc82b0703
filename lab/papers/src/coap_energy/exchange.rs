//! Load of an exchange: octets of its packets on the link, and instructions of the client.

use thinair_rohc::{Instant, ProfileId};
use thinair_simulation::emulator::ChannelEnd as _;

use crate::coap_delay::{CallProfile, instructions_of_exchange};
use crate::pair::{PairCodec, PairSettings};
use crate::paper::PaperError;
use crate::traffic::{CoapFlow, TrafficKind, TrafficPacket, TrafficVersion};

/// Exchanges of a course; the last ones are the steady state.
pub(super) const EXCHANGES: usize = 200;
/// Exchanges before the steady state.
const START: usize = 100;
/// Maximum size of a packet, compressed or not, in octets.
const ROOM: usize = 512;
/// Milliseconds between two exchanges.
const PACE: u64 = 1_000;

/// Compression of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EnergyScheme {
    Plain,
    Udp,
    Coap2015,
    /// Our profile, UDP checksums carried.
    Coap,
    /// Our profile, over a carrier with a link layer CRC.
    CoapElided,
}

impl EnergyScheme {
    pub(super) const ALL: [Self; 5] = [Self::Plain, Self::Udp, Self::Coap2015, Self::Coap, Self::CoapElided];

    /// Name in row ids.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Udp => "udp",
            Self::Coap2015 => "coap-2015",
            Self::Coap => "coap",
            Self::CoapElided => "coap-elided",
        }
    }

    /// Settings of the channel, and the profile whose instructions were counted.
    fn channel(self, seed: u64) -> Result<Option<(PairSettings, CallProfile)>, PaperError> {
        let coap = || PairSettings::new(Some(ProfileId::Coap), seed).map(PairSettings::optimistic);
        Ok(match self {
            Self::Plain => None,
            Self::Udp => Some((PairSettings::new(None, seed)?.optimistic(), CallProfile::Udp)),
            Self::Coap2015 => Some((PairSettings::coap_2015(seed)?.optimistic(), CallProfile::Coap2015)),
            Self::Coap => Some((coap()?, CallProfile::Coap)),
            Self::CoapElided => Some((coap()?.elided(), CallProfile::Coap)),
        })
    }
}

/// Request and response, from the client's view. Feedback precedes the next packet in its direction, and counts as part
/// of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExchangeLoad {
    /// Octets of the request.
    pub(super) request: usize,
    /// Octets of the response.
    pub(super) response: usize,
    /// Instructions of the client.
    pub(super) instructions: u64,
}

impl ExchangeLoad {
    /// Octets of request and response.
    pub(super) const fn octets(&self) -> usize {
        self.request + self.response
    }
}

/// All exchanges of one conversation.
#[derive(Clone, Debug)]
pub(super) struct Course {
    pub(super) version: TrafficVersion,
    pub(super) scheme: EnergyScheme,
    pub(super) exchanges: Vec<ExchangeLoad>,
    /// Packets that were not restored exactly.
    pub(super) not_exact: u64,
}

impl Course {
    /// Carries the conversation through two endpoints, and compares every packet.
    pub(super) fn measure(
        version: TrafficVersion,
        scheme: EnergyScheme,
        seed: u64,
    ) -> Result<Self, PaperError> {
        let channel = scheme.channel(seed)?;
        let mut ends = match channel {
            Some((settings, _)) => Some([settings.end()?, settings.end()?]),
            None => None,
        };
        // Flows with one seed belong to one conversation: they share hosts, ports and Message IDs.
        let [mut requests, mut responses] =
            [TrafficKind::A, TrafficKind::B].map(|kind| CoapFlow::new(kind, version, seed));
        let (mut request, mut response) = (TrafficPacket::default(), TrafficPacket::default());
        let mut course = Self { version, scheme, exchanges: Vec::new(), not_exact: 0 };
        for number in 0..EXCHANGES {
            let now = Instant::from_millis(number as u64 * PACE);
            requests.next(&mut request);
            responses.next(&mut response);
            let (request, response) = (&request.octets[..], &response.octets[..]);
            let (Some([client, server]), Some((_, profile))) = (&mut ends, channel) else {
                let (request, response) = (request.len(), response.len());
                course.exchanges.push(ExchangeLoad { request, response, instructions: 0 });
                continue;
            };
            let up = carry(now, client, server, request)?;
            let down = carry(now, server, client, response)?;
            course.not_exact += [up, down].iter().filter(|(_, is_exact)| !is_exact).count() as u64;
            let counted = instructions_of_exchange(profile, number == 0);
            let instructions = counted.map_or(0, |[client, _]| client.into());
            course.exchanges.push(ExchangeLoad { request: up.0, response: down.0, instructions });
        }
        Ok(course)
    }

    /// Exchanges of the steady state.
    pub(super) fn settled(&self) -> &[ExchangeLoad] {
        self.exchanges.get(START..).unwrap_or_default()
    }
}

/// Returns the octets of a packet, including the feedback that precedes it, and whether it was restored exactly.
fn carry(
    now: Instant,
    near: &mut PairCodec,
    far: &mut PairCodec,
    packet: &[u8],
) -> Result<(usize, bool), PaperError> {
    let (mut sent, mut back) = ([0; ROOM], [0; ROOM]);
    let len = near.send(now, packet, &mut sent)?.len;
    let received = far.receive(now.into(), &sent[..len], &mut back);
    Ok((len, received.is_ok_and(|done| back[..done.len] == *packet)))
}
