//! Configuration of callgrind that all benches of this workspace share.

use gungraun::{Callgrind, EventKind, LibraryBenchmarkConfig, OutputFormat};

/// Counts instructions, and does not simulate caches.
pub(crate) fn instructions_alone() -> LibraryBenchmarkConfig {
    let mut callgrind = Callgrind::with_args(["--cache-sim=no"]);
    callgrind.format([EventKind::Ir]);
    let mut output = OutputFormat::default();
    output.truncate_description(Some(0));
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(callgrind).output_format(output);
    config
}
