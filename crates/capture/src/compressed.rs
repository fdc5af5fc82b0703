//! Captures compressed with gzip (RFC 1952) or Zstandard (RFC 8878), recognized by their magic numbers.
//!
//! A truncated file yields all octets that can be decompressed, and then ends; [`DecompressedStream::is_cut`]
//! distinguishes it from a complete file.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Largest window of a Zstandard frame, in octets: 128 MiB, the default of zstd(1). Frames with a larger
/// window are rejected.
const MAX_WINDOW_SIZE: u64 = 128 * 1024 * 1024;

/// Empty last block of a Zstandard frame (RFC 8878, section 3.1.1.2), and octets in place of a checksum.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// Compression format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// gzip, RFC 1952; one member or several.
    Gzip,
    /// Zstandard, RFC 8878; one frame or several.
    Zstandard,
}

impl Compression {
    fn of(magic: [u8; 4]) -> Option<Self> {
        match magic {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd] => Some(Self::Zstandard),
            _ => None,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstandard => "Zstandard",
        })
    }
}

/// Octets of a file, decompressed if necessary.
#[derive(Debug)]
pub(crate) struct DecompressedStream<R> {
    decoder: Decoder<R>,
    end: Option<DecompressionEnd>,
}

/// Reason why decompression ended before the end of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecompressionEnd {
    Cut,
    Damaged,
}

#[derive(Debug)]
enum Decoder<R> {
    None(FileSource<R>),
    Gzip(Box<MultiGzDecoder<BufReader<FileSource<R>>>>),
    Zstandard(Box<ZstandardFrames<R>>),
}

impl<R: Read> DecompressedStream<R> {
    /// Reads the magic number.
    pub(crate) fn new(read: R) -> io::Result<Self> {
        let mut source = FileSource::new(read);
        let decoder = match source.peek()?.and_then(Compression::of) {
            None => Decoder::None(source),
            Some(Compression::Gzip) => Decoder::Gzip(Box::new(MultiGzDecoder::new(BufReader::new(source)))),
            Some(Compression::Zstandard) => Decoder::Zstandard(Box::new(ZstandardFrames::new(source))),
        };
        Ok(Self { decoder, end: None })
    }

    /// True if the file ended before its compressed data did.
    pub(crate) fn is_cut(&self) -> bool {
        self.end == Some(DecompressionEnd::Cut)
    }

    /// Format of the damaged data, after reading has failed because of it.
    pub(crate) fn damaged(&self) -> Option<Compression> {
        let format = match self.decoder {
            Decoder::None(_) => return None,
            Decoder::Gzip(_) => Compression::Gzip,
            Decoder::Zstandard(_) => Compression::Zstandard,
        };
        (self.end == Some(DecompressionEnd::Damaged)).then_some(format)
    }

    /// Octets read from the file, before decompression.
    pub(crate) fn octets_read(&self) -> u64 {
        self.source().count
    }

    fn source(&self) -> &FileSource<R> {
        match &self.decoder {
            Decoder::None(source) => source,
            Decoder::Gzip(decoder) => decoder.get_ref().get_ref(),
            Decoder::Zstandard(frames) => frames.source.get_ref(),
        }
    }
}

impl<R> DecompressedStream<R> {
    pub(crate) fn into_inner(self) -> R {
        match self.decoder {
            Decoder::None(source) => source.read,
            Decoder::Gzip(decoder) => decoder.into_inner().into_inner().read,
            Decoder::Zstandard(frames) => frames.source.into_inner().read,
        }
    }
}

impl<R: Read> Read for DecompressedStream<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let result = match &mut self.decoder {
            Decoder::None(source) => return source.read(room),
            Decoder::Gzip(decoder) if self.end.is_none() => decoder.read(room),
            Decoder::Zstandard(frames) if self.end.is_none() => frames.read(room),
            Decoder::Gzip(_) | Decoder::Zstandard(_) => return Ok(0),
        };
        let Err(error) = result else { return result };
        let source = self.source();
        if source.failed {
            return Err(error);
        }
        if source.ended {
            self.end = Some(DecompressionEnd::Cut);
            return Ok(0);
        }
        self.end = Some(DecompressionEnd::Damaged);
        Err(error)
    }
}

/// The file, and the octets read so far.
#[derive(Debug)]
struct FileSource<R> {
    read: R,
    /// First octets of the file, and the number of them that were returned again.
    first: Vec<u8>,
    given: usize,
    count: u64,
    /// True at the end of the file.
    ended: bool,
    /// True after an I/O error.
    failed: bool,
}

impl<R: Read> FileSource<R> {
    fn new(read: R) -> Self {
        Self { read, first: Vec::new(), given: 0, count: 0, ended: false, failed: false }
    }

    /// Returns the first four octets without consuming them; `None` if there are fewer.
    fn peek(&mut self) -> io::Result<Option<[u8; 4]>> {
        let mut octets = [0; 4];
        while self.first.len() < octets.len() {
            let room = octets.len() - self.first.len();
            let count = self.read_more(&mut octets[..room])?;
            if count == 0 {
                break;
            }
            self.first.extend_from_slice(&octets[..count]);
        }
        Ok(self.first.first_chunk().copied())
    }

    /// Reads octets after those of `first`.
    fn read_more(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.read.read(room) {
                // `min`: an incorrect `Read` may return a larger number.
                Ok(count) => {
                    let count = count.min(room.len());
                    self.count += count as u64;
                    self.ended |= count == 0 && !room.is_empty();
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failed = true;
                    return Err(error);
                }
            }
        }
    }
}

impl<R: Read> Read for FileSource<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let rest = self.first.get(self.given..).unwrap_or_default();
        if rest.is_empty() {
            return self.read_more(room);
        }
        let count = rest.len().min(room.len());
        room[..count].copy_from_slice(&rest[..count]);
        self.given += count;
        Ok(count)
    }
}

/// Consecutive Zstandard frames, with or without skippable ones.
struct ZstandardFrames<R> {
    source: BufReader<FileSource<R>>,
    decoder: FrameDecoder,
    /// Reason why the current frame is the last one.
    error: Option<io::Error>,
}

impl<R: Read> ZstandardFrames<R> {
    fn new(source: FileSource<R>) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW_SIZE);
        Self { source: BufReader::new(source), decoder, error: None }
    }

    /// Begins the next frame with content; returns false at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    if io::copy(&mut (&mut self.source).take(length), &mut io::sink())? < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    /// Decodes a block. An invalid block counts as the end of the frame, since the decoder holds back octets
    /// to which later blocks may refer.
    fn next_block(&mut self) -> io::Result<()> {
        let one = BlockDecodingStrategy::UptoBlocks(1);
        let Err(error) = self.decoder.decode_blocks(&mut self.source, one) else { return Ok(()) };
        self.error = Some(io::Error::other(error));
        let last = BlockDecodingStrategy::UptoBlocks(1);
        self.decoder.decode_blocks(LAST_BLOCK.as_slice(), last).map(|_| ()).map_err(io::Error::other)
    }
}

impl<R: Read> Read for ZstandardFrames<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(room);
            }
            if !self.decoder.is_finished() {
                self.next_block()?;
                continue;
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            let checksum = self.decoder.get_checksum_from_data();
            if checksum.is_some() && checksum != self.decoder.get_calculated_checksum() {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the checksum of a frame is wrong"));
            }
            if !self.next_frame()? {
                return Ok(0);
            }
        }
    }
}

impl<R: fmt::Debug> fmt::Debug for ZstandardFrames<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames").field("source", &self.source).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
