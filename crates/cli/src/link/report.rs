//! Result of a run, as a table or as JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use thinair_emulator::{DirectionTotals, Engine, Lateness, LinkEnds, RohcChannel, RunReport};
use thinair_link::{DropReason, Duplex, Side};
use thinair_report::{Cell, Column, Numerals, Table};
use thinair_rohc::ProfileId;

use super::model::LinkSpec;
use super::run::RunArguments;
use crate::terminal::{print as print_text, style};

const SCHEMA: &str = "thinair.link/1";

/// Width of the output in columns, if it is not a terminal.
const PLAIN_WIDTH: usize = 120;

/// Percentiles of lateness.
const PERCENTILES: [u32; 3] = [50, 90, 99];

pub(super) fn print(
    arguments: &RunArguments,
    asked: &LinkSpec,
    channel: Option<&RohcChannel>,
    ends: &LinkEnds,
    engine: &Engine,
    report: &RunReport,
) -> anyhow::Result<()> {
    let totals = Side::ALL.map(|side| engine.totals(side));
    if arguments.json {
        let json = to_json(arguments, asked, channel, ends, &totals, report);
        return print_text(&(serde_json::to_string_pretty(&json)? + "\n"));
    }
    let table = table(asked, channel, &totals, report);
    print_text(&(table.to_text(&style(PLAIN_WIDTH)) + &lateness(report)))
}

/// Share of CPU time taken by other processes from which on it is reported.
const NOTED: f64 = 0.02;

/// Describes how late packets were delivered, and the consequences.
fn lateness(report: &RunReport) -> String {
    let late = &report.lateness;
    let mut text = String::from("\n");
    if late.count() > 0 {
        let percentiles = PERCENTILES.map(|percent| format!("p{percent} {}", micros(late, percent)));
        // Rounded up, as percentiles are.
        let max = late.max().div_ceil(1_000);
        text +=
            &format!("Lateness of {} deliveries: {}, max {max} us\n", late.count(), percentiles.join(", "));
    }
    if !late.is_good() {
        text += "The times of this run are not reliable: 1 in 100 packets was more than 1 ms late\n";
    }
    if report.stolen >= NOTED {
        let stolen = Numerals::TERMINAL.percent(report.stolen, 0);
        text += &format!("Other virtual machines took {stolen} of the CPU time meanwhile (steal time)\n");
    }
    if !report.refused.is_empty() {
        text += &format!("Not in real time: {}\n", report.refused.join("; "));
    }
    if report.not_taken > 0 {
        text +=
            &format!("{} delivered packets were not accepted by their destination hosts\n", report.not_taken);
    }
    text
}

fn micros(late: &Lateness, percent: u32) -> u64 {
    late.percentile(percent).unwrap_or_default().div_ceil(1_000)
}

/// Describes the link in one line.
fn title(asked: &LinkSpec) -> String {
    let mut title = asked.preset.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    let model = &asked.model;
    if model.a_to_b == model.b_to_a {
        title += &model.a_to_b.to_string();
    } else {
        title += &format!("{} to B; {} to A", model.a_to_b, model.b_to_a);
    }
    if let Duplex::Half { .. } = model.duplex {
        title += "; half duplex";
    }
    title
}

fn table(
    asked: &LinkSpec,
    channel: Option<&RohcChannel>,
    totals: &[DirectionTotals; 2],
    report: &RunReport,
) -> Table {
    let columns = [Column::text(""), Column::number("A to B"), Column::number("B to A")];
    let mut table = Table::new(title(asked), columns);
    let mut row = |name: &str, of: &dyn Fn(&DirectionTotals) -> u64, is_shown: bool| {
        let values = totals.each_ref().map(of);
        if is_shown || values.iter().any(|value| *value > 0) {
            table.row(std::iter::once(Cell::text(name)).chain(values.map(Cell::integer)));
        }
    };
    row("packets", &|totals| totals.packets, true);
    row("  octets", &|totals| totals.octets, true);
    if channel.is_some() {
        row("ROHC packets, octets", &|totals| totals.carried_octets, true);
        row("  headers, before", &|totals| totals.header_octets, true);
        row("  headers, after", &|totals| totals.compressed_header_octets, true);
        row("  feedback, octets", &|totals| totals.feedback.octets, true);
        row("    elements in front of packets", &|totals| totals.feedback.in_front, false);
        row("    packets of feedback alone", &|totals| totals.feedback.alone, false);
    }
    row("frames on the link", &|totals| totals.link.frames, true);
    row("  octets", &|totals| totals.link.octets, true);
    row("packets delivered", &|totals| totals.delivered, true);
    row("  octets", &|totals| totals.delivered_octets, true);
    row("  damaged", &|totals| totals.altered, false);
    for reason in DropReason::ALL {
        row(&format!("dropped: {reason}"), &|totals| totals.link.dropped.by(reason), false);
    }
    let reasons = |of: &dyn Fn(&DirectionTotals) -> &BTreeMap<&'static str, u64>| {
        let mut names: Vec<_> = totals.iter().flat_map(|totals| of(totals).keys().copied()).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    for why in reasons(&|totals| &totals.not_compressed) {
        let count = |totals: &DirectionTotals| totals.not_compressed.get(why).copied().unwrap_or(0);
        row(&format!("not compressed: {why}"), &count, false);
    }
    for why in reasons(&|totals| &totals.not_decompressed) {
        let count = |totals: &DirectionTotals| totals.not_decompressed.get(why).copied().unwrap_or(0);
        row(&format!("not decompressed: {why}"), &count, false);
    }
    row("still under way", &|totals| totals.under_way, false);
    let busy = totals.each_ref().map(|totals| share(totals, report).map_or(Cell::Empty, Cell::Percent));
    table.row(std::iter::once(Cell::text("time on the air")).chain(busy));
    table
}

