//! Packet type 1. RFC 3095, sections 5.7.2, 5.7.3 and 5.11.3.

use thinair_wire::coder::{Coder, Step};

use super::extension::{self, rtp_extension};
use super::type2::{FormatExtension, T, extension_of};
use super::{IP_ID, Rfc3095Fields, SN, TS};

/// `UO-1` of profiles without RTP: IP-ID, SN, CRC-3. RFC 3095, section 5.11.3.
#[inline]
pub(super) fn uo_1<'p, C: Coder<'p>>(c: &mut C) -> Step {
    c.discriminator(2, 0b10)?;
    c.lsb(IP_ID, 6, 0)?;
    c.lsb(SN, 5, 0)?;
    c.crc("CRC", 3)
}

/// `UO-1` of RTP: TS, M, SN, CRC-3. RFC 3095, section 5.7.3.
#[inline]
pub(super) fn uo_1_rtp<'p, C: Coder<'p>>(c: &mut C, x: &mut Rfc3095Fields<'p>) -> Step {
    c.enforce(!x.has_t_bit())?;
    c.discriminator(2, 0b10)?;
    c.lsb(TS, 6, 0)?;
    c.flag("M", &mut x.rtp.m)?;
    c.lsb(SN, 4, 0)?;
    c.crc("CRC", 3)
}

/// `UO-1-TS`: TS, M, SN, CRC-3. RFC 3095, section 5.7.3.
#[inline]
pub(super) fn uo_1_ts<'p, C: Coder<'p>>(c: &mut C, x: &mut Rfc3095Fields<'p>) -> Step {
    c.enforce(x.has_t_bit())?;
    c.discriminator(2, 0b10)?;
    c.discriminator(1, 0b1)?;
    c.lsb(TS, 5, 0)?;
    c.flag("M", &mut x.rtp.m)?;
    c.lsb(SN, 4, 0)?;
    c.crc("CRC", 3)
}

/// `UO-1-ID`: IP-ID, SN, CRC-3, and an extension if X. RFC 3095, section 5.7.3.
#[inline]
pub(super) fn uo_1_id<'p, C: Coder<'p>>(
    c: &mut C,
    x: &mut Rfc3095Fields<'p>,
    extension: FormatExtension,
) -> Step {
    // The packet type "MUST NOT be used" while an RND flag is being established (RFC 3095, section 5.7), so that
    // extension 3 need not be examined for it.
    c.enforce(x.has_t_bit())?;
    // Only the RTP flags of extension 3 have M.
    c.enforce(!x.rtp.m || extension == FormatExtension::Three)?;
    let rest = extension::rest(extension, T::Zero, x);
    c.discriminator(2, 0b10)?;
    c.discriminator(1, 0b0)?;
    c.lsb(IP_ID, 5, rest.ip_id)?;
    let present = c.flag("X", &mut (extension != FormatExtension::None))?;
    c.enforce(present == (extension != FormatExtension::None))?;
    c.lsb(SN, 4, rest.sn)?;
    c.crc("CRC", 3)?;
    rtp_extension(c, x, extension, T::Zero, false)
}

/// `R-1`, `R-1-ID`, `R-1-TS`: SN, IP-ID or TS, M, and an extension if X. They update nothing. RFC 3095, sections 5.7.2
/// and 5.11.3.
#[inline]
pub(super) fn r_1<'p, C: Coder<'p>>(
    c: &mut C,
    x: &mut Rfc3095Fields<'p>,
    t: T,
    extension: FormatExtension,
) -> Step {
    if t != T::Undefined {
        // As with UO-1-ID, an extension 3 changes no RND flag (RFC 3095, sections 5.7 and 5.7.5.1).
        c.enforce(x.has_t_bit() == matches!(t, T::Zero | T::One))?;
    }
    let rest = extension::rest(extension, t, x);
    c.discriminator(2, 0b10)?;
    c.lsb(SN, 6, rest.sn)?;
    if t != T::Undefined {
        c.flag("M", &mut x.rtp.m)?;
    }
    let present = c.flag("X", &mut (extension != FormatExtension::None))?;
    c.enforce(present == (extension != FormatExtension::None))?;
    match t {
        T::Undefined => c.lsb(IP_ID, 7, rest.ip_id)?,
        T::Absent => c.lsb(TS, 6, rest.ts)?,
        T::Zero => {
            c.discriminator(1, 0b0)?;
            c.lsb(IP_ID, 5, rest.ip_id)?;
        }
        T::One => {
            c.discriminator(1, 0b1)?;
            c.lsb(TS, 5, rest.ts)?;
        }
    }
    if t == T::Undefined {
        return extension_of(c, x, extension);
    }
    rtp_extension(c, x, extension, t, true)
}
