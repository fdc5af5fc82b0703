//! `coap-latency`: how long exchanges of CoAP take over GPRS and WiFi, with loss, beside a download and over TCP; and what
//! congestion control makes of links that are full or far.

mod cell;
mod conclusions;
mod published;
mod show;
#[cfg(test)]
mod tests;

use core::time::Duration;
use thinair_lab::Summary;
use thinair_lab::plan::Sample;
use thinair_lab::tcp::Nagle;

use cell::{Access, Cell, Control, Metric};
use published::LOSSES;

use crate::paper::{About, Error, Findings, Paper, Plan, Progress};
use crate::row::{Bar, Row};
use crate::sweep::{Samples, runs};

/// The evaluation.
#[derive(Debug)]
pub(crate) struct CoapLatency;

const ABOUT: About = About {
    name: "coap-latency",
    title: "How long exchanges of CoAP take, and which congestion control is safe",
    source: "F. Zheng, B. Fu, Z. Cao: CoAP Latency Evaluation, draft-zheng-core-coap-lantency-evaluation-00, 2016",
    claim: &[
        "100 requests of 9 octets, one every 100 ms, with responses of 23 octets. CoCoA shortens the time of an exchange \
            where packets are lost, and sends more often again. Beside a download GPRS is seven times slower, WiFi is not. Over \
            TCP exchanges take 2.6 times as long on GPRS, because of its headers.",
        "Ours: a timer that follows the path costs nothing where the path is good, but CoCoA collapses where it is full: at 800 \
            clients on 20 kbit/s FASOR completes several times as many exchanges. TCP is slow on GPRS because of Nagle's \
            algorithm: with TCP_NODELAY it takes what UDP takes.",
    ],
    method: &[
        "Whole IPv4 packets with UDP or TCP go from client to server and back over a model of the link, in virtual time. Client \
            and server are the message layer that `thinair coap` runs; TCP is a small one with CUBIC, SACK, delayed \
            acknowledgments and timers as Linux has them. GPRS: 20 kbit/s up, 40 kbit/s down, 72.5 ms each way; WiFi: 8.8 ms \
            each way; both with jitter, as fitted to the rows RAW of table 1. Loss is added to responses. Requests do not wait \
            for each other: NSTART is 100, as FCT and C-RTT can only be had so (NSTART 1 is in the tables).",
        "A paper of 2016 with three runs a cell is no exact measure: the rows of RFC 7252 must lie in the band that holds 95 % of \
            the means of three of our runs. Beside a download: a window of 4 segments on GPRS; of 64 KiB on WiFi, at 20 Mbit/s and without spikes of \
            jitter.",
        "Worst case: the mean, over all runs, of each run's longest exchange, without jitter. Warm: with what was learned \
            in a flow that ended a second before. A crowd: clients that ask again as soon as they are answered, for 300 s, on one \
            uplink of 20 kbit/s (67.6 requests/s) with a queue without end; NSTART 1.",
    ],
    theirs: &[
        "Tables 1 to 3 as printed: means of few runs (the RTR of RAW are thirds of a percent, those of CoCoA on WiFi quarters), \
            without intervals.",
    ],
    why_different: &[
        "Not to be had again: RTR of CoCoA on GPRS (7, 18, 9 %: rises and falls with the loss); FCT of CoCoA on WiFi in table 1 (a \
            copy of the column of GPRS; table 2 has 9,985 ms, which is held); C-RTT of 18 ms with 5 % loss on WiFi (each loss \
            costs at least a timeout: 19 ms and more, unless what was learned before is kept: see warm).",
        "TCP on GPRS with loss (421 and 454 ms) is below that without (450 ms), so it is shown without a bar. On WiFi with 5 % \
            ours is half as long again as the paper's: a response that is lost costs 200 ms and holds back what is behind it. \
            The kernel's own TCP over the same link is what `cargo run -p thinair-lab --example kernel_tcp` shows.",
        "WiFi beside a download: the paper has 30.9 ms for RAW and 25.4 ms for CoCoA, where nothing is lost and both send the \
            same. Ours lies between.",
    ],
};

