//! `thinair`: thin headers, over the air.

use std::process::ExitCode;

fn main() -> ExitCode {
    thinair_cli::main()
}
