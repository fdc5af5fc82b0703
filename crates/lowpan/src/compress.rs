//! Compression of an IPv6 packet into the content of a link frame.

use thinair_wire::coder::{NoRoom, Writer};
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::header::protocol;
use thinair_wire::header::udp::Udp;

use crate::iphc::{Iphc, lowpan_iphc};
use crate::link::{Encapsulation, Links};
use crate::nhc::extension::{self, Eid, ExtensionHeader};
use crate::nhc::udp::{self, UdpNhc};
use crate::{LowpanSettings, MAX_IP, UdpChecksum, dispatch};

/// Result of [`compress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressedPacket {
    /// Octets of the packet that the compressed headers replace; 0 if it is sent uncompressed.
    pub header_in: usize,
    /// Octets of the compressed headers, dispatch included.
    pub header_out: usize,
    /// Octets written: compressed headers and payload.
    pub len: usize,
}

impl CompressedPacket {
    /// Describes a ROHC packet after [`dispatch::ROHC`], `len` octets with it: its octets replace no others, so
    /// sizes and offsets of its fragments count those of the ROHC packet.
    pub const fn rohc(len: usize) -> Self {
        Self { header_in: 0, header_out: dispatch::ROHC.len(), len }
    }
}

/// Reason for the failure of [`compress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressError {
    /// The octets are not an IPv6 packet: another version, or shorter than a header.
    NotIpv6,
    /// `out` is too short: the length of the packet and one octet is always sufficient.
    OutputTooSmall {
        /// Length of `out`, in octets.
        have: usize,
    },
}

impl core::fmt::Display for CompressError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotIpv6 => write!(f, "not an IPv6 packet"),
            Self::OutputTooSmall { have } => write!(f, "the output buffer of {have} octets is too short"),
        }
    }
}

impl core::error::Error for CompressError {}

/// Compresses an IPv6 packet for a frame between `links`; the output begins with the dispatch octet.
///
/// [`decompress`](crate::decompress) with the same settings and links restores the packet bit for bit. A header
/// that could not be restored is sent in-line, with everything after it; a packet whose Payload Length differs from
/// its length is sent uncompressed, after [`dispatch::IPV6`].
pub fn compress(
    settings: &LowpanSettings,
    links: Links,
    packet: &[u8],
    out: &mut [u8],
) -> Result<CompressedPacket, CompressError> {
    let part = PacketPart { packet, total: packet.len(), elision: Elision::WhereRight };
    compress_part(settings, links, &part, out)
}

/// Beginning of a packet, as in a first fragment; or the whole packet.
pub(crate) struct PacketPart<'p> {
    pub(crate) packet: &'p [u8],
    /// Octets of the whole packet.
    pub(crate) total: usize,
    pub(crate) elision: Elision,
}

/// Policy for the elision of UDP checksums, if it is authorized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elision {
    /// Elide correct checksums; only the whole packet shows whether they are.
    WhereRight,
    /// Elide as the previous node did.
    AsBefore(bool),
}

/// [`compress`] for a part of a packet.
pub(crate) fn compress_part(
    settings: &LowpanSettings,
    links: Links,
    part: &PacketPart<'_>,
    out: &mut [u8],
) -> Result<CompressedPacket, CompressError> {
    let packet = part.packet;
    let outer = Ipv6::read(packet).map_err(|_| CompressError::NotIpv6)?;
    let have = out.len();
    let mut writer = Writer::new(out, 0);
    let header_in = if is_whole(&outer, part.total) {
        headers(&mut writer, settings, Encapsulation::link(links), &outer, part)
    } else {
        writer.copy(&[dispatch::IPV6]);
        0
    };
    let header_out = writer.position();
    writer.copy(packet.get(header_in..).unwrap_or_default());
    match writer.finish() {
        Ok(len) => Ok(CompressedPacket { header_in, header_out, len }),
        Err(NoRoom) => Err(CompressError::OutputTooSmall { have }),
    }
}

/// True if Payload Length can be inferred: it agrees with the packet's length of `len` octets.
fn is_whole(header: &Ipv6, len: usize) -> bool {
    len == Ipv6::LEN + usize::from(header.payload_length)
}

/// A header that can be compressed. In LOWPAN_NHC a header contains whether the next one is compressed, so the next
/// one is examined before the header is written.
enum CompressibleHeader<'p> {
    Ipv6(Ipv6),
    Extension(ExtensionHeader<'p>),
    Udp(UdpNhc),
}

