//! Where captures come from: files and standard input, with a progress bar where somebody may be waiting.

use std::fs::File;
use std::io::{self, IsTerminal, Seek};
use std::path::{Path, PathBuf};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use thinair_analyze::Analysis;

/// Octets from which on reading takes long enough to show it.
const LARGE: u64 = 8 * 1024 * 1024;

pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads a capture that is open into `analysis`.
pub(crate) fn read_file(name: &str, file: File, analysis: &mut Analysis) -> anyhow::Result<()> {
    let bar = progress_bar(file.metadata().map_or(0, |metadata| metadata.len()) * analysis.readings());
    analysis.read(name, file, |octets| bar.set_position(octets)).with_context(|| name.to_owned())?;
    bar.finish_and_clear();
    Ok(())
}

/// Reads all captures into `analysis`. Every file is opened before the first is read: a wrong name is told at
/// once, not after minutes.
pub(crate) fn read_all(paths: &[PathBuf], analysis: &mut Analysis) -> anyhow::Result<()> {
    let mut files = Vec::new();
    for path in paths {
        let file = match is_stdin(path) {
            true => spooled().context("cannot keep standard input")?,
            false => File::open(path).with_context(|| format!("cannot open {}", path.display()))?,
        };
        files.push((path, file));
    }
    let total: u64 = files.iter().filter_map(|(_, file)| Some(file.metadata().ok()?.len())).sum();
    let bar = progress_bar(total * analysis.readings());
    let mut before = 0;
    for (path, file) in files {
        let name = path.display().to_string();
        let mut latest = 0;
        let progress = |octets| {
            latest = octets;
            bar.set_position(before + octets);
        };
        analysis.read(&name, file, progress).with_context(|| name.clone())?;
        before += latest;
    }
    bar.finish_and_clear();
    Ok(())
}

/// Standard input in a file without a name, as a pipe cannot be read twice.
fn spooled() -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    file.rewind()?;
    Ok(file)
}

fn progress_bar(total: u64) -> ProgressBar {
    if total <= LARGE || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total);
    let style =
        ProgressStyle::with_template("{wide_bar} {decimal_bytes} of {decimal_total_bytes}, {eta} left");
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
