//! Timestamps that follow the clock: start of TIME_STRIDE at the compressor, and number of bits of TS. RFC 3095,
//! section 4.5.4; RFC 4815, section 4.7.

use thinair_wire::lsb::{self, Shift};
use thinair_wire::range::Range;
use thinair_wire::time::Instant;

use super::rtp::RtpFields;
use super::timestamp::scaled;

/// Time in milliseconds for which timestamps and clock are compared before TIME_STRIDE is sent.
const LOOK: u32 = 1_000;

/// Largest TIME_STRIDE in milliseconds.
const LONGEST: u32 = 10_000;

/// Limits of the channel for the use of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerLimits {
    /// Max_Jitter_CD and the resolution of the decompressor's clock, in milliseconds.
    pub(crate) jitter_ms: u32,
    /// Jitter that the decompressor has reported, in units of TS_STRIDE.
    pub(crate) reported: u8,
}

/// Returns the time since a fixed moment, in units of TIME_STRIDE.
pub(super) fn ticks(now: Instant, time_stride: u32) -> u32 {
    millis(now).checked_div(u64::from(time_stride)).unwrap_or(0) as u32
}

fn millis(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000
}

/// Timer of one flow at the compressor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimestampTimer {
    /// Milliseconds and TS_SCALED at the start of the comparison, modulo 2^16. A flow whose comparison takes more than
    /// a minute is measured wrongly, and gets more bits.
    from_ms: u16,
    from_ts: u16,
    /// Number of packets left that must carry TIME_STRIDE.
    left: u8,
    /// Number of packets left until every reference is of the current kind; until then TS is sent in full.
    settling: u8,
}

impl TimestampTimer {
    /// Starts the comparison of clock and timestamps.
    pub(super) fn start(&mut self, now: Instant, rtp: &RtpFields) {
        (self.from_ms, self.from_ts) = (millis(now) as u16, scaled(rtp.ts, rtp.stride) as u16);
    }

    /// Records a packet, and sets the TIME_STRIDE for the next ones. `turned` is true if TS_STRIDE has changed.
    /// Returns true if references are of another kind from now on.
    pub(super) fn note(
        &mut self,
        now: Instant,
        rtp: &mut RtpFields,
        turned: bool,
        link: Option<&TimerLimits>,
        (repetitions, window): (u8, u8),
    ) -> bool {
        let next = match link {
            Some(_) if !turned && rtp.time_stride > 0 => rtp.time_stride,
            Some(_) if !turned => self.measured(now, rtp).unwrap_or(0),
            _ => 0,
        };
        if turned {
            self.start(now, rtp);
        }
        if next == rtp.time_stride {
            return false;
        }
        rtp.time_stride = next;
        self.left = repetitions.max(1);
        self.settling = repetitions.saturating_add(window).max(2);
        true
    }

    /// Returns TIME_STRIDE, once it was measured for long enough and no change is pending.
    fn measured(&self, now: Instant, rtp: &RtpFields) -> Option<u32> {
        let elapsed = u32::from((millis(now) as u16).wrapping_sub(self.from_ms));
        let steps = u32::from((scaled(rtp.ts, rtp.stride) as u16).wrapping_sub(self.from_ts));
        if elapsed < LOOK || steps == 0 || rtp.stride <= 1 || self.settling > 0 {
            return None;
        }
        let time_stride = (elapsed + steps / 2) / steps;
        (1..=LONGEST).contains(&time_stride).then_some(time_stride)
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

    /// Returns the distance of a timestamp from the clock, which the references hold while the timer is used.
    pub(super) fn phase(now: Instant, rtp: &RtpFields) -> u32 {
        scaled(rtp.ts, rtp.stride).wrapping_sub(ticks(now, rtp.time_stride))
    }

    /// Number of bits of TS_SCALED: `ceiling(log2(2 * J + 1))` with `J = Max_Jitter_BC + Max_Jitter_CD + 2`, where
    /// Max_Jitter_BC is the largest distance of the phase from that of a reference.
    pub(super) fn bits(now: Instant, rtp: &RtpFields, phases: &Range<u32, 3>, link: &TimerLimits) -> u32 {
        let between = link.jitter_ms.div_ceil(rtp.time_stride.max(1)).max(u32::from(link.reported));
        let (phase, margin) = (Self::phase(now, rtp), between + 2);
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
