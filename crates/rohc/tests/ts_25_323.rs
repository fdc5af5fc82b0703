//! The bench for ROHC of 3GPP TS 25.323, Annex A, holds row by row.
//!
//! ```sh
//! cargo run -p thinair-rohc --example ts25323
//! ```

#[path = "common/ts_25_323.rs"]
mod ts_25_323;

use ts_25_323::{TESTS, configure};

#[test]
fn every_row_holds() {
    let mut failed = Vec::new();
    for test in &TESTS {
        for version in [4, 6] {
            let run = test.run(version, configure);
            run.rows.iter().for_each(|row| println!("{row}"));
            assert_eq!(run.lost, 0, "test {} over IPv{version}: packets wrong or not delivered", test.name);
            failed.extend(run.rows.into_iter().filter(|row| !row.passes()).map(|row| row.to_string()));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
