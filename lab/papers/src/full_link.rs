//! `full-link`: UDP flow through a saturated link, with and without header compression.

mod cell;
mod direct;
mod flow;
#[cfg(target_os = "linux")]
mod real;
#[cfg(test)]
mod tests;
mod tunnel;

use cell::{Condition, LinkScenario};
use flow::{GoodputSample, HEADERS};

use crate::form::{Figures, PaperRun, declared};
use crate::paper::{Paper, PaperError};
use crate::row::Bar;
use crate::sweep::{Samples, SweepCell};

pub(crate) const PAPER: Paper = declared!("full-link", "full_link", measure, without published);

/// Size to which the bar assumes that 28 octets of headers are compressed.
const COMPRESSED: f64 = 4.0;
/// Minimum ratio of goodput where the link is not saturated.
const BELOW_SATURATION: f64 = 0.99;
/// Minimum share of the ratio that the sizes allow, where the link is saturated.
const FULL: f64 = 0.9;

fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let cells = run.form.cells(run.plan.quick)?;
    let samples = run.repeat(|cell, seed, number| {
        let (scenario, way) = LinkScenario::read(&cell.vars)?;
        cell::run(scenario, way, run.plan.quick, (seed, number))
    })?;
    put(&cells, &samples, "", figures)?;
    match in_real_time(run, &cells)? {
        Ok(samples) => put(&cells, &samples, "real/", figures)?,
        Err(missing) => figures.left_out.push(format!("Left out: the rows real/, as {missing}.")),
    }
    Ok(())
}

/// Runs cells with queues of 100 packets, or in a quick run those at 3 Mbit/s with 100 octets, in real time; the inner
/// error is the reason that this is not possible.
#[cfg(target_os = "linux")]
fn in_real_time(
    run: &PaperRun<'_>,
    cells: &[SweepCell],
) -> Result<Result<Samples<GoodputSample>, String>, PaperError> {
    let plan = run.plan;
    if !plan.real_time {
        return Ok(Err("real-time runs were not requested".to_owned()));
    }
    let Some(program) = &plan.program else {
        return Ok(Err("it takes the command `thinair` to run links and tunnels".to_owned()));
    };
    // Before any thread, so that all of them leave signals to this one, and before anything that needs cleanup.
    let interrupt = crate::children::Interrupt::take()?;
    if let Some(missing) = real::missing() {
        return Ok(Err(missing));
    }
    let mut measured = Vec::new();
    for cell in cells {
        let (scenario, way) = LinkScenario::read(&cell.vars)?;
        if scenario.condition == Condition::default()
            && (!plan.quick || (scenario.load, scenario.payload) == (15, 100))
        {
            measured.push((&cell.id, scenario, way));
        }
    }
    let seconds = if plan.quick { 4 } else { 10 };
    let mut samples = Vec::new();
    for (done, (id, scenario, way)) in (0..).zip(&measured) {
        (run.progress)(done, measured.len() as u64)?;
        let sample = real::measure(*scenario, *way, plan, program, seconds, &interrupt)?;
        samples.push(((*id).clone(), vec![sample]));
    }
    Ok(Ok(Samples::new(samples)))
}

#[cfg(not(target_os = "linux"))]
fn in_real_time(
    _: &PaperRun<'_>,
    _: &[SweepCell],
) -> Result<Result<Samples<GoodputSample>, String>, PaperError> {
    Ok(Err("this system has no network namespaces of Linux".to_owned()))
}

/// Puts the figures of cells with compression, each beside the cell without.
fn put(
    cells: &[SweepCell],
    samples: &Samples<GoodputSample>,
    clock: &str,
    figures: &mut Figures,
) -> Result<(), PaperError> {
    for cell in cells.iter().filter(|cell| !cell.id.ends_with("/plain")) {
        let (scenario, _) = LinkScenario::read(&cell.vars)?;
        let plain = cell.id.rsplit_once('/').map_or(String::new(), |(of, _)| format!("{of}/plain"));
        let [with, without] = [&cell.id, &plain].map(|id| together(samples.of(id)));
        let Some((with, without)) = with.zip(without) else { continue };
        let mut row = |name: &str, of: fn(&GoodputSample) -> f64| {
            figures.put(format!("{clock}{}/{name}", cell.id), of(&with)).peer("without", of(&without));
        };
        row("goodput", |sample| sample.goodput);
        row("wrong", |sample| sample.wrong);
        row("outage", |sample| sample.outage);
        if clock.is_empty() {
            row("undelivered", |sample| sample.undelivered);
            row("octets", |sample| sample.octets);
            let arrived = with.delivered + with.wrong + with.undelivered;
            figures.put(format!("{}/lost", cell.id), 100.0 * with.undelivered / arrived.max(1.0));
        }
        let (ratio, bar) = (with.goodput / without.goodput, bar(&scenario, &without));
        let id = format!("{clock}{}", cell.id);
        figures.put_text(format!("{id}/met"), if ratio >= bar { "yes" } else { "no" });
        figures.put(format!("{id}/ratio"), ratio).bar = Some(Bar { min: Some(bar), max: None });
    }
    Ok(())
}

/// Minimum ratio of goodput.
fn bar(scenario: &LinkScenario, without: &GoodputSample) -> f64 {
    let GoodputSample { goodput, octets, .. } = *without;
    if scenario.condition == Condition::default() && goodput >= 0.99 * scenario.arriving() {
        return BELOW_SATURATION;
    }
    let saved = HEADERS as f64 - COMPRESSED;
    FULL * (octets / (octets - saved)).min(scenario.arriving() / goodput)
}

/// Combines the runs of a cell: means, sums of packets, the longest outage. `None` without runs.
fn together(runs: &[GoodputSample]) -> Option<GoodputSample> {
    let mean = |of: fn(&GoodputSample) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let sum = |of: fn(&GoodputSample) -> f64| runs.iter().map(of).sum::<f64>();
    (!runs.is_empty()).then(|| GoodputSample {
        goodput: mean(|run| run.goodput),
        delivered: sum(|run| run.delivered),
        wrong: sum(|run| run.wrong),
        undelivered: sum(|run| run.undelivered),
        outage: runs.iter().map(|run| run.outage).fold(0.0, f64::max),
        octets: mean(|run| run.octets),
    })
}