/// Share of the run in which the direction was sending. At most 1, though the last packet may end after the
/// run.
fn share(totals: &DirectionTotals, report: &RunReport) -> Option<f64> {
    let took = report.took.as_secs_f64();
    (took > 0.0).then(|| (totals.link.busy as f64 / 1e9 / took).min(1.0))
}

fn to_json(
    arguments: &RunArguments,
    asked: &LinkSpec,
    channel: Option<&RohcChannel>,
    ends: &LinkEnds,
    totals: &[DirectionTotals; 2],
    report: &RunReport,
) -> Value {
    let late = &report.lateness;
    let mut lateness = json!({
        "packets": late.count(),
        "max": late.max() as f64 / 1e3,
        "is_good": late.is_good(),
    });
    for percent in PERCENTILES {
        lateness[format!("p{percent}")] = json!(late.percentile(percent).map(|nanos| nanos as f64 / 1e3));
    }
    let rohc = channel.map(|channel| {
        let shape = channel.compressor.channel;
        json!({
            "mode": channel.decompressor.mode.letter(),
            "profiles": shape.profiles().iter().map(ProfileId::name).collect::<Vec<_>>(),
            "max_cid": shape.max_cid(),
            "feedback_wait_ms": channel.feedback_wait.as_secs_f64() * 1e3,
            "numbered_frames": !arguments.unnumbered,
        })
    });
    let (ended, status) = super::run::ended(report);
    json!({
        "schema": SCHEMA,
        "preset": asked.preset,
        "link": { "a_to_b": asked.model.a_to_b.to_string(), "b_to_a": asked.model.b_to_a.to_string() },
        "half_duplex": matches!(asked.model.duplex, Duplex::Half { .. }),
        "mtu": asked.mtu,
        "seed": arguments.link.seed,
        "rohc": rohc,
        "namespaces": Side::ALL.map(|side| ends.namespace(side).called()),
        "took_seconds": report.took.as_secs_f64(),
        "ended_by": ended,
        "command_status": status,
        "lateness_us": lateness,
        "stolen_share": report.stolen,
        "not_realtime": report.refused,
        "not_taken": report.not_taken,
        "a_to_b": direction(&totals[0], report),
        "b_to_a": direction(&totals[1], report),
    })
}

fn direction(totals: &DirectionTotals, report: &RunReport) -> Value {
    let named = |counts: &BTreeMap<&'static str, u64>| -> Map<String, Value> {
        counts.iter().map(|(name, count)| ((*name).to_owned(), Value::from(*count))).collect()
    };
    let dropped = DropReason::ALL.into_iter().map(|reason| (reason, totals.link.dropped.by(reason)));
    let dropped: Map<_, _> = dropped
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| (reason.name().to_owned(), Value::from(count)))
        .collect();
    let formats: Map<_, _> = totals
        .formats
        .iter()
        .map(|(format, count)| (format.name().to_owned(), Value::from(*count)))
        .collect();
    json!({
        "packets": totals.packets,
        "octets": totals.octets,
        "carried_octets": totals.carried_octets,
        "header_octets": totals.header_octets,
        "compressed_header_octets": totals.compressed_header_octets,
        "packet_types": formats,
        "feedback": {
            "elements": totals.feedback.elements,
            "octets": totals.feedback.octets,
            "in_front": totals.feedback.in_front,
            "alone": totals.feedback.alone,
        },
        "link_packets": totals.link.offered,
        "frames": totals.link.frames,
        "frame_octets": totals.link.octets,
        "delivered": totals.delivered,
        "delivered_octets": totals.delivered_octets,
        "altered": totals.altered,
        "dropped": dropped,
        "not_compressed": named(&totals.not_compressed),
        "not_decompressed": named(&totals.not_decompressed),
        "under_way": totals.under_way,
        "busy_share": share(totals, report),
    })
}
