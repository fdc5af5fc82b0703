//! IPv6 over IEEE 802.15.4: header compression by LOWPAN_IPHC and LOWPAN_NHC (RFC 6282), frames, fragments (RFC 4944).
//!
//! [`compress`] turns an IPv6 packet into the content of a link frame, dispatch octet included; [`decompress`] restores
//! it bit for bit. Both are stateless: the parameters common to both sides are in [`LowpanSettings`], and the addresses of the
//! frame's sender and receiver in [`Links`].
//!
//! [`Fragments`](fragment::Fragments) fragments a packet that does not fit into a frame. On the other side,
//! [`WpanFrame`](frame::WpanFrame) decodes addresses and payload, [`HeaderStack`](stack::HeaderStack) the headers before a packet, and a
//! [`Reassembler`](reassembly::Reassembler) reassembles fragments; a node in between does likewise, or forwards fragments
//! with a [`Forwarder`](forward::Forwarder). These two store packets, in the number and for the time that the caller
//! sets. A ROHC packet can take the place of an IPv6 packet: [`dispatch`].
//!
//! Neighbors, routes, keys, and medium access are the application's. The crate has no clock, allocates nothing, and does
//! not panic on octets from outside.
//!
//! ```
//! use thinair_lowpan::{LinkAddress, Links, LowpanSettings, compress, decompress};
//!
//! // A CoAP GET over UDP between link-local addresses that are made of link addresses: 57 octets.
//! let packet = *b"\x60\0\0\0\0\x11\x11\x40\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\0\0\x01\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\0\0\x02\
//!     \xe0\x01\x16\x33\0\x11\x12\x34\x40\x01\x12\x34\xb4time";
//! let links = Links { source: LinkAddress::Short(1), destination: LinkAddress::Short(2) };
//! let settings = LowpanSettings::default();
//!
//! let (mut frame, mut back) = ([0; 128], [0; 128]);
//! let compressed = compress(&settings, links, &packet, &mut frame)?;
//! assert_eq!((compressed.header_in, compressed.header_out, compressed.len), (48, 9, 18));
//! let done = decompress(&settings, links, &frame[..compressed.len], &mut back)?;
//! assert_eq!(back[..done.len], packet);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! Read first: `iphc.rs`, `nhc/extension.rs`, `nhc/udp.rs`, `frame.rs`, `stack.rs` and `fragment.rs`, where each format
//! is one function over a [`Coder`](thinair_wire::coder::Coder); then `address.rs`, which has all forms of addresses.

#![no_std]
#![deny(missing_docs)]

#[cfg(test)]
extern crate std;

mod address;
mod compress;
mod context;
mod decompress;
pub mod dispatch;
pub mod fcs;
pub mod forward;
pub mod fragment;
pub mod frame;
mod iphc;
mod link;
mod nhc;
pub mod reassembly;
pub mod stack;

pub use compress::{CompressError, CompressedPacket, compress};
pub use context::{BadContext, Contexts, LowpanContext};
pub use decompress::{DecompressError, Decompressed, decompress};
pub use link::{LinkAddress, Links};

/// Parameters that the two ends of a link have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowpanSettings {
    /// Prefixes for the compression of addresses.
    pub contexts: Contexts,
    /// Elision of UDP checksums on the link.
    pub udp_checksum: UdpChecksum,
}

/// Elision of the UDP checksum. RFC 6282, section 4.3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UdpChecksum {
    /// It is always in-line, and a packet without it is rejected.
    #[default]
    InLine,
    /// The upper layer has authorized its elision, and another integrity check (for example of the link) covers the same
    /// octets: a correct checksum is elided, and a missing one is computed.
    ///
    /// **Only the caller can know that both hold for a packet.**
    Elided,
}

/// Largest number of nested IPv6 headers that are compressed; a further one is payload.
const MAX_IP: usize = 4;
