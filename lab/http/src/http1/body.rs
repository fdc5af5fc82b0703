//! Body of a response: counted, chunked (RFC 9112, section 7.1) or until the stream ends.

use alloc::vec::Vec;

use httparse::Status;

use super::head::Length;
use crate::HttpError;

/// Maximum length of a line with a chunk size or a trailer, in octets: 16 digits, and extensions, which are rare.
const LINE: usize = 256;

/// Maximum size of all trailers together, in octets.
const TRAILERS: usize = 8_192;

/// Body of a response, as far as it has arrived.
#[derive(Clone, Debug)]
pub(super) struct BodyReader {
    octets: Vec<u8>,
    limit: usize,
    state: BodyState,
    /// Incomplete line.
    line: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyState {
    /// This many octets are missing.
    Counted(u64),
    /// The line with a chunk's size follows.
    Size,
    /// This many octets of a chunk are missing.
    Chunk(u64),
    /// The line end after a chunk follows.
    ChunkEnd,
    /// Trailers follow, up to an empty line; octets of them so far.
    Trailers(usize),
    /// All further octets belong to the body.
    UntilEnd,
    Complete,
}

impl BodyReader {
    pub(super) fn new(length: Length, limit: usize) -> Result<Self, HttpError> {
        let state = match length {
            Length::Octets(0) => BodyState::Complete,
            Length::Octets(octets) if octets > limit as u64 => return Err(HttpError::BodyTooLarge(limit)),
            Length::Octets(octets) => BodyState::Counted(octets),
            Length::Chunked => BodyState::Size,
            Length::UntilEnd => BodyState::UntilEnd,
        };
        Ok(Self { octets: Vec::new(), limit, state, line: Vec::new() })
    }

    pub(super) fn is_complete(&self) -> bool {
        self.state == BodyState::Complete
    }

    pub(super) fn into_octets(self) -> Vec<u8> {
        self.octets
    }

    /// Adds octets to the body.
    pub(super) fn take(&mut self, mut octets: &[u8]) -> Result<(), HttpError> {
        while !octets.is_empty() {
            octets = match self.state {
                BodyState::Complete => return Err(HttpError::Unexpected),
                BodyState::UntilEnd => {
                    self.keep(octets)?;
                    &[]
                }
                BodyState::Counted(missing) => {
                    let (missing, rest) = self.count(missing, octets)?;
                    self.state = if missing == 0 { BodyState::Complete } else { BodyState::Counted(missing) };
                    rest
                }
                BodyState::Chunk(missing) => {
                    let (missing, rest) = self.count(missing, octets)?;
                    self.state = if missing == 0 { BodyState::ChunkEnd } else { BodyState::Chunk(missing) };
                    rest
                }
                BodyState::Size | BodyState::ChunkEnd | BodyState::Trailers(_) => {
                    let (octet, rest) = octets.split_first().ok_or(HttpError::BodyLength)?;
                    self.line.push(*octet);
                    if self.line.len() > LINE {
                        return Err(HttpError::BodyLength);
                    }
                    if *octet == b'\n' {
                        self.state = self.line_end()?;
                        self.line.clear();
                    }
                    rest
                }
            };
        }
        Ok(())
    }

    /// Stores counted octets. Returns the number still missing, and the octets after them.
    fn count<'o>(&mut self, missing: u64, octets: &'o [u8]) -> Result<(u64, &'o [u8]), HttpError> {
        let len = usize::try_from(missing).unwrap_or(usize::MAX).min(octets.len());
        let (part, rest) = octets.split_at(len);
        self.keep(part)?;
        Ok((missing - len as u64, rest))
    }

    fn keep(&mut self, octets: &[u8]) -> Result<(), HttpError> {
        if octets.len() > self.limit - self.octets.len() {
            return Err(HttpError::BodyTooLarge(self.limit));
        }
        self.octets.extend_from_slice(octets);
        Ok(())
    }

    /// Parses a complete line. Returns the next state.
    fn line_end(&self) -> Result<BodyState, HttpError> {
        let line = self.line.as_slice();
        match self.state {
            BodyState::Size => match httparse::parse_chunk_size(line) {
                Ok(Status::Complete((_, 0))) => Ok(BodyState::Trailers(0)),
                Ok(Status::Complete((_, octets))) => Ok(BodyState::Chunk(octets)),
                _ => Err(HttpError::BodyLength),
            },
            BodyState::ChunkEnd if line == b"\r\n" => Ok(BodyState::Size),
            BodyState::Trailers(_) if line == b"\r\n" => Ok(BodyState::Complete),
            BodyState::Trailers(octets) if octets + line.len() <= TRAILERS => {
                Ok(BodyState::Trailers(octets + line.len()))
            }
            _ => Err(HttpError::BodyLength),
        }
    }

    /// Handles the end of the stream.
    pub(super) fn end(&mut self) -> Result<(), HttpError> {
        match self.state {
            BodyState::UntilEnd | BodyState::Complete => {
                self.state = BodyState::Complete;
                Ok(())
            }
            _ => Err(HttpError::Truncated(self.octets.len())),
        }
    }
}
