//! One end of a tunnel, without input and output: packets of the system and datagrams of the carrier go in, datagrams
//! and packets come out.
//!
//! A packet goes by three stages, and comes back by them: a [channel](crate::channel) compresses it to a unit, a
//! [packager](crate::packaging) puts units into bodies, and a [seal](thinair_session) makes datagrams of bodies. A pipeline
//! (`site/pipeline.rs`) sends to each peer, or one to all sites of a mesh. Each peer, or each other site, is a source
//! (`site/source.rs`), and all that is received takes one way in (`site/inlet.rs`). Outputs wait in a queue
//! (`site/output.rs`).

mod build;
mod departures;
mod drops;
mod hold;
mod host_multicast;
mod inlet;
mod mapping;
mod membership;
mod obstacles;
mod output;
mod path;
mod peer_channel;
mod pipeline;
mod source;
mod tell;
mod times;
pub mod trial;
mod trouble;
mod unsent;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::time::Duration;

use thinair_link::tariff::Tariff;
use thinair_session::{
    AddressPair, BodyFlags, KeyId, Missing, NewSession, Opened, PathNews, Schedule, Seal, Sender, TwoWay,
    canonical,
};
use thinair_wire::time::Instant;

use crate::channel::{AllowedIps, NotSent};
use crate::mtu::Narrow;
use crate::packaging::{BodyIn, Unpackager};
use crate::site_config::HoldRule;
use crate::status::{Counters, Drop};
use crate::too_big;

pub use build::BuildError;
pub(crate) use build::packaging;
use departures::Departures;
use drops::{reason_not_sent, reason_refused};
use host_multicast::HostMulticast;
use inlet::Inlet;
pub use membership::ChangeError;
use output::OutputQueue;
pub use output::{Receipt, SiteEvent, SiteOutput};
use pipeline::{Outlet, Pipeline};
use source::Source;
#[cfg(target_os = "linux")]
pub(crate) use tell::add_counters;
pub use trouble::Trouble;

/// One end of a tunnel.
///
/// **Packets of the interface go to [`handle_packet`](Self::handle_packet); when no more of them wait,
/// [`pause`](Self::pause) is called. Datagrams go to [`handle_datagram`](Self::handle_datagram), octets of a stream to
/// [`handle_stream`](Self::handle_stream). [`handle_timeout`](Self::handle_timeout) is called when no more input waits,
/// and when [`poll_at`](Self::poll_at) has come. After each call that is given the time,
/// [`poll_output`](Self::poll_output) is called until nothing is left.**
///
/// There is room for the outputs of one call. Those of a caller that leaves more are dropped: datagrams as
/// [`CarrierFull`](Drop::CarrierFull), packets as [`InterfaceRefused`](Drop::InterfaceRefused).
pub struct Site {
    pipelines: Vec<Pipeline>,
    sources: Vec<Source>,
    /// One per source if a seal identifies the source of a body, otherwise one for all.
    unpackagers: Vec<Unpackager>,
    /// True if all sources share one pipeline: a mesh.
    mesh: bool,
    /// Indexed by number of the source.
    allowed: AllowedIps,
    /// Multicast of this host that is not carried; `None`: all is carried.
    host_multicast: Option<HostMulticast>,
    /// Packets that wait, so that several share a datagram.
    hold: Vec<HoldRule>,
    /// Price list by which they wait.
    tariff: Option<Tariff>,
    /// Lengths on a path that is narrower than configured.
    narrow: Narrow,
    common: CommonParts,
    /// Lower bounds of the next timeout of each pipeline.
    schedule: Schedule,
    /// Pipelines with unfinished bodies.
    unfinished: Vec<usize>,
    /// True for streams of constant rate.
    has_rate: bool,
    /// MTU of the interface by the paths. `None`: to be found anew.
    inside_mtu: Option<Option<u16>>,
    /// Time at which a sender was last asked for shorter packets.
    answered_at: Option<Instant>,
}

