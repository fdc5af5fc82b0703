//! `tssa`: best length of TCP segments over hops of 802.15.4, and the control that finds it.

mod cell;
mod model;

use thinair_simulation::Summary;

use cell::{Setting, TransferSample};

use crate::form::{Figures, Named, PaperRun, Vars, declared};
use crate::paper::{Paper, PaperError};
use crate::row::Bar;
use crate::sweep::Samples;

pub(crate) const PAPER: Paper = declared!("tssa", "tssa", measure);

/// Fixed sizes, the best of which is the reference.
const SIZES: [u16; 8] = [64, 106, 170, 276, 382, 512, 700, 1_024];

/// Figures of a run, by their names in ids.
const FIGURES: [Named<TransferSample, f64>; 7] = [
    ("energy", |sample| sample.energy),
    ("duration", |sample| sample.duration),
    ("size", |sample| sample.mean_size),
    ("overhearing", |sample| sample.overhearing),
    ("idle", |sample| sample.idle),
    ("mbit", |sample| sample.bits / 1e6),
    ("frames", |sample| sample.frames),
];

fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let quick = run.plan.quick;
    let samples = run.repeat(|cell, seed, number| cell::run(&cell.vars, quick, seed, number))?;
    let cells = run.form.cells(quick)?;
    for cell in &cells {
        put(&cell.id, samples.of(&cell.id), figures);
        if matches!(cell.vars.text("control")?, "64" | "512" | "1024") {
            let (setting, mss) = (Setting::read(&cell.vars)?, cell.vars.parse("control")?);
            let octets = setting.kib * 1_024;
            let analysis = model::energy(cell.vars.parse("rate")?, mss, octets, setting.hops.into());
            figures.put(format!("analysis/{}", cell.id), analysis);
        }
    }
    checks(run, figures)?;
    for vars in cells.iter().map(|cell| &cell.vars).filter(|vars| !vars.has("steps")) {
        let at = || vars.expand("{setting}/{rate}");
        match vars.text("control")? {
            "adaptive" if vars.has("compared") => {
                adaptive(&at()?, vars.parse("rate")?, !quick && vars.has("held"), figures);
                convergence(&at()?, &samples, figures);
            }
            "tssa" if at()?.starts_with("base/") => against_dmss(&at()?, !quick && vars.has("held"), figures),
            control if vars.has("turned") => {
                let at = at()?;
                longer_than_dmss(&at, control, figures);
            }
            _ => {}
        }
    }
    collisions(run, &samples, figures)?;
    let saved = |vars: &Vars| {
        let at = vars.expand("base/{rate}/tssa/duration-above-dmss").ok()?;
        figures.value(&at).map(|longer| -longer)
    };
    let saved: Vec<f64> = run.form.all(&["rate!1e-6,6e-4"])?.iter().filter_map(saved).collect();
    figures.put("tssa/saved/least", saved.iter().copied().reduce(f64::min));
    figures.put("tssa/saved/most", saved.iter().copied().reduce(f64::max));
    for id in ["base/2e-4", "stepped"]
        .into_iter()
        .flat_map(|of| ["tssa", "dmss", "adaptive"].map(|control| format!("{of}/{control}")))
    {
        let Some(sample) = samples.of(&id).first() else { continue };
        let last = sample.sizes.last().map(|last| (sample.duration, f64::from(last.size)));
        let points = sample.sizes.iter().map(|point| (point.at.as_secs_f64(), f64::from(point.size)));
        figures.put_curve(format!("{id}/sizes"), points.chain(last).collect());
    }
    Ok(())
}

/// Puts the means of a cell, if all its runs have finished.
fn put(id: &str, samples: &[TransferSample], figures: &mut Figures) {
    let is_finished = samples.iter().all(|sample| sample.is_complete);
    for (name, of) in FIGURES {
        let values: Vec<f64> = samples.iter().filter(|_| is_finished).map(of).collect();
        let summary = Summary::of(&values);
        if !is_finished && matches!(name, "energy" | "duration" | "size") {
            figures.put_text(format!("{id}/{name}"), "not finished");
        }
        let figure = figures.put(format!("{id}/{name}"), summary.as_ref().map(|summary| summary.mean));
        figure.half = summary.and_then(|summary| summary.half);
    }
}

