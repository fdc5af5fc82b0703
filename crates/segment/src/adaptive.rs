//! Adaptive segment size, the control of this project: the size with the least expected cost for each octet that arrives.
//!
//! A segment of N frames costs N frames and an acknowledgment on the air, and arrives with probability (1 - q)^(N + 1),
//! where q is the share of frames that is lost from end to end. q is estimated from losses per frame, over the last
//! [`AdaptiveConfig::memory`] frames. Only sizes that fill their frames are considered.
//!
//! A single loss changes the size little, and a single success does not undo it: the control does not overshoot
//! downwards, where the cost of a wrong size rises most steeply, and its only inputs are acknowledgments and losses. A
//! loss costs more than its own segment: the segments behind it in its window, retransmissions in vain on the path,
//! collisions. The factor [`AdaptiveConfig::loss_cost`] on q stands for that; its default is 3. Losses while the channel
//! was too busy to be accessed count less ([`AdaptiveConfig::contention`]): a shorter segment avoids them less than it
//! avoids bit errors. A change of size has to save a minimum ([`AdaptiveConfig::hysteresis`]).
//!
//! The defaults were found by trial on chains of five hops of IEEE 802.15.4 with windows of 1 and 4 segments and bit
//! error rates of 1e-5 to 4e-4. They are not critical: loss costs of 25 to 32 and memories of 600 to 1,200 frames are
//! within 2 % of each other.

use core::time::Duration;

use thinair_wire::time::Instant;

use crate::{LossDetection, SegmentSizer};

/// One, in steps of 2^-32.
const ONE: u64 = 1 << 32;

/// Largest number of sizes examined on either side of the present one.
const WALK: u16 = 64;

/// Frame sizes and costs of the link, and weights of observed losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveConfig {
    /// Smallest size, in octets; 0 means 1.
    pub least: u16,
    /// Largest size, in octets.
    pub most: u16,
    /// Octets of a packet that a frame carries; 0 means 1.
    pub frame: u16,
    /// Octets of headers in front of a segment.
    pub headers: u16,
    /// Cost of a frame beside its content, in octets on the air: its headers and its acknowledgment.
    pub overhead: u16,
    /// Cost of the acknowledgment of a segment, in octets on the air.
    pub acknowledgment: u16,
    /// Number of frames that the estimate of losses covers; older frames fade.
    pub memory: u32,
    /// Number of frames that the initial estimate is worth.
    pub assumed: u32,
    /// Initial estimate of the loss of frames, in millionths.
    pub assumed_loss: u32,
    /// Cost of a loss, in tenths of the cost of its segment.
    pub loss_cost: u16,
    /// Weight of a loss during which an access to the channel was given up, in tenths: such a loss indicates contention
    /// rather than bit errors.
    pub contention: u16,
    /// Minimum saving that justifies a change of size, in thousandths.
    pub hysteresis: u16,
}

impl Default for AdaptiveConfig {
    /// Parameters for IEEE 802.15.4.
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
            loss_cost: 30,
            contention: 8,
            hysteresis: 10,
        }
    }
}

/// Segment size control that minimizes the expected cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adaptive {
    config: AdaptiveConfig,
    /// N: frames of a segment of the present size.
    frames: u16,
    /// Weighted losses and frames, in steps of 2^-16.
    lost: u64,
    sent: u64,
    /// An access to the channel was given up since the last acknowledgment or loss.
    is_busy: bool,
}

impl Adaptive {
    /// Creates a control whose first size follows from the initial estimate.
    pub fn new(config: AdaptiveConfig) -> Self {
        let sent = u64::from(config.assumed) << 16;
        let lost = sent / 1_000_000 * u64::from(config.assumed_loss.min(1_000_000));
        let mut adaptive = Self { config, frames: 1, lost, sent, is_busy: false };
        adaptive.frames = adaptive.range().0;
        for _ in 0..=u16::MAX / WALK {
            if !adaptive.choose(0) {
                break;
            }
        }
        adaptive
    }

    /// Returns the number of frames of the smallest and of the largest segment that fills its frames.
    fn range(&self) -> (u16, u16) {
        let config = &self.config;
        let frame = u32::from(config.frame.max(1));
        let least = (u32::from(config.least.max(1)) + u32::from(config.headers)).div_ceil(frame);
        let most = (u32::from(config.most) + u32::from(config.headers)) / frame;
        let least = least.min(u32::from(u16::MAX)) as u16;
        (least, (most.min(u32::from(u16::MAX)) as u16).max(least))
    }

    /// Returns the octets of a segment of `frames` frames.
    fn octets(&self, frames: u16) -> u16 {
        let config = &self.config;
        let full = u32::from(frames) * u32::from(config.frame.max(1));
        let octets = full.saturating_sub(config.headers.into()).min(u32::from(u16::MAX)) as u16;
        let least = config.least.max(1);
        octets.clamp(least, config.most.max(least))
    }

    /// Returns q times the cost of a loss, in steps of 2^-32, at most 0.9.
    fn loss(&self) -> u64 {
        let loss = (u128::from(self.lost) << 32) / u128::from(self.sent.max(1));
        (loss * u128::from(self.config.loss_cost) / 10).min(u128::from(ONE * 9 / 10)) as u64
    }

