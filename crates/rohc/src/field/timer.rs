//! Timestamps that follow the clock: what both ends know of the clocks, and the start of TIME_STRIDE. RFC 3095, section 4.5.4;
//! RFC 4815, section 4.7; RFC 5225, section 6.6.9.

use thinair_wire::time::Instant;

use crate::compressor::CompressorConfig;
use crate::feedback::Feedback;

/// Time in milliseconds for which timestamps and clock are compared before TIME_STRIDE is sent.
const LOOK: u32 = 1_000;

/// Largest TIME_STRIDE in milliseconds.
const LONGEST: u32 = 10_000;

fn millis(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000
}

/// Returns the time since a fixed moment, in units of TIME_STRIDE.
pub(crate) fn ticks(now: Instant, time_stride: u32) -> u32 {
    millis(now).checked_div(u64::from(time_stride)).unwrap_or(0) as u32
}

/// Returns the distance of a scaled timestamp from the clock, which the references hold while the timer is used.
pub(crate) fn phase(now: Instant, ts_scaled: u32, time_stride: u32) -> u32 {
    ts_scaled.wrapping_sub(ticks(now, time_stride))
}

/// What feedback has told of the decompressor's clock. RFC 4815, section 4.7: "on a per-channel basis".
#[derive(Clone, Copy, Debug)]
pub(crate) struct FarClock {
    /// Resolution in milliseconds.
    resolution: Option<u8>,
    /// Jitter that it has seen, in units of TS_STRIDE.
    jitter: u8,
}

impl FarClock {
    /// Before feedback.
    pub(crate) const NONE: Self = Self { resolution: None, jitter: 0 };

    /// Notes the options of feedback on a flow of RTP. A resolution of zero means no timer.
    pub(crate) fn note(&mut self, feedback: &Feedback) {
        self.resolution = feedback.clock.map_or(self.resolution, |clock| Some(clock).filter(|ms| *ms > 0));
        self.jitter = feedback.jitter.map_or(self.jitter, |jitter| jitter.max(self.jitter));
    }

    /// Returns the limits of a timer for timestamps, if one may be used.
    pub(crate) fn limits(&self, config: &CompressorConfig) -> Option<TimerLimits> {
        let (jitter, resolution) = (config.timer?, self.resolution?);
        let jitter_ms = u32::try_from(jitter.as_millis()).unwrap_or(u32::MAX / 2);
        Some(TimerLimits {
            jitter_ms: jitter_ms.saturating_add(u32::from(resolution)),
            reported: self.jitter,
        })
    }
}

/// Limits of the channel for the use of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerLimits {
    /// Max_Jitter_CD and the resolution of the decompressor's clock, in milliseconds.
    jitter_ms: u32,
    /// Jitter that the decompressor has reported, in units of TS_STRIDE.
    reported: u8,
}

impl TimerLimits {
    /// Distance by which the decompressor's estimate of a scaled timestamp may be wrong because of the link and of both clocks:
    /// `Max_Jitter_CD + 2` of RFC 3095, section 4.5.4.
    pub(crate) fn margin(&self, time_stride: u32) -> u32 {
        self.jitter_ms.div_ceil(time_stride.max(1)).max(u32::from(self.reported)).saturating_add(2)
    }
}

/// Comparison of timestamps with the clock, which tells TIME_STRIDE.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClockComparison {
    /// Milliseconds and TS_SCALED at its start, modulo 2^16. A flow whose comparison takes more than a minute is measured wrongly, and
    /// gets more bits.
    from_ms: u16,
    from_ts: u16,
}

impl ClockComparison {
    /// Starts with a packet.
    pub(crate) fn start(now: Instant, ts_scaled: u32) -> Self {
        Self { from_ms: millis(now) as u16, from_ts: ts_scaled as u16 }
    }

    /// Returns TIME_STRIDE, once it was measured for long enough.
    pub(crate) fn time_stride(&self, now: Instant, ts_scaled: u32) -> Option<u32> {
        let elapsed = u32::from((millis(now) as u16).wrapping_sub(self.from_ms));
        let steps = u32::from((ts_scaled as u16).wrapping_sub(self.from_ts));
        if elapsed < LOOK || steps == 0 {
            return None;
        }
        let time_stride = (elapsed + steps / 2) / steps;
        (1..=LONGEST).contains(&time_stride).then_some(time_stride)
    }
}
