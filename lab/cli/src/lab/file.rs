//! Files of results: a line for each completed run.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom};
use std::path::Path;

use anyhow::Context as _;
use thinair_simulation::plan::{Results, RunRecord};

/// Adds the results of a file. Returns the size of its complete lines, in octets, without a last line that was cut off.
pub(super) fn read(path: &Path, results: &mut Results) -> anyhow::Result<u64> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let whole = text.iter().rposition(|octet| *octet == b'\n').map_or(0, |last| last + 1);
    let text =
        std::str::from_utf8(&text[..whole]).with_context(|| format!("{} is not UTF-8", path.display()))?;
    for (line, number) in text.lines().zip(1..) {
        let added = RunRecord::of_line(line)
            .and_then(|record| results.add(record).map_err(|error| error.to_string()));
        added.map_err(|wrong| anyhow::anyhow!("{}:{number} {wrong}", path.display()))?;
    }
    Ok(whole as u64)
}

/// Opens a file to append to. With `resume`, adds its results to `results`.
pub(super) fn open(path: &Path, resume: bool, results: &mut Results) -> anyhow::Result<File> {
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let is_there = file.metadata().is_ok_and(|metadata| metadata.len() > 0);
    anyhow::ensure!(
        resume || !is_there,
        "{} is not empty; give --resume to go on with it, or another name",
        path.display()
    );
    if is_there {
        file.set_len(read(path, results)?).with_context(|| format!("cannot write {}", path.display()))?;
    }
    file.seek(SeekFrom::End(0)).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(file)
}
