//! Time of packets, whether the caller has a clock or not.
//!
//! A compressor sends more bits of the SN behind a pause, for decompressors that infer from the time how many packets are missing. So
//! the system's clock stands in for a caller who gives none. At a decompressor the clock stands still, unless the caller vouches
//! for the compressor: another make does not send these bits, and its packets would be taken for late ones behind a pause.

use std::sync::OnceLock;
use std::time::Instant as Now;

use thinair_rohc::Instant;

use crate::abi::Time;

/// Clock of one side, which never goes back.
#[derive(Debug)]
pub(crate) struct Clock {
    goes_on: bool,
    last: u64,
}

impl Clock {
    /// A clock that goes on, or one that stands still.
    pub(crate) fn new(goes_on: bool) -> Self {
        Self { goes_on, last: 0 }
    }

    /// The time that the caller gives; that of the system if the caller gives none, which is zero.
    pub(crate) fn now(&mut self, time: Time) -> Instant {
        static START: OnceLock<Now> = OnceLock::new();
        if !self.goes_on {
            return Instant::ZERO;
        }
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
