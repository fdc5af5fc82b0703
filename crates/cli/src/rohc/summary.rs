//! Counters of the conversions, and their output: text on standard error, or JSON.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Context as _;
use serde_json::{Value, json};
use thinair_report::Numerals;
use thinair_rohc::feedback::FeedbackError;
use thinair_rohc::{CidSpace, Compressed, Decompressed, Format, ProfileId};

use super::conversion::{ConversionArguments, ConversionSettings};
use crate::records::{ReasonTally, name, number, reasons};
use crate::values::is_stdio;

const SCHEMA: &str = "thinair.rohc/1";

impl ReasonTally {
    pub(super) fn total(&self) -> u64 {
        self.0.values().map(|(count, _)| count).sum()
    }

    fn to_json(&self) -> Value {
        self.0.iter().map(|(reason, (count, _))| ((*reason).to_owned(), Value::from(*count))).collect()
    }
}

/// Packets by format, listed in the order of the formats.
#[derive(Debug, Default)]
struct Formats(BTreeMap<Format, u64>);

impl Formats {
    fn add(&mut self, format: Format) {
        *self.0.entry(format).or_default() += 1;
    }

    fn to_json(&self) -> Value {
        self.0.iter().map(|(format, count)| (format.name().to_owned(), Value::from(*count))).collect()
    }
}

impl fmt::Display for Formats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (format, count)) in self.0.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{} {}", format.name(), number(*count))?;
        }
        Ok(())
    }
}

/// Counters of feedback elements.
#[derive(Debug, Default)]
pub(super) struct FeedbackCounts {
    /// Elements created by a decompressor of this command.
    pub(super) made: u64,
    /// Octets of those, including their type octets.
    pub(super) octets_made: u64,
    /// Elements that the compressor accepted.
    pub(super) taken: u64,
    /// Elements and records that the compressor rejected.
    pub(super) refused: ReasonTally,
}

impl FeedbackCounts {
    /// Counts the outcome of one element.
    pub(super) fn receive(&mut self, record: u64, outcome: Result<(), FeedbackError>) {
        match outcome {
            Ok(()) => self.taken += 1,
            Err(error) => {
                self.refused.add(error.name(), record);
            }
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "made": self.made,
            "octets_made": self.octets_made,
            "taken": self.taken,
            "refused": self.refused.to_json(),
        })
    }
}

/// Counters of `compress`.
#[derive(Debug, Default)]
pub(super) struct CompressSummary {
    pub(super) records: u64,
    pub(super) skipped: ReasonTally,
    /// Packets extracted from tunnels, by kind of tunnel.
    pub(super) unwrapped: BTreeMap<&'static str, u64>,
    pub(super) packets: u64,
    octets_in: u64,
    octets_out: u64,
    header_octets_in: u64,
    header_octets_out: u64,
    refreshes: u64,
    formats: Formats,
    pub(super) feedback: FeedbackCounts,
    /// Packets that the command's own decompressor did not restore exactly.
    pub(super) mismatches: ReasonTally,
}

impl CompressSummary {
    pub(super) fn count(&mut self, packet: &[u8], compressed: &Compressed) {
        self.packets += 1;
        self.octets_in += packet.len() as u64;
        self.octets_out += compressed.len as u64;
        self.header_octets_in += compressed.header_in as u64;
        self.header_octets_out += compressed.header_out as u64;
        self.refreshes += u64::from(compressed.refresh);
        self.formats.add(compressed.format);
    }

    /// Counts a feedback element that is sent on the same link.
    pub(super) fn count_feedback(&mut self, octets: usize) {
        self.feedback.made += 1;
        self.feedback.octets_made += octets as u64;
        self.octets_out += octets as u64;
    }

    pub(super) fn print(
        &self,
        arguments: &ConversionArguments,
        settings: &ConversionSettings,
    ) -> anyhow::Result<()> {
        if arguments.json {
            return print_json(arguments, settings, "compress", self.to_json());
        }
        let mut lines = SummaryLines::new(arguments, "compress");
        lines.add("packets", format!("{} of {} records", number(self.packets), number(self.records)));
        lines.add("octets", change(self.octets_in, self.octets_out));
        lines.add("headers", change(self.header_octets_in, self.header_octets_out));
        lines.add("packet types", &self.formats);
        lines.add_unless_zero("refreshes", self.refreshes);
        lines.add("unwrapped", reasons(&self.unwrapped));
        lines.add("skipped", &self.skipped);
        lines.add_feedback(&self.feedback);
        lines.add("NOT RESTORED", &self.mismatches);
        lines.add_template(settings);
        lines.print();
        Ok(())
    }

    fn to_json(&self) -> Value {
        json!({
            "records": self.records,
            "packets": self.packets,
            "skipped": self.skipped.to_json(),
            "unwrapped": &self.unwrapped,
            "octets_in": self.octets_in,
            "octets_out": self.octets_out,
            "saved_ratio": saved_ratio(self.octets_in, self.octets_out),
            "header_octets_in": self.header_octets_in,
            "header_octets_out": self.header_octets_out,
            "refreshes": self.refreshes,
            "packet_types": self.formats.to_json(),
            "feedback": self.feedback.to_json(),
            "mismatches": self.mismatches.to_json(),
        })
    }
}

