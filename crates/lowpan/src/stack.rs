//! Header stack of a frame's content: mesh, broadcast and fragmentation header, in this order, and the content after
//! them. RFC 4944, section 5.
//!
//! Mesh and broadcast headers are decoded; forwarding by them is the application's.

use thinair_wire::coder::{Coder, NoRoom, Reader, Refusal, Step, Writer};

use crate::dispatch::{self, Dispatch};
use crate::fragment::{FragmentHeader, fragment_header};
use crate::link::{LinkAddress, Links};

/// A Mesh Addressing Header. RFC 4944, section 5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeshHeader {
    /// Remaining hops. 15 and more are Deep Hops Left, in an octet of their own.
    pub hops_left: u8,
    /// Originator and Final Destination; both must be present.
    pub links: Links,
}

/// Headers before a packet or fragment, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderStack<'p> {
    /// Addresses of the packet: those of the mesh header, or else those of the frame. Interface identifiers are
    /// derived from them, and they distinguish fragments of packets.
    pub links: Links,
    /// Hops Left of the mesh header, if there is one.
    pub hops_left: Option<u8>,
    /// Sequence Number of LOWPAN_BC0, if there is one.
    pub broadcast: Option<u8>,
    /// The fragmentation header, if there is one.
    pub fragment: Option<FragmentHeader>,
    /// Octets of all these headers.
    pub offset: usize,
    /// Content after the headers.
    pub content: StackContent<'p>,
}

/// Content after the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackContent<'p> {
    /// An IPv6 packet, or its first fragment, from its dispatch octet on: for [`crate::decompress`], or
    /// [`Reassembler`](crate::reassembly::Reassembler).
    Ipv6(&'p [u8]),
    /// A ROHC packet, or its first fragment, from its dispatch octets on, which are [`dispatch::ROHC`].
    Rohc(&'p [u8]),
    /// A subsequent fragment.
    Part(&'p [u8]),
}

impl<'p> StackContent<'p> {
    /// Returns the octets, dispatch included.
    pub const fn octets(self) -> &'p [u8] {
        match self {
            Self::Ipv6(octets) | Self::Rohc(octets) | Self::Part(octets) => octets,
        }
    }
}

/// Reason why a frame's content is not supported. Offsets are in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackError {
    /// It ends within a header, or is empty.
    Truncated {
        /// Offset of the end.
        offset: usize,
    },
    /// Another dispatch: LOWPAN_HC1, NALP, an unknown one, or a header in the wrong place.
    Dispatch {
        /// Offset of the octet.
        offset: usize,
        /// Dispatch octet.
        octet: u8,
    },
}

impl core::fmt::Display for StackError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Truncated { offset } => write!(f, "cut off at octet {offset}"),
            Self::Dispatch { offset, octet } => {
                let name = Dispatch::of(*octet).name();
                write!(f, "dispatch {octet:#04x} ({name}) at octet {offset} is not supported there")
            }
        }
    }
}

impl core::error::Error for StackError {}

impl<'p> HeaderStack<'p> {
    /// Reads the headers of `octets`, the payload of a frame between `links`.
    pub fn read(links: Links, octets: &'p [u8]) -> Result<Self, StackError> {
        let mut reader = Reader::contiguous(octets);
        let mut fields = MeshFields::default();
        let mesh = optional(&mut reader, |reader| mesh_header(reader, &mut fields))?.map(|()| fields.mesh());
        let mut sequence_number = 0;
        let broadcast = optional(&mut reader, |reader| broadcast_header(reader, &mut sequence_number))?;
        let mut header = FragmentHeader::default();
        let fragment = optional(&mut reader, |reader| fragment_header(reader, &mut header))?;
        let (offset, rest) = (reader.position(), reader.remaining());
        let fragment = fragment.map(|()| header);
        let is_part = fragment.is_some_and(|header| header.datagram_offset.is_some());
        let content = match *rest {
            [] => return Err(StackError::Truncated { offset }),
            _ if is_part => StackContent::Part(rest),
            [dispatch::IPV6, ..] => StackContent::Ipv6(rest),
            [octet, ..] if dispatch::is_lowpan_iphc(octet) => StackContent::Ipv6(rest),
            [page, octet, ..] if [page, octet] == dispatch::ROHC => StackContent::Rohc(rest),
            [octet, ..] => return Err(StackError::Dispatch { offset, octet }),
        };
        Ok(Self {
            links: mesh.map_or(links, |mesh| mesh.links),
            hops_left: mesh.map(|mesh| mesh.hops_left),
            broadcast: broadcast.map(|()| sequence_number),
            fragment,
            offset,
            content,
        })
    }
}

