//! The figures, and their bars.

use super::cell::{
    BASE, Control, ELSEWHERE, NS3, REAL, SIZES, Sample, Setting, TURNED, WINDOW4, ambiguities, id, written,
};
use super::{
    AMBIGUOUS, DMSS_RATES, DMSS_WAYS, OUTSIDE, Results, model, rates, rates_elsewhere, rates_of_real,
    rates_of_window_4,
};
use crate::row::{Bar, Row};

/// What ns-3 has sent and spent, by MSS: frames with acknowledgments, joules with overhearing.
pub(super) const OF_NS3: [(u16, f64, f64); 3] =
    [(64, 164_842.0, 37.4), (512, 72_075.0, 20.6), (1_024, 61_777.0, 19.1)];

pub(super) fn rows(results: &Results, quick: bool) -> Vec<Row> {
    let mut rows = checks(results);
    for (setting, rates) in [(BASE, rates(quick)), (WINDOW4, rates_of_window_4(quick))] {
        for rate in rates {
            rows.extend(measured(results, &setting, *rate));
            rows.extend(adaptive(results, &setting, *rate, !quick));
        }
    }
    rows.extend(rates(quick).iter().flat_map(|rate| against_dmss(results, *rate, !quick)));
    for setting in ELSEWHERE {
        for rate in rates_elsewhere(quick) {
            rows.extend(measured(results, &setting, *rate));
            rows.extend(adaptive(results, &setting, *rate, false));
        }
    }
    for setting in REAL.as_flattened() {
        for rate in rates_of_real(quick) {
            rows.extend(measured(results, setting, *rate));
            rows.extend(adaptive(results, setting, *rate, false));
        }
    }
    if quick {
        return rows;
    }
    for rate in OUTSIDE {
        rows.extend(measured(results, &BASE, rate));
        rows.extend(against_dmss(results, rate, false));
    }
    for setting in TURNED.into_iter().filter(|setting| !ELSEWHERE.contains(setting)) {
        rows.extend([1e-5, 2e-4].into_iter().flat_map(|rate| measured(results, &setting, rate)));
    }
    for rate in AMBIGUOUS {
        for (name, control) in ambiguities() {
            rows.extend(energy_and_time(
                results,
                &id(&BASE, rate, &control.name),
                &format!("TSSA, {name}, BER {rate:e}"),
            ));
            rows.push(Row::new(
                format!("{}/duration-above-dmss", id(&BASE, rate, &control.name)),
                format!("TSSA, {name}, BER {rate:e}: duration above that of DMSS"),
                "%",
                longer_than_dmss(results, rate, &control.name).map(|(mean, _)| mean),
            ));
        }
    }
    for rate in DMSS_RATES {
        for (name, ..) in DMSS_WAYS.into_iter().filter(|(name, ..)| *name != "dmss") {
            rows.extend(energy_and_time(results, &id(&BASE, rate, name), &format!("{name}, BER {rate:e}")));
        }
    }
    for control in Control::all(1e-5) {
        let name = control.name;
        rows.extend(energy_and_time(results, &format!("stepped/{name}"), &format!("stepped rate, {name}")));
    }
    rows
}

/// What must agree before anything else is believed: octets with the analysis, frames with ns-3.
fn checks(results: &Results) -> Vec<Row> {
    let mut rows = Vec::new();
    for mss in [64, 512, 1_024] {
        let cell = id(&BASE, 0.0, &mss.to_string());
        let analysis = model::energy(0.0, mss, 512 * 1_024, 5);
        let row = Row::new(
            format!("{cell}/energy"),
            format!("MSS {mss}, no errors: energy"),
            "J",
            results.mean(&cell, |sample| sample.energy),
        )
        .peer("analysis", analysis);
        // Without collisions the two are the same; longer segments collide with themselves.
        rows.push(if mss == 64 { row.within(around(analysis, 0.001)) } else { row });
    }
    for (mss, frames, energy) in OF_NS3 {
        let cell = id(&NS3, 1e-5, &mss.to_string());
        let what = |of| format!("MSS {mss}, stop-and-wait, put together at every hop: {of}");
        rows.push(
            Row::new(
                format!("{cell}/frames"),
                what("frames"),
                "",
                results.mean(&cell, |sample| sample.frames),
            )
            .peer("ns-3", frames)
            .within(around(frames, 0.01)),
        );
        let row = Row::new(
            format!("{cell}/energy"),
            what("energy with overhearing"),
            "J",
            results.mean(&cell, |sample| sample.overhearing),
        );
        let row = row.peer("ns-3", energy);
        rows.push(if mss == 64 { row } else { row.within(around(energy, 0.03)) });
    }
    rows
}

fn around(figure: f64, share: f64) -> Bar {
    Bar { min: Some(figure * (1.0 - share)), max: Some(figure * (1.0 + share)) }
}

