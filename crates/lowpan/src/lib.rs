//! IPv6 over IEEE 802.15.4: header compression by LOWPAN_IPHC and LOWPAN_NHC (RFC 6282), frames, fragments (RFC 4944).
//!
//! [`compress`] turns an IPv6 packet into what a link frame carries, dispatch octet included; [`decompress`] turns
//! it back, bit for bit. Nothing is remembered from packet to packet: what both sides have to agree on lies in
//! [`Settings`], and what the frame says of its sender and receiver in [`Links`].
//!
//! What does not fit into a frame is cut by [`Fragments`](fragment::Fragments). On the other side,
//! [`Frame`](frame::Frame) tells addresses and payload, [`Stack`](stack::Stack) the headers in front of a packet, and a
//! [`Reassembler`](reassembly::Reassembler) puts fragments together; a node in between does the same, or hands
//! fragments on by a [`Forwarder`](forward::Forwarder). These two remember packets, as many and as long as they are
//! given room for. A ROHC packet can take the place of an IPv6 packet: [`dispatch`].
//!
//! This crate refuses to know neighbours, routes, keys, and when a radio sends. It holds no clock, allocates nothing,
//! and does not panic on octets from outside.
//!
//! ```
//! use thinair_lowpan::{LinkAddress, Links, Settings, compress, decompress};
//!
//! // A CoAP GET over UDP between link-local addresses that are made of link addresses: 57 octets.
//! let packet = *b"\x60\0\0\0\0\x11\x11\x40\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\0\0\x01\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\0\0\x02\
//!     \xe0\x01\x16\x33\0\x11\x12\x34\x40\x01\x12\x34\xb4time";
//! let links = Links { source: LinkAddress::Short(1), destination: LinkAddress::Short(2) };
//! let settings = Settings::default();
//!
//! let (mut frame, mut back) = ([0; 128], [0; 128]);
//! let compressed = compress(&settings, links, &packet, &mut frame)?;
//! assert_eq!((compressed.header_in, compressed.header_out, compressed.len), (48, 9, 18));
//! let done = decompress(&settings, links, &frame[..compressed.len], &mut back)?;
//! assert_eq!(back[..done.len], packet);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! Read first: `iphc.rs`, `nhc/extension.rs`, `nhc/udp.rs`, `frame.rs`, `stack.rs` and `fragment.rs`, where each format is one function over a
//! [`Coder`](thinair_wire::coder::Coder); then `address.rs`, which holds every way to say an address.

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

pub use compress::{CompressError, Compressed, compress};
pub use context::{BadContext, Context, Contexts};
pub use decompress::{DecompressError, Decompressed, decompress};
pub use link::{LinkAddress, Links};

/// What the two ends of a link agree on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The prefixes that addresses are compressed by.
    pub contexts: Contexts,
    /// Whether UDP checksums may be missing on the link.
    pub udp_checksum: UdpChecksum,
}

/// Whether the UDP checksum may be elided. RFC 6282, section 4.3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UdpChecksum {
    /// It is always carried in-line, and a packet without it is refused.
    #[default]
    InLine,
    /// The upper layer has authorised its elision, and another integrity check (of the link, say) covers what it
    /// covers: it is left out wherever it is right, and computed where it is missing.
    ///
    /// **Only the caller can know that both hold for a packet.**
    Elided,
}

/// Most IPv6 headers, one in the other, that are compressed; a further one is payload.
const MAX_IP: usize = 4;
