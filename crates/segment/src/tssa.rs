//! TSSA: A. Ayadi, A. Awang: Adaptive TCP Segment Size Control for Reducing Energy Consumption in 6LoWPANs, 2010,
//! section IV.
//!
//! Fast Start doubles the size “until a TCP segment is lost”. Then “the TSSA algorithm increases the MSS by an MTU after
//! S_MAX successful transmissions (i.e., the source node receives S_MAX TCP ACKs) [...] After a loss, the TSSA
//! reinitialize S_MAX to zero” — the counter of successes is meant — “and after two losses, the TSSA reduces the MSS by
//! MTU.” The MSS that was negotiated is the upper bound.
//!
//! The section leaves some points open; each is a parameter of [`TssaConfig`]: the first size and the lower bound (a
//! segment of one frame); the step, the MTU with or without the octets of headers (106 octets); the event on which Fast
//! Start doubles the size (each acknowledgment); the size after the first loss (half); whether the two losses have to be
//! consecutive (no: a loss counts until the size changes); and the weight of a loss detected by the timer (one).

use core::time::Duration;

use thinair_wire::time::Instant;

use crate::{LossDetection, SegmentSizer};

/// Acknowledgments after which the size grows. Section IV: “we have chosen S_MAX equals to ten”.
const S_MAX: u16 = 10;

/// Losses after which the size shrinks. Section IV: “after two losses”.
const L_MAX: u16 = 2;

/// Event on which Fast Start doubles the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastStart {
    /// Each acknowledgment.
    Acknowledgment,
    /// Acknowledgment of as many octets as the window of a round trip holds, given in segments; 1 is equivalent to each
    /// acknowledgment.
    Segments(u16),
    /// None: the control begins in the second phase.
    Off,
}

/// Size after the loss that ends Fast Start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFirstLoss {
    /// Half of the size.
    Halve,
    /// The size minus one step.
    Step,
    /// No change; the loss counts as the first of two.
    Keep,
}

/// Parameters that the description of TSSA leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TssaConfig {
    /// First size, in octets.
    pub start: u16,
    /// Smallest size, in octets; 0 means 1.
    pub least: u16,
    /// Largest size: the negotiated MSS, in octets.
    pub most: u16,
    /// Step by which the size grows and shrinks: the link MTU, in octets.
    pub step: u16,
    /// S_MAX, in acknowledgments; 0 means 1.
    pub s_max: u16,
    /// Losses after which the size shrinks; 0 means 1.
    pub l_max: u16,
    /// Event on which Fast Start doubles the size.
    pub fast_start: FastStart,
    /// Size after the first loss.
    pub after_first_loss: AfterFirstLoss,
    /// True if only losses without an acknowledgment between them count together.
    pub consecutive: bool,
    /// True if a loss detected by the timer counts as two.
    pub timer_counts_twice: bool,
}

impl Default for TssaConfig {
    fn default() -> Self {
        Self {
            start: 64,
            least: 64,
            most: 1_024,
            step: 106,
            s_max: S_MAX,
            l_max: L_MAX,
            fast_start: FastStart::Acknowledgment,
            after_first_loss: AfterFirstLoss::Halve,
            consecutive: false,
            timer_counts_twice: false,
        }
    }
}

/// Phase of TSSA. Fig. 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TssaPhase {
    /// The size doubles.
    FastStart,
    /// The size changes by steps.
    Steps,
}

/// TCP Segment Size Adaptation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tssa {
    config: TssaConfig,
    phase: TssaPhase,
    size: u16,
    successes: u16,
    losses: u16,
}

impl Tssa {
    /// Creates a control at the first size, limited to its bounds.
    pub fn new(config: TssaConfig) -> Self {
        let phase = if config.fast_start == FastStart::Off { TssaPhase::Steps } else { TssaPhase::FastStart };
        let mut tssa = Self { config, phase, size: 0, successes: 0, losses: 0 };
        tssa.set(config.start);
        tssa
    }

    /// Returns the present phase.
    pub const fn phase(&self) -> TssaPhase {
        self.phase
    }

    /// Sets a new size and clears the counters.
    fn set(&mut self, size: u16) {
        let least = self.config.least.max(1);
        self.size = size.clamp(least, self.config.most.max(least));
        (self.successes, self.losses) = (0, 0);
    }
}

impl Default for Tssa {
    fn default() -> Self {
        Self::new(TssaConfig::default())
    }
}

