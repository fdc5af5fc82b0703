//! Merge of the outcomes of shards, each of which carried a part of the partitions.
//!
//! A shard reads all packets: flows, sides, packet numbers and times are therefore those of one run, and the
//! outcomes of all shards add up to its outcome.

use std::cmp::Reverse;
use std::ops::Range;

use crate::bill::{Bill, BillRow};
use crate::outcome::{Flow, MOST_COURSES, MOST_FAULTS, Outcome, PackingCost, TariffSource, Totals};
use crate::packing::WAITS;
use crate::recommendation::Recommendation;
use crate::report::SumsReport;
use crate::settings::Settings;
use crate::survey::Facts;
use crate::tally::{SchemeSums, TrafficSums};

#[cfg(test)]
mod tests;

/// Sums over the packets that a run carried, from which totals and recommendation are computed.
#[derive(Clone, Debug)]
pub(crate) struct RunSums {
    pub(crate) settings: Settings,
    pub(crate) facts: Facts,
    /// Octets of all frames by cause.
    pub(crate) bill: Bill,
    /// Sum of the durations of all captures, in nanoseconds.
    pub(crate) nanos: u64,
    /// Number of flows.
    pub(crate) flows: u64,
    pub(crate) traffic: TrafficSums,
    /// Price of sessions, apart from their octets, if the price list has sessions.
    pub(crate) session_price: Option<f64>,
    /// In the order of schemes, as the next one.
    pub(crate) carried: Vec<SchemeSums>,
    pub(crate) larger_flows: Vec<u64>,
    /// Billed units if payloads wait for others, for each of [`WAITS`]; without a price list zeros.
    pub(crate) packed: [u64; WAITS.len()],
}

/// Reason why outcomes cannot be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Settings differ, other than in the partitions to carry.
    #[error("the parts have different settings; run all shards with the same settings except `only`")]
    Settings,
    /// Inputs differ, or were surveyed differently.
    #[error("the parts have different inputs; run all shards on the same files with the same survey")]
    Inputs,
    /// A partition was carried by two parts.
    #[error("partition {0} is in two parts; run each partition in one shard")]
    Twice(u32),
    /// A partition was carried by no part.
    #[error("partition {0} is in none of the parts; run the shard that carries it")]
    Missing(u32),
    /// The link of joined parts loses or damages packets.
    #[error(
        "parts with loss or damage cannot be joined, since it depends on the packets before; analyze all inputs in one run"
    )]
    Impaired,
    /// A part lacks schemes of its run.
    #[error("a part is reduced to the best schemes; merge whole outcomes, then select")]
    Reduced,
}

impl Outcome {
    /// Returns the outcome that one run with all partitions would have had, in every bit. The parts may be in
    /// any order.
    ///
    /// # Errors
    /// The parts do not fit together: they are not runs of all partitions, each in one part, on the same
    /// captures with the same survey and settings.
    pub fn merge(parts: Vec<Self>) -> Result<Self, MergeError> {
        let mut runs = Vec::new();
        for mut part in parts {
            runs.push((part.sums.take().ok_or(MergeError::Reduced)?, part));
        }
        runs.sort_by_key(|(sums, _)| (sums.settings.carried().start, sums.settings.carried().end));
        let mut runs = runs.into_iter();
        let (mut sums, mut whole) = runs.next().ok_or(MergeError::Missing(0))?;
        for (more, part) in runs {
            let differs = (more.facts, more.nanos) != (sums.facts, sums.nanos) || more.bill != sums.bill;
            if differs || part.inputs != whole.inputs {
                return Err(MergeError::Inputs);
            }
            sums.add(&more)?;
            whole.add(part);
        }
        match sums.settings.carried() {
            Range { start: 0, end } if end == whole.partitions => {}
            Range { start: 0, end } => return Err(MergeError::Missing(end)),
            Range { start: _, end: _ } => return Err(MergeError::Missing(0)),
        }
        whole.flows.sort_by_key(|flow| flow.number);
        whole.other_flows.sort_by_key(|flow| flow.number);
        whole.faults.sort_by_key(|fault| (fault.input, fault.packet));
        whole.faults.truncate(MOST_FAULTS);
        whole.totals = sums.totals();
        whole.recommendation = sums.recommendation(&whole.totals);
        whole.bill = sums.bill(&whole.totals);
        whole.sums = Some(sums);
        Ok(whole)
    }
}

