//! `ule-throughput`: what header compression is worth on a satellite link of MPEG-2 TS packets, by the equations of the
//! paper, by exact counting, in virtual time and, where that can be, in real time.

mod model;
mod published;
mod real;
mod rows;
mod show;
mod simulate;

use thinair_lab::{Stack, header_cycle};
use thinair_rohc::Refresh;

use model::HeaderSizes;
use real::Measured;
use simulate::{FULL, Found, Job, QUICK, SCHEDULE, Scale};

use crate::paper::{About, Error, Findings, Paper, Plan, Progress};
use crate::sweep::sweep;

/// The evaluation.
#[derive(Debug)]
pub(crate) struct UleThroughput;

impl Paper for UleThroughput {
    fn about(&self) -> About {
        About::read("ule-throughput", include_str!("ule_throughput/paper.md"))
    }

    fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        measure(plan, if plan.quick { QUICK } else { FULL }, simulate::jobs(), progress)
    }
}

/// All that is known, before it is put into rows.
#[derive(Debug)]
struct Results {
    /// Headers of the paper's stack by the paper's schedule.
    headers: HeaderSizes,
    /// Headers of the others.
    others: Vec<(Stack, HeaderSizes)>,
    /// Headers of the paper's stack that has settled.
    settled: HeaderSizes,
    runs: Vec<(Job, Found)>,
    /// How long the sweep has run.
    scale: Scale,
    real: Vec<Measured>,
}

impl Results {
    fn of(&self, job: Job) -> Option<&Found> {
        self.runs.iter().find(|(other, _)| *other == job).map(|(_, found)| found)
    }
}

fn measure(plan: &Plan, scale: Scale, jobs: Vec<Job>, progress: Progress<'_>) -> Result<Findings, Error> {
    let sizes = |stack: Stack, refresh: Refresh| -> Result<HeaderSizes, Error> {
        Ok(HeaderSizes::new(stack, header_cycle(stack, refresh)?))
    };
    let found =
        sweep(&jobs, plan.threads, progress, |job| job.cost(&scale), |job| job.run(&scale, plan.seed))?;
    let mut left_out = Vec::new();
    let real = real::measure(plan).unwrap_or_else(|why| {
        left_out.push(format!("Left out: the rows real/, as {why}."));
        Vec::new()
    });
    let mut others = Vec::new();
    for stack in simulate::other_stacks() {
        others.push((stack, sizes(stack, SCHEDULE)?));
    }
    let results = Results {
        headers: sizes(Stack::IPV6_UDP, SCHEDULE)?,
        others,
        settled: sizes(Stack::IPV6_UDP, Refresh::Off)?,
        runs: jobs.into_iter().zip(found).collect(),
        scale,
        real,
    };
    Ok(Findings { rows: rows::rows(&results), ours: show::sections(&results), left_out })
}

#[cfg(test)]
mod tests;
