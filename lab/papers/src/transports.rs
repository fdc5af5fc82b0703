//! `transports`: comparison of services that fetch a small object over a constrained link, by octets and time.

mod cell;
mod header_blocks;
mod http3;
mod kept;
#[cfg(target_os = "linux")]
mod kept_real;
mod over_rohc;
#[cfg(target_os = "linux")]
mod passed;
mod rohc;
#[cfg(target_os = "linux")]
mod service;
#[cfg(target_os = "linux")]
mod site;
#[cfg(test)]
mod tests;
mod virtual_time;

use thinair_analyze::exchange::Exchange;

use cell::{FULL, KernelOptions, QUICK, TransportCell, TransportLink, TransportScale, USUAL, sites};

use crate::form::{Figures, PaperRun, declared};
use crate::paper::{Paper, PaperError, ProgressCallback, RunPlan};
use crate::row::Bar;

pub(crate) const PAPER: Paper =
    Paper { is_real_time: true, ..declared!("transports", "transports", measure) };

/// Load that a client process put on the link.
#[derive(Clone, Copy, Debug, Default)]
struct ExchangeSample {
    exchange: Exchange,
    /// Maximum lateness of a packet, in nanoseconds.
    late_ns: u64,
    /// Octets of IP packets, and of their form on the link.
    ip_octets: u64,
    link_octets: u64,
    /// Frames on the link, and their octets.
    frames: u64,
    frame_octets: u64,
}

/// Measurements of a cell.
#[derive(Clone, Debug)]
struct Served {
    cell: TransportCell,
    /// Samples that count.
    samples: Vec<ExchangeSample>,
    /// Number of late samples, which are not counted.
    repeated: usize,
}

/// Figure of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    median: f64,
    min: f64,
    max: f64,
}

impl Range {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            0 => (values[middle - 1] + values[middle]) / 2.0,
            _ => values[middle],
        };
        Some(Self { median, min, max })
    }

    /// Median, and the range where it is significant.
    fn text(self, decimals: usize) -> String {
        let Self { median, min, max } = self;
        let is_range = if decimals > 0 { max - min > median / 100.0 } else { max > min };
        if is_range {
            format!("{median:.decimals$} [{min:.decimals$}–{max:.decimals$}]")
        } else {
            format!("{median:.decimals$}")
        }
    }
}

impl Served {
    /// Time that counts, in milliseconds, of a run that finished.
    fn time_of(&self, exchange: &Exchange) -> Option<f64> {
        let nanos = if self.cell.service.is_download() { exchange.download_ns } else { exchange.answered_ns };
        nanos.map(|nanos| nanos as f64 / 1e6)
    }

    fn finished(&self) -> impl Iterator<Item = &Exchange> {
        self.samples.iter().map(|sample| &sample.exchange).filter(|of| self.time_of(of).is_some())
    }

    fn unfinished(&self) -> usize {
        self.samples.len() - self.finished().count()
    }

    /// Range over the runs that finished; `None` if none did.
    fn range(&self, of: impl Fn(&Exchange) -> Option<f64>) -> Option<Range> {
        Range::of(self.finished().filter_map(of).collect())
    }

    /// Range of a figure of the link over the runs that finished.
    fn of_link(&self, of: fn(&ExchangeSample) -> u64) -> Option<Range> {
        let finished = self.samples.iter().filter(|sample| self.time_of(&sample.exchange).is_some());
        Range::of(finished.map(|sample| of(sample) as f64).collect())
    }

    fn time(&self) -> Option<Range> {
        self.range(|exchange| self.time_of(exchange))
    }
}

/// All measurements.
#[derive(Clone, Debug, Default)]
struct TransportMeasurements {
    served: Vec<Served>,
    /// Services over a link with ROHC.
    compressed: Vec<rohc::CompressedService>,
    /// Several objects on one connection.
    kept: Vec<kept::KeptReal>,
    /// Steal time: share of the machine's time that its host gave to others.
    stolen: f64,
    left_out: Vec<String>,
}

fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let plan = run.plan;
    let scale = match (plan.quick, plan.full) {
        (true, _) => QUICK,
        (false, false) => USUAL,
        (false, true) => FULL,
    };
    // Measurements that handle signals come first, as they must begin before any other thread.
    match in_real_time(plan, scale, run.progress)? {
        Ok(measured) => {
            figures.left_out.clone_from(&measured.left_out);
            measured.put(run, scale, figures)?;
        }
        Err(missing) => figures.left_out.push(format!(
            "Left out: what is measured in real time, as {missing}. What is in virtual time is here."
        )),
    }
    virtual_time::measure(run, figures)?;
    header_blocks::measure(figures);
    over_rohc::measure(run, figures)?;
    kept::measure(plan, figures)
}

