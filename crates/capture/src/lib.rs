//! Reader and writer for pcap and pcapng files, and parser for the link layer headers before IP packets.
//!
//! This crate handles the format of capture files, and the position of the IP packet (or ROHC packet) in a frame. The
//! contents of packets, and relations between them, are out of scope. It reads from any [`std::io::Read`], compressed
//! or not, and writes to any [`std::io::Write`].
//!
//! - [`Reader`] returns the records of a file one by one, in bounded memory; [`Error`] describes errors and their
//!   positions.
//! - [`Record::network_packet`] finds the IP packet of a record, [`Record::rohc_packet`] the ROHC packet, and
//!   [`Record::mac_frame`] the frame of IEEE 802.15.4, whose packets are compressed; [`Skip`] is the reason why there
//!   is none.
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
mod record_file;
mod time;
mod window;
mod write;
mod zep;

pub use compressed::Compression;
pub use error::{Error, Flaw};
pub use link::{
    ETHERNET_HEADER_LEN, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_ROHC, IpVersion, NetworkPacket,
    RohcPacket, Skip, network_packet, rohc_packet,
};
pub use link_type::LinkType;
pub use mac_frame::{MacFrame, mac_frame};
pub use read::{MAX_RECORD_LEN, Reader};
pub use record::Record;
pub use record_file::RecordFile;
pub use time::Timestamp;
pub use write::{ETHERNET_DESTINATION, ETHERNET_SOURCE, MAX_WRITTEN_LEN, Writer, ethernet_header};
pub use zep::{ZEP_PORT, zep_frame};
