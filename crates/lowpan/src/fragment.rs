//! Fragmentation of packets that do not fit into one frame. RFC 4944, section 5.3.
//!
//! Sizes and offsets are those of the packet before compression, and so is the rule that a fragment has a multiple
//! of 8 octets: the first has fewer octets on the link, where LOWPAN_IPHC replaces more.

use thinair_wire::coder::{Coder, NoRoom, Step, Writer};

use crate::compress::CompressedPacket;

/// Length of the header of a first fragment, in octets.
pub const FRAG1_LEN: usize = 4;
/// Length of the header of a subsequent fragment, in octets.
pub const FRAGN_LEN: usize = 5;
/// Largest datagram_size.
pub const MAX_DATAGRAM: usize = 0x7FF;
/// Unit of offsets, in octets.
pub(crate) const UNIT: usize = 8;

/// A fragmentation header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentHeader {
    /// Octets of the packet, 0 to 2,047.
    pub datagram_size: u16,
    /// Tag of the packet, common to its fragments; consecutive packets have different tags.
    pub datagram_tag: u16,
    /// Offset of the fragment in the packet, in units of 8 octets; `None` for FRAG1, which is the first.
    pub datagram_offset: Option<u8>,
}

/// FRAG1 and FRAGN: datagram_size, datagram_tag, datagram_offset. RFC 4944, figures 4 and 5.
pub(crate) fn fragment_header<'p, C: Coder<'p>>(c: &mut C, h: &mut FragmentHeader) -> Step {
    c.discriminator(2, 0b11)?;
    let is_subsequent = c.flag("FRAGN", &mut h.datagram_offset.is_some())?;
    c.discriminator(2, 0b00)?;
    c.uint("datagram_size", 11, &mut h.datagram_size)?;
    c.uint("datagram_tag", 16, &mut h.datagram_tag)?;
    let mut offset = h.datagram_offset.unwrap_or(0);
    if is_subsequent {
        c.uint("datagram_offset", 8, &mut offset)?;
    }
    h.datagram_offset = is_subsequent.then_some(offset);
    Ok(())
}

impl FragmentHeader {
    /// Creates a FRAG1.
    pub const fn first(datagram_size: u16, datagram_tag: u16) -> Self {
        Self { datagram_size, datagram_tag, datagram_offset: None }
    }

    /// Returns the octets of the header.
    pub const fn octets(&self) -> usize {
        if self.datagram_offset.is_some() { FRAGN_LEN } else { FRAG1_LEN }
    }

    /// Writes the header at the start of `out`, and returns its end.
    pub fn write(mut self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out, 0);
        // No value is rejected.
        let _ = fragment_header(&mut writer, &mut self);
        writer.finish()
    }
}

/// Reason why a packet cannot be fragmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentError {
    /// The packet exceeds the largest datagram_size.
    TooLong {
        /// Octets of the packet.
        size: usize,
    },
    /// The compressed headers do not fit into the first fragment, or not even 8 octets into the others.
    NoRoom {
        /// Octets of payload of a frame.
        room: usize,
    },
}

impl core::fmt::Display for FragmentError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::TooLong { size } => {
                write!(f, "{size} octets exceed the maximum of a fragmented packet, 2047")
            }
            Self::NoRoom { room } => {
                write!(f, "{room} octets of payload in a frame are too few for a fragment")
            }
        }
    }
}

impl core::error::Error for FragmentError {}

/// Payload of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'p> {
    /// Fragmentation header; `None` if the packet fits into one frame.
    pub header: Option<FragmentHeader>,
    /// Content after the header.
    pub content: &'p [u8],
}

impl Fragment<'_> {
    /// Returns the octets in the frame.
    pub const fn octets(&self) -> usize {
        match &self.header {
            Some(header) => header.octets() + self.content.len(),
            None => self.content.len(),
        }
    }

    /// Writes the payload of the frame at the start of `out`, and returns its end.
    pub fn write(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let start = match self.header {
            Some(header) => header.write(out)?,
            None => 0,
        };
        let end = start + self.content.len();
        out.get_mut(start..end).ok_or(NoRoom)?.copy_from_slice(self.content);
        Ok(end)
    }
}