impl Paper for CoapLatency {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        let cells = cells(plan.quick)?;
        let samples = runs(&cells, plan, progress)?;
        let results = Samples::new(cells.into_iter().map(|cell| cell.id).zip(samples));
        let rows = rows(&results);
        let ours = show::sections(&results, &rows);
        Ok(Findings { rows, ours, left_out: Vec::new() })
    }
}

/// Samples by cell.
type Results = Samples<Sample>;

/// What 95 % of the means of three runs lie in.
fn band_of_three(values: &[f64]) -> Option<(f64, f64)> {
    let mut means: Vec<f64> = values.chunks_exact(3).map(|three| three.iter().sum::<f64>() / 3.0).collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means.get((share * (means.len() as f64 - 1.0)).round() as usize).copied();
    Some((at(0.025)?, at(0.975)?))
}

/// Round trips on which every message might be sent again too early.
const LONG: [u64; 5] = [1, 4, 12, 16, 25];

/// Sizes of crowds.
const CROWDS: [u16; 5] = [50, 100, 200, 400, 800];

/// What OSCORE adds: an option of 5 octets, inner code and tag. RFC 8613, section 8; the least.
const OSCORE: usize = 11;
/// What DTLS 1.2 adds: a record header of 13 octets, an explicit nonce and a tag of 8 octets each (AES-CCM-8).
const DTLS: usize = 29;

fn controls() -> [Control; 9] {
    [
        Control::raw(),
        Control::rfc6298(),
        Control::cocoa(),
        Control::fasor(),
        Control::quick(),
        Control::rfc6298().warm("rfc6298-warm"),
        Control::cocoa().warm("cocoa-warm"),
        Control::fasor().warm("fasor-warm"),
        Control::quick().warm("fasor-quick-warm"),
    ]
}

fn compressed_controls() -> [Control; 4] {
    [Control::raw(), Control::cocoa(), Control::quick(), Control::quick().warm("fasor-quick-warm")]
}

/// What is also run with ROHC on the link.
const COMPRESSED: [&str; 6] = ["raw", "cocoa", "fasor-quick", "fasor-quick-warm", "tcp-nagle", "tcp-nodelay"];

/// Crowds with ROHC on the link.
const COMPRESSED_CROWDS: [u16; 3] = [100, 200, 800];

fn crowd_controls() -> [Control; 5] {
    [Control::raw(), Control::rfc6298(), Control::cocoa(), Control::fasor(), Control::quick()]
}

fn cells(quick: bool) -> Result<Vec<Cell>, Error> {
    let runs = if quick { 30 } else { 900 };
    let mut cells = Vec::new();
    for access in Access::ALL {
        for loss in LOSSES {
            for control in controls() {
                cells.push(Cell::flow(access, control, loss, runs));
                let id = format!("{}/{}/{loss}/steady", access.name(), control.name);
                cells.push(Cell::flow(access, control, loss, runs / 3).steady().named(id));
            }
            for (name, nagle) in [("tcp-nagle", Nagle::Minshall), ("tcp-nodelay", Nagle::Off)] {
                let id = format!("{}/{name}/{loss}", access.name());
                let cell = Cell::flow(access, Control::raw(), loss, runs / 3).over_tcp(nagle).named(id);
                cells.push(Cell { runs: runs / 9, ..cell.clone().compressed()? });
                cells.push(cell);
            }
            for control in compressed_controls() {
                cells.push(Cell::flow(access, control, loss, runs / 9).compressed()?);
            }
            for nstart in [1, 4] {
                for control in [Control::raw(), Control::cocoa(), Control::fasor()] {
                    let id = format!("{}/{}/{loss}/nstart-{nstart}", access.name(), control.name);
                    cells.push(Cell::flow(access, control, loss, runs / 9).nstart(nstart).named(id));
                }
            }
        }
        for control in crowd_controls() {
            let id = format!("{}/{}/download", access.name(), control.name);
            cells.push(Cell::flow(access, control, 0, runs / 9).beside_download(access).named(id));
        }
        for (name, protection) in [("oscore", OSCORE), ("dtls", DTLS)] {
            let id = format!("{}/fasor/0/{name}", access.name());
            cells.push(Cell::flow(access, Control::fasor(), 0, runs / 9).protected(protection).named(id));
        }
    }
    for control in crowd_controls() {
        for codel in [false, true] {
            cells.push(Cell::queue(control, codel, if quick { 3 } else { 60 }));
        }
        for clients in CROWDS.into_iter().filter(|clients| !quick || *clients < 200) {
            cells.push(Cell::crowd(control, clients, if quick { 1 } else { 10 }));
        }
        if control == Control::quick() {
            for clients in COMPRESSED_CROWDS.into_iter().filter(|clients| !quick || *clients < 200) {
                cells.push(Cell::crowd(control, clients, if quick { 1 } else { 3 }).compressed()?);
            }
        }
        for seconds in LONG {
            cells.push(Cell::long(control, Duration::from_secs(seconds), if quick { 3 } else { 30 }));
        }
    }
    Ok(cells)
}

