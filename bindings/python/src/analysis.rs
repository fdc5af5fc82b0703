//! Analysis of captures.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use thinair_analyze::{
    Analysis, CarrierOverhead, MOST_PARTITIONS, MergeError, Outcome, SchemeName, SchemeSpec, Settings,
    Survey, Tariff,
};
use thinair_capture::Error;
use thinair_python_common::value_error;
use thinair_rohc::{Channel, CidSpace, Mode, ProfileSet};

use crate::octets::Octets;
use crate::results::Results;
use crate::watch::Watch;

/// Modes of a scheme that is named without one.
const MODES: [Mode; 2] = [Mode::Unidirectional, Mode::Optimistic];

/// Analyzes captures, each of them a file, or octets in memory with a name for reports. `several`: those that are no
/// captures are left out, unless all are. `tariff`: path and text of a price list.
#[pyfunction]
pub(crate) fn analyze(
    py: Python<'_>,
    inputs: Vec<(PathBuf, Option<Octets>)>,
    schemes: Option<Vec<String>>,
    partitions: u32,
    shard: (usize, usize),
    most_flows: usize,
    surveyed: Option<Bound<'_, Surveyed>>,
    progress: Option<Py<PyAny>>,
    several: bool,
    tariff: Option<(String, String)>,
) -> PyResult<Results> {
    let given = surveyed.map(|surveyed| surveyed.get().clone());
    let settings = match &given {
        Some(given) => given.settings.clone(),
        None => chosen(schemes, most_flows, partitions)?,
    };
    let tariff = tariff.map(|(path, text)| {
        Tariff::read(&text).map_err(|error| value_error(format_args!("{path}, {error}")))
    });
    let tariff = tariff.transpose()?;
    let (number, shards) = shard;
    let partitions = settings.partitions;
    if number >= shards || u64::try_from(shards).is_ok_and(|shards| shards > partitions.into()) {
        return Err(value_error(format_args!(
            "invalid shard {number} of {shards}: numbers begin at 0, and there are at most as many as partitions, {partitions}"
        )));
    }
    py.detach(|| {
        let mut captures = Capture::open_all(inputs)?;
        let readings = if given.is_some() { 1 } else { 2 };
        let mut watch = Watch::new(progress, Capture::total(&captures) * readings);
        let surveyed = match given {
            Some(given) => given,
            None => Surveyed::read(settings, &mut captures, &mut watch, several)?,
        };
        let Surveyed { mut settings, survey } = surveyed;
        if settings.schemes.is_empty() {
            settings.schemes = survey.applicable(&usual(&settings.channel)?);
        }
        settings.only = survey.shards(shards).get(number).cloned().unwrap_or_default();
        if let Some(tariff) = tariff {
            if tariff.session.is_some() && partitions > 1 {
                return Err(value_error(
                    "a price list with sessions is for links of one channel: leave out `partitions`",
                ));
            }
            settings.set_tariff(tariff);
        }
        let mut analysis = Analysis::new(settings.clone(), survey);
        for capture in &mut captures {
            let left_out =
                capture.read(&mut watch, several, |name, source| analysis.read(name, source, |_| ()))?;
            if let Some((name, error)) = left_out {
                analysis.leave_out(&name, &error);
            }
        }
        watch.finish()?;
        Ok(Results::new(settings, analysis.finish()))
    })
}

/// Surveys captures for all shards of a run. Without schemes, those that apply are chosen.
#[pyfunction]
pub(crate) fn survey(
    py: Python<'_>,
    inputs: Vec<(PathBuf, Option<Octets>)>,
    schemes: Option<Vec<String>>,
    partitions: u32,
    most_flows: usize,
    progress: Option<Py<PyAny>>,
    several: bool,
) -> PyResult<Surveyed> {
    let settings = chosen(schemes, most_flows, partitions)?;
    py.detach(|| {
        let mut captures = Capture::open_all(inputs)?;
        let mut watch = Watch::new(progress, Capture::total(&captures));
        let surveyed = Surveyed::read(settings, &mut captures, &mut watch, several)?;
        watch.finish()?;
        Ok(surveyed)
    })
}

/// Returns the identifiers of the schemes of a default comparison that apply to the captures of all surveys.
#[pyfunction]
pub(crate) fn applicable(surveys: Vec<Bound<'_, Surveyed>>) -> PyResult<Vec<String>> {
    let mut all = Survey::default();
    surveys.iter().for_each(|surveyed| all.add_facts(&surveyed.get().survey));
    let channel = settings(0, 1)?.channel;
    Ok(all.applicable(&usual(&channel)?).iter().map(|spec| spec.id(&channel)).collect())
}

/// Survey of captures, and the settings of the run.
#[pyclass(frozen, module = "thinair._native")]
#[derive(Clone)]
pub(crate) struct Surveyed {
    /// Without schemes if they are to be chosen.
    settings: Settings,
    survey: Survey,
}

