//! Many independent measurements, shared among threads.

use thinair_lab::{Step, work};

use crate::paper::{Error, Progress};

/// Measures each of `jobs`; results in their order, whichever thread took which. The first error of that order
/// is told. `cost` weighs them for the progress.
pub(crate) fn sweep<J: Sync, R: Send>(
    jobs: &[J],
    threads: usize,
    progress: Progress<'_>,
    cost: impl Fn(&J) -> u64,
    measure: impl Fn(&J) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let numbered: Vec<(usize, &J)> = jobs.iter().enumerate().collect();
    let (mut done, all) = (0, jobs.iter().map(&cost).sum());
    let mut results: Vec<Option<Result<R, Error>>> = jobs.iter().map(|_| None).collect();
    progress(done, all);
    work(
        &numbered,
        threads,
        |&(at, job)| (at, measure(job)),
        |step| {
            if let Step::Done((at, result)) = step {
                done += jobs.get(at).map_or(0, &cost);
                progress(done, all);
                if let Some(place) = results.get_mut(at) {
                    *place = Some(result);
                }
            }
            true
        },
    );
    results.into_iter().flatten().collect()
}

/// Measures runs of each of `cells`, as many as `runs` says; results by cell, in the order of the runs. `cost` is that of
/// one run.
pub(crate) fn runs<C: Sync, R: Send>(
    cells: &[C],
    runs: impl Fn(&C) -> u32,
    threads: usize,
    progress: Progress<'_>,
    cost: impl Fn(&C) -> u64,
    measure: impl Fn(&C, u32) -> Result<R, Error> + Sync,
) -> Result<Vec<Vec<R>>, Error> {
    let jobs: Vec<(&C, u32)> =
        cells.iter().flat_map(|cell| (0..runs(cell)).map(move |run| (cell, run))).collect();
    let results = sweep(&jobs, threads, progress, |(cell, _)| cost(cell), |(cell, run)| measure(cell, *run))?;
    let mut results = results.into_iter();
    Ok(cells.iter().map(|cell| results.by_ref().take(runs(cell) as usize).collect()).collect())
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
        };
        for threads in [0, 1, 3, 200] {
            let squares = sweep(&jobs, threads, &progress, |_| 2, |job| Ok(job * job)).unwrap();
            assert!(squares.into_iter().eq(jobs.iter().map(|job| job * job)), "{threads}");
        }
        assert_eq!(seen.into_inner(), 4 * 101);
    }

    #[test]
    fn runs_come_by_cell() {
        let found =
            runs(&[2, 0, 3], |cell| *cell, 2, &|_, _| (), |_| 1, |cell, run| Ok((*cell, run))).unwrap();
        assert_eq!(found, [vec![(2, 0), (2, 1)], vec![], vec![(3, 0), (3, 1), (3, 2)]]);
    }
}