impl MeshHeader {
    /// Writes the header at the start of `out`, and returns its end; `None` if there is no room, or an address is
    /// missing.
    pub fn write(&self, out: &mut [u8]) -> Option<usize> {
        let mut fields = MeshFields::of(self)?;
        let mut writer = Writer::new(out, 0);
        mesh_header(&mut writer, &mut fields).ok()?;
        writer.finish().ok()
    }
}

/// Writes a broadcast header at the start of `out`, and returns its end. RFC 4944, section 11.1.
pub fn write_broadcast(mut sequence_number: u8, out: &mut [u8]) -> Result<usize, NoRoom> {
    let mut writer = Writer::new(out, 0);
    // No value is rejected.
    let _ = broadcast_header(&mut writer, &mut sequence_number);
    writer.finish()
}

/// Reads a header if it is present.
fn optional<'p>(
    reader: &mut Reader<'p>,
    format: impl FnOnce(&mut Reader<'p>) -> Step,
) -> Result<Option<()>, StackError> {
    let start = *reader;
    match format(reader) {
        Ok(()) => Ok(Some(())),
        Err(Refusal::NotThis) => {
            *reader = start;
            Ok(None)
        }
        Err(Refusal::DoesNotFit | Refusal::Malformed) => {
            Err(StackError::Truncated { offset: reader.position() })
        }
    }
}

/// `10 V F HopsLft`, Deep Hops Left, addresses. RFC 4944, section 5.2, figure 3.
fn mesh_header<'p, C: Coder<'p>>(c: &mut C, h: &mut MeshFields) -> Step {
    c.discriminator(2, 0b10)?;
    c.flag("V", &mut h.originator.is_short)?;
    c.flag("F", &mut h.final_destination.is_short)?;
    c.uint("HopsLft", 4, &mut h.hops_left)?;
    if h.hops_left == DEEP {
        c.uint("Deep Hops Left", 8, &mut h.deep_hops_left)?;
    }
    h.originator.code(c, "originator address")?;
    h.final_destination.code(c, "final address")
}

/// `LOWPAN_BC0`: Sequence Number. RFC 4944, section 11.1, figure 11.
fn broadcast_header<'p, C: Coder<'p>>(c: &mut C, sequence_number: &mut u8) -> Step {
    c.discriminator(8, u32::from(dispatch::LOWPAN_BC0))?;
    c.uint("Sequence Number", 8, sequence_number)
}

/// HopsLft of a header with Deep Hops Left.
const DEEP: u8 = 0xF;

#[derive(Clone, Copy, Default)]
struct MeshFields {
    hops_left: u8,
    deep_hops_left: u8,
    originator: MeshAddress,
    final_destination: MeshAddress,
}

#[derive(Clone, Copy, Default)]
struct MeshAddress {
    is_short: bool,
    short: u16,
    extended: [u8; 8],
}

impl MeshFields {
    fn of(mesh: &MeshHeader) -> Option<Self> {
        Some(Self {
            hops_left: mesh.hops_left.min(DEEP),
            deep_hops_left: mesh.hops_left,
            originator: MeshAddress::of(mesh.links.source)?,
            final_destination: MeshAddress::of(mesh.links.destination)?,
        })
    }

    const fn mesh(&self) -> MeshHeader {
        let hops_left = if self.hops_left == DEEP { self.deep_hops_left } else { self.hops_left };
        let links = Links { source: self.originator.link(), destination: self.final_destination.link() };
        MeshHeader { hops_left, links }
    }
}

