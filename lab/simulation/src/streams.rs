//! Random numbers by counter: every number is a function of (seed, run, node, purpose, index) alone, so that the order
//! and number of draws do not matter. A node that is added to an experiment does not change the numbers of others.
//!
//! The function is Philox4x32-10: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011,
//! section 3.3. It is a permutation of its counter, which has a word for each name of a stream: so no two streams share
//! a block. Not for secrets.

use thinair_link::Random;

/// Number of rounds, as the paper recommends.
const ROUNDS: usize = 10;

/// Multipliers of a round: M0 and M1 of the paper.
const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];

/// Increments of the key per round: golden ratio and square root of 3.
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// Purpose of a node's stream.
///
/// Published figures depend on these numbers: new ones are added, none is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// Times at which packets are sent.
    Arrivals = 0,
    /// Contents of packets: sizes, payload.
    Content = 1,
    /// Impairments of the link from a node: loss, damage, delay.
    Link = 2,
    /// Impairments of the link towards a node.
    LinkBack = 3,
    /// Choices of a node: back-off, initial values of counters.
    Choice = 4,
}

/// All streams of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomStreams {
    seed: u64,
}

impl RandomStreams {
    /// Streams of `seed`. Every seed is equally good, including 0.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Stream from its first number. `run` and `node` are numbers of the caller's choice.
    pub const fn stream(self, run: u32, node: u32, purpose: Purpose) -> RandomStream {
        RandomStream { seed: self.seed, names: [run, node, purpose as u32], next: 0 }
    }

    /// Generator of `thinair_link` for models that need one, seeded by the first number of the stream.
    pub fn random(self, run: u32, node: u32, purpose: Purpose) -> Random {
        Random::new(self.stream(run, node, purpose).next_u64())
    }
}

/// Pseudorandom numbers, with a period of 2^33.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomStream {
    seed: u64,
    names: [u32; 3],
    /// Index of the next number: a block has two.
    next: u64,
}

impl RandomStream {
    /// Next number, uniform over all 2^64 values.
    pub fn next_u64(&mut self) -> u64 {
        let [run, node, purpose] = self.names;
        let block = (self.next / 2) as u32;
        let key = [self.seed as u32, (self.seed >> 32) as u32];
        let [a, b, c, d] = philox([block, purpose, node, run], key);
        let (low, high) = if self.next.is_multiple_of(2) { (a, b) } else { (c, d) };
        self.next += 1;
        u64::from(high) << 32 | u64::from(low)
    }

    /// Number below `bound`, uniform to within `bound` / 2^64; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Always one draw: later numbers of the stream do not depend on `bound`.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// Philox4x32 with ten rounds.
const fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let ([mut a, mut b, mut c, mut d], [mut k, mut l]) = (counter, key);
    let mut round = 0;
    while round < ROUNDS {
        let left = MULTIPLIERS[0] as u64 * a as u64;
        let right = MULTIPLIERS[1] as u64 * c as u64;
        (a, b, c, d) = ((right >> 32) as u32 ^ b ^ k, right as u32, (left >> 32) as u32 ^ d ^ l, left as u32);
        (k, l) = (k.wrapping_add(WEYL[0]), l.wrapping_add(WEYL[1]));
        round += 1;
    }
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Test vectors of the authors' library Random123 (`kat_vectors`).
    #[test]
    fn numbers_are_those_of_the_reference() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn a_stream_does_not_depend_on_what_others_draw() {
        let streams = RandomStreams::new(7);
        let alone: Vec<_> = {
            let mut stream = streams.stream(3, 1, Purpose::Link);
            (0..50).map(|_| stream.next_u64()).collect()
        };
        let mut other = streams.stream(3, 2, Purpose::Link);
        let mut stream = streams.stream(3, 1, Purpose::Link);
        let beside: Vec<_> = (0..50)
            .map(|i| {
                for _ in 0..i % 4 {
                    other.next_u64();
                }
                stream.next_u64()
            })
            .collect();
        assert_eq!(alone, beside);
    }

    #[test]
    fn every_part_of_the_name_tells_streams_apart() {
        use Purpose::{Arrivals, Choice, Content, Link, LinkBack};
        let mut firsts = BTreeSet::new();
        for seed in [0, 1, 1 << 32] {
            for (run, node) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                for purpose in [Arrivals, Content, Link, LinkBack, Choice] {
                    firsts.insert(RandomStreams::new(seed).stream(run, node, purpose).next_u64());
                }
            }
        }
        assert_eq!(firsts.len(), 3 * 4 * 5);
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut stream = RandomStreams::new(1).stream(0, 0, Purpose::Choice);
        let mut seen = [0_i64; 6];
        for _ in 0..600_000 {
            seen[stream.below(6) as usize] += 1;
        }
        // The expectation is 100,000 with a deviation of sqrt(600,000 * 1/6 * 5/6) = 289; 4 of them.
        assert!(seen.iter().all(|count| (count - 100_000).abs() < 1_155), "{seen:?}");
        assert_eq!((stream.below(0), stream.below(1)), (0, 0));
    }

    #[test]
    fn generators_of_links_follow_from_the_name_too() {
        let streams = RandomStreams::new(1);
        assert_eq!(streams.random(0, 1, Purpose::Link), streams.random(0, 1, Purpose::Link));
        assert_ne!(streams.random(0, 1, Purpose::Link), streams.random(0, 1, Purpose::LinkBack));
    }
}
