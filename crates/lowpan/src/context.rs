//! Contexts: prefixes that both ends identify by a number. RFC 6282, section 3.1.2.
//!
//! The caller distributes them, for example as in RFC 6775.

/// A prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowpanContext {
    prefix: [u8; 16],
    length: u8,
}

/// Error: invalid context or context number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadContext {
    /// The prefix is longer than an address.
    Length(u8),
    /// The number is above 15.
    Id(u8),
}

impl core::fmt::Display for BadContext {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Length(length) => write!(f, "invalid prefix length {length}: use 0 to 128 bits"),
            Self::Id(id) => write!(f, "invalid context number {id}: use 0 to 15"),
        }
    }
}

impl core::error::Error for BadContext {}

impl LowpanContext {
    /// Creates a context of the first `length` bits of `address`, 0 to 128; further bits are
    /// ignored.
    pub const fn new(address: [u8; 16], length: u8) -> Result<Self, BadContext> {
        if length > 128 {
            return Err(BadContext::Length(length));
        }
        let mask = u128::MAX.checked_shl(128 - length as u32);
        let mask = if let Some(mask) = mask { mask } else { 0 };
        Ok(Self { prefix: (u128::from_be_bytes(address) & mask).to_be_bytes(), length })
    }

    /// Returns the prefix, padded with zeros.
    pub const fn prefix(&self) -> [u8; 16] {
        self.prefix
    }

    /// Returns the length of the prefix in bits, 0 to 128.
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Returns `address` with its first bits replaced by the prefix.
    pub(crate) fn over(&self, address: [u8; 16]) -> [u8; 16] {
        let below = u128::MAX.checked_shr(u32::from(self.length)).unwrap_or(0);
        (u128::from_be_bytes(self.prefix) | u128::from_be_bytes(address) & below).to_be_bytes()
    }
}

/// Up to 16 contexts; number 0 takes no octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contexts([Option<LowpanContext>; 16]);

impl Contexts {
    /// No context.
    pub const NONE: Self = Self([None; 16]);

    /// Adds `context` under number `id`, 0 to 15.
    pub fn with(mut self, id: u8, context: LowpanContext) -> Result<Self, BadContext> {
        *self.0.get_mut(usize::from(id)).ok_or(BadContext::Id(id))? = Some(context);
        Ok(self)
    }

    /// Returns the context with a number.
    pub fn context(&self, id: u8) -> Option<&LowpanContext> {
        self.0.get(usize::from(id))?.as_ref()
    }

    /// Iterates over the contexts with their numbers, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u8, &LowpanContext)> {
        (0_u8..).zip(&self.0).filter_map(|(id, context)| Some((id, context.as_ref()?)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_covers_its_bits_and_no_more() {
        for (length, last) in [(0, 0x0F), (1, 0x8F), (3, 0xEF), (8, 0xFF)] {
            let context = LowpanContext::new([0xFF; 16], length).unwrap();
            assert_eq!(context.over([0x0F; 16])[0], last, "{length}");
            assert_eq!(context.over([0x0F; 16])[1..], [0x0F; 15]);
        }
        let whole = LowpanContext::new([0xAB; 16], 128).unwrap();
        assert_eq!(whole.over([0; 16]), [0xAB; 16]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(LowpanContext::new([0; 16], 129), Err(BadContext::Length(129)));
        let context = LowpanContext::new([0; 16], 64).unwrap();
        assert_eq!(Contexts::NONE.with(16, context), Err(BadContext::Id(16)));
    }
}
