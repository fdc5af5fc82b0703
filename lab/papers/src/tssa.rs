//! `tssa`: how long TCP segments should be over hops of 802.15.4, and which control finds it.

mod cell;
mod model;
mod rows;
mod show;
#[cfg(test)]
mod tests;

use thinair_lab::Summary;
use thinair_segment::Measure;

use cell::{
    BASE, Cell, Control, ELSEWHERE, HIDDEN, NS3, RATES, REAL, Sample, Setting, TURNED, WINDOW4, ambiguities,
};

use crate::paper::{About, Error, Findings, Paper, Plan, Progress};
use crate::sweep::{Samples, runs};

/// The evaluation.
#[derive(Debug)]
pub(crate) struct Tssa;

impl Paper for Tssa {
    fn about(&self) -> About {
        About::read("tssa", include_str!("tssa/paper.md"))
    }

    fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        let cells = cells(plan.quick)?;
        let samples = runs(&cells, plan, progress)?;
        let results = Results(Samples::new(cells.into_iter().map(|cell| cell.id).zip(samples)));
        let rows = rows::rows(&results, plan.quick);
        let ours = show::sections(&results, &rows, plan.quick);
        Ok(Findings { rows, ours, left_out: Vec::new() })
    }
}

/// Samples by cell.
#[derive(Debug)]
struct Results(Samples<Sample>);

impl Results {
    fn samples(&self, id: &str) -> &[Sample] {
        self.0.of(id)
    }

    /// Of a cell all runs of which have finished.
    fn summary(&self, id: &str, of: impl Fn(&Sample) -> f64) -> Option<Summary> {
        let samples = self.samples(id);
        let finished = samples.iter().all(|sample| sample.is_complete);
        Summary::of(&samples.iter().filter(|_| finished).map(of).collect::<Vec<_>>())
    }

    fn mean(&self, id: &str, of: impl Fn(&Sample) -> f64) -> Option<f64> {
        self.summary(id, of).map(|summary| summary.mean)
    }
}

/// Rates of the base set in a run of that size.
fn rates(quick: bool) -> &'static [f64] {
    if quick { &[1e-4, 4e-4] } else { &RATES }
}

/// Rates at which four segments are under way.
fn rates_of_window_4(quick: bool) -> &'static [f64] {
    if quick { &[4e-4] } else { &[1e-5, 5e-5, 1e-4, 2e-4, 3e-4, 4e-4] }
}

/// Rates at which other settings are looked at.
fn rates_elsewhere(quick: bool) -> &'static [f64] {
    if quick { &[] } else { &[1e-5, 1e-4, 2e-4, 4e-4] }
}

/// Outside of the range of figures 6 and 7.
const OUTSIDE: [f64; 2] = [1e-6, 6e-4];

/// Where something of TSSA is turned.
const AMBIGUOUS: [f64; 2] = [2e-4, 4e-4];

/// Where DMSS is measured in three ways.
const DMSS_RATES: [f64; 5] = [1e-5, 5e-5, 1e-4, 2e-4, 4e-4];

/// The three ways, with their windows.
const DMSS_WAYS: [(&str, Measure, u16); 5] = [
    ("dmss-frames-20", Measure::Frames, 20),
    ("dmss", Measure::Frames, 100),
    ("dmss-frames-500", Measure::Frames, 500),
    ("dmss-told", Measure::Told, 0),
    ("dmss-segments", Measure::Segments, 50),
];

/// Rates at which segments go in real frames.
fn rates_of_real(quick: bool) -> &'static [f64] {
    if quick { &[1e-4] } else { &[1e-5, 1e-4, 2e-4, 4e-4] }
}

fn cells(quick: bool) -> Result<Vec<Cell>, Error> {
    let (many, few) = if quick { (2, 1) } else { (30, 10) };
    let mut cells = Vec::new();
    let mut all = |setting: &Setting, rates: &[f64], runs: u32| {
        for rate in rates {
            for control in Control::all(*rate) {
                cells.push(Cell::new(setting, *rate, &control, runs)?);
            }
        }
        Ok::<_, Error>(())
    };
    all(&BASE, rates(quick), many)?;
    all(&WINDOW4, rates_of_window_4(quick), many)?;
    for setting in ELSEWHERE {
        all(&setting, rates_elsewhere(quick), few)?;
    }
    for setting in REAL.as_flattened() {
        all(setting, rates_of_real(quick), few)?;
    }
    if !quick {
        all(&BASE, &OUTSIDE, few)?;
        for setting in TURNED.into_iter().filter(|setting| *setting != HIDDEN) {
            all(&setting, &[1e-5, 2e-4], few)?;
        }
        for rate in AMBIGUOUS {
            for (_, control) in ambiguities() {
                cells.push(Cell::new(&BASE, rate, &control, many)?);
            }
        }
        for rate in DMSS_RATES {
            for (name, measure, window) in DMSS_WAYS.into_iter().filter(|(name, ..)| *name != "dmss") {
                cells.push(Cell::new(&BASE, rate, &Control::dmss(name, measure, window, rate), few)?);
            }
        }
        for control in Control::all(1e-5) {
            cells.push(Cell::stepped(&control, many)?);
        }
    }
    if quick {
        cells = cells.into_iter().map(|cell| cell.of_kib(32)).collect();
    }
    // These are about frames and octets, of which a few runs tell all.
    for size in [64, 512, 1_024] {
        cells.push(Cell::new(&NS3, 1e-5, &Control::fixed(size), if quick { 1 } else { 10 })?);
        cells.push(Cell::new(&BASE, 0.0, &Control::fixed(size), 1)?);
    }
    Ok(cells)
}
