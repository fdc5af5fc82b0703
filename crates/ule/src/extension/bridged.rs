//! Bridged frames of a LAN. RFC 4326, section 5.2.

use thinair_wire::coder::{Coder, Reader, Step};

use super::ExtensionError;

/// A frame: destination, source, EtherType or LLC length, contents; the FCS of the LAN is not carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bridged<'p> {
    octets: &'p [u8],
    header: BridgedHeader,
}

/// Field after the addresses of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtherTypeOrLength {
    /// An EtherType: 0x0600 or more.
    EtherType(u16),
    /// Length of the contents in octets, from the LLC header on; octets after them are padding.
    Length(u16),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BridgedHeader {
    destination: [u8; 6],
    source: [u8; 6],
    ether_type_or_length: u16,
}

/// MAC Destination Address, MAC Source Address, EtherType/LLC-Length. RFC 4326, section 5.2.
fn header<'p, C: Coder<'p>>(c: &mut C, header: &mut BridgedHeader) -> Step {
    c.octets("MAC Destination Address", &mut header.destination)?;
    c.octets("MAC Source Address", &mut header.source)?;
    c.uint("EtherType/LLC-Length", 16, &mut header.ether_type_or_length)
}

impl<'p> Bridged<'p> {
    /// Octets before the contents.
    pub const HEADER: usize = 14;

    /// Reads a frame without its FCS.
    pub fn read(octets: &'p [u8]) -> Result<Self, ExtensionError> {
        let mut fields = BridgedHeader::default();
        let mut reader = Reader::contiguous(octets);
        header(&mut reader, &mut fields)?;
        let frame = Self { octets, header: fields };
        match frame.ether_type_or_length() {
            EtherTypeOrLength::Length(length) if usize::from(length) > reader.remaining().len() => {
                Err(ExtensionError::LlcLength)
            }
            EtherTypeOrLength::Length(_) | EtherTypeOrLength::EtherType(_) => Ok(frame),
        }
    }

    /// Returns the whole frame, as sent.
    pub const fn octets(&self) -> &'p [u8] {
        self.octets
    }

    /// Returns the MAC address of the destination in the LAN.
    pub const fn destination(&self) -> [u8; 6] {
        self.header.destination
    }

    /// Returns the MAC address of the source.
    pub const fn source(&self) -> [u8; 6] {
        self.header.source
    }

    /// Returns the EtherType or the length of the contents.
    pub const fn ether_type_or_length(&self) -> EtherTypeOrLength {
        match self.header.ether_type_or_length {
            length @ 0..0x0600 => EtherTypeOrLength::Length(length),
            ether_type => EtherTypeOrLength::EtherType(ether_type),
        }
    }

    /// Returns the contents, without the padding after an LLC length. After an EtherType, padding cannot
    /// be distinguished.
    pub fn contents(&self) -> &'p [u8] {
        let contents = self.octets.get(Self::HEADER..).unwrap_or_default();
        match self.ether_type_or_length() {
            EtherTypeOrLength::Length(length) => contents.get(..usize::from(length)).unwrap_or_default(),
            EtherTypeOrLength::EtherType(_) => contents,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_frame() {
        let octets = b"\x0a\x0b\x0c\x0d\x0e\x0f\x01\x02\x03\x04\x05\x06\x08\x00contents";
        let frame = Bridged::read(octets).unwrap();
        assert_eq!(frame.destination(), [0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F]);
        assert_eq!(frame.source(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(frame.ether_type_or_length(), EtherTypeOrLength::EtherType(0x0800));
        assert_eq!((frame.contents(), frame.octets()), (&b"contents"[..], &octets[..]));
    }

    /// RFC 4326, section 5.2: "The Receiver MUST check this length".
    #[test]
    fn an_llc_length_is_checked() {
        let mut octets = *b"\x0a\x0b\x0c\x0d\x0e\x0f\x01\x02\x03\x04\x05\x06\x00\x08contents";
        assert_eq!(Bridged::read(&octets).unwrap().contents(), b"contents");
        octets[13] = 7;
        assert_eq!(Bridged::read(&octets).unwrap().contents(), b"content");
        octets[13] = 9;
        assert_eq!(Bridged::read(&octets), Err(ExtensionError::LlcLength));
        for len in 0..Bridged::HEADER {
            assert_eq!(Bridged::read(&octets[..len]), Err(ExtensionError::Truncated), "{len}");
        }
    }
}
