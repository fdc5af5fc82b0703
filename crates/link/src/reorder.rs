//! Reordering: late packets, and their distances in places.

use crate::probability::Probability;
use crate::random::Random;

/// A packet is late with a probability, by 1 to `up_to` places, uniformly distributed.
///
/// **A packet that is late by n arrives after the n-th packet after it.** Packets that are on time keep their order.
/// Late packets among the n may not overtake it: with a probability of 1 and an `up_to` of 1 every packet is late
/// by one, and the order stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reorder {
    /// Probability that a packet is late.
    pub probability: Probability,
    /// Largest lateness in places. With 0 all are on time.
    pub up_to: u16,
}

impl Reorder {
    /// Draws the lateness of the next packet in places; 0 if it is on time.
    pub fn draw(&self, random: &mut Random) -> u16 {
        if !random.happens(self.probability) || self.up_to == 0 {
            return 0;
        }
        // Below 2^16.
        random.below(u64::from(self.up_to)) as u16 + 1
    }
}
