//! Resources of this process.

use nix::unistd::{SysconfVar, sysconf};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::{ErrorContext as _, Result};

/// Raises the number of files that this process may have open to the hard limit (`ulimit -Hn`). Linux keeps the soft one low for
/// programs that use select(2).
///
/// # Errors
/// None is known.
pub fn raise_file_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
        .attempt(|| "raise the limit of open files".to_owned())
}

/// Returns the memory of this process in RAM (the resident set) in octets; `None` if the system does not report it.
///
/// Linux counts pages in each thread, and adds them up occasionally, so that the result may be wrong by some tens
/// of pages.
pub fn resident() -> Option<u64> {
    let page = u64::try_from(sysconf(SysconfVar::PAGE_SIZE).ok()??).ok()?;
    // proc_pid_statm(5): size, resident, ... in pages.
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * page)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_used_is_counted() {
        let before = resident().unwrap();
        let memory = std::hint::black_box(vec![1_u8; 64 << 20]);
        let with = resident().unwrap();
        // Other tests run in parallel, and release memory.
        assert!(before > 100_000 && with > before + (48 << 20), "{before} {with}");
        drop(memory);
    }
}
