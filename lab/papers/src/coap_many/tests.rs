use std::collections::BTreeSet;

use super::*;
use crate::row::Row;
use crate::sweep::Repeated;

#[test]
fn a_quick_run_has_every_figure_once_and_twice_the_same() {
    let plan = Plan { quick: true, threads: 2, ..Plan::default() };
    let findings = CoapMany.run(&plan, &|_, _| ()).expect("it runs");
    let ids: BTreeSet<_> = findings.rows.iter().map(Row::id).collect();
    assert_eq!(ids.len(), findings.rows.len());
    assert!(findings.missed().next().is_none(), "{:?}", findings.missed().collect::<Vec<_>>());
    assert!(findings.rows.iter().filter(|row| row.bar().is_some()).count() >= 8);
    let again = CoapMany.run(&Plan { threads: 1, ..plan }, &|_, _| ()).expect("it runs");
    assert_eq!(findings.rows, again.rows);
}

/// By hand, without contention: 11 octets of MAC and 6 of the PHY around a dispatch and 82 octets; 2 and 7 octets for the 48 of
/// IPv6 and UDP.
#[test]
fn a_sender_alone_needs_what_its_frames_need() {
    for (way, octets) in [(Way::Plain, 17.0 + 1.0 + 82.0), (Way::Lowpan, 17.0 + 82.0 - 48.0 + 9.0)] {
        let sample = Cell::new(Hearing::All, 1, way, true).run(1, 0).expect("it runs");
        assert_eq!((sample.octets, sample.tries, sample.collisions), (octets, 1.0, 0.0));
        assert_eq!((sample.arrived, sample.altered, sample.feedback), (sample.sent, 0.0, 0.0));
        // Back-off of 0 to 7 periods, assessment, turnaround.
        assert!((320e-6..2.56e-3).contains(&sample.waited), "{}", sample.waited);
    }
    let [rohc, both] =
        [Way::Rohc, Way::Both].map(|way| Cell::new(Hearing::All, 1, way, true).run(1, 0).expect("it runs"));
    assert!(rohc.arrived == rohc.sent && rohc.feedback > 0.0 && rohc.refused == 0.0, "{rohc:?}");
    // IPv6 and UDP of the outer packet are 6 octets where the dispatch is 2.
    assert!((both.octets - rohc.octets - 4.0).abs() < 0.5, "{} {}", both.octets, rohc.octets);
}
