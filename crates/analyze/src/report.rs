//! Conversion of sums to the values of an [`Outcome`](crate::Outcome).

use crate::course::Course;
use crate::flow::{Detail, FlowSums};
use crate::outcome::{self, BreakEven, OtherFlow};
use crate::settings::{SchemeSpec, Settings};
use crate::tally::{SchemeSums, TrafficSums};

/// Converts a flow that is not listed with all sums.
pub(crate) fn other_flow(number: usize, flow: &FlowSums) -> OtherFlow {
    OtherFlow {
        input: flow.input,
        number,
        src: flow.key.source_text(),
        dst: flow.key.destination_text(),
        protocol: flow.key.protocol_text(),
        side: flow.side.name(),
        spi: flow.key.spi,
        ssrcs: flow.ssrcs().to_vec(),
        packets: flow.packets,
        bytes_in: flow.bytes,
        bytes_out: flow.sums.iter().map(|sum| sum.bytes).collect(),
        feedback_bytes: match flow.sums.iter().all(|sum| sum.feedback_bytes == 0) {
            true => Vec::new(),
            false => flow.sums.iter().map(|sum| sum.feedback_bytes).collect(),
        },
    }
}

/// Converts sums to results.
pub(crate) struct SumsReport<'s> {
    pub(crate) settings: &'s Settings,
}

impl SumsReport<'_> {
    pub(crate) fn flow(&self, number: usize, flow: &FlowSums, detail: Detail) -> outcome::Flow {
        let Detail { traffic, mut carried, course } = detail;
        for (sums, sum) in carried.iter_mut().zip(&flow.sums) {
            sums.gaps.add(sum.gap.ended());
        }
        let profiles = profiles(&carried);
        outcome::Flow {
            input: flow.input,
            number,
            src: flow.key.source_text(),
            dst: flow.key.destination_text(),
            protocol: flow.key.protocol_text(),
            side: flow.side.name(),
            profile: profiles.first().copied().unwrap_or("none"),
            profiles,
            spi: flow.key.spi,
            ssrcs: flow.ssrcs().to_vec(),
            break_even: self.break_even(&course),
            course: course.milestones(),
            packets: traffic.packets,
            traffic: self.traffic(&traffic),
            schemes: self.schemes(&traffic, &carried),
        }
    }

    pub(crate) fn traffic(&self, traffic: &TrafficSums) -> outcome::Traffic {
        outcome::Traffic {
            bytes_in: traffic.bytes,
            header_bytes_in: traffic.layers.headers(),
            layers_in: traffic.layers,
            first_header_bytes_in: traffic.first_headers,
            cost_in: self.cost(traffic.units),
            over_mtu_in: self.settings.link_mtu.map(|_| traffic.over_mtu),
        }
    }

    pub(crate) fn schemes(&self, traffic: &TrafficSums, carried: &[SchemeSums]) -> Vec<outcome::Scheme> {
        let specs = self.settings.schemes.iter();
        specs.zip(carried).map(|(spec, carried)| self.scheme(spec, traffic, carried)).collect()
    }

    fn scheme(&self, spec: &SchemeSpec, traffic: &TrafficSums, carried: &SchemeSums) -> outcome::Scheme {
        let sent = carried.bytes + carried.feedback_bytes;
        let kept = if traffic.bytes == 0 { 1.0 } else { sent as f64 / traffic.bytes as f64 };
        let formats = carried.formats();
        outcome::Scheme {
            scheme: spec.name(),
            mode: spec.mode(),
            contexts: self.settings.unusual_contexts(spec),
            bytes_out: carried.bytes,
            header_bytes_out: carried.layers.headers(),
            first_packet_bytes: carried.first_packets,
            first_header_bytes_out: carried.first_headers,
            saved_ratio: 1.0 - kept,
            not_applicable: carried.not_applicable,
            roundtrip_mismatches: carried.mismatches,
            lost: carried.lost,
            lost_by: carried.lost_by.clone(),
            packet_types: formats.iter().map(|(format, sums)| (format.name(), sums.0)).collect(),
            rohc_bytes_by_type: formats.iter().map(|(format, sums)| (format.name(), sums.1)).collect(),
            profiles: carried.profiles().into_iter().map(|(profile, n)| (profile.name(), n)).collect(),
            refreshes: carried.refreshes,
            refresh_bytes: carried.refresh_bytes,
            late_wait: if spec.refreshes() { carried.gaps.late_wait() } else { None },
            larger_flows: None,
            feedback_packets: carried.feedback_packets,
            feedback_bytes: carried.feedback_bytes,
            layers_out: carried.layers,
            cost_out: self.cost(carried.units),
            over_mtu_out: self.settings.link_mtu.map(|_| carried.over_mtu),
        }
    }

    fn break_even(&self, course: &Course) -> Vec<BreakEven> {
        let id = |at: usize| {
            let spec = &self.settings.schemes[at];
            outcome::id(spec.name(), spec.mode(), self.settings.unusual_contexts(spec))
        };
        let leads = course.leads();
        leads
            .map(|lead| BreakEven {
                cheaper: id(lead.cheaper),
                than: id(lead.than),
                after_packets: lead.since,
            })
            .collect()
    }

    fn cost(&self, units: u64) -> Option<f64> {
        self.settings.billing.map(|billing| units as f64 * billing.price)
    }
}

/// Returns the profiles of the last scheme with profiles, most frequent first; for equal counts, lower
/// numbers first.
fn profiles(carried: &[SchemeSums]) -> Vec<&'static str> {
    let last = carried.iter().map(SchemeSums::profiles).rfind(|profiles| !profiles.is_empty());
    let mut profiles: Vec<_> = last.into_iter().flatten().collect();
    profiles.sort_by_key(|(_, packets)| std::cmp::Reverse(*packets));
    profiles.into_iter().map(|(profile, _)| profile.name()).collect()
}
