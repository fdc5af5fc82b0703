//! Both ends of a ROHC channel.

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use thinair_analyze::SchemeSpec;
use thinair_python_common::value_error;
use thinair_rohc::packet::parts;
use thinair_rohc::{
    Channel, CidSpace, CompressError, CompressorConfig, CompressorMemory, Decompressed, DecompressorConfig,
    DecompressorMemory, Mode, ProfileSet,
};

use crate::octets::{Clock, Octets, Time};

create_exception!(
    thinair,
    DecompressError,
    PyValueError,
    "A ROHC packet that is dropped; `reason` is a stable name, such as `crc`. Later packets may be decompressed nevertheless."
);

/// Octets of the output: an IPv6 packet with the longest payload, and whatever ROHC adds to it.
const OUTPUT: usize = 128 * 1024;

/// Configurations of both ends of the channel of a scheme.
fn configs(scheme: &str) -> PyResult<(CompressorConfig, DecompressorConfig)> {
    let usual =
        Channel::new(CidSpace::Small, CidSpace::Small.highest(), ProfileSet::v1()).map_err(value_error)?;
    let specs = SchemeSpec::read(scheme, &usual, &[Mode::Optimistic]).map_err(value_error)?;
    match specs[..] {
        [SchemeSpec::Rohc { channel, mode, .. }] => {
            let decompressor = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
            Ok((CompressorConfig::new(channel), decompressor))
        }
        _ => Err(value_error(format_args!("scheme `{scheme}` is not ROHC: analyze alone has it"))),
    }
}

fn output() -> Box<[u8]> {
    vec![0; OUTPUT].into()
}

fn not_compressed(error: CompressError) -> PyErr {
    value_error(format_args!("the packet cannot be compressed: {error}"))
}

/// Returns the packet of an outcome; `None` if only a context was updated.
fn delivered<'py>(
    py: Python<'py>,
    outcome: Result<Decompressed, thinair_rohc::DecompressError>,
    out: &[u8],
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    match outcome {
        Ok(Decompressed { len: 0, .. }) | Err(thinair_rohc::DecompressError::NothingYet) => Ok(None),
        Ok(Decompressed { len, .. }) => Ok(Some(PyBytes::new(py, &out[..len]))),
        Err(error) => {
            let raised = DecompressError::new_err(format!("the packet cannot be decompressed: {error}"));
            raised.value(py).setattr("reason", error.name())?;
            Err(raised)
        }
    }
}

/// Compressor of one channel of ROHC: IP packets to ROHC packets.
///
/// Give it every packet of the channel in order. `scheme` names the profiles and the CIDs: ``rohc-v1``, ``rohc-v2``, ``coap`` or
/// ``tcp``, or an identifier such as ``coap/o/large-127``. The mode follows the feedback of the other end.
#[pyclass(module = "thinair")]
pub(crate) struct Compressor {
    engine: thinair_rohc::Compressor<'static>,
    clock: Clock,
    out: Box<[u8]>,
}

#[pymethods]
impl Compressor {
    #[new]
    #[pyo3(signature = (scheme = "coap"))]
    fn new(scheme: &str) -> PyResult<Self> {
        let (config, _) = configs(scheme)?;
        let memory = CompressorMemory::owned(&config.channel);
        let engine = thinair_rohc::Compressor::new(config, memory);
        Ok(Self { engine, clock: Clock::default(), out: output() })
    }

    /// Compress one IP packet.
    ///
    /// An integer `time` counts nanoseconds; a float, a Decimal and other numbers are seconds. Only differences between times
    /// matter. A time before that of an earlier call counts as that one.
    ///
    /// Raises ValueError if the octets are no IP packet.
    fn compress<'py>(
        &mut self,
        py: Python<'py>,
        packet: Octets,
        time: Time,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let now = self.clock.at(&time);
        let compressed = self.engine.compress(now, &packet, &mut self.out).map_err(not_compressed)?;
        Ok(PyBytes::new(py, &self.out[..compressed.len]))
    }

    /// Handle feedback of the other end, as `Decompressor.poll_feedback` returns it.
    ///
    /// Raises ValueError if it is damaged or invalid; it is ignored then.
    fn receive_feedback(&mut self, packet: Octets, time: Time) -> PyResult<()> {
        let now = self.clock.at(&time);
        let parts =
            parts(&packet).map_err(|error| value_error(thinair_rohc::DecompressError::Packet(error)))?;
        for element in parts.feedback {
            self.engine.receive_feedback(now, element).map_err(value_error)?;
        }
        Ok(())
    }
}

