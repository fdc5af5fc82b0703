//! Tokens, which match responses with requests. RFC 7252, section 5.3.1.

use core::fmt;

use thinair_wire::header::coap::MAX_TOKEN;

/// A Token: 0 to 8 octets.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    octets: [u8; MAX_TOKEN],
    len: u8,
}

impl Token {
    /// The Token without octets.
    pub const EMPTY: Self = Self { octets: [0; MAX_TOKEN], len: 0 };

    /// Creates a Token of these octets; `None` if there are more than 8.
    #[inline]
    pub fn new(octets: &[u8]) -> Option<Self> {
        let mut token = Self::EMPTY;
        let place = token.octets.get_mut(..octets.len())?;
        // A loop is shorter than a call for so few.
        place.iter_mut().zip(octets).for_each(|(place, octet)| *place = *octet);
        token.len = octets.len() as u8;
        Some(token)
    }

    /// Creates a Token of the low `len` octets of `value`, the most significant one first; 8 octets
    /// if `len` is larger.
    pub fn of(value: u64, len: usize) -> Self {
        let len = len.min(MAX_TOKEN);
        Self::new(value.to_be_bytes().get(MAX_TOKEN - len..).unwrap_or_default()).unwrap_or_default()
    }

    /// Returns the Token with another last octet; `None` if it is empty.
    pub(crate) fn with_last(mut self, octet: u8) -> Option<Self> {
        let last = usize::from(self.len).checked_sub(1)?;
        *self.octets.get_mut(last)? = octet;
        Some(self)
    }

    /// Returns its last octet.
    pub(crate) fn last(&self) -> Option<u8> {
        self.octets().last().copied()
    }

    /// Returns its octets.
    #[inline]
    pub fn octets(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Returns the number of octets, 0 to 8.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// True if it has no octets.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token(")?;
        self.octets().iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        write!(f, ")")
    }
}
