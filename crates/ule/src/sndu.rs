//! SubNetwork Data Units: a PDU with the ULE header and CRC. RFC 4326, section 4.
//!
//! [`Sndu`] is one to send, composed of borrowed parts; [`ReceivedSndu`] is one with a correct CRC.

use core::fmt;
use thinair_wire::coder::{Coder, Reader, Step, Writer};

use crate::crc::Crc32;
use crate::extension::{Bridged, OptionalHeader, PduConcat};
use crate::npa::Npa;
use crate::ts::TsPacket;
use crate::type_field::{EtherType, HLen, Type, TypeKind};

/// Length of D, Length and Type, in octets.
const FIXED: usize = 4;
/// Length of an NPA address, in octets.
const NPA: usize = 6;
/// Length of the CRC, in octets.
pub(crate) const CRC: usize = 4;

/// Largest value of a Length field.
const LENGTH_MOST: usize = 0x7FFF;

/// End Indicator in place of the next SNDU: there is none in this TS Packet. RFC 4326, section 4.3.
pub(crate) const END_INDICATOR: u16 = 0xFFFF;

/// Length of the longest SNDU, header and CRC included, in octets.
pub const LONGEST: usize = FIXED + LENGTH_MOST;

/// The base header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BaseHeader {
    /// D: true if there is no address.
    absent: bool,
    /// Octets after the Type field, the CRC included.
    length: u16,
    type_field: u16,
    destination: [u8; NPA],
}

/// D, Length, Type and NPA Address. RFC 4326, figures 3 and 4.
#[inline(always)]
fn base_header<'p, C: Coder<'p>>(c: &mut C, header: &mut BaseHeader) -> Step {
    let absent = c.flag("D", &mut header.absent)?;
    c.uint("Length", 15, &mut header.length)?;
    c.uint("Type", 16, &mut header.type_field)?;
    if !absent {
        c.octets("Receiver Destination NPA Address", &mut header.destination)?;
    }
    Ok(())
}

/// Meaning of the first two octets of an SNDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// No more SNDUs in this TS Packet.
    EndIndicator,
    /// An SNDU of this length in octets, header and CRC included.
    Octets(usize),
    /// Invalid Length.
    BadLength,
}

impl Start {
    /// Decodes the first two octets. RFC 4326, section 7.2.
    #[inline]
    pub(crate) fn read(octets: [u8; 2]) -> Self {
        let word = u16::from_be_bytes(octets);
        if word == END_INDICATOR {
            return Self::EndIndicator;
        }
        let length = usize::from(word & 0x7FFF);
        let least = if word >> 15 == 1 { CRC + 1 } else { CRC + NPA };
        if length < least { Self::BadLength } else { Self::Octets(FIXED + length) }
    }
}

/// An SNDU to send, composed of borrowed parts.
///
/// ```
/// use thinair_ule::{EtherType, Npa, Sndu};
///
/// let sndu = Sndu::pdu(EtherType::ROHC, b"\0\xbe\xefhello");
/// let mut octets = [0; 32];
/// let len = sndu.write(&mut octets)?;
/// assert_eq!(octets[..len], *b"\x80\x0c\x22\xf1\0\xbe\xefhello\x16\xad\x2f\x67");
/// // To one Receiver of many.
/// let npa = "00:01:02:03:04:05".parse::<Npa>()?;
/// assert_eq!(sndu.to(npa).octets()?, len + 6);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sndu<'a> {
    destination: Option<Npa>,
    headers: &'a [OptionalHeader],
    type_field: Type,
    body: SnduBody<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SnduBody<'a> {
    One(&'a [u8]),
    Concat(Type, &'a [&'a [u8]]),
}

/// Reason why an SNDU cannot be sent: the caller's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnduError {
    /// It exceeds the Length field.
    TooLong {
        /// Octets of the SNDU, header and CRC included.
        octets: usize,
        /// Largest length: one octet less without an address, because of the End Indicator.
        most: usize,
    },
    /// Without an address there must be at least one octet of payload.
    Empty,
    /// One of several PDUs is longer than 32,757 octets, or there is a PDU-Concat in a PDU-Concat.
    BadConcat,
    /// The buffer is too short.
    NoRoom {
        /// Octets of the SNDU.
        needed: usize,
        /// Octets of the buffer.
        had: usize,
    },
}