impl TransportMeasurements {
    /// Puts all figures.
    fn put(
        &self,
        run: &PaperRun<'_>,
        scale: TransportScale,
        figures: &mut Figures,
    ) -> Result<(), PaperError> {
        self.served.iter().for_each(|served| served.put(figures));
        for cell in http3::impossible() {
            for figure in ["packets", "octets", "odt"] {
                figures.put(cell.id(figure), None);
            }
            figures.put_text(format!("shown/{}", cell.id("odt")), "MTU too small");
        }
        self.compressed.iter().for_each(|compressed| compressed.put(figures));
        self.kept.iter().for_each(|kept| kept.put(figures));
        // Conclusions of the paper, in percent: a figure of one cell relative to that of another.
        for vars in run.form.all(&["share"])? {
            let [of, over] = [vars.text("share.of")?, vars.text("share.over")?];
            let share = |of: Option<f64>, over: Option<f64>| Some(of? / over? * 100.0);
            let id = format!("share/{}", vars.text("share")?);
            let figure = figures.put(id, share(figures.value(of), figures.value(over)));
            figure.theirs = share(run.published.theirs(of), run.published.theirs(over));
        }
        let samples = || self.served.iter().flat_map(|served| &served.samples);
        let latest = samples().map(|sample| sample.late_ns).max();
        figures.put("late/max", latest.map(|nanos| nanos as f64 / 1e3));
        let counts = [
            ("latest", latest.unwrap_or(0) as f64 / 1e3),
            ("exchanges", samples().count() as f64),
            ("runs", scale.runs as f64),
            ("late", samples().filter(|sample| sample.late_ns > 1_000_000).count() as f64),
            ("repeated", self.served.iter().map(|served| served.repeated).sum::<usize>() as f64),
            ("stolen", self.stolen),
        ];
        for (name, count) in counts {
            figures.put(format!("settings/{name}"), count);
        }
        for options in KernelOptions::ALL {
            for (at, (name, value)) in options.sysctls().into_iter().enumerate() {
                figures.put_text(format!("sysctl/{at}/name"), name);
                figures.put_text(format!("sysctl/{at}/{}", options.name()), value);
            }
        }
        Ok(())
    }
}

impl Served {
    fn put(&self, figures: &mut Figures) {
        let cell = &self.cell;
        let count = |of: fn(&Exchange) -> u64| self.range(|exchange| Some(of(exchange) as f64));
        let (packets, octets) = (count(|of| of.packets), count(Exchange::total));
        let share = self.range(|of| of.set_up_share().map(|share| share * 100.0));
        let mut ranges = vec![
            ("packets", packets),
            ("octets", octets),
            ("odt", self.time()),
            ("overhead/ip", count(|of| of.octets.ip)),
            ("overhead/transport", count(|of| of.octets.transport)),
            ("overhead/application", count(|of| of.octets.application)),
            ("again", count(|of| of.again)),
        ];
        if cell.service.is_download() {
            ranges.push(("set-up", share));
        }
        if cell.link.is_ipv6() {
            ranges.push(("frames", self.of_link(|of| of.frames)));
            ranges.push(("frame-octets", self.of_link(|of| of.frame_octets)));
        }
        let unfinished = self.unfinished();
        for (name, range) in ranges {
            let shown = match (range, unfinished) {
                (None, _) => "did not finish".to_owned(),
                (Some(range), 0) => range.text(if name == "odt" { 1 } else { 0 }),
                (Some(range), some) => {
                    let range = range.text(if name == "odt" { 1 } else { 0 });
                    format!("{range}, {some} of {} did not finish", self.samples.len())
                }
            };
            figures.put_text(format!("shown/{}", cell.id(name)), shown);
            let figure = figures.put(cell.id(name), range.map(|range| range.median));
            if name == "odt" {
                // A part of its time.
                let is_download = cell.service.is_download();
                let words =
                    if is_download { "object download time" } else { "until the acknowledgment has come" };
                words.clone_into(&mut figure.note);
            }
        }
        if unfinished > 0 {
            figures.put(cell.id("unfinished"), unfinished as f64);
        }
        if cell.link == TransportLink::Slow && cell.service.is_steady() {
            let spread = |range: Option<Range>| range.map(|range| range.max - range.min);
            let both = spread(packets).zip(spread(octets)).map(|(packets, octets)| packets + octets);
            figures.put(cell.id("spread"), both).bar = Some(Bar { max: Some(0.0), min: None });
        }
    }
}

/// Measures all sites; the inner error is the reason that this is not possible.
#[cfg(target_os = "linux")]
fn in_real_time(
    plan: &RunPlan,
    scale: TransportScale,
    progress: ProgressCallback<'_>,
) -> Result<Result<TransportMeasurements, String>, PaperError> {
    if !plan.real_time {
        return Ok(Err("real-time runs were not requested".to_owned()));
    }
    let Some(program) = &plan.program else {
        return Ok(Err("it takes the command `thinair` to run links".to_owned()));
    };
    // Before any thread, so that all of them leave signals to this one.
    let interrupt = crate::children::Interrupt::take()?;
    if let Some(missing) = site::missing() {
        return Ok(Err(missing));
    }
    let missing = site::services_missing(program);
    let left_out =
        missing.iter().map(|(service, why)| format!("Left out: {}, as {why}.", service.name())).collect();
    let sites: Vec<Vec<TransportCell>> = sites(scale)
        .into_iter()
        .map(|cells| cells.into_iter().filter(|cell| !missing.contains_key(&cell.service)).collect())
        .collect();
    let begin = thinair_os::clock::ProcessorTime::until_now();
    let cost = |cells: &Vec<TransportCell>| (cells.len() * scale.runs) as u64;
    let served = crate::sweep::sweep(&sites, plan.threads, progress, cost, |cells| {
        site::run(cells, scale.runs, program, &interrupt)
    })?;
    let compressed = rohc::measure(plan, &missing, program, &interrupt)?;
    let kept = kept_real::run(plan, scale, &missing, program, &interrupt)?;
    let stolen = match (begin, thinair_os::clock::ProcessorTime::until_now()) {
        (Some(begin), Some(end)) => end.stolen_since(begin),
        _ => 0.0,
    };
    let served = served.into_iter().flatten().collect();
    Ok(Ok(TransportMeasurements { served, compressed, kept, stolen, left_out }))
}

#[cfg(not(target_os = "linux"))]
fn in_real_time(
    _: &RunPlan,
    _: TransportScale,
    _: ProgressCallback<'_>,
) -> Result<Result<TransportMeasurements, String>, PaperError> {
    Ok(Err("this system has no network namespaces of Linux".to_owned()))
}