impl MeshAddress {
    const fn of(address: LinkAddress) -> Option<Self> {
        Some(match address {
            LinkAddress::None => return None,
            LinkAddress::Short(short) => Self { is_short: true, short, extended: [0; 8] },
            LinkAddress::Extended(extended) => Self { is_short: false, short: 0, extended },
        })
    }

    const fn link(&self) -> LinkAddress {
        if self.is_short { LinkAddress::Short(self.short) } else { LinkAddress::Extended(self.extended) }
    }

    fn code<'p, C: Coder<'p>>(&mut self, c: &mut C, name: &'static str) -> Step {
        if self.is_short { c.uint(name, 16, &mut self.short) } else { c.octets(name, &mut self.extended) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SHORT: LinkAddress = LinkAddress::Short(0x0102);
    const LONG: LinkAddress = LinkAddress::Extended(*b"\x02abcdefg");
    const LINKS: Links = Links { source: SHORT, destination: LONG };

    #[test]
    fn a_mesh_header_has_the_octets_of_figure_3() {
        let cases: [(MeshHeader, &[u8]); 3] = [
            (MeshHeader { hops_left: 14, links: LINKS }, b"\xae\x01\x02\x02abcdefg"),
            (
                MeshHeader { hops_left: 15, links: Links { source: LONG, destination: SHORT } },
                b"\x9f\x0f\x02abcdefg\x01\x02",
            ),
            (
                MeshHeader { hops_left: 255, links: Links { source: SHORT, destination: SHORT } },
                b"\xbf\xff\x01\x02\x01\x02",
            ),
        ];
        for (mesh, expected) in cases {
            let mut out = [0; 32];
            let end = mesh.write(&mut out).unwrap();
            assert_eq!(out[..end], *expected);
            out[end] = dispatch::IPV6;
            let stack = HeaderStack::read(Links::default(), &out).unwrap();
            assert_eq!((stack.links, stack.hops_left), (mesh.links, Some(mesh.hops_left)));
            assert_eq!(stack.offset, end);
            for len in 0..end {
                assert_eq!(mesh.write(&mut out[..len]), None);
            }
        }
        assert_eq!(MeshHeader { hops_left: 1, links: Links::default() }.write(&mut [0; 32]), None);
    }

    #[test]
    fn headers_are_read_in_their_order() {
        let octets = b"\xb5\x00\x01\x00\x02\x50\x07\xc1\x00\xab\xcd\x41rest";
        let stack = HeaderStack::read(LINKS, octets).unwrap();
        let links = Links { source: LinkAddress::Short(1), destination: LinkAddress::Short(2) };
        assert_eq!((stack.links, stack.hops_left, stack.broadcast), (links, Some(5), Some(7)));
        assert_eq!(stack.fragment, Some(FragmentHeader::first(0x100, 0xABCD)));
        assert_eq!((stack.offset, stack.content), (11, StackContent::Ipv6(b"\x41rest")));
        for len in 0..12 {
            assert!(
                matches!(HeaderStack::read(LINKS, &octets[..len]), Err(StackError::Truncated { .. })),
                "{len}"
            );
        }
        let stack = HeaderStack::read(LINKS, b"\xff\x52\xfd").unwrap();
        assert_eq!((stack.links, stack.content), (LINKS, StackContent::Rohc(b"\xff\x52\xfd")));
        assert_eq!((stack.hops_left, stack.broadcast, stack.fragment), (None, None, None));
        let stack = HeaderStack::read(LINKS, b"\xe1\x00\xab\xcd\x02\x00").unwrap();
        assert_eq!(stack.content, StackContent::Part(b"\x00"));
    }

    #[test]
    fn what_is_not_supported_is_reported() {
        for octet in [0x00, 0x3F, 0x40, dispatch::LOWPAN_HC1, 0x43, 0x44, 0xC8, 0xE8, 0xF1, 0xFF] {
            assert_eq!(HeaderStack::read(LINKS, &[octet, 1]), Err(StackError::Dispatch { offset: 0, octet }));
        }
        // A mesh header after a broadcast header.
        let error = HeaderStack::read(LINKS, b"\x50\x07\xb5\x00\x01\x00\x02\x41").unwrap_err();
        assert_eq!(error, StackError::Dispatch { offset: 2, octet: 0xB5 });
    }
}
