//! The checksum of UDP, which the parser compares and the decompressor computes.

use thinair_wire::checksum::Sum;
use thinair_wire::header::protocol;

/// The checksum that the UDP datagram at octet `at` of an IP packet should carry. RFC 768; RFC 8200, section 8.1.
pub(super) fn udp_checksum(packet: &[u8], at: usize) -> Option<u16> {
    let addresses = match packet.first()? >> 4 {
        4 => packet.get(12..20)?,
        _ => packet.get(8..40)?,
    };
    let datagram = packet.get(at..)?;
    let sum = Sum::ZERO
        .octets(addresses)
        .word(u16::from(protocol::UDP))
        .word(u16::try_from(datagram.len()).ok()?)
        .octets(datagram.get(..6)?)
        .octets(datagram.get(8..)?);
    // Zero would say that there is none.
    Some(match sum.checksum() {
        0 => 0xFFFF,
        checksum => checksum,
    })
}