fn energy_and_time(results: &Results, cell: &str, what: &str) -> [Row; 2] {
    [
        Row::new(
            format!("{cell}/energy"),
            format!("{what}: energy"),
            "J",
            results.mean(cell, |sample| sample.energy),
        ),
        Row::new(
            format!("{cell}/duration"),
            format!("{what}: duration"),
            "s",
            results.mean(cell, |sample| sample.duration),
        ),
    ]
}

/// All controls at a rate.
fn measured(results: &Results, setting: &Setting, rate: f64) -> Vec<Row> {
    let mut rows = Vec::new();
    for control in Control::all(rate) {
        let cell = id(setting, rate, &control.name);
        let what = format!("{}, BER {rate:e}, {}", setting.name, control.name);
        rows.extend(energy_and_time(results, &cell, &what));
        if control.name.parse::<u16>().is_err() {
            let size = results.mean(&cell, |sample| sample.mean_size);
            rows.push(Row::new(format!("{cell}/size"), format!("{what}: mean size"), "octets", size));
        }
    }
    rows
}

/// The least mean energy of the eight fixed sizes, and the size.
pub(super) fn best(results: &Results, setting: &str, rate: Option<f64>) -> Option<(u16, f64)> {
    let cell = |size: u16| match rate {
        Some(rate) => format!("{setting}/{}/{size}", written(rate)),
        None => format!("{setting}/{size}"),
    };
    SIZES
        .into_iter()
        .filter_map(|size| Some((size, results.mean(&cell(size), |sample| sample.energy)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
}

/// `Adaptive` beside the best fixed size, and beside TSSA.
fn adaptive(results: &Results, setting: &Setting, rate: f64, is_held: bool) -> [Row; 2] {
    let energy = |name: &str| results.mean(&id(setting, rate, name), |sample| sample.energy);
    let above = |other: Option<f64>| Some(100.0 * (energy("adaptive")? / other? - 1.0));
    let cell = id(setting, rate, "adaptive");
    let what = |of| format!("{}, BER {rate:e}, adaptive: energy above that of {of}", setting.name);
    let best = best(results, setting.name, Some(rate)).map(|(_, energy)| energy);
    let most = if rate <= 2e-4 { 3.0 } else { 6.0 };
    [
        Row::new(format!("{cell}/above-best"), what("the best fixed size"), "%", above(best))
            .at_most(is_held.then_some(most)),
        Row::new(format!("{cell}/above-tssa"), what("TSSA"), "%", above(energy("tssa")))
            .at_most(is_held.then_some(0.0)),
    ]
}

/// Figures 6 and 7.
fn against_dmss(results: &Results, rate: f64, is_held: bool) -> [Row; 3] {
    let of = |name: &str, of: fn(&Sample) -> f64| results.summary(&id(&BASE, rate, name), of);
    let (tssa, dmss) = (of("tssa", |sample| sample.energy), of("dmss", |sample| sample.energy));
    // The upper end of what the difference may be, at 95 %.
    let upper =
        tssa.zip(dmss).and_then(|(tssa, dmss)| Some(tssa.mean - dmss.mean + tssa.half?.hypot(dmss.half?)));
    let cell = id(&BASE, rate, "tssa");
    let longer = longer_than_dmss(results, rate, "tssa");
    [
        Row::new(
            format!("{cell}/energy-above-dmss"),
            format!("BER {rate:e}: energy of TSSA above that of DMSS, at most (95 %)"),
            "J",
            upper,
        )
        .at_most(is_held.then_some(0.0)),
        Row::new(
            format!("{cell}/duration-above-dmss"),
            format!("BER {rate:e}: duration of TSSA above that of DMSS"),
            "%",
            longer.map(|(mean, _)| mean),
        )
        .at_most(is_held.then_some(-10.0)),
        Row::new(
            format!("{cell}/duration-above-dmss-half"),
            format!("BER {rate:e}: duration of TSSA above that of DMSS, half of its interval of 95 %"),
            "%",
            longer.and_then(|(_, half)| half),
        ),
    ]
}

/// How much longer a transfer of the base set takes than with DMSS, in percent: the mean, and half of its interval of 95 %.
fn longer_than_dmss(results: &Results, rate: f64, control: &str) -> Option<(f64, Option<f64>)> {
    let of = |name: &str| results.summary(&id(&BASE, rate, name), |sample| sample.duration);
    let (one, dmss) = (of(control)?, of("dmss")?);
    let ratio = one.mean / dmss.mean;
    let half = one.half.zip(dmss.half).map(|(a, b)| 100.0 * ratio * (a / one.mean).hypot(b / dmss.mean));
    Some((100.0 * (ratio - 1.0), half))
}
