//! Sections, which carry tables in TS Packets. ISO/IEC 13818-1, section 2.4.4.

use core::fmt;
use thinair_wire::coder::{Coder, Reader, Step};

use crate::crc::Crc32;
use crate::ts::{Afc, Cc, HEADER, STUFFING, TsHeader, TsPacket};

/// Length of the longest section of a PAT or PMT, in octets.
const LONGEST: usize = 1_024;
/// Octets before the contents.
const FIXED: usize = 8;
/// Octets up to and including `section_length`.
const LENGTH_END: usize = 3;
/// Length of the CRC, in octets.
const CRC: usize = 4;

/// The header of a section with `section_syntax_indicator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SectionHeader {
    pub(super) table_id: u8,
    /// Octets after this field, CRC included.
    pub(super) section_length: u16,
    pub(super) table_id_extension: u16,
    pub(super) version_number: u8,
    pub(super) current_next_indicator: bool,
    pub(super) section_number: u8,
    pub(super) last_section_number: u8,
}

/// ISO/IEC 13818-1, tables 2-30 and 2-33. Reserved bits are sent as ones, and ignored on reception.
#[inline]
pub(super) fn section_header<'p, C: Coder<'p>>(c: &mut C, header: &mut SectionHeader) -> Step {
    c.uint("table_id", 8, &mut header.table_id)?;
    c.uint("section_syntax_indicator", 1, &mut { 1_u8 })?;
    c.uint("'0'", 1, &mut { 0_u8 })?;
    c.uint("reserved", 2, &mut { 0b11_u8 })?;
    c.uint("section_length", 12, &mut header.section_length)?;
    c.uint("table_id_extension", 16, &mut header.table_id_extension)?;
    c.uint("reserved", 2, &mut { 0b11_u8 })?;
    c.uint("version_number", 5, &mut header.version_number)?;
    c.flag("current_next_indicator", &mut header.current_next_indicator)?;
    c.uint("section_number", 8, &mut header.section_number)?;
    c.uint("last_section_number", 8, &mut header.last_section_number)
}

impl SectionHeader {
    /// Creates the header of a table of one section with contents of `octets` octets.
    pub(super) const fn new(table_id: u8, table_id_extension: u16, version: u8, octets: usize) -> Self {
        Self {
            table_id,
            section_length: (FIXED - LENGTH_END + octets + CRC) as u16,
            table_id_extension,
            version_number: version & 0x1F,
            current_next_indicator: true,
            section_number: 0,
            last_section_number: 0,
        }
    }
}

/// A section with a correct CRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PsiSection<'p> {
    pub(super) header: SectionHeader,
    /// Contents between header and CRC.
    pub(super) contents: &'p [u8],
}

/// Reason why octets are not a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadSection {
    /// Its length does not agree with the number of octets.
    Length,
    /// Its CRC is wrong.
    Crc,
}

impl fmt::Display for BadSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => f.write_str("the length field of the section does not match its length"),
            Self::Crc => f.write_str("the CRC of the section is wrong"),
        }
    }
}

impl core::error::Error for BadSection {}

impl<'p> PsiSection<'p> {
    /// Reads one whole section.
    pub fn read(octets: &'p [u8]) -> Result<Self, BadSection> {
        if section_len(octets).is_none_or(|len| len != octets.len()) || octets.len() < FIXED + CRC {
            return Err(BadSection::Length);
        }
        if !Crc32::is_right(octets) {
            return Err(BadSection::Crc);
        }
        let mut header = SectionHeader::new(0, 0, 0, 0);
        let mut reader = Reader::contiguous(octets);
        section_header(&mut reader, &mut header).map_err(|_| BadSection::Length)?;
        let contents = reader.remaining().split_last_chunk::<CRC>().ok_or(BadSection::Length)?.0;
        Ok(Self { header, contents })
    }

    /// Returns the kind of its table: 0 for a PAT, 2 for a PMT.
    pub const fn table_id(&self) -> u8 {
        self.header.table_id
    }

    /// True if the table is valid now, false if it will be the next one.
    pub const fn is_current(&self) -> bool {
        self.header.current_next_indicator
    }
}

/// Returns the length of the section that begins here in octets, if its length field is complete.
fn section_len(octets: &[u8]) -> Option<usize> {
    let [_, high, low, ..] = *octets else { return None };
    Some(LENGTH_END + usize::from(u16::from_be_bytes([high, low]) & 0x0FFF))
}

/// Reassembles the sections of one PID.
#[derive(Clone, Debug)]
pub struct SectionReader {
    cc: Option<Cc>,
    /// Octets received of a section; `None` if none has begun.
    len: Option<usize>,
    octets: [u8; LONGEST],
}

impl Default for SectionReader {
    fn default() -> Self {
        Self { cc: None, len: None, octets: [0; LONGEST] }
    }
}

impl SectionReader {
    /// Processes a TS Packet of the PID, and passes the sections that end in it to `out`. Those with a wrong CRC are
    /// dropped.
    pub fn receive(&mut self, packet: &TsPacket, out: &mut impl FnMut(PsiSection<'_>)) {
        let Ok(header) = TsHeader::read(packet) else { return };
        let mut payload = packet.get(HEADER..).unwrap_or_default();
        match header.afc {
            Afc::Payload => {}
            Afc::AdaptationAndPayload => {
                let Some((len, rest)) = payload.split_first() else { return };
                payload = rest.get(usize::from(*len)..).unwrap_or_default();
            }
            Afc::Reserved | Afc::Adaptation => return,
        }
        if header.transport_error || header.scrambling != 0 {
            self.len = None;
            return;
        }
        match self.cc.replace(header.cc) {
            Some(last) if last == header.cc => return,
            Some(last) if last.next() != header.cc => self.len = None,
            Some(_) | None => {}
        }
        if !header.payload_unit_start {
            self.go_on(payload, out);
            return;
        }
        let Some((pointer, rest)) = payload.split_first() else { return };
        let Some((end, mut rest)) = rest.split_at_checked(usize::from(*pointer)) else {
            self.len = None;
            return;
        };
        self.go_on(end, out);
        // Padding begins where a table_id would be 0xFF.
        while rest.first().is_some_and(|table_id| *table_id != STUFFING) {
            self.len = Some(0);
            rest = self.go_on(rest, out);
        }
    }

    /// Adds octets to a begun section, if there is one, and returns those after its end.
    fn go_on<'p>(&mut self, octets: &'p [u8], out: &mut impl FnMut(PsiSection<'_>)) -> &'p [u8] {
        let Some(have) = self.len else { return &[] };
        let room = self.octets.get_mut(have..).unwrap_or_default();
        let added = room.len().min(octets.len());
        for (to, from) in room.iter_mut().zip(octets) {
            *to = *from;
        }
        let len = have + added;
        self.len = Some(len);
        let kept = self.octets.get(..len).unwrap_or_default();
        match section_len(kept) {
            Some(needed) if needed > LONGEST => {
                self.len = None;
                &[]
            }
            Some(needed) if needed <= len => {
                self.len = None;
                if let Some(Ok(section)) = kept.get(..needed).map(PsiSection::read) {
                    out(section);
                }
                octets.get(needed.saturating_sub(have)..).unwrap_or_default()
            }
            Some(_) | None => &[],
        }
    }
}
