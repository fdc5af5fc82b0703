use std::collections::BTreeSet;

use super::*;

#[test]
fn a_quick_run_has_every_figure_once_and_twice_the_same() {
    let plan = Plan { quick: true, threads: 2, ..Plan::default() };
    let findings = CoapLatency.run(&plan, &|_, _| ()).expect("it runs");
    let ids: BTreeSet<_> = findings.rows.iter().map(Row::id).collect();
    assert_eq!(ids.len(), findings.rows.len());
    assert!(findings.rows.iter().all(|row| row.ours().is_some_and(f64::is_finite)));
    let again = CoapLatency.run(&Plan { threads: 1, ..plan }, &|_, _| ()).expect("it runs");
    assert_eq!(findings.rows, again.rows);
    for row in &findings.rows {
        println!(
            "{:40} {:?} theirs {:?} bar {:?} {}",
            row.id(),
            row.ours(),
            row.stated(),
            row.bar(),
            row.met()
        );
    }
}

#[test]
fn the_band_of_three_holds_the_middle() {
    let values: Vec<f64> = (0..300).map(f64::from).collect();
    assert_eq!(band_of_three(&values), Some((7.0, 292.0)));
    assert_eq!(band_of_three(&[]), None);
    assert_eq!(Summary::of(&[1.0, 3.0]).map(|summary| summary.mean), Some(2.0));
}
