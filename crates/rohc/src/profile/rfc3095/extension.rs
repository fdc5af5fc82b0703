//! Extensions 0 to 3. RFC 3095, sections 5.7.5 and 5.11.4.

use thinair_wire::coder::{Coder, Step};

use super::list::{ListKind, compressed_list};
use super::rtp::{self, rtp_header_flags_and_fields};
use super::type2::{FormatExtension, T};
use super::{IP_ID, IP_ID2, IpExtra, IpFields, Rfc3095Fields, SN, TS};

/// Number of bits of each slot in an extension.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rest {
    pub(super) sn: u32,
    pub(super) ts: u32,
    pub(super) ip_id: u32,
}

/// Returns the bits of each slot in an extension, which the base header needs when it is written.
#[inline]
pub(super) fn rest(extension: FormatExtension, t: T, x: &Rfc3095Fields<'_>) -> Rest {
    let (plus, minus) = match extension {
        FormatExtension::None => return Rest::default(),
        FormatExtension::Zero => (3, 0),
        FormatExtension::One => (3, 8),
        FormatExtension::Two => (11, 8),
        FormatExtension::Three => {
            let sn = if x.ext3_sn { 8 } else { 0 };
            let ip_id = if x.ext3_id { 16 } else { 0 };
            return Rest { sn, ts: rtp::sdvl_bits(x.rtp_extra.ts), ip_id };
        }
    };
    match t {
        // Extension 2 has the IP-IDs of two headers; the base header has bits of the lower one only.
        T::Undefined if extension == FormatExtension::Two => Rest { sn: 3, ts: 0, ip_id: minus },
        T::Undefined => Rest { sn: 3, ts: 0, ip_id: plus + minus },
        T::Absent => Rest { sn: 3, ts: plus + minus, ip_id: 0 },
        T::Zero => Rest { sn: 3, ts: minus, ip_id: plus },
        T::One => Rest { sn: 3, ts: plus, ip_id: minus },
    }
}

/// Extensions 0 to 3 with RTP. The T bit decides on the meaning of `+T` and `-T`. RFC 3095, section 5.7.5. `m` is
/// true if the base header has M.
#[inline]
pub(super) fn rtp_extension<'p, C: Coder<'p>>(
    c: &mut C,
    x: &mut Rfc3095Fields<'p>,
    extension: FormatExtension,
    t: T,
    m: bool,
) -> Step {
    let (plus, minus) = match t {
        T::Undefined | T::Absent => (TS, TS),
        T::Zero => (IP_ID, TS),
        T::One => (TS, IP_ID),
    };
    // Number of bits of the slot that follow.
    let behind = if plus == minus { 8 } else { 0 };
    match extension {
        FormatExtension::None => Ok(()),
        FormatExtension::Zero => {
            c.discriminator(2, 0b00)?;
            c.lsb(SN, 3, 0)?;
            c.lsb(plus, 3, 0)
        }
        FormatExtension::One => {
            c.discriminator(2, 0b01)?;
            c.lsb(SN, 3, 0)?;
            c.lsb(plus, 3, behind)?;
            c.lsb(minus, 8, 0)
        }
        FormatExtension::Two => {
            c.discriminator(2, 0b10)?;
            c.lsb(SN, 3, 0)?;
            c.lsb(plus, 3, 8 + behind)?;
            c.lsb(plus, 8, behind)?;
            c.lsb(minus, 8, 0)
        }
        FormatExtension::Three => rtp_extension_3(c, x, m),
    }
}

