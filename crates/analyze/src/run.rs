//! The run of an analysis: from records of captures to an [`Outcome`].

use std::io::Read;
use std::sync::Arc;

use thinair_capture::{Error, Reader, Record, Timestamp};
use thinair_rohc::Instant;

use crate::bill::Bill;
use crate::flow::{FlowSums, FlowTable};
use crate::hosts::hosts;
use crate::merge::RunSums;
use crate::outcome::{InputSummary, MOST_FAULTS, Mismatch, Outcome, SCHEMA, SchcRules, Totals};
use crate::packet::ParsedPacket;
use crate::packing::WAITS;
use crate::partition::partition;
use crate::report::{SumsReport, other_flow};
use crate::scheme::{Cause, Delivery, Sending, Trip};
use crate::sessions::Sessions;
use crate::settings::{SchemeSpec, Settings};
use crate::survey::{Facts, Survey, SurveyedInput};
use crate::tally::{LayerEnds, SchemeSums, SizeCounts, TrafficSums, units};
use crate::timeline::Timeline;
use crate::unpack::Unpack;
use lane::{Batch, BatchPacket, Lane};

mod lane;
mod live;
#[cfg(test)]
mod tests;

pub use live::Live;

/// Number of records between two calls of the progress function.
pub(crate) const PROGRESS_EVERY: u64 = 1_024;

/// Sends the packets of captures, each a separate link, through every scheme.
///
/// **Read each capture into a [`Survey`] first; then call [`read`](Self::read) for each in the same order,
/// then [`finish`](Self::finish).** Memory grows with the number of flows, not of packets: some kilobytes for
/// each of the [`most_flows`](Settings::most_flows) flows that are listed with all sums, and less than one
/// for each other flow.
#[derive(Debug)]
pub struct Analysis {
    settings: Arc<Settings>,
    surveyed: Vec<Arc<SurveyedInput>>,
    facts: Facts,
    bill: Bill,
    inputs: Vec<InputSummary>,
    flows: FlowTable,
    traffic: TrafficSums,
    /// Sums of the flows that are not listed, by scheme.
    others: Vec<SchemeSums>,
    faults: Vec<Mismatch>,
    /// Sessions, if the price list has them: a counter for the uncompressed packets, then for each scheme its packets, and
    /// those of each carrier.
    sessions: Option<Sessions>,
    timeline: Timeline,
    header_sizes_in: SizeCounts,
    header_sizes_out: Vec<SizeCounts>,
    /// Number of IP packets so far.
    number: u64,
    /// Start of the next input on the time axis, in nanoseconds.
    begins: u64,
    /// For each carried partition of each scheme, true until an octet was damaged on request.
    damage: Vec<Vec<bool>>,
    /// Number of threads that carry packets.
    threads: usize,
    header_out: Vec<usize>,
    /// Octets that each scheme sends for one packet, feedback included.
    octets_out: Vec<u64>,
}

impl Analysis {
    /// Returns an analysis of the captures of that survey.
    pub fn new(settings: Settings, mut survey: Survey) -> Self {
        let schemes = settings.schemes.len();
        let counters = 1 + schemes * (1 + settings.carriers.len());
        Self {
            sessions: Sessions::of(settings.tariff.as_ref(), counters),
            inputs: Vec::new(),
            flows: FlowTable::new(survey.listed(settings.most_flows)),
            traffic: TrafficSums::default(),
            others: vec![SchemeSums::default(); schemes],
            faults: Vec::new(),
            timeline: Timeline::default(),
            header_sizes_in: SizeCounts::default(),
            header_sizes_out: vec![SizeCounts::default(); schemes],
            number: 0,
            begins: 0,
            damage: vec![vec![settings.damage_one; settings.carried().len()]; schemes],
            threads: 1,
            header_out: Vec::with_capacity(schemes),
            octets_out: Vec::with_capacity(schemes),
            settings: settings.into(),
            facts: survey.facts,
            bill: survey.bill,
            surveyed: survey.inputs,
        }
    }

