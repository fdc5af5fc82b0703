//! The figures one by one, with their bars.

use thinair_lab::Stack;
use thinair_lab::broadcast::mesh::Topology;
use thinair_ule::capacity::{Encapsulation, Filling, Headers};

use super::Results;
use super::model::{HeaderSizes, Way, gain, kbps, sndus_per_ts, ts_per_second};
use super::published::{self, PAYLOADS, Three};
use super::simulate::{
    CONCAT, DELAY, Job, PACED_PAYLOAD, PACES, PAPER_THRESHOLD, SHORT_QUEUE, SITES, STACK_PAYLOADS, STEP,
    Scheme, paced, rates,
};
use crate::row::{Bar, Row};

const PAPER: Scheme = Scheme::Threshold(PAPER_THRESHOLD);

pub(super) fn rows(results: &Results) -> Vec<Row> {
    let mut rows = headers(results);
    for payload in PAYLOADS {
        rows.extend(model(results, payload));
        rows.extend(one_sndu(results, payload));
    }
    for payload in PAYLOADS {
        rows.extend(simulated(results, payload));
    }
    rows.extend(further(results));
    rows.extend(stacks(results));
    rows.extend(thresholds(results));
    rows.extend(sweeps(results));
    rows.extend(meshes(results));
    rows.extend(real(results));
    rows.extend(comparison(results));
    rows
}

/// From so many percent below to as many above.
fn around(figure: f64, percent: f64) -> Bar {
    let part = figure * percent / 100.0;
    Bar { min: Some(figure - part), max: Some(figure + part) }
}

fn plus_minus(figure: f64, margin: f64) -> Bar {
    Bar { min: Some(figure - margin), max: Some(figure + margin) }
}

fn held(row: Row, bar: Option<Bar>) -> Row {
    match bar {
        Some(bar) => row.within(bar),
        None => row,
    }
}

/// What the model takes for given, found by compressing.
fn headers(results: &Results) -> Vec<Row> {
    let cycle = results.headers.of(Way::Cmp);
    let run = |at: usize| cycle.get(at).copied().unwrap_or(Headers { packets: 0, octets: 0 });
    let row = |name: &str, what: &str, unit, ours: f64, theirs: f64| {
        Row::new(format!("headers/{name}"), what, unit, ours).theirs(theirs)
    };
    let [ir, so] = [run(0), run(1)];
    let (packets, octets) = cycle
        .iter()
        .fold((0, 0), |(packets, octets), run| (packets + run.packets, octets + run.packets * run.octets));
    let mean = f64::from(octets) / f64::from(packets);
    let ((ir_octets, ir_packets), (so_octets, so_packets)) = (published::IR, published::SO);
    let theirs = (ir_octets * ir_packets + so_octets * so_packets) / (ir_packets + so_packets);
    let exactly = |row: Row, figure| row.within(plus_minus(figure, 0.0));
    vec![
        exactly(row("ir", "header of an IR packet", "octets", ir.octets.into(), ir_octets), ir_octets),
        exactly(
            row("ir-packets", "IR packets in a row", "packets", ir.packets.into(), ir_packets),
            ir_packets,
        ),
        exactly(
            row("so", "header of a packet in SO state", "octets", so.octets.into(), so_octets),
            so_octets,
        ),
        exactly(
            row("so-packets", "packets in SO state in a row", "packets", so.packets.into(), so_packets),
            so_packets,
        ),
        row("average", "average_ROHC, equation 5", "octets", mean, theirs).within(plus_minus(theirs, 0.001)),
    ]
}

fn what(scheme: &str, payload: u32, way: Way) -> String {
    format!("{scheme}, {payload} octets of payload, {}", way.what())
}