/// Checks that must succeed before other figures count: octets against the analysis, frames against ns-3.
fn checks(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let around = |figure: f64, share: f64| {
        Some(Bar { min: Some(figure * (1.0 - share)), max: Some(figure * (1.0 + share)) })
    };
    for mss in ["64", "512", "1024"] {
        let id = format!("base/0e0/{mss}");
        let (ours, analysis) =
            (figures.value(&format!("{id}/energy")), figures.value(&format!("analysis/{id}")));
        let figure = figures.put(format!("{id}/energy"), ours);
        // Without collisions the two are equal; longer segments collide with themselves.
        figure.bar = analysis.filter(|_| mss == "64").and_then(|analysis| around(analysis, 0.001));
        figure.peer("analysis", analysis);
        // Energy there includes overhearing.
        let id = format!("ns3/1e-5/{mss}");
        let overhearing = figures.value(&format!("{id}/overhearing"));
        figures.put(format!("{id}/energy"), overhearing);
        for (name, share) in [("frames", 0.01), ("energy", 0.03)] {
            let id = format!("{id}/{name}");
            let theirs = run.published.get(&id).and_then(|figure| figure.peers.get("ns-3").copied());
            let ours = figures.value(&id);
            let is_held = mss != "64" || name == "frames";
            figures.put(id, ours).bar = theirs.filter(|_| is_held).and_then(|theirs| around(theirs, share));
        }
    }
    for vars in run.form.all(&["equation", "control=64,512,1024"])? {
        let (rate, mss) = (vars.parse("equation")?, vars.parse("control")?);
        let id = vars.expand("equation/{equation}/{control}")?;
        figures.put(format!("{id}/fer"), 100.0 * model::frame_error_rate(rate, 127));
        figures.put(format!("{id}/ser"), 100.0 * model::segment_error_rate(rate, mss));
        figures.put(format!("{id}/printed"), 100.0 * model::as_printed(rate, mss));
    }
    Ok(())
}

