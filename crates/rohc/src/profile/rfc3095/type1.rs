//! Packet type 1. RFC 3095, sections 5.7.2, 5.7.3 and 5.11.3.

use thinair_wire::coder::{Coder, Step};

use super::extension::{self, rtp_extension};
use super::type2::{Extension, T, extension_of};
use super::{Fields, IP_ID, SN, TS};

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
pub(super) fn uo_1_rtp<'p, C: Coder<'p>>(c: &mut C, x: &mut Fields<'p>) -> Step {
    c.enforce(!x.has_t_bit())?;
    c.discriminator(2, 0b10)?;
    c.lsb(TS, 6, 0)?;
    c.flag("M", &mut x.rtp.m)?;
    c.lsb(SN, 4, 0)?;
    c.crc("CRC", 3)
}

/// `UO-1-TS`: TS, M, SN, CRC-3. RFC 3095, section 5.7.3.
#[inline]
pub(super) fn uo_1_ts<'p, C: Coder<'p>>(c: &mut C, x: &mut Fields<'p>) -> Step {
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
pub(super) fn uo_1_id<'p, C: Coder<'p>>(c: &mut C, x: &mut Fields<'p>, extension: Extension) -> Step {
    // The packet type "MUST NOT be used" while an RND flag is being established (section 5.7), so that there is no
    // need to look into extension 3 for it.
    c.enforce(x.has_t_bit())?;
    // M has its place in the RTP flags of extension 3 alone.
    c.enforce(!x.rtp.m || extension == Extension::Three)?;
    let rest = extension::rest(extension, T::Zero, x);
    c.discriminator(2, 0b10)?;
    c.discriminator(1, 0b0)?;
    c.lsb(IP_ID, 5, rest.ip_id)?;
    let present = c.flag("X", &mut (extension != Extension::None))?;
    c.enforce(present == (extension != Extension::None))?;
    c.lsb(SN, 4, rest.sn)?;
    c.crc("CRC", 3)?;
    rtp_extension(c, x, extension, T::Zero, false)
}

/// `R-1` of profiles without RTP: SN, IP-ID, and an extension if X. It updates nothing. RFC 3095, section 5.11.3.
#[inline]
pub(super) fn r_1<'p, C: Coder<'p>>(c: &mut C, x: &mut Fields<'p>, extension: Extension) -> Step {
    let rest = extension::rest(extension, T::Undefined, x);
    c.discriminator(2, 0b10)?;
    c.lsb(SN, 6, rest.sn)?;
    let present = c.flag("X", &mut (extension != Extension::None))?;
    c.enforce(present == (extension != Extension::None))?;
    c.lsb(IP_ID, 7, rest.ip_id)?;
    extension_of(c, x, extension)
}