/// Rows `<scheme>/<payload>/unc|cmp|gain` of two throughputs.
fn three(scheme: &str, words: &str, payload: u32, [unc, cmp]: [f64; 2]) -> [Row; 3] {
    [
        Row::new(format!("{scheme}/{payload}/unc"), what(words, payload, Way::Unc), "kbit/s", unc),
        Row::new(format!("{scheme}/{payload}/cmp"), what(words, payload, Way::Cmp), "kbit/s", cmp),
        Row::new(
            format!("{scheme}/{payload}/gain"),
            format!("{words}, {payload} octets of payload: gained by compression"),
            "%",
            gain(unc, cmp),
        ),
    ]
}

/// Holds three rows to published figures, to so many percent; the gain to points.
fn hold(rows: [Row; 3], published: Option<Three>, percent: f64, points: f64) -> [Row; 3] {
    let [unc, cmp, gained] = rows;
    let Some(published) = published else { return [unc, cmp, gained] };
    [
        unc.within(around(published.unc, percent)),
        cmp.within(around(published.cmp, percent)),
        gained.within(plus_minus(published.gain, points)),
    ]
}

fn theirs(rows: [Row; 3], payload: u32) -> [Row; 3] {
    let measured = published::measured(payload);
    let [unc, cmp, gained] = rows;
    [
        unc.theirs(measured.map(|three| three.unc)),
        cmp.theirs(measured.map(|three| three.cmp)),
        gained.theirs(measured.map(|three| three.gain)),
    ]
}

fn model(results: &Results, payload: u32) -> Vec<Row> {
    let of = |filling| Way::BOTH.map(|way| results.headers.ule(filling, payload, way));
    let model = three("model", "equations 1 to 7", payload, of(Filling::Ideal));
    let [unc, cmp, gained] = hold(model, published::model(payload), 0.1, 0.01);
    let mpe = results.headers.kbps(Encapsulation::MPE, Filling::Ideal, payload, Way::Unc);
    let packing = three("packing", "exact packing", payload, of(Filling::Packing));
    let padding = three("padding", "padding mode", payload, of(Filling::Padding));
    let mut rows = vec![unc.peer("mpe", mpe), cmp, gained];
    rows.extend(hold(packing, published::packing(payload), 0.1, 0.02));
    // The table has one digit behind the point.
    rows.extend(hold(padding, published::padding(payload), 0.01, 0.05));
    rows
}

/// One SNDU a TS packet, which is what was measured.
fn one_sndu(results: &Results, payload: u32) -> Vec<Row> {
    let Some(measured) = published::measured(payload) else { return Vec::new() };
    let mut rows = Vec::new();
    for (way, theirs) in Way::BOTH.into_iter().zip([measured.unc, measured.cmp]) {
        let ours = ts_per_second() * f64::from(payload * 8) / 1e3;
        let words = what("one SNDU a TS packet", payload, way);
        let row =
            Row::new(format!("one-sndu/{payload}/{}", way.name()), words, "kbit/s", ours).theirs(theirs);
        // Where they are the same, that is the explanation.
        let same = way == Way::Unc && payload != 80;
        rows.push(held(row, same.then(|| around(theirs, 0.1))));
        let job = Job::Saturated { stack: Stack::IPV6_UDP, payload, way, scheme: PAPER };
        let ours = results.of(job).and_then(|found| found.ts_packets).map(|each| 1.0 / each);
        let words = what("SNDUs of a TS packet", payload, way);
        rows.push(
            Row::new(format!("sndus-per-ts/{payload}/{}", way.name()), words, "", ours)
                .theirs(sndus_per_ts(theirs, payload)),
        );
    }
    rows
}

fn saturated(results: &Results, stack: Stack, payload: u32, scheme: Scheme) -> Option<[f64; 2]> {
    let [unc, cmp] = Way::BOTH
        .map(|way| results.of(Job::Saturated { stack, payload, way, scheme }).map(|found| found.kbps));
    Some([unc?, cmp?])
}

