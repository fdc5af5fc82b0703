//! Compressed names and values; each direction of a connection is one zlib stream. Section 2.6.10.

use alloc::vec::Vec;
use core::fmt;

use super::dictionary::DICTIONARY;
use crate::deflate::{Decoder, Encoder, Flush, InflateError};

/// Error in a header block. The connection is then unusable, as later blocks refer to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderBlockError {
    /// It cannot be inflated.
    Inflate(InflateError),
    /// Invalid length in the block.
    Length,
}

impl fmt::Display for HeaderBlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inflate(why) => write!(f, "{why}"),
            Self::Length => f.write_str("invalid lengths of names and values"),
        }
    }
}

impl core::error::Error for HeaderBlockError {}

impl From<InflateError> for HeaderBlockError {
    fn from(why: InflateError) -> Self {
        Self::Inflate(why)
    }
}

/// Names and values of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderList(Vec<(Vec<u8>, Vec<u8>)>);

impl HeaderList {
    fn read(octets: &[u8]) -> Option<Self> {
        let (count, mut rest) = octets.split_first_chunk::<4>()?;
        let mut pairs = Vec::new();
        for _ in 0..u32::from_be_bytes(*count) {
            let name = text(&mut rest).filter(|name| !name.is_empty())?;
            pairs.push((name, text(&mut rest)?));
        }
        rest.is_empty().then_some(Self(pairs))
    }

    /// Value of a name; `None` if the name is missing or occurs more than once.
    pub fn value(&self, name: &str) -> Option<&str> {
        let mut values = self.0.iter().filter(|(other, _)| other == name.as_bytes());
        match (values.next(), values.next()) {
            (Some((_, value)), None) => core::str::from_utf8(value).ok(),
            _ => None,
        }
    }
}

/// Reads a length and the text after it.
fn text(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let (len, behind) = rest.split_first_chunk::<4>()?;
    let (text, behind) = behind.split_at_checked(u32::from_be_bytes(*len) as usize)?;
    *rest = behind;
    Some(text.to_vec())
}

/// Block before compression: each text after its length. Section 2.6.10.
pub fn uncompressed(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut octets = (pairs.len() as u32).to_be_bytes().to_vec();
    for text in pairs.iter().flat_map(|(name, value)| [name, value]) {
        octets.extend_from_slice(&(text.len() as u32).to_be_bytes());
        octets.extend_from_slice(text.as_bytes());
    }
    octets
}

/// Both directions of a connection, at one of its ends.
#[derive(Debug)]
pub struct HeaderBlocks {
    encoder: Encoder,
    decoder: Decoder,
    most: usize,
}

impl HeaderBlocks {
    /// Creates the state for blocks of at most `most` octets, uncompressed.
    pub fn new(flush: Flush, most: usize) -> Self {
        Self { encoder: Encoder::new(DICTIONARY, flush), decoder: Decoder::new(DICTIONARY), most }
    }

    /// Compresses a block of these names and values, in this order.
    pub fn write(&mut self, pairs: &[(&str, &str)]) -> Vec<u8> {
        self.encoder.encode(&uncompressed(pairs))
    }

    /// Decompresses a block. **Read all blocks in the order in which they arrive.**
    ///
    /// # Errors
    /// The block is invalid or too long.
    pub fn read(&mut self, block: &[u8]) -> Result<HeaderList, HeaderBlockError> {
        let octets = self.decoder.decode(block, self.most)?;
        HeaderList::read(&octets).ok_or(HeaderBlockError::Length)
    }
}
