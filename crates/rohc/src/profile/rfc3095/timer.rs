//! Timestamps that follow the clock: when the compressor tells TIME_STRIDE, and how many bits of TS it sends then. RFC
//! 3095, section 4.5.4; RFC 4815, section 4.7.

use thinair_wire::lsb::{self, Shift};
use thinair_wire::range::Range;
use thinair_wire::time::Instant;

use super::rtp::RtpFields;
use super::timestamp::scaled;

/// Milliseconds for which timestamps and clock are looked at before TIME_STRIDE is told.
const LOOK: u32 = 1_000;

/// Largest TIME_STRIDE in milliseconds that is told.
const LONGEST: u32 = 10_000;

/// What must hold on the channel for a timer to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerLimits {
    /// Max_Jitter_CD and the resolution of the decompressor's clock, in milliseconds.
    pub(crate) jitter_ms: u32,
    /// What the decompressor has reported of the jitter, in units of TS_STRIDE.
    pub(crate) reported: u8,
}

/// Milliseconds since some moment in units of TIME_STRIDE.
pub(super) fn ticks(now: Instant, time_stride: u32) -> u32 {
    millis(now).checked_div(u64::from(time_stride)).unwrap_or(0) as u32
}

fn millis(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000
}

/// The timer of one flow at the compressor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimestampTimer {
    /// Milliseconds and TS_SCALED from which on both are looked at, modulo 2^16: a flow of which a minute says nothing
    /// is measured wrongly, and gets more bits.
    from_ms: u16,
    from_ts: u16,
    /// Packets left that must say TIME_STRIDE.
    said: u8,
    /// Packets left until every reference is of the kind that is used now; until then TS goes in full.
    settling: u8,
}

impl TimestampTimer {
    /// Starts to look at clock and timestamps.
    pub(super) fn start(&mut self, now: Instant, rtp: &RtpFields) {
        (self.from_ms, self.from_ts) = (millis(now) as u16, scaled(rtp.ts, rtp.stride) as u16);
    }

    /// Notes a packet, and sets the TIME_STRIDE that holds for the next ones. `turned` tells that TS_STRIDE is another
    /// one. Returns whether the references are to be of another kind from now on.
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
        self.said = repetitions.max(1);
        self.settling = repetitions.saturating_add(window).max(2);
        true
    }

    /// TIME_STRIDE, once there was time enough to tell it, and nothing is being said.
    fn measured(&self, now: Instant, rtp: &RtpFields) -> Option<u32> {
        let elapsed = u32::from((millis(now) as u16).wrapping_sub(self.from_ms));
        let steps = u32::from((scaled(rtp.ts, rtp.stride) as u16).wrapping_sub(self.from_ts));
        if elapsed < LOOK || steps == 0 || rtp.stride <= 1 || self.settling > 0 {
            return None;
        }
        let time_stride = (elapsed + steps / 2) / steps;
        (1..=LONGEST).contains(&time_stride).then_some(time_stride)
    }

    /// True if nothing is to be said or counted.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.said | self.settling == 0
    }

    /// Whether TIME_STRIDE must be said.
    pub(super) fn says(&self) -> bool {
        self.said > 0
    }

    /// Whether the decompressor may decode TS either way, so that it must go in full.
    pub(super) fn is_settling(&self) -> bool {
        self.settling > 0
    }

    /// The distance of a timestamp from the clock, which is what references are while the timer is used.
    pub(super) fn phase(now: Instant, rtp: &RtpFields) -> u32 {
        scaled(rtp.ts, rtp.stride).wrapping_sub(ticks(now, rtp.time_stride))
    }

    /// Bits of TS_SCALED: `ceiling(log2(2 * J + 1))` with `J = Max_Jitter_BC + Max_Jitter_CD + 2`, where the first is
    /// how far the phase is from that of any reference.
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

    /// A packet was acknowledged that has said TIME_STRIDE, as those do that follow.
    pub(super) fn acknowledge(&mut self) {
        (self.said, self.settling) = (0, 0);
    }

    /// A packet was sent, which said TIME_STRIDE or not.
    pub(super) fn sent(&mut self, said: bool) {
        self.said = self.said.saturating_sub(u8::from(said));
        self.settling = self.settling.saturating_sub(1);
    }
}
