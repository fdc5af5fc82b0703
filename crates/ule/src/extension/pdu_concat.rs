//! Concatenation of PDUs of one Type. RFC 5163, section 3.2.

use thinair_wire::coder::{Coder, Reader, Step, Writer};

use super::{ExtensionChain, ExtensionError, SnduContent};
use crate::type_field::Type;

/// Concatenated PDUs with consistent lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PduConcat<'p> {
    type_field: Type,
    octets: &'p [u8],
}

/// Length before each PDU. RFC 5163, figure 4: "Receivers MUST ignore the value of the R bit".
fn pdu_length<'p, C: Coder<'p>>(c: &mut C, length: &mut u16) -> Step {
    c.reserved(1)?;
    c.uint("PDU-Length", 15, length)
}

impl<'p> PduConcat<'p> {
    /// Octets before the first PDU: PDU-Concat-Type.
    pub const HEADER: usize = 2;
    /// Octets before each PDU: R and PDU-Length.
    pub const PDU_HEADER: usize = 2;
    /// Length of the longest PDU, in octets; it "MUST be less than 32758".
    pub const LONGEST_PDU: usize = 32_757;

    /// Reads the octets after the Type of the header.
    pub fn read(octets: &'p [u8]) -> Result<Self, ExtensionError> {
        let mut reader = Reader::contiguous(octets);
        let mut value = 0_u16;
        reader.uint("PDU-Concat-Type", 16, &mut value)?;
        let (type_field, octets) = (Type::new(value), reader.remaining());
        if type_field == Type::PDU_CONCAT {
            return Err(ExtensionError::NestedConcat);
        }
        // All lengths are checked before the first PDU is delivered.
        let mut pdus = Pdus { octets };
        while pdus.next().is_some() {}
        if pdus.octets.is_empty() {
            Ok(Self { type_field, octets })
        } else {
            Err(ExtensionError::PduConcatSize)
        }
    }

    /// Returns the octets before the first PDU: PDU-Concat-Type.
    pub const fn header(type_field: Type) -> [u8; 2] {
        type_field.value().to_be_bytes()
    }

    /// Returns R and PDU-Length of a PDU of `length` octets, at most
    /// [`LONGEST_PDU`](Self::LONGEST_PDU).
    pub fn pdu_header(length: u16) -> [u8; 2] {
        let mut header = [0; 2];
        // No value is rejected.
        let _ = pdu_length(&mut Writer::new(&mut header, 0), &mut { length });
        header
    }

    /// Returns the Type of each PDU. It may announce an Extension Header at the start of each.
    pub const fn type_field(&self) -> Type {
        self.type_field
    }

    /// Iterates over the PDUs, Extension Headers included, in their order.
    pub const fn pdus(&self) -> Pdus<'p> {
        Pdus { octets: self.octets }
    }

    /// Iterates over the content of the PDUs. There is no PDU-Concat among them.
    pub fn contents(&self) -> impl Iterator<Item = Result<ExtensionChain<'p>, ExtensionError>> {
        let type_field = self.type_field;
        self.pdus().map(move |pdu| match ExtensionChain::read(type_field, pdu)? {
            ExtensionChain { content: SnduContent::PduConcat(_), .. } => Err(ExtensionError::NestedConcat),
            chain => Ok(chain),
        })
    }
}

/// Iterator over PDUs.
#[derive(Clone, Copy, Debug)]
pub struct Pdus<'p> {
    octets: &'p [u8],
}

impl<'p> Iterator for Pdus<'p> {
    type Item = &'p [u8];

    #[inline]
    fn next(&mut self) -> Option<&'p [u8]> {
        let mut reader = Reader::contiguous(self.octets);
        let (mut length, mut pdu) = (0, &[][..]);
        pdu_length(&mut reader, &mut length).ok()?;
        reader.slice("PDU", usize::from(length), &mut pdu).ok()?;
        self.octets = reader.remaining();
        Some(pdu)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::type_field::EtherType;
    use std::vec::Vec;

    #[test]
    fn pdus_come_one_by_one() {
        // The R bit of the second is set.
        let octets = b"\x22\xf1\x00\x03one\x80\x03two\x00\x00\x00\x05three";
        let concat = PduConcat::read(octets).unwrap();
        assert_eq!(concat.type_field(), EtherType::ROHC.into());
        assert!(concat.pdus().eq([&b"one"[..], b"two", b"", b"three"]));
        let contents = concat.contents().map(|chain| chain.unwrap().content);
        assert!(
            contents
                .eq([&b"one"[..], b"two", b"", b"three"].map(|pdu| SnduContent::Pdu(EtherType::ROHC, pdu)))
        );
        for len in 0..octets.len() {
            let whole = [2, 7, 12, 14].contains(&len);
            assert_eq!(PduConcat::read(&octets[..len]).is_ok(), whole, "{len}");
        }
    }

    #[test]
    fn one_length_that_is_too_large_spoils_all() {
        let refused = PduConcat::read(b"\x22\xf1\x00\x03one\x00\x04two");
        assert_eq!(refused, Err(ExtensionError::PduConcatSize));
        assert_eq!(PduConcat::read(b"\x22"), Err(ExtensionError::Truncated));
    }

    #[test]
    fn there_is_no_concat_in_a_concat() {
        assert_eq!(PduConcat::read(b"\x00\x03\x00\x02\x22\xf1"), Err(ExtensionError::NestedConcat));
        // Nor behind an Optional Extension Header.
        let concat = PduConcat::read(b"\x01\x00\x00\x04\x00\x03\x22\xf1").unwrap();
        assert_eq!(concat.contents().next(), Some(Err(ExtensionError::NestedConcat)));
    }

    #[test]
    fn each_pdu_may_begin_with_an_extension_header() {
        let concat = PduConcat::read(b"\x01\x00\x00\x04\x22\xf1ab\x00\x03\x08\x00c").unwrap();
        let contents: Vec<_> = concat.contents().map(|chain| chain.unwrap().content).collect();
        assert_eq!(
            contents,
            [SnduContent::Pdu(EtherType::ROHC, b"ab"), SnduContent::Pdu(EtherType::IPV4, b"c")]
        );
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(PduConcat::header(EtherType::IPV6.into()), [0x86, 0xDD]);
        assert_eq!(PduConcat::pdu_header(PduConcat::LONGEST_PDU as u16), [0x7F, 0xF5]);
    }
}
