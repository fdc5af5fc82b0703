//! Least significant bits of a value near a reference: the interpretation interval of RFC 3095, section 4.5.1.
//!
//! With `k` bits and a reference `v_ref` the receiver can distinguish the values of
//! `f(v_ref, k) = [v_ref - p, v_ref + (2^k - 1) - p]`.

use crate::serial::Serial;

/// Shift of the interval against the reference: `p` as a function of `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// `p = -1`: the value always grows (SN that the compressor counts; RFC 3095, section 5.11).
    MinusOne,
    /// `p = 0`: the value stays or grows (IP-ID offset; RFC 3095, section 4.5.5).
    Zero,
    /// `p = 1` if `k <= 4`, else `2^(k-5) - 1` (SN of RTP and ESP; RFC 3095, section 5.7).
    Sn,
    /// `p = 2^(k-2) - 1` (TS; RFC 3095, section 5.7).
    Ts,
    /// `p = 2^(k-1) - 1` (timer-based TS; RFC 3095, section 4.5.4).
    Half,
}

impl Shift {
    /// Returns `p` for `k` bits, modulo 2^32.
    #[inline]
    pub const fn p(self, k: u32) -> u32 {
        match self {
            Self::MinusOne => u32::MAX,
            Self::Zero => 0,
            Self::Sn if k <= 4 => 1,
            Self::Sn => (1 << (k - 5)) - 1,
            Self::Ts if k < 2 => 0,
            Self::Ts => (1 << (k - 2)) - 1,
            Self::Half if k < 1 => 0,
            Self::Half => (1 << (k - 1)) - 1,
        }
    }
}

/// True if `value` is in `f(reference, k)`; always true if `k` is the whole width.
#[inline]
pub fn fits<S: Serial>(value: S, reference: S, k: u32, shift: Shift) -> bool {
    if k >= S::BITS {
        return true;
    }
    let from_start = value.since(reference.plus(shift.p(k).wrapping_neg()));
    from_start < 1 << k
}

/// Returns the smallest `k`, 0 to the width of the value, with `value` in `f(reference, k)`: the function `g`
/// of RFC 3095, section 4.5.1.
#[inline]
pub fn needed_bits<S: Serial>(value: S, reference: S, shift: Shift) -> u32 {
    match shift {
        Shift::MinusOne | Shift::Zero => {
            let from_start = value.since(reference.plus(shift.p(0).wrapping_neg()));
            u32::BITS - from_start.leading_zeros()
        }
        Shift::Sn | Shift::Ts | Shift::Half => {
            // p grows with k in steps, so the first k that fits is searched for, as in the RFC.
            let mut k = 0;
            while !fits(value, reference, k, shift) {
                k += 1;
            }
            k
        }
    }
}

/// Returns the value in `f(reference, k)` whose `k` least significant bits are `bits`.
#[inline]
pub fn decode<S: Serial>(bits: u32, k: u32, reference: S, shift: Shift) -> S {
    if k >= S::BITS {
        return S::from_u32(bits);
    }
    let start = reference.plus(shift.p(k).wrapping_neg());
    let ahead = bits.wrapping_sub(start.to_u32()) & ((1 << k) - 1);
    start.plus(ahead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHIFTS: [Shift; 5] = [Shift::MinusOne, Shift::Zero, Shift::Sn, Shift::Ts, Shift::Half];

    #[test]
    fn no_bits_mean_the_start_of_the_interval() {
        assert_eq!(decode(0, 0, 9_u16, Shift::MinusOne), 10);
        assert_eq!(decode(0, 0, 9_u16, Shift::Zero), 9);
        assert_eq!(needed_bits(10_u16, 9, Shift::MinusOne), 0);
        assert_eq!(needed_bits(25_u16, 9, Shift::MinusOne), 4);
        assert_eq!(needed_bits(26_u16, 9, Shift::MinusOne), 5);
    }

    #[test]
    fn the_interval_straddles_the_wraparound() {
        assert_eq!(decode(0x2, 4, 0xFFFE_u16, Shift::MinusOne), 0x0002);
        assert_eq!(needed_bits(0x0002_u16, 0xFFFE, Shift::MinusOne), 2);
    }

    proptest! {
        /// Fails for every wrong width: `needed_bits` bits are decoded correctly, and one bit less is not
        /// enough.
        #[test]
        fn the_needed_bits_are_enough_and_not_too_many(value: u16, reference: u16, shift in 0_usize..5) {
            let shift = SHIFTS[shift];
            let k = needed_bits(value, reference, shift);
            prop_assert!(k <= 16);
            for k in k..=16 {
                if fits(value, reference, k, shift) {
                    let bits = u32::from(value) & ((1_u32 << k) - 1);
                    prop_assert_eq!(decode(bits, k, reference, shift), value);
                }
            }
            prop_assert!(fits(value, reference, k, shift));
            prop_assert!(k == 0 || !fits(value, reference, k - 1, shift));
        }
    }
}
