//! Completed runs, as lines of a file, and their statistics.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::sample::{Lateness, Metric, Sample};
use super::{ExperimentCell, ExperimentJob};
use crate::summary::Summary;

/// Value of `schema` in every line.
const SCHEMA: &str = "thinair.lab.run/1";

/// Value of `schema` in the document of all results.
const RESULTS_SCHEMA: &str = "thinair.lab/1";

/// Completed run: a line of a file of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    schema: String,
    /// Index of the cell in its plan.
    cell: usize,
    /// Keys with several values, and their values in this cell.
    pub sweep: Vec<(String, Value)>,
    /// [`ExperimentCell::settings`], in hexadecimal: numbers of JSON have 53 bits.
    settings: String,
    /// Seed of everything random, with the number of the run.
    pub seed: u64,
    /// Number of the run, from 0.
    pub run: u32,
    /// Measurements.
    pub sample: Sample,
    /// Lateness of the run, if it was in real time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_time: Option<Lateness>,
}

impl RunRecord {
    pub(super) fn new(
        job: &ExperimentJob,
        seed: u64,
        cell: &ExperimentCell,
        sample: Sample,
        real_time: Option<Lateness>,
    ) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            cell: job.cell,
            sweep: cell.sweep.clone(),
            settings: hex(cell),
            seed,
            run: job.run,
            sample,
            real_time,
        }
    }

    /// Name of the cell: keys and values; empty if no key has several values.
    pub fn name(&self) -> String {
        name(&self.sweep)
    }

    /// Text of the line, without its end.
    pub fn to_line(&self) -> String {
        // Numbers and texts can always be serialized.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses a line.
    ///
    /// # Errors
    /// It is not a line of results.
    pub fn of_line(line: &str) -> Result<Self, String> {
        let record: Self =
            serde_json::from_str(line).map_err(|error| format!("is no result of a run: {error}"))?;
        if record.schema != SCHEMA {
            return Err(format!("is {}, not {SCHEMA}", record.schema));
        }
        Ok(record)
    }
}

fn hex(cell: &ExperimentCell) -> String {
    format!("{:016x}", cell.settings)
}

/// Reason that a run cannot be combined with others.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Merge {
    /// Other settings under the same name.
    #[error("belongs to another plan: its settings of {0} differ")]
    OtherPlan(String),
    /// Other keys.
    #[error("belongs to another plan: it sweeps {0}")]
    OtherKeys(String),
    /// Means of virtual and real time are not comparable.
    #[error("mixes virtual and real time with the other runs; use another file")]
    OtherTime,
    /// Other figures for an existing run.
    #[error(
        "has other figures for run {run} of {cell} with seed {seed} than another line: they are of two versions, or in real \
         time"
    )]
    Differs {
        /// Name of the cell.
        cell: String,
        /// Seed.
        seed: u64,
        /// Number of the run.
        run: u32,
    },
}

/// Completed runs, which may come from several machines.
#[derive(Clone, Debug, Default)]
pub struct Results {
    cells: Vec<CellResults>,
    /// Index of the cell by its settings.
    by_settings: BTreeMap<String, usize>,
    /// Index of the cell by its name.
    by_name: BTreeMap<String, usize>,
    /// Worst lateness of the runs, if they are in real time.
    real_time: Option<Lateness>,
}

/// Runs of one cell.
#[derive(Clone, Debug)]
pub struct CellResults {
    place: usize,
    settings: String,
    /// Keys with several values, and their values in this cell.
    pub sweep: Vec<(String, Value)>,
    /// Samples by seed and number.
    runs: BTreeMap<(u64, u32), Sample>,
}

