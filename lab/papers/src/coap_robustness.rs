//! `coap-robustness`: deliveries over a link that loses, reorders, duplicates and damages packets.

mod condition;
mod expected;
mod run;

use std::collections::BTreeMap;

use thinair_rohc::Mode;

use condition::impairments;
use run::{CompressorPolicy, FlowJob, PacketOutcomes, simulate};

use crate::form::{Figures, PaperRun, Vars, declared};
use crate::paper::{Paper, PaperError};
use crate::row::Bar;
use crate::sweep::SweepCell;
use crate::traffic::{TrafficKind, TrafficVersion};

pub(crate) const PAPER: Paper = declared!("coap-robustness", "coap_robustness", measure, without published);

/// Factor by which a quick run has fewer packets.
const QUICK: u64 = 50;
/// Number of packets at the start of a run that are not impaired.
const SPARED: u64 = 64;

fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let quick = run.plan.quick;
    let packets =
        |cell: &Vars| Ok::<u64, PaperError>(cell.parse::<u64>("packets")? / if quick { QUICK } else { 1 });
    let samples = run.repeat(|cell, seed, number| {
        let vars = &cell.vars;
        simulate(&FlowJob {
            kind: TrafficKind::by_name(vars.text("kind")?)?,
            version: TrafficVersion::by_name(vars.text("version")?)?,
            policy: vars.text("policy")?,
            mode: if vars.text("mode")? == "o" { Mode::Optimistic } else { Mode::Unidirectional },
            impairments: impairments(vars)?,
            packets: packets(vars)?,
            spared: if quick { SPARED } else { 0 },
            seed: seed.wrapping_add(number.into()),
        })
    })?;
    let mut means = Means::default();
    for cell in run.form.cells(quick)? {
        let count: PacketOutcomes = samples.of(&cell.id).iter().copied().sum();
        of_cell(&cell, packets(&cell.vars)?, &count, figures, &mut means)?;
    }
    for (id, values) in &means.0 {
        figures.put(id.clone(), values.iter().sum::<f64>() / values.len() as f64);
    }
    Ok(())
}

/// Means by id. Each cell has the same weight, whatever its number of packets.
#[derive(Default)]
struct Means(BTreeMap<String, Vec<f64>>);

impl Means {
    fn take(&mut self, id: String, value: f64) {
        self.0.entry(id).or_default().push(value);
    }
}

fn of_cell(
    cell: &SweepCell,
    packets: u64,
    count: &PacketOutcomes,
    figures: &mut Figures,
    means: &mut Means,
) -> Result<(), PaperError> {
    let (id, vars, seeds) = (&cell.id, &cell.vars, f64::from(cell.runs));
    let (mode, policy) = (vars.text("mode")?, CompressorPolicy::of(vars.text("policy")?));
    let loss = match vars.has("rate") {
        true => Some((vars.parse::<u32>("rate")?, vars.parse::<u32>("burst")?)),
        false => None,
    };
    let is_held = vars.has("held");

    let figure = figures.put(format!("{id}/wrong"), count.wrong as f64 / seeds);
    figure.note = format!(", mean of {} seeds of {packets} packets", cell.runs);
    if is_held {
        let most = match loss {
            Some((..=20, ..=5)) => 0.0,
            Some((..=20, _)) => 0.1,
            _ => 0.5,
        };
        figure.bar = Some(Bar { max: Some(most), min: None });
    }
    let in_u_mode = loss.filter(|_| mode == "u");
    // Value per seed that the formats predict.
    let expected = in_u_mode
        .zip(policy.steady)
        .map(|((rate, burst), format)| expected::wrong(format, packets, rate, burst));
    figure.peer("expected", expected);
    // The paper has these wrong packets of 60,000; they are scaled to our number.
    let of_sixty_thousand = match in_u_mode.filter(|_| vars.opt("policy") == Some("pt0")) {
        Some((20, 5)) => Some(3_630.0),
        Some((30, 10)) => Some(4_832.0),
        _ => None,
    };
    figure.theirs = of_sixty_thousand.map(|wrong| wrong * packets as f64 / 60_000.0);
    // Damaged packets that pass a format's check by chance.
    let bound = count.damaged as f64 / seeds / f64::from(1_u32 << policy.check_bits);
    if vars.has("link.bare") {
        figure.peer("crc-bound", bound);
        figures.put(format!("{id}/payload"), count.payload as f64 / seeds);
        let damage = format!("damage/{mode}/{}/{}", vars.text("policy")?, vars.text("link")?);
        let parts = [
            ("arrived", count.arrived as f64),
            ("damaged", count.damaged as f64),
            ("refused", count.refused as f64),
            ("payload", count.payload as f64),
            ("wrong", count.wrong as f64),
            ("bound", bound * seeds),
        ];
        for (name, part) in parts {
            let id = format!("{damage}/{name}");
            let sum = figures.value(&id).unwrap_or(0.0) + part;
            figures.put(id, sum);
        }
    }
    if let Some(expected) = expected {
        figures.put_text(format!("expected/{id}"), small(expected));
    }
    let dropped = figures.put(format!("{id}/dropped"), count.dropped_percent());
    dropped.bar = is_held.then_some(Bar { max: Some(0.1), min: None });
    figures.put(format!("{id}/octets"), count.mean_octets());
    figures.put(format!("{id}/per-million"), count.wrong_per_million());

    let link = id.splitn(5, '/').last().unwrap_or_default();
    let mean = format!("mean/{mode}/{}/{link}", vars.text("policy")?);
    means.take(format!("{mean}/wrong"), count.wrong_per_million());
    means.take(format!("{mean}/dropped"), count.dropped_percent());
    means.take(format!("{mean}/octets"), count.mean_octets());
    if is_held {
        means.take(format!("held/{link}/dropped"), count.dropped_percent());
        figures.put("held/packets", packets as f64);
    }
    Ok(())
}

/// Text of a figure that may be very small.
fn small(value: f64) -> String {
    match value {
        0.01.. => format!("{value:.2}"),
        1e-6.. => format!("{value:.0e}"),
        0.0 => "0".to_owned(),
        _ => "<1e-6".to_owned(),
    }
}
