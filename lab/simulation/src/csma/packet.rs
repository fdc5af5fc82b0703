//! What goes over a network: packets that can be counted, written as IPv6, and read again.

use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::header::protocol;

use crate::tcp::Segment;

/// Octets of the prefix that all nodes know: fd00::/64.
const PREFIX: [u8; 8] = [0xFD, 0, 0, 0, 0, 0, 0, 0];

/// Bits of it.
pub(super) const PREFIX_BITS: u8 = 64;

/// IPH of Ayadi and Awang (2010), table I: 160 bits.
const IP_HEADER: usize = 20;

/// Hops that a packet may take at first.
const HOP_LIMIT: u8 = 64;

/// Ports of a [`Segment`]: of node 0, say, and of the last one.
const PORTS: [u16; 2] = [49_200, 5_000];

/// The IPv6 address of a node: its interface identifier is that of its short address. RFC 4944, section 6.
pub fn address(node: u16) -> [u8; 16] {
    let mut address = [0; 16];
    address[..8].copy_from_slice(&PREFIX);
    address[8..14].copy_from_slice(&[0, 0, 0, 0xFF, 0xFE, 0]);
    address[14..].copy_from_slice(&node.to_be_bytes());
    address
}

/// The node with that address.
pub(super) fn node(of: &[u8; 16]) -> Option<u16> {
    let [.., high, low] = *of;
    let node = u16::from_be_bytes([high, low]);
    (address(node) == *of).then_some(node)
}

/// Something that goes from node to node.
pub trait Packet: Sized {
    /// Octets of the packet where framings only count.
    fn octets(&self) -> u16;

    /// Puts the IPv6 packet from `from` to `to` behind what `out` holds.
    fn write(&self, from: u16, to: u16, out: &mut Vec<u8>);

    /// What an IPv6 packet is; nothing if it is damaged.
    fn read(ipv6: &[u8]) -> Option<Self>;
}

/// An IPv6 packet as it is. Where framings only count, all of its octets do.
impl Packet for Vec<u8> {
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

/// With the IP header of Ayadi and Awang where framings only count.
impl Packet for Segment {
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

/// Puts an IPv6 header in front of so many octets.
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
    // The room is there.
    let _ = header.write(out, at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_read_again_unless_it_is_damaged() {
        let segment = Segment { sequence_number: 7, payload: vec![1, 2, 3], ..Segment::default() };
        let mut octets = Vec::new();
        Packet::write(&segment, 0, 5, &mut octets);
        assert_eq!(<Segment as Packet>::read(&octets), Some(segment));
        assert_eq!(octets.len(), 40 + 20 + 3);
        for at in [6, 24, 44, 62] {
            let mut damaged = octets.clone();
            damaged[at] ^= 1;
            assert_eq!(<Segment as Packet>::read(&damaged), None, "{at}");
        }
    }

    #[test]
    fn a_node_is_found_by_its_address() {
        assert_eq!(node(&address(517)), Some(517));
        assert_eq!(node(&[1; 16]), None);
    }
}
