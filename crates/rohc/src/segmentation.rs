//! Segmentation and reassembly. RFC 5795, section 5.2.5.

use thinair_wire::crc;

use crate::storage::Slots;

/// Octets of the CRC at the end of a reconstructed unit.
const CRC_LEN: usize = 4;

/// Splits one ROHC header with its payload into segments.
///
/// All segments of a unit must be sent in order, with nothing in between.
#[derive(Clone, Debug)]
pub struct Segmenter<'b> {
    packet: &'b [u8],
    crc: [u8; CRC_LEN],
    sent: usize,
    size: usize,
}

impl<'b> Segmenter<'b> {
    /// Creates a segmenter of `packet`, which has neither padding nor feedback, for segments of at most `size`
    /// octets, type octet included. `None` if the unit is larger than `mrru` or `size` leaves no room for an
    /// octet.
    pub fn new(packet: &'b [u8], size: usize, mrru: usize) -> Option<Self> {
        let unit = packet.len() + CRC_LEN;
        (unit <= mrru && size >= 2).then(|| Self { packet, crc: crc::fcs32(packet), sent: 0, size })
    }

    /// Writes the next segment to the start of `out`, which has room for `size` octets, and returns its
    /// length; `None` after the last one.
    pub fn next_segment(&mut self, out: &mut [u8]) -> Option<usize> {
        let unit = self.packet.len() + CRC_LEN;
        let left = unit.checked_sub(self.sent).filter(|left| *left > 0)?;
        let octets = left.min(self.size - 1).min(out.len().checked_sub(1)?);
        let last = octets == left;
        out[0] = 0b1111_1110 | u8::from(last);
        for slot in &mut out[1..=octets] {
            *slot = match self.sent.checked_sub(self.packet.len()) {
                None => self.packet[self.sent],
                Some(at) => self.crc[at],
            };
            self.sent += 1;
        }
        Some(1 + octets)
    }
}

/// Collects the segments of one channel.
#[derive(Debug)]
pub(crate) struct Reassembler<'m> {
    unit: Slots<'m, u8>,
    len: usize,
    overrun: bool,
}

impl<'m> Reassembler<'m> {
    /// Creates a reassembler of units up to the length of `unit`: MRRU.
    pub(crate) fn new(unit: Slots<'m, u8>) -> Self {
        Self { unit, len: 0, overrun: false }
    }

    /// Drops an unfinished unit, because a packet arrived that is no segment.
    pub(crate) fn abort(&mut self) {
        self.len = 0;
        self.overrun = false;
    }

    /// Adds a segment. After the last one returns the length of the reconstructed packet, or the reason it is
    /// dropped.
    pub(crate) fn add(&mut self, last: bool, octets: &[u8]) -> Option<Result<usize, SegmentError>> {
        let end = self.len + octets.len();
        match self.unit.get_mut(self.len..end) {
            Some(room) => {
                room.copy_from_slice(octets);
                self.len = end;
            }
            None => self.overrun = true,
        }
        if !last {
            return None;
        }
        let (len, overrun) = (self.len, self.overrun);
        self.abort();
        if overrun {
            return Some(Err(SegmentError::TooLarge));
        }
        let whole = self.unit.get(..len).unwrap_or_default();
        let Some((packet, crc)) = whole.split_last_chunk::<CRC_LEN>() else {
            return Some(Err(SegmentError::Crc));
        };
        if packet.is_empty() || crc::fcs32(packet) != *crc {
            return Some(Err(SegmentError::Crc));
        }
        Some(Ok(packet.len()))
    }

    /// The first `len` octets of the unit.
    pub(crate) fn packet(&self, len: usize) -> &[u8] {
        self.unit.get(..len).unwrap_or_default()
    }
}

/// Reason a reconstructed unit is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// Larger than MRRU; every unit where MRRU is 0.
    TooLarge,
    /// The CRC does not match, or the unit has four octets or less.
    Crc,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn segments(packet: &[u8], size: usize) -> Vec<Vec<u8>> {
        let mut segmenter = Segmenter::new(packet, size, 2_000).unwrap();
        let mut all = Vec::new();
        let mut out = [0; 64];
        while let Some(len) = segmenter.next_segment(&mut out) {
            all.push(out[..len].to_vec());
        }
        all
    }

    #[test]
    fn a_unit_comes_back_from_segments_of_any_size() {
        let packet: Vec<u8> = (0..100).collect();
        for size in 2..60 {
            let mut reassembler = Reassembler::new(Slots::owned(vec![0; 104]));
            let mut done = None;
            for segment in segments(&packet, size) {
                assert!(segment.len() <= size && segment[0] >> 1 == 0x7F);
                assert_eq!(done, None);
                done = reassembler.add(segment[0] & 1 == 1, &segment[1..]);
            }
            assert_eq!(done, Some(Ok(100)));
            assert_eq!(reassembler.packet(100), packet);
        }
    }

    #[test]
    fn damage_loss_and_excess_are_discarded() {
        let packet = [7; 40];
        let mut all = segments(&packet, 20);
        all[1][3] ^= 1;
        let run = |all: &[Vec<u8>], mrru| {
            let mut reassembler = Reassembler::new(Slots::owned(vec![0; mrru]));
            all.iter().filter_map(|s| reassembler.add(s[0] & 1 == 1, &s[1..])).last()
        };
        assert_eq!(run(&all, 44), Some(Err(SegmentError::Crc)));
        assert_eq!(run(&all[1..], 44), Some(Err(SegmentError::Crc)));
        assert_eq!(run(&all, 43), Some(Err(SegmentError::TooLarge)));
        assert_eq!(run(&all, 0), Some(Err(SegmentError::TooLarge)));
        assert_eq!(run(&[vec![0xFF, 1, 2, 3, 4]], 44), Some(Err(SegmentError::Crc)));
        assert!(Segmenter::new(&packet, 20, 43).is_none());
    }
}
