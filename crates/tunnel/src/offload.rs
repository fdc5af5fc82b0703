//! Work on packets that the system leaves to the reader of a TUN or TAP device, and accepts from its writer: large packets
//! stand for many small ones, and checksums are not computed.
//!
//! A [`Splitter`] makes the packets that one read stands for, in place: each is as the system would have sent it.
//! A [`Coalescer`] makes one write of packets that are segments of one flow, if splitting it yields them again, octet by
//! octet. Headers are those of the driver (`linux/virtio_net.h`; Documentation/networking/segmentation-offloads.rst).
//! Sans-IO.

mod coalesce;
mod split;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use coalesce::Coalescer;
pub use split::{BadOffload, Splitter};

use thinair_wire::checksum::Sum;

/// Length of a [`VirtioHeader`], in octets.
pub const HEADER: usize = 10;

/// The checksum is left to the receiver of the packet (`VIRTIO_NET_HDR_F_NEEDS_CSUM`).
pub const NEEDS_CSUM: u8 = 1;

/// One packet (`VIRTIO_NET_HDR_GSO_NONE`).
pub const GSO_NONE: u8 = 0;
/// Segments of TCP over IPv4 (`VIRTIO_NET_HDR_GSO_TCPV4`).
pub const GSO_TCPV4: u8 = 1;
/// Segments of TCP over IPv6 (`VIRTIO_NET_HDR_GSO_TCPV6`).
pub const GSO_TCPV6: u8 = 4;
/// Datagrams of UDP (`VIRTIO_NET_HDR_GSO_UDP_L4`).
pub const GSO_UDP_L4: u8 = 5;
/// Flag of segments of TCP of which the first one may have CWR (`VIRTIO_NET_HDR_GSO_ECN`).
pub const GSO_ECN: u8 = 0x80;

/// Header before each packet of a device (`struct virtio_net_hdr`), in network octets of a little-endian device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtioHeader {
    /// [`NEEDS_CSUM`], or 0.
    pub flags: u8,
    /// One of the `GSO` constants.
    pub gso_type: u8,
    /// Length of the headers before the payload, in octets. A hint.
    pub hdr_len: u16,
    /// Octets of payload of each segment but the last.
    pub gso_size: u16,
    /// Offset of the first octet that the checksum covers.
    pub csum_start: u16,
    /// Offset of the checksum from there. It holds the sum of the pseudo-header.
    pub csum_offset: u16,
}

impl VirtioHeader {
    /// Parses a header.
    pub fn read(octets: [u8; HEADER]) -> Self {
        let [flags, gso_type, rest @ ..] = octets;
        let word = |at: usize| u16::from_le_bytes([rest[at], rest[at + 1]]);
        Self {
            flags,
            gso_type,
            hdr_len: word(0),
            gso_size: word(2),
            csum_start: word(4),
            csum_offset: word(6),
        }
    }

    /// Returns the octets of the header.
    pub fn octets(&self) -> [u8; HEADER] {
        let mut octets = [0; HEADER];
        octets[..2].copy_from_slice(&[self.flags, self.gso_type]);
        let words = [self.hdr_len, self.gso_size, self.csum_start, self.csum_offset];
        for (place, word) in octets[2..].chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        octets
    }
}

/// Transport protocol of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Tcp,
    Udp,
}

impl Transport {
    /// Protocol number of IP.
    const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    /// Offset of the checksum in the header.
    const fn checksum_at(self) -> usize {
        match self {
            Self::Tcp => 16,
            Self::Udp => 6,
        }
    }

    /// Length of the header at the start of `octets`. `None`: it is truncated or malformed.
    fn header(self, octets: &[u8]) -> Option<usize> {
        let len = match self {
            Self::Tcp => usize::from(octets.get(12)? >> 4) * 4,
            Self::Udp => 8,
        };
        let least = if self == Self::Tcp { 20 } else { 8 };
        (len >= least && octets.len() >= len).then_some(len)
    }

    /// Returns a sum as a checksum. A UDP checksum of 0 would mean none.
    fn checksum(self, sum: Sum) -> u16 {
        match (self, sum.checksum()) {
            (Self::Udp, 0) => 0xFFFF,
            (_, checksum) => checksum,
        }
    }
}

/// TCP flags, in the 14th octet of the header.
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const CWR: u8 = 0x80;

/// Returns the offset of the IP header: behind an Ethernet header with its VLAN tags (IEEE 802.1Q) if `bridged`.
fn network(bridged: bool, packet: &[u8]) -> Option<usize> {
    if !bridged {
        return Some(0);
    }
    let mut at = 12;
    loop {
        match word(packet, at)? {
            0x8100 | 0x88A8 => at += 4,
            _ => return Some(at + 2),
        }
    }
}

fn word(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*octets.get(at..)?.first_chunk()?))
}

/// Replaces octets at an offset that is inside.
fn put<const N: usize>(octets: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(place) = octets.get_mut(at..at + N) {
        place.copy_from_slice(&value);
    }
}

/// Sets the checksum of an IPv4 header.
fn finish_ipv4(header: &mut [u8]) {
    put(header, 10, [0; 2]);
    let checksum = Sum::ZERO.octets(header).checksum();
    put(header, 10, checksum.to_be_bytes());
}
