//! Packet type 2, common to all modes. RFC 3095, sections 5.7.4 and 5.11.3; RFC 4815, section 8.8.

use thinair_wire::coder::{Coder, Step};

use super::extension::{self, extension_0, extension_1, extension_2, extension_3, rtp_extension};
use super::{IP_ID, Rfc3095Fields, SN, TS};

/// Extension of a packet of type 1 or 2. Base header and extension together are one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FormatExtension {
    None,
    Zero,
    One,
    Two,
    Three,
}

/// The T bit of a base header. RFC 3095, section 5.7.4; RFC 4815, section 8.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum T {
    /// The profile has no TS.
    Undefined,
    /// No IP-ID is compressed: the formats without T.
    Absent,
    /// `UOR-2-ID`.
    Zero,
    /// `UOR-2-TS`.
    One,
}

/// `UOR-2`, `UOR-2-ID`, `UOR-2-TS`: TS or IP-ID, M, SN, CRC-7, and an extension if X. RFC 3095, sections 5.7.4 and
/// 5.11.3.
#[inline]
pub(super) fn uor_2<'p, C: Coder<'p>>(
    c: &mut C,
    x: &mut Rfc3095Fields<'p>,
    t: T,
    extension: FormatExtension,
) -> Step {
    let has_t_bit = matches!(t, T::Zero | T::One);
    if t != T::Undefined && extension != FormatExtension::Three {
        c.enforce(x.has_t_bit() == has_t_bit)?;
    }
    // Bits in the extension are less significant than those in the base header (section 5.7.5).
    let rest = extension::rest(extension, t, x);
    c.discriminator(3, 0b110)?;
    match t {
        T::Undefined => c.lsb(SN, 5, rest.sn)?,
        T::Absent => c.lsb(TS, 6, rest.ts)?,
        T::Zero => {
            c.lsb(IP_ID, 5, rest.ip_id)?;
            c.discriminator(1, 0b0)?;
        }
        T::One => {
            c.lsb(TS, 5, rest.ts)?;
            c.discriminator(1, 0b1)?;
        }
    }
    if t != T::Undefined {
        c.flag("M", &mut x.rtp.m)?;
        c.lsb(SN, 6, rest.sn)?;
    }
    let present = c.flag("X", &mut (extension != FormatExtension::None))?;
    c.enforce(present == (extension != FormatExtension::None))?;
    c.crc("CRC", 7)?;
    if t != T::Undefined {
        rtp_extension(c, x, extension, t, true)?;
        // An extension 3 may change the RND flags, and with them the base header (RFC 3095, section 5.7.5.1).
        return c.enforce(x.has_t_bit() == has_t_bit);
    }
    extension_of(c, x, extension)
}

/// The extension behind a base header of a profile without RTP. RFC 3095, section 5.11.4.
#[inline]
pub(super) fn extension_of<'p, C: Coder<'p>>(
    c: &mut C,
    x: &mut Rfc3095Fields<'p>,
    extension: FormatExtension,
) -> Step {
    match extension {
        FormatExtension::None => Ok(()),
        FormatExtension::Zero => extension_0(c),
        FormatExtension::One => extension_1(c),
        FormatExtension::Two => extension_2(c, x),
        FormatExtension::Three => extension_3(c, x),
    }
}
