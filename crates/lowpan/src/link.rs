//! Link-layer addresses and the interface identifiers derived from them. RFC 6282, section 3.2.2.

/// An address of IEEE 802.15.4, as in a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkAddress {
    /// Absent or unknown.
    #[default]
    None,
    /// Short address, 16 bits.
    Short(u16),
    /// Extended address (EUI-64), most significant octet first.
    Extended([u8; 8]),
}

/// Addresses of the frame around a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// Address of the sender.
    pub source: LinkAddress,
    /// Address of the receiver.
    pub destination: LinkAddress,
}

/// An interface identifier: the low 64 bits of an address.
pub(crate) type Iid = [u8; 8];

impl LinkAddress {
    /// Returns the address of the node with this interface identifier.
    pub const fn of_iid(iid: [u8; 8]) -> Self {
        match iid {
            [0, 0, 0, 0xFF, 0xFE, 0, high, low] => Self::Short(u16::from_be_bytes([high, low])),
            [first, b, c, d, e, f, g, h] => Self::Extended([first ^ 0x02, b, c, d, e, f, g, h]),
        }
    }

    /// Returns the interface identifier of the node with this address.
    pub(crate) const fn iid(self) -> Option<Iid> {
        match self {
            Self::None => None,
            Self::Short(address) => Some(short_iid(address.to_be_bytes())),
            // The universal/local bit is inverted (RFC 4291, appendix A).
            Self::Extended([first, b, c, d, e, f, g, h]) => Some([first ^ 0x02, b, c, d, e, f, g, h]),
        }
    }
}

/// Returns the interface identifier `0000:00ff:fe00:XXXX`.
pub(crate) const fn short_iid([high, low]: [u8; 2]) -> Iid {
    [0, 0, 0, 0xFF, 0xFE, 0, high, low]
}

/// Interface identifiers that follow from the encapsulating header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encapsulation {
    pub(crate) source: Option<Iid>,
    pub(crate) destination: Option<Iid>,
}

impl Encapsulation {
    /// Encapsulation by a link frame.
    pub(crate) const fn link(links: Links) -> Self {
        Self { source: links.source.iid(), destination: links.destination.iid() }
    }

    /// Encapsulation by an IPv6 packet: the bits are copied from its addresses.
    pub(crate) fn ipv6(source: &[u8; 16], destination: &[u8; 16]) -> Self {
        Self { source: source.last_chunk().copied(), destination: destination.last_chunk().copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extended_address_has_its_universal_bit_inverted() {
        let address = LinkAddress::Extended([0x00, 0x12, 0x4B, 0, 0x14, 0xB5, 0xD9, 0xC7]);
        assert_eq!(address.iid(), Some([0x02, 0x12, 0x4B, 0, 0x14, 0xB5, 0xD9, 0xC7]));
    }

    #[test]
    fn a_short_address_is_padded_without_the_pan() {
        assert_eq!(LinkAddress::Short(0xABCD).iid(), Some([0, 0, 0, 0xFF, 0xFE, 0, 0xAB, 0xCD]));
        assert_eq!(LinkAddress::None.iid(), None);
    }
}
