//! Timestamps that follow the clock: when TIME_STRIDE is sent, and the number of bits of TS. RFC 3095, section 4.5.4;
//! RFC 4815, section 4.7.

use thinair_wire::lsb::{self, Shift};
use thinair_wire::range::Range;
use thinair_wire::time::Instant;

use super::rtp::RtpFields;
use super::timestamp::scaled;
use crate::compressor::CompressorConfig;
use crate::field::timer::{ClockComparison, TimerLimits, phase};

/// Timer of one flow at the compressor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimestampTimer {
    comparison: ClockComparison,
    /// Number of packets left that must carry TIME_STRIDE.
    left: u8,
    /// Number of packets left until every reference is of the current kind; until then TS is sent in full.
    settling: u8,
}

impl TimestampTimer {
    /// Starts the comparison of clock and timestamps.
    pub(super) fn start(&mut self, now: Instant, rtp: &RtpFields) {
        self.comparison = ClockComparison::start(now, scaled(rtp.ts, rtp.stride));
    }

    /// Records a packet, and sets the TIME_STRIDE for the next ones. `turned` is true if TS_STRIDE has changed.
    /// Returns true if references are of another kind from now on.
    pub(super) fn note(
        &mut self,
        now: Instant,
        rtp: &mut RtpFields,
        turned: bool,
        link: Option<&TimerLimits>,
        config: &CompressorConfig,
    ) -> bool {
        let next = match link {
            Some(_) if !turned && rtp.time_stride > 0 => rtp.time_stride,
            Some(_) if !turned && rtp.stride > 1 && self.settling == 0 => {
                self.comparison.time_stride(now, scaled(rtp.ts, rtp.stride)).unwrap_or(0)
            }
            _ => 0,
        };
        if turned {
            self.start(now, rtp);
        }
        if next == rtp.time_stride {
            return false;
        }
        rtp.time_stride = next;
        self.left = config.repetitions.max(1);
        self.settling = config.repetitions.saturating_add(config.window).max(2);
        true
    }

    /// True if no change is pending, and no packets are counted.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.left | self.settling == 0
    }

    /// True if TIME_STRIDE must be sent.
    pub(super) fn is_due(&self) -> bool {
        self.left > 0
    }

    /// True if the decompressor may decode TS in either way, so that it must be sent in full.
    pub(super) fn is_settling(&self) -> bool {
        self.settling > 0
    }

    /// Number of bits of TS_SCALED: `ceiling(log2(2 * J + 1))` with `J = Max_Jitter_BC + Max_Jitter_CD + 2`, where
    /// Max_Jitter_BC is the largest distance of the phase from that of a reference.
    pub(super) fn bits(now: Instant, rtp: &RtpFields, phases: &Range<u32, 3>, link: &TimerLimits) -> u32 {
        let margin = link.margin(rtp.time_stride);
        let phase = phase(now, scaled(rtp.ts, rtp.stride), rtp.time_stride);
        let bits = |value: u32| {
            phases.spans().fold(0, |bits, (low, high)| {
                bits.max(lsb::needed_bits(value, low, Shift::Half)).max(lsb::needed_bits(
                    value,
                    high,
                    Shift::Half,
                ))
            })
        };
        bits(phase.wrapping_add(margin)).max(bits(phase.wrapping_sub(margin)))
    }

    /// Handles the acknowledgment of a packet with TIME_STRIDE, which all later packets have as well.
    pub(super) fn acknowledge(&mut self) {
        (self.left, self.settling) = (0, 0);
    }

    /// Records a packet that was sent, with or without TIME_STRIDE.
    pub(super) fn sent(&mut self, has_time_stride: bool) {
        self.left = self.left.saturating_sub(u8::from(has_time_stride));
        self.settling = self.settling.saturating_sub(1);
    }
}
