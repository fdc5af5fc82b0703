//! Decompression of the content of a link frame into an IPv6 packet.

use thinair_wire::coder::{Reader, Refusal};
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::header::protocol;
use thinair_wire::header::udp::Udp;

use crate::address::{AddressFault, Role};
use crate::iphc::{Iphc, lowpan_iphc};
use crate::link::{Encapsulation, Links};
use crate::nhc::Nhc;
use crate::nhc::extension::{Eid, ExtensionHeader};
use crate::nhc::udp::{self, UdpNhc};
use crate::{LowpanSettings, MAX_IP, UdpChecksum, dispatch};

/// Result of [`decompress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decompressed {
    /// Octets of the compressed headers, dispatch included.
    pub header_in: usize,
    /// Octets of the packet that they replace; 0 if it was sent uncompressed.
    pub header_out: usize,
    /// Octets written: the packet.
    pub len: usize,
}

/// Reason for the failure of [`decompress`]. Offsets count octets of the frame's content from its dispatch octet on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecompressError {
    /// The peer sent something other than LOWPAN_IPHC or IPv6: a fragment, another protocol.
    Dispatch {
        /// The dispatch octet.
        octet: u8,
    },
    /// The peer sent a malformed header: cut off, a reserved value, or an inconsistent length.
    Malformed {
        /// Offset at which decoding ended.
        offset: usize,
    },
    /// The peer sent a header whose NHC ID is not defined in RFC 6282.
    UnknownNhc {
        /// Offset of the NHC ID.
        offset: usize,
    },
    /// The peer nests more than 4 IPv6 headers.
    TooDeep {
        /// Offset of the fifth header.
        offset: usize,
    },
    /// The peer used an unknown context.
    NoContext {
        /// Offset of its header.
        offset: usize,
        /// Context number.
        id: u8,
    },
    /// The peer derived an interface identifier from the link address, and the caller gave none.
    NoLinkAddress {
        /// Offset of the header.
        offset: usize,
    },
    /// The peer elided a UDP checksum without authorization, or it cannot be computed here.
    ChecksumElided {
        /// Offset of the UDP header.
        offset: usize,
    },
    /// The packet is longer than the maximum of Payload Length.
    TooLong,
    /// `out` is too short.
    OutputTooSmall {
        /// Length of `out`, in octets.
        have: usize,
    },
}

impl core::fmt::Display for DecompressError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Dispatch { octet } => write!(f, "dispatch {octet:#04x} is neither LOWPAN_IPHC nor IPv6"),
            Self::Malformed { offset } => write!(f, "malformed header before octet {offset}"),
            Self::UnknownNhc { offset } => write!(f, "unknown LOWPAN_NHC at octet {offset}"),
            Self::TooDeep { offset } => write!(f, "more than 4 nested IPv6 headers, at octet {offset}"),
            Self::NoContext { offset, id } => {
                write!(f, "unknown context {id} in the header at octet {offset}")
            }
            Self::NoLinkAddress { offset } => {
                write!(f, "the header at octet {offset} needs a link address that was not given")
            }
            Self::ChecksumElided { offset } => {
                write!(
                    f,
                    "the UDP header at octet {offset} has no checksum, but its elision is not authorized"
                )
            }
            Self::TooLong => write!(f, "the packet exceeds the maximum of Payload Length"),
            Self::OutputTooSmall { have } => write!(f, "the output buffer of {have} octets is too short"),
        }
    }
}

impl core::error::Error for DecompressError {}

/// Decompresses the content of a frame between `links`, from its dispatch octet on, into an IPv6 packet.
///
/// Lengths are inferred from the end of `octets`: security and check sequence of the frame must have been removed.
/// After an error the content of `out` is unspecified.
pub fn decompress(
    settings: &LowpanSettings,
    links: Links,
    octets: &[u8],
    out: &mut [u8],
) -> Result<Decompressed, DecompressError> {
    let (done, elided) = decompress_part(settings, links, octets, None, out)?;
    if let Some(elided) = elided {
        elided.fill_in(out.get_mut(..done.len).unwrap_or_default());
    }
    Ok(done)
}

/// A UDP checksum that is computed when the whole packet is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElidedChecksum {
    /// Offsets of the IPv6 header and the UDP header.
    ip: usize,
    udp: usize,
}

