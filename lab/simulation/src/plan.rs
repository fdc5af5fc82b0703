//! Plans: experiments as TOML files, which need no Rust.
//!
//! A plan has the parameters of a [`Scenario`], the number of its runs, and keys with several values; their cross
//! product is its cells. This module parses the format, whose terms are those of `thinair link run` and of RFC 7252,
//! and has the metrics of a run. It has no arguments, files or presentation of figures. `docs/lab.md` has every key.
//!
//! **A plan and a seed determine every figure**, whatever the number of threads, and whichever machine does which runs.
//!
//! ```
//! use thinair_simulation::plan::{ExperimentPlan, Results};
//!
//! let plan = ExperimentPlan::read(
//!     "[link]\npreset = 'gprs'\n[requests]\ncount = 5\n[runs]\ncount = 2\n\
//!      [sweep]\n'link.down.loss' = [0, 5]\n'clients.congestion' = ['rfc7252', 'fasor']\n",
//! )?;
//! assert_eq!(plan.cells[1].name(), "link.down.loss=0,clients.congestion=fasor");
//! let mut results = Results::default();
//! for job in plan.jobs() {
//!     results.add(plan.run(&job, plan.seed))?;
//! }
//! assert_eq!(results.cells().count(), 4);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod build;
mod document;
mod results;
mod sample;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod words;

use serde::Deserialize as _;
use thiserror::Error;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use crate::network::Scenario;
#[cfg(target_os = "linux")]
use crate::network::{RealTimeError, RealTimeLink};

pub use results::{CellResults, Merge, Results, RunRecord};
pub use sample::{Lateness, Metric, Sample};

/// Plan with comments, as a template.
pub const TEMPLATE: &str = include_str!("plan/template.toml");

/// Maximum number of cells of a plan.
pub const MOST_CELLS: usize = 100_000;

/// Error in a plan, with advice.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{message}", line.map_or(String::new(), |line| format!("line {line}: ")))]
pub struct PlanError {
    /// Line of the error, from 1, if it has one.
    pub line: Option<usize>,
    /// Message, with the key.
    pub message: String,
}

/// Valid plan.
#[derive(Clone, Debug)]
pub struct ExperimentPlan {
    /// Title; may be empty.
    pub title: String,
    /// Number of runs of each cell: 1 to 1,000,000.
    pub count: u32,
    /// Seed of everything random.
    pub seed: u64,
    /// Keys with several values, in the order of the file.
    pub keys: Vec<String>,
    /// Cross product of their values. The last key changes fastest.
    pub cells: Vec<ExperimentCell>,
}

/// Experiment of a plan.
#[derive(Clone, Debug)]
pub struct ExperimentCell {
    /// Value of each key with several values.
    pub sweep: Vec<(String, serde_json::Value)>,
    /// Fingerprint of all settings of the cell, independent of the seed, of titles, and of other cells.
    pub settings: u64,
    /// Scenario of the cell.
    pub scenario: Scenario,
}

impl ExperimentCell {
    /// Keys and values; empty if no key has several values.
    pub fn name(&self) -> String {
        results::name(&self.sweep)
    }
}

/// One run of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExperimentJob {
    /// Index of the cell in [`ExperimentPlan::cells`].
    pub cell: usize,
    /// Number of the run, from 0.
    pub run: u32,
}

/// Key with several values.
struct Swept {
    key: String,
    values: Vec<Value>,
    line: usize,
}

impl ExperimentPlan {
    /// Parses a plan.
    ///
    /// # Errors
    /// The text is not TOML, has an unknown key, or values that are out of range or contradict each other.
    pub fn read(text: &str) -> Result<Self, PlanError> {
        let lines = PlanLines { text };
        let at = |error: toml::de::Error| PlanError {
            line: error.span().map(|span| lines.line(span.start)),
            message: error.message().replace('\n', "; "),
        };
        let base: document::Document = toml::from_str(text).map_err(at)?;
        let mut table: Table = toml::from_str(text).map_err(at)?;
        let swept = lines.swept(&base.sweep)?;
        for key in ["sweep", "title"] {
            table.remove(key);
        }
        let cells = swept
            .iter()
            .try_fold(1_usize, |cells, swept| cells.checked_mul(swept.values.len()))
            .filter(|cells| *cells <= MOST_CELLS)
            .ok_or_else(|| PlanError {
                line: lines.of("sweep"),
                message: format!("[sweep] makes more than {MOST_CELLS} cells; split the plan"),
            })?;
        let count = base.runs.count.unwrap_or(30);
        if !(1..=1_000_000).contains(&count) {
            let message = format!("runs.count is {count}; give 1 to 1000000");
            return Err(PlanError { line: lines.of("runs.count"), message });
        }
        let cells =
            (0..cells).map(|number| cell(&lines, &table, &swept, number)).collect::<Result<_, _>>()?;
        Ok(Self {
            title: base.title,
            count,
            seed: base.runs.seed.unwrap_or(1),
            keys: swept.into_iter().map(|swept| swept.key).collect(),
            cells,
        })
    }

