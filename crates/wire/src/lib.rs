//! Layout of header fields in octets.
//!
//! This crate has packet formats as functions ([`coder`]), least significant bits of counters ([`lsb`],
//! [`window`]), checks ([`crc`], [`checksum`]), serial numbers and integer time, and the headers of the
//! Internet protocols ([`header`]). It holds no protocol state: nothing here depends on a previous packet.
//! `no_std`, no allocation, no panic on octets from outside.
//!
//! Start with [`coder`]: one generic function per packet format, run by a writer, a reader or a describer.

#![no_std]
#![deny(missing_docs)]

#[cfg(test)]
extern crate std;

pub mod checksum;
pub mod coder;
pub mod crc;
pub mod header;
pub mod lsb;
pub mod range;
pub mod serial;
pub mod time;
pub mod window;

/// True if this crate is built for size (`opt-level` s or z). A fast path beside a full path is then left out.
pub const IS_SMALL: bool = cfg!(small);
