//! `ule-throughput`: value of header compression on a satellite link of MPEG-2 TS packets, by the equations of the
//! paper, by exact counting, in virtual time and, where possible, in real time.

mod model;
mod put;
mod real;
mod simulate;

use thinair_rohc::Refresh;
use thinair_simulation::{Stack, header_cycle};

use model::HeaderSizes;
use put::Put;
use real::Measured;
use simulate::{FULL, Found, Job, QUICK, SCHEDULE, Scale};

use crate::form::{Figures, Run, declared};
use crate::paper::{Error, Paper};
use crate::sweep::sweep;

pub(crate) const PAPER: Paper = declared!("ule-throughput", "ule_throughput", measure);

fn measure(run: &Run<'_>, figures: &mut Figures) -> Result<(), Error> {
    measure_jobs(run, if run.plan.quick { QUICK } else { FULL }, simulate::jobs(), figures)
}

/// All results, before they become rows.
#[derive(Debug)]
struct Results {
    /// Headers of the paper's stack with the paper's schedule.
    headers: HeaderSizes,
    /// Headers of the other stacks.
    others: Vec<(Stack, HeaderSizes)>,
    /// Headers of the paper's stack in steady state.
    settled: HeaderSizes,
    runs: Vec<(Job, Found)>,
    /// Duration of the sweep's runs.
    scale: Scale,
    real: Vec<Measured>,
}

impl Results {
    fn of(&self, job: Job) -> Option<&Found> {
        self.runs.iter().find(|(other, _)| *other == job).map(|(_, found)| found)
    }
}

fn measure_jobs(run: &Run<'_>, scale: Scale, jobs: Vec<Job>, figures: &mut Figures) -> Result<(), Error> {
    let plan = run.plan;
    let sizes = |stack: Stack, refresh: Refresh| -> Result<HeaderSizes, Error> {
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
        headers: sizes(Stack::IPV6_UDP, SCHEDULE)?,
        others,
        settled: sizes(Stack::IPV6_UDP, Refresh::Off)?,
        runs: jobs.into_iter().zip(found).collect(),
        scale,
        real,
    };
    Put { results: &results, published: run.published, figures }.all();
    Ok(())
}

#[cfg(test)]
mod tests;