/// `Extension 3` with RTP: SN, TS, IP-ID, flags and fields of the IP headers and of RTP. RFC 3095, section 5.7.5.
fn rtp_extension_3<'p, C: Coder<'p>>(c: &mut C, x: &mut Rfc3095Fields<'p>, m: bool) -> Step {
    let inner = x.inner();
    let mut ip2 = inner == 1 && x.extra[0].flags;
    // The flag ip2 stands among the inner flags.
    let mut ip = x.extra[inner].flags || ip2;
    c.discriminator(2, 0b11)?;
    let s = c.flag("S", &mut x.ext3_sn)?;
    let ts = c.flag("R-TS", &mut (x.rtp_extra.ts > 0))?;
    c.flag("Tsc", &mut x.rtp_extra.scaled)?;
    let i = c.flag("I", &mut x.ext3_id)?;
    let ip = c.flag("ip", &mut ip)?;
    let rtp = c.flag("rtp", &mut x.rtp_extra.flags)?;
    x.extra[inner].flags = ip;
    if ip {
        ip_header_flags(c, &mut x.ips[inner], &mut x.extra[inner], &INNER)?;
        ip2 = c.flag("ip2", &mut ip2)?;
        c.require(!ip2 || inner == 1)?;
    } else {
        ip2 = false;
    }
    if inner == 1 {
        x.extra[0].flags = ip2;
    }
    if ip2 {
        ip_header_flags(c, &mut x.ips[0], &mut x.extra[0], &OUTER)?;
        c.flag("I2", &mut x.extra[0].id)?;
    }
    if s {
        c.lsb(SN, 8, 0)?;
    }
    if ts {
        rtp::sdvl_lsb(c, TS, &mut x.rtp_extra.ts)?;
    }
    if ip {
        ip_header_fields(c, &mut x.ips[inner], &mut x.extra[inner], &INNER)?;
    }
    if i {
        c.lsb(IP_ID, 16, 0)?;
    }
    if ip2 {
        ip_header_fields(c, &mut x.ips[0], &mut x.extra[0], &OUTER)?;
        if x.extra[0].id {
            c.lsb(IP_ID2, 16, 0)?;
        }
    }
    if rtp {
        rtp_header_flags_and_fields(c, x, m)?;
    }
    Ok(())
}

/// `Extension 0`: SN, IP-ID. RFC 3095, section 5.11.4.
#[inline]
pub(super) fn extension_0<'p, C: Coder<'p>>(c: &mut C) -> Step {
    c.discriminator(2, 0b00)?;
    c.lsb(SN, 3, 0)?;
    c.lsb(IP_ID, 3, 0)
}

/// `Extension 1`: SN, IP-ID. RFC 3095, section 5.11.4.
#[inline]
pub(super) fn extension_1<'p, C: Coder<'p>>(c: &mut C) -> Step {
    c.discriminator(2, 0b01)?;
    c.lsb(SN, 3, 0)?;
    c.lsb(IP_ID, 3, 8)?;
    c.lsb(IP_ID, 8, 0)
}

/// `Extension 2`: SN, IP-ID2, IP-ID. RFC 3095, section 5.11.4.
#[inline]
pub(super) fn extension_2<'p, C: Coder<'p>>(c: &mut C, x: &Rfc3095Fields<'p>) -> Step {
    c.discriminator(2, 0b10)?;
    c.require(x.ip_count > 1)?;
    c.lsb(SN, 3, 0)?;
    c.lsb(IP_ID2, 3, 8)?;
    c.lsb(IP_ID2, 8, 0)?;
    c.lsb(IP_ID, 8, 0)
}

/// `Extension 3`: SN, mode, IP-ID, flags and fields of the inner and the outer IP header. RFC 3095, section
/// 5.11.4.
pub(super) fn extension_3<'p, C: Coder<'p>>(c: &mut C, x: &mut Rfc3095Fields<'p>) -> Step {
    let inner = x.inner();
    let mut ip2 = inner == 1 && x.extra[0].flags;
    c.discriminator(2, 0b11)?;
    let s = c.flag("S", &mut x.ext3_sn)?;
    c.uint("Mode", 2, &mut x.mode)?;
    let i = c.flag("I", &mut x.ext3_id)?;
    let ip = c.flag("ip", &mut x.extra[inner].flags)?;
    let ip2 = c.flag("ip2", &mut ip2)?;
    c.require(!ip2 || inner == 1)?;
    if inner == 1 {
        x.extra[0].flags = ip2;
    }
    if ip {
        ip_header_flags(c, &mut x.ips[inner], &mut x.extra[inner], &INNER)?;
        c.reserved(1)?;
    }
    if ip2 {
        ip_header_flags(c, &mut x.ips[0], &mut x.extra[0], &OUTER)?;
        c.flag("I2", &mut x.extra[0].id)?;
    }
    if s {
        c.lsb(SN, 8, 0)?;
    }
    if ip {
        ip_header_fields(c, &mut x.ips[inner], &mut x.extra[inner], &INNER)?;
    }
    if i {
        c.lsb(IP_ID, 16, 0)?;
    }
    if ip2 {
        ip_header_fields(c, &mut x.ips[0], &mut x.extra[0], &OUTER)?;
        if x.extra[0].id {
            c.lsb(IP_ID2, 16, 0)?;
        }
    }
    Ok(())
}

