//! Ours: the size that costs least for each octet that arrives, by what is known of losses.

use core::time::Duration;

use thinair_wire::time::Instant;

use crate::{Loss, SegmentSizer};

/// One, in steps of 2^-32.
const ONE: u64 = 1 << 32;

/// Sizes that are looked at on either side of the present one, at most.
const WALK: u16 = 64;

/// What it has to know of frames, and how it weighs what it sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveConfig {
    /// The least size, in octets; 0 is taken for 1.
    pub least: u16,
    /// The greatest size, in octets.
    pub most: u16,
    /// Octets of a packet that a frame carries; 0 is taken for 1.
    pub frame: u16,
    /// Octets of headers in front of a segment.
    pub headers: u16,
    /// What a frame costs beside what it carries, in octets on the air: its headers, and its acknowledgment.
    pub overhead: u16,
    /// What the acknowledgment of a segment costs, in octets on the air.
    pub acknowledgment: u16,
    /// Frames that are remembered: what is older fades.
    pub memory: u32,
    /// Frames that the first assumption counts for.
    pub assumed: u32,
    /// Losses of a frame that are assumed at first, in millionths.
    pub assumed_loss: u32,
    /// What a change has to save, in thousandths.
    pub hysteresis: u16,
}

impl Default for AdaptiveConfig {
    /// For IEEE 802.15.4.
    fn default() -> Self {
        Self {
            least: 64,
            most: 1_024,
            frame: 106,
            headers: 40,
            overhead: 32,
            acknowledgment: 72,
            memory: 600,
            assumed: 100,
            assumed_loss: 5_000,
            hysteresis: 5,
        }
    }
}

/// A control that expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adaptive {
    config: AdaptiveConfig,
    /// N: frames of a segment of the present size.
    frames: u16,
    /// Losses and frames that are remembered, in steps of 2^-16.
    lost: u64,
    sent: u64,
}

impl Adaptive {
    /// At the size that the first assumption asks for.
    pub fn new(config: AdaptiveConfig) -> Self {
        let sent = u64::from(config.assumed) << 16;
        let lost = sent / 1_000_000 * u64::from(config.assumed_loss.min(1_000_000));
        let mut adaptive = Self { config, frames: 1, lost, sent };
        adaptive.frames = adaptive.range().0;
        for _ in 0..=u16::MAX / WALK {
            adaptive.choose(0);
        }
        adaptive
    }

    /// Frames of the least and of the greatest segment that fills its frames.
    fn range(&self) -> (u16, u16) {
        let config = &self.config;
        let frame = u32::from(config.frame.max(1));
        let least = (u32::from(config.least.max(1)) + u32::from(config.headers)).div_ceil(frame);
        let most = (u32::from(config.most) + u32::from(config.headers)) / frame;
        let least = least.min(u32::from(u16::MAX)) as u16;
        (least, (most.min(u32::from(u16::MAX)) as u16).max(least))
    }

    /// Octets of a segment of so many frames.
    fn octets(&self, frames: u16) -> u16 {
        let config = &self.config;
        let full = u32::from(frames) * u32::from(config.frame.max(1));
        let octets = full.saturating_sub(config.headers.into()).min(u32::from(u16::MAX)) as u16;
        let least = config.least.max(1);
        octets.clamp(least, config.most.max(least))
    }

    /// The share of frames that is lost from end to end, in steps of 2^-32.
    fn loss(&self) -> u64 {
        let loss = (u128::from(self.lost) << 32) / u128::from(self.sent.max(1));
        loss.min(u128::from(ONE * 9 / 10)) as u64
    }

    /// Octets that arrive for each octet on the air, times 2^32, with segments of so many frames.
    fn worth(&self, frames: u16) -> u64 {
        let config = &self.config;
        let air = u64::from(frames) * (u64::from(config.frame) + u64::from(config.overhead))
            + u64::from(config.acknowledgment);
        // The acknowledgment is a frame, too.
        let arrives = power(ONE - self.loss(), u32::from(frames) + 1);
        (u128::from(self.octets(frames)) * u128::from(arrives) / u128::from(air.max(1))) as u64
    }

    /// Goes uphill from the present size, if that is worth the change.
    fn choose(&mut self, hysteresis: u16) {
        let (least, most) = self.range();
        let present = self.worth(self.frames);
        let (mut best, mut found) = (present, self.frames);
        for up in [true, false] {
            let mut at = self.frames;
            for _ in 0..WALK {
                let next = if up { at + u16::from(at < most) } else { at - u16::from(at > least) };
                let worth = self.worth(next);
                if next == at || worth < best {
                    break;
                }
                (best, found, at) = (worth, next, next);
            }
        }
        if u128::from(best) * 1_000 > u128::from(present) * (1_000 + u128::from(hysteresis)) {
            self.frames = found;
        }
    }

    /// So many frames, of which so many were lost.
    fn count(&mut self, sent: u64, lost: u64) {
        let sent = sent.min(u64::from(self.config.memory.max(1)) << 16);
        let memory = u64::from(self.config.memory.max(1)) << 16;
        let keep = |past: u64| {
            (u128::from(past) * u128::from(memory - sent.min(memory)) / u128::from(memory)) as u64
        };
        (self.sent, self.lost) = (keep(self.sent) + sent, keep(self.lost) + lost);
        self.choose(self.config.hysteresis);
    }
}

impl Default for Adaptive {
    fn default() -> Self {
        Self::new(AdaptiveConfig::default())
    }
}

/// `base` (in steps of 2^-32, at most one) to a power.
fn power(base: u64, exponent: u32) -> u64 {
    let (mut result, mut square, mut rest) = (ONE, base, exponent);
    while rest > 0 {
        if rest % 2 == 1 {
            result = ((u128::from(result) * u128::from(square)) >> 32) as u64;
        }
        square = ((u128::from(square) * u128::from(square)) >> 32) as u64;
        rest /= 2;
    }
    result
}

impl SegmentSizer for Adaptive {
    fn on_acked(&mut self, octets: u32, _rtt: Option<Duration>, _now: Instant) {
        let segment = u64::from(self.size());
        let sent = (u64::from(octets) << 16) / segment * (u64::from(self.frames) + 1);
        self.count(sent, 0);
    }

    fn on_lost(&mut self, _loss: Loss, _now: Instant) {
        // Half of its frames, on average, have gone before the one that was lost.
        self.count((u64::from(self.frames) + 1) << 15, 1 << 16);
    }

    fn size(&self) -> u16 {
        self.octets(self.frames)
    }
}