/// Decompressor of one channel of ROHC: ROHC packets to IP packets.
///
/// `scheme` is that of the compressor. Its mode is the one that feedback requests: ``coap/u`` sends none, ``coap/o`` (the
/// default) asks for refreshes, ``coap/r`` acknowledges updates.
#[pyclass(module = "thinair")]
pub(crate) struct Decompressor {
    engine: thinair_rohc::Decompressor<'static>,
    clock: Clock,
    out: Box<[u8]>,
}

#[pymethods]
impl Decompressor {
    #[new]
    #[pyo3(signature = (scheme = "coap"))]
    fn new(scheme: &str) -> PyResult<Self> {
        let (_, config) = configs(scheme)?;
        let memory = DecompressorMemory::owned(&config.channel);
        let engine = thinair_rohc::Decompressor::new(config, memory);
        Ok(Self { engine, clock: Clock::default(), out: output() })
    }

    /// Restore the IP packet, bit for bit. `time` is that of arrival, as for `Compressor.compress`.
    ///
    /// Returns None if the packet delivers nothing: it only updates the context, or holds only feedback.
    ///
    /// Raises DecompressError if the packet is dropped; its `reason` is a stable name.
    fn decompress<'py>(
        &mut self,
        py: Python<'py>,
        packet: Octets,
        time: Time,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let outcome = self.engine.decompress(self.clock.at(&time), &packet, &mut self.out);
        delivered(py, outcome, &self.out)
    }

    /// Return the next feedback for the compressor, or None. Call it after each packet until it returns None.
    fn poll_feedback<'py>(&mut self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let len = self.engine.poll_feedback(&mut self.out)?;
        Some(PyBytes::new(py, &self.out[..len]))
    }
}

/// Both directions of one side of a link: a compressor, a decompressor, and feedback between them.
///
/// Give every packet that arrives to `receive`, and send every packet through `send`, which puts waiting feedback in front.
/// CoAP responses are compressed relative to their requests.
#[pyclass(module = "thinair")]
pub(crate) struct Endpoint {
    engine: thinair_rohc::Endpoint<'static>,
    clock: Clock,
    out: Box<[u8]>,
}

#[pymethods]
impl Endpoint {
    #[new]
    #[pyo3(signature = (scheme = "coap"))]
    fn new(scheme: &str) -> PyResult<Self> {
        let (compressor, decompressor) = configs(scheme)?;
        let engine = thinair_rohc::Endpoint::owned(compressor, decompressor);
        Ok(Self { engine, clock: Clock::default(), out: output() })
    }

    /// Compress one IP packet, as `Compressor.compress`.
    fn send<'py>(&mut self, py: Python<'py>, packet: Octets, time: Time) -> PyResult<Bound<'py, PyBytes>> {
        let now = self.clock.at(&time);
        let compressed = self.engine.send(now, &packet, &mut self.out).map_err(not_compressed)?;
        Ok(PyBytes::new(py, &self.out[..compressed.len]))
    }

    /// Take feedback from a ROHC packet and restore its IP packet, as `Decompressor.decompress`.
    fn receive<'py>(
        &mut self,
        py: Python<'py>,
        packet: Octets,
        time: Time,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let outcome = self.engine.receive(self.clock.at(&time), &packet, &mut self.out);
        delivered(py, outcome, &self.out)
    }

    /// Return feedback that waits, as a packet of its own, for a side that has nothing else to send; or None.
    fn poll_feedback<'py>(&mut self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let len = self.engine.poll_feedback(&mut self.out)?;
        Some(PyBytes::new(py, &self.out[..len]))
    }
}
