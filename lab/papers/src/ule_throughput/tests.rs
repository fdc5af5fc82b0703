#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::paper::{Findings, RunPlan};
use crate::row::FigureRow;

/// Short enough for a test, long enough for the bars of saturated runs.
const TINY: RunDurations = RunDurations {
    saturated: Duration::from_secs(2),
    sweep: Duration::from_millis(200),
    pace: Duration::from_secs(1),
    mesh: Duration::from_millis(800),
};

/// Results of every job that `chosen` selects.
fn found(plan: &RunPlan, chosen: impl Fn(&SimulationJob) -> bool) -> Findings {
    let (form, published) = PAPER.read().unwrap();
    let mut figures = Figures::default();
    let run = PaperRun { plan, form: &form, published: &published, progress: &|_, _| Ok(()) };
    let jobs = simulate::jobs().into_iter().filter(chosen).collect();
    measure_jobs(&run, TINY, jobs, &mut figures).unwrap();
    form.findings(figures, &published, false).unwrap()
}

fn missed(found: &Findings) -> Vec<(&str, Option<f64>)> {
    found.missed().map(|row| (row.id(), row.ours())).collect()
}

#[test]
fn what_needs_no_run_meets_its_bars() {
    let found = found(&RunPlan::default(), |_| false);
    let figure = |id: &str| found.rows.iter().find(|row| row.id() == id).unwrap().ours().unwrap();
    assert_eq!(missed(&found), []);
    assert_eq!((figure("headers/ir"), figure("headers/so")), (50.0, 3.0));
    assert!((figure("padding/160/gain") - 89.3).abs() < 0.05);
    assert!((figure("padding/512/gain") - 30.9).abs() < 0.05);
    assert!((figure("one-sndu/40/unc") - 746.17).abs() < 0.01);
    assert!(found.left_out[0].contains("real/"), "{:?}", found.left_out);
}

#[test]
fn saturated_links_meet_their_bars() {
    let found = found(&RunPlan { threads: 2, ..RunPlan::default() }, |job| {
        matches!(job, SimulationJob::Saturated { payload: 40 | 160 | 1_024, .. })
    });
    assert_eq!(missed(&found), []);
    assert!(found.rows.iter().any(|row| row.id() == "o-mode-concat/160/cmp"));
    assert!(found.rows.iter().any(|row| row.id() == "stack/ipv4-udp0-rtp/40/gain"));
}

#[test]
fn loads_paces_and_meshes_meet_their_bars() {
    let found = found(&RunPlan { threads: 2, ..RunPlan::default() }, |job| match job {
        SimulationJob::Sweep { payload, .. } => *payload == 120,
        SimulationJob::Pace { packets, .. } => *packets == 200,
        SimulationJob::Mesh { sites, .. } => *sites == 4,
        SimulationJob::Saturated { .. } => false,
    });
    assert_eq!(missed(&found), []);
    let figure = |id: &str| found.rows.iter().find(|row| row.id() == id).unwrap().ours().unwrap();
    assert_eq!((figure("sweep/120/unc/2300/loss"), figure("mesh/4/star/after-failure")), (0.0, 0.0));
    assert!(figure("sweep/120/unc/2600/loss") > 5.0);
    assert!((figure("threshold/3/200/ts-packets") - 1.0).abs() < 0.01);
    assert!(figure("threshold/10/200/ts-packets") < 0.31);
}

#[test]
fn a_seed_determines_every_figure_whatever_the_threads() {
    let chosen = |job: &SimulationJob| {
        matches!(
            job,
            SimulationJob::Pace { packets: 800, .. } | SimulationJob::Mesh { sites: 4, fails: false, .. }
        )
    };
    let one = found(&RunPlan { seed: 7, threads: 1, ..RunPlan::default() }, chosen);
    let again = found(&RunPlan { seed: 7, threads: 3, ..RunPlan::default() }, chosen);
    assert_eq!(one.rows, again.rows);
    let other = found(&RunPlan { seed: 8, threads: 2, ..RunPlan::default() }, chosen);
    assert_ne!(one.rows, other.rows);
}

#[test]
fn every_figure_has_a_row() {
    let jobs = simulate::jobs();
    let real = model::PAYLOADS
        .into_iter()
        .flat_map(|payload| model::HeaderForm::BOTH.map(|way| RealMeasurement { payload, way, kbps: 1e4 }));
    let results = Results {
        headers: HeaderSizes::new(
            ProtocolStack::IPV6_UDP,
            header_cycle(ProtocolStack::IPV6_UDP, SCHEDULE).unwrap(),
        ),
        others: simulate::other_stacks()
            .map(|stack| (stack, HeaderSizes::new(stack, header_cycle(stack, SCHEDULE).unwrap())))
            .collect(),
        settled: HeaderSizes::new(
            ProtocolStack::IPV6_UDP,
            header_cycle(ProtocolStack::IPV6_UDP, Refresh::Off).unwrap(),
        ),
        runs: jobs.into_iter().map(|job| (job, RunFigures::default())).collect(),
        scale: TINY,
        real: real.collect(),
    };
    let (form, published) = PAPER.read().unwrap();
    let mut figures = Figures::default();
    Put { results: &results, published: &published, figures: &mut figures }.all();
    let rows = form.findings(figures, &published, false).unwrap().rows;
    let ids: BTreeSet<_> = rows.iter().map(FigureRow::id).collect();
    for id in ["real/1024/gain", "sweep/40/cmp/3500/loss", "mesh/16/star/delay", "threshold/20/1600/delay"] {
        assert!(ids.contains(id), "{id}");
    }
}

#[test]
fn gains_are_those_of_their_columns() {
    let (_, published) = PAPER.read().unwrap();
    for whose in ["equations", "filled", "padded"] {
        for payload in model::PAYLOADS {
            let of = |name| published.theirs(&format!("{whose}/{payload}/{name}")).unwrap();
            let (unc, cmp, gain) = (of("unc"), of("cmp"), of("gain"));
            assert!(((cmp / unc - 1.0) * 100.0 - gain).abs() < 0.04, "{unc} {cmp} {gain}");
        }
    }
    // From the text. "2.2 %" are points of the link of 3,500 kbit/s.
    let measured = |payload, name| published.theirs(&format!("measured/{payload}/{name}")).unwrap();
    let gain = |payload| (measured(payload, "cmp") / measured(payload, "unc") - 1.0) * 100.0;
    assert!((gain(40) - 11.0).abs() < 0.05 && (gain(120) - 3.4).abs() < 0.05);
    assert!(((measured(120, "cmp") - measured(120, "unc")) / 35.0 - 2.2).abs() < 0.01);
    assert_eq!(published.theirs("measured/160/unc"), None);
}
