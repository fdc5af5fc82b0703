//! The run: records of captures in, [`Outcome`] out.

use std::collections::BTreeMap;
use std::io::Read;

use thinair_capture::{Error, Reader, Record, Skip, Timestamp};
use thinair_rohc::{Instant, Mode};

use crate::flow::{Flow, Flows};
use crate::outcome::{self, Fault, Input, MOST_FAULTS, Outcome, SCHEMA, Totals};
use crate::packet::Packet;
use crate::scheme::{Cause, Delivery, Scheme, Trip};
use crate::settings::Settings;
use crate::tally::{Carried, Traffic, layers_out};
use crate::timeline::Timeline;

#[cfg(test)]
mod tests;

/// The name of the ROHC family of RFC 3095.
const ROHC_V1: &str = "rohc-v1";

/// Records between two calls of the progress function.
const PROGRESS_EVERY: u64 = 1_024;

/// Reads captures, each of them a link of its own, and lets every scheme carry their packets.
///
/// **Call [`read`](Self::read) for each capture, then [`finish`](Self::finish).** Memory grows with the number
/// of flows, not of packets.
#[derive(Debug)]
pub struct Analysis {
    settings: Settings,
    inputs: Vec<Input>,
    flows: Flows,
    traffic: Traffic,
    carried: Vec<Carried>,
    faults: Vec<Fault>,
    timeline: Timeline,
    header_sizes_in: BTreeMap<u64, u64>,
    header_sizes_out: Vec<BTreeMap<u64, u64>>,
    /// IP packets of the run so far.
    number: u64,
    /// Where the next input begins on the time axis, in nanoseconds.
    begins: u64,
    /// Per scheme: an octet was damaged, if that was asked for.
    damaged: Vec<bool>,
    header_out: Vec<usize>,
}

impl Analysis {
    /// An analysis that has read nothing.
    pub fn new(settings: Settings) -> Self {
        let schemes = settings.modes.len();
        Self {
            inputs: Vec::new(),
            flows: Flows::default(),
            traffic: Traffic::default(),
            carried: vec![Carried::default(); schemes],
            faults: Vec::new(),
            timeline: Timeline::default(),
            header_sizes_in: BTreeMap::new(),
            header_sizes_out: vec![BTreeMap::new(); schemes],
            number: 0,
            begins: 0,
            damaged: vec![!settings.damage_one; schemes],
            header_out: Vec::with_capacity(schemes),
            settings,
        }
    }

    /// Reads a capture to its end, or to where it is damaged beyond reading, which [`Input::ended_by`] then
    /// says. `progress` is told the octets read so far, now and then.
    ///
    /// # Errors
    /// The octets are no capture at all, or cannot be read.
    pub fn read<R: Read>(
        &mut self,
        path: &str,
        source: R,
        mut progress: impl FnMut(u64),
    ) -> Result<(), Error> {
        let mut reader = Reader::new(source)?;
        let mut link = Link::new(&self.settings, self.begins);
        for (scheme, &damaged) in link.schemes.iter_mut().zip(&self.damaged) {
            if damaged {
                scheme.spare();
            }
        }
        self.flows.start(self.inputs.len());
        let mut input = Input { path: path.to_owned(), ..Input::default() };
        while let Some(record) = reader.next_record() {
            match record {
                Ok(record) => self.record(&mut input, &mut link, &record),
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
        self.damaged = link.schemes.iter().map(Scheme::did_damage).collect();
        self.inputs.push(input);
        Ok(())
    }

    /// What was found.
    pub fn finish(self) -> Outcome {
        let tally = Told { settings: &self.settings };
        let totals = Totals {
            packets: self.traffic.packets,
            traffic: tally.traffic(&self.traffic),
            schemes: tally.schemes(&self.traffic, &self.carried),
        };
        let flows = self.flows.into_list().into_iter().map(|flow| tally.flow(&flow)).collect();
        Outcome {
            schema: SCHEMA,
            inputs: self.inputs,
            totals,
            flows,
            faults: self.faults,
            timeline: self.timeline,
            header_sizes_in: self.header_sizes_in,
            header_sizes_out: self.header_sizes_out,
        }
    }

    fn record(&mut self, input: &mut Input, link: &mut Link, record: &Record<'_>) {
        input.packets += 1;
        let octets = match record.network_packet() {
            Ok(network) => network.packet,
            Err(skip) => {
                *input.skipped.entry(skip.name()).or_default() += 1;
                return;
            }
        };
        let Ok(packet) = Packet::parse(octets) else {
            *input.skipped.entry(Skip::NotIp.name()).or_default() += 1;
            return;
        };
        input.ip_packets += 1;
        if let Some(odd) = packet.odd {
            *input.odd.entry(odd).or_default() += 1;
        }
        let now = link.time(record.time);
        self.carry(link, now, record.number, &packet);
    }

    /// One packet's way through every scheme.
    fn carry(&mut self, link: &mut Link, now: Instant, record: u64, packet: &Packet<'_>) {
        let settings = &self.settings;
        let flow = self.flows.of(packet, settings.modes.len());
        let application = flow.application_header(packet);
        flow.traffic.add(packet, application, settings);
        self.traffic.add(packet, application, settings);
        *self.header_sizes_in.entry(packet.headers() as u64).or_default() += 1;
        self.header_out.clear();
        for (at, scheme) in link.schemes.iter_mut().enumerate() {
            let trip = scheme.carry(settings, self.number, now, flow.side, packet.octets);
            flow.carried[at].add(packet, application, &trip, settings);
            self.carried[at].add(packet, application, &trip, settings);
            let header_out = layers_out(packet, application, trip.compressed.as_ref()).headers();
            *self.header_sizes_out[at].entry(header_out).or_default() += 1;
            self.header_out.push(header_out as usize);
            if let Delivery::Fault(cause) = &trip.delivery
                && self.faults.len() < MOST_FAULTS
            {
                self.faults.push(fault(flow, record, settings.modes[at], &trip, cause));
            }
        }
        self.timeline.add(link.latest, packet.headers(), &self.header_out);
        self.number += 1;
    }
}

/// The link of one input.
struct Link {
    schemes: Vec<Scheme>,
    /// Time of the first packet, in nanoseconds.
    first: Option<u64>,
    /// Where the link begins on the time axis, in nanoseconds.
    begins: u64,
    /// The latest time on it so far.
    latest: u64,
}

impl Link {
    fn new(settings: &Settings, begins: u64) -> Self {
        let schemes = settings.modes.iter().map(|&mode| Scheme::new(mode, settings)).collect();
        Self { schemes, first: None, begins, latest: begins }
    }

    /// The time of a packet since the first of the link. Captures jump back now and then; engines must not.
    fn time(&mut self, time: Timestamp) -> Instant {
        let nanos = time.as_nanos();
        let since = nanos.saturating_sub(*self.first.get_or_insert(nanos));
        self.latest = self.latest.max(self.begins.saturating_add(since));
        Instant::from_nanos(self.latest - self.begins)
    }
}

fn fault(flow: &Flow, record: u64, mode: Mode, trip: &Trip, cause: &Cause) -> Fault {
    Fault {
        input: flow.input,
        packet: record,
        src: flow.key.source_text(),
        dst: flow.key.destination_text(),
        scheme: ROHC_V1,
        mode: Some(mode.letter()),
        format: trip.compressed.map(|compressed| compressed.format.name()),
        offset: match cause {
            Cause::Differs { offset, .. } => Some(*offset),
            Cause::NotCompressed(_) | Cause::Refused(_) | Cause::Nothing => None,
        },
        cause: cause.to_string(),
    }
}

/// Sums, told as results.
struct Told<'s> {
    settings: &'s Settings,
}

impl Told<'_> {
    fn flow(&self, flow: &Flow) -> outcome::Flow {
        outcome::Flow {
            input: flow.input,
            src: flow.key.source_text(),
            dst: flow.key.destination_text(),
            protocol: flow.key.protocol_text(),
            side: ["a", "b"][flow.side.index()],
            profile: main_profile(&flow.carried),
            packets: flow.traffic.packets,
            traffic: self.traffic(&flow.traffic),
            schemes: self.schemes(&flow.traffic, &flow.carried),
        }
    }