    /// All runs, in the order of execution.
    pub fn jobs(&self) -> impl Iterator<Item = ExperimentJob> {
        let count = self.count;
        (0..self.cells.len()).flat_map(move |cell| (0..count).map(move |run| ExperimentJob { cell, run }))
    }

    /// Notes on settings that are valid, and cost more than they need to: more flows than ROHC has contexts for.
    pub fn notes(&self) -> Vec<String> {
        let short = self.cells.iter().filter_map(|cell| {
            let scenario = &cell.scenario;
            let channel = scenario.rohc.as_ref()?.compressor.channel;
            Some((scenario.flows(), u32::from(channel.max_cid()) + 1))
                .filter(|(flows, contexts)| flows > contexts)
        });
        let note = |(flows, contexts): (u32, u32)| {
            format!(
                "ROHC has {contexts} contexts for {flows} flows in a direction, so that flows take those of others, and begin \
                 with an IR packet each time; give rohc.cid = \"large\" and rohc.max_cid = {}",
                flows - 1
            )
        };
        short.max_by_key(|(flows, contexts)| flows - contexts).map(note).into_iter().collect()
    }

    /// Performs one of them.
    ///
    /// # Panics
    /// The job is not one of this plan.
    pub fn run(&self, job: &ExperimentJob, seed: u64) -> RunRecord {
        let cell = &self.cells[job.cell];
        let sample = Sample::of(&cell.scenario.run(seed, job.run));
        RunRecord::new(job, seed, cell, sample, None)
    }

    /// Checks that all cells can run in real time.
    ///
    /// # Errors
    /// A cell has more hosts than one process can serve in time.
    #[cfg(target_os = "linux")]
    pub fn check_real_time(&self) -> Result<(), PlanError> {
        let most = Scenario::MOST_IN_REAL_TIME;
        let Some(cell) = self.cells.iter().find(|cell| cell.scenario.clients > most) else { return Ok(()) };
        let clients = cell.scenario.clients;
        Err(PlanError {
            line: None,
            message: format!(
                "clients.count is {clients}, and in real time {most} have room; run it in virtual time"
            ),
        })
    }

    /// Performs one of them in real time.
    ///
    /// # Errors
    /// A signal asks to end, or the system removes a device.
    ///
    /// # Panics
    /// The job is not one of this plan.
    #[cfg(target_os = "linux")]
    pub fn run_in_real_time(
        &self,
        link: &mut RealTimeLink,
        job: &ExperimentJob,
        seed: u64,
    ) -> Result<RunRecord, RealTimeError> {
        let cell = &self.cells[job.cell];
        let (outcome, punctuality) = cell.scenario.run_in_real_time(link, seed, job.run)?;
        Ok(RunRecord::new(job, seed, cell, Sample::of(&outcome), Some(Lateness::of(&punctuality))))
    }
}

