//! Captures from files and standard input, with a progress bar on terminals.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Seek};
use std::path::PathBuf;

use anyhow::Context;
use thinair_analyze::{Analysis, Settings, Survey};

use crate::progress::{self, ProgressBar};
use crate::values::is_stdio;

/// Size from which a progress bar is shown, in octets.
const LARGE: u64 = 8 * 1024 * 1024;

/// Open captures. All are opened first, so that a wrong file name is reported at once.
pub(crate) struct Captures {
    files: Vec<(String, File)>,
    /// Progress bar for large captures.
    bar: Option<ProgressBar>,
    /// Octets read before the current reading.
    before: u64,
}

/// Number of readings of each capture.
const READINGS: u64 = 2;

impl Captures {
    pub(crate) fn open(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        for path in paths {
            let name = path.display().to_string();
            let file = match is_stdio(path) {
                true => spooled().context("cannot store standard input")?,
                false => File::open(path).with_context(|| format!("cannot open {name}"))?,
            };
            files.push((name, file));
        }
        let total: u64 = files.iter().filter_map(|(_, file)| Some(file.metadata().ok()?.len())).sum();
        Ok(Self { files, bar: bar(total * READINGS), before: 0 })
    }

    /// Returns a single open capture.
    pub(crate) fn of(name: &str, file: File) -> Self {
        let total = file.metadata().map_or(0, |metadata| metadata.len());
        Self { files: vec![(name.to_owned(), file)], bar: bar(total * READINGS), before: 0 }
    }

    /// Reads all captures for the survey.
    pub(crate) fn survey(&mut self, settings: &Settings) -> anyhow::Result<Survey> {
        let mut survey = Survey::default();
        self.each(|_, file, progress| survey.read(settings, file, progress))?;
        for (name, file) in &mut self.files {
            file.rewind().with_context(|| format!("cannot read {name} a second time"))?;
        }
        Ok(survey)
    }

    /// Reads all captures again for the analysis.
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

/// Copies standard input to a temporary file, since a pipe cannot be read twice.
fn spooled() -> io::Result<File> {
    let mut file = temporary_file()?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    file.rewind()?;
    Ok(file)
}

fn bar(total: u64) -> Option<ProgressBar> {
    (total > LARGE).then(|| progress::bar(total, progress::OCTETS))
}