/// Iterates over the fragments of a packet, first to last. `Iterator::count` of a copy returns their number.
///
/// ```
/// use thinair_lowpan::{Links, LowpanSettings, compress, fragment::Fragments};
///
/// let mut packet = [0; 300];
/// packet[..8].copy_from_slice(b"\x60\0\0\0\x01\x04\x3b\x40");
/// let mut out = [0; 301];
/// let compressed = compress(&LowpanSettings::default(), Links::default(), &packet, &mut out)?;
/// let fragments = Fragments::new(&compressed, &out[..compressed.len], 7, 102)?;
/// let octets: Vec<_> = fragments.map(|fragment| fragment.octets()).collect();
/// assert_eq!(octets, [95, 101, 97]);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Fragments<'p> {
    /// Octets that are not yet sent.
    octets: &'p [u8],
    /// Octets of compressed headers at its start, and octets that they replace.
    head_out: usize,
    head_in: usize,
    datagram_size: u16,
    datagram_tag: u16,
    /// Octets of the packet that were sent.
    at: usize,
    room: usize,
    is_whole: bool,
}

impl<'p> Fragments<'p> {
    /// Fragments the output of [`compress`](crate::compress), or a ROHC packet after its dispatch
    /// ([`CompressedPacket::rohc`]), for frames with `room` octets of payload. `datagram_tag` is one more than that of the
    /// previous fragmented packet, with any destination.
    pub fn new(
        compressed: &CompressedPacket,
        octets: &'p [u8],
        datagram_tag: u16,
        room: usize,
    ) -> Result<Self, FragmentError> {
        let size = compressed.header_in + octets.len().saturating_sub(compressed.header_out);
        if octets.len() <= room {
            let header = FragmentHeader::first(0, datagram_tag);
            return Ok(Self { is_whole: true, ..Self::cut(compressed, octets, header, room) });
        }
        let datagram_size = u16::try_from(size)
            .ok()
            .filter(|_| size <= MAX_DATAGRAM)
            .ok_or(FragmentError::TooLong { size })?;
        Self::of_part(compressed, octets, FragmentHeader::first(datagram_size, datagram_tag), room)
    }

    /// Fragments the beginning of a packet, whose rest is forwarded separately: all frames have fragmentation
    /// headers.
    pub(crate) fn of_part(
        compressed: &CompressedPacket,
        octets: &'p [u8],
        header: FragmentHeader,
        room: usize,
    ) -> Result<Self, FragmentError> {
        let fragments = Self::cut(compressed, octets, header, room);
        let rest = octets.len().saturating_sub(compressed.header_out);
        let is_enough = fragments.first_len().is_some_and(|len| len == rest || room >= FRAGN_LEN + UNIT);
        if is_enough { Ok(fragments) } else { Err(FragmentError::NoRoom { room }) }
    }

    const fn cut(
        compressed: &CompressedPacket,
        octets: &'p [u8],
        header: FragmentHeader,
        room: usize,
    ) -> Self {
        Self {
            octets,
            head_out: compressed.header_out,
            head_in: compressed.header_in,
            datagram_size: header.datagram_size,
            datagram_tag: header.datagram_tag,
            at: 0,
            room,
            is_whole: false,
        }
    }

    /// Returns the octets of payload after the compressed headers of the first fragment; `None` if these have no
    /// room.
    fn first_len(&self) -> Option<usize> {
        let rest = self.octets.len().checked_sub(self.head_out)?;
        let most = self.room.checked_sub(FRAG1_LEN + self.head_out)?;
        if most >= rest {
            return Some(rest);
        }
        // Largest multiple of 8 octets of the packet that fits.
        ((self.head_in + most) & !(UNIT - 1)).checked_sub(self.head_in)
    }
}

impl<'p> Iterator for Fragments<'p> {
    type Item = Fragment<'p>;

