//! How a packet becomes frames, and how long they are on the air.

use thinair_emulator::RohcChannel;

/// Octets of preamble, SFD and length. IEEE 802.15.4-2006, section 6.3.
pub(super) const PHYH: u16 = 6;

/// Octets of an acknowledgment on the air: 5, and those of the PHY.
pub(super) const ACK: u16 = 5 + PHYH;

/// How packets are cut into frames.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Framing {
    /// By a rule that only counts octets: a frame is a handful of numbers.
    Plain(Plain),
    /// As RFC 4944 has it: every frame is there, octet by octet, with a MAC header of short addresses and its FCS; packets
    /// are IPv6, and what arrives is read again out of what has arrived.
    Rfc4944(Compression),
}

impl Framing {
    /// That of Ayadi and Awang (2010).
    pub const PAPER: Self = Self::Plain(Plain::PAPER);
}

/// What stands for the headers of a packet.
#[derive(Clone, Debug)]
pub enum Compression {
    /// They do, behind dispatch IPv6.
    None,
    /// LOWPAN_IPHC and LOWPAN_NHC (RFC 6282), with one prefix that all nodes know.
    Iphc,
    /// A ROHC packet, behind [`ROHC`](thinair_lowpan::dispatch::ROHC). Where frames are forwarded singly, between the first and
    /// the last node, with a mesh header in each frame if these are not neighbours; else at each hop anew.
    Rohc(Box<RohcChannel>),
    /// A ROHC packet in a UDP datagram from the first to the last node, whose own headers go by LOWPAN_IPHC and LOWPAN_NHC:
    /// what needs no dispatch.
    RohcInUdp(Box<RohcChannel>),
}

/// As equation 2 of Ayadi and Awang (2010) has it: frames carry so many octets of the packet each, the last one what is
/// left, and nothing says which part it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// MACH: octets of the MAC header with its FCS.
    pub mac_header: u16,
    /// MTU: octets of a packet that fit into a frame; 0 is taken for 1.
    pub mtu: u16,
}

impl Plain {
    /// MACH 120 bits, PHYH 48 bits, frames of 127 octets with both.
    pub const PAPER: Self = Self { mac_header: 15, mtu: 127 - 15 - PHYH };

    /// N: into how many frames a packet of so many octets is cut; 1 at least.
    pub const fn frames(self, octets: u16) -> u16 {
        let frames = octets.div_ceil(self.mtu());
        if frames == 0 { 1 } else { frames }
    }

    /// Octets on the air of the frame of that number.
    pub fn on_air(self, octets: u16, frame: u16) -> u16 {
        let left = octets.saturating_sub(frame.saturating_mul(self.mtu()));
        left.min(self.mtu()).saturating_add(self.mac_header).saturating_add(PHYH)
    }

    const fn mtu(self) -> u16 {
        if self.mtu == 0 { 1 } else { self.mtu }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section V: MSS 64 is one frame. By equation 2, MSS 512 is six; the text says eight.
    #[test]
    fn segments_are_cut_as_equation_2_has_it() {
        let frames = |mss: u16| Plain::PAPER.frames(mss + 40);
        assert_eq!([64, 66, 67, 512, 1_020, 1_024].map(frames), [1, 1, 2, 6, 10, 11]);
        let octets: Vec<_> = (0..6).map(|frame| Plain::PAPER.on_air(552, frame)).collect();
        assert_eq!(octets, [127, 127, 127, 127, 127, 22 + 21]);
        assert_eq!((Plain::PAPER.frames(0), Plain::PAPER.on_air(0, 0)), (1, 21));
    }
}
