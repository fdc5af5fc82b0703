//! SubNetwork Data Units: a PDU with what ULE puts around it. RFC 4326, section 4.
//!
//! [`Sndu`] is one that is to be sent, out of parts that lie somewhere else; [`Received`] is one whose CRC was found
//! right.

use core::fmt;
use thinair_wire::coder::{Coder, Reader, Step, Writer};

use crate::crc::Crc32;
use crate::extension::{Bridged, OptionalHeader, PduConcat};
use crate::npa::Npa;
use crate::ts::TsPacket;
use crate::type_field::{EtherType, HLen, Kind, Type};

/// Octets of D, Length and Type.
const FIXED: usize = 4;
/// Octets of an NPA address.
const NPA: usize = 6;
/// Octets of the CRC.
pub(crate) const CRC: usize = 4;

/// The largest value of a Length field.
const LENGTH_MOST: usize = 0x7FFF;

/// Where the next SNDU would start: there is none in this TS Packet. RFC 4326, section 4.3.
pub(crate) const END_INDICATOR: u16 = 0xFFFF;

/// Octets of the longest SNDU, header and CRC included.
pub const LONGEST: usize = FIXED + LENGTH_MOST;

/// The base header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BaseHeader {
    /// D: there is no address.
    absent: bool,
    /// Octets behind the Type field, the CRC included.
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

/// What the first two octets of an SNDU say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// No more SNDUs in this TS Packet.
    EndIndicator,
    /// An SNDU of so many octets, header and CRC included.
    Octets(usize),
    /// No SNDU has this Length.
    BadLength,
}

impl Start {
    /// RFC 4326, section 7.2.
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

/// An SNDU to be sent. Its parts are borrowed and not yet put together.
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
    body: Body<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body<'a> {
    One(&'a [u8]),
    Concat(Type, &'a [&'a [u8]]),
}

/// An SNDU cannot be sent: the caller's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnduError {
    /// Its Length field cannot say so much.
    TooLong {
        /// Octets of the SNDU, header and CRC included.
        octets: usize,
        /// Octets that it may have: one less without an address, for the End Indicator would look the same.
        most: usize,
    },
    /// Without an address there has to be at least one octet of payload.
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
            Self::TooLong { octets, most } => write!(f, "an SNDU of {octets} octets; {most} are possible"),
            Self::Empty => f.write_str("an SNDU without an address and without payload"),
            Self::BadConcat => f.write_str("PDUs that PDU-Concat does not take"),
            Self::NoRoom { needed, had } => write!(f, "an SNDU of {needed} octets in a buffer of {had}"),
        }
    }
}

impl core::error::Error for SnduError {}

impl<'a> Sndu<'a> {
    /// A PDU, to all who listen: D is 1 until [`to`](Self::to) says whom it is for.
    #[inline]
    pub fn pdu(ether_type: EtherType, pdu: &'a [u8]) -> Self {
        Self::new(ether_type.into(), Body::One(pdu))
    }

    /// A frame of a LAN.
    pub fn bridged(frame: Bridged<'a>) -> Self {
        Self::new(Type::BRIDGED, Body::One(frame.octets()))
    }

    /// Octets that Receivers discard.
    pub fn test(octets: &'a [u8]) -> Self {
        Self::new(Type::TEST, Body::One(octets))
    }

    /// TS Packets, which should not be null packets.
    pub fn ts_concat(packets: &'a [TsPacket]) -> Self {
        Self::new(Type::TS_CONCAT, Body::One(packets.as_flattened()))
    }

