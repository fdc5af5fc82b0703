//! A CoAP GET (4 octets of header, the option `Uri-Path: time`) over UDP and IP for the benchmarks.

use thinair_wire::header::ipv4::Ipv4;

/// Octets of the GET, which no profile of the benchmarks compresses.
#[allow(dead_code)] // Not every benchmark looks at it.
pub(crate) const PAYLOAD: usize = 9;

/// Over IPv4: 37 octets.
pub(crate) const IPV4: [u8; 37] = *b"\x45\0\0\x25\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\x63\0\x02\
    \xe0\x01\x16\x33\0\x11\x12\x34\x40\x01\x12\x34\xb4time";

/// Over IPv6: 57 octets.
#[allow(dead_code)] // Not every benchmark sends it.
pub(crate) const IPV6: [u8; 57] = *b"\x60\0\0\0\0\x11\x11\x40\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x01\
    \xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x02\xe0\x01\x16\x33\0\x11\x12\x34\x40\x01\x12\x34\xb4time";

/// The GET over IPv4 from one of 2^24 hosts, with an IP-ID.
pub(crate) fn over_ipv4(host: u32, ip_id: u16) -> [u8; 37] {
    let mut packet = IPV4;
    packet[4..6].copy_from_slice(&ip_id.to_be_bytes());
    packet[13..16].copy_from_slice(&host.to_be_bytes()[1..]);
    let sum = Ipv4::checksum_of(&packet[..Ipv4::LEN]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}
