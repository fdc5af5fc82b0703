//! Captures from files and standard input, read by one or several threads, with a progress bar on terminals.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Read};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Context;
use thinair_analyze::{Analysis, Outcome, Settings, Survey};
use thinair_capture::{Error, Reader};

use crate::progress::{self, ProgressBar};
use crate::values::is_stdio;

/// Size from which a progress bar is shown, in octets.
const LARGE: u64 = 8 * 1024 * 1024;

/// Open captures. All are opened first, so that a wrong file name is reported at once.
pub(crate) struct Captures {
    files: Vec<(String, File)>,
    /// Numbers of files that are no captures.
    left_out: Vec<usize>,
    /// Progress bar for large captures.
    bar: Option<ProgressBar>,
}

/// Number of readings of each capture, those of further threads aside.
const READINGS: u64 = 2;

impl Captures {
    pub(crate) fn open(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        for path in paths {
            let name = path.display().to_string();
            let file = match is_stdio(path) {
                true => spooled(io::stdin().lock()).context("cannot store standard input")?,
                false => File::open(path).with_context(|| format!("cannot open {name}"))?,
            };
            let file = match is_stdio(path) || is_file(path) {
                true => file,
                false => spooled(file).with_context(|| format!("cannot read {name}"))?,
            };
            files.push((name, file));
        }
        let total: u64 = files.iter().filter_map(|(_, file)| Some(file.metadata().ok()?.len())).sum();
        Ok(Self { files, left_out: Vec::new(), bar: bar(total * READINGS) })
    }

    /// Returns a single open capture.
    pub(crate) fn of(name: &str, file: File) -> Self {
        let total = file.metadata().map_or(0, |metadata| metadata.len());
        let files = vec![(name.to_owned(), file)];
        Self { files, left_out: Vec::new(), bar: bar(total * READINGS) }
    }

    /// Returns the most frequent EtherType in the frames of a capture; of several, the lowest. `None` if there is
    /// none.
    pub(super) fn main_ethertype(&self, at: usize) -> Option<u16> {
        let (_, file) = self.files.get(at)?;
        let mut reader = Reader::new(FromStart::of(file)).ok()?;
        let mut frames: BTreeMap<u16, u64> = BTreeMap::new();
        while let Some(record) = reader.next_record() {
            if let Some(ethertype) = record.ok().and_then(|record| record.ethertype()) {
                *frames.entry(ethertype).or_default() += 1;
            }
        }
        let main = frames.into_iter().rev().max_by_key(|(_, frames)| *frames);
        main.map(|(ethertype, _)| ethertype)
    }

    /// Reads all captures for the survey. Of several files, those that are no captures are left out, unless all are.
    pub(crate) fn survey(&mut self, settings: &Settings) -> anyhow::Result<Survey> {
        let mut survey = Survey::default();
        let (mut left_out, mut first) = (Vec::new(), None);
        for (at, (name, file)) in self.files.iter().enumerate() {
            match survey.read(settings, FromStart::of(file), self.progress()) {
                Ok(()) => {}
                Err(error @ Error::Io { .. }) => return Err(error).with_context(|| name.clone()),
                Err(error) => {
                    survey.leave_out();
                    left_out.push(at);
                    first.get_or_insert((name, error));
                }
            }
        }
        match first {
            Some((name, error)) if left_out.len() == self.files.len() => Err(error).context(name.clone()),
            Some(_) | None => {
                self.left_out = left_out;
                Ok(survey)
            }
        }
    }

    /// True for a file that the survey found to be no capture.
    pub(super) fn is_left_out(&self, at: usize) -> bool {
        self.left_out.contains(&at)
    }

    /// Reads all captures again for the analysis, in at most `jobs` threads.
    pub(crate) fn analyze(&self, settings: &Settings, survey: &Survey, jobs: u16) -> anyhow::Result<Outcome> {
        let shards = survey.shards(jobs.into());
        let threads = usize::from(jobs) / shards.len();
        let shards = shards.into_iter().enumerate();
        let parts = thread::scope(|scope| {
            let run = |(number, only)| {
                let settings = Settings { only, ..settings.clone() };
                scope.spawn(move || self.shard(settings, survey.clone(), threads, number == 0))
            };
            let threads: Vec<_> = shards.map(run).collect();
            let parts =
                threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            parts.collect::<anyhow::Result<Vec<_>>>()
        })?;
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        Ok(Outcome::merge(parts)?)
    }

    /// Reads all captures for a part of the partitions. One of several parts shows its progress.
    fn shard(
        &self,
        settings: Settings,
        survey: Survey,
        threads: usize,
        is_shown: bool,
    ) -> anyhow::Result<Outcome> {
        let mut analysis = Analysis::new(settings, survey).with_threads(threads);
        for (at, (name, file)) in self.files.iter().enumerate() {
            let mut progress = self.progress();
            let shown = |octets| {
                if is_shown {
                    progress(octets)
                }
            };
            match analysis.read(name, FromStart::of(file), shown) {
                Err(error) if self.is_left_out(at) => analysis.leave_out(name, &error),
                read => read.with_context(|| name.clone())?,
            }
        }
        Ok(analysis.finish())
    }

    /// Returns a function that receives the octets read so far of one capture.
    fn progress(&self) -> impl FnMut(u64) {
        let mut shown = 0;
        move |octets| {
            if let Some(bar) = &self.bar {
                bar.inc(octets - shown);
            }
            shown = octets;
        }
    }
}

/// Reads a file from its start. Threads that read one file need a position each.
struct FromStart<'f> {
    file: &'f File,
    position: u64,
}

impl<'f> FromStart<'f> {
    fn of(file: &'f File) -> Self {
        Self { file, position: 0 }
    }
}

impl Read for FromStart<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let len = std::os::unix::fs::FileExt::read_at(self.file, out, self.position)?;
        #[cfg(windows)]
        let len = std::os::windows::fs::FileExt::seek_read(self.file, out, self.position)?;
        self.position += len as u64;
        Ok(len)
    }
}

/// Returns a file without a name, which is removed when it is closed.
pub(super) fn temporary_file() -> io::Result<File> {
    let random = RandomState::new().build_hasher().finish();
    let path = std::env::temp_dir().join(format!("thinair-{random:016x}"));
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// True for a path to a file that can be read several times.
pub(super) fn is_file(path: &Path) -> bool {
    !is_stdio(path) && path.is_file()
}

/// Copies a pipe to a temporary file, since it cannot be read twice.
fn spooled(mut pipe: impl Read) -> io::Result<File> {
    let mut file = temporary_file()?;
    io::copy(&mut pipe, &mut file)?;
    Ok(file)
}

fn bar(total: u64) -> Option<ProgressBar> {
    (total > LARGE).then(|| progress::bar(total, progress::OCTETS))
}
