use std::collections::BTreeSet;

use super::*;
use crate::row::Row;

#[test]
fn a_quick_run_has_every_figure_once_and_twice_the_same() {
    let plan = Plan { quick: true, threads: 2, ..Plan::default() };
    let findings = Tssa.run(&plan, &|_, _| ()).expect("it runs");
    let ids: BTreeSet<_> = findings.rows.iter().map(Row::id).collect();
    assert_eq!(ids.len(), findings.rows.len());
    assert!(findings.missed().next().is_none(), "{:?}", findings.missed().collect::<Vec<_>>());
    assert!(findings.rows.iter().filter(|row| row.bar().is_some()).count() >= 6);
    let again = Tssa.run(&Plan { threads: 1, ..plan }, &|_, _| ()).expect("it runs");
    assert_eq!(findings.rows, again.rows);
}

#[test]
fn ids_of_a_full_run_are_unique() {
    let cells = cells(false).expect("channels can be");
    let ids: BTreeSet<_> = cells.iter().map(|cell| &cell.id).collect();
    assert_eq!(ids.len(), cells.len());
}
