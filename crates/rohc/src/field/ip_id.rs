//! Behavior of the IPv4 Identification. RFC 3095, section 4.5.5; RFC 3843, section 3.3; RFC 6846, section 6.1.2.

use thinair_wire::coder::Word;

/// Change of an IP-ID from packet to packet: `ip_id_behavior` of RFC 6846; RND, NBO and SID of RFC 3095 and RFC 3843.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Behavior {
    /// It counts with the sequence number, in network byte order.
    Sequential,
    /// It counts with the sequence number once its octets are swapped.
    Swapped,
    /// It may have any value; also used for IPv6, which has none.
    #[default]
    Random,
    /// It does not change; in RFC 6846 it is zero.
    Constant,
}

impl Behavior {
    /// True if it is sent as an offset from the sequence number.
    #[inline]
    pub(crate) fn is_sequential(self) -> bool {
        matches!(self, Self::Sequential | Self::Swapped)
    }

    /// Converts an IP-ID to a number that counts, and back.
    #[inline]
    pub(crate) fn counted(self, id: u16) -> u16 {
        if self == Self::Swapped { id.swap_bytes() } else { id }
    }
}

impl Word for Behavior {
    #[inline]
    fn to_u32(self) -> u32 {
        self as u32
    }

    #[inline]
    fn from_u32(value: u32) -> Self {
        match value {
            0 => Self::Sequential,
            1 => Self::Swapped,
            2 => Self::Random,
            _ => Self::Constant,
        }
    }
}
