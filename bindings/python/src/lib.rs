//! Native part of the Python package `thinair`: analysis of captures, results as Arrow columns, and both ends of a ROHC
//! channel.
//!
//! The package in `python/thinair/` has the public functions, their documentation and everything that other packages do
//! for it; this crate has what needs the engines. The interpreter is released while a capture is read.

mod analysis;
mod codec;
mod octets;
mod results;
mod watch;

use pyo3::prelude::*;

/// Engines of the package `thinair`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::analysis::{Surveyed, analyze, applicable, join, merge, survey};
    #[pymodule_export]
    use crate::codec::{Compressor, DecompressError, Decompressor, Endpoint};
    #[pymodule_export]
    use crate::results::Results;
    #[pymodule_export]
    use thinair_python_common::Frame;
}
