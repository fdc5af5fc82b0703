//! Program Specific Information: what is in a multiplex, and on which PIDs. ISO/IEC 13818-1, section 2.4.4.
//!
//! The Program Association Table ([`Pat`]) says on which PID each program has its Program Map Table ([`Pmt`]), and that
//! one which streams the program has. A ULE stream has the `stream_type` 0x91 and the registration descriptor "ULE1".
//! What is written here has one TS Packet a table, which is enough for 42 programs, and for 15 streams of each; what others write is
//! read whatever its length ([`Finder`]).

use core::fmt;

use crate::crc::Crc32;
use crate::ts::{Cc, HEADER, LEN, Pid, STUFFING, TsHeader, TsPacket};

mod finder;
mod section;
mod table;

pub use finder::{Finder, UleStream};
pub use section::{BadSection, Section, SectionReader};
pub use table::{Pat, Pmt, Program, Stream, StreamType, Streams};

/// Octets of a section that fits into a TS Packet with the pointer in front of it.
const ONE_PACKET: usize = LEN - HEADER - 1;

/// A table does not fit into one TS Packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the table does not fit into one TS Packet")
    }
}

impl core::error::Error for TooMany {}

/// A TS Packet with one section: header, pointer, what `write` puts there, and padding.
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

/// Puts the CRC behind a section, and returns its end.
fn close(out: &mut [u8], end: usize) -> Result<usize, TooMany> {
    let (section, rest) = out.split_at_mut_checked(end).ok_or(TooMany)?;
    *rest.first_chunk_mut().ok_or(TooMany)? = Crc32::of(section).to_be_bytes();
    Ok(end + 4)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
