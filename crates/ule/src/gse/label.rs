//! Labels: the receivers of a PDU.

use core::fmt;

use crate::npa::Npa;

/// Label of a PDU, which selects its receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label {
    /// Six octets, as an NPA; LT is 0b00.
    Six(Npa),
    /// Three octets; LT is 0b01.
    Three([u8; 3]),
    /// No label, LT 0b10: every receiver.
    Broadcast,
}

impl Label {
    /// Returns its octets where it is not re-used: 6, 3 or 0.
    #[inline]
    pub const fn octets(self) -> usize {
        match self {
            Self::Six(_) => 6,
            Self::Three(_) => 3,
            Self::Broadcast => 0,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Six(npa) => npa.fmt(f),
            Self::Three([a, b, c]) => write!(f, "{a:02x}:{b:02x}:{c:02x}"),
            Self::Broadcast => f.write_str("broadcast"),
        }
    }
}
