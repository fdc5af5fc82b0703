//! ROHC instances of a channel: an endpoint of a pair, or a compressor and decompressors of a mesh, with
//! their feedback.

use std::time::Duration;

use thinair_rohc::exchange::Exchanges;
use thinair_rohc::feedback::{AckType, Feedback, FeedbackError, FeedbackForm, MAX_ELEMENT};
use thinair_rohc::packet::Elements;
use thinair_rohc::storage::Slots;
use thinair_rohc::{
    Arrival, Channel as Parameters, CidSpace, Compressed, Compressor, CompressorMemory, DecompressError,
    Decompressed, Decompressor, DecompressorConfig, DecompressorMemory, Endpoint, Instant, Mode,
};
use thinair_session::Missing;

use super::counters::{self, Counters};
use super::feedback::{Limiter, PendingElements};
use super::mesh::Combined;
use super::{NotSent, Role, Setup, SetupError};
use crate::site_config::ChannelConfig;
use crate::unit::{Protocol, SiteId, Unit};

/// Compressors and decompressors of a channel.
#[derive(Debug)]
pub(super) struct ChannelEnds {
    kind: ChannelKind,
    /// Limits the effect of negative feedback on our compressor.
    limiter: Limiter,
    parameters: Parameters,
    /// Minimum interval between units with feedback.
    interval: Duration,
    seed: u64,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one of a channel")]
enum ChannelKind {
    Pair { endpoint: Endpoint<'static>, back: Back, lost: Lost },
    Mesh(MeshChannel),
}

/// A compressor for all sites, and a decompressor for each other site.
#[derive(Debug)]
struct MeshChannel {
    own: Option<SiteId>,
    compressor: Option<Compressor<'static>>,
    sites: Vec<Hearing>,
    /// Index in `sites` by site number; [`NOWHERE`] for unknown sites.
    places: [u8; 256],
    /// Combined feedback, if receivers answer.
    combined: Option<Combined>,
}

/// Index for sites that are not in the mesh. There are at most 254 other sites.
const NOWHERE: u8 = u8::MAX;

impl MeshChannel {
    fn place(&self, from: Option<SiteId>) -> Option<usize> {
        let place = *self.places.get(usize::from(from?.number()))?;
        (place != NOWHERE).then_some(usize::from(place))
    }
}

/// Receiving state for one site.
#[derive(Debug)]
struct Hearing {
    site: SiteId,
    decompressor: Decompressor<'static>,
    back: Back,
    lost: Lost,
}

/// Number of packets that may have been lost before the next one.
#[derive(Debug, Default)]
struct Lost {
    /// `None`: unknown.
    packets: Option<u32>,
    /// True if packets of the current datagram are counted.
    is_counted: bool,
}

impl Lost {
    /// Records the units missing before a datagram.
    fn note(&mut self, missing: Missing) {
        self.is_counted = missing != Missing::Uncounted;
        self.packets = match missing {
            Missing::Counted(units) => self.packets.map(|packets| packets.saturating_add(units)),
            Missing::Unknown => None,
            Missing::Uncounted => self.packets,
        };
    }

    fn arrival(&self, now: Instant) -> Arrival {
        Arrival { now, lost: self.packets.filter(|_| self.is_counted) }
    }

    /// Records a received packet. Segments of incomplete packets do not count.
    fn note_taken(&mut self, done: &Result<Decompressed, DecompressError>) {
        if self.is_counted && !matches!(done, Err(DecompressError::NothingYet)) {
            self.packets = Some(0);
        }
    }
}

/// Feedback path to one compressor.
#[derive(Debug)]
struct Back {
    /// True if feedback can be sent.
    exists: bool,
    waiting: PendingElements,
    limiter: Limiter,
}

impl Back {
    fn new(exists: bool, contexts: usize, interval: Duration) -> Self {
        Self { exists, waiting: PendingElements::new(interval), limiter: Limiter::new(contexts) }
    }

