//! `full-link`: a UDP flow through a link that is full, with header compression beside without.

mod cell;
mod direct;
mod flow;
#[cfg(target_os = "linux")]
mod real;
mod show;
#[cfg(test)]
mod tests;
mod tunnel;

use cell::{Carrier, Cell, Condition, Scenario, Way};
use flow::{HEADERS, Sample};

use crate::paper::{About, Error, Findings, Paper, Plan, Progress};
use crate::row::{Bar, Row};
use crate::sweep::{Samples, runs};

/// The evaluation.
#[derive(Debug)]
pub(crate) struct FullLink;

const ABOUT: About = About {
    name: "full-link",
    title: "Goodput of a link that is full, with header compression beside without",
    source: "Ours: no such evaluation has been published. RFC 3095 assumes losses by the radio, of a few packets in a row; where a \
        queue overflows, losses come in runs as long as the load is high",
    claim: &[
        "Ours: header compression never makes a link slower. Below saturation goodput is at least 0.99 of that without compression; \
            where the link is full, at least 0.9 of what the octets saved allow. All carriers count what they lose: no header \
            is delivered wrong.",
    ],
    method: &[
        "Two hosts in virtual time with a link of 2 Mbit/s between them, without delay, and a queue of 100 packets in each \
            direction that drops what finds it full. One flow of UDP over IPv4 with an IP-ID that counts and a UDP checksum, as \
            `iperf3 -u -b RATE -l PAYLOAD` sends it: what is due at each tick of 1 ms is sent at once, and one tick in 20 is followed by a \
            pause of up to 10 ms, as on a machine that has something else to do. RATE is that of UDP payload: 1, 3 and 6 Mbit/s. After a warm-up of \
            0.5 s a window of 10 s is measured, five times (4 s, once, in a quick run).",
        "link: compressed behind the queue, and frames numbered, as in `thinair link run --rohc`; udp and ule: the sealed tunnel with its \
            defaults, over `udp://` and `ule+udp://` with `flush=3ms`, one end at each side of the link. Without: no ROHC on the link, and the same \
            tunnel with profile uncompressed. U, O, R: the mode that the decompressor asks for.",
        "Other cells are at 3 Mbit/s and 100 octets: a queue of 20; CoDel (RFC 8289) with its defaults; 1, 5 and 20 % of datagrams \
            lost at random; 5 % lost in bursts of 5, 16 and 64 on average (Gilbert). Datagrams of the same place in the order on the \
            link are lost with compression and without. Feedback is lost alike.",
        "goodput: UDP payload of packets that come out as they went in, octet by octet. wrong: packets that came out otherwise. \
            undelivered: packets that arrived and were not decompressed. outage: the longest time without a right packet. The bar \
            of a full link is 0.9 of P / (P - 24), with P octets of the link for each packet without compression, as headers of 28 octets \
            become 4; at most of what is offered and not lost.",
        "real: `thinair link run --rate 2M --queue 100` between two network namespaces, with `--rohc --mode`, or with `thinair tunnel run` in \
            it; `iperf3 -u` sends, and `tcpdump` captures at both ends, so that each packet that comes out is compared with those \
            that went in. 10 s a cell (4 s in a quick run).",
    ],
    theirs: &["None are published."],
    why_different: &[
        "Losses in a queue that is full share no packet's luck: a flow at 1.5 times the rate loses a third of its packets for as long as \
            it lasts, and packets that share a datagram are lost together.",
    ],
};

impl Paper for FullLink {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        let cells = scenarios().flat_map(|scenario| {
            let rohc = Way::MODES.map(Way::Rohc);
            [Way::Plain].into_iter().chain(rohc).map(move |way| Cell::new(scenario, way, plan.quick))
        });
        let cells: Vec<Cell> = cells.collect();
        let samples = runs(&cells, plan, progress)?;
        let virtual_time = Samples::new(cells.iter().map(Cell::id).zip(samples));
        let (real_time, left_out) = match in_real_time(plan, progress)? {
            Ok(samples) => (samples, Vec::new()),
            Err(missing) => (Samples::new([]), vec![format!("Left out: the rows real/, as {missing}.")]),
        };
        let found = |results: &Samples<Sample>, clock: Clock| -> Vec<Found> {
            let ways = scenarios().flat_map(|scenario| Way::MODES.map(|mode| (scenario, Way::Rohc(mode))));
            ways.filter_map(|(scenario, way)| Found::new(results, clock, scenario, way)).collect()
        };
        let (simulated, real) = (found(&virtual_time, Clock::Virtual), found(&real_time, Clock::Real));
        let rows = simulated.iter().chain(&real).flat_map(Found::rows).collect();
        Ok(Findings { rows, ours: show::sections(&simulated, &real), left_out })
    }
}

