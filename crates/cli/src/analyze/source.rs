//! Captures from files, standard input and elsewhere, read by one or several threads, with a progress bar on terminals.

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
use crate::records::OpenCapture;
use crate::values::is_stdio;

/// Size from which a progress bar is shown, in octets.
const LARGE: u64 = 8 * 1024 * 1024;

/// Octets that are read several times, each reading from its own position, also by several threads at a time.
pub trait ReadAt: Send + Sync {
    /// Reads octets from a position on into `out`; returns their number, 0 at the end.
    ///
    /// # Errors
    /// The octets cannot be read.
    fn read_at(&self, out: &mut [u8], position: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, out: &mut [u8], position: u64) -> io::Result<usize> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_at(self, out, position);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_read(self, out, position);
        #[cfg(not(any(unix, windows)))]
        return Err(io::Error::other(format!("{} octets at {position}: no files on this system", out.len())));
    }
}

/// Readings of all captures, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Finds flows, rules and prefixes.
    Survey,
    /// Learns bases of profile `coap`. Left out if there is nothing to learn.
    Learning,
    /// Sends the packets through all schemes.
    Analysis,
}

/// Open captures. All are opened first, so that a wrong file name is reported at once.
pub(crate) struct Captures {
    files: Vec<(String, Box<dyn ReadAt>)>,
    /// True if all will be there after the run, to learn bases from them.
    pub(super) are_kept: bool,
    /// Numbers of files that are no captures.
    left_out: Vec<usize>,
    /// Progress bar for large captures.
    bar: Option<ProgressBar>,
}

/// Number of readings of each capture, those of further threads aside.
const READINGS: u64 = 2;

impl Captures {
    pub(crate) fn open(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let (mut files, mut total) = (Vec::<(_, Box<dyn ReadAt>)>::new(), 0);
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
            total += file.metadata().map_or(0, |metadata| metadata.len());
            files.push((name, Box::new(file)));
        }
        let are_kept = paths.iter().all(|path| is_file(path));
        Ok(Self { files, are_kept, left_out: Vec::new(), bar: bar(total * READINGS) })
    }

    /// Returns a single open capture. `is_kept`: it is there after the run.
    pub(crate) fn of(name: &str, file: File, is_kept: bool) -> Self {
        let total = file.metadata().map_or(0, |metadata| metadata.len());
        Self {
            bar: bar(total * READINGS),
            are_kept: is_kept,
            ..Self::named(vec![(name.to_owned(), Box::new(file))])
        }
    }

    /// Returns captures that are no files, with their names.
    pub(super) fn named(files: Vec<(String, Box<dyn ReadAt>)>) -> Self {
        Self { files, are_kept: true, left_out: Vec::new(), bar: None }
    }

    /// Opens those that are captures once more.
    pub(super) fn reopened(&self) -> impl Iterator<Item = anyhow::Result<OpenCapture<'_>>> {
        let kept = self.files.iter().enumerate().filter(|(at, _)| !self.is_left_out(*at));
        kept.map(|(_, (name, file))| OpenCapture::new(name.clone(), Box::new(FromStart::of(&**file))))
    }

    /// Returns the most frequent EtherType in the frames of a capture; of several, the lowest. `None` if there is
    /// none.
    pub(super) fn main_ethertype(&self, at: usize) -> Option<u16> {
        let (_, file) = self.files.get(at)?;
        let mut reader = Reader::new(FromStart::of(&**file)).ok()?;
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
            match survey.read(settings, FromStart::of(&**file), self.progress()) {
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
        let mut others = shards.into_iter().map(|only| Settings { only, ..settings.clone() });
        let first = others.next();
        let parts = thread::scope(|scope| {
            let run = |settings| scope.spawn(move || self.shard(settings, survey.clone(), threads, false));
            let spawned: Vec<_> = others.map(run).collect();
            // A system without threads has one shard.
            let first = first.map(|settings| self.shard(settings, survey.clone(), threads, true));
            let parts =
                spawned.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            first.into_iter().chain(parts).collect::<anyhow::Result<Vec<_>>>()
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
            match analysis.read(name, FromStart::of(&**file), shown) {
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

/// Reads a capture from its start. Threads that read one capture need a position each.
pub(super) struct FromStart<'f> {
    file: &'f dyn ReadAt,
    position: u64,
}

impl<'f> FromStart<'f> {
    pub(super) fn of(file: &'f dyn ReadAt) -> Self {
        Self { file, position: 0 }
    }
}

impl Read for FromStart<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read_at(out, self.position)?;
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
