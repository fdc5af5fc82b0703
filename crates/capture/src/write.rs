//! Writer for pcap files (draft-ietf-opsawg-pcap).

use std::io::{self, Write};

use crate::link::ETHERNET_HEADER_LEN;
use crate::{LinkType, Timestamp};

/// Maximum size of a record in octets: 262,144. libpcap and Wireshark reject larger ones as damaged.
pub const MAX_WRITTEN_LEN: usize = 262_144;
/// Destination address in headers of [`ethernet_header`]: all zero, since the frames have been on no link.
pub const ETHERNET_DESTINATION: [u8; 6] = [0; 6];
/// Source address in headers of [`ethernet_header`]: all zero, since the frames have been on no link.
pub const ETHERNET_SOURCE: [u8; 6] = [0; 6];

/// Returns an Ethernet header with [`ETHERNET_DESTINATION`], [`ETHERNET_SOURCE`] and an EtherType such as
/// [`ETHERTYPE_ROHC`](crate::ETHERTYPE_ROHC).
pub const fn ethernet_header(ethertype: u16) -> [u8; ETHERNET_HEADER_LEN] {
    let [d0, d1, d2, d3, d4, d5] = ETHERNET_DESTINATION;
    let [s0, s1, s2, s3, s4, s5] = ETHERNET_SOURCE;
    let [high, low] = ethertype.to_be_bytes();
    [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, high, low]
}

/// Writer for a little-endian pcap file with times in nanoseconds.
///
/// Each record is written in several small pieces: **wrap a file in a [`std::io::BufWriter`]**, and call
/// [`flush`](Self::flush) at the end, because dropping a `BufWriter` ignores errors. A
/// [`RecordFile`](crate::RecordFile) ends with a whole record where a disk is full.
#[derive(Debug)]
pub struct Writer<W> {
    write: W,
}

impl<W: Write> Writer<W> {
    /// Writes the file header. All records of the file have this link type.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn new(mut write: W, link_type: LinkType) -> io::Result<Self> {
        write.write_all(&[0x4d, 0x3c, 0xb2, 0xa1])?;
        write.write_all(&2_u16.to_le_bytes())?;
        write.write_all(&4_u16.to_le_bytes())?;
        // Two unused fields.
        write.write_all(&[0; 8])?;
        write.write_all(&(MAX_WRITTEN_LEN as u32).to_le_bytes())?;
        write.write_all(&u32::from(link_type.0).to_le_bytes())?;
        Ok(Self { write })
    }

    /// Writes a record whose data begins with the header of the file's link type.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`], without writing, if `data` is longer than [`MAX_WRITTEN_LEN`] or
    /// `time` is after the year 2106, which the format cannot represent; otherwise errors of the underlying
    /// writer.
    pub fn write(&mut self, time: Timestamp, data: &[u8]) -> io::Result<()> {
        self.write_parts(time, &[], data)
    }

    /// Writes a record that consists of an [`ethernet_header`] and a payload, without padding. The file's
    /// link type should be [`LinkType::ETHERNET`].
    ///
    /// # Errors
    /// Errors of [`write`](Self::write).
    pub fn write_ethernet(&mut self, time: Timestamp, ethertype: u16, payload: &[u8]) -> io::Result<()> {
        self.write_parts(time, &ethernet_header(ethertype), payload)
    }

    /// Returns the underlying writer. Octets written to it directly damage the file.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.write
    }

    /// Flushes the underlying writer.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write.flush()
    }

    /// Returns the underlying writer, without flushing it.
    pub fn into_inner(self) -> W {
        self.write
    }

    fn write_parts(&mut self, time: Timestamp, header: &[u8], payload: &[u8]) -> io::Result<()> {
        let length = header.len() + payload.len();
        if length > MAX_WRITTEN_LEN {
            return Err(invalid("a pcap record cannot be longer than 262,144 octets"));
        }
        let Ok(seconds) = u32::try_from(time.as_nanos() / 1_000_000_000) else {
            return Err(invalid("a pcap record cannot be later than the year 2106"));
        };
        let nanos = (time.as_nanos() % 1_000_000_000) as u32;
        for field in [seconds, nanos, length as u32, length as u32] {
            self.write.write_all(&field.to_le_bytes())?;
        }
        self.write.write_all(header)?;
        self.write.write_all(payload)
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