    /// Several PDUs of one Type. Linux discards them: both ends have to agree to it.
    pub fn pdu_concat(type_field: Type, pdus: &'a [&'a [u8]]) -> Self {
        Self::new(Type::PDU_CONCAT, Body::Concat(type_field, pdus))
    }

    #[inline]
    fn new(type_field: Type, body: Body<'a>) -> Self {
        Self { destination: None, headers: &[], type_field, body }
    }

    /// The same, for this Receiver, or these: D is 0.
    #[inline]
    pub const fn to(mut self, destination: Npa) -> Self {
        self.destination = Some(destination);
        self
    }

    /// The same behind Optional Extension Headers.
    pub const fn with_headers(mut self, headers: &'a [OptionalHeader]) -> Self {
        self.headers = headers;
        self
    }

    /// Whom it is for, if it says so.
    pub const fn destination(&self) -> Option<Npa> {
        self.destination
    }

    /// The Type of the payload. It stands behind the Optional Extension Headers.
    pub const fn type_field(&self) -> Type {
        self.type_field
    }

    /// The PDU, if it is one PDU, or another payload that lies in one place.
    #[inline]
    pub(crate) const fn one(&self) -> Option<&'a [u8]> {
        match self.body {
            Body::One(octets) => Some(octets),
            Body::Concat(..) => None,
        }
    }

    /// The payload, if that, address and Type are all there is to know.
    pub(crate) fn plain(&self) -> Option<&'a [u8]> {
        self.one().filter(|_| self.headers.is_empty())
    }

    /// An SNDU with a payload of any Type that lies in one place.
    #[inline]
    pub(crate) const fn of(destination: Option<Npa>, type_field: Type, payload: &'a [u8]) -> Self {
        Self { destination, headers: &[], type_field, body: Body::One(payload) }
    }

    /// PDU number `i` of a PDU-Concat.
    #[inline]
    pub(crate) fn pdu_of(&self, i: usize) -> Option<&'a [u8]> {
        match self.body {
            Body::One(_) => None,
            Body::Concat(_, pdus) => pdus.get(i).copied(),
        }
    }

    /// PDUs, or other payloads.
    #[inline]
    pub(crate) const fn pdus(&self) -> usize {
        match self.body {
            Body::One(_) => 1,
            Body::Concat(_, pdus) => pdus.len(),
        }
    }

    /// Whether it is one PDU, or frame, that may lie in a PDU-Concat.
    #[inline]
    fn can_be_concatenated(&self) -> bool {
        self.plain().is_some_and(|pdu| pdu.len() <= PduConcat::LONGEST_PDU)
            && (self.type_field == Type::BRIDGED || matches!(self.type_field.kind(), Kind::EtherType(_)))
    }

    /// Whether the PDUs of both may lie in one PDU-Concat.
    #[inline]
    pub(crate) fn goes_with(&self, other: &Self) -> bool {
        (self.destination, self.type_field) == (other.destination, other.type_field)
            && self.can_be_concatenated()
            && other.can_be_concatenated()
    }

    /// Octets of it, header and CRC included.
    pub fn octets(&self) -> Result<usize, SnduError> {
        Ok(Frame::of(self)?.octets)
    }

    /// Puts it together at the start of `out`, and returns its octets.
    pub fn write(&self, out: &mut [u8]) -> Result<usize, SnduError> {
        let frame = Frame::of(self)?;
        let had = out.len();
        let room = out.get_mut(..frame.octets).ok_or(SnduError::NoRoom { needed: frame.octets, had })?;
        frame.copy(0, room, self, self);
        Ok(frame.octets)
    }
}

/// Several PDUs for one SNDU, wherever they lie.
pub(crate) trait Pdus {
    /// The Type of the PDUs of a PDU-Concat, if it is one.
    fn concat(&self) -> Option<Type>;

    /// PDU number `i` of a PDU-Concat.
    fn pdu(&self, i: usize) -> Option<&[u8]>;
}

impl Pdus for Sndu<'_> {
    #[inline]
    fn concat(&self) -> Option<Type> {
        match self.body {
            Body::One(_) => None,
            Body::Concat(type_field, _) => Some(type_field),
        }
    }

    #[inline]
    fn pdu(&self, i: usize) -> Option<&[u8]> {
        self.pdu_of(i)
    }
}

/// What of an SNDU has to be known while its octets go out: its size, and what is computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// All of the SNDU.
    pub(crate) octets: usize,
    base: [u8; FIXED + NPA],
    base_len: usize,
    crc: [u8; CRC],
}