impl Outcome {
    /// Returns the outcome of one run on the inputs of all parts, in their order: each input is a link of its own.
    ///
    /// It is that of one run except for the [`timeline`](Self::timeline): packets of later parts are moved by less
    /// than an interval.
    ///
    /// # Errors
    /// The parts have different settings, lack partitions or schemes, or their link loses or damages packets, which
    /// depends on the packets before.
    pub fn join(parts: Vec<Self>) -> Result<Self, MergeError> {
        let mut runs = Vec::new();
        for mut part in parts {
            let sums = part.sums.take().ok_or(MergeError::Reduced)?;
            match sums.settings.carried() {
                Range { start: 0, end } if end == part.partitions => runs.push((sums, part)),
                Range { start: 0, end } => return Err(MergeError::Missing(end)),
                Range { start: _, end: _ } => return Err(MergeError::Missing(0)),
            }
        }
        let mut runs = runs.into_iter();
        let (mut sums, mut whole) = runs.next().ok_or(MergeError::Missing(0))?;
        for (next, mut part) in runs {
            let only = sums.settings.only.clone();
            if sums.settings != (Settings { only, ..next.settings.clone() }) {
                return Err(MergeError::Settings);
            }
            if sums.settings.loss.is_some() || sums.settings.damage_one {
                return Err(MergeError::Impaired);
            }
            let (inputs, flows) = (whole.inputs.len(), sums.flows as usize);
            for flow in &mut part.flows {
                (flow.input, flow.number) = (flow.input + inputs, flow.number + flows);
            }
            for flow in &mut part.other_flows {
                (flow.input, flow.number) = (flow.input + inputs, flow.number + flows);
            }
            part.faults.iter_mut().for_each(|fault| fault.input += inputs);
            part.timeline.delay(sums.nanos);
            whole.inputs.append(&mut part.inputs);
            whole.add(part);
            sums.nanos = sums.nanos.saturating_add(next.nanos);
            sums.facts.add(&next.facts);
            sums.bill.merge(&next.bill);
            sums.add_counts(&next);
        }
        whole.list_largest(sums.settings.most_flows);
        whole.faults.truncate(MOST_FAULTS);
        whole.totals = sums.totals();
        whole.recommendation = sums.recommendation(&whole.totals);
        whole.bill = sums.bill(&whole.totals);
        whole.sums = Some(sums);
        Ok(whole)
    }

    /// Keeps all sums of the largest flows only, and the course of fewer.
    fn list_largest(&mut self, most: usize) {
        let mut ranks: Vec<_> =
            self.flows.iter().map(|flow| (Reverse(flow.traffic.bytes_in), flow.number)).collect();
        ranks.sort_unstable();
        let is_among = |flow: &Flow, most: usize| {
            ranks
                .get(most)
                .is_none_or(|first_left_out| (Reverse(flow.traffic.bytes_in), flow.number) < *first_left_out)
        };
        let (mut listed, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.flows).into_iter().partition(|flow| is_among(flow, most));
        for flow in &mut listed {
            if !is_among(flow, MOST_COURSES) {
                flow.course.clear();
            }
        }
        self.flows = listed;
        self.other_flows.extend(others.into_iter().map(Flow::without_sums));
        self.other_flows.sort_by_key(|flow| flow.number);
    }

