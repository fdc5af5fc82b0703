//! Real-time scheduling and locked memory, as far as the system grants them.

use std::io;
use std::time::Duration;

use nix::sys::mman::{MlockAllFlags, mlockall, munlockall};

/// Real-time priority: the middle of the range.
const PRIORITY: i32 = 50;

/// Time to [spin](crate::EventLoop::new) before a point in time, with real-time scheduling.
const SPIN: Duration = Duration::from_micros(200);

/// Real-time scheduling of this thread (SCHED_FIFO), and memory of the process locked in RAM, as far as granted. Ends
/// on drop.
#[derive(Debug)]
pub struct RealTime {
    scheduling: io::Result<()>,
    memory: io::Result<()>,
}

impl RealTime {
    /// Requests both for this thread. Children do not inherit them. A refusal is not an error: the thread then runs
    /// normally.
    pub fn request() -> Self {
        let memory = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE);
        Self { scheduling: fifo::begin(PRIORITY), memory: memory.map_err(io::Error::from) }
    }

    /// Requests nothing.
    pub fn none() -> Self {
        let refused = || Err(io::Error::other("not requested"));
        Self { scheduling: refused(), memory: refused() }
    }

    /// True if the thread has real-time scheduling.
    pub fn is_first(&self) -> bool {
        self.scheduling.is_ok()
    }

    /// Returns the time to spin before a point in time: 200 us with real-time scheduling, otherwise zero.
    pub fn spin(&self) -> Duration {
        if self.is_first() { SPIN } else { Duration::ZERO }
    }

    /// Returns the properties that were not granted, with the missing privileges.
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

/// The call that no library wraps.
#[allow(unsafe_code, reason = "sched_setscheduler takes a structure by its address")]
mod fifo {
    use std::io;

    pub(super) fn begin(priority: i32) -> io::Result<()> {
        set(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority)
    }

    pub(super) fn end() -> io::Result<()> {
        // Without a privilege the flag may be set, but not cleared.
        set(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0)
    }

    fn set(policy: i32, priority: i32) -> io::Result<()> {
        // SAFETY: a `sched_param` consists of integers, for which zeros are valid.
        let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
        parameters.sched_priority = priority;
        // SAFETY: 0 is the calling thread, and `parameters` is complete and outlives the call, which only reads it.
        match unsafe { libc::sched_setscheduler(0, policy, &parameters) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
