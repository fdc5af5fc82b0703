//! The bench for ROHC of 3GPP TS 25.323, Annex A: each limit, and the average of thinair.
//!
//! ```sh
//! cargo run -p thinair-rohc --example ts25323
//! cargo run -p thinair-rohc --example ts25323 -- default   # without the options that the bench asks for
//! cargo run -p thinair-rohc --example ts25323 -- headers   # each header: its octets and its format
//! cargo run -p thinair-rohc --example ts25323 -- loss      # packets not delivered where SN 1 to 3 are lost
//! ```

#[path = "../tests/common/ts_25_323.rs"]
mod ts_25_323;

use std::process::ExitCode;

use thinair_rohc::CompressorConfig;
use ts_25_323::{TESTS, configure};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let change: fn(&mut CompressorConfig) = if has("default") { |_| {} } else { configure };
    println!("| test | IP | SN | limit | average | |");
    println!("|---|---|---|---|---|---|");
    let mut passed = 0;
    for test in &TESTS {
        for version in [4, 6] {
            let run = test.run(version, change);
            passed += usize::from(run.passes());
            run.rows.iter().for_each(|row| println!("{row}"));
            if run.lost + run.wrong > 0 {
                println!("{} packets not delivered, {} wrong", run.lost, run.wrong);
            }
            if has("loss") {
                let run = test.run_with_loss(version, change, &[1, 2, 3]);
                println!("    SN 1 to 3 lost: {} others not delivered, {} wrong", run.lost, run.wrong);
            }
            if has("headers") {
                for (sn, header) in run.headers.iter().enumerate() {
                    let Some((octets, format)) = header else { continue };
                    println!("    SN {sn}: {octets}, {}", format.name());
                }
            }
        }
    }
    println!("passed: {passed} of {}", 2 * TESTS.len());
    if passed == 2 * TESTS.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
