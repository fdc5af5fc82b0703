//! Numbers of link types in capture files.

use std::fmt;

/// Link type of an interface, which defines the first header of its records: a `LINKTYPE_` value of the
/// [registry](https://www.tcpdump.org/linktypes.html).
///
/// Any value is valid, and many have a [name](Self::name); the constants are those supported by
/// [`network_packet`](crate::network_packet), [`rohc_packet`](crate::rohc_packet) or
/// [`mac_frame`](crate::mac_frame()).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: the address family in 4 octets, in the byte order of the capturing machine.
    pub const NULL: Self = Self(0);
    /// IEEE 802.3 Ethernet, without preamble.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without the HDLC-like framing of RFC 1662.
    pub const PPP: Self = Self(9);
    /// An IP packet, in files with the number that most systems use internally (`DLT_RAW`).
    pub const DLT_RAW: Self = Self(12);
    /// An IP packet, in files with the number that OpenBSD uses internally (`DLT_RAW`).
    pub const DLT_RAW_OPENBSD: Self = Self(14);
    /// PPP with the HDLC-like framing of RFC 1662, or Cisco HDLC.
    pub const PPP_HDLC: Self = Self(50);
    /// PPPoE without Ethernet header (RFC 2516).
    pub const PPP_ETHER: Self = Self(51);
    /// An IPv4 or IPv6 packet.
    pub const RAW: Self = Self(101);
    /// Cisco HDLC, or PPP with the HDLC-like framing of RFC 1662.
    pub const C_HDLC: Self = Self(104);
    /// IEEE 802.11, with or without frame check sequence.
    pub const IEEE802_11: Self = Self(105);
    /// OpenBSD loopback: the address family in 4 octets, in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux "cooked" capture.
    pub const LINUX_SLL: Self = Self(113);
    /// IEEE 802.11 after a Prism header.
    pub const IEEE802_11_PRISM: Self = Self(119);
    /// IEEE 802.11 after a radiotap header.
    pub const IEEE802_11_RADIOTAP: Self = Self(127);
    /// For private use. In this project each record is one ROHC packet.
    pub const USER0: Self = Self(147);
    /// IEEE 802.11 after an AVS header.
    pub const IEEE802_11_AVS: Self = Self(163);
    /// PPP whose address field is 0 for received and 1 for sent frames.
    pub const PPP_PPPD: Self = Self(166);
    /// A frame of IEEE 802.15.4 with check sequence.
    pub const IEEE802_15_4_WITHFCS: Self = Self(195);
    /// PPP after an octet that is 0 for received frames.
    pub const PPP_WITH_DIR: Self = Self(204);
    /// An IPv4 packet.
    pub const IPV4: Self = Self(228);
    /// An IPv6 packet.
    pub const IPV6: Self = Self(229);
    /// A frame of IEEE 802.15.4 without check sequence.
    pub const IEEE802_15_4_NOFCS: Self = Self(230);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);
    /// A frame of IEEE 802.15.4 after a header with reception parameters.
    pub const IEEE802_15_4_TAP: Self = Self(283);

    /// Name in the registry, without `LINKTYPE_`; `None` for rare numbers.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(number, _)| *number == self.0).map(|(_, name)| *name)
    }
}