/// Cell `number` of the cross product.
fn cell(
    lines: &PlanLines<'_>,
    base: &Table,
    swept: &[Swept],
    number: usize,
) -> Result<ExperimentCell, PlanError> {
    let (mut table, mut left, mut sweep) = (base.clone(), number, Vec::new());
    for one in swept.iter().rev() {
        let value = one.values.get(left % one.values.len()).cloned().unwrap_or(Value::Boolean(false));
        left /= one.values.len();
        sweep.insert(0, (one.key.clone(), words::to_json(&value)));
        if !put(&mut table, &one.key, value) {
            let message = format!("sweep: {} lies in a key that is no section", one.key);
            return Err(PlanError { line: Some(one.line), message });
        }
    }
    let settings = words::fingerprint(&Value::Table(without_runs(&table)));
    // Errors without the sweep were reported before, with their lines.
    let document = document::Document::deserialize(table).map_err(|error| PlanError {
        line: lines.of("sweep"),
        message: format!("sweep: {}: {}", results::name(&sweep), error.message().replace('\n', "; ")),
    })?;
    let scenario = build::scenario(&document).map_err(|wrong| {
        let by_sweep = swept.iter().find(|one| one.key == wrong.key);
        let line = by_sweep.map(|one| one.line).or_else(|| lines.of(wrong.key));
        PlanError { line, message: format!("{} {}", wrong.key, wrong.message) }
    })?;
    Ok(ExperimentCell { sweep, settings, scenario })
}

/// Settings of a scenario alone, without number of runs and seed.
fn without_runs(table: &Table) -> Table {
    let mut table = table.clone();
    if let Some(Value::Table(runs)) = table.get_mut("runs") {
        runs.remove("count");
        runs.remove("seed");
        if runs.is_empty() {
            table.remove("runs");
        }
    }
    table
}

/// Sets a key by its dotted name. Returns false if a part of the name is not a section.
fn put(table: &mut Table, key: &str, value: Value) -> bool {
    let Some((section, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return true;
    };
    match table.entry(section).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(table) => put(table, rest, value),
        _ => false,
    }
}

/// Positions of keys in the text.
struct PlanLines<'t> {
    text: &'t str,
}

impl PlanLines<'_> {
    fn line(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().get(..offset).unwrap_or_default();
        1 + before.iter().filter(|octet| **octet == b'\n').count()
    }

    /// Line of a key by its dotted name, or of the section to which it would belong.
    fn of(&self, key: &str) -> Option<usize> {
        let document = DeTable::parse(self.text).ok()?;
        let (mut table, mut line) = (document.get_ref(), None);
        for part in key.split('.') {
            let Some((name, value)) = table.iter().find(|(name, _)| name.get_ref() == part) else { break };
            line = Some(self.line(name.span().start));
            let DeValue::Table(inner) = value.get_ref() else { break };
            table = inner;
        }
        line
    }

    /// Keys with several values, in the order of the file.
    fn swept(&self, sweep: &Table) -> Result<Vec<Swept>, PlanError> {
        let document = DeTable::parse(self.text).ok();
        let place = |key: &str| {
            let DeValue::Table(sweep) = document.as_ref()?.get_ref().get("sweep")?.get_ref() else {
                return None;
            };
            sweep.keys().find(|name| name.get_ref() == key).map(|name| name.span().start)
        };
        let mut swept = Vec::new();
        for (key, values) in sweep {
            let offset = place(key).unwrap_or(0);
            let line = self.line(offset);
            let wrong = |what: &str| PlanError { line: Some(line), message: format!("sweep: {key} {what}") };
            let section = key.split('.').next().unwrap_or_default();
            let Value::Array(values) = values else {
                let what = match values {
                    Value::Table(_) => {
                        "is a section; write the dotted name in quotes, as \"link.down.loss\" = [0, 5]"
                    }
                    _ => "has one value; give a list of values, as [0, 5], or set the key in its section",
                };
                return Err(wrong(what));
            };
            if !["link", "rohc", "clients", "requests", "download"].contains(&section) || !key.contains('.') {
                return Err(wrong(
                    "cannot be swept; name a key of link, rohc, clients, requests or download",
                ));
            }
            if values.is_empty() {
                return Err(wrong("has no values; give one at least"));
            }
            if values
                .iter()
                .any(|value| matches!(value, Value::Table(_) | Value::Datetime(_) | Value::Array(_)))
            {
                return Err(wrong(
                    "takes texts, numbers, true and false; sweep the keys of a section one by one",
                ));
            }
            if (1..values.len()).any(|at| values[..at].contains(&values[at])) {
                return Err(wrong("has a value twice; take one out"));
            }
            swept.push((offset, Swept { key: key.clone(), values: values.clone(), line }));
        }
        swept.sort_by_key(|(offset, _)| *offset);
        Ok(swept.into_iter().map(|(_, swept)| swept).collect())
    }
}
