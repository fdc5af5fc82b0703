#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use thinair_report::{Document, Style};
use thinair_rohc::ProfileId;

use super::*;
use crate::paper::Findings;

/// Round trips about `time` ms in every cell, plus `of` the path.
fn measured(place: LinkPlace, time: f64, of: impl Fn(TunnelPath) -> f64) -> PlaceMeasurements {
    let measurements = |cell: RttCell| {
        let times = (0..20).map(|number| time + of(cell.way) + f64::from(number % 3) * 0.01);
        let carried = CarriedOctets {
            inside: [38.0, 52.0],
            compressed: [6.0, 21.0],
            carrier: [54.0, 69.0],
            is_by_profile: true,
        };
        let carried = cell.way.profile().map(|_| carried);
        CellMeasurements { cell, times: RttSummary::of(times.collect()), lost: 0, carried }
    };
    let cells = place.cells().into_iter().map(measurements).collect();
    PlaceMeasurements { place, cells, stolen: 0.01, late: (place == LinkPlace::Link).then_some(80.0) }
}

fn longer(way: TunnelPath) -> f64 {
    match way {
        TunnelPath::Plain => -0.3,
        TunnelPath::Forwarder => -0.2,
        TunnelPath::Insecure => -0.05,
        TunnelPath::Tunnel(ProfileId::Ip) => 0.09,
        TunnelPath::Tunnel(_) => 0.0,
    }
}

fn found(of: impl Fn(TunnelPath) -> f64 + Copy) -> Findings {
    findings(&[measured(LinkPlace::Veth, 0.4, of), measured(LinkPlace::Link, 11.0, of)])
}

fn findings(measured: &[PlaceMeasurements]) -> Findings {
    let (form, published) = PAPER.read().unwrap();
    let (plan, mut figures) = (RunPlan::default(), Figures::default());
    let run = PaperRun { plan: &plan, form: &form, published: &published, progress: &|_, _| Ok(()) };
    put(measured, &run, &mut figures).unwrap();
    form.findings(figures, &published, false).unwrap()
}

#[test]
fn every_cell_has_its_figures_and_ids_are_unique() {
    let found = found(longer);
    let ids: BTreeSet<_> = found.rows.iter().map(crate::FigureRow::id).collect();
    assert_eq!(ids.len(), found.rows.len());
    for place in LinkPlace::ALL {
        for RttCell { way, version } in place.cells() {
            for figure in ["mean", "ci95", "median", "min", "max"] {
                let id = format!("{}/{}/{}/{figure}", way.name(), version.name(), place.name());
                assert!(ids.contains(id.as_str()), "{id}");
            }
        }
    }
    let row = |id: &str| found.rows.iter().find(|row| row.id() == id).unwrap();
    assert_eq!(row("coap/ipv6/link/mean").stated(), Some(20.085));
    assert_eq!(row("coap/ipv6/veth/mean").stated(), None);
    assert_eq!(row("insecure/ipv6/link/mean").stated(), None);
    assert_eq!(row("udp/ipv4/veth/octets/rsp").ours(), Some(69.0));
    assert!((row("difference/tunnel/ipv4/link").stated().unwrap() - 8.197).abs() < 1e-9);
    assert!((row("difference/tunnel/ipv4/link").ours().unwrap() - 0.3).abs() < 1e-9);
}

#[test]
fn bars_are_on_medians_of_ways_side_by_side() {
    let held = |found: &Findings| {
        let held = found.rows.iter().filter(|row| row.bar().is_some());
        held.map(|row| (row.id().to_owned(), row.ours().unwrap())).collect::<Vec<_>>()
    };
    let good = found(longer);
    // Five pairs of tunnels beside the forwarder, three profiles beside uncompressed at two places, IPv4 and IPv6.
    assert_eq!(held(&good).len(), 2 * (5 + 2 * 3) + 1);
    assert_eq!(good.missed().count(), 0, "{:?}", held(&good));
    let of = |id: &str| held(&good).into_iter().find(|(held, _)| held == id).unwrap().1;
    assert!((of("udp/ipv4/veth/added") - 0.1).abs() < 1e-9);
    assert!((of("ip/ipv6/link/apart") - 0.09).abs() < 1e-9);

    let slow = found(|way| if way == TunnelPath::Tunnel(ProfileId::Coap) { 0.5 } else { longer(way) });
    let missed: BTreeSet<_> = slow.missed().map(crate::FigureRow::id).collect();
    let expected =
        ["coap/ipv4/veth/added", "coap/ipv4/veth/apart", "coap/ipv6/veth/added", "coap/ipv6/veth/apart"];
    let expected = [&expected[..], &["coap/ipv4/link/apart", "coap/ipv6/link/apart"]].concat();
    assert_eq!(missed, expected.into_iter().collect());
}

