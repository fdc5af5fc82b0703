//! `coap-lossy`: exchanges of CoAP over links with bit errors, by ROHC profile, mode, rate and model of errors.

mod cell;
#[cfg(test)]
mod tests;

use thinair_simulation::Summary;

use cell::LossySample;

use crate::form::{Figures, Named, PaperRun, declared};
use crate::paper::{Paper, PaperError};
use crate::row::Bar;

pub(crate) const PAPER: Paper = declared!("coap-lossy", "coap_lossy", measure);

/// Exchanges of one of the paper's runs.
const TWENTY: usize = 20;
/// Exchanges of a quick run, by the most of a full one.
const QUICK: [(usize, usize); 3] = [(TWENTY, TWENTY), (1_000, 250), (usize::MAX, 5_000)];

/// Figures of runs, by their names in ids.
const FIGURES: [Named<LossySample>; 8] = [
    ("rtt", LossySample::rtt),
    ("give-ups", LossySample::give_ups),
    ("octets", LossySample::octets),
    ("feedback", LossySample::feedback),
    ("refreshes", LossySample::refreshes),
    ("not-decompressed", LossySample::not_decompressed),
    ("retransmissions", LossySample::retransmissions),
    ("energy", LossySample::energy),
];

fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let samples = run.repeat(|cell, seed, number| {
        let exchanges = cell.vars.parse("exchanges")?;
        let exchanges = if run.plan.quick { fewer(exchanges) } else { exchanges };
        cell::run(&cell.vars, exchanges, seed, number)
    })?;
    for (id, runs) in samples.iter() {
        let sum = runs.iter().copied().fold(LossySample::default(), LossySample::and);
        match id.strip_suffix("/of-20") {
            Some(id) => of_20(id, runs, &sum, figures),
            None => long(id, runs, &sum, figures),
        }
    }
    Ok(())
}

/// Number of exchanges of a quick run.
fn fewer(exchanges: usize) -> usize {
    QUICK.into_iter().find(|(most, _)| exchanges <= *most).map_or(exchanges, |(_, few)| few)
}

fn long(id: &str, runs: &[LossySample], sum: &LossySample, figures: &mut Figures) {
    for (name, of) in FIGURES {
        let figure = figures.put(format!("{id}/{name}"), of(sum));
        figure.half = Summary::of(&runs.iter().filter_map(of).collect::<Vec<_>>()).and_then(|runs| runs.half);
        figure.bar = match (id, name) {
            _ if !sum.is_significant() => None,
            ("coap/default-bi/1e-3/iid" | "coap/default-uni/1e-3/iid", "give-ups") => {
                Some(Bar { max: Some(0.05), min: None })
            }
            ("uncompressed/bi/1e-3/iid" | "uncompressed/uni/1e-3/iid", "give-ups") => {
                Some(Bar { min: Some(3.3), max: Some(3.6) })
            }
            _ => None,
        };
    }
    // Bar for the ratio of uncompressed to compressed exchange times.
    let Some(at) = id.strip_prefix("uncompressed/").filter(|at| at.ends_with("/1e-3/iid")) else { return };
    let bar = sum.is_significant().then_some(Bar { min: Some(5.0), max: None });
    figures.put(format!("ratio/default-{at}"), None).bar = bar;
}

/// Puts the results of the runs of 20 exchanges, and the interval with 95 % of them.
fn of_20(id: &str, runs: &[LossySample], sum: &LossySample, figures: &mut Figures) {
    figures.put(format!("{id}/rtt-of-20"), sum.rtt());
    let given_up = sum.give_ups().map(|percent| percent / 100.0 * TWENTY as f64);
    figures.put(format!("{id}/given-up-of-20"), given_up);
    if let Some((min, max)) = sum.extremes {
        figures.put(format!("{id}/shortest"), min);
        figures.put(format!("{id}/longest"), max);
    }
    for (name, of) in
        [("rtt", LossySample::rtt as fn(&LossySample) -> _), ("given-up", |sample| Some(sample.given_up))]
    {
        let mut values: Vec<f64> = runs.iter().filter_map(of).collect();
        values.sort_by(f64::total_cmp);
        for (end, share) in [("low", 0.025), ("high", 0.975)] {
            let at = (share * values.len().saturating_sub(1) as f64).round() as usize;
            figures.put(format!("{id}/{name}-{end}"), values.get(at).copied());
        }
    }
}