impl fmt::Display for SnduError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { octets, most } => {
                write!(f, "an SNDU of {octets} octets exceeds the maximum of {most}")
            }
            Self::Empty => f.write_str("an SNDU without an address and without payload"),
            Self::BadConcat => f.write_str("PDUs that cannot be concatenated"),
            Self::NoRoom { needed, had } => write!(f, "an SNDU of {needed} octets in a buffer of {had}"),
        }
    }
}

impl core::error::Error for SnduError {}

impl<'a> Sndu<'a> {
    /// Creates an SNDU of a PDU to all Receivers: D is 1 until [`to`](Self::to) sets a destination.
    #[inline]
    pub fn pdu(ether_type: EtherType, pdu: &'a [u8]) -> Self {
        Self::new(ether_type.into(), SnduBody::One(pdu))
    }

    /// Creates an SNDU of a frame of a LAN.
    pub fn bridged(frame: Bridged<'a>) -> Self {
        Self::new(Type::BRIDGED, SnduBody::One(frame.octets()))
    }

    /// Creates a Test SNDU, which Receivers discard.
    pub fn test(octets: &'a [u8]) -> Self {
        Self::new(Type::TEST, SnduBody::One(octets))
    }

    /// Creates an SNDU of TS Packets, which should not be null packets.
    pub fn ts_concat(packets: &'a [TsPacket]) -> Self {
        Self::new(Type::TS_CONCAT, SnduBody::One(packets.as_flattened()))
    }

    /// Creates an SNDU of several PDUs of one Type. Linux discards them: both ends have to agree to it.
    pub fn pdu_concat(type_field: Type, pdus: &'a [&'a [u8]]) -> Self {
        Self::new(Type::PDU_CONCAT, SnduBody::Concat(type_field, pdus))
    }

    #[inline]
    fn new(type_field: Type, body: SnduBody<'a>) -> Self {
        Self { destination: None, headers: &[], type_field, body }
    }

    /// Sets the destination, one or more Receivers: D is 0.
    #[inline]
    pub const fn to(mut self, destination: Npa) -> Self {
        self.destination = Some(destination);
        self
    }

    /// Adds Optional Extension Headers.
    pub const fn with_headers(mut self, headers: &'a [OptionalHeader]) -> Self {
        self.headers = headers;
        self
    }

    /// Returns the destination, if it has one.
    pub const fn destination(&self) -> Option<Npa> {
        self.destination
    }

    /// Returns the Type of the payload, which follows the Optional Extension Headers.
    pub const fn type_field(&self) -> Type {
        self.type_field
    }

    /// Returns the PDU, or another contiguous payload; `None` for concatenated PDUs.
    #[inline]
    pub(crate) const fn one(&self) -> Option<&'a [u8]> {
        match self.body {
            SnduBody::One(octets) => Some(octets),
            SnduBody::Concat(..) => None,
        }
    }

    /// Returns a contiguous payload without Optional Extension Headers.
    pub(crate) fn plain(&self) -> Option<&'a [u8]> {
        self.one().filter(|_| self.headers.is_empty())
    }

    /// Creates an SNDU with a contiguous payload of any Type.
    #[inline]
    pub(crate) const fn of(destination: Option<Npa>, type_field: Type, payload: &'a [u8]) -> Self {
        Self { destination, headers: &[], type_field, body: SnduBody::One(payload) }
    }

    /// Returns PDU number `i` of a PDU-Concat.
    #[inline]
    pub(crate) fn pdu_of(&self, i: usize) -> Option<&'a [u8]> {
        match self.body {
            SnduBody::One(_) => None,
            SnduBody::Concat(_, pdus) => pdus.get(i).copied(),
        }
    }

    /// Returns the number of PDUs or other payloads.
    #[inline]
    pub(crate) const fn pdus(&self) -> usize {
        match self.body {
            SnduBody::One(_) => 1,
            SnduBody::Concat(_, pdus) => pdus.len(),
        }
    }

    /// True if it is one PDU or frame that may be part of a PDU-Concat.
    #[inline]
    fn can_be_concatenated(&self) -> bool {
        self.plain().is_some_and(|pdu| pdu.len() <= PduConcat::LONGEST_PDU)
            && (self.type_field == Type::BRIDGED || matches!(self.type_field.kind(), TypeKind::EtherType(_)))
    }

    /// True if the PDUs of both may be parts of one PDU-Concat.
    #[inline]
    pub(crate) fn goes_with(&self, other: &Self) -> bool {
        (self.destination, self.type_field) == (other.destination, other.type_field)
            && self.can_be_concatenated()
            && other.can_be_concatenated()
    }

    /// Returns its length in octets, header and CRC included.
    pub fn octets(&self) -> Result<usize, SnduError> {
        Ok(SnduFrame::of(self)?.octets)
    }

    /// Writes it at the start of `out`, and returns its octets.
    pub fn write(&self, out: &mut [u8]) -> Result<usize, SnduError> {
        let frame = SnduFrame::of(self)?;
        let had = out.len();
        let room = out.get_mut(..frame.octets).ok_or(SnduError::NoRoom { needed: frame.octets, had })?;
        frame.copy(0, room, self, self);
        Ok(frame.octets)
    }
}

