//! Body of a response: counted, chunked (RFC 9112, section 7.1) or until the stream ends.

use alloc::vec::Vec;

use httparse::Status;

use super::head::Length;
use crate::Error;

/// Maximum length of a line with a chunk size or a trailer, in octets: 16 digits, and extensions, which are rare.
const LINE: usize = 256;

/// Maximum size of all trailers together, in octets.
const TRAILERS: usize = 8_192;

/// Body of a response, as far as it has arrived.
#[derive(Clone, Debug)]
pub(super) struct Body {
    octets: Vec<u8>,
    limit: usize,
    state: State,
    /// Incomplete line.
    line: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
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

impl Body {
    pub(super) fn new(length: Length, limit: usize) -> Result<Self, Error> {
        let state = match length {
            Length::Octets(0) => State::Complete,
            Length::Octets(octets) if octets > limit as u64 => return Err(Error::BodyTooLarge(limit)),
            Length::Octets(octets) => State::Counted(octets),
            Length::Chunked => State::Size,
            Length::UntilEnd => State::UntilEnd,
        };
        Ok(Self { octets: Vec::new(), limit, state, line: Vec::new() })
    }

    pub(super) fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    pub(super) fn into_octets(self) -> Vec<u8> {
        self.octets
    }

    /// Adds octets to the body.
    pub(super) fn take(&mut self, mut octets: &[u8]) -> Result<(), Error> {
        while !octets.is_empty() {
            octets = match self.state {
                State::Complete => return Err(Error::Unexpected),
                State::UntilEnd => {
                    self.keep(octets)?;
                    &[]
                }
                State::Counted(missing) => {
                    let (missing, rest) = self.count(missing, octets)?;
                    self.state = if missing == 0 { State::Complete } else { State::Counted(missing) };
                    rest
                }
                State::Chunk(missing) => {
                    let (missing, rest) = self.count(missing, octets)?;
                    self.state = if missing == 0 { State::ChunkEnd } else { State::Chunk(missing) };
                    rest
                }
                State::Size | State::ChunkEnd | State::Trailers(_) => {
                    let (octet, rest) = octets.split_first().ok_or(Error::BodyLength)?;
                    self.line.push(*octet);
                    if self.line.len() > LINE {
                        return Err(Error::BodyLength);
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
    fn count<'o>(&mut self, missing: u64, octets: &'o [u8]) -> Result<(u64, &'o [u8]), Error> {
        let len = usize::try_from(missing).unwrap_or(usize::MAX).min(octets.len());
        let (part, rest) = octets.split_at(len);
        self.keep(part)?;
        Ok((missing - len as u64, rest))
    }

    fn keep(&mut self, octets: &[u8]) -> Result<(), Error> {
        if octets.len() > self.limit - self.octets.len() {
            return Err(Error::BodyTooLarge(self.limit));
        }
        self.octets.extend_from_slice(octets);
        Ok(())
    }

    /// Parses a complete line. Returns the next state.
    fn line_end(&self) -> Result<State, Error> {
        let line = self.line.as_slice();
        match self.state {
            State::Size => match httparse::parse_chunk_size(line) {
                Ok(Status::Complete((_, 0))) => Ok(State::Trailers(0)),
                Ok(Status::Complete((_, octets))) => Ok(State::Chunk(octets)),
                _ => Err(Error::BodyLength),
            },
            State::ChunkEnd if line == b"\r\n" => Ok(State::Size),
            State::Trailers(_) if line == b"\r\n" => Ok(State::Complete),
            State::Trailers(octets) if octets + line.len() <= TRAILERS => {
                Ok(State::Trailers(octets + line.len()))
            }
            _ => Err(Error::BodyLength),
        }
    }

    /// Handles the end of the stream.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        match self.state {
            State::UntilEnd | State::Complete => {
                self.state = State::Complete;
                Ok(())
            }
            _ => Err(Error::Truncated(self.octets.len())),
        }
    }
}
