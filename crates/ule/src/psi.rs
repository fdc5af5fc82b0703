//! Program Specific Information: programs and PIDs of a multiplex. ISO/IEC 13818-1, section 2.4.4.
//!
//! The Program Association Table ([`Pat`]) has the PID of each program's Program Map Table ([`Pmt`]), which lists the
//! streams of the program. A ULE stream has the `stream_type` 0x91 and the registration descriptor "ULE1". Tables written
//! here take one TS Packet, which is enough for 42 programs, and for 15 streams of each; tables of any length can be read
//! ([`Finder`]).

use core::fmt;

use crate::crc::Crc32;
use crate::ts::{Cc, HEADER, LEN, Pid, STUFFING, TsHeader, TsPacket};

mod finder;
mod section;
mod table;

pub use finder::{Finder, UleStream};
pub use section::{BadSection, PsiSection, SectionReader};
pub use table::{ElementaryStream, ElementaryStreams, Pat, Pmt, Program, StreamType};

/// Length of the longest section that fits into a TS Packet with its pointer, in octets.
const ONE_PACKET: usize = LEN - HEADER - 1;

/// Error: the table does not fit into one TS Packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the table does not fit into one TS Packet")
    }
}

impl core::error::Error for TooMany {}

/// Creates a TS Packet with one section: header, pointer, the output of `write`, and padding.
fn packet(
    pid: Pid,
    cc: Cc,
    write: impl FnOnce(&mut [u8]) -> Result<usize, TooMany>,
) -> Result<TsPacket, TooMany> {
    let mut packet = [STUFFING; LEN];
    let (header, payload) = packet.split_at_mut(HEADER);
    header.copy_from_slice(&TsHeader::new(pid, true, cc).octets());
    let (pointer, section) = payload.split_first_mut().ok_or(TooMany)?;
    *pointer = 0;
    write(section)?;
    Ok(packet)
}

/// Appends the CRC of a section, and returns its end.
fn close(out: &mut [u8], end: usize) -> Result<usize, TooMany> {
    let (section, rest) = out.split_at_mut_checked(end).ok_or(TooMany)?;
    *rest.first_chunk_mut().ok_or(TooMany)? = Crc32::of(section).to_be_bytes();
    Ok(end + 4)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
