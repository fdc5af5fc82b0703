//! ROHC packets in UDP datagrams, for networks without ROHC.

use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::header::protocol;
use thinair_wire::header::udp::Udp;

use super::packet::{address, header};

/// One of the 16 ports that LOWPAN_NHC compresses to 4 bits. RFC 6282, section 4.3.1.
const PORT: u16 = 0xF0B1;

/// Datagram between two nodes.
pub(super) fn wrap(from: u16, to: u16, rohc: &[u8]) -> Vec<u8> {
    let (source, destination) = (address(from), address(to));
    let len = Udp::LEN + rohc.len();
    let length = u16::try_from(len).unwrap_or(u16::MAX);
    let mut packet = Vec::with_capacity(Ipv6::LEN + len);
    header(&source, &destination, protocol::UDP, len, &mut packet);
    let sum = Sum::ZERO.octets(&source).octets(&destination).word(u16::from(protocol::UDP)).word(length);
    let [high, low] = length.to_be_bytes();
    let [port_high, port_low] = PORT.to_be_bytes();
    let ports_and_length = [port_high, port_low, port_high, port_low, high, low];
    // Zero would mean no checksum. RFC 768.
    let checksum = match sum.octets(&ports_and_length).octets(rohc).checksum() {
        0 => 0xFFFF,
        checksum => checksum,
    };
    packet.extend_from_slice(&ports_and_length);
    packet.extend_from_slice(&checksum.to_be_bytes());
    packet.extend_from_slice(rohc);
    packet
}

/// Payload of such a datagram; `None` if the packet is another one.
pub(super) fn unwrap(ipv6: &[u8]) -> Option<&[u8]> {
    let header = Ipv6::read(ipv6).ok().filter(|header| header.next_header == protocol::UDP)?;
    let datagram = ipv6.get(Ipv6::LEN..)?;
    let udp = Udp::read(datagram).ok().filter(|udp| udp.destination_port == PORT)?;
    let sum = Sum::ZERO.octets(&header.source).octets(&header.destination);
    let sum = sum.word(u16::from(protocol::UDP)).word(udp.length).octets(datagram);
    datagram.get(Udp::LEN..).filter(|_| usize::from(udp.length) == datagram.len() && sum.checksum() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrapped_is_unwrapped_unless_it_is_damaged() {
        let mut packet = wrap(0, 5, b"rohc!");
        assert_eq!(unwrap(&packet), Some(&b"rohc!"[..]));
        packet[49] ^= 1;
        assert_eq!(unwrap(&packet), None);
    }
}
