//! Where captures come from: files and standard input, with a progress bar where somebody may be waiting.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Seek};
use std::path::PathBuf;

use anyhow::Context;
use thinair_analyze::{Analysis, Settings, Survey};

use crate::progress::{self, ProgressBar};
use crate::values::is_stdio;

/// Octets from which on reading takes long enough to show it.
const LARGE: u64 = 8 * 1024 * 1024;

/// Captures that are open. A wrong name is reported at once, not after minutes.
pub(crate) struct Captures {
    files: Vec<(String, File)>,
    /// For captures that take long.
    bar: Option<ProgressBar>,
    /// Octets of all readings before the one that goes on.
    before: u64,
}

/// How often each capture is read.
const READINGS: u64 = 2;

impl Captures {
    pub(crate) fn open(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        for path in paths {
            let name = path.display().to_string();
            let file = match is_stdio(path) {
                true => spooled().context("cannot keep standard input")?,
                false => File::open(path).with_context(|| format!("cannot open {name}"))?,
            };
            files.push((name, file));
        }
        let total: u64 = files.iter().filter_map(|(_, file)| Some(file.metadata().ok()?.len())).sum();
        Ok(Self { files, bar: bar(total * READINGS), before: 0 })
    }

    /// One capture that is open.
    pub(crate) fn of(name: &str, file: File) -> Self {
        let total = file.metadata().map_or(0, |metadata| metadata.len());
        Self { files: vec![(name.to_owned(), file)], bar: bar(total * READINGS), before: 0 }
    }

    /// The first reading.
    pub(crate) fn survey(&mut self, settings: &Settings) -> anyhow::Result<Survey> {
        let mut survey = Survey::default();
        self.each(|_, file, progress| survey.read(settings, file, progress))?;
        for (name, file) in &mut self.files {
            file.rewind().with_context(|| format!("cannot read {name} a second time"))?;
        }
        Ok(survey)
    }

    /// The second reading.
    pub(crate) fn analyze(mut self, analysis: &mut Analysis) -> anyhow::Result<()> {
        self.each(|name, file, progress| analysis.read(name, file, progress))?;
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        Ok(())
    }

    fn each(
        &mut self,
        mut read: impl FnMut(&str, &File, &mut dyn FnMut(u64)) -> Result<(), thinair_capture::Error>,
    ) -> anyhow::Result<()> {
        for (name, file) in &self.files {
            let mut latest = 0;
            let mut progress = |octets| {
                latest = octets;
                if let Some(bar) = &self.bar {
                    bar.set_position(self.before + octets);
                }
            };
            read(name, file, &mut progress).with_context(|| name.clone())?;
            self.before += latest;
        }
        Ok(())
    }
}

/// A file without a name, for this process alone, which goes when it is closed.
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

/// Standard input in a file without a name, as a pipe cannot be read twice.
fn spooled() -> io::Result<File> {
    let mut file = temporary_file()?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    file.rewind()?;
    Ok(file)
}

fn bar(total: u64) -> Option<ProgressBar> {
    (total > LARGE).then(|| progress::bar(total, progress::OCTETS))
}
