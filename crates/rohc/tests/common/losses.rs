//! Losses of a channel, from a random stream of their own: two runs with one seed lose the same packets and the same feedback,
//! whatever their ends do.

use super::SplitMix64;
use super::journey::{Fates, PacketFate};

/// Losses of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Losses {
    None,
    /// One in 5.
    Fifth,
    /// 9 in 10.
    NineTenths,
    /// 2 to 40 in a row, after 100 packets on average.
    Bursts,
    /// That many in a row, after 64 packets.
    Behind(u64),
    /// 14 to 1,026 in a row, with few packets between two bursts.
    LongBursts,
}

/// [`Losses`] of one flow.
pub struct LossFates {
    losses: Losses,
    packets: SplitMix64,
    feedback: SplitMix64,
    losing: u64,
    arriving: u64,
}

impl LossFates {
    pub fn new(losses: Losses, seed: u64) -> Self {
        let mut random = SplitMix64(seed);
        let (packets, feedback) = (SplitMix64(random.next()), SplitMix64(random.next()));
        // At every phase of the LSBs.
        let arriving = random.below(64);
        Self { losses, packets, feedback, losing: 0, arriving }
    }

    fn begin_burst(&mut self) {
        let random = &mut self.packets;
        (self.losing, self.arriving) = match self.losses {
            Losses::Behind(packets) => (packets, 64 + random.below(16)),
            Losses::LongBursts => {
                let losing = (1 << (4 + random.below(7))) - 2 + random.below(5);
                let most = if random.once_in(2) { 4 } else { 200 };
                (losing, 1 + random.below(most))
            }
            _ => (2 + random.below(39), 0),
        };
    }
}

impl Fates for LossFates {
    fn of(&mut self, number: u64, _random: &mut SplitMix64) -> PacketFate {
        // The context is established before anything is lost.
        if number <= 80 {
            return PacketFate::default();
        }
        let is_lost = match self.losses {
            Losses::None => false,
            Losses::Fifth => self.packets.once_in(5),
            Losses::NineTenths => !self.packets.once_in(10),
            Losses::Bursts => {
                if self.losing == 0 && self.packets.once_in(100) {
                    self.begin_burst();
                }
                self.losing > 0
            }
            Losses::Behind(_) | Losses::LongBursts => {
                if self.losing + self.arriving == 0 {
                    self.begin_burst();
                }
                let is_lost = self.losing > 0;
                self.arriving -= u64::from(!is_lost);
                is_lost
            }
        };
        self.losing = self.losing.saturating_sub(1);
        PacketFate { is_lost, ..PacketFate::default() }
    }

    fn loses_feedback(&mut self, _random: &mut SplitMix64) -> bool {
        match self.losses {
            Losses::Fifth => self.feedback.once_in(5),
            Losses::NineTenths => self.feedback.once_in(10),
            Losses::None | Losses::Bursts | Losses::Behind(_) | Losses::LongBursts => false,
        }
    }
}
