//! Published evaluations, run again.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::Value;
use thinair_papers::{FigureRow, PAPERS, PaperError, RunPlan, by_name, document, outcome};
use thinair_python_common::{Frame, Series, value_error};
use thinair_report::{Element, Section, Style, Table};

use crate::table::series;
use crate::work::{threads, watched};

/// Columns of the text of an evaluation.
const WIDTH: usize = 160;

/// Results of an evaluation.
#[pyclass(frozen, module = "thinair_lab._native")]
pub(crate) struct Evaluation {
    figures: Vec<FigureRow>,
    /// By their names: heading of the section, and title.
    tables: Vec<(String, Table)>,
    left_out: Vec<String>,
    json: String,
    text: String,
}

#[pymethods]
impl Evaluation {
    /// A row for each figure.
    fn frame(&self, py: Python<'_>) -> PyResult<Frame> {
        py.detach(|| {
            let rows = || self.figures.iter();
            let mut columns = vec![
                Series::texts("id", rows().map(|row| Some(row.id()))),
                Series::texts("what", rows().map(|row| Some(row.what()))),
                Series::texts("unit", rows().map(|row| Some(row.unit()))),
                Series::numbers("theirs", rows().map(FigureRow::stated)).optional(),
                Series::numbers("ours", rows().map(FigureRow::ours)).optional(),
            ];
            let mut peers: Vec<&str> = rows().flat_map(FigureRow::peers).collect();
            peers.sort_unstable();
            peers.dedup();
            columns.extend(peers.into_iter().map(|peer| {
                Series::numbers(format!("peer.{peer}"), rows().map(|row| row.of_peer(peer))).optional()
            }));
            columns.extend([
                Series::numbers("bar_min", rows().map(|row| row.bar()?.min)).optional(),
                Series::numbers("bar_max", rows().map(|row| row.bar()?.max)).optional(),
                Series::flags("met", rows().map(|row| Some(row.met()))),
            ]);
            Frame::new(columns)
        })
    }

    /// Names and contents of the tables.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<(String, Frame)>> {
        py.detach(|| {
            self.tables.iter().map(|(name, table)| Ok((name.clone(), contents(&table.to_json())?))).collect()
        })
    }

    /// Measurements that were left out, and the reasons.
    fn left_out(&self) -> Vec<String> {
        self.left_out.clone()
    }

    /// The JSON document `thinair.paper/1`.
    fn json(&self) -> &str {
        &self.json
    }

    /// Claim, method and results as text.
    fn text(&self) -> &str {
        &self.text
    }

    fn __len__(&self) -> usize {
        self.figures.len()
    }
}

/// Returns the tables of sections by distinct names.
fn tables(sections: &[Section]) -> Vec<(String, Table)> {
    let mut tables: Vec<(String, Table)> = Vec::new();
    for section in sections {
        for block in &section.blocks {
            let Element::Table(table) = block else { continue };
            let parts = [section.heading.as_str(), table.title.as_str()];
            let name = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
            let distinct = (2..).map(|number| format!("{name} ({number})"));
            let is_free = |name: &String| tables.iter().all(|(other, _)| other != name);
            let name = std::iter::once(name.clone()).chain(distinct).find(is_free).unwrap_or_default();
            tables.push((name, table.clone()));
        }
    }
    tables
}

/// Returns the rows and totals of a table as JSON.
fn contents(table: &Value) -> PyResult<Frame> {
    let list = |name: &str| table[name].as_array().into_iter().flatten();
    let keys = list("columns").filter_map(|column| column["key"].as_str());
    Frame::new(keys.map(|key| series(key, list("rows").chain(list("totals")).map(|row| &row[key]))))
}

/// Names and titles of all evaluations.
#[pyfunction]
pub(crate) fn evaluations() -> Vec<(&'static str, &'static str)> {
    PAPERS.iter().map(|paper| (paper.about().name, paper.about().title)).collect()
}

/// Runs an evaluation, in virtual time only.
#[pyfunction]
pub(crate) fn evaluate(
    py: Python<'_>,
    name: &str,
    quick: bool,
    seed: u64,
    jobs: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Evaluation> {
    let Some(paper) = by_name(name) else {
        let names: Vec<_> = PAPERS.iter().map(|paper| paper.about().name).collect();
        return Err(value_error(format_args!(
            "no evaluation is named {name}; there are {}",
            names.join(", ")
        )));
    };
    let plan = RunPlan { quick, seed, threads: threads(jobs), ..RunPlan::default() };
    watched(py, progress, move |steps| {
        let goes_on = |done, all| match steps.set(done, all) {
            true => Ok(()),
            false => Err(PaperError::Interrupted),
        };
        let findings = paper.run(&plan, &goes_on).map_err(|error| with_causes(&error))?;
        Ok(Evaluation {
            tables: tables(&findings.ours),
            json: serde_json::to_string(&outcome(paper, &findings)).map_err(value_error)?,
            text: document(paper, &plan, &findings).to_text(&Style::plain(WIDTH)),
            figures: findings.rows,
            left_out: findings.left_out,
        })
    })?
}

/// Returns `RuntimeError`, with all causes.
fn with_causes(error: &PaperError) -> PyErr {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    PyRuntimeError::new_err(text)
}
