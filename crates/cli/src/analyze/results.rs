//! `thinair analyze` without files and terminal: options and octets of captures in, documents out.

use std::io::{self, Write};

use anyhow::Context as _;
use clap::Parser;
use serde_json::Value;
use thinair_analyze::{Outcome, Settings, Tariff};
use thinair_capture::Reader;
use thinair_report::{Document, Numerals};

use super::advice::Advice;
use super::source::{Captures, FromStart, ReadAt, Reading};
use super::{AnalyzeArguments, advice, analyzed, json, page, settings, text, unusable, words};

/// The options of the command, alone.
#[derive(Parser, Debug)]
#[command(name = "thinair analyze", disable_help_flag = true)]
struct Line {
    #[command(flatten)]
    arguments: AnalyzeArguments,
}

/// Results of an analysis, in each form that the command writes.
#[derive(Debug)]
pub struct Results {
    arguments: AnalyzeArguments,
    settings: Settings,
    outcome: Outcome,
    notes: Vec<String>,
}

impl Results {
    /// Analyzes captures, each with a name, by options of `thinair analyze` that concern neither files nor an interface, in this thread. `tariff`: name
    /// and text of a price list. `begin` is called before each reading of all captures.
    ///
    /// # Errors
    /// Wrong options, a wrong price list, captures that cannot be read, or none that is a capture.
    pub fn of(
        options: impl IntoIterator<Item = String>,
        tariff: Option<(&str, &str)>,
        captures: Vec<(String, Box<dyn ReadAt>)>,
        begin: impl FnMut(Reading),
    ) -> anyhow::Result<Self> {
        let names = captures.iter().map(|(name, _)| name.clone());
        let line = ["thinair analyze".to_owned()].into_iter().chain(options).chain(["--".to_owned()]);
        let Line { mut arguments } = Line::try_parse_from(line.chain(names))?;
        arguments.jobs = Some(1);
        let is_of_files = arguments.tariff.is_some() || arguments.html.is_some();
        anyhow::ensure!(!is_of_files, "--tariff and --html are options of the command");
        let mut settings = settings(&arguments).map_err(anyhow::Error::msg)?;
        settings.bases = arguments.channel.bases()?;
        if let Some((name, text)) = tariff {
            let tariff = Tariff::read(text).map_err(|error| anyhow::anyhow!("{name}, {error}"))?;
            super::set_tariff(&mut settings, tariff)?;
        }
        let mut captures = Captures::named(captures);
        let outcome = analyzed(&arguments, &mut settings, &mut captures, begin)?;
        let mut notes = unusable::lines(&outcome, &captures);
        notes.extend(words::endings(&outcome).into_iter().chain(words::faults(&outcome)));
        Ok(Self { arguments, settings, outcome, notes })
    }

    /// Messages that the command writes on standard error: why a capture was not read to its end, and others.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Writes the document of `--json`, in many small pieces.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write_json(&self, mut out: impl Write) -> io::Result<()> {
        json::write(&self.outcome, &mut out)
    }

    /// Writes the table of `--csv`, in pieces.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write_csv(&self, mut out: impl Write) -> io::Result<()> {
        text::write_flows_csv(&self.outcome, &mut out)
    }

    /// Returns the report of `--html`.
    pub fn report(&self) -> Document {
        page::document(&self.settings, &self.outcome, &self.advice())
    }

    /// Returns the configuration of a tunnel, for both ends; `None` if the report recommends none.
    pub fn configuration(&self) -> Option<String> {
        self.advice().configuration()
    }

    fn advice(&self) -> Advice {
        advice(Numerals::TYPESET, &self.arguments, &self.settings, &self.outcome)
    }

    /// Returns the flows that have all figures as a table, largest first, and the sum of all others.
    pub fn flows(&self) -> Value {
        page::all_flows(&self.outcome).to_json()
    }
}

/// Reads the header of a capture.
///
/// # Errors
/// The octets are no capture, or cannot be read; the text is that of the command.
pub fn check(name: &str, capture: &dyn ReadAt) -> anyhow::Result<()> {
    Reader::new(FromStart::of(capture)).map(|_| ()).with_context(|| name.to_owned())
}