fn rows(results: &Results) -> Vec<Row> {
    let mut rows = Vec::new();
    for access in Access::ALL {
        for (loss, column) in LOSSES.into_iter().zip(0..) {
            for control in controls() {
                rows.extend(Metric::ALL.map(|metric| table1(results, access, control, loss, column, metric)));
            }
            rows.extend(table3(results, access, loss, column));
        }
        rows.extend(table2(results, access));
        for (loss, control) in LOSSES.into_iter().flat_map(|loss| controls().map(|control| (loss, control))) {
            let id = format!("{}/{}/{loss}/steady", access.name(), control.name);
            rows.push(Row::new(
                format!("{}/{}/{loss}/worst", access.name(), control.name),
                format!(
                    "{}, {}, +{loss} %: longest exchange of a run, no jitter",
                    access.title(),
                    control.name
                ),
                "ms",
                results.mean(&id, |sample| sample.worst_ms),
            ));
        }
        rows.extend(better(results, access));
        for nstart in [1, 4] {
            for control in [Control::raw(), Control::cocoa(), Control::fasor()] {
                for loss in LOSSES {
                    let id = format!("{}/{}/{loss}/nstart-{nstart}", access.name(), control.name);
                    let what =
                        format!("{}, {}, +{loss} %, NSTART {nstart}: C-RTT", access.title(), control.name);
                    rows.push(Row::new(
                        format!("{id}/crtt"),
                        what,
                        "ms",
                        results.mean(&id, |sample| sample.crtt_ms),
                    ));
                }
            }
        }
        for (name, loss) in COMPRESSED.into_iter().flat_map(|name| LOSSES.map(|loss| (name, loss))) {
            let id = format!("{}/{name}/{loss}/rohc", access.name());
            let what = format!("{}, {name}, +{loss} %, ROHC", access.title());
            let row = |metric: &str, unit, of: fn(&Sample) -> Option<f64>| {
                let what = format!("{what}: {metric}");
                Row::new(format!("{id}/{metric}"), what, unit, results.mean(&id, of))
            };
            rows.push(row("crtt", "ms", |sample| sample.crtt_ms));
            // Those of a warm flow would be of the flow before it, too.
            if !name.ends_with("-warm") {
                rows.push(row("octets", "octets", |sample| sample.octets));
            }
        }
        for protection in ["oscore", "dtls"] {
            let id = format!("{}/fasor/0/{protection}", access.name());
            let what = format!("{}, FASOR, with the octets of {protection}: C-RTT", access.title());
            rows.push(Row::new(format!("{id}/crtt"), what, "ms", results.mean(&id, |sample| sample.crtt_ms)));
        }
    }
    rows.extend(crowds(results));
    let concluded = conclusions::rows(&rows);
    rows.extend(concluded);
    rows
}

