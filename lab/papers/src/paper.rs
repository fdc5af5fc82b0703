//! What a paper is: words that do not change, and a measurement that a plan decides.

use std::path::PathBuf;

use thinair_report::Section;
use thinair_rohc::{ChannelError, CompressError};

use crate::PAPERS;
use crate::form::{Figures, Form, Published, Run};
use crate::row::Row;

/// Told now and then how far a run is: steps done, steps in all.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// A published evaluation that can be run again.
#[derive(Debug)]
pub struct Paper {
    pub(crate) name: &'static str,
    /// `paper.md`.
    pub(crate) words: &'static str,
    /// `plan.toml`.
    pub(crate) plan: &'static str,
    /// `published.csv`, empty if there is none.
    pub(crate) published: &'static str,
    pub(crate) is_real_time: bool,
    pub(crate) measure: fn(&Run<'_>, &mut Figures) -> Result<(), Error>,
}

impl Paper {
    /// What it is, and what was claimed.
    pub fn about(&self) -> About {
        About::read(self.name, self.words)
    }

    /// Whether there is nothing but what is measured in real time, so that a quick run measures that, too.
    pub fn is_real_time(&self) -> bool {
        self.is_real_time
    }

    /// Measures. Nothing of what is found depends on anything but `plan`, except [`Plan::threads`], on which
    /// nothing depends, and except times by the clock of this machine.
    ///
    /// # Errors
    /// A file that the plan names is damaged, or a channel or packet of the evaluation is refused.
    pub fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        let (form, published) = self.read()?;
        let mut figures = Figures::default();
        (self.measure)(&Run { plan, form: &form, published: &published, progress }, &mut figures)?;
        form.findings(figures, &published)
    }

    /// Reads its plan and the figures of others.
    pub(crate) fn read(&self) -> Result<(Form, Published), Error> {
        Ok((Form::read(self.plan)?, Published::read(self.published)?))
    }
}

/// The words of an evaluation: its `paper.md`.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The name on the command line: lower case, digits and hyphens.
    pub name: &'static str,
    /// What it is about, in one line.
    pub title: &'static str,
    /// Who published what, and where.
    pub source: &'static str,
    /// Their claims, a paragraph each.
    pub claim: Vec<&'static str>,
    /// How it is measured here.
    pub method: Vec<&'static str>,
    /// Where the figures of others come from.
    pub theirs: Vec<&'static str>,
    /// Why ours are others.
    pub why_different: Vec<&'static str>,
}

impl About {
    /// Reads a text with the title in its first line, then the source, and a heading for each of the other parts. A paragraph is a line.
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

/// How an evaluation is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Fewer packets and seeds: seconds instead of minutes.
    pub quick: bool,
    /// All there is, where a run that is not quick still leaves something out: minutes more. Of no effect with `quick`.
    pub full: bool,
    /// Everything that looks random follows from it.
    pub seed: u64,
    /// Threads that share the work, at least 1. They change no figure.
    pub threads: usize,
    /// Where captures are that may not be copied into this repository. Without it their rows are left out.
    pub shared: Option<PathBuf>,
    /// Also measure in real time what can be: between network namespaces, as root, with the programs that it takes.
    /// Such figures are of this machine. Without it, or where that cannot be, their rows are left out.
    pub real_time: bool,
    /// The command `thinair`, for tunnels and links that run in processes of their own. Without it rows that need them are
    /// left out.
    pub program: Option<PathBuf>,
}

impl Default for Plan {
    /// Not quick, seed 1, one thread, no shared captures, nothing in real time.
    fn default() -> Self {
        Self { quick: false, full: false, seed: 1, threads: 1, shared: None, real_time: false, program: None }
    }
}

/// What a run has found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Every figure. Ids are unique.
    pub rows: Vec<Row>,
    /// The rows as they are best read: tables first, then plots.
    pub ours: Vec<Section>,
    /// What was not measured, and why.
    pub left_out: Vec<String>,
}

impl Findings {
    /// The rows whose bar is not met.
    pub fn missed(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| !row.met())
    }
}

/// Why there are no findings.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A capture cannot be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// The capture.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A capture cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The capture.
        path: PathBuf,
        /// Where and what is wrong.
        source: thinair_capture::Error,
    },
    /// The parameters of a channel contradict each other.
    #[error("a channel of the evaluation cannot be")]
    Channel(#[from] ChannelError),
    /// A compressor refused a packet.
    #[error("a packet of the evaluation is refused")]
    Compress(#[from] CompressError),
    /// The plan of an evaluation contradicts itself.
    #[error("the plan of the evaluation: {0}")]
    Form(String),
    /// A run in virtual time cannot be.
    #[error("a run of the evaluation cannot be")]
    Broadcast(#[from] thinair_simulation::broadcast::Error),
    /// A tunnel cannot be as the evaluation has it.
    #[error("a tunnel of the evaluation cannot be: {0}")]
    Tunnel(String),
    /// The headers of a stack are not what they have to be.
    #[error("headers of the evaluation do not repeat")]
    HeaderCycle(#[from] thinair_simulation::HeaderCycleError),
    /// The system refused something that a run in real time needs.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Os(#[from] thinair_os::Error),
    /// A file or a program of a run in real time failed.
    #[error("a run in real time")]
    Io(#[from] std::io::Error),
    /// A program of a run in real time did not do what it must.
    #[error("a run in real time: {0}")]
    RealTime(String),
    /// A signal asked to end.
    #[error("interrupted")]
    Interrupted,
}

/// The paper of that name.
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
