//! Robust Header Compression: the framework of RFC 5795 and its profiles.
//!
//! A [`Compressor`] turns the IP packets of one direction of a link into ROHC packets. A [`Decompressor`] at the other end
//! restores them bit for bit, or drops them. Both are sans-IO: the caller passes octets and the time, and gets octets.
//! Contexts are in memory whose size is fixed at start, lent by the caller or owned (feature `alloc`); nothing is allocated
//! per packet.
//!
//! ```
//! use thinair_rohc::{Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory};
//! use thinair_rohc::{Decompressor, DecompressorConfig, DecompressorMemory, Instant, ProfileSet};
//!
//! let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1())?;
//! let mut compressor =
//!     Compressor::new(CompressorConfig::new(channel), CompressorMemory::owned(&channel));
//! let mut decompressor =
//!     Decompressor::new(DecompressorConfig::new(channel), DecompressorMemory::owned(&channel));
//!
//! // A CoAP GET over UDP and IPv6: 57 octets.
//! let packet = *b"\x60\0\0\0\0\x11\x11\x40\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x01\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x02\
//!     \xe0\x01\x16\x33\0\x11\x12\x34\x40\x01\x12\x34\xb4time";
//! let (mut rohc, mut back) = ([0; 128], [0; 128]);
//! let mut sizes = [0; 6];
//! for (i, size) in sizes.iter_mut().enumerate() {
//!     let now = Instant::from_millis(10 * i as u64);
//!     *size = compressor.compress(now, &packet, &mut rohc)?.len;
//!     let done = decompressor.decompress(now, &rohc[..*size], &mut back)?;
//!     assert_eq!(back[..done.len], packet);
//! }
//! assert_eq!(sizes, [59, 59, 59, 59, 12, 12]);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! Where to start reading: [`packet`] (the parts of a ROHC packet), [`compressor`] and [`decompressor`] (the public
//! operations), then in `profile/rfc3095.rs` the list of formats, each with its function.

#![no_std]
#![deny(missing_docs)]
// Items of profiles that are disabled.
#![cfg_attr(
    not(all(
        feature = "rtp",
        feature = "udp",
        feature = "esp",
        feature = "ip",
        feature = "tcp",
        feature = "coap",
        feature = "dtls",
        feature = "v2"
    )),
    allow(dead_code, unused_imports)
)]

#[cfg(any(test, feature = "alloc"))]
extern crate alloc;
#[cfg(test)]
extern crate self as thinair_rohc;
#[cfg(test)]
extern crate std;

pub mod channel;
pub mod cid;
pub mod compressor;
pub mod contexts;
pub mod decompressor;
mod endpoint;
pub mod exchange;
pub mod feedback;
mod field;
mod flow;
mod framing;
mod id;
mod interop;
pub mod mode;
pub mod packet;
pub mod profile;
pub mod segmentation;
mod state;
pub mod storage;
mod work;

pub use channel::{Channel, ChannelError, Integrity, ProfileSet};
pub use cid::{Cid, CidSpace};
pub use compressor::{
    CoapConfig, CompressError, Compressed, Compressor, CompressorConfig, FormatPolicy, Ports, ReorderRatio,
    RtpDetection,
};
pub use contexts::ContextState;
pub use decompressor::{DecompressError, Decompressed, Decompressor, DecompressorConfig, Threshold};
pub use endpoint::Endpoint;
pub use feedback::FeedbackError;
pub use flow::arrival::Arrival;
pub use flow::refresh::{self, Refresh};
pub use id::{Format, ProfileId};
pub use interop::Interop;
pub use mode::Mode;
pub use storage::{
    CompressorMemory, CompressorStorage, DecompressorMemory, DecompressorStorage, Sizes, Storage,
};
pub use thinair_wire::time::Instant;
