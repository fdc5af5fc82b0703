//! Header compression for constrained links: the `thinair` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    thinair_cli::main()
}
