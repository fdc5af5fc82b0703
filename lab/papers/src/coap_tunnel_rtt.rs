//! `coap-tunnel-rtt`: duration of a CoAP request through two tunnels, by profile, and without tunnels.

mod cell;
mod exchange;
#[cfg(target_os = "linux")]
mod real;
mod summary;

use cell::{InnerIpVersion, LinkPlace, RttCell, TunnelPath};
use summary::RttSummary;
use thinair_rohc::ProfileId;

use crate::form::{Figures, PaperRun, declared};
use crate::paper::{Paper, PaperError, ProgressCallback, RunPlan};
use crate::row::Bar;

pub(crate) const PAPER: Paper =
    Paper { is_real_time: true, ..declared!("coap-tunnel-rtt", "coap_tunnel_rtt", measure) };

/// Round trips in a cell of the paper.
const COUNT: f64 = 20.0;

/// Mean range of 20 normal values, in standard deviations: d2 of control charts.
const RANGE: f64 = 3.735;

/// Amount of measurement.
#[derive(Clone, Copy, Debug)]
struct RttScale {
    /// Round trips of a cell.
    rounds: usize,
}

const FULL: RttScale = RttScale { rounds: 1_000 };
const QUICK: RttScale = RttScale { rounds: 50 };

/// Measurements at a place.
#[derive(Clone, Debug)]
struct PlaceMeasurements {
    place: LinkPlace,
    cells: Vec<CellMeasurements>,
    /// Steal time: share of the machine's time that its host gave to others.
    stolen: f64,
    /// 99th percentile of the link's lateness, in microseconds.
    late: Option<f64>,
}

/// Measurements of a cell.
#[derive(Clone, Debug)]
struct CellMeasurements {
    cell: RttCell,
    times: Option<RttSummary>,
    /// Round trips that are not counted: unanswered or repeated.
    lost: usize,
    /// `None` without a tunnel.
    carried: Option<CarriedOctets>,
}

/// Mean size of a packet, in octets: of requests, and of responses.
#[derive(Clone, Copy, Debug)]
struct CarriedOctets {
    /// IP packets.
    inside: [f64; 2],
    /// ROHC packets.
    compressed: [f64; 2],
    /// Everything on the carrier, including feedback.
    carrier: [f64; 2],
    /// True if there are contexts of the cell's profile.
    is_by_profile: bool,
}

/// Mean of requests and of responses.
type DirectionMeans = fn(&CarriedOctets) -> [f64; 2];

/// Half the 95 % interval of one of the paper's means, estimated from the range, as the paper gives no deviation.
fn margin(min: f64, max: f64) -> f64 {
    // Student's t for 20 values.
    2.093 * (max - min) / RANGE / COUNT.sqrt()
}

impl PlaceMeasurements {
    fn times(&self, way: &str, version: InnerIpVersion) -> Option<RttSummary> {
        let is_it = |measurements: &&CellMeasurements| {
            (measurements.cell.way.name(), measurements.cell.version) == (way, version)
        };
        self.cells.iter().find(is_it)?.times
    }

    /// Mean of the paper and half its interval. Only the place that resembles its link has one.
    fn theirs(&self, run: &PaperRun<'_>, way: &str, version: InnerIpVersion) -> Option<(f64, f64)> {
        let of = |name| {
            let id = format!("{way}/{}/{}/{name}", version.name(), self.place.name());
            run.published.theirs(&id)
        };
        Some((of("mean")?, margin(of("min")?, of("max")?)))
    }

    fn put(&self, run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
        let place = self.place.name();
        for measurements in &self.cells {
            self.put_cell(run, measurements, figures);
        }
        figures.put(format!("stolen/{place}"), self.stolen * 100.0);
        if let Some(late) = self.late {
            figures.put(format!("late/{place}"), late);
        }
        // Conclusions of the paper: differences between two paths.
        for vars in run.form.all(&["conclusion", "version"])? {
            let version = if vars.text("version")? == InnerIpVersion::V4.name() {
                InnerIpVersion::V4
            } else {
                InnerIpVersion::V6
            };
            let [of, to] = [vars.text("conclusion.of")?, vars.text("conclusion.to")?];
            let ours = self.times(of, version).zip(self.times(to, version));
            let theirs = self.theirs(run, of, version).zip(self.theirs(run, to, version));
            let theirs = theirs.map(|(of, to)| (of.0 - to.0, of.1.hypot(to.1)));
            let id = vars.expand("difference/{conclusion}/{version}")? + "/" + place;
            put_difference(figures, &id, ours.map(|(of, to)| of.minus(&to)), theirs);
            put_difference(figures, &format!("theirs/{id}"), theirs, None);
            put_difference(figures, &format!("{id}/median"), ours.map(|(of, to)| of.median_minus(&to)), None);
        }
        Ok(())
    }

