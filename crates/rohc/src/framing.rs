//! Framing of a packet around its CID. RFC 5795, section 5.2.1.2.

use crate::cid::Cid;

/// Puts the CID where it belongs: in front, or behind the first octet.
#[inline]
pub(crate) fn frame(out: &mut [u8], cid: Cid, before: usize, inside: usize) {
    if before > 0 {
        out[0] = cid.add_cid();
    }
    if inside > 0 {
        out[before] = out[before + inside];
        cid.write_large(&mut out[before + 1..before + 1 + inside]);
    }
}
