//! Serial numbers: counters that wrap around, of which at most half the space is in use at a time.

/// An unsigned counter that wraps around (RFC 1982 in spirit).
pub trait Serial: Copy + PartialEq + core::fmt::Debug + Default {
    /// Width of the counter in bits.
    const BITS: u32;

    /// `self - earlier`, modulo the space.
    fn since(self, earlier: Self) -> u32;

    /// `self + steps`, modulo the space.
    fn plus(self, steps: u32) -> Self;

    /// The value, zero-extended.
    fn to_u32(self) -> u32;

    /// Returns the low bits of `value`.
    fn from_u32(value: u32) -> Self;

    /// True if `self` is before `other` on the shorter way round; false for equal values.
    #[inline]
    fn is_before(self, other: Self) -> bool {
        let distance = other.since(self);
        distance != 0 && distance < 1 << (Self::BITS - 1)
    }
}

macro_rules! serial {
    ($($t:ty),*) => {$(
        impl Serial for $t {
            const BITS: u32 = <$t>::BITS;
            #[inline]
            fn since(self, earlier: Self) -> u32 {
                u32::from(self.wrapping_sub(earlier))
            }
            #[inline]
            fn plus(self, steps: u32) -> Self {
                self.wrapping_add(steps as Self)
            }
            #[inline]
            fn to_u32(self) -> u32 {
                u32::from(self)
            }
            #[inline]
            fn from_u32(value: u32) -> Self {
                value as Self
            }
        }
    )*};
}
serial!(u8, u16, u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_follows_the_shorter_way_round() {
        assert!(0xFFFF_u16.is_before(0));
        assert!(!0_u16.is_before(0xFFFF));
        assert!(!7_u16.is_before(7));
        assert!(0_u16.is_before(0x7FFF));
        assert!(!0_u16.is_before(0x8000));
        assert_eq!(3_u16.since(0xFFFE), 5);
        assert_eq!(0xFFFF_u16.plus(2), 1);
    }
}
