//! How a packet becomes frames, and how long they are on the air.

/// Octets of preamble, SFD and length. IEEE 802.15.4-2006, section 6.3.
const PHYH: u16 = 6;

/// Octets of an acknowledgment on the air: 5, and those of the PHY.
pub(super) const ACK: u16 = 5 + PHYH;

/// How packets are cut into frames. More can be added: whoever cuts answers how many frames there are, and how many octets
/// of each are on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// As equation 2 of Ayadi and Awang (2010) has it: frames carry so many octets of the packet each, the last one what is
    /// left, and nothing says which part it is.
    Plain {
        /// MACH: octets of the MAC header with its FCS.
        mac_header: u16,
        /// MTU: octets of a packet that fit into a frame; 0 is taken for 1.
        mtu: u16,
    },
}

impl Framing {
    /// MACH 120 bits, PHYH 48 bits, frames of 127 octets with both.
    pub const PAPER: Self = Self::Plain { mac_header: 15, mtu: 127 - 15 - PHYH };

    /// N: into how many frames a packet of so many octets is cut; 1 at least.
    pub fn frames(self, octets: u16) -> u16 {
        match self {
            Self::Plain { mtu, .. } => octets.div_ceil(mtu.max(1)).max(1),
        }
    }

    /// Octets on the air of the frame of that number.
    pub fn on_air(self, octets: u16, frame: u16) -> u16 {
        match self {
            Self::Plain { mac_header, mtu } => {
                let mtu = mtu.max(1);
                let left = octets.saturating_sub(frame.saturating_mul(mtu));
                left.min(mtu).saturating_add(mac_header).saturating_add(PHYH)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section V: MSS 64 is one frame. By equation 2, MSS 512 is six; the text says eight.
    #[test]
    fn segments_are_cut_as_equation_2_has_it() {
        let frames = |mss: u16| Framing::PAPER.frames(mss + 40);
        assert_eq!([64, 66, 67, 512, 1_020, 1_024].map(frames), [1, 1, 2, 6, 10, 11]);
        let octets: Vec<_> = (0..6).map(|frame| Framing::PAPER.on_air(552, frame)).collect();
        assert_eq!(octets, [127, 127, 127, 127, 127, 22 + 21]);
        assert_eq!((Framing::PAPER.frames(0), Framing::PAPER.on_air(0, 0)), (1, 21));
    }
}