/// PDUs for one SNDU, wherever they are stored.
pub(crate) trait Pdus {
    /// Returns the Type of the PDUs of a PDU-Concat; `None` otherwise.
    fn concat(&self) -> Option<Type>;

    /// Returns PDU number `i` of a PDU-Concat.
    fn pdu(&self, i: usize) -> Option<&[u8]>;
}

impl Pdus for Sndu<'_> {
    #[inline]
    fn concat(&self) -> Option<Type> {
        match self.body {
            SnduBody::One(_) => None,
            SnduBody::Concat(type_field, _) => Some(type_field),
        }
    }

    #[inline]
    fn pdu(&self, i: usize) -> Option<&[u8]> {
        self.pdu_of(i)
    }
}

/// State of an SNDU that is being sent: its length, and the computed fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnduFrame {
    /// Length of the SNDU, in octets.
    pub(crate) octets: usize,
    base: [u8; FIXED + NPA],
    base_len: usize,
    crc: [u8; CRC],
}

impl SnduFrame {
    // Inlined, as most SNDUs have no headers and one PDU, which the caller's code shows.
    #[inline(always)]
    pub(crate) fn of(sndu: &Sndu<'_>) -> Result<Self, SnduError> {
        let len = match sndu.body {
            SnduBody::One(payload) => payload.len(),
            SnduBody::Concat(Type::PDU_CONCAT, _) => return Err(SnduError::BadConcat),
            SnduBody::Concat(_, pdus) => {
                if pdus.iter().any(|pdu| pdu.len() > PduConcat::LONGEST_PDU) {
                    return Err(SnduError::BadConcat);
                }
                let lens = pdus.iter().map(|pdu| PduConcat::PDU_HEADER + pdu.len());
                lens.fold(PduConcat::HEADER, usize::saturating_add)
            }
        };
        Self::around(sndu, sndu, len)
    }

    /// [`of`](Self::of) for an SNDU with the header of `head`, and a payload of `len` octets.
    #[inline(always)]
    pub(crate) fn around(head: &Sndu<'_>, pdus: &impl Pdus, len: usize) -> Result<Self, SnduError> {
        let headers: usize = head.headers.iter().map(OptionalHeader::octets).sum();
        let address = if head.destination.is_some() { NPA } else { 0 };
        let length = (address + headers + CRC).saturating_add(len);
        // Without an address, the largest Length is not available: it is the End Indicator.
        let most = if head.destination.is_some() { LENGTH_MOST } else { LENGTH_MOST - 1 };
        if length > most {
            return Err(SnduError::TooLong { octets: length.saturating_add(FIXED), most: FIXED + most });
        }
        if length == CRC {
            return Err(SnduError::Empty);
        }
        let mut fields = BaseHeader {
            absent: head.destination.is_none(),
            length: length as u16,
            type_field: head
                .headers
                .first()
                .map_or(final_type(head, pdus), OptionalHeader::type_field)
                .value(),
            destination: head.destination.map_or([0; NPA], Npa::octets),
        };
        let mut base = [0; FIXED + NPA];
        // No value is rejected, and the buffer has the length of the fields.
        let _ = base_header(&mut Writer::new(&mut base, 0), &mut fields);
        let mut frame = Self { octets: FIXED + length, base, base_len: FIXED + address, crc: [0; CRC] };
        let mut crc = Crc32::START;
        frame.visit(head, pdus, |part| crc = crc.then(part));
        frame.crc = crc.value().to_be_bytes();
        Ok(frame)
    }