/// Parts that all pipelines and sources share.
struct CommonParts {
    seal: Option<Seal>,
    counters: Counters,
    /// Octets that the carrier adds to a datagram: headers of IP and UDP, or CRC and delimiters of a frame.
    outer: usize,
    /// Buffer for a datagram of the seal itself.
    datagram: Vec<u8>,
    outputs: OutputQueue,
    departures: Departures,
}

impl Site {
    /// Handles a packet, or a frame, from the system.
    pub fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        if self.host_multicast.as_ref().is_some_and(|host| host.has(packet)) {
            self.common.counters.drops.count(Drop::HostMulticast);
            return;
        }
        // A mesh broadcasts; other sites drop packets that are not for them.
        let to = if self.mesh { Some(0) } else { self.allowed.route(packet) };
        let Some((to, pipeline)) = to.and_then(|to| Some((to, self.pipelines.get_mut(to)?))) else {
            self.common.counters.drops.count(Drop::NoRoute);
            return;
        };
        match hold::time_of(&self.hold, packet) {
            Some(time) => {
                pipeline.waiting.push(now, time, packet);
                self.schedule.by(to, pipeline.waiting.due());
                let path = pipeline.link.path.as_ref().map(|path| self.narrow.on_path(path.size()));
                let largest = path.unwrap_or(self.narrow).body;
                let around =
                    self.common.outer + self.common.seal.as_ref().map_or(0, |seal| seal.around().usual());
                let fill_steps =
                    |tariff| pipeline.waiting.fill_steps(tariff, (around, largest), &pipeline.link.sent);
                if pipeline.waiting.fill(largest) || self.tariff.as_ref().is_some_and(fill_steps) {
                    self.release(now, to);
                }
            }
            None => {
                self.send_packet(now, to, packet);
                // Those that wait leave with it.
                self.release(now, to);
            }
        }
    }

    /// Sends the packets that wait for a destination.
    fn release(&mut self, now: Instant, to: usize) {
        let Some(waiting) = self.pipelines.get_mut(to).map(|pipeline| pipeline.waiting.take()) else {
            return;
        };
        for packet in waiting.iter() {
            self.send_packet(now, to, packet);
        }
        if waiting.due().is_some() {
            let Self { pipelines, common, .. } = self;
            let Some(Pipeline { packager, link, .. }) = pipelines.get_mut(to) else { return };
            let mut outlet = Outlet { now, common, link };
            packager.pause(now, &mut |body| outlet.carry(body));
            self.note_times(to);
        }
    }

    /// Sends all packets that wait for others.
    pub fn send_waiting(&mut self, now: Instant) {
        for to in 0..self.pipelines.len() {
            self.release(now, to);
        }
    }

    /// Compresses and packs a packet.
    fn send_packet(&mut self, now: Instant, to: usize, packet: &[u8]) {
        let Self { pipelines, common, unfinished, .. } = self;
        let Some(pipeline) = pipelines.get_mut(to) else { return };
        let Pipeline { channel, packager, link, is_unfinished, .. } = pipeline;
        if !std::mem::replace(is_unfinished, true) {
            unfinished.push(to);
        }
        if packager.is_full() {
            common.counters.drops.count(Drop::CarrierFull);
            return;
        }
        if std::mem::take(&mut link.has_grouped) {
            channel.begin_group();
        }
        link.unsent.begin();
        let mut outlet = Outlet { now, common, link };
        let sent = channel.send(now, packet, &mut |unit| outlet.push(packager, unit));
        match sent {
            Ok(sent) => {
                outlet.end_packet(packet.len(), sent.octets);
                if sent.units > 1
                    && let Some(path) = &mut link.path
                {
                    path.wanted(now);
                }
            }
            Err(error) => {
                common.counters.drops.count(reason_not_sent(&error));
                // A frame may contain no packet that could be answered.
                if let NotSent::TooLong { octets, most } = error
                    && !self.allowed.is_bridged()
                {
                    self.answer_too_long(now, packet, octets.saturating_sub(most));
                }
            }
        }
        self.note_times(to);
    }

    /// Asks the sender of a packet that is `excess` octets too long for shorter ones.
    fn answer_too_long(&mut self, now: Instant, packet: &[u8], excess: usize) {
        /// Least time between two answers.
        const CALM: Duration = Duration::from_millis(10);
        /// Margin in octets for later packets whose headers compress less.
        const SLACK: usize = 16;
        let is_calm = self.answered_at.is_none_or(|at| now.since(at) >= CALM);
        let mtu = u16::try_from(packet.len().saturating_sub(excess + SLACK)).unwrap_or(u16::MAX);
        if let Some(answer) = too_big::answer(packet, mtu).filter(|_| is_calm && mtu >= LEAST_MTU) {
            self.answered_at = Some(now);
            let room = self.common.outputs.room(answer.len());
            room.copy_from_slice(&answer);
            self.common.outputs.push_packet(None, 0..answer.len());
        }
    }

    /// True if packets must wait, since the queue of a stream of constant rate is full: a packet handled now
    /// may be dropped. [`handle_timeout`](Self::handle_timeout) makes room.
    pub fn is_full(&self) -> bool {
        self.has_rate && self.pipelines.iter().any(|pipeline| pipeline.packager.is_full())
    }

    /// Sets the maximum size, in octets, of a datagram that contains several packets.
    pub fn keep_together(&mut self, octets: usize) {
        for pipeline in &mut self.pipelines {
            pipeline.packager.keep_together(octets);
        }
    }

    /// No more packets wait: unfinished datagrams are sent now, or after the configured time.
    pub fn pause(&mut self, now: Instant) {
        let mut unfinished = std::mem::take(&mut self.unfinished);
        for to in unfinished.drain(..) {
            let Self { pipelines, common, .. } = self;
            let Some(Pipeline { packager, link, is_unfinished, .. }) = pipelines.get_mut(to) else {
                continue;
            };
            *is_unfinished = false;
            let mut outlet = Outlet { now, common, link };
            packager.pause(now, &mut |body| outlet.carry(body));
            self.note_times(to);
        }
        self.unfinished = unfinished;
    }

    /// Handles a datagram, or a frame, of the carrier. `from`: the address of its sender, and the own one at
    /// which it arrived.
    pub fn handle_datagram(&mut self, now: Instant, from: Option<AddressPair>, datagram: &mut [u8]) {
        let payload = datagram.len();
        let octets = payload + self.common.outer;
        self.common.counters.received_datagram(octets);
        if payload == 1 {
            // A keepalive that keeps the mapping of a NAT, and nothing else.
            return;
        }
        if matches!(self.common.seal, None | Some(Seal::Insecure(_))) {
            self.note_own(from);
        }
        let Some(seal) = &mut self.common.seal else {
            let body = BodyIn { octets: datagram, several: false, addressed: false };
            self.receive(now, None, Missing::Uncounted, body, false);
            return;
        };
        match seal.open(now, from, datagram) {
            Opened::Body { from: sender, flags, body, newest, missing, session } => {
                let moved_to = from.filter(|_| newest);
                let Some(source) = self.hear(now, sender, session, moved_to, octets) else { return };
                let BodyFlags { several, addressed } = flags;
                let (addressed, large) = (addressed && self.mesh, addressed && !self.mesh);
                let body = BodyIn { octets: body, several, addressed };
                self.receive(now, Some((source, sender)), missing, body, large);
            }
            Opened::Path { from: sender, newest, missing, session, path } => {
                let moved_to = from.filter(|_| newest);
                let Some(source) = self.hear(now, sender, session, moved_to, octets) else { return };
                match path {
                    PathNews::Confirmed(octets) => {
                        self.note_missing(source, missing);
                        self.confirmed(now, source, octets);
                    }
                    PathNews::Confirm => {
                        self.note_missing(source, missing);
                        self.confirm(now, source, payload);
                    }
                    PathNews::ConfirmBody(BodyFlags { several, addressed }, octets) => {
                        let body = BodyIn { octets, several, addressed: false };
                        self.receive(now, Some((source, sender)), missing, body, addressed);
                        self.confirm(now, source, payload);
                    }
                }
            }
            Opened::Mapping { from: sender, missing, message } => {
                if let Some(source) = number(&self.sources, sender) {
                    self.note_missing(source, missing);
                    self.handle_mapping(now, source, from, message);
                }
            }
            Opened::Session { from: sender, session } => {
                if let Some(source) = number(&self.sources, sender) {
                    self.begin_session(now, source, session);
                    self.note_missing(source, Missing::Unknown);
                }
            }
            Opened::Alive { from: sender, missing } => {
                let Some(number) = number(&self.sources, sender) else { return };
                self.note_missing(number, missing);
                if let Some(Pipeline { link, .. }) = self.pipelines.get_mut(number).filter(|_| !self.mesh) {
                    link.heard(&mut self.common.counters);
                }
                if let Some(source) = self.sources.get_mut(number) {
                    source.heard_at = Some(now);
                    source.works(number, &mut self.common.outputs);
                }
            }
            Opened::Closed { from: sender } => {
                if let Some(source) = number(&self.sources, sender) {
                    self.end_session(now, source);
                }
            }
            Opened::Handled => {}
            Opened::Refused(refused) => {
                self.common.counters.drops.count(reason_refused(refused));
                self.note_refused(now, from.map(|from| from.peer), refused);
            }
        }
    }

    /// Handles octets of a stream of TS Packets, from a file.
    pub fn handle_stream(&mut self, now: Instant, octets: &[u8]) {
        self.common.counters.received_datagram(octets.len());
        if let Some((unpackager, mut inlet)) = self.inlet(now, None, false) {
            unpackager.receive_stream(octets, &mut |site, unit| inlet.take(site, unit));
        }
        self.note_all_times();
    }

    /// Handles the end of the stream.
    pub fn finish_stream(&mut self, now: Instant) {
        if let Some((unpackager, mut inlet)) = self.inlet(now, None, false) {
            unpackager.finish_stream(&mut |site, unit| inlet.take(site, unit));
        }
        self.note_all_times();
    }

    /// Ends all sessions: sends packets that wait, and a farewell to each peer, and nothing after it.
    pub fn farewell(&mut self, now: Instant) {
        self.send_waiting(now);
        if let Some(seal) = &mut self.common.seal {
            seal.farewell(now);
        }
        self.handle_timeout(now);
    }

    /// Stores the state for the next start.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn close(&mut self) -> std::io::Result<()> {
        self.common.seal.as_mut().map_or(Ok(()), Seal::close)
    }

    /// Addresses of peers to store for the next start: name, key of requests to the peer, addresses.
    pub fn whereabouts(&self) -> impl Iterator<Item = (&str, KeyId, AddressPair)> {
        let known = self.two_way().into_iter().flat_map(TwoWay::whereabouts);
        known.filter_map(|at| Some((self.pipelines.get(at.peer)?.name.as_str(), at.key, at.addresses)))
    }

    /// Changes with every change of [`whereabouts`](Self::whereabouts).
    pub fn moves(&self) -> u64 {
        self.two_way().map_or(0, TwoWay::moves)
    }

    fn two_way(&self) -> Option<&TwoWay> {
        match &self.common.seal {
            Some(Seal::TwoWay(seal)) => Some(seal),
            Some(Seal::Insecure(_) | Seal::Group(_)) | None => None,
        }
    }

    /// Counters of the site as a whole.
    pub fn counters(&self) -> &Counters {
        &self.common.counters
    }

    /// Counts drops by the carrier, or elsewhere outside of the site.
    pub fn note(&mut self, reason: Drop, times: u64) {
        self.common.counters.drops.add(reason, times);
    }

    /// Counts a datagram as dropped instead of sent, with the packets that end in it: the carrier refused it. `number` is
    /// that of its [`SiteOutput::Datagram`].
    pub fn note_refused_datagram(&mut self, number: u64, reason: Drop) {
        self.common.counters.drops.count(reason);
        if let Some(refused) = self.common.departures.refused(number)
            && let Some(pipeline) = self.pipelines.get_mut(refused.pipeline)
        {
            pipeline.link.take_back(&mut self.common.counters, &refused);
        }
    }

    /// Counts a packet as dropped instead of received, as the interface refused it. `receipt` is that of its
    /// [`SiteOutput::Packet`].
    pub fn note_refused_packet(&mut self, receipt: Receipt) {
        let octets = receipt.octets;
        if let Some((source, compressed)) = receipt.received {
            self.common.counters.received.take_packet_back(octets, compressed);
            self.common.counters.drops.count(Drop::InterfaceRefused);
            if let Some(source) = self.sources.get_mut(source) {
                source.counters.received.take_packet_back(octets, compressed);
            }
        }
    }

    /// Records the time in nanoseconds that a packet took in the daemon, from the interface to the carrier.
    pub fn note_way_out(&mut self, nanos: u64) {
        self.common.counters.latency_sent.record(nanos);
    }

    /// Records the time in nanoseconds that a datagram took in the daemon, from the carrier to the interface.
    pub fn note_way_in(&mut self, nanos: u64) {
        self.common.counters.latency_received.record(nanos);
    }

    /// Returns the next output. `None`: there is none until the next call that is given the time.
    pub fn poll_output(&mut self) -> Option<SiteOutput<'_>> {
        self.common.outputs.poll(&self.sources)
    }

    /// Records an authentic datagram of `octets` octets. `moved_to`: new address of the sender. Returns the
    /// number of its source.
    fn hear(
        &mut self,
        now: Instant,
        sender: Sender,
        session: Option<NewSession>,
        moved_to: Option<AddressPair>,
        octets: usize,
    ) -> Option<usize> {
        let Some(number) = number(&self.sources, sender) else {
            self.common.counters.drops.count(Drop::UnknownSender);
            return None;
        };
        let source = self.sources.get_mut(number)?;
        source.address = moved_to.map(|from| from.peer).or(source.address);
        if let Some(session) = session {
            self.begin_session(now, number, session);
        }
        let source = self.sources.get_mut(number)?;
        source.counters.received.datagram(octets);
        source.heard_at = Some(now);
        if let Some(Pipeline { link, .. }) = self.pipelines.get_mut(number).filter(|_| !self.mesh) {
            link.heard(&mut self.common.counters);
        }
        source.works(number, &mut self.common.outputs);
        self.note_own(moved_to);
        Some(number)
    }

    /// Records the own address at which datagrams from a configured one arrive: those to it leave from there.
    fn note_own(&mut self, from: Option<AddressPair>) {
        if self.two_way().is_some() {
            return; // The seal knows it.
        }
        let Some(AddressPair { peer, own }) = from.map(AddressPair::canonical) else { return };
        for Pipeline { link, .. } in &mut self.pipelines {
            if own.is_some() && link.configured.map(canonical) == Some(peer) {
                link.own = own;
            }
        }
    }

    fn begin_session(&mut self, now: Instant, number: usize, session: NewSession) {
        let Self { pipelines, sources, common, mesh, .. } = self;
        let Some(source) = sources.get_mut(number) else { return };
        source.counters.sessions += 1;
        source.session_at = Some(now);
        source.heard_at = Some(now);
        source.works(number, &mut common.outputs);
        let Some(Pipeline { channel, link, .. }) = pipelines.get_mut(if *mesh { 0 } else { number }) else {
            return;
        };
        if session.restarted {
            source.counters.restarts += 1;
            channel.reset(source.id.filter(|_| *mesh));
            if let Some(path) = &mut link.path {
                path.restart();
            }
        }
        if let Some(mapping) = &mut link.mapping {
            mapping.handle_session(now, session.restarted);
        }
        let address = link.address(common.seal.as_ref()).filter(|_| !*mesh).or(source.address);
        let event = SiteEvent::Session { address, restarted: session.restarted };
        common.outputs.push_event(Some(number), event);
        Outlet { now, common, link }.carry_held();
        self.keep_to_path(number);
        self.note_times(number);
    }

    /// Ends the session of a peer that ends. Later packets wait for its next start, which has no contexts.
    fn end_session(&mut self, now: Instant, number: usize) {
        let Some(source) = self.sources.get_mut(number) else { return };
        source.session_at = None;
        source.heard_at = Some(now);
        source.suffers(now, number, Trouble::Closed, &mut self.common.outputs);
        if let Some(pipeline) = self.pipelines.get_mut(number) {
            pipeline.channel.reset(None);
        }
    }

    /// Handles a body. The seal provides its source, and the number of units missing before it.
    fn receive(
        &mut self,
        now: Instant,
        sealed: Option<(usize, Sender)>,
        missing: Missing,
        body: BodyIn<'_>,
        large: bool,
    ) {
        let number = sealed.map(|(number, _)| number);
        if let Some(number) = number {
            self.note_missing(number, missing);
        }
        let Some((unpackager, mut inlet)) = self.inlet(now, number, large) else { return };
        let mut units = 0;
        let result = unpackager.receive(body, &mut |site, unit| {
            units += 1;
            inlet.take(site, unit);
        });
        if result.is_err() {
            self.common.counters.drops.count(Drop::MalformedDatagram);
        }
        if self.counts_losses()
            && let Some(source) = number.and_then(|number| self.sources.get_mut(number))
        {
            source.count_units(missing, units);
        }
        if let (Some((_, sender)), Some(seal)) = (sealed, &mut self.common.seal)
            && missing != Missing::Uncounted
        {
            seal.note_opened(sender, units);
        }
        match number {
            Some(number) => self.note_times(if self.mesh { 0 } else { number }),
            None => self.note_all_times(),
        }
    }

    /// Reports units that are missing before a datagram to each channel of its source. A partially received
    /// unit is lost.
    fn note_missing(&mut self, number: usize, missing: Missing) {
        let is_counted = self.counts_losses();
        if is_counted && let Some(source) = self.sources.get_mut(number) {
            source.count_datagram(missing);
        }
        if is_counted
            && missing != Missing::Counted(0)
            && let Some(unpackager) = self.unpackagers.get_mut(number)
        {
            unpackager.resynchronize();
        }
        let pipeline = self.pipelines.get_mut(if self.mesh { 0 } else { number });
        if let (Some(source), Some(pipeline)) = (self.sources.get_mut(number), pipeline) {
            let missing = source.missing(missing, pipeline.packager.tears());
            pipeline.channel.note_missing(source.id.filter(|_| self.mesh), missing);
        }
    }

    /// True if datagrams have counters, which show losses.
    fn counts_losses(&self) -> bool {
        matches!(self.common.seal, Some(Seal::TwoWay(_) | Seal::Group(_)))
    }

    /// Borrows an unpackager, either that of the source or the common one, separately from the inlet behind
    /// it.
    fn inlet(
        &mut self,
        now: Instant,
        number: Option<usize>,
        large: bool,
    ) -> Option<(&mut Unpackager, Inlet<'_>)> {
        let Self { unpackagers, sources, pipelines, mesh, allowed, common, .. } = self;
        let is_there = number.is_some() == common.seal.is_some();
        let unpackager = unpackagers.get_mut(number.unwrap_or(0)).filter(|_| is_there)?;
        Some((unpackager, Inlet { now, number, sources, pipelines, mesh: *mesh, large, allowed, common }))
    }
}

/// MTU that every host supports (RFC 791, section 3.2), in octets.
const LEAST_MTU: u16 = 68;

/// Returns the number of a source identified by a seal.
fn number(sources: &[Source], sender: Sender) -> Option<usize> {
    match sender {
        Sender::Peer(peer) => (peer < sources.len()).then_some(peer),
        Sender::Site(site) => sources.iter().position(|source| source.id == Some(site)),
    }
}
