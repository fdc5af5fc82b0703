//! Independent runs, shared among threads.

use core::time::Duration;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};

use rayon::ThreadPoolBuilder;
use rayon::iter::{ParallelBridge, ParallelIterator};

/// Progress of [`work`].
#[derive(Debug)]
pub enum WorkProgress<R> {
    /// A job is done.
    Done(R),
    /// No job has ended for 100 ms.
    Waiting,
}

/// Performs each of `jobs`, and calls `watch` in the caller's thread, in the order in which they end. They start in
/// their order. If `watch` returns false, no other job starts, and results of running ones are dropped.
pub fn work<J: Sync, R: Send>(
    jobs: &[J],
    threads: usize,
    job: impl Fn(&J) -> R + Sync,
    mut watch: impl FnMut(WorkProgress<R>) -> bool,
) {
    let stopped = AtomicBool::new(false);
    let (done, results) = channel();
    let one = |done: &mut std::sync::mpsc::Sender<R>, one: &J| match stopped.load(Ordering::Relaxed) {
        true => None,
        false => done.send(job(one)).ok(),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut done = done;
            match ThreadPoolBuilder::new().num_threads(threads.clamp(1, jobs.len().max(1))).build() {
                Ok(pool) => pool.install(|| jobs.iter().par_bridge().try_for_each_with(done, one)),
                // No other thread can be created.
                Err(_) => jobs.iter().try_for_each(|job| one(&mut done, job)),
            }
        });
        loop {
            let step = match results.recv_timeout(Duration::from_millis(100)) {
                Ok(result) => WorkProgress::Done(result),
                Err(RecvTimeoutError::Timeout) => WorkProgress::Waiting,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if !watch(step) {
                stopped.store(true, Ordering::Relaxed);
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_when_it_is_told_to() {
        let mut seen = 0;
        let jobs: Vec<u32> = (0..1_000).collect();
        work(
            &jobs,
            3,
            |job| *job,
            |step| {
                seen += u32::from(matches!(step, WorkProgress::Done(_)));
                seen < 5
            },
        );
        assert_eq!(seen, 5);
        work(&[], 3, |job: &u32| *job, |_| panic!("nothing is to be done"));
    }
}
