//! Analysis of captures.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::Range;
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use thinair_analyze::{Analysis, MOST_PARTITIONS, Outcome, SchemeName, SchemeSpec, Settings, Survey};
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
    shard: (u32, u32),
    most_flows: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let channel = Channel::new(CidSpace::Small, CidSpace::Small.highest(), ProfileSet::v1());
    let mut settings = Settings::new(channel.map_err(value_error)?, &[]);
    settings.most_flows = most_flows;
    (settings.partitions, settings.only) = (partitions, carried(partitions, shard)?);
    let named = schemes.map(|names| specs(&names, &settings.channel)).transpose()?;
    py.detach(|| {
        let mut captures = inputs.into_iter().map(Capture::open).collect::<PyResult<Vec<_>>>()?;
        let total = captures.iter().map(|capture| capture.len).sum::<u64>() * READINGS;
        run(settings, named, &mut captures, Watch::new(progress, total)).map(Results::new)
    })
}

/// Returns the partitions of a shard: `shard` is its number, from 0, and the number of shards.
fn carried(partitions: u32, (number, shards): (u32, u32)) -> PyResult<Range<u32>> {
    if !(1..=MOST_PARTITIONS).contains(&partitions) {
        return Err(value_error(format_args!(
            "invalid partitions {partitions}: not within 1 and {MOST_PARTITIONS}"
        )));
    }
    if number >= shards || shards > partitions {
        return Err(value_error(format_args!(
            "invalid shard {number} of {shards}: numbers begin at 0, and there are at most as many as partitions, {partitions}"
        )));
    }
    let start = |number: u32| (u64::from(partitions) * u64::from(number) / u64::from(shards)) as u32;
    Ok(start(number)..start(number + 1))
}

/// Merges the results of all shards of a run.
#[pyfunction]
pub(crate) fn merge(py: Python<'_>, parts: Vec<Bound<'_, Results>>) -> PyResult<Results> {
    let parts: Vec<_> = parts.iter().map(|part| part.get().outcome().clone()).collect();
    py.detach(|| Outcome::merge(parts)).map(Results::new).map_err(value_error)
}

/// Reads identifiers of schemes, each scheme once.
fn specs(names: &[String], cids: &Channel) -> PyResult<Vec<SchemeSpec>> {
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
    captures: &mut [Capture],
    mut watch: Watch,
) -> PyResult<Outcome> {
    let mut survey = Survey::default();
    for capture in &mut *captures {
        capture.read(&mut watch, |_, source| survey.read(&settings, source, |_| ()))?;
    }
    settings.schemes = match named {
        Some(specs) => specs,
        None => survey.applicable(&usual(&settings.channel)?),
    };
    let mut analysis = Analysis::new(settings, survey);
    for capture in captures {
        capture.read(&mut watch, |name, source| analysis.read(name, source, |_| ()))?;
    }
    watch.finish()?;
    Ok(analysis.finish())
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
    PyOSError::new_err((error.raw_os_error(), reason, path.to_owned()))
}
