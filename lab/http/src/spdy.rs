//! SPDY/3.1 for objects: a client with one stream at a time, and a server with any number of streams.
//!
//! All frames are understood. Header blocks have only the headers that the protocol requires, and take as few octets as
//! an ordinary inflater can read ([`crate::deflate`]). A server pushes nothing, and accepts no bodies. Section numbers
//! refer to the draft "SPDY Protocol - Draft 3.1".

mod client;
mod dictionary;
mod frame;
mod header_block;
mod reader;
mod server;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use client::SpdyClient;
pub use dictionary::DICTIONARY;
pub use frame::{Control, Reset, SpdyFrameError};
pub use header_block::{HeaderBlockError, HeaderBlocks, HeaderList, uncompressed};
pub use server::SpdyServer;

/// Initial window: octets of DATA that may be unacknowledged, per stream and for the connection. Section 2.6.8.
const WINDOW: i64 = 65_536;