impl Results {
    /// Adds a run. An existing one is not counted twice.
    ///
    /// # Errors
    /// It does not belong to the others, and was not added.
    pub fn add(&mut self, record: RunRecord) -> Result<(), Merge> {
        if !self.is_empty() && self.real_time.is_some() != record.real_time.is_some() {
            return Err(Merge::OtherTime);
        }
        let name = name(&record.sweep);
        let at = match self.by_name.get(&name) {
            Some(&at) if self.cells[at].settings != record.settings => {
                return Err(Merge::OtherPlan(shown(&name)));
            }
            Some(&at) => at,
            None => {
                let keys =
                    |sweep: &[(String, Value)]| sweep.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
                let own = keys(&record.sweep);
                if self.cells.first().is_some_and(|first| keys(&first.sweep) != own) {
                    return Err(Merge::OtherKeys(if own.is_empty() {
                        "nothing".into()
                    } else {
                        own.join(", ")
                    }));
                }
                let at = self.cells.len();
                self.by_name.insert(name.clone(), at);
                self.by_settings.insert(record.settings.clone(), at);
                self.cells.push(CellResults {
                    place: record.cell,
                    settings: record.settings,
                    sweep: record.sweep,
                    runs: BTreeMap::new(),
                });
                at
            }
        };
        match self.cells[at].runs.entry((record.seed, record.run)) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(record.sample);
                self.real_time = Lateness::worst(self.real_time, record.real_time);
            }
            std::collections::btree_map::Entry::Occupied(entry) if *entry.get() == record.sample => {}
            std::collections::btree_map::Entry::Occupied(_) => {
                return Err(Merge::Differs { cell: shown(&name), seed: record.seed, run: record.run });
            }
        }
        Ok(())
    }

    /// True if it has this run.
    pub fn has(&self, cell: &ExperimentCell, seed: u64, run: u32) -> bool {
        let found = self.by_settings.get(&hex(cell)).and_then(|at| self.cells.get(*at));
        found.is_some_and(|found| found.runs.contains_key(&(seed, run)))
    }

    /// True if all its cells are among `cells`.
    pub fn are_of(&self, cells: &[ExperimentCell]) -> bool {
        let known: std::collections::BTreeSet<_> = cells.iter().map(hex).collect();
        self.cells.iter().all(|cell| known.contains(&cell.settings))
    }

    /// Worst lateness of the runs; `None` in virtual time.
    pub fn real_time(&self) -> Option<Lateness> {
        self.real_time
    }

    /// Number of runs.
    pub fn len(&self) -> usize {
        self.cells.iter().map(|cell| cell.runs.len()).sum()
    }

    /// True if it has no runs.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Keys with several values, in the order of the plan.
    pub fn keys(&self) -> Vec<String> {
        self.cells()
            .next()
            .map_or_else(Vec::new, |cell| cell.sweep.iter().map(|(key, _)| key.clone()).collect())
    }

    /// Returns the document `thinair.lab/1`: every figure of every cell.
    pub fn to_json(&self, title: &str) -> Value {
        let cell = |cell: &CellResults| {
            let figure = |metric: &Metric| {
                let found = cell.summary(metric);
                let value =
                    found.map(|found| json!({ "mean": found.mean, "half": found.half, "runs": found.count }));
                (metric.key.to_owned(), value.unwrap_or(Value::Null))
            };
            json!({
                "name": cell.name(),
                "sweep": cell.sweep.iter().cloned().collect::<Map<_, _>>(),
                "runs": cell.count(),
                "figures": Metric::ALL.iter().map(figure).collect::<Map<_, _>>(),
            })
        };
        let cells: Vec<_> = self.cells().map(cell).collect();
        let time = if self.real_time.is_some() { "real" } else { "virtual" };
        let mut value = json!({
            "schema": RESULTS_SCHEMA, "title": title, "time": time, "keys": self.keys(), "cells": cells,
        });
        if let Some(late) = self.real_time {
            value["lateness"] = json!(late);
        }
        value
    }

    /// Cells with at least one run, in the order of their plan.
    pub fn cells(&self) -> impl Iterator<Item = &CellResults> {
        let mut cells: Vec<_> = self.cells.iter().collect();
        cells.sort_by_key(|cell| (cell.place, name(&cell.sweep)));
        cells.into_iter()
    }
}

impl CellResults {
    /// Keys and values; empty if no key has several values.
    pub fn name(&self) -> String {
        name(&self.sweep)
    }

    /// Number of runs.
    pub fn count(&self) -> usize {
        self.runs.len()
    }

    /// Statistics of a metric, over the runs that have it.
    pub fn summary(&self, metric: &Metric) -> Option<Summary> {
        Summary::of(&self.runs.values().filter_map(metric.of).collect::<Vec<_>>())
    }
}

/// Keys and values of a cell.
pub(super) fn name(sweep: &[(String, Value)]) -> String {
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    sweep.iter().map(|(key, of)| format!("{key}={}", value(of))).collect::<Vec<_>>().join(",")
}

fn shown(name: &str) -> String {
    if name.is_empty() { "the plan".to_owned() } else { name.to_owned() }
}
