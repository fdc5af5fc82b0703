//! Runs that are done, as lines of a file; and what they come to together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::sample::{Lateness, Metric, Sample};
use super::{Cell, Job};
use crate::summary::Summary;

/// What lines begin with.
const SCHEMA: &str = "thinair.lab.run/1";

/// A run that is done: a line of a file of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    schema: String,
    /// The place of the cell in its plan.
    cell: usize,
    /// Keys that take several values, and their value in this cell.
    pub sweep: Vec<(String, Value)>,
    /// [`Cell::settings`], in hexadecimal: numbers of JSON have 53 bits.
    settings: String,
    /// What everything random follows from, with the number of the run.
    pub seed: u64,
    /// From 0.
    pub run: u32,
    /// What was measured.
    pub sample: Sample,
    /// How late it was, if it was run in real time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_time: Option<Lateness>,
}

impl Record {
    pub(super) fn new(
        job: &Job,
        seed: u64,
        cell: &Cell,
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

    /// A line, without its end.
    pub fn to_line(&self) -> String {
        // Numbers and texts: nothing that JSON has no words for.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What a line says.
    ///
    /// # Errors
    /// It is no such line.
    pub fn of_line(line: &str) -> Result<Self, String> {
        let record: Self =
            serde_json::from_str(line).map_err(|error| format!("is no result of a run: {error}"))?;
        if record.schema != SCHEMA {
            return Err(format!("is {}, not {SCHEMA}", record.schema));
        }
        Ok(record)
    }
}

fn hex(cell: &Cell) -> String {
    format!("{:016x}", cell.settings)
}

/// Why a run cannot stand beside the others.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Merge {
    /// Other settings under the same name.
    #[error("is of another plan: its settings of {0} are not the same")]
    OtherPlan(String),
    /// Not the same keys.
    #[error("is of another plan: it sweeps {0}")]
    OtherKeys(String),
    /// Virtual and real time are not compared by their means.
    #[error("is of virtual time, and others of real time, or the other way round; give another name")]
    OtherTime,
    /// The same run, and not the same figures.
    #[error(
        "has other figures for run {run} of {cell} with seed {seed} than another line: they are of two versions, or in real \
         time"
    )]
    Differs {
        /// The cell's name.
        cell: String,
        /// Seed.
        seed: u64,
        /// Run.
        run: u32,
    },
}

/// All runs that are done, whoever did them.
#[derive(Clone, Debug, Default)]
pub struct Results {
    cells: Vec<CellResults>,
    /// Where the cell of these settings is.
    by_settings: BTreeMap<String, usize>,
    /// Those of that name.
    by_name: BTreeMap<String, usize>,
    /// How late the worst run was, if they are of real time.
    real_time: Option<Lateness>,
}

/// The runs of one cell.
#[derive(Clone, Debug)]
pub struct CellResults {
    place: usize,
    settings: String,
    /// Keys that take several values, and their value in this cell.
    pub sweep: Vec<(String, Value)>,
    /// By seed and number.
    runs: BTreeMap<(u64, u32), Sample>,
}

impl Results {
    /// Adds a run. One that is there is not counted twice.
    ///
    /// # Errors
    /// It does not go with the others; then nothing was added.
    pub fn add(&mut self, record: Record) -> Result<(), Merge> {
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

    /// Whether a run is there.
    pub fn has(&self, cell: &Cell, seed: u64, run: u32) -> bool {
        let found = self.by_settings.get(&hex(cell)).and_then(|at| self.cells.get(*at));
        found.is_some_and(|found| found.runs.contains_key(&(seed, run)))
    }

    /// Whether all cells are among those.
    pub fn are_of(&self, cells: &[Cell]) -> bool {
        let known: std::collections::BTreeSet<_> = cells.iter().map(hex).collect();
        self.cells.iter().all(|cell| known.contains(&cell.settings))
    }

    /// How late the worst of them was; nothing if they are of virtual time.
    pub fn real_time(&self) -> Option<Lateness> {
        self.real_time
    }

    /// Runs that are there.
    pub fn len(&self) -> usize {
        self.cells.iter().map(|cell| cell.runs.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Cells in the order of their plan, with a run at least.
    pub fn cells(&self) -> impl Iterator<Item = &CellResults> {
        let mut cells: Vec<_> = self.cells.iter().collect();
        cells.sort_by_key(|cell| (cell.place, name(&cell.sweep)));
        cells.into_iter()
    }
}

impl CellResults {
    /// Keys and values; empty if no key takes several.
    pub fn name(&self) -> String {
        name(&self.sweep)
    }

    /// Runs.
    pub fn count(&self) -> usize {
        self.runs.len()
    }

    /// What they come to, of those in which there was something to measure.
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
