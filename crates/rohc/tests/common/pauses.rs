//! Senders that pause, and a channel that loses the packets behind a pause.

use super::SplitMix64;
use super::journey::{JourneyOutcome, JourneySetup, PacketPace, Step, run_steps};

/// Lengths of pauses, and where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseShape {
    /// All pauses have one length.
    Fixed,
    /// Any length from that of the setup to 25 times as much.
    Uniform,
    /// Lengths with an exponential distribution.
    Exponential,
    /// Packets between two pauses have a geometric distribution.
    OnOff,
    /// 2 to 40 packets, 0.5 ms apart, between two pauses.
    Bursts,
}

/// Clock of the timestamps while the sender pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PausedClock {
    GoesOn,
    Stops,
}

/// Pauses of a sender, and losses behind them.
#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    /// Length of a pause, in microseconds: its mean, or the shortest.
    pub micros: u64,
    pub shape: PauseShape,
    pub clock: PausedClock,
    /// Number of packets in a row that are lost behind a pause.
    pub lost: u64,
}

/// Number of packets before the first pause.
const SETTLED: u64 = 80;

impl Pauses {
    /// Time between two packets, in microseconds.
    pub fn interval(&self) -> u64 {
        if self.shape == PauseShape::Bursts { 500 } else { 20_000 }
    }

    pub fn pace(&self) -> PacketPace {
        PacketPace::Pausing(self.interval())
    }

    fn pause(&self, random: &mut SplitMix64) -> u64 {
        match self.shape {
            PauseShape::Uniform => self.micros + random.below(24 * self.micros),
            PauseShape::Exponential => {
                let unit = (1 + random.below(1 << 32)) as f64 / (1_u64 << 32) as f64;
                (-unit.ln() * self.micros as f64) as u64
            }
            PauseShape::Fixed | PauseShape::OnOff | PauseShape::Bursts => self.micros,
        }
    }

    /// Number of packets up to the next pause.
    fn packets(&self, random: &mut SplitMix64) -> u64 {
        match self.shape {
            PauseShape::OnOff => (1..600).take_while(|_| !random.once_in(100)).count() as u64 + 1,
            PauseShape::Bursts => 2 + random.below(39),
            PauseShape::Fixed | PauseShape::Uniform | PauseShape::Exponential => 64 + random.below(64),
        }
    }

    /// Returns the steps of a flow in which at least `arriving` packets arrive.
    pub fn steps(&self, arriving: u64, seed: u64) -> Vec<Step> {
        let (mut random, interval) = (SplitMix64(seed), self.interval());
        let mut steps: Vec<Step> = Vec::new();
        let (mut left, mut losing, mut arrived) = (SETTLED, 0, 0);
        let mut is_behind_pause = false;
        while arrived < arriving {
            let mut step = Step { wait: interval, stopped: 0, is_lost: false, is_behind_pause: false };
            if left == 0 {
                let pause = self.pause(&mut random);
                step.wait += pause;
                step.stopped = if self.clock == PausedClock::Stops { pause } else { 0 };
                step.is_behind_pause = true;
                // Behind pauses of bursts, too, at least 16 packets arrive between two losses.
                let is_due = steps.iter().rev().take(16).all(|step| !step.is_lost);
                losing = if is_due { self.lost } else { 0 };
                left = losing.max(1) - 1 + self.packets(&mut random).max(1);
            } else {
                left -= 1;
            }
            is_behind_pause = step.is_behind_pause || is_behind_pause && losing > 0;
            step.is_lost = losing > 0;
            step.is_behind_pause = is_behind_pause;
            losing = u64::saturating_sub(losing, 1);
            arrived += u64::from(!step.is_lost);
            steps.push(step);
        }
        steps
    }

    /// Carries flows of at most 20,000 packets until `packets` have arrived.
    pub fn run(&self, setup: &JourneySetup, packets: u64, seed: u64) -> JourneyOutcome {
        let (mut all, mut random) = (JourneyOutcome::default(), SplitMix64(seed));
        while all.arrived < packets {
            let steps = self.steps((packets - all.arrived).clamp(1_000, 20_000), random.next());
            all.add(&run_steps(setup, &steps, random.next()));
        }
        all
    }
}
