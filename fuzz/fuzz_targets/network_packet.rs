#![no_main]
//! Link headers: the packet that is found lies within the frame, and begins with its version.

use libfuzzer_sys::fuzz_target;
use thinair_capture::{IpVersion, LinkType, network_packet, rohc_packet};

const LINK_TYPES: [LinkType; 22] = [
    LinkType::NULL,
    LinkType::ETHERNET,
    LinkType::PPP,
    LinkType::DLT_RAW,
    LinkType::DLT_RAW_OPENBSD,
    LinkType::PPP_HDLC,
    LinkType::RAW,
    LinkType::LOOP,
    LinkType::LINUX_SLL,
    LinkType::USER0,
    LinkType::IPV4,
    LinkType::IPV6,
    LinkType::LINUX_SLL2,
    LinkType::PPP_ETHER,
    LinkType::C_HDLC,
    LinkType::IEEE802_11,
    LinkType::IEEE802_11_PRISM,
    LinkType::IEEE802_11_RADIOTAP,
    LinkType::IEEE802_11_AVS,
    LinkType::PPP_PPPD,
    LinkType::PPP_WITH_DIR,
    LinkType(195),
];

fuzz_target!(|input: (u8, i8, &[u8])| {
    let (which, missing, data) = input;
    let link_type = LINK_TYPES[usize::from(which) % LINK_TYPES.len()];
    // Number of octets that the snap length cut off; negative for a record that is longer than its frame.
    let original_len = (data.len() as u32).saturating_add_signed(i32::from(missing));
    if let Ok(network) = network_packet(link_type, data, original_len) {
        let first = if network.version == IpVersion::V4 { 4 } else { 6 };
        assert_eq!(network.packet[0] >> 4, first);
        let end = network.link_header_len + network.packet.len();
        assert_eq!(network.packet, &data[network.link_header_len..end]);
        assert_eq!(end + network.link_padding_len, data.len());
    }
    if let Ok(rohc) = rohc_packet(link_type, data, original_len) {
        assert!(!rohc.packet.is_empty());
        assert!(data[rohc.link_header_len..].starts_with(rohc.packet));
    }
});
