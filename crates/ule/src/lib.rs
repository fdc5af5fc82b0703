//! Packets in an MPEG-2 Transport Stream: Unidirectional Lightweight Encapsulation (ULE, RFC 4326) with the extension
//! formats of RFC 5163.
//!
//! This crate knows Types and Extension Headers ([`Type`], [`extension`]). It refuses to know what is in a PDU. It holds
//! no clock and no socket, allocates nothing, and does not panic on octets from outside.

#![no_std]
#![deny(missing_docs)]

#[cfg(test)]
extern crate std;

pub mod capacity;
pub mod crc;
pub mod extension;
pub mod npa;
pub mod type_field;

pub use extension::{Bridged, Content, ExtensionError, OptionalHeader, PduConcat, TimeStamp};
pub use npa::Npa;
pub use type_field::{EtherType, HLen, Type};
