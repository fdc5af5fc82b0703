//! Extension Headers, between a Type field and a PDU. RFC 4326, section 5; RFC 5163.
//!
//! ULE and GSE share them. Both pass the Type field of their base header and the octets after that header to
//! [`ExtensionChain::read`]. A sender writes Optional Extension Headers with [`OptionalHeader::write`], one after the
//! other, and then the final header, if there is one: [`Bridged`], [`PduConcat`] or TS Packets.

use core::fmt;
use thinair_wire::coder::Refusal;

use crate::type_field::{EtherType, Type, TypeKind};

mod bridged;
mod optional;
mod pdu_concat;

pub use bridged::{Bridged, EtherTypeOrLength};
pub use optional::{OptionalHeader, OptionalHeaders, TimeStamp};
pub use pdu_concat::{PduConcat, Pdus};

/// Length of a TS Packet, here as content of a TS-Concat header, in octets.
const TS_PACKET: usize = 188;

/// Error in the octets after a base header. None of them are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionError {
    /// An unknown Mandatory Extension Header: an SNDU type error.
    UnknownMandatory(u8),
    /// A PDU-Concat header in another one, which RFC 5163, section 3.2, forbids: an SNDU type error.
    NestedConcat,
    /// The octets end within a header.
    Truncated,
    /// The LLC length of a bridged frame is larger than the frame: an SNDU payload length error.
    LlcLength,
    /// The lengths of concatenated PDUs do not add up to what there is: a PDU-Concat size mismatch.
    PduConcatSize,
    /// The content of a TS-Concat header is not a number of whole TS Packets: a TS-Concat size mismatch.
    TsConcatSize,
}

impl fmt::Display for ExtensionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownMandatory(h_type) => write!(f, "unknown Mandatory Extension Header {h_type:#04x}"),
            Self::NestedConcat => f.write_str("PDU-Concat in PDU-Concat"),
            Self::Truncated => f.write_str("the octets end within an Extension Header"),
            Self::LlcLength => f.write_str("the LLC length of a bridged frame is larger than the frame"),
            Self::PduConcatSize => f.write_str("the lengths of concatenated PDUs do not add up"),
            Self::TsConcatSize => f.write_str("concatenated TS Packets are not whole"),
        }
    }
}

impl core::error::Error for ExtensionError {}

/// These formats are rejected only for missing octets.
impl From<Refusal> for ExtensionError {
    fn from(_: Refusal) -> Self {
        Self::Truncated
    }
}

/// Extension Headers and content of an SNDU or GSE Packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionChain<'p> {
    /// Last TimeStamp header, if there is one.
    pub time_stamp: Option<TimeStamp>,
    /// Content after the Optional Extension Headers.
    pub content: SnduContent<'p>,
}

