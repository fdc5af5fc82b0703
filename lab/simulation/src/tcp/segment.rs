//! Segment, and its encoding. RFC 9293, section 3.1.

use std::fmt;

use thinair_wire::checksum::Sum;
use thinair_wire::header::tcp::{Tcp, kind};

use super::fast_open::Cookie;

/// Option kind of Fast Open. RFC 7413, section 4.1.1.
const FAST_OPEN: u8 = 34;

/// Segment without ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpSegment {
    /// Sequence number of the SYN, or of the first octet.
    pub sequence_number: u32,
    /// Acknowledgment number, if there is one.
    pub acknowledgment: Option<u32>,
    /// SYN.
    pub syn: bool,
    /// FIN.
    pub fin: bool,
    /// RST.
    pub rst: bool,
    /// PSH.
    pub psh: bool,
    /// Window in the header, before scaling.
    pub window: u16,
    /// Options.
    pub options: SegmentOptions,
    /// Octets of the application.
    pub payload: Vec<u8>,
}

/// Known options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentOptions {
    /// Maximum Segment Size.
    pub mss: Option<u16>,
    /// Window Scale: a shift of 0 to 14.
    pub window_scale: Option<u8>,
    /// SACK Permitted.
    pub sack_permitted: bool,
    /// SACK blocks, the latest first.
    pub sack: SackBlocks,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// Fast Open: a cookie, or the request for one (`None`).
    pub fast_open: Option<Option<Cookie>>,
}

/// Up to 4 blocks: first sequence number, and the one after the last. RFC 2018, section 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    len: u8,
}

impl SackBlocks {
    /// Adds a block, if there is room.
    pub fn push(&mut self, start: u32, end: u32) {
        if let Some(place) = self.blocks.get_mut(usize::from(self.len)) {
            *place = (start, end);
            self.len += 1;
        }
    }

    /// Blocks in use.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        self.blocks.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// Reason that octets are no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// The header is truncated, or its Data Offset is wrong.
    Malformed,
    /// The checksum is wrong.
    Checksum,
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => write!(f, "the TCP header is truncated, or its Data Offset is wrong"),
            Self::Checksum => write!(f, "the TCP checksum is wrong"),
        }
    }
}

impl std::error::Error for SegmentError {}

impl TcpSegment {
    /// Number of sequence numbers: octets, SYN and FIN.
    pub fn sequence_length(&self) -> u32 {
        self.payload.len() as u32 + u32::from(self.syn) + u32::from(self.fin)
    }

    /// Size of the header, in octets.
    pub fn header_len(&self) -> usize {
        Tcp::LEN + self.options.write().1
    }

    /// Encodes header and payload. `pseudo` is the sum over the pseudo header without the length, which is added here.
    pub fn write(&self, source_port: u16, destination_port: u16, pseudo: Sum) -> Vec<u8> {
        let (options, len) = self.options.write();
        let header = Tcp {
            source_port,
            destination_port,
            sequence_number: self.sequence_number,
            acknowledgment_number: self.acknowledgment.unwrap_or(0),
            ack: self.acknowledgment.is_some(),
            psh: self.psh,
            rst: self.rst,
            syn: self.syn,
            fin: self.fin,
            window: self.window,
            options: options.get(..len).unwrap_or_default(),
            ..Tcp::default()
        };
        let mut octets = vec![0; header.len()];
        // The buffer has the room.
        let _ = header.write(&mut octets, 0);
        octets.extend_from_slice(&self.payload);
        let checksum = pseudo.word(octets.len() as u16).octets(&octets).checksum();
        octets[16..18].copy_from_slice(&checksum.to_be_bytes());
        octets
    }

    /// Parses ports and segment; `pseudo` as in [`write`](Self::write).
    ///
    /// # Errors
    /// The segment is truncated or damaged, and must be dropped.
    pub fn read(octets: &[u8], pseudo: Sum) -> Result<(u16, u16, Self), SegmentError> {
        let header = Tcp::read(octets).map_err(|_| SegmentError::Malformed)?;
        if pseudo.word(octets.len() as u16).octets(octets).checksum() != 0 {
            return Err(SegmentError::Checksum);
        }
        let segment = Self {
            sequence_number: header.sequence_number,
            acknowledgment: header.ack.then_some(header.acknowledgment_number),
            syn: header.syn,
            fin: header.fin,
            rst: header.rst,
            psh: header.psh,
            window: header.window,
            options: SegmentOptions::read(&header),
            payload: octets.get(header.len()..).unwrap_or_default().to_vec(),
        };
        Ok((header.source_port, header.destination_port, segment))
    }
}

