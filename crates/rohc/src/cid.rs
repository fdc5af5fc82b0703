//! Context identifiers and their encoding in packets. RFC 5795, sections 5.1.1, 5.2.1.2 and 5.2.1.3.

/// The CID space of a channel: the parameter LARGE_CIDS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CidSpace {
    /// CIDs 0 to 15. CID 0 takes no octet, others an Add-CID octet in front of the header.
    Small,
    /// CIDs 0 to 16,383: one or two octets behind the first octet of the header.
    Large,
}

impl CidSpace {
    /// The highest CID of the space.
    pub const fn highest(self) -> u16 {
        match self {
            Self::Small => 15,
            Self::Large => 16_383,
        }
    }
}

/// A context identifier, 0 to 16,383.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cid(u16);

impl Cid {
    /// CID 0.
    pub const ZERO: Self = Self(0);

    /// Creates the CID with that number; `None` above 16,383.
    pub const fn new(value: u16) -> Option<Self> {
        if value <= CidSpace::Large.highest() { Some(Self(value)) } else { None }
    }

    /// The number.
    pub const fn value(self) -> u16 {
        self.0
    }

    /// The number, as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Octets in front of the header: 1 for an Add-CID octet, else 0.
    pub(crate) const fn octets_before(self, space: CidSpace) -> usize {
        match space {
            CidSpace::Small if self.0 != 0 => 1,
            CidSpace::Small | CidSpace::Large => 0,
        }
    }

    /// Octets behind the first octet of the header: 1 or 2 for a large CID, else 0.
    pub(crate) const fn octets_inside(self, space: CidSpace) -> usize {
        match space {
            CidSpace::Small => 0,
            CidSpace::Large if self.0 < 0x80 => 1,
            CidSpace::Large => 2,
        }
    }

    /// The Add-CID octet.
    pub(crate) const fn add_cid(self) -> u8 {
        0b1110_0000 | self.0 as u8 & 0x0F
    }

    /// Writes a large CID at the start of `out`, 1 or 2 octets (RFC 5795, section 5.3.2).
    pub(crate) fn write_large(self, out: &mut [u8]) {
        match out {
            [only] => *only = self.0 as u8,
            [high, low, ..] => {
                *high = 0b1000_0000 | (self.0 >> 8) as u8;
                *low = self.0 as u8;
            }
            [] => {}
        }
    }

    /// Reads a large CID from the start of `octets` and returns it with the octets behind it. Rejects more
    /// than two octets (RFC 5795, section 5.2.3).
    pub(crate) fn read_large(octets: &[u8]) -> Option<(Self, &[u8])> {
        match *octets {
            [first, ref rest @ ..] if first < 0x80 => Some((Self(u16::from(first)), rest)),
            [first, second, ref rest @ ..] if first < 0xC0 => {
                Some((Self(u16::from(first & 0x3F) << 8 | u16::from(second)), rest))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn large_cids_take_one_or_two_octets() {
        for (cid, octets) in [(0, &[0][..]), (127, &[127]), (128, &[0x80, 0x80]), (16_383, &[0xBF, 0xFF])] {
            let cid = Cid::new(cid).unwrap();
            let mut out = [0; 2];
            let len = cid.octets_inside(CidSpace::Large);
            cid.write_large(&mut out[..len]);
            assert_eq!(&out[..len], octets);
            assert_eq!(Cid::read_large(octets), Some((cid, &[][..])));
        }
        assert_eq!(Cid::read_large(&[0xC0, 0, 0]), None);
        assert_eq!(Cid::read_large(&[0x80]), None);
        assert_eq!(Cid::new(16_384), None);
    }
}