impl ElidedChecksum {
    pub(crate) fn fill_in(self, packet: &mut [u8]) {
        let Some(Ok(ip)) = packet.get(self.ip..).map(Ipv6::read) else { return };
        let datagram = packet.get(self.udp..).unwrap_or_default();
        let checksum = udp::checksum(&ip.source, &ip.destination, datagram);
        if let Some(place) = packet.get_mut(self.udp + CHECKSUM..).and_then(|rest| rest.first_chunk_mut()) {
            *place = checksum.to_be_bytes();
        }
    }
}

/// [`decompress`] without the computation of an elided checksum. For a first fragment, `total` is the length of the
/// whole packet in octets, from which lengths follow.
pub(crate) fn decompress_part(
    settings: &LowpanSettings,
    links: Links,
    octets: &[u8],
    total: Option<usize>,
    out: &mut [u8],
) -> Result<(Decompressed, Option<ElidedChecksum>), DecompressError> {
    match *octets {
        [] => Err(DecompressError::Malformed { offset: 0 }),
        [dispatch::IPV6, ref packet @ ..] => {
            Ipv6::read(packet).map_err(|_| DecompressError::Malformed { offset: 1 })?;
            let mut packet_out = OutputBuffer { out, at: 0 };
            packet_out.room(packet.len())?.copy_from_slice(packet);
            Ok((Decompressed { header_in: 1, header_out: 0, len: packet.len() }, None))
        }
        [octet, ..] if dispatch::is_lowpan_iphc(octet) => {
            let mut packet = PacketBuilder {
                settings,
                encapsulation: Encapsulation::link(links),
                reader: Reader::contiguous(octets),
                output: OutputBuffer { out, at: 0 },
                ips: [0; MAX_IP],
                ip_count: 0,
                next_header_at: 0,
                is_checksum_plain: true,
                udp: None,
            };
            packet.headers()?;
            packet.payload(total)
        }
        [octet, ..] => Err(DecompressError::Dispatch { octet }),
    }
}

/// The part of the packet that is written.
struct OutputBuffer<'o> {
    out: &'o mut [u8],
    at: usize,
}

impl OutputBuffer<'_> {
    /// Returns the place of the next `len` octets.
    fn room(&mut self, len: usize) -> Result<&mut [u8], DecompressError> {
        let have = self.out.len();
        let end = self.at.saturating_add(len);
        let room = self.out.get_mut(self.at..end).ok_or(DecompressError::OutputTooSmall { have })?;
        self.at = end;
        Ok(room)
    }

    /// Sets octets that were written before.
    fn set<const N: usize>(&mut self, at: usize, octets: [u8; N]) {
        if let Some(place) = self.out.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *place = octets;
        }
    }
}

/// A packet whose headers are being restored. Lengths and an elided checksum are filled in when its end is known.
struct PacketBuilder<'p, 'o> {
    settings: &'p LowpanSettings,
    /// Encapsulation of the next IPv6 header.
    encapsulation: Encapsulation,
    reader: Reader<'p>,
    output: OutputBuffer<'o>,
    /// Offsets of the IPv6 headers in the output.
    ips: [usize; MAX_IP],
    ip_count: usize,
    /// Offset of an elided Next Header in the output.
    next_header_at: usize,
    /// True if the UDP checksum covers the octets that follow.
    is_checksum_plain: bool,
    /// Offset of the UDP header in the output, and true if its checksum is to be computed.
    udp: Option<(usize, bool)>,
}

