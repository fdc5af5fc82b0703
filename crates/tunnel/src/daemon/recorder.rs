//! Captures of both sides: packets at the interface, datagrams on the carrier.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use thinair_capture::{LinkType, RecordFile, Timestamp, Writer};
use thinair_wire::checksum;

/// Link type for octets without an assigned type (LINKTYPE_USER0).
const USER0: LinkType = LinkType(147);

/// A capture file, with a record for each packet.
pub(super) struct Recorder {
    writer: Writer<RecordFile>,
    /// This end's address. If present, datagrams are recorded with headers of IP and UDP, which the system
    /// has removed.
    own: Option<SocketAddr>,
    packet: Vec<u8>,
    failed: bool,
}

/// Direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heading {
    Out,
    In,
}

impl Recorder {
    /// Opens a capture of packets, or frames.
    pub(super) fn inside(path: &Path, bridged: bool) -> io::Result<Self> {
        Self::new(path, if bridged { LinkType::ETHERNET } else { LinkType::RAW }, None)
    }

    /// Opens a capture of datagrams of a socket, or of frames of a line without their delimiters.
    pub(super) fn outside(path: &Path, own: Option<SocketAddr>) -> io::Result<Self> {
        Self::new(path, if own.is_some() { LinkType::RAW } else { USER0 }, own)
    }

    fn new(path: &Path, link_type: LinkType, own: Option<SocketAddr>) -> io::Result<Self> {
        let mut writer = Writer::new(RecordFile::create(path)?, link_type)?;
        writer.get_mut().end_record()?;
        Ok(Self { writer, own, packet: Vec::new(), failed: false })
    }

    /// Records a packet at the interface.
    pub(super) fn packet(&mut self, packet: &[u8]) {
        let written = self.writer.write(time(), packet).and_then(|()| self.writer.get_mut().end_record());
        self.check(written);
    }

    /// Records a datagram of the carrier.
    pub(super) fn datagram(&mut self, heading: Heading, other: Option<SocketAddr>, datagram: &[u8]) {
        let Some(own) = self.own else { return self.packet(datagram) };
        let unknown = SocketAddr::new(unspecified(own.is_ipv4()), 0);
        let other = other.unwrap_or(unknown);
        let (from, to) = match heading {
            Heading::Out => (own, other),
            Heading::In => (other, own),
        };
        self.packet.clear();
        headers(from, to, datagram, &mut self.packet);
        self.packet.extend_from_slice(datagram);
        let written =
            self.writer.write(time(), &self.packet).and_then(|()| self.writer.get_mut().end_record());
        self.check(written);
    }

    /// Writes buffered records to the file.
    pub(super) fn flush(&mut self) {
        let flushed = self.writer.flush();
        self.check(flushed);
    }

    /// Stops recording after an error; the tunnel continues.
    fn check(&mut self, result: io::Result<()>) {
        if let Err(error) = result
            && !std::mem::replace(&mut self.failed, true)
        {
            tracing::error!(%error, "a capture ends before the tunnel does");
        }
    }
}

fn time() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

fn unspecified(is_ipv4: bool) -> IpAddr {
    if is_ipv4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

/// Appends headers of IP and UDP. The checksum of UDP is computed for IPv6, and omitted for IPv4 (RFC 768).
fn headers(from: SocketAddr, to: SocketAddr, datagram: &[u8], out: &mut Vec<u8>) {
    let udp = 8 + datagram.len();
    let length = |octets: usize| u16::try_from(octets).unwrap_or(u16::MAX).to_be_bytes();
    match (from.ip().to_canonical(), to.ip().to_canonical()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let start = out.len();
            out.extend([0x45, 0]);
            out.extend(length(20 + udp));
            // Identification, Don't Fragment, Time to Live, Protocol.
            out.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
            out.extend(source.octets());
            out.extend(destination.octets());
            let sum = checksum::checksum(&out[start..]);
            out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
            out.extend(from.port().to_be_bytes());
            out.extend(to.port().to_be_bytes());
            out.extend(length(udp));
            out.extend([0, 0]);
        }
        (source, destination) => {
            let six = |address: IpAddr| match address {
                IpAddr::V6(address) => address,
                IpAddr::V4(address) => address.to_ipv6_mapped(),
            };
            let start = out.len();
            out.extend([0x60, 0, 0, 0]);
            out.extend(length(udp));
            out.extend([17, 64]);
            out.extend(six(source).octets());
            out.extend(six(destination).octets());
            let header = out.len();
            out.extend(from.port().to_be_bytes());
            out.extend(to.port().to_be_bytes());
            out.extend(length(udp));
            out.extend([0, 0]);
            // The pseudo-header has addresses, length and Next Header (RFC 8200, section 8.1).
            let mut pseudo = out[start + 8..].to_vec();
            pseudo.extend([&length(udp)[..], &[0, 17], datagram].concat());
            let sum = match checksum::checksum(&pseudo) {
                0 => 0xFFFF,
                sum => sum,
            };
            out[header + 6..header + 8].copy_from_slice(&sum.to_be_bytes());
        }
    }
}
