//! SPDY/3.1 for objects: a client with one stream, and a server with as many as it is asked for.
//!
//! All frames are understood. Headers are those that the protocol demands and no others, and are said in as few octets as an
//! ordinary inflater takes ([`crate::deflate`]). A server pushes nothing, and takes no bodies. Section numbers are those of
//! the draft "SPDY Protocol - Draft 3.1".

mod client;
mod dictionary;
mod frame;
mod header_block;
mod reader;
mod server;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use client::Client;
pub use dictionary::DICTIONARY;
pub use frame::{Control, FrameError, Reset};
pub use header_block::{HeaderBlockError, HeaderBlocks, Headers, uncompressed};
pub use server::Server;

/// Octets of DATA that may be under way before the other side allows more: on a stream, and on all of them together. Section
/// 2.6.8.
const WINDOW: i64 = 65_536;
