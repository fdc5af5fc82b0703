//! Fragmentation of packets into frames, and sizes of frames on the air.

use thinair_emulator::RohcChannel;

/// Octets of preamble, SFD and length. IEEE 802.15.4-2006, section 6.3.
pub(super) const PHYH: u16 = 6;

/// Size of an acknowledgment on the air in octets: 5, and those of the PHY.
pub(super) const ACK: u16 = 5 + PHYH;

/// Fragmentation of packets into frames.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CsmaFraming {
    /// By a rule for sizes: frames are represented by numbers.
    Plain(Plain),
    /// By RFC 4944: frames are represented by their octets, with a MAC header of short addresses and an FCS; packets
    /// are IPv6, and are parsed from the octets that arrive.
    Rfc4944(FrameCompression),
}

impl CsmaFraming {
    /// Framing of Ayadi and Awang (2010).
    pub const PAPER: Self = Self::Plain(Plain::PAPER);
}

/// Compression of a packet's headers.
#[derive(Clone, Debug)]
pub enum FrameCompression {
    /// No compression: dispatch IPv6.
    None,
    /// LOWPAN_IPHC and LOWPAN_NHC (RFC 6282), with one prefix that all nodes share.
    Iphc,
    /// ROHC packet after [`ROHC`](thinair_lowpan::dispatch::ROHC). Where frames are forwarded singly, the channel is
    /// between the first and the last node, with a mesh header in each frame if these are not neighbors; otherwise each
    /// hop has its own channel.
    Rohc(Box<RohcChannel>),
    /// ROHC packet in a UDP datagram from the first to the last node, whose outer headers are compressed by LOWPAN_IPHC
    /// and LOWPAN_NHC; it needs no ROHC dispatch.
    RohcInUdp(Box<RohcChannel>),
}

/// Equation 2 of Ayadi and Awang (2010): each frame carries this many octets of the packet, the last one the rest,
/// without a fragmentation header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// MACH: size of the MAC header with its FCS, in octets.
    pub mac_header: u16,
    /// MTU: octets of a packet per frame; 0 means 1.
    pub mtu: u16,
}

impl Plain {
    /// MACH 120 bits, PHYH 48 bits, frames of 127 octets with both.
    pub const PAPER: Self = Self { mac_header: 15, mtu: 127 - 15 - PHYH };

    /// N: number of frames of a packet of `octets` octets; at least 1.
    pub const fn frames(self, octets: u16) -> u16 {
        let frames = octets.div_ceil(self.mtu());
        if frames == 0 { 1 } else { frames }
    }

    /// Size of frame number `frame` on the air, in octets.
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

    /// Section V: MSS 64 is one frame. By equation 2, MSS 512 is six, but the text has eight.
    #[test]
    fn segments_are_cut_as_equation_2_has_it() {
        let frames = |mss: u16| Plain::PAPER.frames(mss + 40);
        assert_eq!([64, 66, 67, 512, 1_020, 1_024].map(frames), [1, 1, 2, 6, 10, 11]);
        let octets: Vec<_> = (0..6).map(|frame| Plain::PAPER.on_air(552, frame)).collect();
        assert_eq!(octets, [127, 127, 127, 127, 127, 22 + 21]);
        assert_eq!((Plain::PAPER.frames(0), Plain::PAPER.on_air(0, 0)), (1, 21));
    }
}
