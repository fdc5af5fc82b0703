//! Reading of a capture file in any format as a stream of records.

use std::io::Read;

use crate::compressed::DecompressedStream;
use crate::pcap::{self, FileHeader};
use crate::pcapng::{self, BlockKind, SectionState};
use crate::record::FoundRecord;
use crate::window::ReadWindow;
use crate::{Error, Flaw, LinkType, Record};

/// Maximum size of a record or packet block with its headers, in octets: 16 MiB. Blocks without packets are
/// skipped and may be longer.
pub const MAX_RECORD_LEN: usize = 16 * 1024 * 1024;

/// Reader for the records of a pcap file (microseconds or nanoseconds, in either byte order) or of a pcapng
/// file, optionally compressed with gzip or Zstandard.
///
/// **Call [`next_record`](Self::next_record) until it returns `None`.** The length of the file may be unknown
/// or unlimited. The file is read in large pieces, so a [`std::io::BufReader`] is of no use.
///
/// Memory: 64 KiB, or the size of the longest record, at most [`MAX_RECORD_LEN`]; a few octets per interface
/// of a section; and temporarily eight octets per octet of options in a block, which is large only in crafted
/// files. A compressed file also needs its window: 32 KiB with gzip; with Zstandard as many octets as the
/// file demands, at most 128 MiB.
#[derive(Debug)]
pub struct Reader<R> {
    window: ReadWindow<DecompressedStream<R>>,
    format: FileFormat,
    /// Number of records returned, and of records lost to an error.
    records: u64,
    ended: bool,
}

#[derive(Debug)]
enum FileFormat {
    Pcap(FileHeader),
    Pcapng(SectionState),
}

impl<R: Read> Reader<R> {
    /// Reads the file header.
    ///
    /// # Errors
    /// The file cannot be read, is not a capture file, or is damaged in its header.
    pub fn new(read: R) -> Result<Self, Error> {
        let stream = DecompressedStream::new(read).map_err(|source| Error::Io { offset: 0, source })?;
        let mut window = ReadWindow::new(stream);
        Self::open(&mut window).map_err(|error| explained(&window, error, 0)).map(|format| Self {
            window,
            format,
            records: 0,
            ended: false,
        })
    }

    fn open(window: &mut ReadWindow<DecompressedStream<R>>) -> Result<FileFormat, Error> {
        window.fill(4)?;
        let mut format = match window.octets().first_chunk() {
            Some(&pcapng::MAGIC) => FileFormat::Pcapng(SectionState::default()),
            Some(magic) if pcap::MAGICS.contains(magic) => {
                if !window.fill(pcap::HEADER_LEN)? {
                    return Err(truncated(window, 0, 0));
                }
                let header = window.take(pcap::HEADER_LEN);
                FileFormat::Pcap(FileHeader::parse(header).map_err(|flaw| Error::Malformed {
                    offset: 0,
                    record: 0,
                    flaw,
                })?)
            }
            Some(&magic) => return Err(not_a_capture(magic)),
            None if window.stream().is_cut() => return Err(truncated(window, 0, 0)),
            None => return Err(too_short_for_a_capture(window.octets())),
        };
        if let FileFormat::Pcapng(section) = &mut format {
            next_block(window, section, 0)?;
        }
        Ok(format)
    }

    /// Link type in the header of a pcap file, or of the first interface described so far in the current
    /// section of a pcapng file.
    pub fn link_type(&self) -> Option<LinkType> {
        match &self.format {
            FileFormat::Pcap(header) => Some(header.link_type()),
            FileFormat::Pcapng(section) => section.first_link_type(),
        }
    }