    /// Collects all pending feedback of the decompressor.
    fn collect(
        &mut self,
        now: Instant,
        due: Instant,
        space: CidSpace,
        counters: &mut counters::Feedback,
        mut poll: impl FnMut(&mut [u8]) -> Option<usize>,
    ) {
        let mut element = [0; MAX_ELEMENT];
        while let Some(len) = poll(&mut element) {
            let element = element.get(..len).unwrap_or_default();
            let data = element.get(if element.first() == Some(&0b1111_0000) { 2 } else { 1 }..);
            let told = data.and_then(|data| Feedback::glance(data, space));
            let Some((cid, ack)) = told.filter(|_| self.exists) else { continue };
            if !self.limiter.passes(now, cid, ack) || !self.waiting.push(element, due) {
                counters.too_many += 1;
                continue;
            }
            counters.note(ack);
            counters.octets += len as u64;
        }
    }

    fn go_alone(
        &mut self,
        now: Instant,
        most: usize,
        to: Option<SiteId>,
        counters: &mut Counters,
        sink: &mut dyn FnMut(Unit<'_>),
    ) {
        if self.waiting.due().is_some_and(|due| due <= now) {
            let packets = self.waiting.go_alone(now, most, |octets| {
                counters.sent.units += 1;
                counters.sent.unit_octets += octets.len() as u64;
                sink(Unit { protocol: Protocol::Rohc, to, large: false, octets });
            });
            counters.feedback_sent.alone += packets;
        }
    }
}

impl ChannelEnds {
    pub(super) fn new(setup: &Setup<'_>) -> Result<Self, SetupError> {
        let config = setup.config;
        let parameters = Parameters::new(config.cids, config.max_cid, config.profiles)
            .map_err(SetupError::Channel)?
            .with_mrru(setup.mrru)
            .with_integrity_below(setup.integrity);
        let answers = match setup.role {
            Role::Pair => true,
            Role::OneWay => false,
            Role::Mesh { feedback, .. } => feedback,
        };
        let is_mesh = matches!(setup.role, Role::Mesh { .. });
        if is_mesh && answers && config.mode == Mode::Reliable {
            return Err(SetupError::ReliableMesh);
        }
        if !answers && config.mode != Mode::Unidirectional {
            let error = if is_mesh { SetupError::NobodyAnswers } else { SetupError::NoWayBack };
            return Err(error(config.mode));
        }
        let limiter = Limiter::new(parameters.contexts());
        let kind = match setup.role {
            Role::Pair | Role::OneWay => {
                return Ok(Self::pair(config, parameters, answers, setup.feedback_interval, setup.seed));
            }
            Role::Mesh { own, sites, feedback } => {
                let mut hearing: Vec<Hearing> = Vec::with_capacity(sites.len());
                let mut places = [NOWHERE; 256];
                for (&site, number) in sites.iter().zip(0..) {
                    let place = &mut places[usize::from(site.number())];
                    if own == Some(site) || *place != NOWHERE {
                        return Err(SetupError::Twice(site.number()));
                    }
                    *place = number;
                    let decompressor = decompressor(config, parameters);
                    let back =
                        Back::new(feedback && own.is_some(), parameters.contexts(), setup.feedback_interval);
                    hearing.push(Hearing { site, decompressor, back, lost: Lost::default() });
                }
                let compressor = own.map(|_| compressor(config, parameters, setup.seed, true));
                let combined =
                    (feedback && own.is_some()).then(|| Combined::new(sites.to_vec(), parameters.contexts()));
                ChannelKind::Mesh(MeshChannel { own, compressor, sites: hearing, places, combined })
            }
        };
        Ok(Self { kind, limiter, parameters, interval: setup.feedback_interval, seed: setup.seed })
    }

    fn pair(
        config: &ChannelConfig,
        parameters: Parameters,
        answers: bool,
        interval: Duration,
        seed: u64,
    ) -> Self {
        let endpoint = endpoint(config, parameters, seed);
        let back = Back::new(answers, parameters.contexts(), interval);
        let limiter = Limiter::new(parameters.contexts());
        let kind = ChannelKind::Pair { endpoint, back, lost: Lost::default() };
        Self { kind, limiter, parameters, interval, seed }
    }

    /// Returns the ends of a second channel of the pair.
    pub(super) fn with_large_cids(&self, config: &ChannelConfig, parameters: Parameters) -> Self {
        Self::pair(config, parameters, !self.no_way_back(), self.interval, !self.seed)
    }

