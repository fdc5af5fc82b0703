//! Senders that pause, and a channel that loses the packets behind a pause.

use super::SplitMix64;
use super::journey::{JourneyOutcome, PacketPace, Step};

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

/// Smallest number of packets that arrive between two losses.
const BETWEEN: u64 = 32;

/// Shortest time between packets that is a pause, in microseconds.
const PAUSE: u64 = 100_000;

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

    /// Returns the steps of a flow of at least `packets` packets, with at least three pauses.
    pub fn steps(&self, packets: u64, seed: u64) -> Vec<Step> {
        let (mut random, interval) = (SplitMix64(seed), self.interval());
        let mut steps: Vec<Step> = Vec::new();
        let (mut left, mut losing, mut pauses, mut arrived) = (SETTLED, 0, 0, SETTLED);
        let mut is_behind_pause = false;
        while (steps.len() as u64) < packets || pauses < 3 || left > 0 {
            let mut step = Step { wait: interval, stopped: 0, is_lost: false, is_behind_pause: false };
            if left == 0 {
                let pause = self.pause(&mut random);
                step.wait += pause;
                step.stopped = if self.clock == PausedClock::Stops { pause } else { 0 };
                // In short bursts, too, packets arrive between two losses.
                if losing == 0 && arrived >= BETWEEN {
                    losing = self.lost;
                    (pauses, arrived) = (pauses + 1, 0);
                    is_behind_pause = pause >= PAUSE;
                }
                left = if self.shape == PauseShape::Bursts { 0 } else { losing };
                left += self.packets(&mut random);
            }
            left -= 1;
            step.is_lost = losing > 0;
            step.is_behind_pause = is_behind_pause;
            losing = u64::saturating_sub(losing, 1);
            arrived += u64::from(!step.is_lost);
            steps.push(step);
        }
        steps
    }
}

/// Steps of a flow whose packets are 0.5 ms to 4 s apart, of which one in five is lost.
pub fn bursty_steps(packets: u64, seed: u64) -> Vec<Step> {
    let mut random = SplitMix64(seed);
    let mut is_behind_pause = false;
    let mut step = |number| {
        let wait = (500.0 * 8_000_f64.powf(random.below(1 << 20) as f64 / f64::from(1 << 20))) as u64;
        let is_lost = number >= SETTLED && random.once_in(5);
        // Every loss that follows a pause, and those that follow it at once.
        is_behind_pause = wait >= PAUSE || is_behind_pause && is_lost;
        Step { wait, stopped: 0, is_lost, is_behind_pause }
    };
    (0..packets).map(&mut step).collect()
}

/// Carries flows of at most 20,000 packets with steps of `steps`, which gets a number of packets and a seed; `run` carries one flow.
pub fn run_flows(
    packets: u64,
    seed: u64,
    steps: impl Fn(u64, u64) -> Vec<Step>,
    run: impl Fn(&[Step], u64) -> JourneyOutcome,
) -> JourneyOutcome {
    let (mut all, mut random, mut left) = (JourneyOutcome::default(), SplitMix64(seed), packets);
    while left > 0 {
        let steps = steps(left.min(20_000), random.next());
        left = left.saturating_sub(steps.len() as u64);
        all.add(&run(&steps, random.next()));
    }
    all
}
