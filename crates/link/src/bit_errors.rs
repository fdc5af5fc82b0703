//! Bit errors in packets.
//!
//! Good bits are skipped, so that the work depends on the number of errors and not on the number of octets. The
//! rest of a skip at the end of a packet continues in the next one: a burst may reach from one packet into another.

use crate::gilbert_elliott::GilbertElliott;
use crate::probability::Probability;
use crate::random::Random;

/// Model of bit errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BitErrorModel {
    /// No bit is damaged.
    #[default]
    None,
    /// Each bit is damaged independently with this probability, the bit error rate.
    Random(Probability),
    /// Bits are damaged in bursts.
    Bursts(GilbertElliott),
}

impl BitErrorModel {
    /// Returns the model as a chain; with one state if errors are independent.
    const fn chain(self) -> GilbertElliott {
        let (p, r, h) = (Probability::NEVER, Probability::NEVER, Probability::ALWAYS);
        match self {
            Self::None => GilbertElliott { p, r, k: Probability::ALWAYS, h },
            Self::Random(rate) => GilbertElliott { p, r, k: rate.complement(), h },
            Self::Bursts(chain) => chain,
        }
    }
}

/// Generator of the errors of a [`BitErrorModel`].
#[derive(Clone, Debug)]
pub struct BitErrors {
    chain: GilbertElliott,
    random: Random,
    is_bad: bool,
    /// Bits until the state changes; `u64::MAX` for never.
    stays: u64,
    /// Bits until the next error if the state stays; `u64::MAX` for never.
    clear: u64,
}

impl BitErrors {
    /// Creates a generator before the first bit.
    pub fn new(model: BitErrorModel, mut random: Random) -> Self {
        let chain = model.chain();
        let is_bad = chain.starts_bad(&mut random);
        let mut errors = Self { chain, random, is_bad, stays: 0, clear: 0 };
        errors.enter(is_bad);
        errors
    }

    /// Damages the next `octets` in place, and returns the number of flipped bits. Bits of an octet are in the
    /// order from the most significant one.
    pub fn damage(&mut self, octets: &mut [u8]) -> u64 {
        let end = octets.len() as u64 * 8;
        let mut flipped = 0;
        let mut bit = 0;
        loop {
            let step = self.stays.min(self.clear).min(end - bit);
            bit += step;
            self.pass(step);
            if bit == end {
                return flipped;
            }
            if self.stays == 0 {
                self.enter(!self.is_bad);
            } else {
                octets[(bit / 8) as usize] ^= 0x80 >> (bit % 8);
                flipped += 1;
                bit += 1;
                self.pass(1);
                self.clear = self.random.failures_before_success(self.chain.error(self.is_bad));
            }
        }
    }

    fn enter(&mut self, is_bad: bool) {
        self.is_bad = is_bad;
        // The state may change after each bit, so it lasts for at least one bit. The number of errors due before
        // does not matter: independent errors have no memory.
        let stays = self.random.failures_before_success(self.chain.leaves(is_bad));
        self.stays = stays.saturating_add(1);
        self.clear = self.random.failures_before_success(self.chain.error(is_bad));
    }

    fn pass(&mut self, bits: u64) {
        for until in [&mut self.stays, &mut self.clear] {
            if *until != u64::MAX {
                *until = until.saturating_sub(bits);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    fn damaged(model: BitErrorModel, octets: usize) -> (std::vec::Vec<u8>, u64) {
        let mut packet = vec![0; octets];
        let flipped = BitErrors::new(model, Random::new(5)).damage(&mut packet);
        (packet, flipped)
    }

    #[test]
    fn the_ends_damage_nothing_and_everything() {
        assert_eq!(damaged(BitErrorModel::None, 3), (vec![0; 3], 0));
        assert_eq!(damaged(BitErrorModel::Random(Probability::NEVER), 3), (vec![0; 3], 0));
        assert_eq!(damaged(BitErrorModel::Random(Probability::ALWAYS), 3), (vec![0xFF; 3], 24));
        assert_eq!(damaged(BitErrorModel::Random(Probability::ALWAYS), 0), (vec![], 0));
    }

    #[test]
    fn a_chain_that_changes_with_every_bit_damages_every_second_one() {
        let always = Probability::ALWAYS;
        let chain = GilbertElliott { p: always, r: always, k: always, h: Probability::NEVER };
        let (packet, flipped) = damaged(BitErrorModel::Bursts(chain), 3);
        assert!(packet == [0x55; 3] || packet == [0xAA; 3], "{packet:?}");
        assert_eq!(flipped, 12);
    }

    #[test]
    fn where_packets_end_does_not_matter() {
        let some = |percent| Probability::from_percent(percent).unwrap_or_default();
        let chain = GilbertElliott { p: some(1), r: some(10), k: some(99), h: some(50) };
        for model in [BitErrorModel::Random(some(3)), BitErrorModel::Bursts(chain)] {
            let (whole, flipped) = damaged(model, 1_000);
            let mut pieces = vec![0; 1_000];
            let mut errors = BitErrors::new(model, Random::new(5));
            let sum: u64 = pieces.chunks_mut(7).map(|piece| errors.damage(piece)).sum();
            assert_eq!((&pieces, sum), (&whole, flipped));
            assert_eq!(flipped, whole.iter().map(|octet| u64::from(octet.count_ones())).sum());
        }
    }
}
