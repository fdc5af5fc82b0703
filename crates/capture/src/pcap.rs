//! The pcap format: one file header, then records. draft-ietf-opsawg-pcap.

use pcap_parser::nom::{Err::Incomplete, Needed};
use pcap_parser::{parse_pcap_frame, parse_pcap_frame_be, parse_pcap_header};

use crate::record::Found;
use crate::{Flaw, LinkType, Timestamp};

/// Octets of the file header.
pub(crate) const HEADER_LEN: usize = 24;
/// Octets in front of the data of each record.
pub(crate) const RECORD_HEADER_LEN: usize = 16;

/// The magic number in the order of the file's octets, with microseconds (a1b2c3d4) or nanoseconds (a1b23c4d).
pub(crate) const MAGICS: [[u8; 4]; 4] =
    [[0xa1, 0xb2, 0xc3, 0xd4], [0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0x3c, 0x4d], [0x4d, 0x3c, 0xb2, 0xa1]];

/// What the file header says about all records.
#[derive(Debug)]
pub(crate) struct Header {
    big_endian: bool,
    nanoseconds: bool,
    link_type: LinkType,
}

impl Header {
    /// Reads [`HEADER_LEN`] octets which begin with one of [`MAGICS`].
    pub(crate) fn parse(octets: &[u8]) -> Result<Self, Flaw> {
        let Ok((_, header)) = parse_pcap_header(octets) else {
            return Err(Flaw::Version { major: 0, minor: 0 });
        };
        // Before 2.4 the two lengths of a record may be swapped; no tool has written that since 1996.
        if header.version_major != 2 || header.version_minor < 4 {
            return Err(Flaw::Version { major: header.version_major, minor: header.version_minor });
        }
        Ok(Self {
            big_endian: header.is_bigendian(),
            nanoseconds: header.is_nanosecond_precision(),
            // The upper 16 bits hold the length of a frame check sequence, and bits that readers must ignore.
            link_type: LinkType((header.network.0 & 0xffff) as u16),
        })
    }

    pub(crate) fn link_type(&self) -> LinkType {
        self.link_type
    }

    /// Reads the record at the start of `octets`.
    ///
    /// # Errors
    /// How many octets more are needed, at least 1.
    pub(crate) fn record(&self, octets: &[u8]) -> Result<Found, usize> {
        let parse = if self.big_endian { parse_pcap_frame_be } else { parse_pcap_frame };
        let frame = match parse(octets) {
            Ok((_, frame)) => frame,
            Err(Incomplete(Needed::Size(more))) => return Err(more.get()),
            Err(_) => return Err(1),
        };
        let fraction = u64::from(frame.ts_usec) * if self.nanoseconds { 1 } else { 1_000 };
        Ok(Found {
            data: RECORD_HEADER_LEN..RECORD_HEADER_LEN + frame.data.len(),
            time: Timestamp::from_nanos(u64::from(frame.ts_sec) * 1_000_000_000 + fraction),
            link_type: self.link_type,
            original_len: frame.origlen,
        })
    }
}
