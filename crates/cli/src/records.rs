//! Captures read record by record, and the records that are skipped.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context as _;
use thinair_capture::{Reader, Timestamp};
use thinair_report::Numerals;
use thinair_rohc::Instant;

use crate::values::is_stdio;

/// Name of an input or output in messages.
pub(crate) fn name(path: &Path, stdio: &str) -> String {
    if is_stdio(path) { stdio.to_owned() } else { path.display().to_string() }
}

/// An open capture.
pub(crate) struct OpenCapture<'c> {
    pub(crate) name: String,
    pub(crate) reader: Reader<Box<dyn Read + 'c>>,
}

impl<'c> OpenCapture<'c> {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let name = name(path, "standard input");
        let read: Box<dyn Read> = if is_stdio(path) {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path).with_context(|| format!("cannot open {name}"))?)
        };
        Self::new(name, read)
    }

    /// Reads the file header.
    pub(crate) fn new(name: String, read: Box<dyn Read + 'c>) -> anyhow::Result<Self> {
        let reader = Reader::new(read).with_context(|| format!("cannot read {name}"))?;
        Ok(Self { name, reader })
    }
}

/// Skips a record that cannot be read, and prints a note on the first one.
///
/// # Errors
/// The file itself cannot be read.
pub(crate) fn unreadable(
    name: &str,
    error: thinair_capture::Error,
    skipped: &mut ReasonTally,
) -> anyhow::Result<()> {
    if matches!(error, thinair_capture::Error::Io { .. }) {
        return Err(error).with_context(|| format!("cannot read {name}"));
    }
    let record = match error {
        thinair_capture::Error::Truncated { record, .. }
        | thinair_capture::Error::Malformed { record, .. } => record,
        _ => 0,
    };
    if skipped.add("unreadable", record) == 1 {
        let after = if error.ends_reading() { "the records before it are used" } else { "skipped" };
        eprintln!("note: {name}: {error}; {after}");
    }
    Ok(())
}

/// Monotonic time of records. Times in real captures can go backwards; this one then stands still.
#[derive(Debug, Default)]
pub(crate) struct RecordClock(Instant);

impl RecordClock {
    pub(crate) fn at(&mut self, time: Timestamp) -> Instant {
        self.0 = self.0.max(Instant::from_nanos(time.as_nanos()));
        self.0
    }
}

/// Counts by reason, with the number of the first record of each.
#[derive(Debug, Default)]
pub(crate) struct ReasonTally(pub(crate) BTreeMap<&'static str, (u64, u64)>);

impl ReasonTally {
    /// Adds one; returns the count of this reason.
    pub(crate) fn add(&mut self, reason: &'static str, record: u64) -> u64 {
        let (count, _) = self.0.entry(reason).or_insert((0, record));
        *count += 1;
        *count
    }

    /// The most frequent reason; of several, the first by name. Empty if nothing was counted.
    pub(crate) fn main(&self) -> &'static str {
        let main = self.0.iter().rev().max_by_key(|(_, (count, _))| *count);
        main.map_or("", |(reason, _)| reason)
    }
}

/// Formats as `not_ip 2 (first: record 5), truncated 1 (record 9)`.
impl fmt::Display for ReasonTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (reason, (count, record))) in self.0.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            let first = if *count > 1 { "first: " } else { "" };
            write!(f, "{comma}{reason} {} ({first}record {record})", number(*count))?;
        }
        Ok(())
    }
}

/// Formats counts as `truncated 3, not_ip 1`.
pub(crate) fn reasons(reasons: &BTreeMap<&'static str, u64>) -> String {
    let parts: Vec<_> = reasons
        .iter()
        .map(|(name, count)| format!("{name} {}", Numerals::TERMINAL.integer((*count).into())))
        .collect();
    parts.join(", ")
}

pub(crate) fn number(value: u64) -> String {
    Numerals::TERMINAL.integer(value.into())
}
