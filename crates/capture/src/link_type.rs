//! The numbers which a capture file uses for what its records begin with.

use std::fmt;

/// What the records of an interface begin with: a `LINKTYPE_` value of the
/// [registry](https://www.tcpdump.org/linktypes.html).
///
/// Any value can be held; the constants are those which [`network_packet`](crate::network_packet),
/// [`rohc_packet`](crate::rohc_packet) or [`mac_frame`](crate::mac_frame()) can look into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: the address family in 4 octets, in the byte order of the machine which captured.
    pub const NULL: Self = Self(0);
    /// IEEE 802.3 Ethernet, without preamble.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without the HDLC-like framing of RFC 1662.
    pub const PPP: Self = Self(9);
    /// An IP packet, in files which hold the number that most systems use internally (`DLT_RAW`).
    pub const DLT_RAW: Self = Self(12);
    /// An IP packet, in files which hold the number that OpenBSD uses internally (`DLT_RAW`).
    pub const DLT_RAW_OPENBSD: Self = Self(14);
    /// PPP with the HDLC-like framing of RFC 1662, or Cisco HDLC.
    pub const PPP_HDLC: Self = Self(50);
    /// An IPv4 or IPv6 packet.
    pub const RAW: Self = Self(101);
    /// OpenBSD loopback: the address family in 4 octets, in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux "cooked" capture.
    pub const LINUX_SLL: Self = Self(113);
    /// For private use. By the convention of this project each record is one ROHC packet.
    pub const USER0: Self = Self(147);
    /// A frame of IEEE 802.15.4 with its check sequence.
    pub const IEEE802_15_4_WITHFCS: Self = Self(195);
    /// An IPv4 packet.
    pub const IPV4: Self = Self(228);
    /// An IPv6 packet.
    pub const IPV6: Self = Self(229);
    /// A frame of IEEE 802.15.4 without check sequence.
    pub const IEEE802_15_4_NOFCS: Self = Self(230);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);
    /// A frame of IEEE 802.15.4 behind a header that says how it was received.
    pub const IEEE802_15_4_TAP: Self = Self(283);

    /// The name in the registry, without `LINKTYPE_`; `None` if it is none of the constants.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NULL => "NULL",
            Self::ETHERNET => "ETHERNET",
            Self::PPP => "PPP",
            Self::DLT_RAW | Self::DLT_RAW_OPENBSD | Self::RAW => "RAW",
            Self::PPP_HDLC => "PPP_HDLC",
            Self::LOOP => "LOOP",
            Self::LINUX_SLL => "LINUX_SLL",
            Self::USER0 => "USER0",
            Self::IPV4 => "IPV4",
            Self::IPV6 => "IPV6",
            Self::LINUX_SLL2 => "LINUX_SLL2",
            Self::IEEE802_15_4_WITHFCS => "IEEE802_15_4_WITHFCS",
            Self::IEEE802_15_4_NOFCS => "IEEE802_15_4_NOFCS",
            Self::IEEE802_15_4_TAP => "IEEE802_15_4_TAP",
            _ => return None,
        })
    }
}

/// The name and the number, or the number: `ETHERNET (1)`, `105`.
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
        assert_eq!(LinkType(105).to_string(), "105");
    }
}