    /// True if there is no compressor.
    pub(super) fn only_hears(&self) -> bool {
        matches!(&self.kind, ChannelKind::Mesh(MeshChannel { compressor: None, .. }))
    }

    /// True if units from this source are accepted.
    pub(super) fn knows(&self, from: Option<SiteId>) -> bool {
        match &self.kind {
            // A packaging may number peers, too; the caller has selected the channel by peer.
            ChannelKind::Pair { .. } => true,
            ChannelKind::Mesh(mesh) => mesh.place(from).is_some(),
        }
    }

    pub(super) fn compress(
        &mut self,
        now: Instant,
        packet: &[u8],
        room: &mut [u8],
    ) -> Result<Compressed, NotSent> {
        match &mut self.kind {
            // No feedback is piggybacked here: all of it was collected.
            ChannelKind::Pair { endpoint, .. } => {
                let compressed = endpoint.send(now, packet, room).map_err(NotSent::Compress)?;
                Ok(compressed)
            }
            ChannelKind::Mesh(mesh) => {
                let compressor = mesh.compressor.as_mut().ok_or(NotSent::OnlyHears)?;
                let compressed = compressor.compress(now, packet, room).map_err(NotSent::Compress)?;
                if let Some(combined) = &mut mesh.combined {
                    let sn = compressor.context(compressed.cid).and_then(|context| context.sn);
                    combined.note_sent(&compressed, sn);
                }
                Ok(compressed)
            }
        }
    }

    /// Starts a new datagram for the packets that follow.
    pub(super) fn begin_group(&mut self) {
        match &mut self.kind {
            ChannelKind::Pair { endpoint, .. } => endpoint.begin_group(),
            ChannelKind::Mesh(mesh) => {
                mesh.compressor.iter_mut().for_each(|compressor| compressor.begin_group())
            }
        }
    }

    /// Records the units missing before the current datagram.
    pub(super) fn note_missing(&mut self, from: Option<SiteId>, missing: Missing) {
        match &mut self.kind {
            ChannelKind::Pair { lost, .. } => lost.note(missing),
            ChannelKind::Mesh(mesh) => {
                if let Some(hearing) = mesh.place(from).and_then(|place| mesh.sites.get_mut(place)) {
                    hearing.lost.note(missing);
                }
            }
        }
    }

    /// Decompresses a packet without feedback, and keeps the resulting feedback until `due`.
    pub(super) fn decompress(
        &mut self,
        now: Instant,
        from: Option<SiteId>,
        packet: &[u8],
        room: &mut [u8],
        due: Instant,
        counters: &mut Counters,
    ) -> Result<Decompressed, DecompressError> {
        let space = self.parameters.cids();
        let counters = &mut counters.feedback_sent;
        match &mut self.kind {
            ChannelKind::Pair { endpoint, back, lost } => {
                let done = endpoint.receive(lost.arrival(now), packet, room);
                lost.note_taken(&done);
                back.collect(now, due, space, counters, |out| endpoint.poll_feedback(out));
                done
            }
            ChannelKind::Mesh(mesh) => {
                let place = mesh.place(from).and_then(|place| mesh.sites.get_mut(place));
                let Some(Hearing { decompressor, back, lost, .. }) = place else {
                    return Err(DecompressError::NothingYet);
                };
                let done = decompressor.decompress(lost.arrival(now), packet, room);
                lost.note_taken(&done);
                back.collect(now, due, space, counters, |out| decompressor.poll_feedback(out));
                done
            }
        }
    }

