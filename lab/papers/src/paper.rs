//! Paper: fixed prose, and a measurement that depends on a plan.

use std::path::PathBuf;

use thinair_report::Section;
use thinair_rohc::{ChannelError, CompressError};

use crate::PAPERS;
use crate::form::{Figures, PaperRun, PlanFile, Published};
use crate::row::FigureRow;

/// Callback for the progress of a run: completed steps, total steps. An error of it, such as
/// [`PaperError::Interrupted`], ends the run.
pub type ProgressCallback<'a> = &'a (dyn Fn(u64, u64) -> Result<(), PaperError> + Sync);

/// Published evaluation that can be repeated.
#[derive(Debug)]
pub struct Paper {
    pub(crate) name: &'static str,
    /// Content of `paper.md`.
    pub(crate) words: &'static str,
    /// Content of `plan.toml`.
    pub(crate) plan: &'static str,
    /// Content of `published.csv`, empty if there is none.
    pub(crate) published: &'static str,
    pub(crate) is_real_time: bool,
    pub(crate) measure: fn(&PaperRun<'_>, &mut Figures) -> Result<(), PaperError>,
}

impl Paper {
    /// Subject and claims.
    pub fn about(&self) -> About {
        About::read(self.name, self.words)
    }

    /// True if everything is measured in real time, so that a quick run includes that.
    pub fn is_real_time(&self) -> bool {
        self.is_real_time
    }

    /// Performs the measurements. The results depend only on `plan`, without [`RunPlan::threads`], and on the clock of
    /// this machine for measured times.
    ///
    /// # Errors
    /// A file that the plan names is damaged, or a channel or packet of the evaluation is rejected.
    pub fn run(&self, plan: &RunPlan, progress: ProgressCallback<'_>) -> Result<Findings, PaperError> {
        let (form, published) = self.read()?;
        let mut figures = Figures::default();
        (self.measure)(&PaperRun { plan, form: &form, published: &published, progress }, &mut figures)?;
        form.findings(figures, &published, plan.quick)
    }

    /// Parses its plan and the published figures.
    pub(crate) fn read(&self) -> Result<(PlanFile, Published), PaperError> {
        Ok((PlanFile::read(self.plan)?, Published::read(self.published)?))
    }
}

/// Prose of an evaluation: its `paper.md`.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Name on the command line: lower case, digits and hyphens.
    pub name: &'static str,
    /// Subject, in one line.
    pub title: &'static str,
    /// Authors, title and place of the publication.
    pub source: &'static str,
    /// Claims, one paragraph each.
    pub claim: Vec<&'static str>,
    /// Method of measurement.
    pub method: Vec<&'static str>,
    /// Source of the published figures.
    pub theirs: Vec<&'static str>,
    /// Reasons for differences.
    pub why_different: Vec<&'static str>,
}

impl About {
    /// Year of the publication; `None` for an evaluation of our own, whose source begins with "Ours".
    pub fn year(&self) -> Option<&'static str> {
        let mut words = self.source.split(|c: char| !c.is_ascii_digit());
        let year = words.rfind(|word| word.len() == 4 && word.starts_with("20"));
        year.filter(|_| !self.source.starts_with("Ours"))
    }

    /// Parses a text with the title in its first line, then the source, and a heading for each of the other parts. A
    /// paragraph is a line.
    pub(crate) fn read(name: &'static str, text: &'static str) -> Self {
        let mut about = Self { name, ..Self::default() };
        let mut heading = "";
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(title) = line.strip_prefix("# ") {
                about.title = title;
            } else if let Some(next) = line.strip_prefix("## ") {
                heading = next;
            } else {
                match heading {
                    "Claim" => about.claim.push(line),
                    "Method" => about.method.push(line),
                    "Theirs" => about.theirs.push(line),
                    "Why different" => about.why_different.push(line),
                    _ => about.source = line,
                }
            }
        }
        about
    }
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// Fewer packets and seeds: seconds instead of minutes.
    pub quick: bool,
    /// Run every cell, including those that the default run skips: minutes more. No effect with `quick`.
    pub full: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// Number of threads, at least 1. It does not affect the figures.
    pub threads: usize,
    /// Folder of captures that may not be copied into this repository. Without it their rows are left out.
    pub shared: Option<PathBuf>,
    /// Also measure in real time: between network namespaces, as root, with external programs. Such figures depend on
    /// this machine. Without it, or where that is not possible, their rows are left out.
    pub real_time: bool,
    /// Path of the command `thinair`, for tunnels and links that run in their own processes. Without it the rows that
    /// need them are left out.
    pub program: Option<PathBuf>,
}