    fn traffic(&self, traffic: &Traffic) -> outcome::Traffic {
        outcome::Traffic {
            bytes_in: traffic.bytes,
            header_bytes_in: traffic.layers.headers(),
            layers_in: traffic.layers,
            cost_in: self.cost(traffic.units),
            over_mtu_in: self.settings.link_mtu.map(|_| traffic.over_mtu),
        }
    }

    fn schemes(&self, traffic: &Traffic, carried: &[Carried]) -> Vec<outcome::Scheme> {
        let modes = self.settings.modes.iter();
        modes.zip(carried).map(|(mode, carried)| self.scheme(*mode, traffic, carried)).collect()
    }

    fn scheme(&self, mode: Mode, traffic: &Traffic, carried: &Carried) -> outcome::Scheme {
        let kept = if traffic.bytes == 0 { 1.0 } else { carried.bytes as f64 / traffic.bytes as f64 };
        outcome::Scheme {
            scheme: ROHC_V1,
            mode: Some(mode.letter()),
            bytes_out: carried.bytes,
            header_bytes_out: carried.header_bytes,
            saved_ratio: 1.0 - kept,
            roundtrip_mismatches: carried.mismatches,
            lost: carried.lost,
            lost_by: carried.lost_by.clone(),
            packet_types: carried.formats.iter().map(|(format, sums)| (format.name(), sums.0)).collect(),
            rohc_bytes_by_type: carried
                .formats
                .iter()
                .map(|(format, sums)| (format.name(), sums.1))
                .collect(),
            profiles: carried.profiles.iter().map(|(profile, &n)| (profile.name(), n)).collect(),
            refreshes: carried.refreshes,
            refresh_bytes: carried.refresh_bytes,
            feedback_packets: carried.feedback_packets,
            feedback_bytes: carried.feedback_bytes,
            layers_out: carried.layers,
            cost_out: self.cost(carried.units),
            over_mtu_out: self.settings.link_mtu.map(|_| carried.over_mtu),
        }
    }

    fn cost(&self, units: u64) -> Option<f64> {
        self.settings.billing.map(|billing| units as f64 * billing.price)
    }
}

/// The profile of most packets in all schemes; of two, the one with the lower number.
fn main_profile(carried: &[Carried]) -> &'static str {
    let mut sums = BTreeMap::new();
    for (profile, packets) in carried.iter().flat_map(|carried| &carried.profiles) {
        *sums.entry(*profile).or_insert(0) += packets;
    }
    let most = sums.into_iter().rev().max_by_key(|(_, packets)| *packets);
    most.map_or("none", |(profile, _)| profile.name())
}
