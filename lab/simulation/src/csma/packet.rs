//! Packets of a network: with a size, written as IPv6, and parsed again.

use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::header::protocol;

use crate::tcp::TcpSegment;

/// Prefix that all nodes share: fd00::/64.
const PREFIX: [u8; 8] = [0xFD, 0, 0, 0, 0, 0, 0, 0];

/// Length of the prefix in bits.
pub(super) const PREFIX_BITS: u8 = 64;

/// IPH of Ayadi and Awang (2010), table I: 160 bits.
const IP_HEADER: usize = 20;

/// Initial Hop Limit.
const HOP_LIMIT: u8 = 64;

/// Ports of a [`TcpSegment`]: of the lower-numbered node, and of the other.
const PORTS: [u16; 2] = [49_200, 5_000];

/// IPv6 address of a node: its interface identifier derives from its short address. RFC 4944, section 6.
pub fn address(node: u16) -> [u8; 16] {
    let mut address = [0; 16];
    address[..8].copy_from_slice(&PREFIX);
    address[8..14].copy_from_slice(&[0, 0, 0, 0xFF, 0xFE, 0]);
    address[14..].copy_from_slice(&node.to_be_bytes());
    address
}

/// Node with that address.
pub(super) fn node(of: &[u8; 16]) -> Option<u16> {
    let [.., high, low] = *of;
    let node = u16::from_be_bytes([high, low]);
    (address(node) == *of).then_some(node)
}

/// Packet of a network.
pub trait CsmaPacket: Sized {
    /// Size of the packet in octets, for framings that only count.
    fn octets(&self) -> u16;

    /// Appends the IPv6 packet from `from` to `to` to `out`.
    fn write(&self, from: u16, to: u16, out: &mut Vec<u8>);

    /// Parses an IPv6 packet; `None` if it is damaged.
    fn read(ipv6: &[u8]) -> Option<Self>;
}

/// IPv6 packet. For framings that only count, its size is that of all its octets.
impl CsmaPacket for Vec<u8> {
    fn octets(&self) -> u16 {
        u16::try_from(self.len()).unwrap_or(u16::MAX)
    }

    fn write(&self, _from: u16, _to: u16, out: &mut Self) {
        out.extend_from_slice(self);
    }

    fn read(ipv6: &[u8]) -> Option<Self> {
        Some(ipv6.to_vec())
    }
}

/// TCP segment. For framings that only count, it has the IP header of Ayadi and Awang.
impl CsmaPacket for TcpSegment {
    fn octets(&self) -> u16 {
        let octets = IP_HEADER + self.header_len() + self.payload.len();
        u16::try_from(octets).unwrap_or(u16::MAX)
    }

    fn write(&self, from: u16, to: u16, out: &mut Vec<u8>) {
        let (source, destination) = (address(from), address(to));
        let [low, high] = PORTS;
        let (source_port, destination_port) = if from < to { (low, high) } else { (high, low) };
        let octets = Self::write(self, source_port, destination_port, pseudo(&source, &destination));
        header(&source, &destination, protocol::TCP, octets.len(), out);
        out.extend_from_slice(&octets);
    }

    fn read(ipv6: &[u8]) -> Option<Self> {
        let header = Ipv6::read(ipv6).ok()?;
        let octets = ipv6.get(Ipv6::LEN..)?;
        let is_tcp =
            header.next_header == protocol::TCP && usize::from(header.payload_length) == octets.len();
        let (_, _, segment) =
            Self::read(octets, pseudo(&header.source, &header.destination)).ok().filter(|_| is_tcp)?;
        Some(segment)
    }
}

fn pseudo(source: &[u8; 16], destination: &[u8; 16]) -> Sum {
    Sum::ZERO.octets(source).octets(destination).word(u16::from(protocol::TCP))
}

/// Writes an IPv6 header for a payload of `len` octets.
pub(super) fn header(
    source: &[u8; 16],
    destination: &[u8; 16],
    next_header: u8,
    octets: usize,
    out: &mut Vec<u8>,
) {
    let at = out.len();
    out.resize(at + Ipv6::LEN, 0);
    let header = Ipv6 {
        payload_length: u16::try_from(octets).unwrap_or(u16::MAX),
        next_header,
        hop_limit: HOP_LIMIT,
        source: *source,
        destination: *destination,
        ..Ipv6::default()
    };
    // The buffer has the room.
    let _ = header.write(out, at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_read_again_unless_it_is_damaged() {
        let segment = TcpSegment { sequence_number: 7, payload: vec![1, 2, 3], ..TcpSegment::default() };
        let mut octets = Vec::new();
        CsmaPacket::write(&segment, 0, 5, &mut octets);
        assert_eq!(<TcpSegment as CsmaPacket>::read(&octets), Some(segment));
        assert_eq!(octets.len(), 40 + 20 + 3);
        for at in [6, 24, 44, 62] {
            let mut damaged = octets.clone();
            damaged[at] ^= 1;
            assert_eq!(<TcpSegment as CsmaPacket>::read(&damaged), None, "{at}");
        }
    }

    #[test]
    fn a_node_is_found_by_its_address() {
        assert_eq!(node(&address(517)), Some(517));
        assert_eq!(node(&[1; 16]), None);
    }
}
