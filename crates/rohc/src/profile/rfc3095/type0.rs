//! Packet type 0. RFC 3095, section 5.7.1.

use thinair_wire::coder::{Coder, Step};

use super::SN;

/// `UO-0`: SN, CRC-3. RFC 3095, section 5.7.1. `m` is the marker of RTP, which the format does not have.
#[inline(always)]
pub(super) fn uo_0<'p, C: Coder<'p>>(c: &mut C, m: bool) -> Step {
    c.enforce(!m)?;
    c.discriminator(1, 0b0)?;
    c.lsb(SN, 4, 0)?;
    c.crc("CRC", 3)
}

/// `R-0`: SN. It updates nothing. RFC 3095, section 5.7.1. `m` as in `UO-0`.
#[inline]
pub(super) fn r_0<'p, C: Coder<'p>>(c: &mut C, m: bool) -> Step {
    c.enforce(!m)?;
    c.discriminator(2, 0b00)?;
    c.lsb(SN, 6, 0)
}

/// `R-0-CRC`: SN, CRC-7. RFC 3095, section 5.7.1. `m` as in `UO-0`.
#[inline]
pub(super) fn r_0_crc<'p, C: Coder<'p>>(c: &mut C, m: bool) -> Step {
    c.enforce(!m)?;
    c.discriminator(2, 0b01)?;
    // "The SN field straddles the CID field."
    c.lsb(SN, 6, 1)?;
    c.lsb(SN, 1, 0)?;
    c.crc("CRC", 7)
}
