//! UDP checksum, compared by the parser and computed by the decompressor.

use thinair_wire::checksum::Sum;
use thinair_wire::header::protocol;

/// Correct checksum of the UDP datagram at octet `at` of an IP packet (RFC 768; RFC 8200, section 8.1).
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
    // Zero would mean that there is no checksum.
    Some(match sum.checksum() {
        0 => 0xFFFF,
        checksum => checksum,
    })
}
