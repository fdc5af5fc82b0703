//! Form that all papers share: prose in `paper.md`, published figures in `published.csv`, and cells, rows and tables in
//! `plan.toml`. The Rust of a paper measures [`Figures`] by id; everything else is here.
//!
//! In the texts of a plan `{axis}` is the key of an axis's value, and `{axis.field}` one of its fields. In the texts of
//! tables, `$(id:1)` is a figure with one decimal: see [`page`].

mod figures;
mod page;
mod quick;
mod rows;
mod vars;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

pub(crate) use figures::{Figures, Published};
pub(crate) use vars::Vars;

use crate::paper::{Findings, PaperError, ProgressCallback, RunPlan};
use crate::sweep::{Samples, SweepCell, repeat};

/// Paper whose files are in the folder of that name.
macro_rules! declared {
    ($name:literal, $folder:literal, $measure:path) => {
        $crate::paper::Paper {
            published: include_str!(concat!($folder, "/published.csv")),
            ..$crate::form::declared!($name, $folder, $measure, without published)
        }
    };
    ($name:literal, $folder:literal, $measure:path, without published) => {
        $crate::paper::Paper {
            name: $name,
            words: include_str!(concat!($folder, "/paper.md")),
            plan: include_str!(concat!($folder, "/plan.toml")),
            published: "",
            is_real_time: false,
            measure: $measure,
        }
    };
}
pub(crate) use declared;

/// Figure of a run, with its name in ids.
pub(crate) type Named<S, F = Option<f64>> = (&'static str, fn(&S) -> F);

/// Filter for the keys of an axis.
type Keep = Box<dyn Fn(&str) -> bool>;

/// Input of a measurement.
pub(crate) struct PaperRun<'r> {
    pub(crate) plan: &'r RunPlan,
    pub(crate) form: &'r PlanFile,
    pub(crate) published: &'r Published,
    pub(crate) progress: ProgressCallback<'r>,
}

impl PaperRun<'_> {
    /// Performs all runs of the plan's cells.
    pub(crate) fn repeat<S: Send>(
        &self,
        run: impl Fn(&SweepCell, u64, u32) -> Result<S, PaperError> + Sync,
    ) -> Result<Samples<S>, PaperError> {
        repeat(&self.form.cells(self.plan.quick)?, self.plan, self.progress, run)
    }
}

/// Plan as written in `plan.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PlanFile {
    /// Values by the name of their axis: keys, tables with a `key`, or tables with `from`, `to` and `step` for whole
    /// numbers.
    axis: BTreeMap<String, Vec<toml::Value>>,
    cell: Vec<CellForm>,
    row: Vec<rows::RowForm>,
    bar: Vec<rows::BarForm>,
    section: Vec<page::SectionForm>,
    quick: quick::QuickForm,
}

/// Cells with repeated runs. Of cells with one id, the first counts.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CellForm {
    /// Axes, the first one slowest: see [`PlanFile::each`].
    each: Vec<String>,
    /// Axes of a quick run, if they differ.
    quick: Option<Vec<String>>,
    id: String,
    /// Number of runs: of a quick plan, and otherwise.
    runs: [u32; 2],
    /// Weight of a run for the progress. Default: 1.
    cost: Option<toml::Value>,
    /// Further variables of the cell.
    with: BTreeMap<String, toml::Value>,
}

impl PlanFile {
    pub(crate) fn read(text: &str) -> Result<Self, PaperError> {
        toml::from_str(text).map_err(|error| PaperError::Form(error.to_string()))
    }

    /// Rows, tables and plots of the measured figures.
    pub(crate) fn findings(
        &self,
        figures: Figures,
        published: &Published,
        is_quick: bool,
    ) -> Result<Findings, PaperError> {
        let mut rows = self.rows(&figures, published)?;
        if is_quick {
            self.quick.hold(&mut rows)?;
        }
        let ours = self.sections(&rows, &figures, published)?;
        Ok(Findings { rows, ours, left_out: figures.left_out })
    }

    /// Every combination of the values of `axes`, in their order, added to `vars`. An axis is written `name`;
    /// `name=a,b` restricts it to these values, and `name!a,b` excludes them. The list may have variables.
    pub(crate) fn each(&self, vars: &Vars, axes: &[String]) -> Result<Vec<Vars>, PaperError> {
        let Some((first, others)) = axes.split_first() else { return Ok(vec![vars.clone()]) };
        let (name, keep): (_, Keep) = match first.split_once(['=', '!']) {
            None => (first.as_str(), Box::new(|_| true)),
            Some((name, keys)) => {
                let keys = vars.expand(keys)?;
                let wanted = first.as_bytes().get(name.len()) == Some(&b'=');
                (name, Box::new(move |key: &str| keys.split(',').any(|of| of == key) == wanted))
            }
        };
        let values = self.axis.get(name).ok_or_else(|| PaperError::Form(format!("unknown axis {name}")))?;
        let values = values.iter().flat_map(|value| {
            let number = |field| value.get(field).and_then(toml::Value::as_integer);
            match (number("from"), number("to"), number("step")) {
                (Some(from), Some(to), Some(step)) => {
                    (from..=to).step_by(step.unsigned_abs() as usize).map(toml::Value::Integer).collect()
                }
                _ => vec![value.clone()],
            }
        });
        let mut all = Vec::new();
        for value in &values.collect::<Vec<_>>() {
            let bound = vars.with(name, value);
            if keep(bound.text(name)?) {
                all.extend(self.each(&bound, others)?);
            }
        }
        Ok(all)
    }

    /// Every combination of the values of these axes.
    pub(crate) fn all(&self, axes: &[&str]) -> Result<Vec<Vars>, PaperError> {
        self.each(&Vars::default(), &axes.iter().map(|axis| (*axis).to_owned()).collect::<Vec<_>>())
    }

    pub(crate) fn cells(&self, quick: bool) -> Result<Vec<SweepCell>, PaperError> {
        let (mut cells, mut ids) = (Vec::new(), BTreeSet::new());
        for form in &self.cell {
            let each = form.quick.as_ref().filter(|_| quick).unwrap_or(&form.each);
            for vars in self.each(&Vars::default(), each)? {
                let mut vars = vars;
                for (name, value) in &form.with {
                    let text = vars.with(name, value).text(name)?.to_owned();
                    vars = vars.with(name, &vars.expand(&text)?.into());
                }
                let runs = form.runs[usize::from(!quick)];
                let vars = form.cost.iter().fold(vars, |vars, cost| vars.with("cost", cost));
                let cost = vars.opt("cost").map_or(Ok("1".to_owned()), |cost| vars.expand(cost))?;
                let cost = cost.parse().map_err(|_| PaperError::Form(format!("invalid cost: {cost}")))?;
                let id = vars.expand(&form.id)?;
                if runs > 0 && ids.insert(id.clone()) {
                    cells.push(SweepCell { id, runs, cost, vars });
                }
            }
        }
        Ok(cells)
    }
}
