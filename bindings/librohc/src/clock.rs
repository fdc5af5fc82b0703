//! Time of packets, whether the caller has a clock or not.
//!
//! A compressor sends more bits of the SN behind a pause, and a decompressor sends NACKs at intervals. So the system's clock stands in
//! for a caller who gives none.

use std::sync::OnceLock;
use std::time::Instant as Now;

use thinair_rohc::Instant;

use crate::abi::Time;

/// Clock of one side, which never goes back.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    last: u64,
}

impl Clock {
    /// The time that the caller gives; that of the system if the caller gives none, which is zero.
    pub(crate) fn now(&mut self, time: Time) -> Instant {
        static START: OnceLock<Now> = OnceLock::new();
        let nanos = if time.sec | time.nsec == 0 {
            // 584 years.
            START.get_or_init(Now::now).elapsed().as_nanos() as u64
        } else {
            time.sec.saturating_mul(1_000_000_000).saturating_add(time.nsec)
        };
        self.last = self.last.max(nanos);
        Instant::from_nanos(self.last)
    }
}