/// Cells of queues of 100 packets, or in a quick run those at 3 Mbit/s of 100 octets, in real time; the inner error is the
/// reason why there are none.
#[cfg(target_os = "linux")]
fn in_real_time(plan: &Plan, progress: Progress<'_>) -> Result<Result<Samples<Sample>, String>, Error> {
    if !plan.real_time {
        return Ok(Err("a run in real time was not asked for".to_owned()));
    }
    let Some(program) = &plan.program else {
        return Ok(Err("it takes the command `thinair` to run links and tunnels".to_owned()));
    };
    // Before any thread, so that all of them leave signals to this one, and before anything that must be taken away again.
    let interrupt = crate::children::Interrupt::take()?;
    if let Some(missing) = real::missing() {
        return Ok(Err(missing));
    }
    let is_measured = |scenario: &Scenario| {
        scenario.condition == Condition::Full
            && (!plan.quick || (scenario.load, scenario.payload) == (15, 100))
    };
    let ways = || [Way::Plain].into_iter().chain(Way::MODES.map(Way::Rohc));
    let cells = scenarios().filter(is_measured).flat_map(|scenario| ways().map(move |way| (scenario, way)));
    let cells: Vec<_> = cells.collect();
    let seconds = if plan.quick { 4 } else { 10 };
    let mut samples = Vec::new();
    for (done, &(scenario, way)) in (0..).zip(&cells) {
        progress(done, cells.len() as u64);
        let sample = real::measure(scenario, way, plan, program, seconds, &interrupt)?;
        samples.push((format!("{}/{}", scenario.id(), way.name()), vec![sample]));
    }
    progress(cells.len() as u64, cells.len() as u64);
    Ok(Ok(Samples::new(samples)))
}

#[cfg(not(target_os = "linux"))]
fn in_real_time(_: &Plan, _: Progress<'_>) -> Result<Result<Samples<Sample>, String>, Error> {
    Ok(Err("this system has no network namespaces of Linux".to_owned()))
}

/// Clock of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    Virtual,
    Real,
}

/// Octets that 28 octets of headers become in the bar.
const COMPRESSED: f64 = 4.0;
/// Least ratio of goodput where the link is not full.
const BELOW_SATURATION: f64 = 0.99;
/// Least share of what the octets allow where it is full.
const FULL: f64 = 0.9;

fn scenarios() -> impl Iterator<Item = Scenario> {
    Carrier::ALL.into_iter().flat_map(|carrier| {
        let loads = [5, 15, 30].into_iter();
        let full = loads.flat_map(|load| [20, 100, 500].map(|payload| (Condition::Full, load, payload)));
        let others = Condition::OTHERS.map(|condition| (condition, 15, 100));
        full.chain(others).map(move |(condition, load, payload)| Scenario {
            carrier,
            condition,
            load,
            payload,
        })
    })
}

/// A cell with compression, beside the one without.
struct Found {
    clock: Clock,
    scenario: Scenario,
    way: Way,
    with: Sample,
    without: Sample,
}

impl Found {
    fn new(results: &Samples<Sample>, clock: Clock, scenario: Scenario, way: Way) -> Option<Self> {
        let of = |way: Way| together(results.of(&format!("{}/{}", scenario.id(), way.name())));
        Some(Self { clock, scenario, way, with: of(way)?, without: of(Way::Plain)? })
    }

    fn ratio(&self) -> f64 {
        self.with.goodput / self.without.goodput
    }

    /// Mbit/s of payload that are offered and not lost on the link.
    fn arriving(&self) -> f64 {
        self.scenario.offered() * (1.0 - self.scenario.condition.loss())
    }

    /// Least ratio of goodput.
    fn bar(&self) -> f64 {
        let Sample { goodput, octets, .. } = self.without;
        if self.scenario.condition == Condition::Full && goodput >= 0.99 * self.arriving() {
            return BELOW_SATURATION;
        }
        let saved = HEADERS as f64 - COMPRESSED;
        FULL * (octets / (octets - saved)).min(self.arriving() / goodput)
    }

    fn rows(&self) -> Vec<Row> {
        let Self { clock, scenario, way, with, without } = self;
        let (real, in_real_time) = match clock {
            Clock::Virtual => ("", ""),
            Clock::Real => ("real/", ", in real time"),
        };
        let id = |of: &str| format!("{real}{}/{}/{of}", scenario.id(), way.name());
        let (offered, payload) = (scenario.offered(), scenario.payload);
        let (carrier, condition) = (scenario.carrier.title(), scenario.condition.name());
        let what = |of: &str| {
            format!(
                "{carrier}, {condition}, {offered} Mbit/s of {payload} octets, {}-mode{in_real_time}: {of}",
                way.name()
            )
        };
        let row = |of: &str, what_of: &str, unit, with: f64, without: f64| {
            Row::new(id(of), what(what_of), unit, with).peer("without", without)
        };
        let wrong = row("wrong", "delivered, not as sent", "", with.wrong, without.wrong);
        let wrong = wrong.at_most(Some(0.0));
        let bar = Bar { min: Some(self.bar()), max: None };
        let mut rows = vec![
            row("goodput", "goodput", "Mbit/s", with.goodput, without.goodput),
            Row::new(id("ratio"), what("goodput with compression over that without"), "", self.ratio())
                .within(bar),
            wrong,
            row("outage", "longest time without a right packet", "ms", with.outage, without.outage),
        ];
        if *clock == Clock::Virtual {
            let undelivered = (with.undelivered, without.undelivered);
            rows.push(row("undelivered", "arrived, not decompressed", "", undelivered.0, undelivered.1));
            let octets = (with.octets, without.octets);
            rows.push(row("octets", "octets of the link for a right packet", "octets", octets.0, octets.1));
        }
        rows
    }
}

/// Runs of a cell as one: means, sums of packets, the longest outage. `None` without runs.
fn together(runs: &[Sample]) -> Option<Sample> {
    let mean = |of: fn(&Sample) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let sum = |of: fn(&Sample) -> f64| runs.iter().map(of).sum::<f64>();
    (!runs.is_empty()).then(|| Sample {
        goodput: mean(|run| run.goodput),
        delivered: sum(|run| run.delivered),
        wrong: sum(|run| run.wrong),
        undelivered: sum(|run| run.undelivered),
        outage: runs.iter().map(|run| run.outage).fold(0.0, f64::max),
        octets: mean(|run| run.octets),
    })
}
