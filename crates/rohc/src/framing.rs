//! Framing of a packet around its CID. RFC 5795, section 5.2.1.2.

use thinair_wire::coder::NoRoom;
use thinair_wire::crc::Check;

use crate::cid::{Cid, CidSpace};

/// Octets from the first one of the header, large CID left out, to the CRC of an IR, IR-DYN or IR-CR packet: it stands behind the
/// profile.
const CRC_AT: usize = 2;

/// Place of the CID in one packet.
///
/// A header is written in one piece, from octet [`len`](Self::len) on; [`close`](Self::close) moves its first octet in front of a large
/// CID.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CidFrame {
    cid: Cid,
    /// Octets in front of the header.
    before: usize,
    /// Octets behind the first octet of the header.
    inside: usize,
}

impl CidFrame {
    /// Frame of a packet of that context.
    #[inline(always)]
    pub(crate) const fn new(cid: Cid, space: CidSpace) -> Self {
        Self { cid, before: cid.octets_before(space), inside: cid.octets_inside(space) }
    }

    /// Octets of the CID.
    #[inline]
    pub(crate) const fn len(self) -> usize {
        self.before + self.inside
    }

    /// Copies the payload behind the header, which ends at octet `end`, and writes the CID to its place. Returns the octets of the
    /// packet.
    #[inline(always)]
    pub(crate) fn close(self, end: usize, payload: &[u8], out: &mut [u8]) -> Result<usize, NoRoom> {
        let Self { cid, before, inside } = self;
        let len = end + payload.len();
        out.get_mut(end..len).ok_or(NoRoom)?.copy_from_slice(payload);
        if before > 0 {
            out[0] = cid.add_cid();
        }
        if inside > 0 {
            out[before] = out[before + inside];
            cid.write_large(&mut out[before + 1..before + 1 + inside]);
        }
        Ok(len)
    }

    /// Fills in the CRC-8 of an IR, IR-DYN or IR-CR packet that is closed: it covers the header, CID included, with zero in its own
    /// place (RFC 3095, section 5.9.1).
    #[inline]
    pub(crate) fn fill_crc8(self, end: usize, out: &mut [u8]) {
        let crc = Check::Crc8.of(out.get(..end).unwrap_or_default());
        if let Some(octet) = out.get_mut(self.len() + CRC_AT) {
            *octet = crc;
        }
    }
}
