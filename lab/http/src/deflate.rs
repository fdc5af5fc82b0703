//! Encoder and decoder for a zlib stream (RFC 1950) of short pieces, with as few octets as the format allows.
//!
//! Header blocks are short, share one stream, and each must be readable as soon as it arrives. The usual solution lets
//! zlib compress and flush (`Z_SYNC_FLUSH`), with greedy parsing and 4 or 5 octets of an empty stored block after each
//! piece. This [`Encoder`] differs in three ways. It finds the shortest encoding of a piece by dynamic programming over
//! every match in the dictionary and in earlier pieces. It writes the piece in the type of block that takes the fewest
//! bits, or continues the open block. And it does not flush: the code of the last symbol ends somewhere in an octet,
//! the rest of that octet is filled with the first bits of the code that ends a block, and the next piece begins with
//! these bits. An inflater has all octets of a piece once it has all its bits: RFC 1951 does not ask for more.
//!
//! The decoder is [`miniz_oxide`], with the dictionary placed in its window.

mod bits;
mod code;
mod dynamic;
mod encoder;
mod inflate;
mod parse;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use encoder::{Encoder, Flush};
pub use inflate::{Decoder, InflateError};

/// Adler-32 checksum of a dictionary, which identifies it in a stream. RFC 1950, sections 2.2 and 8.
pub const fn adler_32(octets: &[u8]) -> u32 {
    const BASE: u32 = 65_521;
    let (mut low, mut high) = (1, 0);
    let mut at = 0;
    while at < octets.len() {
        low = (low + octets[at] as u32) % BASE;
        high = (high + low) % BASE;
        at += 1;
    }
    high << 16 | low
}
