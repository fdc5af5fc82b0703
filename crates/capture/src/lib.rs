//! pcap and pcapng files, and the link headers in front of IP packets.
//!
//! This crate knows how a capture file lies in octets and where in a captured frame the IP packet (or the ROHC
//! packet) begins. It refuses to know what is in that packet, which packets belong together, and where a file comes
//! from: it reads from any [`std::io::Read`], compressed or not, and writes to any [`std::io::Write`].
//!
//! - [`Reader`] gives the records of a file one by one, in bounded memory; [`Error`] says what is wrong with it, where.
//! - [`Record::network_packet`] finds the IP packet of a record, [`Record::rohc_packet`] the ROHC packet, [`Record::mac_frame`]
//!   the frame of IEEE 802.15.4, whose packets are compressed; [`Skip`] says why there is none.
//! - [`Writer`] writes a pcap file.
//!
//! ```
//! use thinair_capture::{LinkType, Reader, Timestamp, Writer};
//!
//! // An IPv4 header and nothing else, from 192.0.2.1 to 192.0.2.2.
//! let packet = [
//!     0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0xf6, 0xd5, 192, 0, 2, 1, 192, 0, 2, 2,
//! ];
//! let mut writer = Writer::new(Vec::new(), LinkType::RAW)?;
//! writer.write(Timestamp::from_nanos(1_000_000_001), &packet)?;
//! let file = writer.into_inner();
//!
//! let mut reader = Reader::new(file.as_slice())?;
//! while let Some(record) = reader.next_record() {
//!     let record = record?;
//!     match record.network_packet() {
//!         Ok(network) => assert_eq!(network.packet, packet),
//!         Err(skip) => println!("record {}: {}", record.number, skip.name()),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compressed;
mod error;
mod link;
mod link_type;
mod mac_frame;
mod pcap;
mod pcapng;
mod read;
mod record;
mod time;
mod window;
mod write;
mod zep;

pub use compressed::Compression;
pub use error::{Error, Flaw};
pub use link::{
    ETHERNET_HEADER_LEN, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_ROHC, IpVersion, Network, Rohc, Skip,
    network_packet, rohc_packet,
};
pub use link_type::LinkType;
pub use mac_frame::{MacFrame, mac_frame};
pub use read::{MAX_RECORD_LEN, Reader};
pub use record::Record;
pub use time::Timestamp;
pub use write::{ETHERNET_DESTINATION, ETHERNET_SOURCE, MAX_WRITTEN_LEN, Writer, ethernet_header};
pub use zep::{ZEP_PORT, zep_frame};
