//! Many independent runs, shared among threads.

use core::time::Duration;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};

/// What comes from [`work`].
#[derive(Debug)]
pub enum Step<R> {
    /// A job is done.
    Done(R),
    /// Nothing was done for 100 ms.
    Waiting,
}

/// Does each of `jobs` and tells `watch` in the thread of the caller, in the order in which they end. If `watch` says
/// false, no other job is begun, and what is under way is not told any more.
pub fn work<J: Sync, R: Send>(
    jobs: &[J],
    threads: usize,
    job: impl Fn(&J) -> R + Sync,
    mut watch: impl FnMut(Step<R>) -> bool,
) {
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (done, results) = channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            let (done, next, stopped, job) = (done.clone(), &next, &stopped, &job);
            scope.spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    let Some(one) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                    if done.send(job(one)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        loop {
            let step = match results.recv_timeout(Duration::from_millis(100)) {
                Ok(result) => Step::Done(result),
                Err(RecvTimeoutError::Timeout) => Step::Waiting,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if !watch(step) {
                stopped.store(true, Ordering::Relaxed);
                return;
            }
        }
    });
}