    /// Adds lists and counts of another part.
    fn add(&mut self, part: Self) {
        self.flows.extend(part.flows);
        self.other_flows.extend(part.other_flows);
        self.faults.extend(part.faults);
        self.timeline.merge(part.timeline);
        let sizes = self.header_sizes_out.iter_mut().zip(part.header_sizes_out);
        for (all, sizes) in sizes.chain([(&mut self.header_sizes_in, part.header_sizes_in)]) {
            for (size, packets) in sizes {
                *all.entry(size).or_default() += packets;
            }
        }
    }
}

impl RunSums {
    pub(crate) fn totals(&self) -> Totals {
        let report = SumsReport { settings: &self.settings };
        let mut schemes = report.schemes(&self.traffic, &self.carried);
        for ((scheme, larger), spec) in schemes.iter_mut().zip(&self.larger_flows).zip(&self.settings.schemes)
        {
            scheme.larger_flows = spec.channel().map(|_| *larger);
        }
        let mut traffic = report.traffic(&self.traffic);
        if let Some(sessions) = self.session_price {
            let costs = schemes.iter_mut().map(|scheme| &mut scheme.cost_out);
            costs.chain([&mut traffic.cost_in]).flatten().for_each(|cost| *cost += sessions);
        }
        Totals {
            packets: self.traffic.packets,
            flows: self.flows,
            traffic,
            session_cost: self.session_price,
            tariff: self.settings.tariff.as_ref().map(TariffSource::of),
            packing: self.packing(),
            schemes,
        }
    }

    /// Price with packing; empty without a price list.
    fn packing(&self) -> Vec<PackingCost> {
        let Some(billing) = self.settings.packed_billing() else { return Vec::new() };
        let cost = |(within_seconds, units): (_, u64)| PackingCost {
            within_seconds,
            cost: units as f64 * billing.price,
            saved_ratio: 1.0 - units as f64 / self.traffic.units.max(1) as f64,
        };
        WAITS.into_iter().zip(self.packed).map(cost).collect()
    }

    /// Octets by cause, with what compression saves.
    pub(crate) fn bill(&self, totals: &Totals) -> Vec<BillRow> {
        let rohc =
            self.settings.schemes.iter().zip(&totals.schemes).filter(|(spec, _)| spec.channel().is_some());
        let exact = rohc.filter(|(_, scheme)| scheme.roundtrip_mismatches == 0);
        let fewest = exact.map(|(_, scheme)| scheme.sent_bytes()).min();
        self.bill.rows(fewest.map(|sent| totals.traffic.bytes_in.saturating_sub(sent)))
    }

    pub(crate) fn recommendation(&self, totals: &Totals) -> Option<Recommendation> {
        Recommendation::of(self, totals)
    }

    /// Adds the sums of a run with the next partitions.
    fn add(&mut self, next: &Self) -> Result<(), MergeError> {
        let (own, others) = (self.settings.carried(), next.settings.carried());
        let only = own.start..others.end;
        if (Settings { only: only.clone(), ..next.settings.clone() })
            != (Settings { only: only.clone(), ..self.settings.clone() })
        {
            return Err(MergeError::Settings);
        }
        if others.start < own.end {
            return Err(MergeError::Twice(others.start));
        }
        if others.start > own.end {
            return Err(MergeError::Missing(own.end));
        }
        self.settings.only = only;
        self.add_counts(next);
        Ok(())
    }

    fn add_counts(&mut self, next: &Self) {
        self.flows += next.flows;
        self.traffic.merge(&next.traffic);
        self.session_price = self.session_price.zip(next.session_price).map(|(own, next)| own + next);
        for (sums, next) in self.carried.iter_mut().zip(&next.carried) {
            sums.merge(next);
        }
        for (flows, next) in self.larger_flows.iter_mut().zip(&next.larger_flows) {
            *flows += next;
        }
        self.packed.iter_mut().zip(next.packed).for_each(|(sum, units)| *sum += units);
    }
}
