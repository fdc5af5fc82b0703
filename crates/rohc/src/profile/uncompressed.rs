//! Profile 0x0000: packets without compression. RFC 5795, section 5.4.

use thinair_wire::coder::{Coder, Step};

/// Octets of the IR header without the CID.
pub(crate) const IR_LEN: usize = 3;

/// IR header. RFC 5795, section 5.4.1. The CRC covers the header up to the profile octet.
pub(crate) fn ir<'p, C: Coder<'p>>(c: &mut C) -> Step {
    let mut res = false;
    let mut profile = 0_u8;
    c.discriminator(7, 0b111_1110)?;
    // "MUST be set to zero; otherwise, the decompressor MUST discard the packet."
    let res = c.flag("res", &mut res)?;
    c.require(!res)?;
    c.uint("Profile", 8, &mut profile)?;
    c.require(profile == 0)?;
    c.crc("CRC", 8)
}
