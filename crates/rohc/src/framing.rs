//! Framing of a packet around its CID. RFC 5795, section 5.2.1.2.

use thinair_wire::coder::NoRoom;
use thinair_wire::crc::Check;

use crate::cid::{Cid, CidSpace};

/// Number of octets from the first octet of the header, without a large CID, to the CRC of an IR, IR-DYN or IR-CR packet, which
/// follows the profile.
const CRC_AT: usize = 2;

/// Place of the CID in one packet.
///
/// A header is written in one piece, from octet [`len`](Self::len) on. [`close`](Self::close) then moves its first octet in front
/// of a large CID.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CidFrame {
    cid: Cid,
    /// Number of octets in front of the header.
    before: usize,
    /// Number of octets behind the first octet of the header.
    inside: usize,
}

impl CidFrame {
    /// Returns the place of the CID in a packet of that context.
    #[inline(always)]
    pub(crate) const fn new(cid: Cid, space: CidSpace) -> Self {
        Self { cid, before: cid.octets_before(space), inside: cid.octets_inside(space) }
    }

    /// Number of octets of the CID.
    #[inline]
    pub(crate) const fn len(self) -> usize {
        self.before + self.inside
    }

    /// Copies the payload behind the header, which ends at octet `end`, and writes the CID to its place. Returns the number of
    /// octets of the packet.
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

    /// Fills in the CRC-8 of a closed IR, IR-DYN or IR-CR packet. It covers the header, including the CID, with zero in place of
    /// the CRC (RFC 3095, section 5.9.1).
    #[inline]
    pub(crate) fn fill_crc8(self, end: usize, out: &mut [u8]) {
        let crc = Check::Crc8.of(out.get(..end).unwrap_or_default());
        if let Some(octet) = out.get_mut(self.len() + CRC_AT) {
            *octet = crc;
        }
    }
}
