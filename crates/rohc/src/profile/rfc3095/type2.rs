//! Packet type 2, common to all modes. RFC 3095, sections 5.7.4 and 5.11.3; RFC 4815, section 8.8.

use thinair_wire::coder::{Coder, Step};

use super::extension::{extension_0, extension_1, extension_2, extension_3};
use super::{Fields, SN};

/// The extension of a packet of type 2. With it, base header and extension are one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extension {
    None,
    Zero,
    One,
    Two,
    Three,
}

/// `UOR-2`: SN, CRC-7, and an extension if X. RFC 3095, section 5.11.3.
#[inline]
pub(super) fn uor_2<'p, C: Coder<'p>>(c: &mut C, x: &mut Fields<'p>, extension: Extension) -> Step {
    // SN bits in the extension are less significant than those in the base header (section 5.7.5).
    let rest = match extension {
        Extension::None => 0,
        Extension::Zero | Extension::One | Extension::Two => 3,
        Extension::Three if x.ext3_sn => 8,
        Extension::Three => 0,
    };
    c.discriminator(3, 0b110)?;
    c.lsb(SN, 5, rest)?;
    let present = c.flag("X", &mut (extension != Extension::None))?;
    c.enforce(present == (extension != Extension::None))?;
    c.crc("CRC", 7)?;
    match extension {
        Extension::None => Ok(()),
        Extension::Zero => extension_0(c),
        Extension::One => extension_1(c),
        Extension::Two => extension_2(c, x),
        Extension::Three => extension_3(c, x),
    }
}
