//! Plans, and their runs in virtual time.

use std::collections::BTreeSet;
use std::sync::Arc;

use pyo3::prelude::*;
use thinair_python_common::{Frame, Series, value_error};
use thinair_simulation::plan::{CellResults, ExperimentJob, ExperimentPlan, Metric, Results, RunRecord};
use thinair_simulation::{WorkProgress, work};

use crate::table::series;
use crate::work::{threads, watched};

/// Maximum number of runs of one call.
const MOST_RUNS: u64 = 100_000_000;

/// Valid plan.
#[pyclass(frozen, module = "thinair_lab._native")]
pub(crate) struct Plan(Arc<ExperimentPlan>);

#[pymethods]
impl Plan {
    /// Parses a plan in TOML. `has_lines`: errors report lines of the text.
    #[new]
    fn new(text: &str, has_lines: bool) -> PyResult<Self> {
        let plan = ExperimentPlan::read(text).map_err(|error| match has_lines {
            true => value_error(error),
            false => value_error(error.message),
        })?;
        Ok(Self(Arc::new(plan)))
    }

    #[getter]
    fn title(&self) -> &str {
        &self.0.title
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed
    }

    #[getter]
    fn count(&self) -> u32 {
        self.0.count
    }

    /// Names of the cells.
    #[getter]
    fn cells(&self) -> Vec<String> {
        self.0.cells.iter().map(thinair_simulation::plan::ExperimentCell::name).collect()
    }

    /// Performs part of all runs: those of each seed in the order of `seeds`, each time every cell in its order, with
    /// `count` runs.
    fn run(
        &self,
        py: Python<'_>,
        seeds: Vec<u64>,
        count: u32,
        part: Option<(u64, u64)>,
        jobs: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Runs> {
        let of_seed = self.0.cells.len() as u64 * u64::from(count);
        let all = of_seed.saturating_mul(seeds.len() as u64);
        let (first, end) = part.unwrap_or((0, all));
        if first > end || end > all || end - first > MOST_RUNS {
            return Err(value_error(format_args!(
                "runs {first} to {end} are not among the {all} runs of this plan, or more than {MOST_RUNS}"
            )));
        }
        let job = |number: u64| {
            let run = (number % u64::from(count)) as u32;
            let cell = (number % of_seed / u64::from(count)) as usize;
            (seeds[(number / of_seed) as usize], ExperimentJob { cell, run })
        };
        let todo: Vec<_> = (first..end).map(|number| ((number - first) as usize, job(number))).collect();
        let plan = Arc::clone(&self.0);
        let records = watched(py, progress, move |steps| {
            let mut records = vec![None; todo.len()];
            let mut done = 0;
            steps.set(0, todo.len() as u64);
            work(
                &todo,
                threads(jobs),
                |(at, (seed, job))| (*at, plan.run(job, *seed)),
                |step| {
                    if let WorkProgress::Done((at, record)) = step {
                        records[at] = Some(record);
                        done += 1;
                    }
                    steps.set(done, todo.len() as u64)
                },
            );
            records.into_iter().flatten().collect()
        })?;
        Ok(Runs { title: self.0.title.clone(), records })
    }
}

/// Results of runs, in the order of seeds, cells and runs.
#[pyclass(frozen, module = "thinair_lab._native")]
pub(crate) struct Runs {
    title: String,
    records: Vec<RunRecord>,
}

impl Runs {
    fn results(&self) -> PyResult<Results> {
        let mut results = Results::default();
        for record in &self.records {
            results.add(record.clone()).map_err(value_error)?;
        }
        Ok(results)
    }
}

#[pymethods]
impl Runs {
    /// Results of lines of `thinair.lab.run/1`.
    #[staticmethod]
    fn from_lines(py: Python<'_>, title: String, lines: Vec<String>) -> PyResult<Self> {
        let records = py.detach(|| {
            let record = |(line, number): (&String, u64)| {
                RunRecord::of_line(line).map_err(|error| value_error(format_args!("line {number} {error}")))
            };
            lines.iter().zip(1..).map(record).collect::<PyResult<_>>()
        })?;
        Ok(Self { title, records })
    }

    #[getter]
    fn title(&self) -> &str {
        &self.title
    }

    /// A line of `thinair.lab.run/1` for each run.
    fn lines(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| self.records.iter().map(RunRecord::to_line).collect())
    }

    /// The JSON document `thinair.lab/1`.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| Ok(self.results()?.to_json(&self.title).to_string()))
    }

    /// Seeds, in their order.
    fn seeds(&self) -> Vec<u64> {
        let mut seen = BTreeSet::new();
        self.records.iter().map(|record| record.seed).filter(|seed| seen.insert(*seed)).collect()
    }

    /// A row for each run.
    fn frame(&self, py: Python<'_>) -> PyResult<Frame> {
        py.detach(|| {
            let records = || self.records.iter();
            let mut columns = vec![
                Series::counts("seed", records().map(|record| Some(record.seed))),
                Series::counts("run", records().map(|record| Some(record.run.into()))),
            ];
            let keys = self.records.first().map_or(&[][..], |record| &record.sweep);
            for (at, (key, _)) in keys.iter().enumerate() {
                let values = records().filter_map(|record| record.sweep.get(at)).map(|(_, value)| value);
                columns.push(series(key, values));
            }
            columns.extend(Metric::ALL.iter().map(|metric| {
                Series::numbers(metric.key, records().map(|record| (metric.of)(&record.sample))).optional()
            }));
            Frame::new(columns)
        })
    }

    /// A row for each cell, with the mean of each figure and half of its interval of 95 %.
    fn cells(&self, py: Python<'_>) -> PyResult<Frame> {
        py.detach(|| {
            let results = self.results()?;
            let cells: Vec<&CellResults> = results.cells().collect();
            let mut columns = Vec::new();
            for (at, key) in results.keys().iter().enumerate() {
                let values = cells.iter().filter_map(|cell| cell.sweep.get(at)).map(|(_, value)| value);
                columns.push(series(key, values));
            }
            columns.push(Series::counts("runs", cells.iter().map(|cell| Some(cell.count() as u64))));
            for metric in &Metric::ALL {
                let found: Vec<_> = cells.iter().map(|cell| cell.summary(metric)).collect();
                let means = found.iter().map(|found| found.as_ref().map(|found| found.mean));
                let halves = found.iter().map(|found| found.as_ref().and_then(|found| found.half));
                columns.push(Series::numbers(metric.key, means).optional());
                columns.push(Series::numbers(format!("{}_half", metric.key), halves).optional());
            }
            Frame::new(columns)
        })
    }

    fn __len__(&self) -> usize {
        self.records.len()
    }
}

/// Results of all parts, in their order.
#[pyfunction]
pub(crate) fn join(parts: Vec<Bound<'_, Runs>>) -> PyResult<Runs> {
    let Some(first) = parts.first() else { return Err(value_error("there is no part to join")) };
    let runs = Runs {
        title: first.get().title.clone(),
        records: parts.iter().flat_map(|part| part.get().records.iter().cloned()).collect(),
    };
    let mut seen = BTreeSet::new();
    let is_new = |record: &RunRecord| seen.insert((record.name(), record.seed, record.run));
    if !runs.records.iter().all(is_new) {
        return Err(value_error("a run is in two parts"));
    }
    runs.results()?;
    Ok(runs)
}
