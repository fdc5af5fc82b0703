use std::collections::BTreeSet;

use super::*;
use crate::sweep::Repeated;

#[test]
fn a_quick_run_has_every_figure_once_and_twice_the_same() {
    let plan = Plan { quick: true, threads: 2, ..Plan::default() };
    let findings = CoapLossy.run(&plan, &|_, _| ()).expect("it runs");
    let ids: BTreeSet<_> = findings.rows.iter().map(Row::id).collect();
    assert_eq!(ids.len(), findings.rows.len());
    for row in &findings.rows {
        // Where nothing is answered there is no time, and nothing to share octets among: every packet that sets up a context
        // has more octets than the counter lets through.
        // With independent errors few of them arrive, and without feedback none may be sent again for long.
        let is_silent = row.id().contains("3e-3/rohctunnel16") || row.id().contains("uni/3e-3/iid");
        assert!(row.ours().map_or(is_silent, f64::is_finite), "{}", row.id());
    }
    assert_eq!(findings.missed().map(Row::id).collect::<Vec<_>>(), [""; 0]);
    let again = CoapLossy.run(&Plan { threads: 1, ..plan }, &|_, _| ()).expect("it runs");
    assert_eq!(findings.rows, again.rows);
}

/// Each of five attempts takes a request of 38 octets and a response of 52.
#[test]
fn give_ups_without_compression_are_what_the_formula_has() {
    let cell = Cell {
        profile: Profile::Uncompressed,
        way: Way::Bi,
        rate: Rate::OF_TABLES,
        errors: Errors::Iid,
        exchanges: 500,
        runs: 1,
    };
    let sum = (0..10).map(|run| cell.run(1, run).expect("it runs")).fold(Sample::default(), Sample::and);
    let fails: f64 = 1.0 - 0.999_f64.powi(8 * (38 + 52));
    let expected = 100.0 * fails.powi(5);
    let found = sum.give_ups().expect("there were exchanges");
    // 2.6 standard errors.
    let apart = 2.6 * (expected * (100.0 - expected) / sum.exchanges).sqrt();
    assert!((found - expected).abs() < apart, "{found} of {expected}");
    assert!((expected - 3.57).abs() < 0.01, "{expected}");
}

#[test]
fn rates_have_the_names_of_the_paper() {
    assert_eq!(Rate::ALL.map(Rate::name), ["1e-5", "3e-5", "1e-4", "3e-4", "1e-3", "3e-3"]);
}

/// “Without compression nothing could be lost”.
#[test]
fn twenty_exchanges_do_not_fill_the_counter_at_1e_4() {
    let cell = Cell {
        profile: Profile::Uncompressed,
        way: Way::Bi,
        rate: Rate::OF_TEXT,
        errors: Errors::RohcTunnel16,
        exchanges: TWENTY,
        runs: 1,
    };
    let sample = cell.run(1, 0).expect("it runs");
    assert_eq!((sample.retransmissions(), sample.given_up), (Some(0.0), 0.0));
}
