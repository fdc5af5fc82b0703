//! `ule-throughput`: value of header compression on a satellite link of MPEG-2 TS packets, by the equations of the
//! paper, by exact counting, in virtual time and, where possible, in real time.

mod model;
mod put;
mod real;
mod simulate;

use thinair_rohc::Refresh;
use thinair_simulation::{ProtocolStack, header_cycle};

use model::HeaderSizes;
use put::Put;
use real::RealMeasurement;
use simulate::{FULL, QUICK, RunDurations, RunFigures, SCHEDULE, SimulationJob};

use crate::form::{Figures, PaperRun, declared};
use crate::paper::{Paper, PaperError};
use crate::sweep::sweep;

pub(crate) const PAPER: Paper = declared!("ule-throughput", "ule_throughput", measure);

fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    measure_jobs(run, if run.plan.quick { QUICK } else { FULL }, simulate::jobs(), figures)
}

/// All results, before they become rows.
#[derive(Debug)]
struct Results {
    /// Headers of the paper's stack with the paper's schedule.
    headers: HeaderSizes,
    /// Headers of the other stacks.
    others: Vec<(ProtocolStack, HeaderSizes)>,
    /// Headers of the paper's stack in steady state.
    settled: HeaderSizes,
    runs: Vec<(SimulationJob, RunFigures)>,
    /// Duration of the sweep's runs.
    scale: RunDurations,
    real: Vec<RealMeasurement>,
}

impl Results {
    fn of(&self, job: SimulationJob) -> Option<&RunFigures> {
        self.runs.iter().find(|(other, _)| *other == job).map(|(_, found)| found)
    }
}

fn measure_jobs(
    run: &PaperRun<'_>,
    scale: RunDurations,
    jobs: Vec<SimulationJob>,
    figures: &mut Figures,
) -> Result<(), PaperError> {
    let plan = run.plan;
    let sizes = |stack: ProtocolStack, refresh: Refresh| -> Result<HeaderSizes, PaperError> {
        Ok(HeaderSizes::new(stack, header_cycle(stack, refresh)?))
    };
    let found =
        sweep(&jobs, plan.threads, run.progress, |job| job.cost(&scale), |job| job.run(&scale, plan.seed))?;
    let real = real::measure(plan).unwrap_or_else(|why| {
        figures.left_out.push(format!("Left out: the rows real/, as {why}."));
        Vec::new()
    });
    let mut others = Vec::new();
    for stack in simulate::other_stacks() {
        others.push((stack, sizes(stack, SCHEDULE)?));
    }
    let note = if real.is_empty() { "" } else { "; real: at least 0.97 of it" };
    figures.put_text("note/real", note);
    let results = Results {
        headers: sizes(ProtocolStack::IPV6_UDP, SCHEDULE)?,
        others,
        settled: sizes(ProtocolStack::IPV6_UDP, Refresh::Off)?,
        runs: jobs.into_iter().zip(found).collect(),
        scale,
        real,
    };
    Put { results: &results, published: run.published, figures }.all();
    Ok(())
}

#[cfg(test)]
mod tests;
