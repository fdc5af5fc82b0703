//! Many independent measurements, shared among threads.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::paper::{Error, Progress};

/// Measures each of `jobs`; results in their order, whichever thread took which. The first error of that order
/// is told. `cost` weighs them for the progress.
pub(crate) fn sweep<J: Sync, R: Send>(
    jobs: &[J],
    threads: usize,
    progress: Progress<'_>,
    cost: impl Fn(&J) -> u64 + Sync,
    measure: impl Fn(&J) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let all = jobs.iter().map(&cost).sum();
    let results = Mutex::new(Vec::with_capacity(jobs.len()));
    progress(0, all);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { return };
            let result = measure(job);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
            let cost = cost(job);
            progress(done.fetch_add(cost, Ordering::Relaxed) + cost, all);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(jobs.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

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
}
