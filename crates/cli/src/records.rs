//! Captures that are read record by record, and what is passed over in them.

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

/// How messages call an input or output.
pub(crate) fn name(path: &Path, stdio: &str) -> String {
    if is_stdio(path) { stdio.to_owned() } else { path.display().to_string() }
}

/// A capture that is read.
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) reader: Reader<Box<dyn Read>>,
}

impl Input {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let name = name(path, "standard input");
        let read: Box<dyn Read> = if is_stdio(path) {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path).with_context(|| format!("cannot open {name}"))?)
        };
        let reader = Reader::new(read).with_context(|| format!("cannot read {name}"))?;
        Ok(Self { name, reader })
    }
}

/// Passes over a record that cannot be read, with a note on the first one; fails if the file itself cannot be.
pub(crate) fn unreadable(
    name: &str,
    error: thinair_capture::Error,
    skipped: &mut Tally,
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
        let after = if error.ends_reading() { "what comes before it is used" } else { "passed over" };
        eprintln!("note: {name}: {error}; {after}");
    }
    Ok(())
}

/// The time of records as the engines want it: it never goes back, though times in real captures do.
#[derive(Debug, Default)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn at(&mut self, time: Timestamp) -> Instant {
        self.0 = self.0.max(Instant::from_nanos(time.as_nanos()));
        self.0
    }
}

/// Occurrences by reason, and the record of the first one of each.
#[derive(Debug, Default)]
pub(crate) struct Tally(pub(crate) BTreeMap<&'static str, (u64, u64)>);

impl Tally {
    /// Counts one more; returns how often the reason was met so far.
    pub(crate) fn add(&mut self, reason: &'static str, record: u64) -> u64 {
        let (count, _) = self.0.entry(reason).or_insert((0, record));
        *count += 1;
        *count
    }
}

/// `not_ip 2 (first: record 5), truncated 1 (record 9)`.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (reason, (count, record))) in self.0.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            let first = if *count > 1 { "first: " } else { "" };
            write!(f, "{comma}{reason} {} ({first}record {record})", number(*count))?;
        }
        Ok(())
    }
}

/// `truncated 3, not_ip 1`.
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
