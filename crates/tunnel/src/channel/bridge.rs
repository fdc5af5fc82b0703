//! Ethernet frames: the IP packet in a frame is compressed, all other octets are sent unchanged.
//!
//! If the EtherType of a frame is IPv4 or IPv6, and the frame contains the IP packet only, the EtherType
//! becomes that of ROHC, and the ROHC packet replaces the IP packet; the version of the decompressed packet
//! determines the EtherType again. Padded frames, frames with VLAN tags, ARP and other frames are sent
//! unchanged.

/// Length of an Ethernet header: both addresses and the EtherType, in octets.
pub(super) const HEADER: usize = 14;

/// Length of both addresses, in octets.
const ADDRESSES: usize = 12;

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xDD];
pub(super) const ROHC: [u8; 2] = [0x22, 0xF1];

/// Content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BridgedFrame<'f> {
    /// A packet without further octets: IP in sent frames, ROHC in received ones.
    Packet {
        /// Both addresses.
        addresses: &'f [u8],
        /// The packet.
        packet: &'f [u8],
    },
    /// Other content.
    Other,
    /// Shorter than a header.
    Short,
}

/// Parses a frame to send.
pub(super) fn outgoing(frame: &[u8]) -> BridgedFrame<'_> {
    let Some((header, packet)) = frame.split_at_checked(HEADER) else { return BridgedFrame::Short };
    let (addresses, ether_type) = header.split_at(ADDRESSES);
    let length = match (packet.first().map(|first| first >> 4), packet) {
        (Some(4), &[_, _, high, low, ..]) if ether_type == IPV4 => usize::from(high) << 8 | usize::from(low),
        (Some(6), &[_, _, _, _, high, low, ..]) if ether_type == IPV6 => {
            40 + (usize::from(high) << 8 | usize::from(low))
        }
        _ => return BridgedFrame::Other,
    };
    if length == packet.len() { BridgedFrame::Packet { addresses, packet } } else { BridgedFrame::Other }
}

/// True if the receiver would treat the frame as one with a ROHC packet of this channel.
pub(super) fn is_rohc(frame: &[u8]) -> bool {
    frame.get(ADDRESSES..HEADER) == Some(&ROHC)
}

/// Parses a received frame.
pub(super) fn incoming(frame: &[u8]) -> BridgedFrame<'_> {
    match frame.split_at_checked(HEADER) {
        None => BridgedFrame::Short,
        Some((header, packet)) if is_rohc(header) => {
            BridgedFrame::Packet { addresses: &header[..ADDRESSES], packet }
        }
        Some(_) => BridgedFrame::Other,
    }
}

/// Returns the EtherType of an IP packet.
pub(super) fn ether_type(packet: &[u8]) -> Option<[u8; 2]> {
    match packet.first()? >> 4 {
        4 => Some(IPV4),
        6 => Some(IPV6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(ether_type: [u8; 2], packet: &[u8]) -> Vec<u8> {
        [&[0x02; 6][..], &[0x04; 6], &ether_type, packet].concat()
    }

    #[test]
    fn only_frames_that_hold_nothing_but_ip_are_taken_apart() {
        let four = [&[0x45, 0, 0, 24][..], &[0; 20]].concat();
        let six = [&[0x60, 0, 0, 0, 0, 3][..], &[0; 37]].concat();
        let whole = frame(IPV4, &four);
        assert_eq!(outgoing(&whole), BridgedFrame::Packet { addresses: &whole[..12], packet: &four });
        let whole = frame(IPV6, &six);
        assert_eq!(outgoing(&whole), BridgedFrame::Packet { addresses: &whole[..12], packet: &six });
        let padded = frame(IPV4, &[&four[..], &[0; 22]].concat());
        let tagged = frame([0x81, 0x00], &[&[0, 7][..], &IPV4, &four].concat());
        let mixed = frame(IPV6, &four);
        let arp = frame([0x08, 0x06], &[0; 28]);
        for other in [&padded, &tagged, &mixed, &arp, &frame(IPV4, &[]), &frame(IPV4, &four[..23])] {
            assert_eq!(outgoing(other), BridgedFrame::Other);
            assert_eq!(incoming(other), BridgedFrame::Other);
        }
        assert_eq!(outgoing(&[0; 13]), BridgedFrame::Short);
        assert_eq!(incoming(&[0; 13]), BridgedFrame::Short);
        assert!(is_rohc(&frame(ROHC, &[])) && !is_rohc(&arp));
    }
}
