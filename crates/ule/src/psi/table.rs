//! Program Association Table and Program Map Table. ISO/IEC 13818-1, sections 2.4.4.3 and 2.4.4.8.

use thinair_wire::coder::{Coder, Reader, Step, Writer};

use super::section::{PsiSection, SectionHeader, section_header};
use super::{ONE_PACKET, TooMany, close, packet};
use crate::ts::{Cc, Pid, TsPacket};

const PAT: u8 = 0x00;
const PMT: u8 = 0x02;

/// `registration_descriptor` with the `format_identifier` of ULE. RFC 4326, reference `ULE1`.
const ULE1: [u8; 6] = *b"\x05\x04ULE1";

/// A program, with the PID of its map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Number; 0 is not a program but the Network Information Table.
    pub number: u16,
    /// PID of its PMT.
    pub pid: Pid,
}

/// `program_number` and `program_map_PID`.
fn program<'p, C: Coder<'p>>(c: &mut C, number: &mut u16, pid: &mut u16) -> Step {
    c.uint("program_number", 16, number)?;
    c.uint("reserved", 3, &mut { 0b111_u8 })?;
    c.uint("program_map_PID", 13, pid)
}

/// Program Association Table to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pat<'a> {
    /// `transport_stream_id`: identifies the multiplex.
    pub transport_stream_id: u16,
    /// Version, 0 to 31; increases when the table changes.
    pub version: u8,
    /// Programs, at most 42.
    pub programs: &'a [Program],
}

impl Pat<'_> {
    /// Returns the table in a TS Packet.
    pub fn packet(&self, cc: Cc) -> Result<TsPacket, TooMany> {
        packet(Pid::PAT, cc, |out| self.write(out))
    }

    /// Writes the table as a section; returns its end.
    pub fn write(&self, out: &mut [u8]) -> Result<usize, TooMany> {
        let octets = self.programs.len().saturating_mul(4);
        let mut header =
            SectionHeader::new(PAT, self.transport_stream_id, self.version, octets.min(ONE_PACKET));
        let mut writer = Writer::new(out, 0);
        let _ = section_header(&mut writer, &mut header);
        for each in self.programs {
            let _ = program(&mut writer, &mut { each.number }, &mut { each.pid.value() });
        }
        let end = writer.finish().ok().filter(|end| end + 4 <= ONE_PACKET).ok_or(TooMany)?;
        close(out, end)
    }

    /// Iterates over the programs of a section of a PAT; none for another table.
    pub fn programs<'p>(section: PsiSection<'p>) -> impl Iterator<Item = Program> + 'p {
        let contents = if section.table_id() == PAT { section.contents } else { &[] };
        let mut reader = Reader::contiguous(contents);
        core::iter::from_fn(move || {
            let (mut number, mut pid) = (0, 0);
            program(&mut reader, &mut number, &mut pid).ok()?;
            Some(Program { number, pid: Pid::new(pid)? })
        })
    }
}

/// `stream_type`: type of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamType(pub u8);

impl StreamType {
    /// A ULE stream.
    pub const ULE: Self = Self(0x91);
}

/// A stream of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementaryStream<'p> {
    /// Type.
    pub stream_type: StreamType,
    /// PID.
    pub pid: Pid,
    /// Descriptors, as encoded in the table.
    pub descriptors: &'p [u8],
}

impl ElementaryStream<'_> {
    /// True if it is marked as a ULE stream, by its type or by a registration descriptor. Some multiplexers send only
    /// one of them.
    pub fn is_ule(&self) -> bool {
        self.stream_type == StreamType::ULE || self.has_descriptor(&ULE1)
    }

    /// True if a descriptor is among those of the stream.
    fn has_descriptor(&self, wanted: &[u8]) -> bool {
        let mut rest = self.descriptors;
        while let [_, len, behind @ ..] = rest {
            let end = 2 + usize::from(*len);
            if rest.get(..end) == Some(wanted) {
                return true;
            }
            rest = behind.get(usize::from(*len)..).unwrap_or_default();
        }
        false
    }
}