/// A cell of table 1, or of what it would say of others.
fn table1(
    results: &Results,
    access: Access,
    control: Control,
    loss: u32,
    column: usize,
    metric: Metric,
) -> Row {
    let id = format!("{}/{}/{loss}", access.name(), control.name);
    let samples: Vec<f64> = results.of(&id).iter().filter_map(|sample| metric.of(sample)).collect();
    let mean = Summary::of(&samples).map(|summary| summary.mean);
    let what = format!("{}, {}, +{loss} %: {}", access.title(), control.name, metric.title());
    let row = Row::new(format!("{id}/{}", metric.name()), what, metric.unit(), mean);
    let cocoa = match control.name {
        "raw" => false,
        "cocoa" => true,
        _ => return row,
    };
    let theirs = match (access, cocoa, metric, loss) {
        (Access::Wifi, true, Metric::Fct, 0) => published::WIFI_COCOA_FCT,
        _ => published::table1(access, cocoa, metric)[column],
    };
    let row = row.theirs(theirs);
    let rounding = published::rounding(metric);
    let (Some(mean), Some((low, high))) = (mean, band_of_three(&samples)) else { return row };
    if cocoa {
        let held = published::not_reproducible(access, cocoa, metric, loss).is_none()
            || theirs == published::WIFI_COCOA_FCT;
        return match (access, metric) {
            (Access::Gprs, Metric::Fct | Metric::CRtt) | (Access::Wifi, Metric::Fct) if held => {
                row.within(Bar { min: Some(0.9 * theirs), max: Some(1.1 * theirs) })
            }
            _ => row,
        };
    }
    // Theirs is in the band of ours exactly if ours is as far from theirs as the band allows.
    row.within(Bar {
        min: Some(theirs - rounding - (high - mean)),
        max: Some(theirs + rounding + (mean - low)),
    })
}

fn table2(results: &Results, access: Access) -> Vec<Row> {
    let mut rows = Vec::new();
    for control in crowd_controls() {
        let id = format!("{}/{}/download", access.name(), control.name);
        let theirs = match control.name {
            "raw" => Some(published::table2(access, false)),
            "cocoa" => Some(published::table2(access, true)),
            _ => None,
        };
        for (metric, at) in [(Metric::Fct, 0), (Metric::CRtt, 1)] {
            let what = format!("{}, {}, beside a download: {}", access.title(), control.name, metric.title());
            let row = Row::new(
                format!("{id}/{}", metric.name()),
                what,
                "ms",
                results.mean(&id, |sample| metric.of(sample)),
            );
            rows.push(match theirs {
                Some(theirs) => row
                    .theirs(theirs[at])
                    .within(Bar { min: Some(0.85 * theirs[at]), max: Some(1.15 * theirs[at]) }),
                None => row,
            });
        }
    }
    rows
}

fn table3(results: &Results, access: Access, loss: u32, column: usize) -> Vec<Row> {
    let theirs = published::table3(access)[column];
    ["tcp-nagle", "tcp-nodelay"]
        .map(|name| {
            let id = format!("{}/{name}/{loss}", access.name());
            let row = Row::new(
                format!("{id}/crtt"),
                format!("{}, {name}, +{loss} %: C-RTT", access.title()),
                "ms",
                results.mean(&id, |sample| sample.crtt_ms),
            );
            let tolerance = match access {
                Access::Gprs if loss == 0 => Some(0.15),
                Access::Gprs => None,
                Access::Wifi => Some(0.25),
            };
            match (name, tolerance) {
                ("tcp-nagle", Some(share)) => row
                    .theirs(theirs)
                    .within(Bar { min: Some((1.0 - share) * theirs), max: Some((1.0 + share) * theirs) }),
                ("tcp-nagle", None) => row.theirs(theirs),
                _ => row,
            }
        })
        .into()
}

