//! `thinair link presets`.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use thinair_link::preset::{Citation, Evidence, Preset, presets};
use thinair_link::{Airtime, Direction, Duplex};

use crate::terminal::print;

const SCHEMA: &str = "thinair.link-presets/1";

#[derive(Args, Debug)]
pub(crate) struct PresetsArguments {
    /// Print the source of each figure, too. Figures are `measured`, `public`, or `assumed`
    #[arg(long)]
    sources: bool,
    /// Print the presets as JSON (thinair.link-presets/1)
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &PresetsArguments) -> anyhow::Result<ExitCode> {
    if arguments.json {
        let presets: Vec<_> = presets().iter().map(to_json).collect();
        let text = serde_json::to_string_pretty(&json!({ "schema": SCHEMA, "presets": presets }))?;
        print(&(text + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for preset in presets() {
        text += &format!("{}: {}\n", preset.name, preset.title);
        for (direction, numbers) in directions(preset) {
            text += &format!("  {direction}: {numbers}\n");
        }
        for evidence in Evidence::ALL {
            let sources = preset.sources.iter().filter(|source| source.evidence == evidence);
            let line = |source: &Citation| {
                let Citation { what, from, .. } = source;
                if arguments.sources { format!("\n    {what}: {from}") } else { format!(" {what};") }
            };
            let lines: String = sources.map(line).collect();
            if !lines.is_empty() {
                text += &format!("  {}:{}\n", evidence.name(), lines.trim_end_matches(';'));
            }
        }
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Describes a link; directions with equal properties are described together.
fn directions(preset: &Preset) -> Vec<(&'static str, String)> {
    let model = &preset.model;
    let duplex = match model.duplex {
        Duplex::Full => "",
        Duplex::Half { .. } => ", half duplex",
    };
    let words = |direction: &Direction<'_>| format!("{direction}{duplex}");
    if model.a_to_b == model.b_to_a {
        return vec![("both directions", words(&model.a_to_b))];
    }
    vec![("A to B", words(&model.a_to_b)), ("B to A", words(&model.b_to_a))]
}

fn to_json(preset: &Preset) -> Value {
    let model = &preset.model;
    let source = |source: &Citation| json!({ "what": source.what, "evidence": source.evidence.name(), "from": source.from });
    json!({
        "name": preset.name,
        "title": preset.title,
        "mtu": preset.mtu,
        "half_duplex": matches!(model.duplex, Duplex::Half { .. }),
        "a_to_b": direction(&model.a_to_b),
        "b_to_a": direction(&model.b_to_a),
        "sources": preset.sources.iter().map(source).collect::<Vec<_>>(),
    })
}

fn direction(direction: &Direction<'_>) -> Value {
    let rate = match direction.airtime {
        Airtime::Rate(rate) => Some(rate.as_bps()),
        _ => None,
    };
    json!({
        "words": direction.to_string(),
        "rate_bps": rate,
        "delay_us": direction.delay.as_nanos() as f64 / 1e3,
        "per_frame_us": direction.per_frame.as_nanos() as f64 / 1e3,
        "frame_overhead_octets": direction.framing.overhead,
        "queue_packets": direction.queue.packets,
    })
}
