//! Dispatch octets: what a frame carries. RFC 4944, section 5.1; RFC 6282, section 5.

/// `01 000001`: an IPv6 packet as it is.
pub const IPV6: u8 = 0b0100_0001;

/// `01 1xxxxx`, lowest value: an IPv6 header in LOWPAN_IPHC.
pub const LOWPAN_IPHC: u8 = 0b0110_0000;

/// Whether the octet begins a LOWPAN_IPHC header, whose first bits it then holds.
pub const fn is_lowpan_iphc(octet: u8) -> bool {
    octet & 0b1110_0000 == LOWPAN_IPHC
}