    fn put_cell(&self, run: &PaperRun<'_>, measurements: &CellMeasurements, figures: &mut Figures) {
        let RttCell { way, version } = measurements.cell;
        let id = format!("{}/{}/{}", way.name(), version.name(), self.place.name());
        let time = |of: fn(&RttSummary) -> f64| measurements.times.as_ref().map(of);
        figures.put(format!("{id}/mean"), time(|times| times.mean)).half = time(|times| times.margin);
        let theirs = self.theirs(run, way.name(), version).map(|(_, margin)| margin);
        figures.put(format!("{id}/ci95"), time(|times| times.margin)).theirs = theirs;
        let median = figures.put(format!("{id}/median"), time(|times| times.median));
        median.half = time(|times| times.median_margin);
        figures.put(format!("{id}/min"), time(|times| times.min));
        figures.put(format!("{id}/max"), time(|times| times.max));
        figures.put(format!("{id}/count"), time(|times| times.count as f64));
        figures.put(format!("{id}/lost"), measurements.lost as f64);
        // Difference of the median to that of another path, in milliseconds.
        let above = |other: &str| Some(measurements.times?.median - self.times(other, version)?.median);
        if way.profile().is_some() && self.place == LinkPlace::Veth {
            // Each tunnel adds half of the excess over a plain forwarder.
            figures.put(format!("{id}/added"), above(TunnelPath::Forwarder.name()).map(|added| added / 2.0));
        }
        if matches!(way, TunnelPath::Tunnel(profile) if profile != ProfileId::Uncompressed) {
            figures.put(format!("{id}/apart"), above(ProfileId::Uncompressed.name()));
        }
        let octets: [(&str, DirectionMeans); 3] = [
            ("inside", |carried| carried.inside),
            ("rohc", |carried| carried.compressed),
            ("octets", |carried| carried.carrier),
        ];
        for (carried, (name, of)) in
            measurements.carried.iter().flat_map(|carried| octets.map(|of| (carried, of)))
        {
            for (half, ours) in ["get", "rsp"].into_iter().zip(of(carried)) {
                figures.put(format!("{id}/{name}/{half}"), ours);
            }
        }
    }
}

/// Puts a difference, half its interval, and whether it is significant.
fn put_difference(figures: &mut Figures, id: &str, ours: Option<(f64, f64)>, theirs: Option<(f64, f64)>) {
    let figure = figures.put(id, ours.map(|ours| ours.0));
    (figure.half, figure.theirs) = (ours.map(|ours| ours.1), theirs.map(|theirs| theirs.0));
    let interval = figures.put(format!("{id}/ci95"), ours.map(|ours| ours.1));
    interval.theirs = theirs.map(|theirs| theirs.1);
    let words = match ours {
        None => return,
        Some((difference, margin)) if difference.abs() <= margin => "open",
        Some((difference, _)) if difference > 0.0 => "more",
        Some(_) => "less",
    };
    figures.put_text(format!("{id}/words"), words);
}

fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let scale = if run.plan.quick { QUICK } else { FULL };
    match in_real_time(run.plan, scale, run.progress)? {
        Ok(measured) => put(&measured, run, figures),
        Err(missing) => {
            figures.left_out.push(format!("Left out: all rows, as {missing}."));
            Ok(())
        }
    }
}

fn put(measured: &[PlaceMeasurements], run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    for at in measured {
        at.put(run, figures)?;
    }
    let cells = || measured.iter().flat_map(|at| &at.cells);
    let lost: usize = cells().map(|measurements| measurements.lost).sum();
    let others = cells()
        .filter(|measurements| measurements.carried.is_some_and(|carried| !carried.is_by_profile))
        .count();
    figures.put("lost", lost as f64);
    figures.put("other-profile", others as f64).bar = Some(Bar { max: Some(0.0), min: None });
    Ok(())
}

/// Measures all places; the inner error is the reason that this is not possible.
#[cfg(target_os = "linux")]
fn in_real_time(
    plan: &RunPlan,
    scale: RttScale,
    progress: ProgressCallback<'_>,
) -> Result<Result<Vec<PlaceMeasurements>, String>, PaperError> {
    if !plan.real_time {
        return Ok(Err("real-time runs were not requested".to_owned()));
    }
    let Some(program) = &plan.program else {
        return Ok(Err("it takes the command `thinair` to run tunnels".to_owned()));
    };
    // Before any thread, so that all of them leave signals to this one, and before anything that needs cleanup.
    let interrupt = crate::children::Interrupt::take()?;
    if let Some(missing) = real::missing() {
        return Ok(Err(missing));
    }
    let all: u64 = LinkPlace::ALL.iter().map(|&place| real::requests(place, scale)).sum();
    let done = std::cell::Cell::new(0);
    progress(0, all)?;
    let mut measured = Vec::new();
    for place in LinkPlace::ALL {
        measured.push(real::measure(place, plan, program, scale, &interrupt, &|| {
            done.set(done.get() + 1);
            progress(done.get(), all)
        })?);
    }
    Ok(Ok(measured))
}

#[cfg(not(target_os = "linux"))]
fn in_real_time(
    _: &RunPlan,
    _: RttScale,
    _: ProgressCallback<'_>,
) -> Result<Result<Vec<PlaceMeasurements>, String>, PaperError> {
    Ok(Err("this system has no network namespaces of Linux".to_owned()))
}

#[cfg(test)]
mod tests;