fn simulated(results: &Results, payload: u32) -> Vec<Row> {
    let of = |scheme| saturated(results, Stack::IPV6_UDP, payload, scheme);
    let mut rows = Vec::new();
    if let Some(kbps) = of(PAPER) {
        let simulated = three("simulated", "simulated", payload, kbps);
        rows.extend(theirs(hold(simulated, published::packing(payload), 0.5, 0.5), payload));
    }
    if let Some(kbps) = of(Scheme::Pull) {
        let pulled = three("pull", "pulled by the TS clock", payload, kbps);
        rows.extend(hold(pulled, published::packing(payload), 0.5, 0.5));
    }
    if let Some(kbps) = of(Scheme::Padding) {
        let padded = three("padding-simulated", "padding mode, simulated", payload, kbps);
        rows.extend(hold(padded, published::padding(payload), 0.5, 1.0));
    }
    rows
}

/// O-mode and PDU-Concat.
fn further(results: &Results) -> Vec<Row> {
    let mut rows = Vec::new();
    for payload in PAYLOADS {
        let concat = Encapsulation::ULE.concat(CONCAT);
        for (name, words, scheme, sizes, encapsulation) in [
            ("o-mode", "O-mode", Scheme::Optimistic, &results.settled, Encapsulation::ULE),
            ("concat", "8 PDUs an SNDU", Scheme::Concat, &results.headers, concat),
            ("o-mode-concat", "O-mode, 8 PDUs an SNDU", Scheme::OptimisticConcat, &results.settled, concat),
        ] {
            let job = Job::Saturated { stack: Stack::IPV6_UDP, payload, way: Way::Cmp, scheme };
            let Some(found) = results.of(job) else { continue };
            let exact = sizes.kbps(encapsulation, Filling::Packing, payload, Way::Cmp);
            let published = published::CONCAT
                .into_iter()
                .find(|(other, _)| scheme == Scheme::OptimisticConcat && *other == payload);
            let words = what(words, payload, Way::Cmp);
            let row = Row::new(format!("{name}/{payload}/cmp"), words, "kbit/s", found.kbps);
            rows.push(row.within(match published {
                Some((_, published)) => around(published, 1.0),
                None => around(exact, 0.5),
            }));
        }
    }
    rows
}

/// As in row ids.
pub(super) fn stack_id(stack: Stack) -> String {
    stack.name().replace('/', "-")
}

fn stacks(results: &Results) -> Vec<Row> {
    let mut rows = Vec::new();
    for (stack, sizes) in &results.others {
        for payload in STACK_PAYLOADS {
            let Some(found) = saturated(results, *stack, payload, PAPER) else { continue };
            let exact = Way::BOTH.map(|way| sizes.ule(Filling::Packing, payload, way));
            let [unc, cmp] = exact;
            let exact = Three { unc, cmp, gain: gain(unc, cmp) };
            let id = format!("stack/{}", stack_id(*stack));
            let [unc, cmp, gained] = hold(three(&id, stack.name(), payload, found), Some(exact), 0.5, 0.7);
            rows.extend([unc, cmp.peer("rohc-lib", rohc_lib(*stack, sizes, payload)), gained]);
        }
    }
    rows
}

/// The same with the IR headers of rohc-lib.
fn rohc_lib(stack: Stack, sizes: &HeaderSizes, payload: u32) -> Option<f64> {
    let ir = published::rohc_lib_ir(stack.name())?;
    let [first, rest @ ..] = sizes.of(Way::Cmp) else { return None };
    let headers = [&[Headers { octets: ir, ..*first }], rest].concat();
    Some(kbps(Encapsulation::ULE, Filling::Packing, payload, &headers))
}

/// The name of what is compared at every pace, in ids.
pub(super) fn paced_id(scheme: Scheme) -> String {
    match scheme {
        Scheme::Threshold(threshold) => format!("threshold/{threshold}"),
        Scheme::Bounded(threshold) => format!("threshold/{threshold}-first"),
        Scheme::Pull => "threshold/pull".to_owned(),
        // A threshold of nothing.
        _ => "threshold/0".to_owned(),
    }
}

/// Milliseconds that the sender adds.
pub(super) fn added(delay: Option<f64>) -> Option<f64> {
    delay.map(|delay| delay - DELAY.as_secs_f64() * 1e3)
}

