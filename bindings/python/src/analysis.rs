//! Analysis of captures.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use thinair_analyze::{
    Analysis, MOST_PARTITIONS, MergeError, Outcome, SchemeName, SchemeSpec, Settings, Survey,
};
use thinair_capture::Error;
use thinair_rohc::{Channel, CidSpace, Mode, ProfileSet};

use crate::octets::Octets;
use crate::results::Results;
use crate::value_error;
use crate::watch::Watch;

/// Number of readings of each capture: the survey, then the analysis.
const READINGS: u64 = 2;

/// Modes of a scheme that is named without one.
const MODES: [Mode; 2] = [Mode::Unidirectional, Mode::Optimistic];

/// Analyzes captures, each of them a file, or octets in memory with a name for reports.
#[pyfunction]
pub(crate) fn analyze(
    py: Python<'_>,
    inputs: Vec<(PathBuf, Option<Octets>)>,
    schemes: Option<Vec<String>>,
    partitions: u32,
    shard: (usize, usize),
    most_flows: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let settings = settings(most_flows, partitions)?;
    let named = schemes.map(|names| specs(&names, &settings.channel)).transpose()?;
    let (number, shards) = shard;
    if number >= shards || u64::try_from(shards).is_ok_and(|shards| shards > partitions.into()) {
        return Err(value_error(format_args!(
            "invalid shard {number} of {shards}: numbers begin at 0, and there are at most as many as partitions, {partitions}"
        )));
    }
    py.detach(|| {
        let mut captures = inputs.into_iter().map(Capture::open).collect::<PyResult<Vec<_>>>()?;
        let total = captures.iter().map(|capture| capture.len).sum::<u64>() * READINGS;
        run(settings, named, shard, &mut captures, Watch::new(progress, total))
    })
}

/// Merges the results of all shards of a run.
#[pyfunction]
pub(crate) fn merge(py: Python<'_>, parts: Vec<Bound<'_, Results>>) -> PyResult<Results> {
    together(py, &parts, Outcome::merge)
}

/// Joins the results of runs on different captures.
#[pyfunction]
pub(crate) fn join(py: Python<'_>, parts: Vec<Bound<'_, Results>>) -> PyResult<Results> {
    together(py, &parts, Outcome::join)
}

fn together(
    py: Python<'_>,
    parts: &[Bound<'_, Results>],
    operation: fn(Vec<Outcome>) -> Result<Outcome, MergeError>,
) -> PyResult<Results> {
    let whole = parts.first().map(|part| Settings { only: 0..u32::MAX, ..part.get().settings().clone() });
    let whole = whole.ok_or_else(|| value_error("there is no part to merge"))?;
    let parts: Vec<_> = parts.iter().map(|part| part.get().outcome().clone()).collect();
    py.detach(|| operation(parts)).map(|outcome| Results::new(whole, outcome)).map_err(value_error)
}

/// Returns the settings that arguments and the state of results determine, without schemes.
pub(crate) fn settings(most_flows: usize, partitions: u32) -> PyResult<Settings> {
    if !(1..=MOST_PARTITIONS).contains(&partitions) {
        return Err(value_error(format_args!(
            "invalid partitions {partitions}: not within 1 and {MOST_PARTITIONS}"
        )));
    }
    let channel =
        Channel::new(CidSpace::Small, CidSpace::Small.highest(), ProfileSet::v1()).map_err(value_error)?;
    Ok(Settings { most_flows, partitions, ..Settings::new(channel, &[]) })
}

/// Reads identifiers of schemes, each scheme once.
pub(crate) fn specs(names: &[String], cids: &Channel) -> PyResult<Vec<SchemeSpec>> {
    let mut specs = Vec::new();
    for name in names {
        for spec in SchemeSpec::read(name, cids, &MODES).map_err(value_error)? {
            if !specs.contains(&spec) {
                specs.push(spec);
            }
        }
    }
    Ok(specs)
}

/// Returns the schemes of a default comparison.
fn usual(cids: &Channel) -> PyResult<Vec<SchemeSpec>> {
    specs(&SchemeName::USUAL.map(|name| name.name().to_owned()), cids)
}

fn run(
    mut settings: Settings,
    named: Option<Vec<SchemeSpec>>,
    (number, shards): (usize, usize),
    captures: &mut [Capture],
    mut watch: Watch,
) -> PyResult<Results> {
    let mut survey = Survey::default();
    for capture in &mut *captures {
        capture.read(&mut watch, |_, source| survey.read(&settings, source, |_| ()))?;
    }
    settings.schemes = match named {
        Some(specs) => specs,
        None => survey.applicable(&usual(&settings.channel)?),
    };
    settings.only = survey.shards(shards).get(number).cloned().unwrap_or_default();
    let mut analysis = Analysis::new(settings.clone(), survey);
    for capture in captures {
        capture.read(&mut watch, |name, source| analysis.read(name, source, |_| ()))?;
    }
    watch.finish()?;
    Ok(Results::new(settings, analysis.finish()))
}

/// A capture that is read several times.
struct Capture {
    name: PathBuf,
    content: Content,
    /// Size in octets.
    len: u64,
}

enum Content {
    File(File),
    Octets(Octets),
}

impl Capture {
    fn open((name, octets): (PathBuf, Option<Octets>)) -> PyResult<Self> {
        let (content, len) = match octets {
            Some(octets) => {
                let len = octets.len() as u64;
                (Content::Octets(octets), len)
            }
            None => {
                let file = File::open(&name).map_err(|error| os_error(&name, &error))?;
                let len = file.metadata().map_or(0, |metadata| metadata.len());
                (Content::File(file), len)
            }
        };
        Ok(Self { name, content, len })
    }

    /// Passes name and source to a function that reads it from its start.
    fn read(
        &mut self,
        watch: &mut Watch,
        read: impl FnOnce(&str, &mut dyn Read) -> Result<(), Error>,
    ) -> PyResult<()> {
        let name = self.name.display().to_string();
        let done = match &mut self.content {
            Content::File(file) => {
                file.rewind().map_err(|error| os_error(&self.name, &error))?;
                read(&name, &mut watch.source(file))
            }
            Content::Octets(octets) => read(&name, &mut watch.source(&octets[..])),
        };
        watch.check()?;
        done.map_err(|error| match &error {
            Error::Io { source, .. } => os_error(&self.name, source),
            _ => value_error(format_args!("{name}: {error}")),
        })
    }
}

/// Returns `OSError`, or its subclass for the number of the error, with the path.
fn os_error(path: &Path, error: &io::Error) -> PyErr {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or_default().to_owned();
    PyOSError::new_err((error.raw_os_error(), reason, path.as_os_str().to_owned()))
}
