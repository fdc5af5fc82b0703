//! SNDUs in TS Packets (ULE, RFC 4326), one to seven of them per body, with or without an RTP header.
//!
//! SNDUs for all sites have no address (D is 1), those for one site have its NPA (D is 0). An Ethernet frame
//! is a bridged frame (Type 0x0001) with its MAC addresses, and without an SNDU address (RFC 4326, section
//! 4.7.5).

mod constant;
mod receiver;
mod sender;

pub use receiver::TsReceiver;
pub use sender::TsSender;

/// Maximum size of a unit in octets, for one site or for all: Length includes its octets, an address and the
/// CRC.
pub const LARGEST_UNIT: usize = 0x7FFF - 6 - 4;