impl Default for RunPlan {
    /// Not quick, seed 1, one thread, no shared captures, nothing in real time.
    fn default() -> Self {
        Self { quick: false, full: false, seed: 1, threads: 1, shared: None, real_time: false, program: None }
    }
}

/// Results of a run.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// All figures, with unique ids.
    pub rows: Vec<FigureRow>,
    /// The rows as tables and plots, tables first.
    pub ours: Vec<Section>,
    /// Measurements that were left out, and the reasons.
    pub left_out: Vec<String>,
}

impl Findings {
    /// Rows whose bar is not met.
    pub fn missed(&self) -> impl Iterator<Item = &FigureRow> {
        self.rows.iter().filter(|row| !row.met())
    }
}

/// Reason that a run has no results.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    /// A capture cannot be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// Path of the capture.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A capture cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the capture.
        path: PathBuf,
        /// Error, and its position.
        source: thinair_capture::Error,
    },
    /// The parameters of a channel contradict each other.
    #[error("invalid channel")]
    Channel(#[from] ChannelError),
    /// A compressor rejected a packet.
    #[error("cannot compress a packet")]
    Compress(#[from] CompressError),
    /// The plan of an evaluation is inconsistent.
    #[error("invalid plan of the evaluation: {0}")]
    Form(String),
    /// A run in virtual time has invalid parameters.
    #[error("invalid run")]
    Broadcast(#[from] thinair_simulation::broadcast::BroadcastError),
    /// A tunnel has an invalid configuration.
    #[error("invalid tunnel: {0}")]
    Tunnel(String),
    /// The headers of a stack have no cycle.
    #[error("the sizes of the headers have no cycle")]
    HeaderCycle(#[from] thinair_simulation::HeaderCycleError),
    /// The system rejected an operation of a run in real time.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Os(#[from] thinair_os::Error),
    /// A file or a program of a run in real time failed.
    #[error("run in real time")]
    Io(#[from] std::io::Error),
    /// A program of a run in real time failed.
    #[error("run in real time: {0}")]
    RealTime(String),
    /// A signal interrupted the run.
    #[error("interrupted")]
    Interrupted,
}

/// Paper of that name.
pub fn by_name(name: &str) -> Option<&'static Paper> {
    PAPERS.iter().find(|paper| paper.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn papers_are_in_the_order_of_their_names() {
        let names: Vec<_> = PAPERS.iter().map(|paper| paper.about().name).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        assert!(names.iter().all(|name| by_name(name).is_some_and(|paper| paper.about().name == *name)));
        assert!(by_name("coap").is_none());
    }

    #[test]
    fn every_paper_says_all_there_is_to_say() {
        for paper in PAPERS {
            let about = paper.about();
            assert!(!about.title.is_empty() && !about.source.is_empty(), "{}", about.name);
            for part in [&about.claim, &about.method, &about.theirs, &about.why_different] {
                assert!(!part.is_empty(), "{}", about.name);
            }
        }
    }

    #[test]
    fn plans_of_full_runs_have_cells_that_can_be_told_apart() {
        for paper in PAPERS {
            let (form, _) = paper.read().expect("it is written well");
            let [quick, full] = [true, false].map(|quick| form.cells(quick).expect("variables are there"));
            assert!(quick.len() <= full.len() && full.iter().all(|cell| cell.runs > 0), "{}", paper.name);
        }
    }
}
