//! Running before everything else, and in memory that stays: what the system grants of it.

use std::io;
use std::time::Duration;

use nix::sys::mman::{MlockAllFlags, mlockall, munlockall};

/// Among those that run before everything else, the middle.
const PRIORITY: i32 = 50;

/// How long before a point in time to [spin](crate::EventLoop::new), where that is granted.
const SPIN: Duration = Duration::from_micros(200);

/// This thread before all that are not real-time (SCHED_FIFO), and the memory of the process held in RAM, as far as it
/// was granted. Ends on drop.
#[derive(Debug)]
pub struct RealTime {
    scheduling: io::Result<()>,
    memory: io::Result<()>,
}

impl RealTime {
    /// Asks for it, for this thread. Children do not inherit it. That it is refused is no error: the thread then runs
    /// like any other.
    pub fn request() -> Self {
        let memory = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE);
        Self { scheduling: fifo::begin(PRIORITY), memory: memory.map_err(io::Error::from) }
    }

    /// Nothing is asked for.
    pub fn none() -> Self {
        let refused = || Err(io::Error::other("not asked for"));
        Self { scheduling: refused(), memory: refused() }
    }

    /// Whether the thread runs before everything else.
    pub fn is_first(&self) -> bool {
        self.scheduling.is_ok()
    }

    /// How long to spin before a point in time: 200 us where the thread runs first, else not at all.
    pub fn spin(&self) -> Duration {
        if self.is_first() { SPIN } else { Duration::ZERO }
    }

    /// What was not granted, and what would be needed for it.
    pub fn refused(&self) -> Vec<String> {
        let mut refused = Vec::new();
        if let Err(why) = &self.scheduling {
            refused.push(format!("no SCHED_FIFO (needs CAP_SYS_NICE): {why}"));
        }
        if let Err(why) = &self.memory {
            refused.push(format!("memory is not locked (needs CAP_IPC_LOCK): {why}"));
        }
        refused
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        if self.scheduling.is_ok() {
            let _ = fifo::end();
        }
        if self.memory.is_ok() {
            let _ = munlockall();
        }
    }
}

/// The one call that no library wraps.
#[allow(unsafe_code, reason = "sched_setscheduler takes a structure by its address")]
mod fifo {
    use std::io;

    pub(super) fn begin(priority: i32) -> io::Result<()> {
        set(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority)
    }

    pub(super) fn end() -> io::Result<()> {
        // Without a privilege the flag may be set, but not taken away.
        set(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0)
    }

    fn set(policy: i32, priority: i32) -> io::Result<()> {
        // SAFETY: a `sched_param` is made of integers, for which all zeros is a value.
        let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
        parameters.sched_priority = priority;
        // SAFETY: 0 is the calling thread, and `parameters` is whole and outlives the call, which only reads it.
        match unsafe { libc::sched_setscheduler(0, policy, &parameters) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