impl SegmentSizer for Tssa {
    fn on_acked(&mut self, _octets: u32, _rtt: Option<Duration>, _now: Instant) {
        self.successes = self.successes.saturating_add(1);
        match (self.phase, self.config.fast_start) {
            (TssaPhase::FastStart, FastStart::Segments(segments)) if self.successes < segments => {}
            (TssaPhase::FastStart, _) => self.set(self.size.saturating_mul(2)),
            (TssaPhase::Steps, _) => {
                if self.config.consecutive {
                    self.losses = 0;
                }
                if self.successes >= self.config.s_max.max(1) {
                    self.set(self.size.saturating_add(self.config.step));
                }
            }
        }
    }

    fn on_lost(&mut self, loss: LossDetection, _now: Instant) {
        let counted = if self.config.timer_counts_twice && loss == LossDetection::Rto { 2 } else { 1 };
        if self.phase == TssaPhase::FastStart {
            self.phase = TssaPhase::Steps;
            match self.config.after_first_loss {
                AfterFirstLoss::Halve => return self.set(self.size / 2),
                AfterFirstLoss::Step => return self.set(self.size.saturating_sub(self.config.step)),
                AfterFirstLoss::Keep => {}
            }
        }
        self.successes = 0;
        self.losses = self.losses.saturating_add(counted);
        if self.losses >= self.config.l_max.max(1) {
            self.set(self.size.saturating_sub(self.config.step));
        }
    }

    fn size(&self) -> u16 {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acked(tssa: &mut Tssa, times: usize) -> u16 {
        (0..times).for_each(|_| tssa.on_acked(1, None, Instant::ZERO));
        tssa.size()
    }

    fn lost(tssa: &mut Tssa) -> u16 {
        tssa.on_lost(LossDetection::Fast, Instant::ZERO);
        tssa.size()
    }

    /// Section IV, in the order of its sentences.
    #[test]
    fn sizes_follow_the_section() {
        let mut tssa = Tssa::default();
        assert_eq!([1, 1, 1, 1, 1].map(|times| acked(&mut tssa, times)), [128, 256, 512, 1_024, 1_024]);
        assert_eq!(lost(&mut tssa), 512, "the first loss ends Fast Start");
        assert_eq!(tssa.phase(), TssaPhase::Steps);
        assert_eq!((acked(&mut tssa, 9), acked(&mut tssa, 1)), (512, 618));
        assert_eq!((lost(&mut tssa), lost(&mut tssa)), (618, 512), "two losses");
        assert_eq!((acked(&mut tssa, 9), lost(&mut tssa), acked(&mut tssa, 9)), (512, 512, 512));
        assert_eq!(acked(&mut tssa, 1), 618, "a loss has set the counter to zero");
    }

    #[test]
    fn a_loss_counts_until_the_size_changes_or_until_an_acknowledgment() {
        for (consecutive, size) in [(false, 406), (true, 512)] {
            let mut tssa = Tssa::new(TssaConfig { consecutive, ..TssaConfig::default() });
            acked(&mut tssa, 4);
            lost(&mut tssa);
            lost(&mut tssa);
            acked(&mut tssa, 5);
            assert_eq!(lost(&mut tssa), size, "{consecutive}");
        }
    }

    #[test]
    fn the_first_loss_halves_steps_or_is_one_of_two() {
        for (after_first_loss, sizes) in [
            (AfterFirstLoss::Halve, [512, 512]),
            (AfterFirstLoss::Step, [918, 918]),
            (AfterFirstLoss::Keep, [1_024, 918]),
        ] {
            let mut tssa = Tssa::new(TssaConfig { after_first_loss, ..TssaConfig::default() });
            acked(&mut tssa, 4);
            assert_eq!([lost(&mut tssa), lost(&mut tssa)], sizes);
        }
    }

    #[test]
    fn fast_start_can_go_by_round_trips_or_not_be() {
        let config = TssaConfig { fast_start: FastStart::Segments(4), ..TssaConfig::default() };
        let mut tssa = Tssa::new(config);
        assert_eq!((acked(&mut tssa, 3), acked(&mut tssa, 1), acked(&mut tssa, 4)), (64, 128, 256));
        let mut tssa = Tssa::new(TssaConfig { fast_start: FastStart::Off, ..TssaConfig::default() });
        assert_eq!((acked(&mut tssa, 9), acked(&mut tssa, 1)), (64, 170));
    }

    #[test]
    fn a_timer_can_count_twice() {
        let config = TssaConfig {
            timer_counts_twice: true,
            fast_start: FastStart::Off,
            start: 512,
            ..TssaConfig::default()
        };
        let mut tssa = Tssa::new(config);
        tssa.on_lost(LossDetection::Rto, Instant::ZERO);
        assert_eq!((tssa.size(), lost(&mut tssa)), (406, 406));
    }
}