/// Names of the flags and fields of one header.
struct Names {
    tos: &'static str,
    ttl: &'static str,
    df: &'static str,
    pr: &'static str,
    ipx: &'static str,
    nbo: &'static str,
    rnd: &'static str,
}

const INNER: Names = Names { tos: "TOS", ttl: "TTL", df: "DF", pr: "PR", ipx: "IPX", nbo: "NBO", rnd: "RND" };
const OUTER: Names =
    Names { tos: "TOS2", ttl: "TTL2", df: "DF2", pr: "PR2", ipx: "IPX2", nbo: "NBO2", rnd: "RND2" };

/// `Inner IP header flags`, `Outer IP header flags`, without the last bit, in which they differ.
fn ip_header_flags<'p, C: Coder<'p>>(
    c: &mut C,
    ip: &mut IpFields,
    extra: &mut IpExtra<'p>,
    names: &Names,
) -> Step {
    c.flag(names.tos, &mut extra.tos)?;
    c.flag(names.ttl, &mut extra.ttl)?;
    c.flag(names.df, &mut ip.header.df)?;
    c.flag(names.pr, &mut extra.pr)?;
    c.flag(names.ipx, &mut extra.ipx)?;
    c.flag(names.nbo, &mut ip.nbo)?;
    c.flag(names.rnd, &mut ip.rnd)?;
    Ok(())
}

/// `Inner IP header fields`, `Outer IP header fields`, without the IP-ID.
fn ip_header_fields<'p, C: Coder<'p>>(
    c: &mut C,
    ip: &mut IpFields,
    extra: &mut IpExtra<'p>,
    names: &Names,
) -> Step {
    if extra.tos {
        c.uint(names.tos, 8, &mut ip.header.tos)?;
    }
    if extra.ttl {
        c.uint(names.ttl, 8, &mut ip.header.ttl)?;
    }
    if extra.pr {
        c.uint(names.pr, 8, &mut ip.header.protocol)?;
    }
    if extra.ipx {
        ip_extension_headers(c, extra)?;
    }
    Ok(())
}

/// `IP extension header(s)`: AH sequence number, compressed list. RFC 3095, section 5.8.5.1.
///
/// This implementation has no ESP and GRE headers in lists, so that their sequence numbers are rejected.
fn ip_extension_headers<'p, C: Coder<'p>>(c: &mut C, extra: &mut IpExtra<'p>) -> Step {
    let (mut esp, mut gre) = (false, false);
    let list = c.flag("CL", &mut extra.has_list)?;
    let ah = c.flag("ASeq", &mut extra.has_ah_sn)?;
    let esp = c.flag("ESeq", &mut esp)?;
    let gre = c.flag("GSeq", &mut gre)?;
    c.require(!esp && !gre)?;
    c.reserved(4)?;
    if ah {
        if c.flag("long", &mut extra.ah_sn_long)? {
            c.uint("AH Seq Number", 31, &mut extra.ah_sn)?;
        } else {
            c.uint("AH Seq Number", 7, &mut extra.ah_sn)?;
        }
    }
    if list {
        compressed_list(c, extra.list.get_or_insert_default(), ListKind::ExtensionHeader)?;
    }
    Ok(())
}
