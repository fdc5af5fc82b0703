//! Dispatch octets, which identify the content of a frame. RFC 4944, section 5.1; RFC 6282, section 5; RFC 8025; RFC
//! 8931, section 5.
//!
//! ROHC has none in the registry. Here it has one for experiments, [`ROHC`], so that ROHC and LOWPAN_IPHC can be
//! compared on the same frames. Reasons for the choice:
//!
//! - Page 15 of all patterns is "Reserved for Experimental Use" (RFC 8025), so no registered pattern is
//!   taken, and nodes that do not support the page drop the packet. One octet, 0xFF, switches to the page.
//! - The packet cannot follow immediately: ROHC packets may begin with `1111xxxx` (IR, feedback, segments), which is
//!   a Page Switch on any page. So a second octet identifies ROHC on the page.
//! - `00xxxxxx` (NALP) would be one octet less. But it means "not a LoWPAN frame", and a ROHC packet must be
//!   able to follow a fragmentation header.
//!
//! **For comparisons of sizes: a registered dispatch would take 1 octet, this one takes 2.** A fragmentation header before it
//! counts octets of the ROHC packet after the dispatch: for ROHC, datagram_size is not that of the IP packet.

/// `01 000001`: an uncompressed IPv6 packet.
pub const IPV6: u8 = 0b0100_0001;

/// `01 000010`: an IPv6 header in LOWPAN_HC1, which RFC 6282 has replaced. It is identified, but not decoded.
pub const LOWPAN_HC1: u8 = 0b0100_0010;

/// `01 010000`: a sequence number, and then a packet that is broadcast in a mesh.
pub const LOWPAN_BC0: u8 = 0b0101_0000;

/// `01 1xxxxx`, lowest value: an IPv6 header in LOWPAN_IPHC.
pub const LOWPAN_IPHC: u8 = 0b0110_0000;

/// Page 15, and on it `01 010010`: a ROHC packet. By private agreement, see the [module](self).
pub const ROHC: [u8; 2] = [0b1111_1111, 0b0101_0010];

/// True if the octet begins a LOWPAN_IPHC header; it then has the first bits of the header.
pub const fn is_lowpan_iphc(octet: u8) -> bool {
    octet & 0b1110_0000 == LOWPAN_IPHC
}

/// Meaning of a dispatch octet on page 0, by the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// Not a LoWPAN frame.
    Nalp,
    /// Another octet of dispatch follows (RFC 8066).
    Esc,
    /// [`IPV6`].
    Ipv6,
    /// [`LOWPAN_HC1`].
    LowpanHc1,
    /// Depth-first forwarding (RFC 6971).
    LowpanDff,
    /// [`LOWPAN_BC0`].
    LowpanBc0,
    /// [`LOWPAN_IPHC`].
    LowpanIphc,
    /// Mesh Header.
    Mesh,
    /// Fragmentation Header, first.
    Frag1,
    /// Fragmentation Header, subsequent.
    FragN,
    /// Recoverable Fragment (RFC 8931).
    Rfrag,
    /// RFRAG Acknowledgment (RFC 8931).
    RfragAck,
    /// Page Switch, to page 0 to 15 (RFC 8025).
    Page(u8),
    /// Unassigned.
    Unassigned,
}

impl Dispatch {
    /// Returns the meaning of `octet`.
    pub const fn of(octet: u8) -> Self {
        match octet {
            0b0000_0000..=0b0011_1111 => Self::Nalp,
            0b0100_0000 => Self::Esc,
            IPV6 => Self::Ipv6,
            LOWPAN_HC1 => Self::LowpanHc1,
            0b0100_0011 => Self::LowpanDff,
            LOWPAN_BC0 => Self::LowpanBc0,
            0b0110_0000..=0b0111_1111 => Self::LowpanIphc,
            0b1000_0000..=0b1011_1111 => Self::Mesh,
            0b1100_0000..=0b1100_0111 => Self::Frag1,
            0b1110_0000..=0b1110_0111 => Self::FragN,
            0b1110_1000 | 0b1110_1001 => Self::Rfrag,
            0b1110_1010 | 0b1110_1011 => Self::RfragAck,
            0b1111_0000..=0b1111_1111 => Self::Page(octet & 0xF),
            _ => Self::Unassigned,
        }
    }

    /// Returns the name in the registry.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nalp => "NALP",
            Self::Esc => "ESC",
            Self::Ipv6 => "IPv6",
            Self::LowpanHc1 => "LOWPAN_HC1",
            Self::LowpanDff => "LOWPAN_DFF",
            Self::LowpanBc0 => "LOWPAN_BC0",
            Self::LowpanIphc => "LOWPAN_IPHC",
            Self::Mesh => "MESH",
            Self::Frag1 => "FRAG1",
            Self::FragN => "FRAGN",
            Self::Rfrag => "RFRAG",
            Self::RfragAck => "RFRAG-ACK",
            Self::Page(_) => "Page Switch",
            Self::Unassigned => "unassigned",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of octets of each pattern of figure 2 of RFC 4944, and of later RFCs.
    #[test]
    fn patterns_cover_as_many_octets_as_the_registry_gives_them() {
        let count = |wanted: &str| (0..=255).filter(|octet| Dispatch::of(*octet).name() == wanted).count();
        let expected = [
            ("NALP", 64),
            ("ESC", 1),
            ("IPv6", 1),
            ("LOWPAN_HC1", 1),
            ("LOWPAN_DFF", 1),
            ("LOWPAN_BC0", 1),
            ("LOWPAN_IPHC", 32),
            ("MESH", 64),
            ("FRAG1", 8),
            ("FRAGN", 8),
            ("RFRAG", 2),
            ("RFRAG-ACK", 2),
            ("Page Switch", 16),
        ];
        for (name, octets) in expected {
            assert_eq!(count(name), octets, "{name}");
        }
        let assigned: usize = expected.iter().map(|(_, octets)| octets).sum();
        assert_eq!(count("unassigned"), 256 - assigned);
        assert_eq!(Dispatch::of(ROHC[0]), Dispatch::Page(15));
    }
}