fn thresholds(results: &Results) -> Vec<Row> {
    let ts_ms = 1e3 / ts_per_second();
    let mut rows = Vec::new();
    for scheme in paced() {
        let id = paced_id(scheme);
        let words = match scheme {
            Scheme::Threshold(threshold) => format!("threshold of {threshold} ms"),
            Scheme::Bounded(threshold) => format!("threshold of {threshold} ms from the first packet"),
            Scheme::Pull => "pulled by the TS clock".to_owned(),
            _ => "padding".to_owned(),
        };
        for packets in PACES {
            let Some(found) = results.of(Job::Pace { scheme, packets }) else { continue };
            let words = format!("{words}, {packets} packets a second");
            let row = |name: &str, what: &str, unit, ours: Option<f64>| {
                Row::new(format!("{id}/{packets}/{name}"), format!("{words}: {what}"), unit, ours)
            };
            let delay = row("delay", "added delay, mean", "ms", added(found.mean_delay));
            let p99 = row("delay-p99", "added delay, 99 %", "ms", added(found.p99_delay));
            // A packet waits for the slot to begin, and then for its end. Before that for the threshold, and before that for
            // the slot of a TS packet that is full.
            let most = match scheme {
                Scheme::Pull | Scheme::Padding => Some(2.0 * ts_ms),
                Scheme::Bounded(threshold) => Some(threshold as f64 + 3.0 * ts_ms),
                _ => None,
            };
            rows.extend([
                row("ts-packets", "TS packets a packet", "", found.ts_packets),
                row("throughput", "throughput", "kbit/s", Some(found.kbps)),
                delay.at_most(most),
                p99.at_most(most),
            ]);
        }
        let job = Job::Saturated { stack: Stack::IPV6_UDP, payload: PACED_PAYLOAD, way: Way::Cmp, scheme };
        if let Some(found) = results.of(job) {
            let words = format!("{words}, always another packet: throughput");
            let exact = if scheme == Scheme::Padding { Filling::Padding } else { Filling::Packing };
            let exact = results.headers.ule(exact, PACED_PAYLOAD, Way::Cmp);
            rows.push(
                Row::new(format!("{id}/saturated/throughput"), words, "kbit/s", found.kbps)
                    .within(around(exact, 0.5)),
            );
        }
    }
    rows
}

/// The loads at which packets may begin to be lost, in kbit/s: at the lowest the link is full, and from the highest on a queue
/// overflows in the time of a run.
pub(super) fn first_loss(capacity: f64, payload: u32, seconds: f64) -> Bar {
    let step = STEP as f64;
    let overflow = 2.5 * SHORT_QUEUE as f64 * f64::from(payload * 8) / 1e3 / seconds;
    Bar {
        min: Some((capacity * 0.995 / step).ceil() * step),
        max: Some(((capacity + overflow) / step).ceil() * step),
    }
}

fn sweeps(results: &Results) -> Vec<Row> {
    let seconds = results.scale.sweep.as_secs_f64();
    let mut rows = Vec::new();
    for (payload, way) in PAYLOADS.into_iter().flat_map(|payload| Way::BOTH.map(|way| (payload, way))) {
        let id = format!("sweep/{payload}/{}", way.name());
        let runs: Vec<_> =
            rates().filter_map(|kbps| Some((kbps, results.of(Job::Sweep { payload, way, kbps })?))).collect();
        if runs.is_empty() {
            continue;
        }
        for (kbps, found) in &runs {
            let words = format!("{kbps} kbit/s offered, {payload} octets, {}", way.what());
            rows.extend([
                Row::new(
                    format!("{id}/{kbps}/throughput"),
                    format!("{words}: delivered"),
                    "kbit/s",
                    found.kbps,
                ),
                Row::new(format!("{id}/{kbps}/loss"), format!("{words}: lost"), "%", found.loss * 100.0),
            ]);
        }
        let capacity = results.headers.ule(Filling::Packing, payload, way);
        let bar = first_loss(capacity, payload, seconds);
        let first = runs.iter().find(|(_, found)| found.loss > 0.0).map(|(kbps, _)| *kbps as f64);
        let words = format!("{payload} octets, {}: the first load at which packets are lost", way.what());
        // If it lies beyond what was offered, nothing is lost.
        let reached = bar.max.is_some_and(|max| max <= super::simulate::MOST as f64);
        rows.push(held(
            Row::new(format!("{id}/first-loss"), words, "kbit/s", first),
            (reached || first.is_some()).then_some(bar),
        ));
        let most = runs.iter().map(|(_, found)| found.kbps).fold(0.0, f64::max);
        let measured = published::measured(payload).map(|three| match way {
            Way::Unc => three.unc,
            Way::Cmp => three.cmp,
        });
        let words = format!("{payload} octets, {}: most throughput of the sweep", way.what());
        rows.push(Row::new(format!("{id}/most"), words, "kbit/s", most).theirs(measured));
    }
    rows
}