impl<'p> PacketBuilder<'p, '_> {
    /// Returns the error of a malformed header at the present offset.
    fn malformed(&self) -> DecompressError {
        DecompressError::Malformed { offset: self.reader.position() }
    }

    /// Restores the compressed headers.
    fn headers(&mut self) -> Result<(), DecompressError> {
        let mut nh = self.ipv6()?;
        while nh {
            let offset = self.reader.position();
            let header = Nhc::read(&mut self.reader).map_err(|refusal| match refusal {
                Refusal::NotThis => DecompressError::UnknownNhc { offset },
                Refusal::DoesNotFit | Refusal::Malformed => self.malformed(),
            })?;
            nh = match header {
                Nhc::Udp(header) => self.udp(&header, offset)?,
                Nhc::Extension(header) if header.eid == Eid::Ipv6 => {
                    self.output.set(self.next_header_at, [protocol::IPV6]);
                    self.ipv6()?
                }
                Nhc::Extension(header) => self.extension(&header)?,
            };
        }
        Ok(())
    }

    /// Restores an IPv6 header; returns true if LOWPAN_NHC follows.
    fn ipv6(&mut self) -> Result<bool, DecompressError> {
        let offset = self.reader.position();
        let mut iphc = Iphc::default();
        lowpan_iphc(&mut self.reader, &mut iphc).map_err(|_| self.malformed())?;
        let header =
            iphc.expand(&self.settings.contexts, self.encapsulation).map_err(|(role, fault)| {
                match (fault, role) {
                    (AddressFault::Reserved, _) => DecompressError::Malformed { offset },
                    (AddressFault::NoLinkAddress, _) => DecompressError::NoLinkAddress { offset },
                    (AddressFault::NoContext, Role::Source) => {
                        DecompressError::NoContext { offset, id: iphc.source.context }
                    }
                    (AddressFault::NoContext, Role::Destination) => {
                        DecompressError::NoContext { offset, id: iphc.destination.context }
                    }
                }
            })?;
        let start = self.output.at;
        *self.ips.get_mut(self.ip_count).ok_or(DecompressError::TooDeep { offset })? = start;
        self.ip_count += 1;
        // The room is as long as the header.
        let _ = header.write(self.output.room(Ipv6::LEN)?, 0);
        self.next_header_at = start + NEXT_HEADER;
        self.encapsulation = Encapsulation::ipv6(&header.source, &header.destination);
        self.is_checksum_plain = true;
        Ok(iphc.nh)
    }

    fn extension(&mut self, header: &ExtensionHeader<'p>) -> Result<bool, DecompressError> {
        let len = header.expanded_len().ok_or_else(|| self.malformed())?;
        self.output.set(self.next_header_at, [header.eid.protocol()]);
        self.next_header_at = self.output.at;
        header.expand(self.output.room(len)?);
        self.is_checksum_plain &= !header.hides_checksum();
        Ok(header.nh)
    }

    fn udp(&mut self, header: &UdpNhc, offset: usize) -> Result<bool, DecompressError> {
        let is_agreed = match self.settings.udp_checksum {
            UdpChecksum::InLine => false,
            UdpChecksum::Elided => self.is_checksum_plain,
        };
        if header.c && !is_agreed {
            return Err(DecompressError::ChecksumElided { offset });
        }
        self.output.set(self.next_header_at, [protocol::UDP]);
        self.udp = Some((self.output.at, header.c));
        let header = Udp {
            source_port: header.source_port,
            destination_port: header.destination_port,
            length: 0,
            checksum: header.checksum,
        };
        // The room is as long as the header.
        let _ = header.write(self.output.room(Udp::LEN)?, 0);
        Ok(false)
    }

    /// Copies the payload, and fills in the fields that depend on the length of the packet.
    fn payload(
        mut self,
        total: Option<usize>,
    ) -> Result<(Decompressed, Option<ElidedChecksum>), DecompressError> {
        let (header_in, header_out) = (self.reader.position(), self.output.at);
        let payload = self.reader.remaining();
        self.output.room(payload.len())?.copy_from_slice(payload);
        let len = self.output.at;
        let total = total.unwrap_or(len);
        // A part is not longer than the whole.
        if len > total {
            return Err(DecompressError::Malformed { offset: header_in + payload.len() });
        }
        let length_from =
            |start: usize| u16::try_from(total.saturating_sub(start)).map_err(|_| DecompressError::TooLong);
        for start in self.ips.into_iter().take(self.ip_count) {
            let length = length_from(start + Ipv6::LEN)?;
            self.output.set(start + PAYLOAD_LENGTH, length.to_be_bytes());
        }
        let mut elided = None;
        if let Some((start, is_elided)) = self.udp {
            self.output.set(start + LENGTH, length_from(start)?.to_be_bytes());
            let ip = self.ip_count.checked_sub(1).and_then(|last| self.ips.get(last));
            elided = ip.filter(|_| is_elided).map(|&ip| ElidedChecksum { ip, udp: start });
        }
        Ok((Decompressed { header_in, header_out, len }, elided))
    }
}

/// Offsets of fields in an IPv6 and a UDP header.
const PAYLOAD_LENGTH: usize = 4;
const NEXT_HEADER: usize = 6;
const LENGTH: usize = 4;
const CHECKSUM: usize = 6;
