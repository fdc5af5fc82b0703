//! The run of an analysis: from records of captures to an [`Outcome`].

use std::io::Read;
use std::rc::Rc;

use thinair_capture::{Error, Reader, Record, Timestamp};
use thinair_rohc::Instant;

use crate::flow::{FlowSums, FlowTable};
use crate::outcome::{InputSummary, MOST_FAULTS, Mismatch, Outcome, SCHEMA, SchcRules, Totals};
use crate::packet::ParsedPacket;
use crate::recommendation::Recommendation;
use crate::report::{SumsReport, other_flow};
use crate::scheme::{Cause, Delivery, SchemeLink, Trip};
use crate::settings::{SchemeSpec, Settings};
use crate::survey::{Provision, Survey};
use crate::tally::{SchemeSums, SizeCounts, TrafficSums, layers_out};
use crate::timeline::Timeline;
use crate::unpack::Unpack;

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
    settings: Settings,
    survey: Survey,
    inputs: Vec<InputSummary>,
    flows: FlowTable,
    traffic: TrafficSums,
    /// Sums of the flows that are not listed, by scheme.
    others: Vec<SchemeSums>,
    faults: Vec<Mismatch>,
    timeline: Timeline,
    header_sizes_in: SizeCounts,
    header_sizes_out: Vec<SizeCounts>,
    /// Number of IP packets so far.
    number: u64,
    /// Start of the next input on the time axis, in nanoseconds.
    begins: u64,
    /// For each scheme, true after an octet was damaged on request.
    damaged: Vec<bool>,
    header_out: Vec<usize>,
    /// Octets that each scheme sends for one packet, feedback included.
    octets_out: Vec<u64>,
}

impl Analysis {
    /// Returns an analysis of the captures of that survey.
    pub fn new(settings: Settings, mut survey: Survey) -> Self {
        let schemes = settings.schemes.len();
        Self {
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
            damaged: vec![!settings.damage_one; schemes],
            header_out: Vec::with_capacity(schemes),
            octets_out: Vec::with_capacity(schemes),
            settings,
            survey,
        }
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
        let provision = self.survey.provisions.get(self.inputs.len()).cloned().unwrap_or_default();
        let mut reader = Reader::new(source)?;
        let mut link = InputLink::new(&self.settings, self.begins, &provision);
        for (scheme, &damaged) in link.schemes.iter_mut().zip(&self.damaged) {
            if damaged {
                scheme.spare();
            }
        }
        self.flows.start(self.inputs.len());
        let mut unpack = self.unpack();
        let mut input = InputSummary { path: path.to_owned(), ..InputSummary::default() };
        (input.schc_rules, input.lowpan_contexts) = self.provisioning(&provision);
        while let Some(record) = reader.next_record() {
            match record {
                Ok(record) => self.record(&mut input, &mut link, &mut unpack, &record),
                Err(error @ Error::Io { .. }) => return Err(error),
                Err(error) if error.ends_reading() => {
                    input.damaged = !matches!(error, Error::Truncated { .. });
                    input.ended_by = Some(error.to_string());
                }
                Err(_) => {
                    input.packets += 1;
                    *input.skipped.entry("malformed_record").or_default() += 1;
                }
            }
            if input.packets.is_multiple_of(PROGRESS_EVERY) {
                progress(reader.octets_read());
            }
        }
        self.begins = link.latest;
        self.damaged = link.schemes.iter().map(SchemeLink::did_damage).collect();
        if let Some(link_type) = reader.link_type() {
            input.link_types.entry(link_type).or_default();
        }
        input.unwrapped.clone_from(unpack.unwrapped());
        self.inputs.push(input);
        Ok(())
    }

    /// Returns the results.
    pub fn finish(self) -> Outcome {
        let totals = self.totals();
        let tally = SumsReport { settings: &self.settings };
        let recommendation = Recommendation::of(&self.settings, &self.survey, &totals, self.begins);
        let (mut flows, mut other_flows) = (Vec::new(), Vec::new());
        for mut flow in self.flows.into_list() {
            match flow.detail.take() {
                Some(detail) => flows.push(tally.flow(&flow, *detail)),
                None => other_flows.push(other_flow(&flow)),
            }
        }
        Outcome {
            schema: SCHEMA,
            inputs: self.inputs,
            totals,
            recommendation,
            flows,
            other_flows,
            faults: self.faults,
            timeline: self.timeline,
            header_sizes_in: self.header_sizes_in.counts(),
            header_sizes_out: self.header_sizes_out.iter().map(SizeCounts::counts).collect(),
        }
    }

