//! Which packets are late, and by how many places.

use crate::probability::Probability;
use crate::random::Random;

/// A packet is late with a probability, by 1 to `up_to` places, each as likely as any other.
///
/// **A packet that is late by n arrives behind the n-th packet after it.** Those that are on time keep their order.
/// Of the n, those that are late themselves may not overtake it: with a probability of 1 and an `up_to` of 1 every
/// packet is late by one, and the order stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reorder {
    /// That a packet is late.
    pub probability: Probability,
    /// Places, at most. With 0 all are on time.
    pub up_to: u16,
}

impl Reorder {
    /// By how many places the next packet is late; 0 if it is on time.
    pub fn draw(&self, random: &mut Random) -> u16 {
        if !random.happens(self.probability) || self.up_to == 0 {
            return 0;
        }
        // Below 2^16.
        random.below(u64::from(self.up_to)) as u16 + 1
    }
}