impl SegmentOptions {
    /// Encodes the options in the order of Linux, with NOPs before fields that are aligned to 4 octets.
    fn write(&self) -> ([u8; 40], usize) {
        let mut out = Appended { octets: [kind::NOP; 40], len: 0 };
        if let Some(mss) = self.mss {
            out.option(kind::MSS, &mss.to_be_bytes());
        }
        if let Some((value, echo)) = self.timestamps {
            if self.sack_permitted {
                out.option(kind::SACK_PERMITTED, &[]);
            } else {
                out.len += 2;
            }
            out.option(kind::TIMESTAMPS, &(u64::from(value) << 32 | u64::from(echo)).to_be_bytes());
        } else if self.sack_permitted {
            out.len += 2;
            out.option(kind::SACK_PERMITTED, &[]);
        }
        if let Some(shift) = self.window_scale {
            out.len += 1;
            out.option(kind::WINDOW_SCALE, &[shift]);
        }
        // As many as there is room for: 3 beside timestamps. RFC 2018, section 3.
        let room = (40 - out.len).saturating_sub(4) / 8;
        let blocks = self.sack.as_slice();
        let blocks = blocks.get(..blocks.len().min(room)).unwrap_or_default();
        if !blocks.is_empty() {
            out.len += 2;
            let mut value = [0; 32];
            for (place, (start, end)) in value.chunks_exact_mut(8).zip(blocks) {
                place.copy_from_slice(&(u64::from(*start) << 32 | u64::from(*end)).to_be_bytes());
            }
            out.option(kind::SACK, value.get(..blocks.len() * 8).unwrap_or_default());
        }
        if let Some(cookie) = &self.fast_open {
            out.option(FAST_OPEN, cookie.as_ref().map_or(&[], Cookie::octets));
        }
        (out.octets, out.len.next_multiple_of(4).min(40))
    }

    /// Parses the options. Unknown ones, or those with a wrong length, are left out.
    fn read(header: &Tcp<'_>) -> Self {
        let mut options = Self::default();
        for (option, octets) in header.walk() {
            let value = octets.get(2..).unwrap_or_default();
            match (option, value) {
                (kind::MSS, &[high, low]) => options.mss = Some(u16::from_be_bytes([high, low])),
                (kind::WINDOW_SCALE, &[shift]) => options.window_scale = Some(shift.min(14)),
                (kind::SACK_PERMITTED, []) => options.sack_permitted = true,
                (kind::TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                    options.timestamps =
                        Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
                }
                (kind::SACK, blocks) => {
                    for block in blocks.chunks_exact(8) {
                        let both = u64::from_be_bytes(block.try_into().unwrap_or_default());
                        options.sack.push((both >> 32) as u32, both as u32);
                    }
                }
                (FAST_OPEN, []) => options.fast_open = Some(None),
                (FAST_OPEN, cookie) => options.fast_open = Cookie::new(cookie).map(Some),
                _ => {}
            }
        }
        options
    }
}

struct Appended {
    octets: [u8; 40],
    len: usize,
}

impl Appended {
    fn option(&mut self, kind: u8, value: &[u8]) {
        let end = self.len + 2 + value.len();
        let Some(place) = self.octets.get_mut(self.len..end) else { return };
        let (front, rest) = place.split_at_mut(2);
        front.copy_from_slice(&[kind, 2 + value.len() as u8]);
        rest.copy_from_slice(value);
        self.len = end;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// SYN of a Linux client with Fast Open, and its length.
    #[test]
    fn a_syn_with_every_option_fits() {
        let options = SegmentOptions {
            mss: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some((1, 0)),
            fast_open: Some(Cookie::new(&[7; 8])),
            ..SegmentOptions::default()
        };
        let segment = TcpSegment { syn: true, options, payload: b"x".to_vec(), ..TcpSegment::default() };
        assert_eq!(segment.header_len(), 52);
        let octets = segment.write(1, 2, Sum::default());
        assert_eq!(octets[20..40], *b"\x02\x04\x05\xb4\x04\x02\x08\x0a\0\0\0\x01\0\0\0\0\x01\x03\x03\x07");
        assert_eq!(TcpSegment::read(&octets, Sum::default()), Ok((1, 2, segment)));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            numbers: (u32, Option<u32>, u16),
            flags: [bool; 4],
            mss: Option<u16>,
            scale in proptest::option::of(0..15_u8),
            blocks in vec(any::<(u32, u32)>(), 0..4),
            timestamps: Option<(u32, u32)>,
            payload in vec(any::<u8>(), 0..40),
        ) {
            let [syn, fin, rst, psh] = flags;
            let mut options = SegmentOptions { timestamps, ..SegmentOptions::default() };
            match syn {
                true => (options.mss, options.window_scale, options.sack_permitted) = (mss, scale, true),
                false => blocks.iter().for_each(|(start, end)| options.sack.push(*start, *end)),
            }
            let segment = TcpSegment {
                sequence_number: numbers.0, acknowledgment: numbers.1, window: numbers.2, syn, fin, rst, psh, options, payload,
            };
            let octets = segment.write(5_683, 40_000, Sum::default().word(6));
            prop_assert_eq!(octets.len(), segment.header_len() + segment.payload.len());
            prop_assert_eq!(TcpSegment::read(&octets, Sum::default().word(6)), Ok((5_683, 40_000, segment)));
            let mut damaged = octets;
            damaged[7] ^= 1;
            prop_assert_eq!(TcpSegment::read(&damaged, Sum::default().word(6)), Err(SegmentError::Checksum));
        }

        #[test]
        fn any_octets_are_read_or_refused(octets in vec(any::<u8>(), 0..80)) {
            let _ = TcpSegment::read(&octets, Sum::default());
        }
    }
}