    /// Sets the number of threads, each of which carries the packets of some schemes; results do not depend on it.
    /// Default: 1.
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Reads a capture to its end, or to damage that ends reading, which [`InputSummary::ended_by`] then reports.
    /// `progress` receives the octets read so far from time to time.
    ///
    /// # Errors
    /// The data is not a capture, or cannot be read.
    pub fn read<R: Read>(
        &mut self,
        path: &str,
        source: R,
        mut progress: impl FnMut(u64),
    ) -> Result<(), Error> {
        let surveyed = self.surveyed.get(self.inputs.len()).cloned();
        let is_part = self.settings.carried() != (0..self.settings.partitions());
        // Losses depend on the number of the packet.
        let skips = is_part && surveyed.is_some() && self.settings.loss.is_none();
        let mut source = Source {
            reader: Reader::new(source)?,
            input: InputSummary::default(),
            link: self.link(surveyed.clone().unwrap_or_default()),
            unpack: self.unpack(),
            skips,
        };
        let places = surveyed.as_ref().map_or(&[][..], |surveyed| &surveyed.flows);
        self.flows.start(self.inputs.len(), places, &self.settings);
        let (settings, threads) = (Arc::clone(&self.settings), self.threads);
        let mut lanes = std::mem::take(&mut source.link.lanes);
        let (mut batch, mut other) = (Batch::default(), Batch::default());
        self.fill(&mut batch, &mut source, &mut progress)?;
        while !batch.is_empty() {
            let add_and_fill = || {
                self.add(&other);
                self.fill(&mut other, &mut source, &mut progress)
            };
            lane::carry(&mut lanes, &settings, &mut batch, threads, add_and_fill)?;
            std::mem::swap(&mut batch, &mut other);
        }
        self.add(&other);
        self.sessions.iter_mut().for_each(Sessions::end);
        self.damage = lanes.into_iter().map(|lane| lane.damage).collect();
        let Source { reader, mut input, link, unpack, .. } = source;
        self.begins = link.ends(&self.settings);
        input.end(&reader, &unpack);
        if let (true, Some(surveyed)) = (skips, &surveyed) {
            let InputSummary { packets, ended_by, damaged, .. } = input;
            input = InputSummary { packets, ended_by, damaged, ..surveyed.summary() };
        }
        input.path = path.to_owned();
        (input.schc_rules, input.lowpan_contexts) = self.provisioning(&link.surveyed);
        self.inputs.push(input);
        Ok(())
    }

    /// Counts a capture that [`read`](Self::read) refused: it has no packet, and `error` is the reason in the results.
    pub fn leave_out(&mut self, path: &str, error: &Error) {
        self.flows.start(self.inputs.len(), &[], &self.settings);
        let (path, ended_by) = (path.to_owned(), Some(error.to_string()));
        self.inputs.push(InputSummary { path, ended_by, damaged: true, ..InputSummary::default() });
    }

    /// True if the run is known not to carry the packet of a record, without parsing it.
    fn is_of_others(&self, record: &Record<'_>) -> bool {
        hosts(record).is_some_and(|(source, destination)| {
            let partition = partition(source, destination, self.settings.partitions());
            !self.settings.carried().contains(&partition)
        })
    }

    /// Returns the results.
    pub fn finish(self) -> Outcome {
        let sums = self.sums();
        let report = SumsReport { settings: &self.settings };
        let (mut flows, mut other_flows) = (Vec::new(), Vec::new());
        let carried = self.settings.carried();
        for mut flow in self.flows.into_list() {
            match flow.detail.take() {
                Some(detail) => flows.push(report.flow(flow.number, &flow, *detail)),
                None if carried.contains(&flow.partition) => other_flows.push(other_flow(flow.number, &flow)),
                None => {}
            }
        }
        let totals = sums.totals();
        Outcome {
            schema: SCHEMA,
            partitions: self.settings.partitions(),
            inputs: self.inputs,
            bill: sums.bill(&totals),
            recommendation: sums.recommendation(&totals),
            totals,
            flows,
            other_flows,
            faults: self.faults,
            timeline: self.timeline,
            header_sizes_in: self.header_sizes_in.counts(),
            header_sizes_out: self.header_sizes_out.iter().map(SizeCounts::counts).collect(),
            sums: Some(Box::new(sums)),
        }
    }

    /// Returns the sums over all packets so far.
    pub fn totals(&self) -> Totals {
        self.sums().totals()
    }

