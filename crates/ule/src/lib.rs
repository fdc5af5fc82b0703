//! Packets in an MPEG-2 Transport Stream: Unidirectional Lightweight Encapsulation (ULE, RFC 4326) with the extension
//! formats of RFC 5163.
//!
//! This crate knows Types and Extension Headers ([`Type`], [`extension`]). It refuses to know what is in a PDU. It holds
//! no clock and no socket, allocates nothing, and does not panic on octets from outside.

#![no_std]
#![deny(missing_docs)]

#[cfg(test)]
#[macro_use]
extern crate std;

pub mod capacity;
pub mod crc;
mod demultiplexer;
mod encapsulator;
pub mod extension;
pub mod filter;
mod multiplexer;
pub mod npa;
pub mod psi;
mod queue;
mod receiver;
pub mod sndu;
mod source;
mod synchronizer;
pub mod ts;
pub mod type_field;

pub use demultiplexer::{Demultiplexer, DemultiplexerCounters};
pub use encapsulator::{
    Concat, Encapsulator, EncapsulatorConfig, EncapsulatorCounters, Packing, Pulled, PushError, Since,
};
pub use extension::{Bridged, Content, ExtensionError, OptionalHeader, PduConcat, TimeStamp};
pub use filter::NpaFilter;
pub use multiplexer::{Multiplexer, MultiplexerConfig, Pace, Slot};
pub use npa::Npa;
pub use queue::{Queue, QueueError};
pub use receiver::{AfterBadCrc, Delivery, Lenience, Payload, Receiver, ReceiverConfig, ReceiverCounters};
pub use sndu::{Sndu, SnduError};
pub use source::Source;
pub use synchronizer::{Spacing, Synchronizer, SynchronizerCounters};
pub use ts::{Pid, TsPacket};
pub use type_field::{EtherType, HLen, Type};
