//! Pseudorandom numbers from a seed: xoshiro256++ 1.0 by David Blackman and Sebastiano Vigna
//! (<https://prng.di.unimi.it/xoshiro256plusplus.c>, public domain), its state filled by SplitMix64.
//!
//! It is implemented here because its output must never change, while libraries do not guarantee the mapping from a
//! seed to a state from one release to the next. Not for secrets.

use crate::probability::Probability;

/// The polynomial of a jump over 2^128 numbers, from the reference.
const JUMP: [u64; 4] =
    [0x180e_c6d3_3cfd_0aba, 0xd5a6_1266_f0c9_392c, 0xa958_2618_e03f_c9aa, 0x39ab_dc45_29b1_661c];

/// A sequence of numbers determined by a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random([u64; 4]);

impl Random {
    /// Creates the sequence of `seed`. All seeds are equally good, 0 included.
    pub const fn new(seed: u64) -> Self {
        let mut state = [0; 4];
        let mut i = 0;
        while i < 4 {
            // SplitMix64: four consecutive numbers are never all zero, the one state that xoshiro cannot leave.
            let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(i as u64 + 1));
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            state[i] = z ^ z >> 31;
            i += 1;
        }
        Self(state)
    }

    /// Splits off a sequence: `self` continues 2^128 numbers further, so that the two never overlap.
    pub fn split(&mut self) -> Self {
        let here = self.clone();
        let mut there = [0; 4];
        for bit in (0..256).map(|i| JUMP[i / 64] >> (i % 64) & 1) {
            if bit == 1 {
                for (sum, word) in there.iter_mut().zip(self.0) {
                    *sum ^= word;
                }
            }
            self.next_u64();
        }
        self.0 = there;
        here
    }

    /// Returns the next number, uniformly distributed over all 2^64.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let next = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        next
    }

    /// Draws an event of this probability.
    ///
    /// Takes one number for any probability, and compares it with a threshold: an event that occurs at 1 % with a
    /// seed also occurs at 2 %, so that a sweep over a rate compares like with like.
    #[inline]
    pub fn happens(&mut self, probability: Probability) -> bool {
        self.next_u64() >> 1 < probability.steps()
    }

    /// Returns a number below `bound`, uniformly distributed; 0 if `bound` is 0.
    ///
    /// Lemire, Fast random integer generation in an interval, ACM TOMACS 29(1), 2019, algorithm 5.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            // The first 2^64 mod `bound` fractions, fewer than `bound`, would occur once more often than the
            // others.
            if product as u64 >= bound || product as u64 >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vector of the crate `rand_xoshiro`, made with the reference.
    #[test]
    fn numbers_are_those_of_the_reference() {
        let mut random = Random([1, 2, 3, 4]);
        let expected = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
            9_973_669_472_204_895_162,
            14_011_001_112_246_962_877,
            12_406_186_145_184_390_807,
            15_849_039_046_786_891_736,
            10_450_023_813_501_588_000,
        ];
        assert_eq!(expected.map(|_| random.next_u64()), expected);
    }

    /// First numbers of SplitMix64 from 0, as published with the reference.
    #[test]
    fn a_seed_fills_the_state_by_splitmix64() {
        let state = Random::new(0).0;
        assert_eq!(state[..3], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    }

    /// As in `rand_xoshiro` 0.8: `seed_from_u64(0)`, and then `jump()`.
    #[test]
    fn a_split_goes_on_where_the_reference_jumps_to() {
        let mut random = Random::new(0);
        assert_eq!(random.split().next_u64(), 0x5317_5d61_490b_23df);
        assert_eq!([random.next_u64(), random.next_u64()], [0x2107_d23f_5380_538b, 0x860c_46fb_a092_46f0]);
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut random = Random::new(1);
        let mut seen = [0_i64; 6];
        for _ in 0..600_000 {
            seen[random.below(6) as usize] += 1;
        }
        // Each count is 100,000 with a deviation of sqrt(600,000 * 1/6 * 5/6) = 289; 4 of them.
        assert!(seen.iter().all(|count| (count - 100_000).abs() < 1_155), "{seen:?}");
        assert_eq!((random.below(0), random.below(1)), (0, 0));
        assert!((0..100).any(|_| random.below(u64::MAX) > u64::MAX / 2));
    }

    #[test]
    fn what_happens_at_a_rate_also_happens_at_a_higher_one() {
        let (low, high) = (Probability::from_percent(10), Probability::from_percent(20));
        let (Some(low), Some(high)) = (low, high) else { panic!("both are probabilities") };
        let (mut one, mut other) = (Random::new(3), Random::new(3));
        for _ in 0..10_000 {
            assert!(!one.happens(low) | other.happens(high));
        }
        assert!((0..1_000).all(|_| one.happens(Probability::ALWAYS)));
        assert!(!(0..1_000).any(|_| one.happens(Probability::NEVER)));
    }
}
