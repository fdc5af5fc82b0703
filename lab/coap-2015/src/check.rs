//! CRCs of compressed headers, over the headers of profile 0x0002 and over those of 0x0080, and the UDP checksum.

use thinair_wire::checksum::Sum;
use thinair_wire::crc::Check;
use thinair_wire::header::coap::Coap;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::header::protocol;

use crate::UDP;

/// Octets of the IP header at the start of a packet without extension headers.
pub(crate) fn ip_len(packet: &[u8]) -> usize {
    if packet.first().is_some_and(|first| first >> 4 == 4) { Ipv4::LEN } else { Ipv6::LEN }
}

fn add(check: Check, crc: u8, header: &[u8], from: usize, to: usize) -> u8 {
    check.update(crc, header.get(from..to).unwrap_or_default())
}

/// State after the CRC-STATIC octets of IP and UDP. RFC 3095, sections 5.7.7.3 to 5.7.7.5.
fn static_udp(check: Check, headers: &[u8]) -> u8 {
    let (ip, mut crc) = (ip_len(headers), check.start());
    let parts: &[(usize, usize)] =
        if ip == Ipv4::LEN { &[(0, 2), (6, 10), (12, Ipv4::LEN)] } else { &[(0, 4), (6, Ipv6::LEN)] };
    for &(from, to) in parts {
        crc = add(check, crc, headers, from, to);
    }
    add(check, crc, headers, ip, ip + 4)
}

/// State after the CRC-DYNAMIC octets of IP and UDP, from `crc`.
fn dynamic_udp(check: Check, mut crc: u8, headers: &[u8]) -> u8 {
    let ip = ip_len(headers);
    let parts: &[(usize, usize)] = if ip == Ipv4::LEN { &[(2, 6), (10, 12)] } else { &[(4, 6)] };
    for &(from, to) in parts {
        crc = add(check, crc, headers, from, to);
    }
    add(check, crc, headers, ip + 4, ip + UDP)
}

/// State after the CRC-STATIC octets of IP, UDP and CoAP: of CoAP, Ver to Code, and the octets behind a changing token.
pub(crate) fn static_coap(check: Check, headers: &[u8], changing: usize) -> u8 {
    let (coap, crc) = (ip_len(headers) + UDP, static_udp(check, headers));
    let crc = add(check, crc, headers, coap, coap + 2);
    add(check, crc, headers, coap + Coap::LEN + changing, headers.len())
}

/// The CRC of profile 0x0080 over IP, UDP and CoAP, which has `changing` dynamic octets of token.
pub(crate) fn of_coap(check: Check, headers: &[u8], changing: usize) -> u8 {
    let coap = ip_len(headers) + UDP;
    let crc = dynamic_udp(check, static_coap(check, headers, changing), headers);
    add(check, crc, headers, coap + 2, coap + Coap::LEN + changing)
}

/// Returns the CRC of profile 0x0002 that a packet has whose CRC of profile 0x0080 is `crc`. `headers` are its IP, UDP and CoAP header,
/// `inner` IP and UDP as profile 0x0002 has them. Octets of IP and UDP that change need not be those of the packet, if they are the same
/// in both.
///
/// A CRC is linear: whatever these octets are, they contribute the same to both CRCs.
pub(crate) fn to_udp(check: Check, crc: u8, headers: &[u8], inner: &[u8], changing: usize) -> Option<u8> {
    let coap = ip_len(headers) + UDP;
    let udp = dynamic_udp(check, static_udp(check, inner), inner);
    let difference = udp ^ dynamic_udp(check, static_coap(check, headers, changing), headers);
    (0..=check.start()).find(|candidate| {
        add(check, candidate ^ difference, headers, coap + 2, coap + Coap::LEN + changing) == crc
    })
}

/// True if the UDP checksum of a packet is there, and correct.
pub(crate) fn has_right_sum(packet: &[u8]) -> bool {
    let ip = ip_len(packet);
    let addresses = packet.get(if ip == Ipv4::LEN { 12..ip } else { 8..ip }).unwrap_or_default();
    let datagram = packet.get(ip..).unwrap_or_default();
    let sum = Sum::ZERO.octets(addresses).word(u16::from(protocol::UDP)).word(datagram.len() as u16);
    datagram.get(6..UDP).is_some_and(|sum| sum != [0, 0]) && sum.octets(datagram).fold() == u16::MAX
}

/// CRC-8 of an IR or IR-DYN header. It covers zero in place of the CRC, which is octet `at`. RFC 3095, section 5.9.1.
pub(crate) fn crc8(header: &[u8], at: usize) -> u8 {
    let (head, behind) = (header.get(..at).unwrap_or_default(), header.get(at + 1..).unwrap_or_default());
    Check::Crc8.update(Check::Crc8.update(Check::Crc8.of(head), &[0]), behind)
}

/// Octet and mask of the CRC of a compressed header whose type octet is octet `at`. RFC 3095, section 5.11.
pub(crate) fn place(type_octet: u8, at: usize) -> (usize, Check) {
    match type_octet {
        0..0x80 => (at, Check::Crc3),
        0x80..0xC0 => (at + 1, Check::Crc3),
        _ => (at + 1, Check::Crc7),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// IPv4, UDP and a GET with a token of four octets.
    const PACKET: [u8; 41] =
        *b"\x45\0\0\x29\0\x07\x40\0\x40\x11\xAB\xCD\xC0\0\x02\x01\xC0\0\x02\x02\xC0\0\x16\x33\0\x15\x12\x34\
        \x44\x01\xE4\x64\x01\x02\x03\x04\xB4time";

    #[test]
    fn a_crc_of_one_profile_gives_that_of_the_other() {
        for check in [Check::Crc3, Check::Crc7] {
            for changing in [0, 4] {
                // Other ports, and another UDP checksum.
                let mut inner = PACKET;
                (inner[20], inner[23], inner[27]) = (1, 2, 3);
                let crc = of_coap(check, &PACKET, changing);
                let udp = dynamic_udp(check, static_udp(check, &inner), &inner);
                // With other octets unknown.
                let mut known = PACKET;
                for at in [2, 3, 4, 5, 10, 11, 24, 25] {
                    (known[at], inner[at]) = (0x55, 0x55);
                }
                assert_eq!(to_udp(check, crc, &known, &inner, changing), Some(udp));
                let flip = 1 << (check.width() - 1);
                assert_ne!(to_udp(check, crc ^ flip, &known, &inner, changing), Some(udp));
            }
        }
    }
}
