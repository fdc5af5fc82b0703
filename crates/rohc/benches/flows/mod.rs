//! Packets of voice, of a VPN and of TCP for the benchmarks.

use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;

/// Voice: RTP over UDP over IPv4, 20 octets of payload every 20 ms, 160 ticks of TS.
pub(crate) fn rtp(count: u32) -> [u8; 60] {
    let mut packet = [0; 60];
    packet[..20].copy_from_slice(b"\x45\0\0\x3c\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\x63\0\x02");
    packet[20..28].copy_from_slice(b"\x13\x8c\x13\x8c\0\x28\x12\x34");
    packet[28..40].copy_from_slice(b"\x80\x12\0\0\0\0\0\0\x12\x34\x56\x78");
    packet[30..32].copy_from_slice(&(count as u16).to_be_bytes());
    packet[32..36].copy_from_slice(&count.wrapping_mul(160).to_be_bytes());
    with_ip_id(packet, count)
}

/// ESP over IPv4, 16 octets of payload.
pub(crate) fn esp(count: u32) -> [u8; 44] {
    let mut packet = [0; 44];
    packet[..20].copy_from_slice(b"\x45\0\0\x2c\0\0\0\0\x40\x32\0\0\x0a\0\0\x01\x0a\x63\0\x02");
    packet[20..24].copy_from_slice(b"\0\0\x12\x34");
    packet[24..28].copy_from_slice(&count.wrapping_add(1).to_be_bytes());
    with_ip_id(packet, count)
}

fn with_ip_id<const N: usize>(mut packet: [u8; N], count: u32) -> [u8; N] {
    packet[4..6].copy_from_slice(&(count as u16).to_be_bytes());
    let sum = Ipv4::checksum_of(&packet[..Ipv4::LEN]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// TCP over IPv4 with timestamps: segments of 20 octets, or acknowledgments of two of 1,448.
#[allow(dead_code)] // Not every benchmark sends it.
pub(crate) fn tcp(count: u32, is_ack: bool) -> Vec<u8> {
    let mut segment = b"\x0f\xa0\0\x50\0\0\0\0\0\0\0\0\x80\x10\x20\0\0\0\0\0\x01\x01\x08\x0a".to_vec();
    segment.extend_from_slice(&count.wrapping_mul(2).to_be_bytes().repeat(2));
    segment.resize(segment.len() + if is_ack { 0 } else { 20 }, 7);
    let (number, step) = if is_ack { (8..12, 2 * 1_448) } else { (4..8, 20) };
    segment[number].copy_from_slice(&count.wrapping_mul(step).to_be_bytes());
    let mut ip = *b"\x45\0\0\0\0\0\0\0\x40\x06\0\0\x0a\0\0\x01\x0a\x63\0\x02";
    ip[2..4].copy_from_slice(&((Ipv4::LEN + segment.len()) as u16).to_be_bytes());
    let sum = Sum::ZERO.octets(&ip[12..]).word(6).word(segment.len() as u16).octets(&segment);
    segment[16..18].copy_from_slice(&sum.checksum().to_be_bytes());
    [&with_ip_id(ip, count)[..], &segment].concat()
}