/// FASOR against CoCoA at 5 %: cold against cold, warm against warm.
fn better(results: &Results, access: Access) -> Vec<Row> {
    let pairs = [("cold", "fasor-quick", "cocoa", 0.8), ("warm", "fasor-quick-warm", "cocoa-warm", 0.9)];
    let rows = pairs.into_iter().flat_map(|(name, ours, theirs, worst)| {
        let share = |of: fn(&Sample) -> Option<f64>| {
            let id = |control| format!("{}/{control}/5/steady", access.name());
            Some(results.mean(&id(ours), of)? / results.mean(&id(theirs), of)?)
        };
        let row = |what: &str, id: &str, ours| {
            let what = format!("{}, +5 %, FASOR {name}: {what}, of CoCoA's", access.title());
            Row::new(format!("{}/fasor-of-cocoa/{name}/{id}", access.name()), what, "", ours)
        };
        [
            row("mean C-RTT", "mean", share(|sample| sample.crtt_ms)).at_most(1.0),
            row("longest exchange", "worst", share(|sample| sample.worst_ms)).at_most(worst),
        ]
    });
    rows.collect()
}

/// The link's requests in a second: 37 octets at 20 kbit/s.
const CAPACITY: f64 = 20_000.0 / (37.0 * 8.0);

fn crowds(results: &Results) -> Vec<Row> {
    let mut rows = Vec::new();
    for control in crowd_controls() {
        for clients in CROWDS {
            let id = format!("crowd/{clients}/{}", control.name);
            let Some(goodput) = results.mean(&id, |sample| sample.goodput_per_s) else { continue };
            let what = format!("{clients} clients, {}: exchanges in a second", control.name);
            let row = Row::new(format!("{id}/goodput"), what, "1/s", goodput);
            let what = format!("{clients} clients, {}: transmissions for an exchange", control.name);
            let sent = results.mean(&id, |sample| sample.transmissions);
            let sent = Row::new(format!("{id}/transmissions"), what, "", sent);
            let least = |share: f64| Bar { min: Some(share * CAPACITY), max: None };
            let (row, sent) = match (control.name, clients) {
                ("fasor-quick", 800) => (row.within(least(0.6)), sent.at_most(2.0)),
                ("fasor-quick", ..=200) => (row.within(least(0.95)), sent),
                ("cocoa", 800) => (row.within(Bar { min: Some(0.7 * 9.7), max: Some(1.3 * 9.7) }), sent),
                _ => (row, sent),
            };
            rows.extend([row, sent]);
        }
        for clients in COMPRESSED_CROWDS.into_iter().filter(|_| control == Control::quick()) {
            let id = format!("crowd/{clients}/{}/rohc", control.name);
            let Some(goodput) = results.mean(&id, |sample| sample.goodput_per_s) else { continue };
            let what = format!("{clients} clients, {}, ROHC: exchanges in a second", control.name);
            rows.push(Row::new(format!("{id}/goodput"), what, "1/s", goodput));
        }
        for seconds in LONG {
            let id = format!("rtt/{seconds}/{}", control.name);
            let what = format!("round trip of {seconds} s, {}: RTR", control.name);
            let row =
                Row::new(format!("{id}/rtr"), what, "%", results.mean(&id, |sample| sample.rtr_percent));
            rows.push(if control.name == "fasor-quick" && seconds == 25 { row.at_most(5.0) } else { row });
        }
        for discipline in ["drop-tail", "codel"] {
            let id = format!("queue/{discipline}/{}", control.name);
            let what = format!("{discipline} of 20 kB at 40 kbit/s beside a download, {}", control.name);
            let row = |name: &str, unit, of: fn(&Sample) -> Option<f64>| {
                Row::new(format!("{id}/{name}"), format!("{what}: {name}"), unit, results.mean(&id, of))
            };
            rows.extend([
                row("fct", "ms", |sample| sample.fct_ms),
                row("crtt", "ms", |sample| sample.crtt_ms),
                row("rtr", "%", |sample| sample.rtr_percent),
                row("given-up", "", |sample| sample.given_up),
            ]);
        }
    }
    rows
}
