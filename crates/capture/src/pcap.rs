//! The pcap format: one file header, then records (draft-ietf-opsawg-pcap).

use pcap_parser::parse_pcap_header;

use crate::record::FoundRecord;
use crate::{Flaw, LinkType, Timestamp};

/// Length of the file header, in octets.
pub(crate) const HEADER_LEN: usize = 24;
/// Length of the header of each record, in octets.
pub(crate) const RECORD_HEADER_LEN: usize = 16;

/// Magic numbers in the order of the file's octets, for microseconds (a1b2c3d4) or nanoseconds (a1b23c4d).
pub(crate) const MAGICS: [[u8; 4]; 4] =
    [[0xa1, 0xb2, 0xc3, 0xd4], [0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0x3c, 0x4d], [0x4d, 0x3c, 0xb2, 0xa1]];

/// Properties of all records, from the file header.
#[derive(Debug)]
pub(crate) struct FileHeader {
    big_endian: bool,
    nanoseconds: bool,
    lengths: Lengths,
    link_type: LinkType,
}

/// Order of the two lengths of a record, captured and original; tools from before 1996 swapped them.
#[derive(Debug, Clone, Copy)]
enum Lengths {
    /// Version 2.4.
    CapturedFirst,
    /// Version 2.3: depends on the tool.
    Either,
    /// Versions 2.0 to 2.2.
    OriginalFirst,
}

impl FileHeader {
    /// Reads [`HEADER_LEN`] octets that begin with one of [`MAGICS`].
    pub(crate) fn parse(octets: &[u8]) -> Result<Self, Flaw> {
        let Ok((_, header)) = parse_pcap_header(octets) else {
            return Err(Flaw::Version { major: 0, minor: 0 });
        };
        let lengths = match (header.version_major, header.version_minor) {
            (2, 0..=2) => Lengths::OriginalFirst,
            (2, 3) => Lengths::Either,
            (2, 4..) => Lengths::CapturedFirst,
            (major, minor) => return Err(Flaw::Version { major, minor }),
        };
        Ok(Self {
            big_endian: header.is_bigendian(),
            nanoseconds: header.is_nanosecond_precision(),
            lengths,
            // The upper 16 bits contain the length of a frame check sequence, and bits that readers must
            // ignore.
            link_type: LinkType((header.network.0 & 0xffff) as u16),
        })
    }

    pub(crate) fn link_type(&self) -> LinkType {
        self.link_type
    }

    /// Reads the record at the start of `octets`.
    ///
    /// # Errors
    /// Number of octets required, if there are fewer.
    pub(crate) fn record(&self, octets: &[u8]) -> Result<FoundRecord, usize> {
        let Some((header, data)) = octets.split_first_chunk::<RECORD_HEADER_LEN>() else {
            return Err(RECORD_HEADER_LEN);
        };
        let (fields, _) = header.as_chunks();
        let read = if self.big_endian { u32::from_be_bytes } else { u32::from_le_bytes };
        let &[seconds, fraction, first, second] = fields else { return Err(RECORD_HEADER_LEN) };
        let [seconds, fraction, first, second] = [seconds, fraction, first, second].map(read);
        let (captured, original) = match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::Either => (first.min(second), first.max(second)),
            Lengths::OriginalFirst => (second, first),
        };
        let end = RECORD_HEADER_LEN.saturating_add(captured as usize);
        if data.len() < captured as usize {
            return Err(end);
        }
        let nanoseconds = u64::from(fraction) * if self.nanoseconds { 1 } else { 1_000 };
        Ok(FoundRecord {
            data: RECORD_HEADER_LEN..end,
            time: Timestamp::from_nanos(u64::from(seconds) * 1_000_000_000 + nanoseconds),
            link_type: self.link_type,
            original_len: original,
        })
    }
}