/// Schemes, number of listed flows, partitions, and the survey as JSON.
type SurveyState = (Option<Vec<String>>, usize, u32, String);

impl Surveyed {
    fn read(
        settings: Settings,
        captures: &mut [Capture],
        watch: &mut Watch,
        several: bool,
    ) -> PyResult<Self> {
        let mut survey = Survey::default();
        let (all, mut left_out, mut first) = (captures.len(), 0, None);
        for capture in captures {
            if let Some(reason) =
                capture.read(watch, several, |_, source| survey.read(&settings, source, |_| ()))?
            {
                survey.leave_out();
                left_out += 1;
                first.get_or_insert(reason);
            }
        }
        match first {
            // A part of a run on more files may have none.
            Some((name, error)) if left_out == all && all > 1 => Err(no_capture(&name, &error)),
            Some(_) | None => Ok(Self { settings, survey }),
        }
    }
}

#[pymethods]
impl Surveyed {
    /// Identifiers of the schemes.
    fn schemes(&self) -> PyResult<Vec<String>> {
        let channel = &self.settings.channel;
        let specs = match self.settings.schemes.is_empty() {
            true => self.survey.applicable(&usual(channel)?),
            false => self.settings.schemes.clone(),
        };
        Ok(specs.iter().map(|spec| spec.id(channel)).collect())
    }

    #[getter]
    fn partitions(&self) -> u32 {
        self.settings.partitions
    }

    #[getter]
    fn most_flows(&self) -> usize {
        self.settings.most_flows
    }

    /// The survey with other schemes, for which it was made too.
    fn with_schemes(&self, schemes: Vec<String>) -> PyResult<Self> {
        let mut surveyed = self.clone();
        surveyed.settings.schemes = specs(&schemes, &surveyed.settings.channel)?;
        Ok(surveyed)
    }

    /// State for `from_state`, in another process with this version of the package.
    fn state(&self, py: Python<'_>) -> PyResult<SurveyState> {
        let Settings { most_flows, partitions, schemes, channel, .. } = &self.settings;
        let names = schemes.iter().map(|spec| spec.id(channel)).collect();
        let survey = py.detach(|| serde_json::to_string(&self.survey)).map_err(value_error)?;
        Ok(((!schemes.is_empty()).then_some(names), *most_flows, *partitions, survey))
    }

    /// Survey with that state. It is trusted, as all that is pickled.
    #[staticmethod]
    fn from_state(py: Python<'_>, state: SurveyState) -> PyResult<Self> {
        let (schemes, most_flows, partitions, survey) = state;
        let settings = chosen(schemes, most_flows, partitions)?;
        let survey = py.detach(|| serde_json::from_str(&survey)).map_err(value_error)?;
        Ok(Self { settings, survey })
    }
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

/// Returns the settings of a run, without schemes if none are named.
fn chosen(schemes: Option<Vec<String>>, most_flows: usize, partitions: u32) -> PyResult<Settings> {
    let mut settings = settings(most_flows, partitions)?;
    if let Some(names) = schemes {
        settings.schemes = specs(&names, &settings.channel)?;
    }
    Ok(settings)
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
    let carriers = CarrierOverhead::TUNNEL.to_vec();
    Ok(Settings { most_flows, partitions, carriers, ..Settings::new(channel, &[]) })
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
    fn open_all(inputs: Vec<(PathBuf, Option<Octets>)>) -> PyResult<Vec<Self>> {
        inputs.into_iter().map(Self::open).collect()
    }

    /// Size of all captures in octets.
    fn total(captures: &[Self]) -> u64 {
        captures.iter().map(|capture| capture.len).sum()
    }

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

    /// Passes name and source to a function that reads it from its start. Returns the name and the reason if it is no
    /// capture, and `several` is true.
    fn read(
        &mut self,
        watch: &mut Watch,
        several: bool,
        read: impl FnOnce(&str, &mut dyn Read) -> Result<(), Error>,
    ) -> PyResult<Option<(String, Error)>> {
        let name = self.name.display().to_string();
        let done = match &mut self.content {
            Content::File(file) => {
                file.rewind().map_err(|error| os_error(&self.name, &error))?;
                read(&name, &mut watch.source(file))
            }
            Content::Octets(octets) => read(&name, &mut watch.source(&octets[..])),
        };
        watch.check()?;
        match done {
            Ok(()) => Ok(None),
            Err(Error::Io { source, .. }) => Err(os_error(&self.name, &source)),
            Err(error) if several => Ok(Some((name, error))),
            Err(error) => Err(no_capture(&name, &error)),
        }
    }
}

fn no_capture(name: &str, error: &Error) -> PyErr {
    value_error(format_args!("{name}: {error}"))
}

/// Returns `OSError`, or its subclass for the number of the error, with the path.
fn os_error(path: &Path, error: &io::Error) -> PyErr {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or_default().to_owned();
    PyOSError::new_err((error.raw_os_error(), reason, path.as_os_str().to_owned()))
}
