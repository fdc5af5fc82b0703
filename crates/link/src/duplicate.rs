//! Which packets arrive twice.

use crate::probability::Probability;
use crate::random::Random;

/// A packet arrives twice with a probability; the copy 0 to `up_to` places later, each as likely as any other.
///
/// **A copy that is n places later arrives behind the n-th packet after the place of its original**, 0 being right
/// behind the original. It holds what the original holds when it arrives, damage included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Duplicate {
    /// That a packet arrives twice.
    pub probability: Probability,
    /// Places, at most. With 0 the copy is always right behind the original.
    pub up_to: u16,
}

impl Duplicate {
    /// How many places behind the next packet its copy comes; `None` if there is none.
    pub fn draw(&self, random: &mut Random) -> Option<u16> {
        if !random.happens(self.probability) {
            return None;
        }
        // At most 2^16 - 1.
        Some(random.below(u64::from(self.up_to) + 1) as u16)
    }
}
