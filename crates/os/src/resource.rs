//! What this process uses.

use nix::unistd::{SysconfVar, sysconf};

/// Octets of memory of this process that are in RAM (the resident set); `None` if the system does not say.
///
/// Linux counts pages in each thread, and adds them up only now and then, so that it may be some tens of pages off.
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
        // Other tests run beside this one, and give memory back.
        assert!(before > 100_000 && with > before + (48 << 20), "{before} {with}");
        drop(memory);
    }
}
