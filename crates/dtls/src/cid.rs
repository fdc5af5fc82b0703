//! Connection identifiers. RFC 9146, section 3.

use core::fmt;

/// Longest connection ID, in octets; a longer one of the peer is not negotiated.
pub const MAX_CID: usize = 32;

/// A connection ID: at most [`MAX_CID`] octets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cid {
    len: u8,
    octets: [u8; MAX_CID],
}

impl Cid {
    /// No octets: its owner receives records without a connection ID.
    pub const EMPTY: Self = Self { len: 0, octets: [0; MAX_CID] };

    /// Creates a connection ID. `None` if it has more than [`MAX_CID`] octets.
    pub fn new(octets: &[u8]) -> Option<Self> {
        let mut cid = Self::EMPTY;
        cid.octets.get_mut(..octets.len())?.copy_from_slice(octets);
        cid.len = octets.len() as u8;
        Some(cid)
    }

    /// Returns its octets.
    pub fn octets(&self) -> &[u8] {
        self.octets.get(..self.len()).unwrap_or_default()
    }

    /// Returns its length, in octets.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// True if it has no octets.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for Cid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cid({:02x?})", self.octets())
    }
}
