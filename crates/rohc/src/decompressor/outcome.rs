//! Outcome of decompressing one packet, as every profile returns it.

use thinair_wire::coder::Reader;
use thinair_wire::crc::Check;

use super::DecompressError;
use crate::cid::Cid;
use crate::id::Format;
use crate::packet::PacketHeader;

/// Reason a packet is not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The octets cannot be a packet of this context.
    Malformed,
    /// The state of the context does not allow this format (RFC 3095, section 5.3.2.2.1).
    NotAllowed(Format),
    /// The CRC of the header does not match.
    Crc(Format),
    /// An item of a list is not in the translation table (RFC 3095, section 5.8.1.1).
    UnknownItem(Format),
    /// The packet refers to a template that was never received, or was dropped.
    UnknownTemplate(Format),
    /// The packet refers to an unknown message of the other direction.
    NoRequest(Format),
    /// The packet may be late or a duplicate (RFC 4224), so that its SN is ambiguous.
    Ambiguous(Format),
    /// Valid, but not with the newest reference: late, or the beginning of a repair (`doubt`).
    Suspect(Format),
    /// The context was just repaired; RFC 3095 holds its first packets back.
    OnTrial(Format),
    /// No context has room for the packet, which is not verified.
    TooLarge,
    /// The packet is verified, and there is no memory for its fields.
    NoMemory,
    /// An IR-CR packet without its base.
    NoBase,
    /// The caller's buffer is too short. The value is the number of octets needed.
    NoRoom(usize),
}

/// A verified packet, written to the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verified {
    pub(crate) format: Format,
    /// Octets of the ROHC header, CID included.
    pub(crate) header_in: usize,
    /// Octets of the rebuilt headers.
    pub(crate) header_out: usize,
    /// Octets of the packet; 0 if there is nothing to deliver.
    pub(crate) len: usize,
}

impl Verified {
    /// Copies the payload behind the `len` octets of rebuilt headers.
    #[inline]
    pub(crate) fn deliver(
        packet: &PacketHeader<'_>,
        format: Format,
        len: usize,
        payload: &[u8],
        out: &mut [u8],
    ) -> Result<Self, Failure> {
        let end = len + payload.len();
        out.get_mut(len..end).ok_or(Failure::NoRoom(end))?.copy_from_slice(payload);
        Ok(Self { format, header_in: packet.len_before(payload), header_out: len, len: end })
    }
}

/// Reason headers cannot be rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unbuildable {
    /// A length does not fit its field, or options do not fit their header: no packet has these values.
    Malformed,
    /// The caller's buffer is too short. The value is the least number of octets needed.
    NoRoom(usize),
}

impl From<Unbuildable> for Failure {
    #[inline]
    fn from(why: Unbuildable) -> Self {
        match why {
            Unbuildable::Malformed => Self::Malformed,
            Unbuildable::NoRoom(need) => Self::NoRoom(need),
        }
    }
}

/// Verifies the CRC-8 of an IR, IR-DYN or IR-CR packet. It covers the ROHC header, including the CID, with zero in place of
/// the CRC (RFC 3095, section 5.9.1).
pub(crate) fn verify_crc8(
    packet: &PacketHeader<'_>,
    reader: &Reader<'_>,
    format: Format,
) -> Result<(), Failure> {
    let len = packet.len_before(reader.remaining());
    // The CRC stands behind the profile octet, which follows the first octet and the CID.
    let at = packet.len_before(packet.rest) + 1;
    let (head, behind) = (packet.whole.get(..at), packet.whole.get(at + 1..len));
    let (Some(head), Some(behind), Some((8, crc))) = (head, behind, reader.crc_read()) else {
        return Err(Failure::Malformed);
    };
    let check = Check::Crc8;
    let state = check.update_long(check.update(check.of(head), &[0]), behind);
    if state == crc { Ok(()) } else { Err(Failure::Crc(format)) }
}

/// A failure, with or without a profile that reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    Failure(Failure),
    NoContext,
    UnsupportedProfile(u8),
}

impl Problem {
    pub(crate) fn error(self, cid: Cid, have: usize) -> DecompressError {
        match self {
            Self::NoContext | Self::Failure(Failure::NoBase) => DecompressError::NoContext(cid),
            Self::UnsupportedProfile(low) => DecompressError::UnsupportedProfile(cid, low),
            Self::Failure(Failure::Malformed) => DecompressError::Malformed(cid),
            Self::Failure(Failure::NotAllowed(format)) => DecompressError::NotAllowed(cid, format),
            Self::Failure(Failure::Crc(format)) => DecompressError::Crc(cid, format),
            Self::Failure(Failure::UnknownItem(format)) => DecompressError::UnknownItem(cid, format),
            Self::Failure(Failure::UnknownTemplate(format)) => DecompressError::UnknownTemplate(cid, format),
            Self::Failure(Failure::NoRequest(format)) => DecompressError::UnknownRequest(cid, format),
            Self::Failure(Failure::Ambiguous(format) | Failure::Suspect(format)) => {
                DecompressError::Ambiguous(cid, format)
            }
            Self::Failure(Failure::OnTrial(format)) => DecompressError::OnTrial(cid, format),
            Self::Failure(Failure::TooLarge | Failure::NoMemory) => DecompressError::NoMemory(cid),
            Self::Failure(Failure::NoRoom(need)) => DecompressError::OutputTooSmall { need, have },
        }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}