/// Minimum mean energy of the eight fixed sizes, and the size.
fn best(at: &str, figures: &Figures) -> Option<(u16, f64)> {
    let energies =
        SIZES.into_iter().filter_map(|size| Some((size, figures.value(&format!("{at}/{size}/energy"))?)));
    energies.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Puts `Adaptive` beside the best fixed size, and beside TSSA.
fn adaptive(at: &str, rate: f64, is_held: bool, figures: &mut Figures) {
    let ours = figures.value(&format!("{at}/adaptive/energy"));
    let tssa = figures.value(&format!("{at}/tssa/energy"));
    let best = best(at, figures);
    figures.put(format!("{at}/best"), best.map(|(size, _)| f64::from(size)));
    let most = if rate <= 2e-4 { 3.0 } else { 6.0 };
    for (name, other, most) in [("best", best.map(|(_, energy)| energy), most), ("tssa", tssa, 0.0)] {
        let above = ours.zip(other).map(|(ours, other)| 100.0 * (ours / other - 1.0));
        let id = format!("{at}/adaptive/above-{name}");
        if above.is_none() {
            figures.put_text(id.clone(), "not finished");
        }
        figures.put(id, above).bar = is_held.then_some(Bar { max: Some(most), min: None });
    }
}

/// Figures 6 and 7.
fn against_dmss(at: &str, is_held: bool, figures: &mut Figures) {
    let of = |control: &str| {
        let figure = figures.get(&format!("{at}/{control}/energy"))?;
        Some((figure.value?, figure.half))
    };
    // Upper end of the difference's 95 % interval.
    let upper =
        of("tssa").zip(of("dmss")).and_then(|(tssa, dmss)| Some(tssa.0 - dmss.0 + tssa.1?.hypot(dmss.1?)));
    let bar = |most| is_held.then_some(Bar { max: Some(most), min: None });
    if upper.is_none() {
        figures.put_text(format!("{at}/tssa/energy-above-dmss"), "not finished");
    }
    figures.put(format!("{at}/tssa/energy-above-dmss"), upper).bar = bar(0.0);
    longer_than_dmss(at, "tssa", figures);
    let id = format!("{at}/tssa/duration-above-dmss");
    let longer = figures.get(&id).cloned().unwrap_or_default();
    figures.put(format!("{id}-half"), longer.half);
    figures.put(id, longer.value).bar = bar(-10.0);
}

/// Excess duration of a transfer over one with DMSS, in percent: mean, and half of its 95 % interval.
fn longer_than_dmss(at: &str, control: &str, figures: &mut Figures) {
    let of = |control: &str| {
        let figure = figures.get(&format!("{at}/{control}/duration"))?;
        Some((figure.value?, figure.half))
    };
    let longer = of(control).zip(of("dmss")).map(|(one, dmss)| {
        let ratio = one.0 / dmss.0;
        let half = one.1.zip(dmss.1).map(|(a, b)| 100.0 * ratio * (a / one.0).hypot(b / dmss.0));
        (100.0 * (ratio - 1.0), half)
    });
    let id = format!("{at}/{control}/duration-above-dmss");
    if longer.is_none() {
        figures.put_text(id.clone(), "not finished");
    }
    figures.put(id, longer.map(|(mean, _)| mean)).half = longer.and_then(|(_, half)| half);
}

/// Puts the first time at which a fixed transfer of the current size would cost at most 10 % more than the best one:
/// mean of the runs with a trace of sizes.
fn convergence(at: &str, samples: &Samples<TransferSample>, figures: &mut Figures) {
    let Some((_, least)) = best(at, figures) else { return };
    for control in ["tssa", "adaptive"] {
        let is_near = |size: u16| cost(at, size, figures).is_some_and(|cost| cost <= 1.1 * least);
        let firsts: Vec<_> = samples
            .of(&format!("{at}/{control}"))
            .iter()
            .filter_map(|sample| {
                let place = sample.sizes.iter().position(|point| is_near(point.size))?;
                let point = sample.sizes.get(place)?;
                Some([point.at.as_secs_f64(), point.acknowledged as f64 / 1_024.0, place as f64])
            })
            .collect();
        for (i, name) in ["seconds", "kib", "changes"].into_iter().enumerate() {
            let mean = firsts.iter().map(|first| first[i]).sum::<f64>() / firsts.len() as f64;
            figures.put(format!("near/{at}/{control}/{name}"), mean);
        }
    }
}

/// Cost of a transfer with a size in between, interpolated from the fixed sizes on either side; `None` if those do not
/// finish.
fn cost(at: &str, size: u16, figures: &Figures) -> Option<f64> {
    let cost = |size: u16| figures.value(&format!("{at}/{size}/energy"));
    let below = SIZES.into_iter().rfind(|other| *other <= size)?;
    let above = SIZES.into_iter().find(|other| *other >= size)?;
    let share = if above > below { f64::from(size - below) / f64::from(above - below) } else { 0.0 };
    Some(cost(below)? * (1.0 - share) + cost(above)? * share)
}

/// Puts the collisions at each node, by run, at the lowest rate.
fn collisions(
    run: &PaperRun<'_>,
    samples: &Samples<TransferSample>,
    figures: &mut Figures,
) -> Result<(), PaperError> {
    let least = if run.plan.quick { "1e-4" } else { "1e-5" };
    figures.put_text("collisions/rate", least);
    for (setting, mss) in
        ["base", "cs-1"].into_iter().flat_map(|setting| ["64", "512"].map(|mss| (setting, mss)))
    {
        let samples = samples.of(&format!("{setting}/{least}/{mss}"));
        for node in 0..6 {
            let all: f64 = samples.iter().filter_map(|sample| sample.collisions.get(node)).sum();
            let id = format!("collisions/{setting}/{mss}/{}", node + 1);
            figures.put(id, all / samples.len() as f64);
        }
    }
    Ok(())
}
