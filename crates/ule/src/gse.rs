//! Generic Stream Encapsulation (GSE): the counterpart of the SNDU for DVB-S2, without MPEG-2 TS.
//!
//! Types, Extension Headers and the CRC-32 are those of ULE (RFC 5163, section 3). A GSE Packet carries a whole PDU
//! after 4 octets and a [`Label`], or a fragment of one; the CRC of the link protects the BBFrame, so only a fragmented
//! PDU has a CRC-32. [`DataField`] packs GSE Packets into the data field of a BBFrame, [`GseReceiver`] extracts them and
//! reassembles fragments, [`BbHeader`] is the header before the field.
//!
//! **No conformance is claimed.** The layout is the one of ETSI TS 102 606-1 as public receivers and Wireshark read it;
//! the text of that standard was not available. Comments mark the places where several readings are possible.
//!
//! ```
//! use thinair_ule::gse::{Accept, DataField, Label, Put, GseReceiver, ReUse, Sending, GseSlot};
//! use thinair_ule::{EtherType, Npa};
//!
//! let label = Label::Six(Npa::BROADCAST);
//! let mut short = Sending::new(label, EtherType::ROHC.into(), b"a ROHC packet", 0)?;
//! let mut long = Sending::new(label, EtherType::ROHC.into(), &[7; 100], 1)?;
//!
//! // Two data fields of 64 octets: the second packet is in fragments, and re-uses the label of the first.
//! let mut octets = [[0; 64]; 2];
//! let mut field = DataField::new(&mut octets[0], ReUse::Allowed);
//! assert_eq!(field.put(&mut short), Put::Complete);
//! assert_eq!(field.put(&mut long), Put::Partly);
//! assert_eq!(field.finish(), 64);
//! let mut field = DataField::new(&mut octets[1], ReUse::Allowed);
//! assert_eq!(field.put(&mut long), Put::Partly);
//! assert_eq!(field.finish(), 64);
//! let mut last = [0; 64];
//! let mut field = DataField::new(&mut last, ReUse::Allowed);
//! assert_eq!(field.put(&mut long), Put::Complete);
//! assert_eq!(field.finish(), 12);
//!
//! let mut memory = [0; 1500];
//! let mut receiver = GseReceiver::new(Accept::Every, [GseSlot::new(&mut memory)]);
//! let mut lengths = [0; 2];
//! let mut count = 0;
//! for octets in [octets[0], octets[1], last] {
//!     let mut packets = receiver.receive(&octets);
//!     while let Some(pdu) = packets.next_pdu() {
//!         lengths[count] = pdu.octets.len();
//!         count += 1;
//!     }
//! }
//! assert_eq!(lengths, [13, 100]);
//! # Ok::<(), thinair_ule::gse::PduTooLong>(())
//! ```

mod bb_header;
mod data_field;
mod header;
mod label;
#[cfg(test)]
mod properties;
mod receiver;
mod slot;

pub use bb_header::{BadBbHeader, BbHeader};
pub use data_field::{DataField, Filled, PduTooLong, Put, ReUse, Sending};
pub use label::Label;
pub use receiver::{Accept, GsePackets, GseReceiver, GseReceiverCounters, Pdu, TotalLength};
pub use slot::GseSlot;
