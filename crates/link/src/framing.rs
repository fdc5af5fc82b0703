//! Frames of packets: overhead of the link layer, and fragmentation below IP.

/// Mapping of packets to frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Octets that the link layer adds to every frame.
    pub overhead: u16,
    /// Largest packet, in octets; 0 for no limit.
    pub mtu: u32,
    /// Fragmentation of packets that are too long for a frame.
    pub fragmentation: Fragmentation,
}

/// Fragmentation of packets that are too long for a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragmentation {
    /// Every packet is a frame.
    #[default]
    None,
    /// Several consecutive frames for a packet; **it is lost if one of them is.**
    Frames {
        /// Octets of a frame, without [`Framing::overhead`], for the packet and the fragment header. The minimum is
        /// a header and a unit.
        payload: u16,
        /// Octets of the header of the first fragment. An unfragmented packet has none.
        first: u8,
        /// Octets of the header of later fragments.
        next: u8,
        /// Unit of the lengths of all fragments except the last, in octets. 0 means 1.
        unit: u8,
    },
}

impl Fragmentation {
    /// Fragmentation of 6LoWPAN: FRAG1 of 4 octets, FRAGN of 5, units of 8. RFC 4944, section 5.3.
    ///
    /// Offsets count the octets of the packet as offered; in RFC 4944 they count those of the uncompressed one.
    pub const fn rfc4944(payload: u16) -> Self {
        Self::Frames { payload, first: 4, next: 5, unit: 8 }
    }
}

/// A frame of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFrame {
    /// Octets of the packet in it.
    pub payload: usize,
    /// Other octets: fragment header and link layer.
    pub overhead: usize,
}

impl PacketFrame {
    /// Returns all its octets.
    pub const fn octets(&self) -> usize {
        self.payload + self.overhead
    }
}

impl Framing {
    /// Iterates over the frames of a packet of `len` octets, in order; at least one.
    pub fn frames(&self, len: usize) -> PacketFrames {
        PacketFrames { framing: *self, left: len, next: NextFrame::First }
    }

    /// Returns the octets on the air for a packet of `len`.
    pub fn octets(&self, len: usize) -> u64 {
        self.frames(len).map(|frame| frame.octets() as u64).sum()
    }
}

/// Iterator of [`Framing::frames`].
#[derive(Clone, Debug)]
pub struct PacketFrames {
    framing: Framing,
    left: usize,
    next: NextFrame,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextFrame {
    First,
    Following,
    None,
}

impl Iterator for PacketFrames {
    type Item = PacketFrame;

    fn next(&mut self) -> Option<PacketFrame> {
        let overhead = usize::from(self.framing.overhead);
        let is_first = match self.next {
            NextFrame::First => true,
            NextFrame::Following => false,
            NextFrame::None => return None,
        };
        let (room, header, unit) = match self.framing.fragmentation {
            Fragmentation::None => (usize::MAX, 0, 1),
            Fragmentation::Frames { payload, first, next, unit } => {
                let header = usize::from(if is_first { first } else { next });
                (usize::from(payload), header, usize::from(unit).max(1))
            }
        };
        if is_first && self.left <= room {
            self.next = NextFrame::None;
            return Some(PacketFrame { payload: self.left, overhead });
        }
        let room = room.saturating_sub(header);
        // The last one may end anywhere.
        let payload = if !is_first && self.left <= room {
            self.left
        } else {
            (room / unit * unit).max(unit).min(self.left)
        };
        self.left -= payload;
        self.next = if self.left == 0 { NextFrame::None } else { NextFrame::Following };
        Some(PacketFrame { payload, overhead: overhead + header })
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn frames(framing: Framing, len: usize) -> Vec<(usize, usize)> {
        framing.frames(len).map(|frame| (frame.payload, frame.overhead)).collect()
    }

    #[test]
    fn a_packet_that_fits_has_no_fragment_header() {
        let framing = Framing { overhead: 25, mtu: 0, fragmentation: Fragmentation::rfc4944(102) };
        assert_eq!(frames(framing, 102), [(102, 25)]);
        assert_eq!(frames(framing, 0), [(0, 25)]);
        assert_eq!(frames(Framing::default(), 65_535), [(65_535, 0)]);
    }

    /// RFC 4944, section 5.3: 81 to 102 octets for a frame; multiples of 8 except the last.
    #[test]
    fn a_longer_one_goes_in_multiples_of_eight_octets() {
        let framing = Framing { overhead: 25, mtu: 0, fragmentation: Fragmentation::rfc4944(102) };
        assert_eq!(frames(framing, 103), [(96, 29), (7, 30)]);
        assert_eq!(frames(framing, 96 + 97), [(96, 29), (97, 30)]);
        assert_eq!(frames(framing, 96 + 98), [(96, 29), (96, 30), (2, 30)]);
        assert_eq!(frames(framing, 1280).iter().map(|(payload, _)| payload).sum::<usize>(), 1280);
        assert_eq!(framing.octets(103), 103 + 4 + 5 + 50);
    }

    #[test]
    fn frames_without_room_still_end() {
        let framing = |unit| Framing {
            fragmentation: Fragmentation::Frames { payload: 1, first: 4, next: 5, unit },
            ..Framing::default()
        };
        assert_eq!(frames(framing(0), 3), [(1, 4), (1, 5), (1, 5)]);
        assert_eq!(frames(framing(8), 9), [(8, 4), (1, 5)]);
    }
}