/// State of the compression of consecutive headers.
struct CompressionChain<'a> {
    settings: &'a LowpanSettings,
    elision: Elision,
    /// Encapsulation of the innermost IPv6 header so far.
    encapsulation: Encapsulation,
    /// Innermost IPv6 header so far.
    ip: Ipv6,
    ip_count: usize,
    /// True if the UDP checksum covers the octets that follow.
    is_checksum_plain: bool,
}

/// Writes the headers that can be compressed, and returns their end in the packet.
fn headers(
    writer: &mut Writer<'_>,
    settings: &LowpanSettings,
    encapsulation: Encapsulation,
    outer: &Ipv6,
    part: &PacketPart<'_>,
) -> usize {
    let elision = part.elision;
    let mut chain = CompressionChain {
        settings,
        elision,
        encapsulation,
        ip: *outer,
        ip_count: 1,
        is_checksum_plain: true,
    };
    let mut at = Ipv6::LEN;
    let mut current = CompressibleHeader::Ipv6(*outer);
    loop {
        let rest = part.packet.get(at..).unwrap_or_default();
        let left = part.total.saturating_sub(at);
        let next = match &current {
            CompressibleHeader::Ipv6(header) => chain.header(header.next_header, rest, left),
            // After the header of a fragment, octets only look like a header.
            CompressibleHeader::Extension(header) if header.is_part() => None,
            CompressibleHeader::Extension(header) => chain.header(header.next_header, rest, left),
            CompressibleHeader::Udp(_) => None,
        };
        chain.write(writer, current, next.is_some());
        let Some((header, len)) = next else { return at };
        chain.enter(&header);
        current = header;
        at += len;
    }
}

impl CompressionChain<'_> {
    /// Returns the header of type `protocol` at the start of `rest`, and its length, if it can be compressed. From
    /// there on the whole packet has `left` octets.
    fn header<'p>(
        &self,
        protocol: u8,
        rest: &'p [u8],
        left: usize,
    ) -> Option<(CompressibleHeader<'p>, usize)> {
        match protocol {
            protocol::UDP => {
                let header = Udp::read(rest).ok()?;
                (usize::from(header.length) == left).then_some(())?;
                let elided = self.may_elide(&header, rest);
                Some((CompressibleHeader::Udp(UdpNhc::compress(&header, elided)), Udp::LEN))
            }
            protocol::IPV6 => {
                let header = Ipv6::read(rest).ok()?;
                (is_whole(&header, left) && self.ip_count < MAX_IP).then_some(())?;
                Some((CompressibleHeader::Ipv6(header), Ipv6::LEN))
            }
            _ => {
                let (header, len) = ExtensionHeader::compress(protocol, rest)?;
                Some((CompressibleHeader::Extension(header), len))
            }
        }
    }

    /// True if the checksum may be elided: it is correct, so that computation restores it.
    fn may_elide(&self, header: &Udp, datagram: &[u8]) -> bool {
        match (self.settings.udp_checksum, self.elision) {
            (UdpChecksum::InLine, _) => false,
            (UdpChecksum::Elided, Elision::AsBefore(elided)) => elided && self.is_checksum_plain,
            (UdpChecksum::Elided, Elision::WhereRight) => {
                let Ipv6 { source, destination, .. } = &self.ip;
                self.is_checksum_plain && header.checksum == udp::checksum(source, destination, datagram)
            }
        }
    }

    /// Moves on to the octets after `header`.
    fn enter(&mut self, header: &CompressibleHeader<'_>) {
        match header {
            CompressibleHeader::Ipv6(inner) => {
                self.encapsulation = Encapsulation::ipv6(&self.ip.source, &self.ip.destination);
                self.ip = *inner;
                self.ip_count += 1;
                self.is_checksum_plain = true;
            }
            CompressibleHeader::Extension(header) => self.is_checksum_plain &= !header.hides_checksum(),
            CompressibleHeader::Udp(_) => {}
        }
    }

    fn write(&self, writer: &mut Writer<'_>, header: CompressibleHeader<'_>, nh: bool) {
        // No value is rejected: all were chosen to fit. Lack of room is reported at the end.
        let _ = match header {
            CompressibleHeader::Ipv6(header) => {
                if self.ip_count > 1 {
                    let _ = extension::extension(writer, &mut ExtensionHeader::new(Eid::Ipv6));
                }
                let contexts = &self.settings.contexts;
                lowpan_iphc(writer, &mut Iphc::compress(&header, nh, contexts, self.encapsulation))
            }
            CompressibleHeader::Extension(mut header) => {
                header.nh = nh;
                extension::extension(writer, &mut header)
            }
            CompressibleHeader::Udp(mut header) => udp::udp(writer, &mut header),
        };
    }
}