/// `stream_type`, `elementary_PID`, and descriptors.
fn stream<'p, C: Coder<'p>>(
    c: &mut C,
    stream_type: &mut u8,
    pid: &mut u16,
    descriptors: &mut &'p [u8],
) -> Step {
    c.uint("stream_type", 8, stream_type)?;
    c.uint("reserved", 3, &mut { 0b111_u8 })?;
    c.uint("elementary_PID", 13, pid)?;
    c.uint("reserved", 4, &mut { 0b1111_u8 })?;
    let mut len = descriptors.len() as u16;
    c.uint("ES_info_length", 12, &mut len)?;
    c.slice("descriptors", usize::from(len), descriptors)
}

/// `PCR_PID` and descriptors of the program, before the streams.
fn program_info<'p, C: Coder<'p>>(c: &mut C, pcr_pid: &mut u16, descriptors: &mut &'p [u8]) -> Step {
    c.uint("reserved", 3, &mut { 0b111_u8 })?;
    c.uint("PCR_PID", 13, pcr_pid)?;
    c.uint("reserved", 4, &mut { 0b1111_u8 })?;
    let mut len = descriptors.len() as u16;
    c.uint("program_info_length", 12, &mut len)?;
    c.slice("descriptors", usize::from(len), descriptors)
}

/// Program Map Table of a program with ULE streams only, to send. It has no clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pmt<'a> {
    /// Number of the program.
    pub program_number: u16,
    /// Version, 0 to 31; increases when the table changes.
    pub version: u8,
    /// PIDs of the ULE streams, at most 15.
    pub streams: &'a [Pid],
}

impl Pmt<'_> {
    /// Returns the table in a TS Packet of the PID that the PAT announces.
    pub fn packet(&self, pid: Pid, cc: Cc) -> Result<TsPacket, TooMany> {
        packet(pid, cc, |out| self.write(out))
    }

    /// Writes the table as a section; returns its end.
    pub fn write(&self, out: &mut [u8]) -> Result<usize, TooMany> {
        let octets = self.streams.len().saturating_mul(5 + ULE1.len()).saturating_add(4);
        let mut header = SectionHeader::new(PMT, self.program_number, self.version, octets.min(ONE_PACKET));
        let mut writer = Writer::new(out, 0);
        let _ = section_header(&mut writer, &mut header);
        let _ = program_info(&mut writer, &mut { Pid::NULL.value() }, &mut &[][..]);
        for pid in self.streams {
            let (mut stream_type, mut pid) = (StreamType::ULE.0, pid.value());
            let _ = stream(&mut writer, &mut stream_type, &mut pid, &mut &ULE1[..]);
        }
        let end = writer.finish().ok().filter(|end| end + 4 <= ONE_PACKET).ok_or(TooMany)?;
        close(out, end)
    }

    /// Returns the program of a PMT section, and its streams of any type; `None` for another table.
    pub fn streams(section: PsiSection<'_>) -> Option<(u16, ElementaryStreams<'_>)> {
        if section.table_id() != PMT {
            return None;
        }
        let mut reader = Reader::contiguous(section.contents);
        program_info(&mut reader, &mut 0, &mut &[][..]).ok()?;
        Some((section.header.table_id_extension, ElementaryStreams { reader }))
    }
}

/// Iterator over the streams of a Program Map Table.
#[derive(Clone, Debug)]
pub struct ElementaryStreams<'p> {
    reader: Reader<'p>,
}

impl<'p> Iterator for ElementaryStreams<'p> {
    type Item = ElementaryStream<'p>;

    fn next(&mut self) -> Option<ElementaryStream<'p>> {
        let (mut stream_type, mut pid, mut descriptors) = (0, 0, &[][..]);
        stream(&mut self.reader, &mut stream_type, &mut pid, &mut descriptors).ok()?;
        Some(ElementaryStream { stream_type: StreamType(stream_type), pid: Pid::new(pid)?, descriptors })
    }
}
