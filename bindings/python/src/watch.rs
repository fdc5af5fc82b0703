//! Progress of a long reading, and its interruption by Python.

use std::io::{self, Read};
use std::time::Instant;

use pyo3::prelude::*;
use thinair_python_common::{PERIOD, Progress};

/// Observer of all readings of one call.
pub(crate) struct Watch {
    progress: Progress,
    /// Octets read so far.
    read: u64,
    /// Octets that all readings will read.
    total: u64,
    due: Instant,
    /// Exception that ends reading: of a signal such as Ctrl-C, or of the progress function.
    raised: Option<PyErr>,
}

impl Watch {
    pub(crate) fn new(progress: Option<Py<PyAny>>, total: u64) -> Self {
        Self { progress: Progress::new(progress), read: 0, total, due: Instant::now(), raised: None }
    }

    /// Returns a source whose octets are observed.
    pub(crate) fn source<R: Read>(&mut self, source: R) -> Source<'_, R> {
        Source { source, watch: self }
    }

    /// Reports the end of all readings.
    pub(crate) fn finish(&mut self) -> PyResult<()> {
        self.read = self.total;
        self.progress.report(self.read, self.total)
    }

    /// Returns the exception that has ended reading, if any.
    pub(crate) fn check(&mut self) -> PyResult<()> {
        self.raised.take().map_or(Ok(()), Err)
    }
}

/// A source under observation. It fails as soon as an exception is raised.
pub(crate) struct Source<'w, R> {
    source: R,
    watch: &'w mut Watch,
}

impl<R: Read> Read for Source<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let now = Instant::now();
        if now >= self.watch.due {
            if let Err(error) = self.watch.progress.report(self.watch.read, self.watch.total) {
                self.watch.raised = Some(error);
                return Err(io::Error::other("an exception was raised"));
            }
            self.watch.due = now + PERIOD;
        }
        let count = self.source.read(buffer)?;
        self.watch.read += count as u64;
        Ok(count)
    }
}
