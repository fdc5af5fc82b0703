//! Decoder of any zlib stream with this dictionary, from any encoder.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use super::adler_32;

/// Octets before the first block: CMF, FLG, DICTID. RFC 1950, section 2.2.
const HEAD: usize = 6;

/// Error in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InflateError {
    /// The stream has no zlib header.
    Head,
    /// The stream names another dictionary, or none.
    Dictionary,
    /// A block is invalid.
    Block,
    /// The output exceeds the limit.
    TooLarge,
    /// More octets follow the end of the stream.
    Ended,
}

impl fmt::Display for InflateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "not a zlib stream",
            Self::Dictionary => "the zlib stream needs another dictionary",
            Self::Block => "malformed deflate block",
            Self::TooLarge => "the decompressed headers exceed the limit",
            Self::Ended => "octets follow the end of the zlib stream",
        })
    }
}

impl core::error::Error for InflateError {}

/// One direction of a connection. **After an error it is unusable.**
pub struct Decoder {
    dictionary: &'static [u8],
    head: Vec<u8>,
    inflater: Box<DecompressorOxide>,
    /// Ring of the last octets of output, as large as the stream's header announces; at first the end of the
    /// dictionary.
    window: Vec<u8>,
    at: usize,
    ended: bool,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("window", &self.window.len()).field("ended", &self.ended).finish()
    }
}

impl Decoder {
    /// Creates a decoder for streams with this dictionary. It takes up to 32 KiB, and about 11 KiB for codes.
    pub fn new(dictionary: &'static [u8]) -> Self {
        let inflater = Box::<DecompressorOxide>::default();
        Self { dictionary, head: Vec::new(), inflater, window: Vec::new(), at: 0, ended: false }
    }

    /// Decodes the next octets of the stream, to `most` octets at most.
    ///
    /// # Errors
    /// The stream is invalid, names another dictionary, or decodes to more octets.
    pub fn decode(&mut self, octets: &[u8], most: usize) -> Result<Vec<u8>, InflateError> {
        let missing = HEAD - self.head.len();
        let (head, mut rest) = octets.split_at(missing.min(octets.len()));
        self.head.extend_from_slice(head);
        if self.window.is_empty() {
            if self.head.len() < HEAD {
                return Ok(Vec::new());
            }
            self.begin()?;
        }
        let mut out = Vec::new();
        loop {
            if self.ended {
                return if rest.is_empty() { Ok(out) } else { Err(InflateError::Ended) };
            }
            let (status, taken, written) =
                decompress(&mut self.inflater, rest, &mut self.window, self.at, TINFL_FLAG_HAS_MORE_INPUT);
            rest = rest.get(taken..).unwrap_or_default();
            let end = self.at + written;
            out.extend_from_slice(self.window.get(self.at..end).unwrap_or_default());
            self.at = end & (self.window.len() - 1);
            if out.len() > most {
                return Err(InflateError::TooLarge);
            }
            match status {
                TINFLStatus::NeedsMoreInput => return Ok(out),
                TINFLStatus::HasMoreOutput => {}
                TINFLStatus::Done => self.ended = true,
                _ => return Err(InflateError::Block),
            }
        }
    }

    /// Reads the stream's header, and places the dictionary in the window.
    fn begin(&mut self) -> Result<(), InflateError> {
        let [first, second, name @ ..] = self.head.as_slice() else { return Err(InflateError::Head) };
        let is_deflate = first & 0x0F == 8 && first >> 4 <= 7;
        let is_checked = (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0;
        if !is_deflate || !is_checked {
            return Err(InflateError::Head);
        }
        if second & 0b0010_0000 == 0 || name != adler_32(self.dictionary).to_be_bytes() {
            return Err(InflateError::Dictionary);
        }
        self.window = vec![0; 256 << (first >> 4)];
        let known = self.dictionary.len().min(self.window.len());
        let end = self.dictionary.len() - known;
        self.window.get_mut(..known).unwrap_or_default().copy_from_slice(&self.dictionary[end..]);
        self.at = known & (self.window.len() - 1);
        Ok(())
    }
}
