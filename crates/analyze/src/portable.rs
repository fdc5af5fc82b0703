//! Portable form of the outcome of a shard, for a [merge](crate::Outcome::merge) in another process or on another machine.
//!
//! The form is internal: it is read by the same version of this crate only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use thinair_capture::LinkType;

use crate::bill::Bill;
use crate::merge::RunSums;
use crate::outcome::{Flow, InputSummary, Milestone, Mismatch, Name, OtherFlow, Outcome, SCHEMA};
use crate::packing::WAITS;
use crate::settings::Settings;
use crate::survey::Facts;
use crate::tally::{SchemeSums, TrafficSums};
use crate::timeline::Timeline;

/// Summary of a capture with all its fields.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PortableInput(InputSummary, BTreeMap<u16, u64>, bool);

impl From<InputSummary> for PortableInput {
    fn from(input: InputSummary) -> Self {
        let link_types =
            input.link_types.iter().map(|(link_type, records)| (link_type.0, *records)).collect();
        let damaged = input.damaged;
        Self(input, link_types, damaged)
    }
}

impl From<PortableInput> for InputSummary {
    fn from(PortableInput(input, link_types, damaged): PortableInput) -> Self {
        let link_types =
            link_types.into_iter().map(|(link_type, records)| (LinkType(link_type), records)).collect();
        Self { link_types, damaged, ..input }
    }
}

/// Outcome without its settings. Deserialize it from trusted data: it is not checked.
#[derive(Debug, Serialize, Deserialize)]
pub struct Portable {
    inputs: Vec<PortableInput>,
    flows: Vec<(usize, Flow, Vec<Milestone>)>,
    other_flows: Vec<(usize, OtherFlow)>,
    faults: Vec<Mismatch>,
    timeline: Timeline,
    header_sizes_in: BTreeMap<u64, u64>,
    header_sizes_out: Vec<BTreeMap<u64, u64>>,
    facts: Facts,
    bill: Bill,
    nanos: u64,
    number_of_flows: u64,
    traffic: TrafficSums,
    session_price: Option<f64>,
    carried: Vec<SchemeSums>,
    larger_flows: Vec<u64>,
    packed: [u64; WAITS.len()],
}

impl Portable {
    /// Returns the portable form; `None` if the outcome is reduced to the best schemes.
    pub fn of(outcome: &Outcome) -> Option<Self> {
        let outcome = outcome.clone();
        let sums = outcome.sums?;
        let flow = |mut flow: Flow| {
            let course = std::mem::take(&mut flow.course);
            (flow.number, flow, course)
        };
        Some(Self {
            inputs: outcome.inputs.into_iter().map(PortableInput::from).collect(),
            flows: outcome.flows.into_iter().map(flow).collect(),
            other_flows: outcome.other_flows.into_iter().map(|flow| (flow.number, flow)).collect(),
            faults: outcome.faults,
            timeline: outcome.timeline,
            header_sizes_in: outcome.header_sizes_in,
            header_sizes_out: outcome.header_sizes_out,
            facts: sums.facts,
            bill: sums.bill,
            nanos: sums.nanos,
            number_of_flows: sums.flows,
            traffic: sums.traffic,
            session_price: sums.session_price,
            carried: sums.carried,
            larger_flows: sums.larger_flows,
            packed: sums.packed,
        })
    }

    /// Returns the outcome. `settings` are those of the run.
    pub fn into_outcome(self, settings: Settings) -> Outcome {
        let sums = RunSums {
            settings,
            facts: self.facts,
            bill: self.bill,
            nanos: self.nanos,
            flows: self.number_of_flows,
            traffic: self.traffic,
            session_price: self.session_price,
            carried: self.carried,
            larger_flows: self.larger_flows,
            packed: self.packed,
        };
        let totals = sums.totals();
        Outcome {
            schema: SCHEMA,
            partitions: sums.settings.partitions(),
            inputs: self.inputs.into_iter().map(InputSummary::from).collect(),
            bill: sums.bill(&totals),
            recommendation: sums.recommendation(&totals),
            totals,
            flows: self
                .flows
                .into_iter()
                .map(|(number, flow, course)| Flow { number, course, ..flow })
                .collect(),
            other_flows: self
                .other_flows
                .into_iter()
                .map(|(number, flow)| OtherFlow { number, ..flow })
                .collect(),
            faults: self.faults,
            timeline: self.timeline,
            header_sizes_in: self.header_sizes_in,
            header_sizes_out: self.header_sizes_out,
            sums: Some(Box::new(sums)),
        }
    }
}

/// Deserializes names, which are few, so that each is kept once and for good.
pub(crate) fn names<'de, D: Deserializer<'de>, N: Names>(deserializer: D) -> Result<N, D::Error> {
    N::Owned::deserialize(deserializer).map(N::keep)
}

/// A value with names.
pub(crate) trait Names {
    /// The value as it is deserialized.
    type Owned: DeserializeOwned;

    fn keep(owned: Self::Owned) -> Self;
}

impl Names for Name {
    type Owned = String;

    fn keep(owned: String) -> Self {
        static NAMES: Mutex<BTreeSet<Name>> = Mutex::new(BTreeSet::new());
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = names.get(owned.as_str()) {
            return name;
        }
        let name: Name = owned.leak();
        names.insert(name);
        name
    }
}

impl Names for Option<Name> {
    type Owned = Option<String>;

    fn keep(owned: Self::Owned) -> Self {
        owned.map(Name::keep)
    }
}

impl Names for Vec<Name> {
    type Owned = Vec<String>;

    fn keep(owned: Self::Owned) -> Self {
        owned.into_iter().map(Name::keep).collect()
    }
}

impl Names for BTreeMap<Name, u64> {
    type Owned = BTreeMap<String, u64>;

    fn keep(owned: Self::Owned) -> Self {
        owned.into_iter().map(|(name, count)| (Name::keep(name), count)).collect()
    }
}