    /// Processes received feedback.
    pub(super) fn feedback(
        &mut self,
        now: Instant,
        from: Option<SiteId>,
        to: Option<SiteId>,
        elements: Elements<'_>,
        counters: &mut counters::Feedback,
    ) {
        counters.octets += elements.octets().len() as u64;
        let space = self.parameters.cids();
        for element in elements {
            let Some((cid, ack)) = Feedback::glance(element, space) else {
                counters.ignored += 1;
                continue;
            };
            counters.note(ack);
            if self.no_way_back() {
                counters.ignored += 1;
                continue;
            }
            if ack != AckType::Ack && !self.limiter.passes(now, cid, ack) {
                counters.too_many += 1;
                continue;
            }
            let told = match &mut self.kind {
                ChannelKind::Pair { endpoint, .. } => endpoint.compressor.receive_feedback(now, element),
                ChannelKind::Mesh(mesh) => match (&mut mesh.combined, &mut mesh.compressor, from) {
                    // An element contains a CID but no compressor; without a destination it may be for any
                    // site.
                    (Some(combined), Some(compressor), Some(from)) if to.is_some() && to == mesh.own => {
                        combined.receive(now, from, element, space, compressor)
                    }
                    _ => Err(FeedbackError::UnknownCid(cid)),
                },
            };
            if told.is_err() {
                counters.ignored += 1;
            }
        }
    }

    fn no_way_back(&self) -> bool {
        match &self.kind {
            ChannelKind::Pair { back, .. } => !back.exists,
            ChannelKind::Mesh(mesh) => mesh.combined.is_none(),
        }
    }

    /// Returns feedback that can be sent in front of packets: that of a pair. In a mesh all sites would
    /// receive it.
    pub(super) fn waiting_for_all(&mut self) -> Option<&mut PendingElements> {
        match &mut self.kind {
            ChannelKind::Pair { back, .. } => Some(&mut back.waiting),
            ChannelKind::Mesh(_) => None,
        }
    }

    /// Replaces pending feedback of a pair with a STATIC-NACK for each context of the decompressor, which is due at once.
    pub(super) fn give_back(&mut self, now: Instant, counters: &mut counters::Feedback) {
        let ChannelKind::Pair { endpoint, back, .. } = &mut self.kind else { return };
        back.waiting.clear(now);
        for context in endpoint.decompressor.contexts().filter(|_| back.exists) {
            let nack = Feedback {
                mode: Some(context.mode),
                protected: true,
                form: FeedbackForm::of(context.profile),
                ..Feedback::new(context.cid, AckType::StaticNack)
            };
            let mut element = [0; MAX_ELEMENT];
            let length = nack.write(self.parameters.cids(), &mut element);
            let element = length.and_then(|length| element.get(..length)).unwrap_or_default();
            if back.waiting.push(element, now) {
                counters.note(AckType::StaticNack);
                counters.octets += element.len() as u64;
            }
        }
    }

    pub(super) fn poll_at(&self) -> Option<Instant> {
        match &self.kind {
            ChannelKind::Pair { back, .. } => back.waiting.due(),
            ChannelKind::Mesh(mesh) => {
                mesh.sites.iter().filter_map(|hearing| hearing.back.waiting.due()).min()
            }
        }
    }

    pub(super) fn poll(
        &mut self,
        now: Instant,
        most: usize,
        counters: &mut Counters,
        sink: &mut dyn FnMut(Unit<'_>),
    ) {
        match &mut self.kind {
            ChannelKind::Pair { back, .. } => back.go_alone(now, most, None, counters, sink),
            ChannelKind::Mesh(mesh) => {
                for hearing in &mut mesh.sites {
                    hearing.back.go_alone(now, most, Some(hearing.site), counters, sink);
                }
            }
        }
    }

    /// Resets the contexts of both ends. Restarts are rare, so their memory is allocated again.
    pub(super) fn reset(&mut self, config: &ChannelConfig, from: Option<SiteId>) {
        // Sequence numbers begin at a different value than before.
        self.seed = self.seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        let contexts = self.parameters.contexts();
        self.limiter = Limiter::new(contexts);
        match &mut self.kind {
            ChannelKind::Pair { endpoint: old, back, lost } => {
                *lost = Lost::default();
                *old = endpoint(config, self.parameters, self.seed);
                *back = Back::new(back.exists, contexts, self.interval);
            }
            ChannelKind::Mesh(mesh) => {
                for hearing in &mut mesh.sites {
                    if from.is_none() || from == Some(hearing.site) {
                        hearing.lost = Lost::default();
                        hearing.decompressor = decompressor(config, self.parameters);
                        hearing.back = Back::new(hearing.back.exists, contexts, self.interval);
                    }
                }
                if let Some(old) = &mut mesh.compressor {
                    *old = compressor(config, self.parameters, self.seed, true);
                }
                if let Some(combined) = &mut mesh.combined {
                    combined.clear();
                }
            }
        }
    }

    pub(super) fn compressor(&self) -> Option<&Compressor<'static>> {
        match &self.kind {
            ChannelKind::Pair { endpoint, .. } => Some(&endpoint.compressor),
            ChannelKind::Mesh(mesh) => mesh.compressor.as_ref(),
        }
    }