    /// Returns the next record; `None` at the end of the file, and after an error that [ends
    /// reading](Error::ends_reading).
    ///
    /// # Errors
    /// The next record cannot be read. Calling again is safe after every error.
    pub fn next_record(&mut self) -> Option<Result<Record<'_>, Error>> {
        if self.ended {
            return None;
        }
        let Some(found) = self.find_record().transpose() else {
            self.ended = true;
            return None;
        };
        self.records += 1;
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                let error = explained(&self.window, error, self.records);
                self.ended = error.ends_reading();
                return Some(Err(error));
            }
        };
        Some(Ok(Record {
            number: self.records,
            time: found.time,
            link_type: found.link_type,
            // The range was computed for these octets.
            data: self.window.taken().get(found.data).unwrap_or_default(),
            original_len: found.original_len,
        }))
    }

    /// Octets read from the file so far, before decompression, for a progress bar; the length of the file
    /// after the last record.
    pub fn octets_read(&self) -> u64 {
        self.window.stream().octets_read()
    }

    /// Returns the underlying reader. Octets in the buffer are lost.
    pub fn into_inner(self) -> R {
        self.window.into_inner().into_inner()
    }

    /// Reads the next record into `window.taken()`.
    fn find_record(&mut self) -> Result<Option<FoundRecord>, Error> {
        let record = self.records + 1;
        while self.window.fill(1)? {
            let found = match &mut self.format {
                FileFormat::Pcap(header) => Some(next_pcap_record(&mut self.window, header, record)?),
                FileFormat::Pcapng(section) => next_block(&mut self.window, section, record)?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        if self.window.stream().is_cut() {
            return Err(truncated(&self.window, self.window.offset(), record));
        }
        Ok(None)
    }
}

fn next_pcap_record<R: Read>(
    window: &mut ReadWindow<R>,
    header: &FileHeader,
    record: u64,
) -> Result<FoundRecord, Error> {
    let mut wanted = pcap::RECORD_HEADER_LEN;
    loop {
        check_length(window, record, wanted as u64)?;
        if !window.fill(wanted)? {
            return Err(truncated(window, window.offset(), record));
        }
        match header.record(window.octets()) {
            Ok(found) => {
                window.take(found.data.end);
                return Ok(found);
            }
            Err(needed) => wanted = needed,
        }
    }
}

/// Reads one block; returns its record if it contains one.
fn next_block<R: Read>(
    window: &mut ReadWindow<R>,
    section: &mut SectionState,
    record: u64,
) -> Result<Option<FoundRecord>, Error> {
    let offset = window.offset();
    let malformed = |flaw| Error::Malformed { offset, record, flaw };

    if !window.fill(pcapng::MIN_BLOCK_LEN)? {
        return Err(truncated(window, offset, record));
    }
    let frame = section.frame(window.octets()).map_err(malformed)?;
    if frame.kind == BlockKind::Other {
        let length_at_end = size_of::<u32>();
        if !window.skip(u64::from(frame.length) - length_at_end as u64)? || !window.fill(length_at_end)? {
            return Err(truncated(window, offset, record));
        }
        section.end(frame, window.take(length_at_end)).map_err(malformed)?;
        return Ok(None);
    }
    check_length(window, record, frame.length.into())?;
    if !window.fill(frame.length as usize)? {
        return Err(truncated(window, offset, record));
    }
    let block = window.take(frame.length as usize);
    section.end(frame, block).map_err(malformed)?;
    section.handle_block(frame, block).map_err(malformed)
}

fn check_length<R: Read>(window: &ReadWindow<R>, record: u64, length: u64) -> Result<(), Error> {
    let limit = MAX_RECORD_LEN as u64;
    if length > limit {
        return Err(Error::Malformed {
            offset: window.offset(),
            record,
            flaw: Flaw::TooLong { length, limit },
        });
    }
    Ok(())
}

/// Reports damaged compression as the reason of a read error.
fn explained<R: Read>(window: &ReadWindow<DecompressedStream<R>>, error: Error, record: u64) -> Error {
    match (error, window.stream().damaged()) {
        (Error::Io { offset, .. }, Some(format)) => {
            Error::Malformed { offset, record, flaw: Flaw::Compression { format } }
        }
        (error, _) => error,
    }
}

fn truncated<R: Read>(window: &ReadWindow<R>, offset: u64, record: u64) -> Error {
    Error::Truncated { offset, end: window.octets_read(), record }
}

const GIVE_A_CAPTURE: &str = "give a file written by tcpdump or Wireshark";

/// Recognizes other common file formats.
fn not_a_capture(magic: [u8; 4]) -> Error {
    const DECOMPRESS: &str = "decompress it first";
    const CONVERT: &str = "convert it with `editcap -F pcapng`";

    let (found, advice) = match magic {
        // Compressed twice: a file that is compressed once is supported.
        [0x1f, 0x8b, _, _] => ("this is gzip", DECOMPRESS),
        [0x28, 0xb5, 0x2f, 0xfd] => ("this is Zstandard", DECOMPRESS),
        [0xfd, b'7', b'z', b'X'] => ("this is xz", DECOMPRESS),
        [0x04, 0x22, 0x4d, 0x18] => ("this is LZ4", DECOMPRESS),
        [b'B', b'Z', b'h', _] => ("this is bzip2", DECOMPRESS),
        [b'P', b'K', 3, 4] => ("this is a ZIP archive", DECOMPRESS),
        [0x34, 0xcd, 0xb2, 0xa1] | [0xa1, 0xb2, 0xcd, 0x34] => ("this is a modified pcap format", CONVERT),
        [b's', b'n', b'o', b'o'] => ("this is a snoop file", CONVERT),
        _ => ("the format is unknown", GIVE_A_CAPTURE),
    };
    Error::NotACapture { found, advice }
}

fn too_short_for_a_capture(octets: &[u8]) -> Error {
    let found = if octets.is_empty() { "the file is empty" } else { "the file is shorter than that" };
    Error::NotACapture { found, advice: GIVE_A_CAPTURE }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