    fn sums(&self) -> RunSums {
        let mut carried = self.others.clone();
        let mut larger_flows = vec![0; carried.len()];
        let partitions = self.settings.carried();
        let (mut flows, mut packed) = (0, [0; WAITS.len()]);
        for flow in self.flows.list().iter().filter(|flow| partitions.contains(&flow.partition)) {
            flows += 1;
            if let Some(billing) = self.settings.packed_billing() {
                let units = flow.packed_units(billing);
                packed.iter_mut().zip(units).for_each(|(sum, units)| *sum += units);
            }
            for (all, of_flow) in
                carried.iter_mut().zip(flow.detail.iter().flat_map(|detail| &detail.carried))
            {
                all.merge(of_flow);
            }
            for ((all, larger), sum) in carried.iter_mut().zip(&mut larger_flows).zip(&flow.sums) {
                all.gaps.add(sum.gap.ended());
                *larger += u64::from(flow.is_larger(sum));
            }
        }
        let mut traffic = self.traffic;
        if let Some(sessions) = &self.sessions {
            let carriers = self.settings.carriers.len();
            traffic.units = sessions.units(0);
            for (scheme, at) in carried.iter_mut().zip((1..).step_by(1 + carriers)) {
                scheme.units = sessions.units(at);
                scheme.units_around = (at + 1..=at + carriers).map(|at| sessions.units(at)).collect();
            }
        }
        RunSums {
            settings: Settings::clone(&self.settings),
            facts: self.facts,
            bill: self.bill.clone(),
            nanos: self.begins,
            flows,
            traffic,
            session_price: self.sessions.as_ref().map(Sessions::price),
            carried,
            larger_flows,
            packed,
        }
    }

    fn unpack(&self) -> Unpack {
        Unpack::new(self.settings.contexts)
            .keeping_tunnels(self.settings.keep_tunnels)
            .filling_payload(self.settings.compressor.coap.ports)
    }

    /// Returns the provisioning of both ends: rules of SCHC and prefixes of 6LoWPAN, for schemes that need
    /// them.
    fn provisioning(&self, surveyed: &SurveyedInput) -> (Option<SchcRules>, Option<Vec<String>>) {
        let schemes = &self.settings.schemes;
        let rules = schemes.contains(&SchemeSpec::Schc).then(|| SchcRules::of(&surveyed.rules));
        let contexts = (0..).map_while(|id| surveyed.contexts.context(id)).map(|context| {
            let prefix = std::net::Ipv6Addr::from(context.prefix());
            format!("{prefix}/{}", context.length())
        });
        (rules, schemes.contains(&SchemeSpec::Lowpan).then(|| contexts.collect()))
    }

    /// Returns a link for the next input.
    fn link(&self, surveyed: Arc<SurveyedInput>) -> InputLink {
        let schemes = self.settings.schemes.iter().zip(&self.damage);
        let lane =
            |(spec, damage): (&SchemeSpec, &Vec<_>)| Lane::new(*spec, Arc::clone(&surveyed), damage.clone());
        let (lanes, begins) = (schemes.map(lane).collect(), self.begins);
        InputLink { surveyed, lanes, first: None, begins, latest: begins }
    }

    /// Reads records until the batch is full, or to the end of the source, and leaves nothing else in the batch.
    fn fill<R: Read>(
        &mut self,
        batch: &mut Batch,
        source: &mut Source<R>,
        progress: &mut impl FnMut(u64),
    ) -> Result<(), Error> {
        let Source { reader, input, link, unpack, skips } = source;
        batch.clear();
        while !batch.is_full()
            && let Some(record) = reader.next_record()
        {
            match record {
                Ok(record) if *skips && self.is_of_others(&record) => {
                    input.packets += 1;
                    link.time(record.time);
                }
                Ok(record) => self.record(input, link, unpack, &record, batch),
                Err(error) => input.count_error(error)?,
            }
            if input.packets.is_multiple_of(PROGRESS_EVERY) {
                progress(reader.octets_read());
            }
        }
        Ok(())
    }

    fn record(
        &mut self,
        input: &mut InputSummary,
        link: &mut InputLink,
        unpack: &mut Unpack,
        record: &Record<'_>,
        batch: &mut Batch,
    ) {
        let Some(packet) = input.count(unpack, record) else { return };
        let now = link.time(record.time);
        self.observe_packet(link, now, record.number, &packet, batch);
    }

    /// Counts a packet, and appends it to the batch if the run carries its partition.
    fn observe_packet(
        &mut self,
        link: &InputLink,
        now: Instant,
        record: u64,
        packet: &ParsedPacket<'_>,
        batch: &mut Batch,
    ) {
        let settings = &self.settings;
        let number = self.number;
        self.number += 1;
        let partition = packet.partition(settings.partitions());
        let is_carried = settings.carried().contains(&partition);
        if !is_carried && link.is_surveyed() {
            return;
        }
        let place = self.flows.place(packet, partition, settings);
        if !is_carried {
            return;
        }
        let flow = self.flows.flow(place);
        let application = flow.application_header(packet, &settings.compressor.coap.ports);
        let is_first = flow.packets == 0;
        flow.add(now, packet, application, settings);
        self.traffic.add(flow.side, packet, application, is_first, settings);
        let layers = LayerEnds::of(packet, application);
        self.header_sizes_in.add(layers.headers());
        let has_to_arrive = settings.loss.is_some() && packet.is_syn();
        let sending = Sending { number, now, from: flow.side, has_to_arrive };
        let channel = (partition - settings.only.start) as usize;
        let (nanos, clock) = (link.latest, link.clock());
        batch.push(
            BatchPacket { record, sending, channel, flow: place, is_first, layers, nanos, clock },
            packet.octets,
        );
    }