    /// Returns the sums over all packets so far.
    pub fn totals(&self) -> Totals {
        let tally = SumsReport { settings: &self.settings };
        let mut carried = self.others.clone();
        let mut larger_flows = vec![0; carried.len()];
        for flow in self.flows.list() {
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
        let mut schemes = tally.schemes(&self.traffic, &carried);
        for ((scheme, larger), spec) in schemes.iter_mut().zip(larger_flows).zip(&self.settings.schemes) {
            scheme.larger_flows = spec.channel().map(|_| larger);
        }
        Totals {
            packets: self.traffic.packets,
            flows: self.flows.list().len() as u64,
            traffic: tally.traffic(&self.traffic),
            schemes,
        }
    }

    fn unpack(&self) -> Unpack {
        Unpack::new(self.settings.contexts)
            .keeping_tunnels(self.settings.keep_tunnels)
            .filling_payload(self.settings.compressor.coap.ports)
    }

    /// Returns the provisioning of both ends: rules of SCHC and prefixes of 6LoWPAN, for schemes that need
    /// them.
    fn provisioning(&self, provision: &Provision) -> (Option<SchcRules>, Option<Vec<String>>) {
        let schemes = &self.settings.schemes;
        let rules = schemes.contains(&SchemeSpec::Schc).then(|| SchcRules::of(&provision.rules));
        let contexts = (0..).map_while(|id| provision.contexts.context(id)).map(|context| {
            let prefix = std::net::Ipv6Addr::from(context.prefix());
            format!("{prefix}/{}", context.length())
        });
        (rules, schemes.contains(&SchemeSpec::Lowpan).then(|| contexts.collect()))
    }

    fn record(
        &mut self,
        input: &mut InputSummary,
        link: &mut InputLink,
        unpack: &mut Unpack,
        record: &Record<'_>,
    ) {
        input.packets += 1;
        *input.link_types.entry(record.link_type).or_default() += 1;
        let packet = match unpack.packet(record) {
            Ok(packet) => packet,
            Err(reason) => {
                *input.skipped.entry(reason).or_default() += 1;
                return;
            }
        };
        input.ip_packets += 1;
        input.cut += u64::from(packet.missing > 0);
        if let Some(odd) = packet.odd {
            *input.odd.entry(odd).or_default() += 1;
        }
        let now = link.time(record.time);
        self.carry(link, now, record.number, &packet);
    }

    /// Sends one packet through every scheme.
    fn carry(&mut self, link: &mut InputLink, now: Instant, record: u64, packet: &ParsedPacket<'_>) {
        let settings = &self.settings;
        let flow = self.flows.of(packet, settings.schemes.len());
        let application = flow.application_header(packet, &settings.compressor.coap.ports);
        let is_first = flow.packets == 0;
        flow.add(packet, application, settings);
        self.traffic.add(packet, application, settings);
        let header_in = packet.headers() + application;
        self.header_sizes_in.add(header_in);
        self.header_out.clear();
        self.octets_out.clear();
        for (at, scheme) in link.schemes.iter_mut().enumerate() {
            let trip = scheme.carry(settings, self.number, now, flow.side, packet.octets);
            let layers = layers_out(packet, application, trip.compressed.as_ref());
            let gap = flow.sums[at].add(now, &trip);
            let sums = match &mut flow.detail {
                Some(detail) => &mut detail.carried[at],
                None => &mut self.others[at],
            };
            sums.add(&layers, is_first, &trip, settings);
            sums.gaps.add(gap);
            self.octets_out.push(trip.len as u64 + trip.feedback_len());
            let header_out = layers.all_headers() as usize;
            self.header_sizes_out[at].add(header_out);
            self.header_out.push(header_out);
            if let Delivery::Fault(cause) = &trip.delivery
                && self.faults.len() < MOST_FAULTS
            {
                self.faults.push(fault(flow, record, &settings.schemes[at], &trip, cause));
            }
        }
        if let Some(detail) = &mut flow.detail {
            detail.course.add(packet.octets.len() as u64, &self.octets_out);
        }
        self.timeline.add(link.latest, header_in, &self.header_out);
        self.number += 1;
    }
}

/// The link of one input.
struct InputLink {
    schemes: Vec<SchemeLink>,
    /// Time of the first packet, in nanoseconds.
    first: Option<u64>,
    /// Start of the link on the time axis, in nanoseconds.
    begins: u64,
    /// Latest time on the link so far.
    latest: u64,
}

impl InputLink {
    fn new(settings: &Settings, begins: u64, provision: &Rc<Provision>) -> Self {
        let schemes =
            settings.schemes.iter().map(|spec| SchemeLink::new(spec, settings, provision)).collect();
        Self { schemes, first: None, begins, latest: begins }
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
