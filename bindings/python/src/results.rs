//! Results as JSON, and as columns of Arrow.

use std::sync::{Arc, OnceLock};

use arrow_array::ffi::to_ffi;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray, StructArray, UInt64Array,
};
use arrow_schema::ArrowError;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use thinair_analyze::outcome::{Flow, Scheme};
use thinair_analyze::{Outcome, Portable, Settings};

use crate::analysis::{settings, specs};
use crate::value_error;

/// Results of an analysis.
#[pyclass(frozen, module = "thinair._native")]
pub(crate) struct Results {
    settings: Settings,
    outcome: Outcome,
    /// The table, once it was asked for.
    table: OnceLock<RecordBatch>,
}

impl Results {
    pub(crate) const fn new(settings: Settings, outcome: Outcome) -> Self {
        Self { settings, outcome, table: OnceLock::new() }
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) const fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    fn table(&self, py: Python<'_>) -> PyResult<RecordBatch> {
        if let Some(table) = self.table.get() {
            return Ok(table.clone());
        }
        let table = py.detach(|| table(&self.outcome)).map_err(arrow_error)?;
        Ok(self.table.get_or_init(|| table).clone())
    }
}

/// Schemes, number of listed flows, partitions, those that were carried, and the rest as JSON.
type State = (Vec<String>, usize, u32, (u32, u32), String);

type Pair<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

#[pymethods]
impl Results {
    /// The JSON document `thinair.analyze/1`.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| serde_json::to_string(&self.outcome)).map_err(value_error)
    }

    /// Sums over all flows, as in the JSON document.
    fn totals(&self) -> PyResult<String> {
        serde_json::to_string(&self.outcome.totals).map_err(value_error)
    }

    /// Summaries of the captures, as in the JSON document.
    fn inputs(&self) -> PyResult<String> {
        serde_json::to_string(&self.outcome.inputs).map_err(value_error)
    }

    /// First packets that were not restored, as in the JSON document.
    fn faults(&self) -> PyResult<String> {
        serde_json::to_string(&self.outcome.faults).map_err(value_error)
    }

    /// Recommended settings, as in the JSON document.
    fn recommendation(&self) -> PyResult<String> {
        serde_json::to_string(&self.outcome.recommendation).map_err(value_error)
    }

    /// Identifiers of the schemes, in the order of the totals.
    fn schemes(&self) -> Vec<String> {
        self.outcome.totals.schemes.iter().map(Scheme::id).collect()
    }

    /// State for `from_state`, in another process with this version of the package.
    fn state(&self, py: Python<'_>) -> PyResult<State> {
        let Settings { most_flows, partitions, only, .. } = &self.settings;
        let part = py.detach(|| serde_json::to_string(&Portable::of(&self.outcome))).map_err(value_error)?;
        Ok((self.schemes(), *most_flows, *partitions, (only.start, only.end), part))
    }

    /// Results with that state. It is trusted, as all that is pickled.
    #[staticmethod]
    fn from_state(py: Python<'_>, state: State) -> PyResult<Self> {
        let (schemes, most_flows, partitions, (start, end), part) = state;
        let mut settings = settings(most_flows, partitions)?;
        settings.schemes = specs(&schemes, &settings.channel)?;
        settings.only = start..end;
        let part: Portable = py.detach(|| serde_json::from_str(&part)).map_err(value_error)?;
        Ok(Self::new(settings.clone(), part.into_outcome(settings)))
    }

    /// Number of rows: flows times schemes.
    fn __len__(&self) -> usize {
        (self.outcome.flows.len() + self.outcome.other_flows.len()) * self.outcome.totals.schemes.len()
    }

    fn arrow_schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.table(py)?.schema().as_ref()).map_err(arrow_error)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn arrow_array<'py>(&self, py: Python<'py>) -> PyResult<Pair<'py>> {
        let (array, schema) = to_ffi(&StructArray::from(self.table(py)?).to_data()).map_err(arrow_error)?;
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        Ok((schema, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }

    fn arrow_stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let table = self.table(py)?;
        let schema = table.schema();
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(table)], schema)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

fn arrow_error(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// A flow in one scheme.
struct Row<'o> {
    input: usize,
    /// Number of the flow, in order of appearance, from 0.
    flow: usize,
    src: &'o str,
    dst: &'o str,
    protocol: &'o str,
    side: &'o str,
    packets: u64,
    bytes_in: u64,
    /// Identifier of the scheme.
    id: &'o str,
    /// Its totals, for its name and mode.
    scheme: &'o Scheme,
    bytes_out: u64,
    feedback_bytes: u64,
    /// All sums, if the flow is listed with them.
    listed: Option<(&'o Flow, &'o Scheme)>,
}

