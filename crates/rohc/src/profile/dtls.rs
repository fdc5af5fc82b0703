//! Profile 0x0182: DTLS over UDP over IP. `docs/dtls-profile.md` specifies it.
//!
//! The state that both ends share for a flow is a `DtlsState`; the fields of one packet are `HeaderFields`. A function per format moves
//! fields to octets and back (`formats`). A packet is rebuilt from both (`header`), at the decompressor, and at the compressor to predict
//! the next one. Contents of records are payload: the profile has no keys.

pub(crate) mod compress;
mod confirm;
pub(crate) mod decompress;
mod flow;
mod formats;
#[cfg(test)]
mod formats_test;
mod header;
mod next;
mod note;
mod receiver;
mod record;
mod state;

use crate::cid::Cid;

/// Octets of an explicit nonce. RFC 5288, section 3; RFC 6655, section 3.
const NONCE: usize = 8;

/// Fields that a packet carries although the context determines them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Carries {
    ip_id: bool,
    /// Content type, version, connection ID, and how the nonce is encoded.
    record: bool,
    /// Epoch and sequence number.
    number: bool,
    /// Length of the first record, since others stand behind it.
    length: bool,
}

impl Carries {
    #[inline]
    fn is_nothing(self) -> bool {
        !(self.ip_id | self.record | self.number | self.length)
    }
}

/// Explicit nonce of a packet that carries the type of its record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NonceSource {
    /// No nonce is known: one that is there is payload.
    #[default]
    None,
    /// Epoch and sequence number.
    Number,
    /// Carried, for the difference from epoch and sequence number.
    Carried,
    /// Epoch and sequence number, and the difference that the context has.
    Difference,
}

thinair_wire::word_enum!(NonceSource: None Number Carried, Difference);

/// Fields of one packet beside those of its context.
#[derive(Clone, Copy, Debug, Default)]
struct HeaderFields {
    msn: u16,
    /// Sequence number of the first record, 48 bits. A flow of unified headers counts packets.
    number: u64,
    ip_id: u16,
    checksum: u16,
    /// CHECK, or the context CRC of an IR-CR packet.
    check: u16,
    /// Length of the first record, if the packet carries it.
    length: u16,
    /// Encrypted sequence number of a unified header.
    encrypted: u16,
    nonce_source: NonceSource,
    nonce: [u8; NONCE],
    carries: Carries,
    /// A long format has the MSN, which is otherwise the low bits of the sequence number.
    has_msn: bool,
    /// A long format has the dynamic part of the IP header, which is otherwise that of the base.
    has_dynamic: bool,
    /// Context that an IR-CR packet names, if it can be one.
    base: Option<Cid>,
}

/// Distance of the interval of `k` bits of the MSN below the newest one, and the number of its turns that are tried where no clock tells.
#[inline]
const fn msn_interval(k: u32) -> (u32, u32) {
    if k < 16 { (8, 3) } else { (1 << 15, 0) }
}
