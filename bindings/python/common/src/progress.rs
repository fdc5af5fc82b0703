//! Reports to Python during long work, and exceptions that end it.

use std::time::Duration;

use pyo3::prelude::*;

/// Time between two reports: short beside the second after which an interrupt seems to have no effect.
pub const PERIOD: Duration = Duration::from_millis(50);

/// Progress function of a caller, if there is one.
#[derive(Debug)]
pub struct Progress(Option<Py<PyAny>>);

impl Progress {
    /// Returns the progress of a call with that function.
    pub const fn new(function: Option<Py<PyAny>>) -> Self {
        Self(function)
    }

    /// Handles signals of the process, and calls the function with the steps that are done and all steps.
    ///
    /// # Errors
    /// The exception of a signal, such as `KeyboardInterrupt`, or of the function. The work ends.
    pub fn report(&self, done: u64, all: u64) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            match &self.0 {
                Some(function) => function.call1(py, (done, all)).map(drop),
                None => Ok(()),
            }
        })
    }
}
