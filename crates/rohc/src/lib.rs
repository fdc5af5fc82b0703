//! Robust Header Compression: the framework of RFC 5795 and its profiles.

#![no_std]
#![deny(missing_docs)]

#[cfg(any(test, feature = "alloc"))]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod channel;
pub mod cid;
pub mod decompressor;
pub mod feedback;
pub mod mode;
pub mod packet;
pub mod profile;
pub mod segmentation;
mod state;
pub mod storage;