impl Row<'_> {
    /// As [`Scheme::saved_ratio`].
    fn saved_ratio(&self) -> f64 {
        let sent = self.bytes_out + self.feedback_bytes;
        if self.bytes_in == 0 { 0.0 } else { 1.0 - sent as f64 / self.bytes_in as f64 }
    }
}

/// Returns a row for each flow and scheme, in the order of the JSON document.
fn rows<'o>(outcome: &'o Outcome, ids: &'o [String]) -> Vec<Row<'o>> {
    let totals = &outcome.totals.schemes;
    let mut rows = Vec::with_capacity((outcome.flows.len() + outcome.other_flows.len()) * totals.len());
    for flow in &outcome.flows {
        rows.extend(totals.iter().zip(ids).zip(&flow.schemes).map(|((total, id), scheme)| Row {
            input: flow.input,
            flow: flow.number,
            src: &flow.src,
            dst: &flow.dst,
            protocol: &flow.protocol,
            side: flow.side,
            packets: flow.packets,
            bytes_in: flow.traffic.bytes_in,
            id,
            scheme: total,
            bytes_out: scheme.bytes_out,
            feedback_bytes: scheme.feedback_bytes,
            listed: Some((flow, scheme)),
        }));
    }
    for flow in &outcome.other_flows {
        rows.extend(totals.iter().zip(ids).zip(&flow.bytes_out).enumerate().map(
            |(at, ((total, id), &bytes_out))| Row {
                input: flow.input,
                flow: flow.number,
                src: &flow.src,
                dst: &flow.dst,
                protocol: &flow.protocol,
                side: flow.side,
                packets: flow.packets,
                bytes_in: flow.bytes_in,
                id,
                scheme: total,
                bytes_out,
                feedback_bytes: flow.feedback_bytes.get(at).copied().unwrap_or_default(),
                listed: None,
            },
        ));
    }
    rows
}

/// Returns the table. A flow that is not listed with all sums has no value in the columns that need them.
fn table(outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    let ids: Vec<_> = outcome.totals.schemes.iter().map(Scheme::id).collect();
    let rows = rows(outcome, &ids);
    let (required, optional) = (false, true);
    RecordBatch::try_from_iter_with_nullable([
        ("input", counts(&rows, |row| Some(row.input as u64)), required),
        (
            "path",
            texts(&rows, |row| outcome.inputs.get(row.input).map(|input| input.path.as_str())),
            required,
        ),
        ("flow", counts(&rows, |row| Some(row.flow as u64)), required),
        ("src", texts(&rows, |row| Some(row.src)), required),
        ("dst", texts(&rows, |row| Some(row.dst)), required),
        ("protocol", texts(&rows, |row| Some(row.protocol)), required),
        ("side", texts(&rows, |row| Some(row.side)), required),
        ("profile", texts(&rows, |row| Some(row.listed?.0.profile)), optional),
        ("id", texts(&rows, |row| Some(row.id)), required),
        ("scheme", texts(&rows, |row| Some(row.scheme.scheme)), required),
        ("mode", texts(&rows, |row| row.scheme.mode), optional),
        ("packets", counts(&rows, |row| Some(row.packets)), required),
        ("bytes_in", counts(&rows, |row| Some(row.bytes_in)), required),
        ("header_bytes_in", counts(&rows, |row| Some(row.listed?.0.traffic.header_bytes_in)), optional),
        ("bytes_out", counts(&rows, |row| Some(row.bytes_out)), required),
        ("header_bytes_out", counts(&rows, |row| Some(row.listed?.1.header_bytes_out)), optional),
        ("first_packet_bytes", counts(&rows, |row| Some(row.listed?.1.first_packet_bytes)), optional),
        ("feedback_packets", counts(&rows, |row| Some(row.listed?.1.feedback_packets)), optional),
        ("feedback_bytes", counts(&rows, |row| Some(row.feedback_bytes)), required),
        ("not_applicable", counts(&rows, |row| Some(row.listed?.1.not_applicable)), optional),
        ("roundtrip_mismatches", counts(&rows, |row| Some(row.listed?.1.roundtrip_mismatches)), optional),
        ("saved_ratio", ratios(&rows), required),
    ])
}

fn counts(rows: &[Row<'_>], of: impl Fn(&Row<'_>) -> Option<u64>) -> ArrayRef {
    Arc::new(rows.iter().map(of).collect::<UInt64Array>())
}

fn texts<'o>(rows: &[Row<'o>], of: impl Fn(&Row<'o>) -> Option<&'o str>) -> ArrayRef {
    Arc::new(rows.iter().map(of).collect::<StringArray>())
}

fn ratios(rows: &[Row<'_>]) -> ArrayRef {
    Arc::new(rows.iter().map(|row| Some(row.saved_ratio())).collect::<Float64Array>())
}