    pub(super) fn decompressors(&self) -> impl Iterator<Item = (Option<SiteId>, &Decompressor<'static>)> {
        let (pair, mesh) = match &self.kind {
            ChannelKind::Pair { endpoint, .. } => (Some((None, &endpoint.decompressor)), &[][..]),
            ChannelKind::Mesh(mesh) => (None, &mesh.sites[..]),
        };
        pair.into_iter().chain(mesh.iter().map(|hearing| (Some(hearing.site), &hearing.decompressor)))
    }
}

fn compressor(
    config: &ChannelConfig,
    parameters: Parameters,
    seed: u64,
    for_many: bool,
) -> Compressor<'static> {
    let mut compression = config.compressor(parameters, seed);
    if for_many {
        // Some members may be unable to answer at times.
        compression.refresh_two_way = compression.refresh;
    }
    let memory = CompressorMemory::owned(&parameters);
    Compressor::new(compression, memory).with_bases(Slots::owned(config.bases.clone()))
}

fn decompressor(config: &ChannelConfig, parameters: Parameters) -> Decompressor<'static> {
    let decompression = DecompressorConfig { mode: config.mode, ..DecompressorConfig::new(parameters) };
    let memory = DecompressorMemory::owned(&parameters);
    Decompressor::new(decompression, memory).with_bases(Slots::owned(config.bases.clone()))
}

fn endpoint(config: &ChannelConfig, parameters: Parameters, seed: u64) -> Endpoint<'static> {
    Endpoint::new(compressor(config, parameters, seed, false), decompressor(config, parameters))
        .with_exchanges(Exchanges::for_channel(&parameters), Exchanges::for_channel(&parameters))
}

#[cfg(test)]
mod tests {
    use thinair_rohc::Cid;

    use super::*;

    /// Number of packets lost before the next one, which arrives.
    fn next(lost: &mut Lost, missing: Option<Missing>) -> Option<u32> {
        missing.into_iter().for_each(|missing| lost.note(missing));
        let arrival = lost.arrival(Instant::ZERO);
        lost.note_taken(&Err(DecompressError::NoContext(Cid::ZERO)));
        arrival.lost
    }

    #[test]
    fn packets_are_counted_from_the_first_datagram_of_a_session() {
        let mut lost = Lost::default();
        assert_eq!(next(&mut lost, Some(Missing::Unknown)), None);
        assert_eq!(next(&mut lost, None), Some(0), "in one datagram");
        assert_eq!(next(&mut lost, Some(Missing::Counted(2))), Some(2));
        assert_eq!(next(&mut lost, Some(Missing::Counted(0))), Some(0));
        // A datagram without a packet of this channel.
        lost.note(Missing::Counted(5));
        assert_eq!(next(&mut lost, Some(Missing::Counted(1))), Some(6));
    }

    #[test]
    fn late_packets_are_not_counted() {
        let mut lost = Lost::default();
        assert_eq!(next(&mut lost, Some(Missing::Unknown)), None);
        lost.note(Missing::Counted(3));
        assert_eq!(next(&mut lost, Some(Missing::Uncounted)), None);
        assert_eq!(next(&mut lost, Some(Missing::Counted(0))), Some(3));
    }

    #[test]
    fn a_carrier_that_does_not_count_counts_never() {
        let mut lost = Lost::default();
        assert_eq!(next(&mut lost, None), None);
        assert_eq!(next(&mut lost, None), None);
    }

    #[test]
    fn a_segment_of_a_packet_that_goes_on_is_none() {
        let mut lost = Lost::default();
        lost.note(Missing::Unknown);
        next(&mut lost, None);
        lost.note(Missing::Counted(4));
        lost.note_taken(&Err(DecompressError::NothingYet));
        assert_eq!(next(&mut lost, None), Some(4));
    }
}
