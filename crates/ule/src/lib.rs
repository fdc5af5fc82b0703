//! Packets in an MPEG-2 Transport Stream: Unidirectional Lightweight Encapsulation (ULE, RFC 4326) with the extension
//! formats of RFC 5163. Beside it, without a Transport Stream: Generic Stream Encapsulation ([`gse`]).
//!
//! An [`Encapsulator`] puts PDUs into TS Packets of one PID, at the pace of the PDUs or of the transmitter; a
//! [`Receiver`] extracts them, and counts errors. In addition there are a [`Multiplexer`] of constant rate with
//! [PSI](psi) and null packets, a [`Demultiplexer`] of several PIDs, and a [`Synchronizer`] for streams without packet
//! boundaries. Types and [Extension Headers](extension) are separate from SNDUs, as GSE shares them.
//!
//! This crate implements SNDUs and TS Packets. Contents of PDUs and transport of TS Packets are the application's. It has
//! no clock and no socket, allocates nothing, and does not panic on octets from outside.
//!
//! ```
//! use thinair_ule::{
//!     Encapsulator, EncapsulatorConfig, EtherType, Payload, Pid, Pulled, PduQueue, Receiver, ReceiverConfig, Sndu,
//! };
//!
//! let pid = Pid::new(0x35).ok_or("not a PID")?;
//! let mut encapsulator = Encapsulator::new(EncapsulatorConfig::new(pid));
//! let (mut waiting, mut current) = ([0; 4_096], [0; 4_096]);
//! let mut queue = PduQueue::<16>::new(&mut waiting);
//! let mut receiver = Receiver::new(ReceiverConfig::new(pid), &mut current);
//!
//! queue.push(&Sndu::pdu(EtherType::ROHC, b"one"))?;
//! queue.push(&Sndu::pdu(EtherType::ROHC, b"another"))?;
//! let mut received = Vec::new();
//! // Both share the TS Packet of one slot; the next slot is empty.
//! while let Pulled::Full(packet) | Pulled::Padded(packet) = encapsulator.pull(&mut queue) {
//!     receiver.receive(packet, &mut |delivery| {
//!         if let Payload::Pdu(EtherType::ROHC, pdu) = delivery.payload {
//!             received.push(pdu.to_vec());
//!         }
//!     });
//! }
//! assert_eq!(received, [&b"one"[..], b"another"]);
//! assert_eq!(encapsulator.counters().ts_packets, 1);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! Read first: `sndu.rs`, where the base header is one function over a [`Coder`](thinair_wire::coder::Coder), then
//! `encapsulator.rs` and `receiver.rs`, which are sections 6 and 7 of RFC 4326.

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
pub mod gse;
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
pub use extension::{Bridged, ExtensionError, OptionalHeader, PduConcat, SnduContent, TimeStamp};
pub use filter::NpaFilter;
pub use multiplexer::{MultiplexSlot, Multiplexer, MultiplexerConfig, SlotClock};
pub use npa::Npa;
pub use queue::{PduQueue, QueueError};
pub use receiver::{AfterBadCrc, Delivery, Lenience, Payload, Receiver, ReceiverConfig, ReceiverCounters};
pub use sndu::{Sndu, SnduError};
pub use source::SnduSource;
pub use synchronizer::{Spacing, Synchronizer, SynchronizerCounters};
pub use ts::{Pid, TsPacket};
pub use type_field::{EtherType, HLen, Type};
