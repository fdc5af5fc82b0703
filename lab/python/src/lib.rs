//! Native part of the Python package `thinair_lab`: plans and their runs, and published evaluations, with results as
//! Arrow columns.
//!
//! The package in `python/thinair_lab/` has the public functions and their documentation. Work is done on threads of
//! its own; the interpreter is released meanwhile.

mod evaluation;
mod experiment;
mod table;
mod work;

use pyo3::prelude::*;

/// The laboratory of the package `thinair_lab`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::evaluation::{Evaluation, evaluate, evaluations};
    #[pymodule_export]
    use crate::experiment::{Plan, Runs, join};
    #[pymodule_export]
    use thinair_python_common::Frame;
}
