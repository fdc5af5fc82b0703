//! Figures of the paper, with their bars.

use thinair_simulation::ProtocolStack;
use thinair_simulation::broadcast::mesh::Topology;
use thinair_ule::capacity::{Encapsulation, Filling, HeaderRun};

use super::Results;
use super::model::{HeaderForm, HeaderSizes, PAYLOADS, gain, kbps, sndus_per_ts, ts_per_second};
use super::simulate::{
    CONCAT, DELAY, MOST, PACED_PAYLOAD, PACES, PAPER_THRESHOLD, PackingScheme, RunFigures, SHORT_QUEUE,
    SITES, STACK_PAYLOADS, STEP, SimulationJob, paced, rates,
};
use crate::form::{Figures, Published};
use crate::row::Bar;

const PAPER: PackingScheme = PackingScheme::Threshold(PAPER_THRESHOLD);
/// Plain, compressed, and gain, as in ids.
const PARTS: [&str; 3] = ["unc", "cmp", "gain"];
/// Payloads of the computed curves.
const DENSE: std::ops::RangeInclusive<u32> = 20..=1_100;
const EVERY: usize = 4;

/// Results, and the figures that are put from them.
pub(super) struct Put<'p> {
    pub(super) results: &'p Results,
    pub(super) published: &'p Published,
    pub(super) figures: &'p mut Figures,
}

/// Range around a figure, `percent` percent on either side.
fn around(figure: f64, percent: f64) -> Bar {
    let part = figure * percent / 100.0;
    plus_minus(figure, part)
}

fn plus_minus(figure: f64, margin: f64) -> Bar {
    Bar { min: Some(figure - margin), max: Some(figure + margin) }
}

