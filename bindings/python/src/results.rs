//! Results as JSON, and as columns of Arrow.

use std::sync::OnceLock;

use pyo3::prelude::*;
use thinair_analyze::outcome::{BillRow, Flow, Scheme};
use thinair_analyze::{Outcome, Portable, Settings};
use thinair_python_common::{Frame, Series, value_error};

use crate::analysis::{settings, specs};

/// Results of an analysis.
#[pyclass(frozen, module = "thinair._native")]
pub(crate) struct Results {
    settings: Settings,
    outcome: Outcome,
    /// The table, once it was asked for.
    table: OnceLock<Py<Frame>>,
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
}

/// Schemes, number of listed flows, partitions, those that were carried, the price list as JSON, and the rest as JSON.
type State = (Vec<String>, usize, u32, (u32, u32), String, String);

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

    /// Octets of frames by cause: a row for each cause and protocol.
    fn bill(&self, py: Python<'_>) -> PyResult<Py<Frame>> {
        Py::new(py, bill(&self.outcome)?)
    }

    /// Identifiers of the schemes, in the order of the totals.
    fn schemes(&self) -> Vec<String> {
        self.outcome.totals.schemes.iter().map(Scheme::id).collect()
    }

    /// State for `from_state`, in another process with this version of the package.
    fn state(&self, py: Python<'_>) -> PyResult<State> {
        let Settings { most_flows, partitions, only, tariff, .. } = &self.settings;
        let tariff = serde_json::to_string(tariff).map_err(value_error)?;
        let part = py.detach(|| serde_json::to_string(&Portable::of(&self.outcome))).map_err(value_error)?;
        Ok((self.schemes(), *most_flows, *partitions, (only.start, only.end), tariff, part))
    }

    /// Results with that state. It is trusted, as all that is pickled.
    #[staticmethod]
    fn from_state(py: Python<'_>, state: State) -> PyResult<Self> {
        let (schemes, most_flows, partitions, (start, end), tariff, part) = state;
        let mut settings = settings(most_flows, partitions)?;
        settings.schemes = specs(&schemes, &settings.channel)?;
        settings.only = start..end;
        if let Some(tariff) = serde_json::from_str(&tariff).map_err(value_error)? {
            settings.set_tariff(tariff);
        }
        let part: Portable = py.detach(|| serde_json::from_str(&part)).map_err(value_error)?;
        Ok(Self::new(settings.clone(), part.into_outcome(settings)))
    }

    /// The table: a row for each flow and scheme.
    fn frame(&self, py: Python<'_>) -> PyResult<Py<Frame>> {
        if let Some(table) = self.table.get() {
            return Ok(table.clone_ref(py));
        }
        let frame = Py::new(py, py.detach(|| frame(&self.outcome))?)?;
        Ok(self.table.get_or_init(|| frame).clone_ref(py))
    }
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
fn frame(outcome: &Outcome) -> PyResult<Frame> {
    let ids: Vec<_> = outcome.totals.schemes.iter().map(Scheme::id).collect();
    let rows = rows(outcome, &ids);
    let path = |row: &Row<'_>| outcome.inputs.get(row.input).map(|input| input.path.as_str());
    Frame::new([
        counts("input", &rows, |row| Some(row.input as u64)),
        Series::texts("path", rows.iter().map(path)),
        counts("flow", &rows, |row| Some(row.flow as u64)),
        texts("src", &rows, |row| Some(row.src)),
        texts("dst", &rows, |row| Some(row.dst)),
        texts("protocol", &rows, |row| Some(row.protocol)),
        texts("side", &rows, |row| Some(row.side)),
        texts("profile", &rows, |row| Some(row.listed?.0.profile)).optional(),
        texts("id", &rows, |row| Some(row.id)),
        texts("scheme", &rows, |row| Some(row.scheme.scheme)),
        texts("mode", &rows, |row| row.scheme.mode).optional(),
        counts("packets", &rows, |row| Some(row.packets)),
        counts("bytes_in", &rows, |row| Some(row.bytes_in)),
        counts("header_bytes_in", &rows, |row| Some(row.listed?.0.traffic.header_bytes_in)).optional(),
        counts("bytes_out", &rows, |row| Some(row.bytes_out)),
        counts("header_bytes_out", &rows, |row| Some(row.listed?.1.header_bytes_out)).optional(),
        counts("first_packet_bytes", &rows, |row| Some(row.listed?.1.first_packet_bytes)).optional(),
        counts("feedback_packets", &rows, |row| Some(row.listed?.1.feedback_packets)).optional(),
        counts("feedback_bytes", &rows, |row| Some(row.feedback_bytes)),
        counts("not_applicable", &rows, |row| Some(row.listed?.1.not_applicable)).optional(),
        counts("roundtrip_mismatches", &rows, |row| Some(row.listed?.1.roundtrip_mismatches)).optional(),
        Series::numbers("saved_ratio", rows.iter().map(|row| Some(row.saved_ratio()))),
    ])
}

/// Returns the bill as a table.
fn bill(outcome: &Outcome) -> PyResult<Frame> {
    let rows = outcome.bill.iter();
    let cause = |row: &BillRow| Some(serde_json::to_value(row.cause).ok()?.as_str()?.to_owned());
    Frame::new([
        Series::texts("cause", rows.clone().map(cause)),
        Series::texts("protocol", rows.clone().map(|row| Some(row.protocol.as_str()))),
        Series::counts("packets", rows.clone().map(|row| Some(row.packets))),
        Series::counts("bytes", rows.clone().map(|row| Some(row.bytes))),
        Series::numbers("share", rows.clone().map(|row| Some(row.share))),
        Series::texts("remedy", rows.clone().map(|row| row.remedy)).optional(),
        Series::counts("saves_bytes", rows.map(|row| row.saves_bytes)).optional(),
    ])
}

fn counts(name: &str, rows: &[Row<'_>], of: impl Fn(&Row<'_>) -> Option<u64>) -> Series {
    Series::counts(name, rows.iter().map(of))
}

fn texts<'o>(name: &str, rows: &[Row<'o>], of: impl Fn(&Row<'o>) -> Option<&'o str>) -> Series {
    Series::texts(name, rows.iter().map(of))
}
