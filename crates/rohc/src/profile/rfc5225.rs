//! ROHCv2: profiles 0x0101 (RTP), 0x0102 (UDP), 0x0103 (ESP), 0x0104 (IP), 0x0107 (RTP/UDP-Lite) and 0x0108 (UDP-Lite). RFC 5225, with
//! errata 1421, 2703, 3185 and 3248.
//!
//! A packet is a `State`: its headers as octets, and the control fields. Both ends keep that of the last packet. The formats
//! (`formats`, `chains`) say how a packet differs from it.

mod chains;
pub(crate) mod compress;
mod confirm;
pub(crate) mod decompress;
mod doubt;
mod encodings;
mod flow;
mod formats;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod formats_test;
mod headers;
mod late;
mod next;
mod note;
mod receiver;
mod state;
mod stride;

pub use state::V2Room;