pub(super) const fn topology_name(topology: Topology) -> &'static str {
    match topology {
        Topology::Mesh => "mesh",
        Topology::Star => "star",
    }
}

fn meshes(results: &Results) -> Vec<Row> {
    let mut rows = Vec::new();
    for (sites, topology) in
        SITES.into_iter().flat_map(|sites| [Topology::Mesh, Topology::Star].map(|topology| (sites, topology)))
    {
        let name = topology_name(topology);
        let row = |figure: &str, what: &str, unit, ours: Option<f64>| {
            let words = format!("{name} of {sites} sites: {what}");
            Row::new(format!("mesh/{sites}/{name}/{figure}"), words, unit, ours)
        };
        let way_ms = DELAY.as_secs_f64() * 1e3;
        if let Some(found) = results.of(Job::Mesh { sites, topology, fails: false }) {
            let hops = if topology == Topology::Mesh { 1.0 } else { 2.0 };
            // A sender of compressed packets that come every 2.5 ms fills a TS packet in 10 ms.
            let bar = Bar { min: Some(hops * way_ms), max: Some(hops * (way_ms + 15.0)) };
            rows.push(row("delay", "delay, mean", "ms", found.mean_delay).within(bar));
            rows.push(row("ts-packets", "TS packets a second of all stations", "/s", found.ts_packets));
        }
        if let Some(found) = results.of(Job::Mesh { sites, topology, fails: true }) {
            let rest = if topology == Topology::Mesh { "the first site" } else { "the hub" };
            let words = format!("delivered between the other sites after {rest} has failed");
            let expected = if topology == Topology::Mesh { 100.0 } else { 0.0 };
            let delivered = found.after_failure.map(|part| part * 100.0);
            rows.push(row("after-failure", &words, "%", delivered).within(plus_minus(expected, 0.0)));
        }
    }
    rows
}

fn real(results: &Results) -> Vec<Row> {
    let mut rows = Vec::new();
    for payload in PAYLOADS {
        let measured = |way| {
            results.real.iter().find(|real| (real.payload, real.way) == (payload, way)).map(|real| real.kbps)
        };
        let (Some(unc), Some(cmp)) = (measured(Way::Unc), measured(Way::Cmp)) else { continue };
        let [unc, cmp, gained] = theirs(three("real", "in real time", payload, [unc, cmp]), payload);
        let least =
            |way| Bar { min: Some(0.97 * results.headers.ule(Filling::Packing, payload, way)), max: None };
        rows.extend([unc.within(least(Way::Unc)), cmp.within(least(Way::Cmp)), gained]);
    }
    rows
}

/// What every run together has compared.
fn comparison(results: &Results) -> [Row; 2] {
    let sum =
        |of: fn(&super::Found) -> u64| results.runs.iter().map(|(_, found)| of(found)).sum::<u64>() as f64;
    [
        Row::new(
            "compared",
            "packets delivered in all runs, each compared with what was sent",
            "packets",
            sum(|found| found.delivered),
        ),
        Row::new("wrong", "packets that did not come as they were sent", "packets", sum(|found| found.wrong))
            .at_most(0.0),
    ]
}