/// Counters of `decompress`.
#[derive(Debug, Default)]
pub(super) struct DecompressSummary {
    pub(super) records: u64,
    pub(super) skipped: ReasonTally,
    pub(super) packets: u64,
    /// Packets read as those of one direction, in frames that name their direction.
    pub(super) sides: u64,
    pub(super) octets_in: u64,
    pub(super) delivered: u64,
    octets_out: u64,
    /// Packets that updated a context and contained no IP packet.
    only_updates: u64,
    /// Packets with feedback only, and segments of an incomplete unit.
    pub(super) nothing_yet: u64,
    pub(super) not_delivered: ReasonTally,
    formats: Formats,
    /// Feedback elements in front of packets, for the compressor at the other end.
    pub(super) feedback_in_front: u64,
    pub(super) feedback: FeedbackCounts,
}

impl DecompressSummary {
    pub(super) fn count(&mut self, done: &Decompressed) {
        if done.len > 0 {
            self.delivered += 1;
        } else {
            self.only_updates += 1;
        }
        self.octets_out += done.len as u64;
        self.formats.add(done.format);
    }

    pub(super) fn print(
        &self,
        arguments: &ConversionArguments,
        settings: &ConversionSettings,
    ) -> anyhow::Result<()> {
        if arguments.json {
            return print_json(arguments, settings, "decompress", self.to_json());
        }
        let mut lines = SummaryLines::new(arguments, "decompress");
        lines.add("packets", format!("{} of {} records", number(self.packets), number(self.records)));
        lines.add("delivered", number(self.delivered));
        lines.add("octets", format!("{} -> {}", number(self.octets_in), number(self.octets_out)));
        lines.add("packet types", &self.formats);
        lines.add("not delivered", &self.not_delivered);
        lines.add_unless_zero("updates only", self.only_updates);
        lines.add_unless_zero("feedback or segment only", self.nothing_yet);
        lines.add("skipped", &self.skipped);
        lines.add_unless_zero("feedback in front", self.feedback_in_front);
        lines.add_feedback(&self.feedback);
        lines.add_template(settings);
        lines.print();
        Ok(())
    }

    fn to_json(&self) -> Value {
        json!({
            "records": self.records,
            "packets": self.packets,
            "skipped": self.skipped.to_json(),
            "delivered": self.delivered,
            "not_delivered": self.not_delivered.to_json(),
            "only_updates": self.only_updates,
            "nothing_yet": self.nothing_yet,
            "octets_in": self.octets_in,
            "octets_out": self.octets_out,
            "packet_types": self.formats.to_json(),
            "feedback_in_front": self.feedback_in_front,
            "feedback": self.feedback.to_json(),
        })
    }
}

/// Lines of a label and a value; empty values are omitted.
struct SummaryLines {
    title: String,
    lines: Vec<(&'static str, String)>,
}

impl SummaryLines {
    fn new(arguments: &ConversionArguments, command: &str) -> Self {
        let input = name(&arguments.input, "standard input");
        let output = name(&arguments.output, "standard output");
        Self { title: format!("{command}: {input} -> {output}"), lines: Vec::new() }
    }

    fn add(&mut self, label: &'static str, value: impl ToString) {
        let value = value.to_string();
        if !value.is_empty() {
            self.lines.push((label, value));
        }
    }

    fn add_unless_zero(&mut self, label: &'static str, value: u64) {
        if value > 0 {
            self.add(label, number(value));
        }
    }

    fn add_feedback(&mut self, feedback: &FeedbackCounts) {
        if feedback.made > 0 {
            let (made, octets) = (number(feedback.made), number(feedback.octets_made));
            self.add("feedback made", format!("{made} elements, {octets} octets"));
        }
        self.add_unless_zero("feedback taken", feedback.taken);
        self.add("feedback refused", &feedback.refused);
    }

    /// Adds the name of the bases, which both ends compare.
    fn add_template(&mut self, settings: &ConversionSettings) {
        self.add("template", settings.template.as_deref().unwrap_or_default());
    }

    fn print(&self) {
        let width = self.lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        eprintln!("{}", self.title);
        for (label, value) in &self.lines {
            eprintln!("  {label:width$}  {value}");
        }
    }
}

/// Prints the summary with the name of its schema and command.
fn print_json(
    arguments: &ConversionArguments,
    settings: &ConversionSettings,
    command: &str,
    mut summary: Value,
) -> anyhow::Result<()> {
    let channel = &settings.channel;
    let head = json!({
        "schema": SCHEMA,
        "command": command,
        "input": arguments.input.display().to_string(),
        "output": arguments.output.display().to_string(),
        "mode": settings.mode.letter(),
        "channel": {
            "cid": match channel.cids() {
                CidSpace::Small => "small",
                CidSpace::Large => "large",
            },
            "max_cid": channel.max_cid(),
            "profiles": channel.profiles().iter().map(ProfileId::name).collect::<Vec<_>>(),
            "template": settings.template,
        },
    });
    if let (Value::Object(summary), Value::Object(head)) = (&mut summary, head) {
        summary.extend(head);
    }
    let text = serde_json::to_string_pretty(&summary)?;
    if is_stdio(&arguments.output) {
        eprintln!("{text}");
        return Ok(());
    }
    print_line(&text)
}

/// Prints to standard output. A closed pipe is an error, not a panic.
fn print_line(text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    writeln!(std::io::stdout(), "{text}").context("cannot write standard output")
}

/// Formats as `12,345 -> 6,789 (45.0 % saved)`.
fn change(before: u64, after: u64) -> String {
    let saved = saved_ratio(before, after)
        .map(|ratio| format!(" ({} saved)", Numerals::TERMINAL.percent(ratio, 1)))
        .unwrap_or_default();
    format!("{} -> {}{saved}", number(before), number(after))
}

/// Returns the share saved, negative for growth; `None` if there was nothing.
fn saved_ratio(before: u64, after: u64) -> Option<f64> {
    (before > 0).then(|| 1.0 - after as f64 / before as f64)
}
