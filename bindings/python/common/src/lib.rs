//! Parts that the native modules of the Python packages `thinair` and `thinair-lab` share: tables that frames of other
//! packages take, reports of progress, and errors of the caller.

mod frame;
mod progress;

pub use frame::{Frame, Series};
pub use progress::{PERIOD, Progress};

/// Returns `ValueError`: an error of the caller.
pub fn value_error(error: impl std::fmt::Display) -> pyo3::PyErr {
    pyo3::exceptions::PyValueError::new_err(error.to_string())
}
