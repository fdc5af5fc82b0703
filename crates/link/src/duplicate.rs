//! Duplication of packets.

use crate::probability::Probability;
use crate::random::Random;

/// A packet is duplicated with a probability; the copy arrives 0 to `up_to` places later, with uniform
/// distribution.
///
/// **A copy that is n places later arrives after the n-th packet after the place of its original**; with n of 0, immediately after
/// the original. Its content is that of the original at its arrival, damage included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Duplicate {
    /// Probability that a packet is duplicated.
    pub probability: Probability,
    /// Largest distance in places. With 0 the copy always immediately follows the original.
    pub up_to: u16,
}

impl Duplicate {
    /// Draws the distance of the next packet's copy, in places; `None` if there is no copy.
    pub fn draw(&self, random: &mut Random) -> Option<u16> {
        if !random.happens(self.probability) {
            return None;
        }
        // At most 2^16 - 1.
        Some(random.below(u64::from(self.up_to) + 1) as u16)
    }
}