/// Names of the registry, in numerical order.
const NAMES: [(u16, &str); 147] = [
    (0, "NULL"),
    (1, "ETHERNET"),
    (2, "EXP_ETHERNET"),
    (3, "AX25"),
    (6, "IEEE802_5"),
    (7, "ARCNET_BSD"),
    (8, "SLIP"),
    (9, "PPP"),
    (10, "FDDI"),
    (12, "RAW"),
    (14, "RAW"),
    (50, "PPP_HDLC"),
    (51, "PPP_ETHER"),
    (99, "SYMANTEC_FIREWALL"),
    (100, "ATM_RFC1483"),
    (101, "RAW"),
    (104, "C_HDLC"),
    (105, "IEEE802_11"),
    (106, "ATM_CLIP"),
    (107, "FRELAY"),
    (108, "LOOP"),
    (109, "ENC"),
    (113, "LINUX_SLL"),
    (114, "LTALK"),
    (117, "PFLOG"),
    (119, "IEEE802_11_PRISM"),
    (122, "IP_OVER_FC"),
    (123, "SUNATM"),
    (127, "IEEE802_11_RADIOTAP"),
    (129, "ARCNET_LINUX"),
    (138, "APPLE_IP_OVER_IEEE1394"),
    (139, "MTP2_WITH_PHDR"),
    (140, "MTP2"),
    (141, "MTP3"),
    (142, "SCCP"),
    (143, "DOCSIS"),
    (144, "LINUX_IRDA"),
    (147, "USER0"),
    (148, "USER1"),
    (149, "USER2"),
    (150, "USER3"),
    (151, "USER4"),
    (152, "USER5"),
    (153, "USER6"),
    (154, "USER7"),
    (155, "USER8"),
    (156, "USER9"),
    (157, "USER10"),
    (158, "USER11"),
    (159, "USER12"),
    (160, "USER13"),
    (161, "USER14"),
    (162, "USER15"),
    (163, "IEEE802_11_AVS"),
    (165, "BACNET_MS_TP"),
    (166, "PPP_PPPD"),
    (169, "GPRS_LLC"),
    (170, "GPF_T"),
    (171, "GPF_F"),
    (177, "LINUX_LAPD"),
    (182, "MFR"),
    (187, "BLUETOOTH_HCI_H4"),
    (189, "USB_LINUX"),
    (192, "PPI"),
    (195, "IEEE802_15_4_WITHFCS"),
    (196, "SITA"),
    (197, "ERF"),
    (201, "BLUETOOTH_HCI_H4_WITH_PHDR"),
    (202, "AX25_KISS"),
    (203, "LAPD"),
    (204, "PPP_WITH_DIR"),
    (205, "C_HDLC_WITH_DIR"),
    (206, "FRELAY_WITH_DIR"),
    (207, "LAPB_WITH_DIR"),
    (209, "I2C_LINUX"),
    (210, "FLEXRAY"),
    (211, "MOST"),
    (212, "LIN"),
    (215, "IEEE802_15_4_NONASK_PHY"),
    (220, "USB_LINUX_MMAPPED"),
    (224, "FC_2"),
    (225, "FC_2_WITH_FRAME_DELIMS"),
    (226, "IPNET"),
    (227, "CAN_SOCKETCAN"),
    (228, "IPV4"),
    (229, "IPV6"),
    (230, "IEEE802_15_4_NOFCS"),
    (231, "DBUS"),
    (235, "DVB_CI"),
    (236, "MUX27010"),
    (237, "STANAG_5066_D_PDU"),
    (239, "NFLOG"),
    (240, "NETANALYZER"),
    (241, "NETANALYZER_TRANSPARENT"),
    (242, "IPOIB"),
    (243, "MPEG_2_TS"),
    (244, "NG40"),
    (245, "NFC_LLCP"),
    (247, "INFINIBAND"),
    (248, "SCTP"),
    (249, "USBPCAP"),
    (250, "RTAC_SERIAL"),
    (251, "BLUETOOTH_LE_LL"),
    (252, "WIRESHARK_UPPER_PDU"),
    (253, "NETLINK"),
    (254, "BLUETOOTH_LINUX_MONITOR"),
    (255, "BLUETOOTH_BREDR_BB"),
    (256, "BLUETOOTH_LE_LL_WITH_PHDR"),
    (257, "PROFIBUS_DL"),
    (258, "PKTAP"),
    (259, "EPON"),
    (260, "IPMI_HPM_2"),
    (261, "ZWAVE_R1_R2"),
    (262, "ZWAVE_R3"),
    (263, "WATTSTOPPER_DLM"),
    (264, "ISO_14443"),
    (265, "RDS"),
    (266, "USB_DARWIN"),
    (268, "SDLC"),
    (270, "LORATAP"),
    (271, "VSOCK"),
    (272, "NORDIC_BLE"),
    (273, "DOCSIS31_XRA31"),
    (274, "ETHERNET_MPACKET"),
    (275, "DISPLAYPORT_AUX"),
    (276, "LINUX_SLL2"),
    (278, "OPENVIZSLA"),
    (279, "EBHSCR"),
    (280, "VPP_DISPATCH"),
    (281, "DSA_TAG_BRCM"),
    (282, "DSA_TAG_BRCM_PREPEND"),
    (283, "IEEE802_15_4_TAP"),
    (284, "DSA_TAG_DSA"),
    (285, "DSA_TAG_EDSA"),
    (286, "ELEE"),
    (287, "Z_WAVE_SERIAL"),
    (288, "USB_2_0"),
    (289, "ATSC_ALP"),
    (290, "ETW"),
    (292, "ZBOSS_NCP"),
    (293, "USB_2_0_LOW_SPEED"),
    (294, "USB_2_0_FULL_SPEED"),
    (295, "USB_2_0_HIGH_SPEED"),
    (296, "AUERSWALD_LOG"),
    (297, "ZWAVE_TAP"),
    (298, "SILABS_DEBUG_CHANNEL"),
    (299, "FIRA_UCI"),
];

/// Formats name and number, or the number: `ETHERNET (1)`, `1000`.
impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_gives_name_and_number() {
        assert_eq!(LinkType::LINUX_SLL2.to_string(), "LINUX_SLL2 (276)");
        assert_eq!(LinkType(105).to_string(), "IEEE802_11 (105)");
        assert_eq!(LinkType(1_000).to_string(), "1000");
    }

    #[test]
    fn every_number_has_one_name() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