#[test]
fn a_tunnel_that_takes_another_profile_is_told() {
    let mut at = measured(LinkPlace::Veth, 0.4, longer);
    at.cells[0].carried.as_mut().unwrap().is_by_profile = false;
    at.cells[1].lost = 3;
    let found = findings(&[at]);
    let row = |id: &str| found.rows.iter().find(|row| row.id() == id).unwrap();
    assert_eq!((row("other-profile").ours(), row("other-profile").met()), (Some(1.0), false));
    assert_eq!(row("lost").ours(), Some(3.0));
}

#[test]
fn cells_without_round_trips_have_no_figures_and_miss_their_bars() {
    let mut at = measured(LinkPlace::Veth, 0.4, longer);
    for measurements in &mut at.cells {
        measurements.times = None;
    }
    let found = findings(&[at]);
    assert!(found.rows.iter().filter(|row| row.unit() == "ms").all(|row| row.ours().is_none()));
    assert_eq!(found.missed().count(), 2 * (5 + 3));
}

#[test]
fn tables_and_plots_fit_into_a_hundred_columns() {
    let found = found(longer);
    let document = found.ours.into_iter().fold(Document::new("title"), Document::section);
    let text = document.to_text(&Style::plain(100));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("20.085") && text.contains("  open") && text.contains('✓'), "{text}");
    // The page has no-break spaces between numbers and units.
    let page = document.to_html().replace('\u{a0}', " ");
    for title in ["Round trips over", "Median round trips over"] {
        for place in [" veth", " 10.6 ms"] {
            let title = format!("{title}{place}");
            assert!(page.contains(&title), "{title}");
        }
    }
}

#[test]
fn what_is_missing_is_told() {
    let run = |plan: &RunPlan| PAPER.run(plan, &|_, _| Ok(())).unwrap();
    let found = run(&RunPlan::default());
    assert!(found.rows.is_empty() && found.left_out.len() == 1, "{found:?}");
    let found = run(&RunPlan { real_time: true, ..RunPlan::default() });
    assert!(found.rows.is_empty(), "{found:?}");
    assert!(found.left_out[0].starts_with("Left out: all rows, as "), "{found:?}");
}

#[test]
fn the_differences_are_those_of_the_text() {
    let (_, published) = PAPER.read().unwrap();
    let of = |way: &str, version: &str| {
        let of = |name| published.theirs(&format!("{way}/{version}/link/{name}")).unwrap();
        assert!(of("min") < of("mean") && of("mean") < of("max"));
        (of("mean"), margin(of("min"), of("max")))
    };
    let minus = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0, a.1.hypot(b.1));
    // "about 8 ms shorter than with uncompressed profile with IPv4, and about 3 ms with IPv6"
    for (version, about) in [("ipv4", 8.0), ("ipv6", 3.0)] {
        let (difference, margin) = minus(of("uncompressed", version), of("none", version));
        assert_eq!(difference.round(), about);
        // Only the difference of the tunnel over IPv4 is significant.
        assert_eq!(difference > margin, version == "ipv4", "{difference} of {margin}");
        for other in ["udp", "ip", "uncompressed"] {
            let (difference, margin) = minus(of("coap", version), of(other, version));
            assert!(difference.abs() < margin, "{version} {other}: {difference} of {margin}");
        }
        // "the order of the profiles remains the same"
        let order = ["uncompressed", "coap", "ip", "udp"].map(|way| of(way, version).0);
        assert!(order.is_sorted());
    }
}
