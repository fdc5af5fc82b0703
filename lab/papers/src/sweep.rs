//! Many independent measurements, shared among threads.

use std::collections::BTreeMap;

use thinair_simulation::{Summary, WorkProgress, work};

use crate::form::{Figures, Vars};
use crate::paper::{PaperError, ProgressCallback, RunPlan};

/// Measures each of `jobs` on several threads. Returns the results in the order of the jobs, or the first error in that
/// order. `cost` weighs jobs for the progress.
pub(crate) fn sweep<J: Sync, R: Send>(
    jobs: &[J],
    threads: usize,
    progress: ProgressCallback<'_>,
    cost: impl Fn(&J) -> u64,
    measure: impl Fn(&J) -> Result<R, PaperError> + Sync,
) -> Result<Vec<R>, PaperError> {
    let numbered: Vec<(usize, &J)> = jobs.iter().enumerate().collect();
    let (mut done, all) = (0, jobs.iter().map(&cost).sum());
    let mut results: Vec<Option<Result<R, PaperError>>> = jobs.iter().map(|_| None).collect();
    progress(done, all)?;
    let mut watched = Ok(());
    work(
        &numbered,
        threads,
        |&(at, job)| (at, measure(job)),
        |step| {
            if let WorkProgress::Done((at, result)) = step {
                done += jobs.get(at).map_or(0, &cost);
                watched = progress(done, all);
                if let Some(place) = results.get_mut(at) {
                    *place = Some(result);
                }
            }
            watched.is_ok()
        },
    );
    watched?;
    results.into_iter().flatten().collect()
}

/// Scenario of a plan with repeated runs, each with other random numbers.
#[derive(Clone, Debug)]
pub(crate) struct SweepCell {
    pub(crate) id: String,
    /// Number of runs.
    pub(crate) runs: u32,
    /// Weight of a run for the progress.
    pub(crate) cost: u64,
    pub(crate) vars: Vars,
}

/// Performs all runs of each of `cells`. `run` must be deterministic in cell, seed and number.
pub(crate) fn repeat<S: Send>(
    cells: &[SweepCell],
    plan: &RunPlan,
    progress: ProgressCallback<'_>,
    run: impl Fn(&SweepCell, u64, u32) -> Result<S, PaperError> + Sync,
) -> Result<Samples<S>, PaperError> {
    let jobs: Vec<(&SweepCell, u32)> =
        cells.iter().flat_map(|cell| (0..cell.runs).map(move |run| (cell, run))).collect();
    let cost = |(cell, _): &(&SweepCell, u32)| cell.cost;
    let mut results =
        sweep(&jobs, plan.threads, progress, cost, |(cell, number)| run(cell, plan.seed, *number))?
            .into_iter();
    let of_cell = |cell: &SweepCell| (cell.id.clone(), results.by_ref().take(cell.runs as usize).collect());
    Ok(Samples::new(cells.iter().map(of_cell)))
}

/// Samples by the id of their cell, in the order of the runs.
#[derive(Debug, Default)]
pub(crate) struct Samples<S>(BTreeMap<String, Vec<S>>);

impl<S> Samples<S> {
    /// Collects cells and the results of [`runs`].
    pub(crate) fn new(found: impl IntoIterator<Item = (String, Vec<S>)>) -> Self {
        Self(found.into_iter().collect())
    }

    /// All samples, by the ids of their cells.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &[S])> {
        self.0.iter().map(|(id, samples)| (id.as_str(), samples.as_slice()))
    }

    /// Samples of a cell; none if the cell does not exist.
    pub(crate) fn of(&self, id: &str) -> &[S] {
        self.0.get(id).map_or(&[], Vec::as_slice)
    }

    /// Statistics over the runs of a cell that have this figure.
    pub(crate) fn summary(&self, id: &str, of: impl Fn(&S) -> Option<f64>) -> Option<Summary> {
        Summary::of(&self.of(id).iter().filter_map(of).collect::<Vec<_>>())
    }

    /// Puts the mean of a figure of the cell, with its interval, by that name.
    pub(crate) fn put(&self, figures: &mut Figures, id: &str, name: &str, of: impl Fn(&S) -> Option<f64>) {
        let summary = self.summary(id, of);
        let figure = figures.put(format!("{id}/{name}"), summary.as_ref().map(|summary| summary.mean));
        figure.half = summary.and_then(|summary| summary.half);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let jobs: Vec<u32> = (0..100).collect();
        let seen = AtomicUsize::new(0);
        let progress = |_: u64, of: u64| {
            assert_eq!(of, 200);
            seen.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        for threads in [0, 1, 3, 200] {
            let squares = sweep(&jobs, threads, &progress, |_| 2, |job| Ok(job * job)).unwrap();
            assert!(squares.into_iter().eq(jobs.iter().map(|job| job * job)), "{threads}");
        }
        assert_eq!(seen.into_inner(), 4 * 101);
    }

    #[test]
    fn an_error_of_the_progress_function_ends_a_run() {
        let (jobs, measured) = ([(); 1_000], AtomicUsize::new(0));
        for last in [0, 3] {
            let progress = |done, _| if done < last { Ok(()) } else { Err(PaperError::Interrupted) };
            let measure = |(): &()| {
                std::thread::sleep(std::time::Duration::from_millis(1));
                Ok(measured.fetch_add(1, Ordering::Relaxed))
            };
            let ended = sweep(&jobs, 2, &progress, |()| 1, measure);
            assert!(matches!(ended, Err(PaperError::Interrupted)), "{ended:?}");
        }
        assert!(measured.into_inner() < jobs.len());
    }

    #[test]
    fn runs_come_by_cell() {
        let plan = RunPlan { threads: 2, seed: 7, ..RunPlan::default() };
        let cells = [("a", 2), ("b", 0), ("c", 3)].map(|(id, runs)| SweepCell {
            id: id.to_owned(),
            runs,
            cost: 1,
            vars: Vars::default(),
        });
        let found =
            repeat(&cells, &plan, &|_, _| Ok(()), |cell, seed, run| Ok((cell.runs, seed, run))).unwrap();
        assert_eq!((found.of("a"), found.of("b")), (&[(2, 7, 0), (2, 7, 1)][..], &[][..]));
        assert_eq!(found.of("c"), [(3, 7, 0), (3, 7, 1), (3, 7, 2)]);
    }
}