impl Frame {
    #[inline]
    pub(crate) fn of(sndu: &Sndu<'_>) -> Result<Self, SnduError> {
        let len = match sndu.body {
            Body::One(payload) => payload.len(),
            Body::Concat(Type::PDU_CONCAT, _) => return Err(SnduError::BadConcat),
            Body::Concat(_, pdus) => {
                if pdus.iter().any(|pdu| pdu.len() > PduConcat::LONGEST_PDU) {
                    return Err(SnduError::BadConcat);
                }
                let lens = pdus.iter().map(|pdu| PduConcat::PDU_HEADER + pdu.len());
                lens.fold(PduConcat::HEADER, usize::saturating_add)
            }
        };
        Self::around(sndu, sndu, len)
    }

    /// The same of an SNDU with `head`, and a payload of `len` octets.
    #[inline]
    pub(crate) fn around(head: &Sndu<'_>, pdus: &impl Pdus, len: usize) -> Result<Self, SnduError> {
        let headers: usize = head.headers.iter().map(OptionalHeader::octets).sum();
        let address = if head.destination.is_some() { NPA } else { 0 };
        let length = (address + headers + CRC).saturating_add(len);
        // Without an address, the largest Length is taken: it is the End Indicator.
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
        // Nothing is refused, and the room is that of the fields.
        let _ = base_header(&mut Writer::new(&mut base, 0), &mut fields);
        let mut frame = Self { octets: FIXED + length, base, base_len: FIXED + address, crc: [0; CRC] };
        let mut crc = Crc32::START;
        frame.visit(head, pdus, |part| crc = crc.then(part));
        frame.crc = crc.value().to_be_bytes();
        Ok(frame)
    }

    /// All octets in front of the CRC, part by part.
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

    /// Copies the octets of the SNDU from number `from` on into `out`, and returns how many there were: all that are left,
    /// or all that `out` has room for, even if the payload has changed.
    #[inline]
    pub(crate) fn copy(&self, from: usize, out: &mut [u8], head: &Sndu<'_>, pdus: &impl Pdus) -> usize {
        let len = out.len().min(self.octets.saturating_sub(from));
        let mut copy = Copying { skip: from, out: out.get_mut(..len).unwrap_or_default() };
        self.visit(head, pdus, |part| copy.part(part));
        copy.part(&self.crc);
        len
    }
}

/// The Type behind the last Optional Extension Header.
#[inline]
fn final_type(head: &Sndu<'_>, pdus: &impl Pdus) -> Type {
    if pdus.concat().is_some() { Type::PDU_CONCAT } else { head.type_field }
}

/// Copies what of a sequence of parts lies in a window.
struct Copying<'o> {
    /// Octets in front of the window.
    skip: usize,
    /// What of the window is not filled.
    out: &'o mut [u8],
}

impl Copying<'_> {
    #[inline(always)]
    fn part(&mut self, part: &[u8]) {
        let Some(part) = part.get(self.skip..) else {
            self.skip -= part.len();
            return;
        };
        self.skip = 0;
        let len = part.len().min(self.out.len());
        let (room, rest) = core::mem::take(&mut self.out).split_at_mut(len);
        room.copy_from_slice(part.get(..len).unwrap_or_default());
        self.out = rest;
    }
}

/// An SNDU whose CRC is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'p> {
    /// Whom it is for, if it says so; the address of zeros, which must not be used, is kept.
    pub destination: Option<[u8; NPA]>,
    /// The Type field of the base header.
    pub type_field: Type,
    /// What is behind the base header, without the CRC: Extension Headers and payload.
    pub octets: &'p [u8],
}

/// Octets are no SNDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadSndu {
    /// The Length field is not that of an SNDU of so many octets.
    Length,
    /// The CRC is not that of the octets before it.
    Crc,
}

impl fmt::Display for BadSndu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => f.write_str("the Length field does not say how long the SNDU is"),
            Self::Crc => f.write_str("the CRC of the SNDU is wrong"),
        }
    }
}

impl core::error::Error for BadSndu {}

impl<'p> Received<'p> {
    /// Reads one whole SNDU.
    #[inline]
    pub fn read(sndu: &'p [u8]) -> Result<Self, BadSndu> {
        let start = sndu.first_chunk().ok_or(BadSndu::Length)?;
        if Start::read(*start) != Start::Octets(sndu.len()) {
            return Err(BadSndu::Length);
        }
        Self::delimited(sndu)
    }

    /// The same of octets whose length is known to be right.
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