/// Content of an SNDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnduContent<'p> {
    /// A PDU.
    Pdu(EtherType, &'p [u8]),
    /// A frame of a LAN.
    Bridged(Bridged<'p>),
    /// Several PDUs.
    PduConcat(PduConcat<'p>),
    /// TS Packets. Their octets are not checked, not even the first for 0x47.
    TsConcat(&'p [[u8; TS_PACKET]]),
    /// Octets that a Receiver counts and discards: a Test SNDU.
    Test(&'p [u8]),
}

impl<'p> ExtensionChain<'p> {
    /// Reads Extension Headers and content: `octets` are those after the base header with `type_field`, without a
    /// CRC.
    #[inline]
    pub fn read(type_field: Type, octets: &'p [u8]) -> Result<Self, ExtensionError> {
        // The usual case: no Extension Headers.
        if let TypeKind::EtherType(ether_type) = type_field.kind() {
            return Ok(Self { time_stamp: None, content: SnduContent::Pdu(ether_type, octets) });
        }
        let mut headers = OptionalHeaders::new(type_field, octets);
        let mut time_stamp = None;
        while let Some(header) = headers.read()? {
            time_stamp = header.time_stamp().or(time_stamp);
        }
        let (type_field, octets) = headers.rest();
        Ok(Self { time_stamp, content: SnduContent::read(type_field, octets)? })
    }
}

impl<'p> SnduContent<'p> {
    /// Reads the content after the last Optional Extension Header.
    fn read(type_field: Type, octets: &'p [u8]) -> Result<Self, ExtensionError> {
        match type_field.kind() {
            TypeKind::EtherType(ether_type) => Ok(Self::Pdu(ether_type, octets)),
            TypeKind::Mandatory(h_type) => match type_field {
                Type::TEST => Ok(Self::Test(octets)),
                Type::BRIDGED => Bridged::read(octets).map(Self::Bridged),
                Type::TS_CONCAT => match octets.as_chunks() {
                    (packets, []) => Ok(Self::TsConcat(packets)),
                    _ => Err(ExtensionError::TsConcatSize),
                },
                Type::PDU_CONCAT => PduConcat::read(octets).map(Self::PduConcat),
                _ => Err(ExtensionError::UnknownMandatory(h_type)),
            },
            // Optional headers were removed before.
            TypeKind::Optional { .. } => Err(ExtensionError::Truncated),
        }
    }

    /// Returns the Type of the content.
    pub fn type_field(&self) -> Type {
        match self {
            Self::Pdu(ether_type, _) => (*ether_type).into(),
            Self::Bridged(_) => Type::BRIDGED,
            Self::PduConcat(_) => Type::PDU_CONCAT,
            Self::TsConcat(_) => Type::TS_CONCAT,
            Self::Test(_) => Type::TEST,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::type_field::HLen;
    use std::vec::Vec;

    #[test]
    fn optional_headers_are_skipped_known_or_not() {
        // H-LEN 2 of H-Type 0x77, H-LEN 1 of padding, TimeStamp, H-LEN 5 of padding.
        let octets = [
            &[0xAB, 0xCD][..],
            &[0x01, 0x00],
            &[0x03, 0x01],
            &[0x00, 0x12, 0xD6, 0x87, 0x05, 0x00],
            &[1, 2, 3, 4, 5, 6, 7, 8, 0x22, 0xF1],
            b"pdu",
        ]
        .concat();
        let chain = ExtensionChain::read(Type::new(0x0277), &octets).unwrap();
        assert_eq!(chain.content, SnduContent::Pdu(EtherType::ROHC, b"pdu"));
        assert_eq!(chain.time_stamp.map(TimeStamp::micros), Some(1_234_567));
        for len in 0..octets.len() - 3 {
            assert_eq!(
                ExtensionChain::read(Type::new(0x0277), &octets[..len]),
                Err(ExtensionError::Truncated),
                "{len}"
            );
        }
    }

    #[test]
    fn mandatory_headers_that_are_not_known_are_refused() {
        for h_type in 4..=0xFF {
            let refused = ExtensionChain::read(Type::new(h_type), b"octets");
            assert_eq!(refused, Err(ExtensionError::UnknownMandatory(h_type as u8)));
        }
        let refused = ExtensionChain::read(Type::new(0x0100), &[0x00, 0xFF, 1, 2, 3]);
        assert_eq!(refused, Err(ExtensionError::UnknownMandatory(0xFF)));
    }

    #[test]
    fn ts_packets_are_whole_or_none() {
        let octets: Vec<u8> = (0..2 * TS_PACKET).map(|i| i as u8).collect();
        for len in 0..octets.len() {
            let chain = ExtensionChain::read(Type::TS_CONCAT, &octets[..len]);
            match len % TS_PACKET {
                0 => assert_eq!(chain.unwrap().content, SnduContent::TsConcat(octets[..len].as_chunks().0)),
                _ => assert_eq!(chain, Err(ExtensionError::TsConcatSize)),
            }
        }
    }

    #[test]
    fn written_headers_are_read_again() {
        let headers = [
            OptionalHeader::time_stamp_of(TimeStamp::new(3_599_999_999)),
            OptionalHeader::new(0x42, &[1, 2, 3, 4, 5, 6]).unwrap(),
            OptionalHeader::padding(HLen::MAX),
            OptionalHeader::padding(HLen::new(1).unwrap()),
        ];
        let mut octets = [0; 64];
        let mut end = 0;
        for (i, header) in headers.iter().enumerate() {
            let next = headers.get(i + 1).map_or(Type::TEST, OptionalHeader::type_field);
            end = header.write(next, &mut octets, end).unwrap();
        }
        let mut read = OptionalHeaders::new(headers[0].type_field(), &octets[..end]);
        for header in headers {
            assert_eq!(read.read(), Ok(Some(header)));
        }
        assert_eq!((read.read(), read.rest()), (Ok(None), (Type::TEST, &[][..])));
    }
}
