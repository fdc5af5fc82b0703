//! Work on a thread of its own, which Python can watch and end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::available_parallelism;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use thinair_python_common::{PERIOD, Progress};

/// State that work and its observer share.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: AtomicU64,
    all: AtomicU64,
    is_ended: AtomicBool,
}

impl Steps {
    /// Counts steps. Returns false if the work is to end.
    pub(crate) fn set(&self, done: u64, all: u64) -> bool {
        self.all.store(all, Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
        self.goes_on()
    }

    /// False if the work is to end.
    pub(crate) fn goes_on(&self) -> bool {
        !self.is_ended.load(Ordering::Relaxed)
    }

    fn report(&self, progress: &Progress) -> PyResult<()> {
        progress.report(self.done.load(Ordering::Relaxed), self.all.load(Ordering::Relaxed))
    }
}

/// Returns the result of `task`, without the interpreter lock.
///
/// An exception of a signal or of the progress function is returned at once; the task ends with the step that it has begun.
pub(crate) fn watched<R: Send + 'static>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    task: impl FnOnce(&Steps) -> R + Send + 'static,
) -> PyResult<R> {
    let progress = Progress::new(progress);
    py.detach(|| {
        let steps = Arc::new(Steps::default());
        let (sender, receiver) = channel();
        let own = Arc::clone(&steps);
        let thread = std::thread::spawn(move || {
            // An observer that was interrupted does not wait for it.
            let _ = sender.send(task(&own));
        });
        loop {
            match receiver.recv_timeout(PERIOD) {
                Ok(result) => {
                    steps.report(&progress)?;
                    return Ok(result);
                }
                Err(RecvTimeoutError::Timeout) => steps.report(&progress).inspect_err(|_| {
                    steps.is_ended.store(true, Ordering::Relaxed);
                })?,
                Err(RecvTimeoutError::Disconnected) => {
                    let panic = thread.join().err();
                    let reason = panic.as_ref().and_then(|panic| panic.downcast_ref::<String>());
                    let reason = reason.map_or("no reason", String::as_str);
                    return Err(PyRuntimeError::new_err(format!("the work failed: {reason}")));
                }
            }
        }
    })
}

/// Number of threads: that of the caller, or of the processors.
pub(crate) fn threads(jobs: Option<usize>) -> usize {
    jobs.unwrap_or_else(|| available_parallelism().map_or(1, usize::from))
}