impl Put<'_> {
    pub(super) fn all(&mut self) {
        self.headers();
        PAYLOADS.into_iter().for_each(|payload| self.of_payload(payload));
        self.stacks();
        self.thresholds();
        self.sweeps();
        self.meshes();
        self.dense();
        let sum = |of: fn(&RunFigures) -> u64| {
            self.results.runs.iter().map(|(_, found)| of(found)).sum::<u64>() as f64
        };
        let (compared, wrong) = (sum(|found| found.delivered), sum(|found| found.wrong));
        self.figures.put("compared", compared);
        self.figures.put("wrong", wrong);
    }

    /// Puts the header sizes that the model assumes, measured by compression.
    fn headers(&mut self) {
        let cycle = self.results.headers.of(HeaderForm::Cmp);
        let run = |at: usize| cycle.get(at).copied().unwrap_or(HeaderRun { packets: 0, octets: 0 });
        let [ir, so] = [run(0), run(1)];
        let ours =
            [("ir", ir.octets), ("ir-packets", ir.packets), ("so", so.octets), ("so-packets", so.packets)];
        for (name, ours) in ours {
            let id = format!("headers/{name}");
            let theirs = self.published.theirs(&id).unwrap_or_default();
            self.figures.put(id, f64::from(ours)).bar = Some(plus_minus(theirs, 0.0));
        }
        let sum = cycle.iter().fold((0, 0), |(packets, octets), run| {
            (packets + run.packets, octets + run.packets * run.octets)
        });
        let theirs = |name: &str| self.published.theirs(&format!("headers/{name}")).unwrap_or_default();
        let of_theirs = (theirs("ir") * theirs("ir-packets") + theirs("so") * theirs("so-packets"))
            / (theirs("ir-packets") + theirs("so-packets"));
        let average = self.figures.put("headers/average", f64::from(sum.1) / f64::from(sum.0));
        (average.theirs, average.bar) = (Some(of_theirs), Some(plus_minus(of_theirs, 0.001)));
    }

    /// Puts two throughputs and the gain, with bars around `held`: throughputs in percent, the gain in points.
    fn three(&mut self, id: &str, [unc, cmp]: [f64; 2], held: [Option<f64>; 3], percent: f64, points: f64) {
        let figures = PARTS.into_iter().zip([unc, cmp, gain(unc, cmp)]).zip(held);
        for (((name, ours), held), at) in figures.zip(0..) {
            let bar = held.map(|held| if at < 2 { around(held, percent) } else { plus_minus(held, points) });
            self.figures.put(format!("{id}/{name}"), ours).bar = bar;
        }
    }

    /// Published figures for a payload.
    fn known(&self, whose: &str, payload: u32) -> [Option<f64>; 3] {
        PARTS.map(|name| self.published.theirs(&format!("{whose}/{payload}/{name}")))
    }

    /// Measurement of the paper for a payload, and its gain.
    fn measured(&self, payload: u32) -> [Option<f64>; 3] {
        let [unc, cmp, _] = self.known("measured", payload);
        [unc, cmp, unc.zip(cmp).map(|(unc, cmp)| gain(unc, cmp))]
    }

    fn state_measured(&mut self, id: &str, payload: u32) {
        for (name, theirs) in PARTS.into_iter().zip(self.measured(payload)) {
            let id = format!("{id}/{name}");
            if let Some(value) = self.figures.value(&id) {
                self.figures.put(id, value).theirs = theirs;
            }
        }
    }

    fn saturated(&self, stack: ProtocolStack, payload: u32, scheme: PackingScheme) -> Option<[f64; 2]> {
        let [unc, cmp] = HeaderForm::BOTH.map(|way| {
            self.results.of(SimulationJob::Saturated { stack, payload, way, scheme }).map(|found| found.kbps)
        });
        Some([unc?, cmp?])
    }

    fn of_payload(&mut self, payload: u32) {
        let results = self.results;
        let id = |scheme: &str| format!("{scheme}/{payload}");
        let of = |filling| HeaderForm::BOTH.map(|way| results.headers.ule(filling, payload, way));
        let [equations, filled, padded] =
            ["equations", "filled", "padded"].map(|whose| self.known(whose, payload));
        self.three(&id("model"), of(Filling::Ideal), equations, 0.1, 0.01);
        let mpe = results.headers.kbps(Encapsulation::MPE, Filling::Ideal, payload, HeaderForm::Unc);
        let unc = of(Filling::Ideal)[0];
        self.figures.put(format!("model/{payload}/unc"), unc).peer("mpe", mpe);
        self.three(&id("packing"), of(Filling::Packing), filled, 0.1, 0.02);
        // The table has one decimal.
        self.three(&id("padding"), of(Filling::Padding), padded, 0.01, 0.05);
        self.one_sndu(payload);
        let simulated = [
            ("simulated", PAPER, filled, 0.5),
            ("pull", PackingScheme::Pull, filled, 0.5),
            ("padding-simulated", PackingScheme::Padding, padded, 1.0),
        ];
        for (name, scheme, held, points) in simulated {
            if let Some(kbps) = self.saturated(ProtocolStack::IPV6_UDP, payload, scheme) {
                self.three(&id(name), kbps, held, 0.5, points);
            }
        }
        self.state_measured(&id("simulated"), payload);
        self.further(payload);
        let real = |way| results.real.iter().find(|real| (real.payload, real.way) == (payload, way));
        if let (Some(unc), Some(cmp)) = (real(HeaderForm::Unc), real(HeaderForm::Cmp)) {
            self.three(&id("real"), [unc.kbps, cmp.kbps], [None; 3], 0.0, 0.0);
            self.state_measured(&id("real"), payload);
            for (way, kbps) in [(HeaderForm::Unc, unc.kbps), (HeaderForm::Cmp, cmp.kbps)] {
                let least = 0.97 * results.headers.ule(Filling::Packing, payload, way);
                let bar = Some(Bar { min: Some(least), max: None });
                self.figures.put(format!("real/{payload}/{}", way.name()), kbps).bar = bar;
            }
        }
    }

    /// Puts figures for one SNDU per TS packet, which the paper's measurements match.
    fn one_sndu(&mut self, payload: u32) {
        for (way, theirs) in HeaderForm::BOTH.into_iter().zip(self.measured(payload)) {
            let Some(theirs) = theirs else { continue };
            let ours = ts_per_second() * f64::from(payload * 8) / 1e3;
            let figure = self.figures.put(format!("one-sndu/{payload}/{}", way.name()), ours);
            figure.theirs = Some(theirs);
            // Equal figures confirm the explanation.
            figure.bar = (way == HeaderForm::Unc && payload != 80).then(|| around(theirs, 0.1));
            let job =
                SimulationJob::Saturated { stack: ProtocolStack::IPV6_UDP, payload, way, scheme: PAPER };
            let ours = self.results.of(job).and_then(|found| found.ts_packets).map(|each| 1.0 / each);
            let figure = self.figures.put(format!("sndus-per-ts/{payload}/{}", way.name()), ours);
            figure.theirs = Some(sndus_per_ts(theirs, payload));
        }
    }

    /// Puts figures of O-mode and PDU-Concat.
    fn further(&mut self, payload: u32) {
        let (results, concat) = (self.results, Encapsulation::ULE.concat(CONCAT));
        for (name, scheme, sizes, encapsulation) in [
            ("o-mode", PackingScheme::Optimistic, &results.settled, Encapsulation::ULE),
            ("concat", PackingScheme::Concat, &results.headers, concat),
            ("o-mode-concat", PackingScheme::OptimisticConcat, &results.settled, concat),
        ] {
            let job = SimulationJob::Saturated {
                stack: ProtocolStack::IPV6_UDP,
                payload,
                way: HeaderForm::Cmp,
                scheme,
            };
            let Some(found) = results.of(job) else { continue };
            let exact = sizes.kbps(encapsulation, Filling::Packing, payload, HeaderForm::Cmp);
            let published = self.published.theirs(&format!("concat/{payload}"));
            let bar = match published.filter(|_| scheme == PackingScheme::OptimisticConcat) {
                Some(published) => around(published, 1.0),
                None => around(exact, 0.5),
            };
            self.figures.put(format!("{name}/{payload}/cmp"), found.kbps).bar = Some(bar);
            if let Some([unc, _]) = self.saturated(ProtocolStack::IPV6_UDP, payload, PAPER) {
                self.figures.put(format!("{name}/{payload}/gain"), gain(unc, found.kbps));
            }
        }
    }

    fn stacks(&mut self) {
        let results = self.results;
        for (stack, sizes) in &results.others {
            for payload in STACK_PAYLOADS {
                let Some(found) = self.saturated(*stack, payload, PAPER) else { continue };
                let [unc, cmp] = HeaderForm::BOTH.map(|way| sizes.ule(Filling::Packing, payload, way));
                let id = format!("stack/{}/{payload}", stack.name().replace('/', "-"));
                let exact = [unc, cmp, gain(unc, cmp)].map(Some);
                self.three(&id, found, exact, 0.5, 0.7);
                let rohc_lib = self.rohc_lib(*stack, sizes, payload);
                self.figures.put(format!("{id}/cmp"), found[1]).peer("rohc-lib", rohc_lib);
            }
        }
    }

    /// Throughput with the IR headers of rohc-lib.
    fn rohc_lib(&self, stack: ProtocolStack, sizes: &HeaderSizes, payload: u32) -> Option<f64> {
        let ir = *self.published.get(&format!("ir/{}", stack.name()))?.peers.get("rohc-lib")?;
        let [first, rest @ ..] = sizes.of(HeaderForm::Cmp) else { return None };
        let headers = [&[HeaderRun { octets: ir as u32, ..*first }], rest].concat();
        Some(kbps(Encapsulation::ULE, Filling::Packing, payload, &headers))
    }

    fn thresholds(&mut self) {
        let ts_ms = 1e3 / ts_per_second();
        // Delay of the sender, in milliseconds.
        let added = |delay: Option<f64>| delay.map(|delay| delay - DELAY.as_secs_f64() * 1e3);
        for scheme in paced() {
            let id = match scheme {
                PackingScheme::Threshold(threshold) => format!("threshold/{threshold}"),
                PackingScheme::Bounded(threshold) => format!("threshold/{threshold}-first"),
                PackingScheme::Pull => "threshold/pull".to_owned(),
                // Threshold of zero.
                _ => "threshold/0".to_owned(),
            };
            for packets in PACES {
                let Some(found) = self.results.of(SimulationJob::Pace { scheme, packets }) else { continue };
                // A packet waits for the slot to begin, and then for its end. Before that it waits for the threshold,
                // and before that for the slot of a full TS packet.
                let most = match scheme {
                    PackingScheme::Pull | PackingScheme::Padding => Some(2.0 * ts_ms),
                    PackingScheme::Bounded(threshold) => Some(threshold as f64 + 3.0 * ts_ms),
                    _ => None,
                };
                let bar = most.map(|most| Bar { max: Some(most), min: None });
                let id = format!("{id}/{packets}");
                self.figures.put(format!("{id}/ts-packets"), found.ts_packets);
                self.figures.put(format!("{id}/throughput"), found.kbps);
                self.figures.put(format!("{id}/delay"), added(found.mean_delay)).bar = bar;
                self.figures.put(format!("{id}/delay-p99"), added(found.p99_delay)).bar = bar;
            }
            let (payload, way) = (PACED_PAYLOAD, HeaderForm::Cmp);
            if let Some(found) = self.results.of(SimulationJob::Saturated {
                stack: ProtocolStack::IPV6_UDP,
                payload,
                way,
                scheme,
            }) {
                let exact =
                    if scheme == PackingScheme::Padding { Filling::Padding } else { Filling::Packing };
                let exact = self.results.headers.ule(exact, payload, way);
                let figure = self.figures.put(format!("{id}/saturated/throughput"), found.kbps);
                figure.bar = Some(around(exact, 0.5));
            }
        }
    }

    fn sweeps(&mut self) {
        let results = self.results;
        for (payload, way) in
            PAYLOADS.into_iter().flat_map(|payload| HeaderForm::BOTH.map(|way| (payload, way)))
        {
            let id = format!("sweep/{payload}/{}", way.name());
            let runs: Vec<_> = rates()
                .filter_map(|kbps| Some((kbps, results.of(SimulationJob::Sweep { payload, way, kbps })?)))
                .collect();
            if runs.is_empty() {
                continue;
            }
            for (kbps, found) in &runs {
                self.figures.put(format!("{id}/{kbps}/throughput"), found.kbps);
                self.figures.put(format!("{id}/{kbps}/loss"), found.loss * 100.0);
            }
            let capacity = results.headers.ule(Filling::Packing, payload, way);
            let bar = first_loss(capacity, payload, results.scale.sweep.as_secs_f64());
            let first = runs.iter().find(|(_, found)| found.loss > 0.0).map(|(kbps, _)| *kbps as f64);
            // Beyond the offered load, nothing is lost.
            let reached = bar.max.is_some_and(|max| max <= MOST as f64);
            let figure = self.figures.put(format!("{id}/first-loss"), first);
            figure.bar = (reached || first.is_some()).then_some(bar);
            let most = runs.iter().map(|(_, found)| found.kbps).fold(0.0, f64::max);
            let theirs = self.measured(payload)[way as usize];
            self.figures.put(format!("{id}/most"), most).theirs = theirs;
        }
    }

    fn meshes(&mut self) {
        for (sites, topology) in SITES
            .into_iter()
            .flat_map(|sites| [Topology::Mesh, Topology::Star].map(|topology| (sites, topology)))
        {
            let (name, hops, expected) =
                if topology == Topology::Mesh { ("mesh", 1.0, 100.0) } else { ("star", 2.0, 0.0) };
            let id = |figure: &str| format!("mesh/{sites}/{name}/{figure}");
            let way_ms = DELAY.as_secs_f64() * 1e3;
            if let Some(found) = self.results.of(SimulationJob::Mesh { sites, topology, fails: false }) {
                // A sender of compressed packets that come every 2.5 ms fills a TS packet in 10 ms.
                let bar = Bar { min: Some(hops * way_ms), max: Some(hops * (way_ms + 15.0)) };
                self.figures.put(id("delay"), found.mean_delay).bar = Some(bar);
                self.figures.put(id("delay-p99"), found.p99_delay);
                self.figures.put(id("ts-packets"), found.ts_packets);
            }
            if let Some(found) = self.results.of(SimulationJob::Mesh { sites, topology, fails: true }) {
                let delivered = found.after_failure.map(|part| part * 100.0);
                self.figures.put(id("after-failure"), delivered).bar = Some(plus_minus(expected, 0.0));
            }
        }
    }

    /// Puts computed curves.
    fn dense(&mut self) {
        let ule = |filling, payload, way| self.results.headers.ule(filling, payload, way);
        for payload in DENSE.step_by(EVERY) {
            let [unc, cmp] = HeaderForm::BOTH.map(|way| ule(Filling::Ideal, payload, way));
            for (name, figure) in [("unc", unc), ("cmp", cmp), ("gain", gain(unc, cmp))] {
                self.figures.put(format!("dense/{payload}/model/{name}"), figure);
            }
            for (name, filling, way) in [
                ("padding/cmp", Filling::Padding, HeaderForm::Cmp),
                ("padding/unc", Filling::Padding, HeaderForm::Unc),
                ("packing/unc", Filling::Packing, HeaderForm::Unc),
            ] {
                self.figures.put(format!("dense/{payload}/{name}"), ule(filling, payload, way));
            }
        }
    }
}

/// Range of loads at which packets may begin to be lost, in kbit/s: from the load that fills the link, to the load at
/// which a queue overflows within a run.
fn first_loss(capacity: f64, payload: u32, seconds: f64) -> Bar {
    let step = STEP as f64;
    let overflow = 2.5 * SHORT_QUEUE as f64 * f64::from(payload * 8) / 1e3 / seconds;
    Bar {
        min: Some((capacity * 0.995 / step).ceil() * step),
        max: Some(((capacity + overflow) / step).ceil() * step),
    }
}