    fn next(&mut self) -> Option<Fragment<'p>> {
        if self.octets.is_empty() {
            return None;
        }
        if self.is_whole {
            return Some(Fragment { header: None, content: core::mem::take(&mut self.octets) });
        }
        let mut header = FragmentHeader::first(self.datagram_size, self.datagram_tag);
        let (len, of_packet) = if self.at == 0 {
            let len = self.first_len()?;
            (self.head_out + len, self.head_in + len)
        } else {
            // At most 2,047 / 8.
            header.datagram_offset = u8::try_from(self.at / UNIT).ok();
            let most = self.room.checked_sub(FRAGN_LEN)?;
            let len = if most >= self.octets.len() { self.octets.len() } else { most & !(UNIT - 1) };
            (len, len)
        };
        let (content, rest) = self.octets.split_at_checked(len).filter(|(content, _)| !content.is_empty())?;
        self.octets = rest;
        self.at += of_packet;
        Some(Fragment { header: Some(header), content })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::vec::Vec;
    use thinair_wire::coder::Describer;

    /// Figures 4 and 5.
    #[test]
    fn headers_have_the_widths_of_the_figures() {
        for (is_subsequent, widths) in [(0, &[2, 1, 2, 11, 16][..]), (1, &[2, 1, 2, 11, 16, 8])] {
            let mut describer = Describer::<8>::new(is_subsequent);
            fragment_header(&mut describer, &mut FragmentHeader::default()).unwrap();
            let fields: Vec<_> = describer.fields().iter().map(|field| field.bits).collect();
            assert_eq!(fields, widths);
        }
        let mut out = [0; 5];
        assert_eq!(FragmentHeader::first(0x500, 0xABCD).write(&mut out), Ok(4));
        assert_eq!(out[..4], [0b1100_0101, 0, 0xAB, 0xCD]);
        let next = FragmentHeader { datagram_offset: Some(12), ..FragmentHeader::first(0x7FF, 0xABCD) };
        assert_eq!(next.write(&mut out), Ok(5));
        assert_eq!(out, [0b1110_0111, 0xFF, 0xAB, 0xCD, 12]);
        assert_eq!(next.write(&mut out[..4]), Err(NoRoom));
    }

    #[test]
    fn fragments_end_at_multiples_of_8_octets_of_the_packet() {
        let octets: Vec<u8> = (0..=255).cycle().take(2047).collect();
        for (header_in, header_out) in [(0, 1), (40, 3), (48, 7), (48, 47)] {
            let compressed = CompressedPacket { header_in, header_out, len: 0 };
            for room in 60..=120 {
                for len in [0, 1, 8, 50, 99, 400, 1280 - header_in] {
                    let octets = &octets[..header_out + len];
                    let fragments = Fragments::new(&compressed, octets, 9, room).unwrap();
                    if octets.len() <= room {
                        let whole = Fragment { header: None, content: octets };
                        assert_eq!(fragments.collect::<Vec<_>>(), [whole]);
                        continue;
                    }
                    let (mut at, mut sent) = (0, Vec::new());
                    for (i, fragment) in fragments.enumerate() {
                        let header = fragment.header.unwrap();
                        assert!(fragment.octets() <= room);
                        assert_eq!(usize::from(header.datagram_size), header_in + len);
                        let offset = header.datagram_offset.map(usize::from);
                        assert_eq!(offset, (i > 0).then_some(at / UNIT));
                        assert_eq!(at % UNIT, 0);
                        at += fragment.content.len();
                        at = if i == 0 { at + header_in - header_out } else { at };
                        sent.extend_from_slice(fragment.content);
                    }
                    assert_eq!((at, &sent[..]), (header_in + len, octets));
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_cut_is_reported() {
        let compressed = CompressedPacket { header_in: 40, header_out: 30, len: 2038 };
        let octets = [0; 2038];
        let too_long = Fragments::new(&compressed, &octets, 0, 100);
        assert_eq!(too_long.unwrap_err(), FragmentError::TooLong { size: 2048 });
        for (room, is_enough) in [(12, false), (33, false), (34, true)] {
            assert_eq!(Fragments::new(&compressed, &octets[1..], 0, room).is_ok(), is_enough, "{room}");
        }
        let compressed = CompressedPacket { header_in: 0, header_out: 1, len: 100 };
        assert!(Fragments::new(&compressed, &octets[..100], 0, 12).is_err());
        assert_eq!(Fragments::new(&compressed, &octets[..100], 0, 13).unwrap().count(), 13);
    }
}
