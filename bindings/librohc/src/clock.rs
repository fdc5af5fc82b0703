//! Time of packets, whether the caller has a clock or not.
//!
//! A compressor sends more bits of the SN behind a pause, and a decompressor sends NACKs at intervals. So the system's clock stands in
//! for a caller who gives none.

#![allow(unsafe_code, reason = "the processor's counter of cycles is read")]
#![allow(unused_unsafe, reason = "that was unsafe in Rust 1.88")]

use std::sync::OnceLock;
use std::time::Instant as Now;

use thinair_rohc::Instant;

use crate::abi::Time;

/// Cycles of the processor for which a reading of the system's clock holds, since reading it takes a fifth of the time of a packet. At
/// 1 to 5 GHz they are 0.2 to 1 ms, which no engine tells from no time at all.
const HOLDS: u64 = 1_000_000;

/// Clock of one side, which never goes back.
#[derive(Debug)]
pub(crate) struct Clock {
    last: u64,
    /// The processor's counter when the system's clock was read.
    read_at: Option<u64>,
    has_counter: bool,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { last: 0, read_at: None, has_counter: has_counter() }
    }

    /// The time that the caller gives; that of the system if the caller gives none, which is zero.
    #[inline(always)]
    pub(crate) fn now(&mut self, time: Time) -> Instant {
        if time.sec | time.nsec == 0 {
            let cycles = self.has_counter.then(cycles);
            let holds = |at: u64| cycles.is_some_and(|cycles| cycles.wrapping_sub(at) < HOLDS);
            if !self.read_at.is_some_and(holds) {
                self.read_at = cycles;
                self.last = self.last.max(system());
            }
        } else {
            self.last = self.last.max(time.sec.saturating_mul(1_000_000_000).saturating_add(time.nsec));
        }
        Instant::from_nanos(self.last)
    }
}

/// Nanoseconds of the system's clock since its first reading.
#[cold]
fn system() -> u64 {
    static START: OnceLock<Now> = OnceLock::new();
    // 584 years.
    START.get_or_init(Now::now).elapsed().as_nanos() as u64
}

/// True if the processor has a counter that goes on at one rate, also while it sleeps.
fn has_counter() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::__cpuid;
        const POWER: u32 = 0x8000_0007;
        const INVARIANT_TSC: u32 = 1 << 8;
        // SAFETY: every processor of this architecture has the instruction, and the first leaf says which others there are.
        unsafe { __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & INVARIANT_TSC != 0 }
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Cycles that the processor has counted; 0 where it has no such counter.
#[inline(always)]
fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has it.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    0
}
