//! Outcome of decompressing one packet, as every profile returns it.

use thinair_wire::crc::Check;

use crate::packet::Header;
use crate::profile::Format;

/// Why a packet is not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The octets cannot be a packet of this context.
    Malformed,
    /// The state does not allow to decompress this format (5.3.2.2.1).
    NotAllowed(Format),
    /// The CRC of the header does not match.
    Crc(Format),
    /// An item of a list is not in the translation table (5.8.1.1).
    UnknownItem(Format),
    /// The packet names a template that was never received, or not kept.
    UnknownTemplate(Format),
    /// The packet names a message of the other direction that is not known.
    NoRequest(Format),
    /// The packet may be late or a duplicate (RFC 4224), so that its SN means something else than it seems to.
    Ambiguous(Format),
    /// Right, but not with the newest reference: late, or the beginning of a repair (`doubt`).
    Suspect(Format),
    /// The context was repaired just now; RFC 3095 holds its first packets back.
    OnTrial(Format),
    /// No memory for the extension headers.
    NoMemory,
    /// The caller's buffer is too short: octets needed.
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

/// Over the ROHC header with the CRC field zero, CID included, payload not (RFC 3095, section 5.9.1).
pub(crate) fn verify_crc8(
    packet: &Header<'_>,
    len: usize,
    crc: Option<(u32, u8)>,
    format: Format,
) -> Result<(), Failure> {
    let at = packet.len_before(packet.rest) + 1;
    let (head, behind) = (packet.whole.get(..at), packet.whole.get(at + 1..len));
    let (Some(head), Some(behind), Some((8, crc))) = (head, behind, crc) else {
        return Err(Failure::Malformed);
    };
    let check = Check::Crc8;
    let state = check.update(check.update(check.of(head), &[0]), behind);
    if state == crc { Ok(()) } else { Err(Failure::Crc(format)) }
}
