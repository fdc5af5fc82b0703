//! ICMP answer to a packet that exceeds the MTU of a path: "fragmentation needed" (RFC 1191) or "Packet Too
//! Big" (RFC 4443, section 3.2).

use thinair_wire::checksum::Sum;

/// Octets of the packet that are quoted, for IPv4 (RFC 1812, section 4.3.2.3) and for IPv6, limited by a size
/// of 1,280 octets (RFC 4443, section 2.4).
const QUOTED: [usize; 2] = [576 - 28, 1_280 - 48];

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// Returns the answer to `packet`, which limits its sender to packets of `mtu` octets. `None`: no answer is
/// allowed, for ICMP errors, fragments except the first, multicast, invalid source addresses, and IPv4
/// packets that routers may fragment (RFC 1122, section 3.2.2; RFC 4443, section 2.4).
pub(crate) fn answer(packet: &[u8], mtu: u16) -> Option<Vec<u8>> {
    match packet.first()? >> 4 {
        4 => answer_ipv4(packet, mtu),
        6 => answer_ipv6(packet, mtu),
        _ => None,
    }
}

fn answer_ipv4(packet: &[u8], mtu: u16) -> Option<Vec<u8>> {
    let header = packet.first_chunk::<20>()?;
    let length = usize::from(header[0] & 0x0F) * 4;
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    let may_be_cut = fragment & 0x4000 == 0;
    let (source, destination) = (&header[12..16], &header[16..20]);
    let is_group = |address: &[u8]| address[0] >= 224 || address[0] == 0 || address[0] == 127;
    // ICMP types of requests and replies are not errors.
    let is_error = header[9] == ICMP && !matches!(packet.get(length), Some(0 | 8 | 13 | 14));
    if may_be_cut || fragment & 0x1FFF != 0 || is_group(source) || is_group(destination) || is_error {
        return None;
    }
    let quoted = &packet[..packet.len().min(QUOTED[0])];
    let total = u16::try_from(28 + quoted.len()).ok()?;
    let mut out = vec![0x45, 0xC0];
    out.extend(total.to_be_bytes());
    out.extend([0, 0, 0, 0, 64, ICMP, 0, 0]);
    // The source is the destination of the packet: that address is routed to the tunnel, and passes reverse
    // path checks.
    out.extend(destination);
    out.extend(source);
    let sum = Sum::ZERO.octets(&out).checksum();
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut message = vec![3, 4, 0, 0, 0, 0];
    message.extend(mtu.to_be_bytes());
    message.extend(quoted);
    let sum = Sum::ZERO.octets(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    out.extend(message);
    Some(out)
}

fn answer_ipv6(packet: &[u8], mtu: u16) -> Option<Vec<u8>> {
    let header = packet.first_chunk::<40>()?;
    let (source, destination) = (&header[8..24], &header[24..40]);
    let is_nobody = |address: &[u8]| address[0] == 0xFF || address.iter().all(|octet| *octet == 0);
    // Types below 128 are errors.
    let is_error = header[6] == ICMPV6 && packet.get(40).is_none_or(|kind| *kind < 128);
    // A packet to a group may be answered, but not with the group's address as source; such answers are not
    // required here.
    if is_nobody(source) || is_nobody(destination) || is_error {
        return None;
    }
    let quoted = &packet[..packet.len().min(QUOTED[1])];
    let mut message = vec![2, 0, 0, 0, 0, 0];
    message.extend(mtu.max(1_280).to_be_bytes());
    message.extend(quoted);
    let length = u16::try_from(message.len()).ok()?;
    let sum = Sum::ZERO
        .octets(destination)
        .octets(source)
        .octets(&u32::from(length).to_be_bytes())
        .octets(&[0, 0, 0, ICMPV6])
        .octets(&message)
        .checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut out = vec![0x60, 0, 0, 0];
    out.extend(length.to_be_bytes());
    out.extend([ICMPV6, 64]);
    out.extend(destination);
    out.extend(source);
    out.extend(message);
    Some(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns UDP over IPv4 with DF, from 10.9.0.2 to 203.0.113.9.
    fn ipv4(octets: usize) -> Vec<u8> {
        let mut packet = vec![0x45, 0];
        packet.extend(u16::try_from(octets).unwrap().to_be_bytes());
        packet.extend([0, 1, 0x40, 0, 64, 17, 0, 0, 10, 9, 0, 2, 203, 0, 113, 9]);
        packet.resize(octets, 7);
        packet
    }

    fn ipv6(octets: usize) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend(u16::try_from(octets - 40).unwrap().to_be_bytes());
        packet.extend([17, 64]);
        packet.extend([0xFD, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend([0x20, 1, 0xD, 0xB8, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        packet.resize(octets, 7);
        packet
    }

    #[test]
    fn a_sender_of_ipv4_is_asked_for_shorter_packets() {
        let packet = ipv4(1_400);
        let answer = answer(&packet, 1_252).unwrap();
        assert_eq!(answer.len(), 576);
        assert_eq!(answer[..4], [0x45, 0xC0, 2, 64]);
        assert_eq!((&answer[12..16], &answer[16..20]), (&packet[16..20], &packet[12..16]));
        assert_eq!((answer[20], answer[21], &answer[26..28]), (3, 4, &1_252_u16.to_be_bytes()[..]));
        assert_eq!(answer[28..], packet[..548]);
        // The sum over octets with a correct checksum is 0.
        assert_eq!(Sum::ZERO.octets(&answer[..20]).checksum(), 0);
        assert_eq!(Sum::ZERO.octets(&answer[20..]).checksum(), 0);
    }

    #[test]
    fn a_sender_of_ipv6_is_asked_for_shorter_packets_but_for_none_below_1280() {
        let packet = ipv6(1_400);
        let long = answer(&packet, 1_300).unwrap();
        assert_eq!((long.len(), long[6], long[40], long[41]), (1_280, ICMPV6, 2, 0));
        assert_eq!(long[44..48], 1_300_u32.to_be_bytes());
        let length = u32::try_from(long.len() - 40).unwrap().to_be_bytes();
        let sum = Sum::ZERO.octets(&long[8..40]).octets(&length).octets(&[0, 0, 0, ICMPV6]);
        assert_eq!(sum.octets(&long[40..]).checksum(), 0);
        assert_eq!(answer(&packet, 1_000).unwrap()[44..48], 1_280_u32.to_be_bytes());
    }

    #[test]
    fn nobody_is_answered_who_must_not_be() {
        let changed = |of: &[u8], at: usize, octet: u8| {
            let mut packet = of.to_vec();
            packet[at] = octet;
            answer(&packet, 1_200)
        };
        let (four, six) = (ipv4(1_400), ipv6(1_400));
        assert!(changed(&four, 6, 0).is_none(), "routers may cut it");
        assert!(changed(&four, 7, 1).is_none(), "not the first fragment");
        assert!(changed(&four, 16, 224).is_none(), "a group");
        assert!(changed(&four, 9, ICMP).is_none(), "an ICMP error");
        assert!(changed(&six, 24, 0xFF).is_none(), "a group");
        assert!(changed(&six, 6, ICMPV6).is_none(), "an ICMPv6 error");
        let mut echo = four.clone();
        (echo[9], echo[20]) = (ICMP, 8);
        assert!(answer(&echo, 1_200).is_some(), "an echo request");
        for length in 0..40 {
            assert!(answer(&six[..length], 1_200).is_none());
            let _ = answer(&four[..length], 1_200);
        }
        assert!(answer(&[0; 60], 1_200).is_none());
    }
}
