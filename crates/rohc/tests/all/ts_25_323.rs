//! The bench for ROHC of 3GPP TS 25.323, Annex A: every row is within its limit.
//!
//! ```sh
//! cargo run -p thinair-rohc --example ts25323
//! ```

#[path = "../common/ts_25_323.rs"]
mod bench;

use bench::{TESTS, configure};

#[test]
fn every_row_holds() {
    let mut failed = Vec::new();
    for test in &TESTS {
        for version in [4, 6] {
            let run = test.run(version, configure);
            run.rows.iter().for_each(|row| println!("{row}"));
            assert_eq!(
                (run.lost, run.wrong),
                (0, 0),
                "test {} over IPv{version}: packets not delivered, and wrong ones",
                test.name
            );
            failed.extend(run.rows.into_iter().filter(|row| !row.passes()).map(|row| row.to_string()));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Reason for the default, with which not every row is within its limit.
#[test]
fn by_default_three_packets_lost_behind_the_first_cost_no_other() {
    for version in [4, 6] {
        let run = |change: fn(&mut _)| TESTS[0].run_with_loss(version, change, &[1, 2, 3]);
        let by_default = run(|_| {});
        assert_eq!((by_default.lost, by_default.wrong), (0, 0), "IPv{version}");
        assert_eq!(run(configure).wrong, 0, "IPv{version}");
    }
}
