//! Octets and times as Python has them.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use thinair_python_common::value_error;
use thinair_rohc::Instant;

/// Octets of `bytes`, of a buffer such as `bytearray`, `memoryview` or an array of numpy, or of a packet with `__bytes__`, as
/// of scapy and dpkt.
pub(crate) struct Octets(PyBackedBytes);

impl std::ops::Deref for Octets {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Octets {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(octets) = object.extract() {
            return Ok(Self(octets));
        }
        let py = object.py();
        let octets = match object.getattr_opt(intern!(py, "__bytes__"))? {
            Some(to_bytes) => to_bytes.call0()?,
            None => {
                let view = py.import(intern!(py, "builtins"))?.getattr(intern!(py, "memoryview"))?;
                let view = view.call1((object,)).map_err(|_| {
                    let name = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
                    PyTypeError::new_err(format!("expected bytes, a buffer or a packet, not {name}"))
                })?;
                view.call_method0(intern!(py, "tobytes"))?
            }
        };
        Ok(Self(octets.extract()?))
    }
}

/// A time: an integer counts nanoseconds, any other number seconds.
pub(crate) struct Time(Instant);

impl<'py> FromPyObject<'_, 'py> for Time {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let invalid =
            || value_error(format_args!("invalid time {}: not within 0 and 2^64 ns", object.as_any()));
        let nanos = match object.hasattr(intern!(object.py(), "__index__"))? {
            true => object.extract().map_err(|_| invalid())?,
            false => {
                let nanos = object.extract::<f64>()? * 1e9;
                if !(0.0..u64::MAX as f64).contains(&nanos) {
                    return Err(invalid());
                }
                nanos as u64
            }
        };
        Ok(Self(Instant::from_nanos(nanos)))
    }
}

/// Clock of an engine, which needs times that never go back.
#[derive(Default)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// Returns the time, or the latest one before if it is earlier.
    pub(crate) fn at(&mut self, time: &Time) -> Instant {
        self.0 = self.0.max(time.0);
        self.0
    }
}
