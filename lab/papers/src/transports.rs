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

const ABOUT: About = About {
    name: "transports",
    title: "Which service fetches a small object over a constrained link: CoAP, HTTP, SPDY, and their lean forms",
    source: "L. Daniel, M. Kojo, M. Latvala: Experimental Evaluation of the CoAP, HTTP and SPDY Transport Services for Internet \
        of Things, 2014 (slides of 23 September 2014)",
    claim: &[
        "An object of 10 octets over 20 kbit/s, 20 ms and an MTU of 128 takes 0.08 s, 2 packets and 86 octets by CoAP; 0.16 s, 6 and \
            384 by IoT-HTTP, which is HTTP with few headers and TCP Fast Open; 0.25 s, 9 and 567 by IoT-SPDY; 0.68 s, 20 and \
            1,382 by SPDY; 0.79 s, 20 and 1,546 by HTTP. CoAP is best; the lean forms take 50 to 75 % less time than HTTP and \
            SPDY; at 250 kbit/s CoAP and IoT-HTTP are comparable; a larger MTU saves octets of HTTP and SPDY.",
        "Ours: 6 packets and 297 octets by HTTP in at most 112 ms, where the kernel may do without a cookie; 7 packets and 440 octets \
            by SPDY in at most 226 ms.",
    ],
    method: &[
        "Real programs in two network namespaces over `thinair link run`, in real time: 20 ms each way, full duplex, queues of 50 \
            packets. Servers run in the foreground with a configuration of their own; each exchange is a client process of its \
            own. What an exchange took is read from the link's log and capture: all packets from the first one of the client to \
            the last one of the connection.",
        "Object download time: from the first packet of the client entering the link to the delivery of the packet with the last \
            octet of the object. The object is found by its octets in what the server said; what else is above UDP and TCP \
            counts as header of the service.",
        "Kernel options are those of a column, never chosen by row, and written before anything runs: “lean” is without timestamps \
            and SACK, as the octets of the paper's tables tell; “default” is Linux; “cookieless” is lean without window \
            scaling, and Fast Open without cookies. Warm: there was contact with the host before, so that there is a cookie.",
        "Beside that, in virtual time and to the bit: the same exchanges over our TCP, as kernels do them, and as RFC 7413 allows at best; \
            with bit errors, bursts, and crowds on one queue, and all of that over ROHC. That part needs no root, and is the same on any machine.",
        "Figures are medians, of 3 runs (5 with --full, 1 with --quick), with their ranges. A run with a packet that the link \
            delivered more than 1 ms late is repeated, at most twice. Links run side by side, as many as there are processors.",
    ],
    theirs: &[
        "The tables of the slides. What they draw without numbers (other sizes, 250 kbit/s) is measured here, and has no figures of \
            theirs beside it.",
        "Their CoAP is libcoap, as here. Their HTTP and SPDY are Chrome with Apache and mod_spdy, which cannot be had any more: here \
            curl sends the headers of Chrome 37 to Apache, and the package `spdy` of npm speaks to itself.",
    ],
    why_different: &[
        "Of IoT-HTTP the octets of IP and TCP agree exactly, so the kernel options of “lean” are those of the paper's hosts as far as \
            octets tell: 28 octets of TCP options in the exchange. Ours has fewer octets of headers.",
        "Linux puts at most MTU - 80 octets into a SYN: 48 at an MTU of 128. A first SPDY request takes 72 at least, as its dictionary \
            does not have the names that SPDY/3 needs, so that a part waits for the SYN-ACK.",
        "Over ROHC a connection costs what its first packets cost, as each fetch is a new one: SYN and SYN-ACK say in IR-CR packets all \
            but what they share with an earlier connection (RFC 6846, section 7.2).",
        "libcoap of today sends tokens of one octet, and no Content-Format or Max-Age: 14 octets of headers, theirs 20. 1,000 octets go \
            in IP fragments there and here.",
        "Times of theirs are those of hosts and an emulator of 2014, and in the browser rows those of a browser.",
    ],
};

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
    fn about(&self) -> &About {
        &ABOUT
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
