//! `ntn-voice`: voice call over a geostationary satellite, with header compression, after loss bursts.

mod call;

use std::collections::BTreeMap;

use thinair_rohc::Mode;

use call::{BurstTally, Call, PHASES, calls};

use crate::form::{Figures, PaperRun, declared};
use crate::paper::{Paper, PaperError};
use crate::row::Bar;

pub(crate) const PAPER: Paper = declared!("ntn-voice", "ntn_voice", measure, without published);

fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let phases = if run.plan.quick { 4 } else { PHASES };
    let samples = run.repeat(|cell, seed, _| {
        let burst: u64 = cell.vars.parse("burst")?;
        calls(Call::read(&cell.vars)?, burst, phases, seed.wrapping_add(burst << 32))
    })?;
    // All bursts of a call: its figures, and the shortest burst after which the compressor sent IR or IR-DYN packets.
    let mut of_calls: BTreeMap<String, (BurstTally, Option<u64>)> = BTreeMap::new();
    for cell in run.form.cells(run.plan.quick)? {
        let (call, burst) = (Call::read(&cell.vars)?, cell.vars.parse("burst")?);
        let Some(tally) = samples.of(&cell.id).first() else { continue };
        let id = &cell.id;
        figures.put(format!("{id}/wrong"), tally.wrong as f64).bar = Some(Bar { max: Some(0.0), min: None });
        // After a pause, the time does not give the number of missing packets.
        let bar = (!call.pauses).then_some(Bar { max: Some(1.0), min: None });
        figures.put(format!("{id}/undelivered"), tally.undelivered()).bar = bar;
        figures.put(format!("{id}/outage"), tally.outage as f64);
        figures.put(format!("{id}/octets"), tally.after());
        figures.put("last", burst as f64);
        let falls = match call.mode {
            Mode::Unidirectional => tally.felt > 0,
            Mode::Optimistic | Mode::Reliable => tally.dynamic + tally.initial > 0,
        };
        let of_call = id.rsplit_once('/').map_or(id.as_str(), |(of_call, _)| of_call);
        let (all, falls_back) = of_calls.entry(of_call.to_owned()).or_default();
        all.add(tally);
        *falls_back = falls_back.or(falls.then_some(burst));
    }
    for (id, (all, falls_back)) in of_calls {
        figures.put(format!("{id}/octets"), all.steady());
        figures.put(format!("{id}/falls-back"), falls_back.unwrap_or(0) as f64);
        match falls_back {
            Some(burst) => _ = figures.put(format!("shown/{id}/falls-back"), burst as f64),
            None => figures.put_text(format!("shown/{id}/falls-back"), "none"),
        }
    }
    Ok(())
}