    /// Returns the octets that arrive for each octet on the air, times 2^32, with segments of `frames` frames.
    fn worth(&self, frames: u16) -> u64 {
        let config = &self.config;
        let air = u64::from(frames) * (u64::from(config.frame) + u64::from(config.overhead))
            + u64::from(config.acknowledgment);
        // The acknowledgment is a frame, too.
        let arrives = power(ONE - self.loss(), u32::from(frames) + 1);
        (u128::from(self.octets(frames)) * u128::from(arrives) / u128::from(air.max(1))) as u64
    }

    /// Climbs from the present size to the best one if the saving exceeds `hysteresis`; returns true if the size changed.
    fn choose(&mut self, hysteresis: u16) -> bool {
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
        let is_worth_it = u128::from(best) * 1_000 > u128::from(present) * (1_000 + u128::from(hysteresis));
        if is_worth_it {
            self.frames = found;
        }
        is_worth_it
    }

    /// Counts `sent` frames, of which `lost` were lost.
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

/// Returns `base` (in steps of 2^-32, at most one) to the power of `exponent`.
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
        let sent = ((u64::from(octets) << 16) / segment).saturating_mul(u64::from(self.frames) + 1);
        self.count(sent, 0);
        self.is_busy = false;
    }

    fn on_lost(&mut self, _loss: LossDetection, _now: Instant) {
        // On average, half of its frames were sent before the one that was lost.
        let tenths = if self.is_busy { self.config.contention.min(10) } else { 10 };
        self.count((u64::from(self.frames) + 1) << 15, (u64::from(tenths) << 16) / 10);
        self.is_busy = false;
    }

    fn on_frames(&mut self, _sent: u32, _failed: u32, busy: u32, _now: Instant) {
        self.is_busy |= busy > 0;
    }

    fn size(&self) -> u16 {
        self.octets(self.frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `segments` segments of which every `every`-th is lost, and returns the size at the end.
    fn after(adaptive: &mut Adaptive, segments: u32, every: u32) -> u16 {
        for segment in 1..=segments {
            if segment % every == 0 {
                adaptive.on_lost(LossDetection::Rto, Instant::ZERO);
            } else {
                adaptive.on_acked(adaptive.size().into(), None, Instant::ZERO);
            }
        }
        adaptive.size()
    }

    #[test]
    fn without_losses_it_goes_to_the_greatest_size_that_fills_its_frames() {
        let mut adaptive = Adaptive::default();
        assert_eq!(adaptive.size(), 808, "by what is assumed");
        assert_eq!(after(&mut adaptive, 200, u32::MAX), 1_020, "10 * 106 - 40");
    }

    #[test]
    fn with_losses_it_goes_to_the_size_that_costs_least_and_stays_there() {
        let mut adaptive = Adaptive::default();
        let sizes = [1_000, 20, 5, 3].map(|every| after(&mut adaptive, 2_000, every));
        assert!(sizes.is_sorted_by(|a, b| a > b), "{sizes:?}");
        assert_eq!(adaptive.size() % 106, 66, "full frames");
        assert_eq!(after(&mut adaptive, 2_000, 2), 66, "every other one is lost");
        assert_eq!(after(&mut adaptive, 4_000, u32::MAX), 1_020, "and it comes back");
    }

    #[test]
    fn one_loss_moves_it_little() {
        let mut adaptive = Adaptive::default();
        after(&mut adaptive, 400, u32::MAX);
        adaptive.on_lost(LossDetection::Rto, Instant::ZERO);
        assert!(adaptive.size() >= 808, "{}", adaptive.size());
    }

    #[test]
    fn losses_on_a_busy_channel_count_less() {
        let sizes = [0, 1].map(|busy| {
            let mut adaptive = Adaptive::new(AdaptiveConfig { contention: 5, ..AdaptiveConfig::default() });
            for _ in 0..200 {
                adaptive.on_frames(10, 1, busy, Instant::ZERO);
                after(&mut adaptive, 1, 1);
                after(&mut adaptive, 14, u32::MAX);
            }
            adaptive.size()
        });
        assert!(sizes[0] < sizes[1], "{sizes:?}");
    }

    /// The expected size is the one with the least cost among all sizes.
    #[test]
    fn the_walk_finds_the_best_of_all_sizes() {
        for lost in (0..2_000).step_by(7) {
            let mut adaptive = Adaptive { lost, sent: 40_000, ..Adaptive::default() };
            adaptive.choose(0);
            let (least, most) = adaptive.range();
            let best = (least..=most).map(|frames| adaptive.worth(frames)).max();
            assert_eq!(Some(adaptive.worth(adaptive.frames)), best, "{lost}");
        }
    }

    #[test]
    fn powers_are_those_of_the_library() {
        for (base, exponent) in [(0.5_f64, 3), (0.999, 1_000), (0.1, 2), (1.0, 65_536), (0.3, 0)] {
            let ours = power((base * ONE as f64) as u64, exponent) as f64 / ONE as f64;
            assert!((ours - base.powi(exponent as i32)).abs() < 1e-6, "{base} {exponent} {ours}");
        }
    }
}
