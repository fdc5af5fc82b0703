//! Packet type 1 of U- and O-mode. RFC 3095, sections 5.7.3 and 5.11.3.

use thinair_wire::coder::{Coder, Step};

use super::{IP_ID, SN};

/// `UO-1`: IP-ID, SN, CRC-3. RFC 3095, section 5.11.3.
#[inline]
pub(super) fn uo_1<'p, C: Coder<'p>>(c: &mut C) -> Step {
    c.discriminator(2, 0b10)?;
    c.lsb(IP_ID, 6, 0)?;
    c.lsb(SN, 5, 0)?;
    c.crc("CRC", 3)
}
