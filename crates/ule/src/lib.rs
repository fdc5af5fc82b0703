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
mod encapsulator;
pub mod extension;
pub mod filter;
pub mod npa;
mod receiver;
pub mod sndu;
mod source;
pub mod ts;
pub mod type_field;

pub use encapsulator::{
    Concat, Encapsulator, EncapsulatorConfig, EncapsulatorCounters, Packing, Pulled, PushError, Since,
};
pub use extension::{Bridged, Content, ExtensionError, OptionalHeader, PduConcat, TimeStamp};
pub use filter::NpaFilter;
pub use npa::Npa;
pub use receiver::{AfterBadCrc, Delivery, Lenience, Payload, Receiver, ReceiverConfig, ReceiverCounters};
pub use sndu::{Sndu, SnduError};
pub use source::Source;
pub use ts::{Pid, TsPacket};
pub use type_field::{EtherType, HLen, Type};
