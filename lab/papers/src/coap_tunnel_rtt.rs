//! `coap-tunnel-rtt`: how long a CoAP request takes through two tunnels, by profile, and how long without.

mod cell;
mod exchange;
mod published;
#[cfg(target_os = "linux")]
mod real;
mod rows;
mod show;
mod summary;

use cell::{Cell, Place, Version, Way};
use summary::Summary;

use crate::paper::{About, Error, Findings, Paper, Plan, Progress};

/// The evaluation.
#[derive(Debug)]
pub(crate) struct CoapTunnelRtt;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Round trips of a cell.
    rounds: usize,
}

const FULL: Scale = Scale { rounds: 1_000 };
const QUICK: Scale = Scale { rounds: 50 };

/// What was measured at a place.
#[derive(Clone, Debug)]
struct Measured {
    place: Place,
    cells: Vec<Told>,
    /// The share of the machine's time that its host gave to others.
    stolen: f64,
    /// Microseconds that the link was late for 99 % of its packets.
    late: Option<f64>,
}

/// What is known of a cell.
#[derive(Clone, Debug)]
struct Told {
    cell: Cell,
    times: Option<Summary>,
    /// Round trips that were not counted: not answered, or asked more than once.
    lost: usize,
    /// None without a tunnel.
    carried: Option<Carried>,
}

/// Mean octets of a packet: of requests, and of responses.
#[derive(Clone, Copy, Debug)]
struct Carried {
    /// IP packets.
    inside: [f64; 2],
    /// ROHC packets.
    compressed: [f64; 2],
    /// All that the carrier takes, feedback included.
    carrier: [f64; 2],
    /// There are contexts of the profile that the cell is about.
    is_by_profile: bool,
}

impl Measured {
    fn of(&self, way: Way, version: Version) -> Option<&Told> {
        self.cells.iter().find(|told| told.cell == Cell { way, version })
    }

    fn times(&self, way: Way, version: Version) -> Option<Summary> {
        self.of(way, version)?.times
    }
}

impl Paper for CoapTunnelRtt {
    fn about(&self) -> About {
        About::read("coap-tunnel-rtt", include_str!("coap_tunnel_rtt/paper.md"))
    }

    fn is_real_time(&self) -> bool {
        true
    }

    fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        let scale = if plan.quick { QUICK } else { FULL };
        match measure(plan, scale, progress)? {
            Ok(measured) => Ok(findings(&measured)),
            Err(missing) => {
                let left_out = format!("Left out: all rows, as {missing}.");
                Ok(Findings { left_out: vec![left_out], ..Findings::default() })
            }
        }
    }
}

fn findings(measured: &[Measured]) -> Findings {
    Findings { rows: rows::rows(measured), ours: show::sections(measured), left_out: Vec::new() }
}

/// All places; the inner error says what is missing.
#[cfg(target_os = "linux")]
fn measure(
    plan: &Plan,
    scale: Scale,
    progress: Progress<'_>,
) -> Result<Result<Vec<Measured>, String>, Error> {
    if !plan.real_time {
        return Ok(Err("a run in real time was not asked for".to_owned()));
    }
    let Some(program) = &plan.program else {
        return Ok(Err("it takes the command `thinair` to run tunnels".to_owned()));
    };
    // Before any thread, so that all of them leave signals to this one, and before anything that must be taken away again.
    let interrupt = crate::children::Interrupt::take()?;
    if let Some(missing) = real::missing() {
        return Ok(Err(missing));
    }
    let all: u64 = Place::ALL.iter().map(|&place| real::requests(place, scale)).sum();
    let done = std::cell::Cell::new(0);
    progress(0, all);
    let mut measured = Vec::new();
    for place in Place::ALL {
        measured.push(real::measure(place, plan, program, scale, &interrupt, &|| {
            done.set(done.get() + 1);
            progress(done.get(), all);
        })?);
    }
    Ok(Ok(measured))
}

#[cfg(not(target_os = "linux"))]
fn measure(_: &Plan, _: Scale, _: Progress<'_>) -> Result<Result<Vec<Measured>, String>, Error> {
    Ok(Err("this system has no network namespaces of Linux".to_owned()))
}

#[cfg(test)]
mod tests;
