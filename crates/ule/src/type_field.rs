//! The Type field, which identifies the octets after it. RFC 4326, sections 4.4 and 5.
//!
//! ULE and GSE share the field and its registry (RFC 5163, section 3).

use core::fmt;

/// A Type field.
///
/// Values from 0x0600 on are EtherTypes; lower ones announce an Extension Header. Every value is one or the other:
/// [`kind`](Self::kind).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Type(u16);

/// Meaning of a Type field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// A Mandatory Extension Header with this H-Type: a Receiver that does not support it discards the SNDU.
    Mandatory(u8),
    /// An Optional Extension Header: a Receiver that does not support it skips it.
    Optional {
        /// Its length.
        h_len: HLen,
        /// Its H-Type.
        h_type: u8,
    },
    /// A PDU.
    EtherType(EtherType),
}

impl Type {
    /// A Test SNDU. RFC 4326, section 5.1: its text has 1; its figure and the registry have 0.
    pub const TEST: Self = Self(0x0000);
    /// A bridged frame. RFC 4326, section 5.2.
    pub const BRIDGED: Self = Self(0x0001);
    /// TS Packets. RFC 5163, section 3.1.
    pub const TS_CONCAT: Self = Self(0x0002);
    /// Several PDUs of one Type. RFC 5163, section 3.2.
    pub const PDU_CONCAT: Self = Self(0x0003);

    /// Creates a Type of its value.
    #[inline]
    pub const fn new(value: u16) -> Self {
        Self(value)
    }

    /// Returns the Type of an Optional Extension Header.
    #[inline]
    pub const fn optional(h_len: HLen, h_type: u8) -> Self {
        Self((h_len.0 as u16) << 8 | h_type as u16)
    }

    /// Returns the value.
    #[inline]
    pub const fn value(self) -> u16 {
        self.0
    }

    /// Returns its meaning.
    #[inline]
    pub const fn kind(self) -> TypeKind {
        match self.0.to_be_bytes() {
            [0, h_type] => TypeKind::Mandatory(h_type),
            [h_len @ 1..=5, h_type] => TypeKind::Optional { h_len: HLen(h_len), h_type },
            _ => TypeKind::EtherType(EtherType(self.0)),
        }
    }
}

impl From<EtherType> for Type {
    #[inline]
    fn from(ether_type: EtherType) -> Self {
        Self(ether_type.0)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// The Type of a PDU, 0x0600 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherType(u16);

impl EtherType {
    /// An IPv4 datagram.
    pub const IPV4: Self = Self(0x0800);
    /// An IPv6 datagram.
    pub const IPV6: Self = Self(0x86DD);
    /// A ROHC packet. No RFC defines it for ULE, but EtherTypes are Types (RFC 4326, section 4.4.2).
    pub const ROHC: Self = Self(0x22F1);

    /// Lowest EtherType.
    pub const LOWEST: Self = Self(0x0600);

    /// Creates an EtherType; `None` below [`LOWEST`](Self::LOWEST).
    #[inline]
    pub const fn new(value: u16) -> Option<Self> {
        if value < Self::LOWEST.0 { None } else { Some(Self(value)) }
    }

    /// Returns the number.
    #[inline]
    pub const fn value(self) -> u16 {
        self.0
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// H-LEN of an Optional Extension Header: 1 to 5 words of 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HLen(u8);

impl HLen {
    /// Longest header.
    pub const MAX: Self = Self(5);

    /// Creates a length of `words` words of 16 bits; `None` if there is no such header.
    #[inline]
    pub const fn new(words: u8) -> Option<Self> {
        match words {
            1..=5 => Some(Self(words)),
            _ => None,
        }
    }

    /// Returns the number of words of 16 bits.
    #[inline]
    pub const fn words(self) -> u8 {
        self.0
    }

    /// Returns the octets of the header, 2 to 10: its own fields and the Type of the next header, without the Type
    /// that identifies it.
    #[inline]
    pub const fn octets(self) -> usize {
        2 * self.0 as usize
    }

    /// Returns the octets of its own fields, 0 to 8.
    #[inline]
    pub const fn body(self) -> usize {
        self.octets() - 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_of_one_kind() {
        for value in 0..=u16::MAX {
            let ours = Type::new(value);
            match ours.kind() {
                TypeKind::Mandatory(h_type) => assert_eq!(u16::from(h_type), value),
                TypeKind::Optional { h_len, h_type } => {
                    assert!((0x0100..0x0600).contains(&value));
                    assert_eq!(Type::optional(h_len, h_type), ours);
                }
                TypeKind::EtherType(ether_type) => {
                    assert!(value >= 0x0600);
                    assert_eq!(Type::from(ether_type), ours);
                }
            }
            assert_eq!(EtherType::new(value).is_some(), value >= 0x0600);
        }
    }

    #[test]
    fn h_len_counts_from_behind_its_type_to_the_next_one() {
        assert_eq!(
            [0, 1, 5, 6].map(|words| HLen::new(words).map(HLen::octets)),
            [None, Some(2), Some(10), None]
        );
        assert_eq!(HLen::MAX.body(), 8);
    }
}
