//! The clock since the start of the machine, the calendar, and processor times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use thinair_wire::time::Instant;

/// Returns the time of `CLOCK_BOOTTIME` in nanoseconds: it is monotonic, also passes while the machine is suspended, and its origin is
/// about the start of the machine. Timers of this crate use this clock.
pub fn now() -> Instant {
    // Linux has this clock since 2.6.39, so the call cannot fail.
    let time = clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from);
    Instant::ZERO + time
}

/// Returns the calendar time at zero of [`now`], in nanoseconds since 1970. Changes when the calendar is set.
pub fn epoch() -> u64 {
    let calendar = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let nanos = u64::try_from(calendar.as_nanos()).unwrap_or(u64::MAX);
    nanos.saturating_sub(now().as_nanos())
}

/// Returns the calendar time in seconds since 1970, without leap seconds. Goes back when the calendar is set back; 0
/// before 1970.
pub fn calendar() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns the processor time of this process since its start, of all threads.
pub fn of_this_process() -> Duration {
    spent(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// Returns the processor time of this thread since its start.
pub fn of_this_thread() -> Duration {
    spent(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn spent(clock: ClockId) -> Duration {
    // Both exist since Linux 2.6.12, so the call cannot fail.
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

/// Processor time of this machine since its start, in a unit of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorTime {
    whole: u64,
    stolen: u64,
}

impl ProcessorTime {
    /// Reads the time until now; `None` if the system does not report it.
    pub fn until_now() -> Option<Self> {
        Self::of(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal; further values are part of the first two.
    fn of(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let times: Vec<u64> = line.split_whitespace().take(8).map_while(|time| time.parse().ok()).collect();
        Some(Self { whole: times.iter().sum(), stolen: *times.get(7)? })
    }

    /// Returns the share of the time since `earlier` that the hypervisor of a virtual machine gave to other machines: 0
    /// to 1. In that time nothing runs in the machine, at any priority.
    pub fn stolen_since(self, earlier: Self) -> f64 {
        let whole = self.whole.saturating_sub(earlier.whole);
        if whole == 0 { 0.0 } else { self.stolen.saturating_sub(earlier.stolen) as f64 / whole as f64 }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_go_back() {
        let (first, second) = (now(), now());
        assert!(Instant::ZERO < first && first <= second);
        assert!(epoch() > 0);
        // Seconds, not nanoseconds; and the present is close to the origin.
        let by_epoch = (epoch() + now().as_nanos()) / 1_000_000_000;
        assert!(by_epoch.abs_diff(calendar()) < 100);
    }

    /// In a time namespace the clock since the start of the machine has an offset, as behind a day in which it was suspended; the
    /// monotonic clock has none.
    #[test]
    fn time_passes_while_the_machine_is_suspended() {
        const BEFORE: &str = "THINAIR_TEST_BEFORE";
        const DAY: u64 = 86_400;
        if let Ok(before) = std::env::var(BEFORE) {
            let before: u64 = before.parse().unwrap();
            assert!(now().as_nanos() >= before + DAY * 1_000_000_000);
            return;
        }
        let unshare = |program: &std::path::Path, arguments: &[&str]| {
            let mut command = std::process::Command::new("unshare");
            command.args(["--time", "--boottime", &DAY.to_string()]).arg(program).args(arguments);
            command.env(BEFORE, now().as_nanos().to_string()).output()
        };
        if !unshare("true".as_ref(), &[]).is_ok_and(|output| output.status.success()) {
            return println!("skipped: a suspended machine, which needs root and time namespaces");
        }
        let own = std::env::current_exe().unwrap();
        let name = "clock::tests::time_passes_while_the_machine_is_suspended";
        let output = unshare(&own, &["--exact", name]).unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
    }

    #[test]
    fn what_a_thread_does_is_part_of_what_the_process_does() {
        let (process, thread) = (of_this_process(), of_this_thread());
        let mut sum = 0_u64;
        while of_this_thread() < thread + Duration::from_millis(5) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(of_this_process() >= process + Duration::from_millis(5));
        let other = std::thread::spawn(of_this_thread).join().unwrap();
        assert!(other < of_this_thread());
    }

    #[test]
    fn what_the_host_takes_is_a_share_of_the_whole() {
        let of = |stat| ProcessorTime::of(stat).unwrap();
        let earlier = of("cpu  10 0 10 60 10 0 5 5 3 0\ncpu0 5 0 5 30 5 0 2 2 3 0\n");
        let later = of("cpu  20 0 20 110 10 0 5 35 3 0\n");
        assert_eq!(later.stolen_since(earlier), 0.3);
        assert_eq!(earlier.stolen_since(later), 0.0);
        assert_eq!(ProcessorTime::of("cpu 1 2 3"), None);
        assert!(ProcessorTime::until_now().is_some());
    }
}