    /// Adds the trips of a batch.
    fn add(&mut self, batch: &Batch) {
        let settings = &self.settings;
        for (packet, trips) in batch.trips() {
            let (flow, layers) = (self.flows.flow(packet.flow), &packet.layers);
            if let Some(sessions) = &mut self.sessions {
                sessions.packet(packet.clock);
                sessions.add(0, units(settings, packet.sending.from, layers.len()));
            }
            self.header_out.clear();
            self.octets_out.clear();
            for (at, trip) in trips.enumerate() {
                let layers = layers.out(trip.compressed.as_ref());
                let gap = flow.sums[at].add(packet.sending.now, trip);
                let sums = match &mut flow.detail {
                    Some(detail) => &mut detail.carried[at],
                    None => &mut self.others[at],
                };
                sums.add(packet.sending.from, &layers, packet.is_first, trip, settings);
                sums.gaps.add(gap);
                if let Some(sessions) = &mut self.sessions {
                    let around =
                        [0].into_iter().chain(settings.carriers.iter().map(|carrier| carrier.octets));
                    for (octets, counter) in around.zip(1 + at * (1 + settings.carriers.len())..) {
                        let of_packet = units(settings, packet.sending.from, trip.len + octets as usize);
                        sessions.add(counter, of_packet + trip.feedback.units);
                    }
                }
                self.octets_out.push(trip.len as u64 + trip.feedback.bytes);
                let header_out = layers.all_headers() as usize;
                self.header_sizes_out[at].add(header_out);
                self.header_out.push(header_out);
                if let Delivery::Fault(cause) = &trip.delivery
                    && self.faults.len() < MOST_FAULTS
                {
                    self.faults.push(fault(flow, packet.record, &settings.schemes[at], trip, cause));
                }
            }
            if let Some(detail) = &mut flow.detail {
                detail.course.add(layers.len() as u64, &self.octets_out);
            }
            self.timeline.add(packet.nanos, layers.headers(), &self.header_out);
        }
    }
}

/// A capture that is being read.
struct Source<R> {
    reader: Reader<R>,
    input: InputSummary,
    link: InputLink,
    unpack: Unpack,
    /// True if packets of partitions that the run does not carry need no parser.
    skips: bool,
}

/// The link of one input.
struct InputLink {
    surveyed: Arc<SurveyedInput>,
    /// In the order of schemes.
    lanes: Vec<Lane>,
    /// Time of the first packet, in nanoseconds.
    first: Option<u64>,
    /// Start of the link on the time axis, in nanoseconds.
    begins: u64,
    /// Latest time on the link so far.
    latest: u64,
}

impl InputLink {
    /// True if the flows of the link are known.
    fn is_surveyed(&self) -> bool {
        !self.surveyed.flows.is_empty()
    }

    /// End of the link on the time axis, in nanoseconds.
    fn ends(&self, settings: &Settings) -> u64 {
        let nanos = settings.duration.map_or(0, |duration| duration.as_nanos());
        self.latest.max(self.begins.saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// Latest time in nanoseconds since 1970.
    fn clock(&self) -> u64 {
        self.first.unwrap_or(0).saturating_add(self.latest - self.begins)
    }

    /// Time of a packet since the first one of the link. Times in captures can go backwards; engines need
    /// monotonic time.
    fn time(&mut self, time: Timestamp) -> Instant {
        let nanos = time.as_nanos();
        let since = nanos.saturating_sub(*self.first.get_or_insert(nanos));
        self.latest = self.latest.max(self.begins.saturating_add(since));
        Instant::from_nanos(self.latest - self.begins)
    }
}

fn fault(flow: &FlowSums, record: u64, spec: &SchemeSpec, trip: &Trip, cause: &Cause) -> Mismatch {
    Mismatch {
        input: flow.input,
        packet: record,
        src: flow.key.source_text(),
        dst: flow.key.destination_text(),
        scheme: spec.name(),
        mode: spec.mode(),
        format: trip.compressed.map(|compressed| compressed.format.name()),
        offset: match cause {
            Cause::Differs { offset, .. } => Some(*offset),
            Cause::NotCompressed(_) | Cause::Refused(_) | Cause::Nothing => None,
        },
        cause: cause.to_string(),
    }
}