    /// Passes all octets before the CRC to `part`, part by part.
    #[inline(always)]
    fn visit(&self, head: &Sndu<'_>, pdus: &impl Pdus, mut part: impl FnMut(&[u8])) {
        part(self.base.get(..self.base_len).unwrap_or_default());
        for (i, header) in head.headers.iter().enumerate() {
            let mut octets = [0; HLen::MAX.octets()];
            let next = head.headers.get(i + 1).map_or(final_type(head, pdus), OptionalHeader::type_field);
            let end = header.write(next, &mut octets, 0).unwrap_or(0);
            part(octets.get(..end).unwrap_or_default());
        }
        let Some(type_field) = pdus.concat() else { return part(head.one().unwrap_or_default()) };
        part(&PduConcat::header(type_field));
        let mut i = 0;
        while let Some(pdu) = pdus.pdu(i) {
            part(&PduConcat::pdu_header(pdu.len() as u16));
            part(pdu);
            i += 1;
        }
    }

    /// Copies the octets of the SNDU from number `from` on into `out`, and returns their number: all remaining ones, or
    /// as many as `out` has room for, even if the payload has changed.
    #[inline(always)]
    pub(crate) fn copy(&self, from: usize, out: &mut [u8], head: &Sndu<'_>, pdus: &impl Pdus) -> usize {
        let len = out.len().min(self.octets.saturating_sub(from));
        let mut copy = Copying { skip: from, out: out.get_mut(..len).unwrap_or_default() };
        self.visit(head, pdus, |part| copy.part(part));
        copy.part(&self.crc);
        len
    }
}

/// Returns the Type after the last Optional Extension Header.
#[inline]
fn final_type(head: &Sndu<'_>, pdus: &impl Pdus) -> Type {
    if pdus.concat().is_some() { Type::PDU_CONCAT } else { head.type_field }
}

/// Copies the part of a sequence that lies in a window.
struct Copying<'o> {
    /// Octets before the window.
    skip: usize,
    /// Rest of the window.
    out: &'o mut [u8],
}

impl Copying<'_> {
    #[inline(always)]
    fn part(&mut self, part: &[u8]) {
        if self.skip >= part.len() {
            self.skip -= part.len();
            return;
        }
        let part = part.get(self.skip..).unwrap_or_default();
        self.skip = 0;
        let len = part.len().min(self.out.len());
        if len == 0 {
            return;
        }
        let (room, rest) = core::mem::take(&mut self.out).split_at_mut(len);
        room.copy_from_slice(part.get(..len).unwrap_or_default());
        self.out = rest;
    }
}

/// An SNDU with a correct CRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedSndu<'p> {
    /// Destination, if it has one; the invalid address of zeros is kept.
    pub destination: Option<[u8; NPA]>,
    /// Type field of the base header.
    pub type_field: Type,
    /// Octets after the base header, without the CRC: Extension Headers and payload.
    pub octets: &'p [u8],
}

/// Reason why octets are not an SNDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadSndu {
    /// The Length field does not agree with the number of octets.
    Length,
    /// The CRC does not match the octets before it.
    Crc,
}

impl fmt::Display for BadSndu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => f.write_str("the Length field does not match the length of the SNDU"),
            Self::Crc => f.write_str("the CRC of the SNDU is wrong"),
        }
    }
}

impl core::error::Error for BadSndu {}

impl<'p> ReceivedSndu<'p> {
    /// Reads one whole SNDU.
    #[inline]
    pub fn read(sndu: &'p [u8]) -> Result<Self, BadSndu> {
        let start = sndu.first_chunk().ok_or(BadSndu::Length)?;
        if Start::read(*start) != Start::Octets(sndu.len()) {
            return Err(BadSndu::Length);
        }
        Self::delimited(sndu)
    }

    /// Reads octets whose length is known to be right.
    #[inline]
    pub(crate) fn delimited(sndu: &'p [u8]) -> Result<Self, BadSndu> {
        if !Crc32::is_right(sndu) {
            return Err(BadSndu::Crc);
        }
        let mut base = BaseHeader { absent: false, length: 0, type_field: 0, destination: [0; NPA] };
        let mut reader = Reader::contiguous(sndu);
        base_header(&mut reader, &mut base).map_err(|_| BadSndu::Length)?;
        let octets = reader.remaining().split_last_chunk::<CRC>().ok_or(BadSndu::Length)?.0;
        Ok(Self {
            destination: (!base.absent).then_some(base.destination),
            type_field: Type::new(base.type_field),
            octets,
        })
    }
}
