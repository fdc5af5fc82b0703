//! `transports`: which service fetches a small object over a constrained link in the fewest octets and the shortest time.

mod cell;
mod header_blocks;
mod http3;
mod kept;
#[cfg(target_os = "linux")]
mod kept_real;
mod over_rohc;
#[cfg(target_os = "linux")]
mod passed;
mod published;
mod rohc;
mod rows;
#[cfg(target_os = "linux")]
mod service;
mod show;
mod show_kept;
mod show_over_rohc;
mod show_virtual;
#[cfg(target_os = "linux")]
mod site;
#[cfg(test)]
mod tests;
mod virtual_time;

use thinair_analyze::exchange::Exchange;

use cell::{Cell, FULL, QUICK, Scale, USUAL, sites};

use crate::paper::{About, Error, Findings, Paper, Plan, Progress};

/// The evaluation.
#[derive(Debug)]
pub(crate) struct Transports;

/// What a client process took of the link.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    exchange: Exchange,
    /// The most nanoseconds that a packet of it was late.
    late_ns: u64,
    /// Octets of IP packets, and of what the link was given for them.
    ip_octets: u64,
    link_octets: u64,
    /// Frames on the link, and their octets.
    frames: u64,
    frame_octets: u64,
}

/// What was measured of a cell.
#[derive(Clone, Debug)]
struct Served {
    cell: Cell,
    /// Those that count.
    samples: Vec<Sample>,
    /// Those that were late, and are not counted.
    repeated: usize,
}

/// A figure of several runs.
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
}

impl Served {
    /// The time that counts, in milliseconds, of a run that finished.
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

    /// Of the runs that finished; `None` if none did.
    fn range(&self, of: impl Fn(&Exchange) -> Option<f64>) -> Option<Range> {
        Range::of(self.finished().filter_map(of).collect())
    }

    /// Of the runs that finished, what the link alone knows.
    fn of_link(&self, of: fn(&Sample) -> u64) -> Option<Range> {
        let finished = self.samples.iter().filter(|sample| self.time_of(&sample.exchange).is_some());
        Range::of(finished.map(|sample| of(sample) as f64).collect())
    }

    fn time(&self) -> Option<Range> {
        self.range(|exchange| self.time_of(exchange))
    }
}

/// All that was measured.
#[derive(Clone, Debug, Default)]
struct Measured {
    served: Vec<Served>,
    /// Services over a link with ROHC.
    compressed: Vec<rohc::Compressed>,
    /// Several objects on one connection.
    kept: Vec<kept::KeptReal>,
    /// The share of the machine's time that its host gave to others.
    stolen: f64,
    left_out: Vec<String>,
}

impl Measured {
    fn of(&self, cell: &Cell) -> Option<&Served> {
        self.served.iter().find(|served| served.cell == *cell)
    }

    /// The most nanoseconds that a packet was late, of runs that count.
    fn latest(&self) -> Option<u64> {
        self.served.iter().flat_map(|served| &served.samples).map(|sample| sample.late_ns).max()
    }
}

impl Paper for Transports {
    fn about(&self) -> About {
        About::read("transports", include_str!("transports/paper.md"))
    }

    fn is_real_time(&self) -> bool {
        true
    }

    fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        let scale = match (plan.quick, plan.full) {
            (true, _) => QUICK,
            (false, false) => USUAL,
            (false, true) => FULL,
        };
        // First what needs to hear of signals, and so must begin before any other thread.
        let (measured, missing) = match measure(plan, scale, progress)? {
            Ok(measured) => (measured, None),
            Err(missing) => (Measured::default(), Some(missing)),
        };
        let exact = virtual_time::measure(plan, progress)?;
        let over_rohc = over_rohc::measure(plan, progress)?;
        let kept = kept::measure(plan)?;
        let mut findings = Findings { left_out: measured.left_out.clone(), ..Findings::default() };
        if let Some(missing) = missing {
            let why = format!(
                "Left out: what is measured in real time, as {missing}. What is in virtual time is here."
            );
            findings.left_out.push(why);
        } else {
            findings.rows = rows::rows(&measured);
            findings.ours = show::sections(&measured, scale);
        }
        findings.rows.extend(virtual_time::rows(&exact));
        findings.ours.extend(show_virtual::sections(&exact, &measured));
        let blocks = header_blocks::Blocks::measure();
        findings.rows.extend(blocks.rows());
        findings.ours.push(blocks.section());
        findings.rows.extend(over_rohc::rows(&over_rohc));
        findings.ours.extend(show_over_rohc::sections(&over_rohc));
        findings.rows.extend(kept::rows(&kept));
        findings.ours.push(show_kept::section(&measured.kept, &kept));
        Ok(findings)
    }
}

/// All sites; the inner error says what is missing.
#[cfg(target_os = "linux")]
fn measure(plan: &Plan, scale: Scale, progress: Progress<'_>) -> Result<Result<Measured, String>, Error> {
    if !plan.real_time {
        return Ok(Err("a run in real time was not asked for".to_owned()));
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
        missing.iter().map(|(service, why)| format!("Left out: {}, as {why}.", service.what())).collect();
    let sites: Vec<Vec<Cell>> = sites(scale)
        .into_iter()
        .map(|cells| cells.into_iter().filter(|cell| !missing.contains_key(&cell.service)).collect())
        .collect();
    let begin = thinair_os::clock::ProcessorTime::until_now();
    let cost = |cells: &Vec<Cell>| (cells.len() * scale.runs) as u64;
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
    Ok(Ok(Measured { served, compressed, kept, stolen, left_out }))
}

#[cfg(not(target_os = "linux"))]
fn measure(_: &Plan, _: Scale, _: Progress<'_>) -> Result<Result<Measured, String>, Error> {
    Ok(Err("this system has no network namespaces of Linux".to_owned()))
}
