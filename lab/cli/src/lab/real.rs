//! `thinair-lab lab run --real`: the runs of a plan in sequence, in real time.

use std::time::Duration;

use indicatif::ProgressBar;
use thinair_simulation::network::{RealTimeError, RealTimeLink};
use thinair_simulation::plan::{ExperimentJob, ExperimentPlan, RunRecord};

/// Performs all of `jobs`, and writes their results. Returns false if a signal interrupted it; the link is removed
/// then.
pub(super) fn run(
    plan: &ExperimentPlan,
    jobs: &[ExperimentJob],
    bar: &ProgressBar,
    keep: &mut dyn FnMut(RunRecord) -> anyhow::Result<()>,
) -> anyhow::Result<bool> {
    let mut link = RealTimeLink::open().map_err(thinair_cli::advise)?;
    for refused in link.refused() {
        eprintln!("thinair-lab: times are less exact: {refused}");
    }
    let ends = |job: &ExperimentJob| plan.cells.get(job.cell).map_or(0, |cell| cell.scenario.end.as_nanos());
    let most = jobs.iter().map(ends).fold(0, u64::saturating_add);
    eprintln!(
        "thinair-lab: {} runs in real time, each until it is over or runs.end is there: {} at most",
        jobs.len(),
        indicatif::HumanDuration(Duration::from_nanos(most)),
    );
    let mut is_late = false;
    for job in jobs {
        match plan.run_in_real_time(&mut link, job, plan.seed) {
            Ok(record) => {
                is_late |= record.real_time.is_some_and(|late| !late.is_good());
                keep(record)?;
                bar.inc(1);
            }
            Err(RealTimeError::Interrupted) => return Ok(false),
            Err(RealTimeError::Os(error)) => return Err(error.into()),
        }
        if link.is_interrupted() {
            return Ok(false);
        }
    }
    if is_late {
        eprintln!(
            "thinair-lab: more than 1 of 100 packets was over 1 ms late in a run: the machine is too busy for these times"
        );
    }
    Ok(true)
}
