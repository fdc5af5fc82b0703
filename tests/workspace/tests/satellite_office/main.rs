//! Office behind a satellite: DNS, a web page, ssh, a call and MQTT with the default route through the tunnel, beside
//! figures without a tunnel and through OpenVPN.
//!
//! Needs root, otherwise the tests are skipped; missing programs are printed, and their rows left out.
//!
//! `cargo test -p thinair-tests --test satellite_office -- --ignored --show-output` prints the table of
//! docs/satellite-office.md, in three minutes at most.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod call;
mod place;
mod services;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use place::{OfficePath, OfficePlace, has};
use services::{Amount, OfficeService};
use thinair_tests::world::in_a_world;

/// Name of a figure, and its values: one, or one per direction of the link, up first.
pub(crate) type OfficeFigure = (&'static str, Vec<f64>);

/// Figures with each seed, by service and path.
type OfficeFigures = BTreeMap<(OfficeService, OfficePath), Vec<Vec<OfficeFigure>>>;

#[test]
fn what_the_link_did_not_lose_arrives() {
    in_a_world("what_the_link_did_not_lose_arrives", || {
        let services = [OfficeService::Dns, OfficeService::Call, OfficeService::Mqtt];
        run(
            &[OfficePath::Plain, OfficePath::Tunnel],
            &[1],
            &services,
            &Amount { lookups: 5, keys: 0, packets: 250, messages: 5 },
        );
    });
}

#[test]
#[ignore = "takes two to three minutes"]
fn every_service_every_way() {
    in_a_world("every_service_every_way", || {
        let amount = Amount { lookups: 10, keys: 50, packets: 1_000, messages: 20 };
        run(
            &[OfficePath::Plain, OfficePath::Tunnel, OfficePath::TunnelWithoutTcp, OfficePath::OpenVpn],
            &[1, 2, 3],
            &OfficeService::ALL,
            &amount,
        );
    });
}

/// Runs services in sequence, every path at the same time, once with each seed of the link; prints the medians.
fn run(ways: &[OfficePath], seeds: &[u64], services: &[OfficeService], amount: &Amount) {
    let started = Instant::now();
    if !["ip", "nft"].into_iter().all(has) {
        return;
    }
    let ways: Vec<OfficePath> =
        ways.iter().copied().filter(|way| way.programs().iter().all(|program| has(program))).collect();
    let there = |service: &OfficeService| service.programs().iter().all(|program| has(program));
    let services: Vec<OfficeService> = services.iter().copied().filter(there).collect();
    place::prepare(&services);

    let found = Mutex::<OfficeFigures>::default();
    std::thread::scope(|scope| {
        for (index, &way) in ways.iter().enumerate() {
            for (shift, &seed) in seeds.iter().enumerate() {
                let (found, services) = (&found, &services);
                scope.spawn(move || {
                    let place = OfficePlace::new(index * seeds.len() + shift, way, seed, services);
                    for &service in services {
                        let figures = place.measure(|| service.run(&place, amount));
                        found.lock().unwrap().entry((service, way)).or_default().push(figures);
                    }
                });
            }
        }
    });
    let found = found.into_inner().unwrap();
    print(&found, &ways, &services, amount);
    println!("\nMedians of {} runs; all took {:.0} s.", seeds.len(), started.elapsed().as_secs_f64());
    for ((service, way), runs) in &found {
        runs.iter().for_each(|figures| services::check(*service, *way, figures));
    }
}

/// Prints the medians as a Markdown table.
fn print(found: &OfficeFigures, ways: &[OfficePath], services: &[OfficeService], amount: &Amount) {
    let line = |cells: &[String]| println!("| {} |", cells.join(" | "));
    let names = ways.iter().map(|way| way.name().to_owned());
    line(&["service".to_owned(), "figure".to_owned()].into_iter().chain(names).collect::<Vec<_>>());
    println!("|---|---|{}", "---:|".repeat(ways.len()));
    for &service in services {
        let figures = found[&(service, ways[0])][0].len();
        for figure in 0..figures {
            let title = if figure == 0 { service.title(amount) } else { String::new() };
            let mut cells = vec![title, found[&(service, ways[0])][0][figure].0.to_owned()];
            for way in ways {
                let runs = &found[&(service, *way)];
                let values = 0..runs[0][figure].1.len();
                let medians = values.map(|at| median(runs.iter().map(|run| run[figure].1[at])));
                cells.push(medians.map(written).collect::<Vec<_>>().join(" / "));
            }
            line(&cells);
        }
    }
}

/// Median, or the lower one of two.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

/// Text of a number: whole with a comma for thousands, otherwise with one decimal.
fn written(value: f64) -> String {
    if value.fract() != 0.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    match digits.len() {
        4.. => format!("{},{}", &digits[..digits.len() - 3], &digits[digits.len() - 3..]),
        _ => digits,
    }
}
