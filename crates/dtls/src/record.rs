//! Records: header, content types, and where one ends in a datagram. RFC 6347, section 4.1; RFC 9146, section 4.

use core::fmt;

use crate::cid::Cid;

/// Version of DTLS 1.2. RFC 6347, section 4.1.
pub(crate) const VERSION: u16 = 0xfefd;

/// Octets of a header without connection ID.
pub(crate) const HEADER: usize = 13;

/// Octets of an explicit nonce. RFC 6655, section 3.
pub(crate) const NONCE: usize = 8;

/// Octets of a tag of AES-128-CCM-8.
pub(crate) const TAG: usize = 8;

/// Octets that a record adds to its content: header, explicit nonce, tag. With a connection ID, its octets and 1 more.
pub const OVERHEAD: usize = HEADER + NONCE + TAG;

/// Largest content of a record, in octets.
pub(crate) const MAX_CONTENT: usize = 1 << 14;

/// Largest sequence number: a session that has sent it is over.
pub(crate) const MAX_SEQUENCE: u64 = (1 << 48) - 1;

pub(crate) const CHANGE_CIPHER_SPEC: u8 = 20;
pub(crate) const ALERT: u8 = 21;
pub(crate) const HANDSHAKE: u8 = 22;
pub(crate) const APPLICATION_DATA: u8 = 23;
pub(crate) const TLS12_CID: u8 = 25;

/// Reason why content is not sent. The caller is at fault, or has to connect first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// There is no such session, or none yet.
    NotConnected,
    /// The record exceeds the buffer, or the content 16,384 octets.
    TooLong {
        /// Octets of the record.
        len: usize,
    },
    /// All sequence numbers of the session are used: connect again.
    Exhausted,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected => f.write_str("there is no DTLS session"),
            Self::TooLong { len } => write!(f, "a record of {len} octets is too long"),
            Self::Exhausted => f.write_str("all sequence numbers of the DTLS session are used"),
        }
    }
}

impl core::error::Error for SendError {}

/// A record as received; if it is protected, nothing of it is verified.
#[derive(Debug)]
pub(crate) struct Record<'d> {
    pub(crate) content_type: u8,
    pub(crate) version: u16,
    pub(crate) epoch: u16,
    pub(crate) sequence: u64,
    pub(crate) cid: Cid,
    pub(crate) fragment: &'d mut [u8],
}

impl<'d> Record<'d> {
    /// Takes the next record off a datagram, whose rest is dropped if it is malformed. `cid_len`: octets of the receiver's
    /// connection IDs; without them, records with one are malformed.
    pub(crate) fn take(rest: &mut &'d mut [u8], cid_len: usize) -> Option<Self> {
        let (head, octets) = core::mem::take(rest).split_first_chunk_mut::<{ HEADER - 2 }>()?;
        let [content_type, v0, v1, e0, e1, sequence @ ..] = *head;
        let cid_len = match content_type {
            TLS12_CID if cid_len > 0 => cid_len,
            CHANGE_CIPHER_SPEC | ALERT | HANDSHAKE | APPLICATION_DATA => 0,
            _ => return None,
        };
        let (cid, octets) = octets.split_at_mut_checked(cid_len)?;
        let (len, octets) = octets.split_first_chunk_mut::<2>()?;
        let (fragment, octets) = octets.split_at_mut_checked(usize::from(u16::from_be_bytes(*len)))?;
        let version = u16::from_be_bytes([v0, v1]);
        if version >> 8 != VERSION >> 8 {
            return None;
        }
        *rest = octets;
        Some(Self {
            content_type,
            version,
            epoch: u16::from_be_bytes([e0, e1]),
            sequence: sequence.iter().fold(0, |number, octet| number << 8 | u64::from(*octet)),
            cid: Cid::new(cid)?,
            fragment,
        })
    }
}

/// Writes the header of a record. `number`: epoch and sequence number. `None` if `out` is shorter.
pub(crate) fn write_header(
    out: &mut [u8],
    content_type: u8,
    version: u16,
    number: u64,
    cid: &Cid,
    len: usize,
) -> Option<usize> {
    let content_type = if cid.is_empty() { content_type } else { TLS12_CID };
    let len = u16::try_from(len).ok()?.to_be_bytes();
    let (version, number) = (version.to_be_bytes(), number.to_be_bytes());
    let mut at = 0;
    for part in [&[content_type][..], &version, &number, cid.octets(), &len] {
        out.get_mut(at..at + part.len())?.copy_from_slice(part);
        at += part.len();
    }
    Some(at)
}

/// Writes a record without protection. `None` if `out` is shorter.
pub(crate) fn write_plain(
    out: &mut [u8],
    content_type: u8,
    version: u16,
    sequence: u64,
    content: &[u8],
) -> Option<usize> {
    let at = write_header(out, content_type, version, sequence, &Cid::EMPTY, content.len())?;
    out.get_mut(at..at + content.len())?.copy_from_slice(content);
    Some(at + content.len())
}
