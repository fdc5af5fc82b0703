//! The tail of every compressed header, behind base header and extension: fields that are sent unchanged, in the order
//! of the uncompressed header. RFC 3095, section 5.7; RFC 3843, section 3.6.

use thinair_wire::coder::{Coder, Step};

use super::ir::ip_dynamic;
use super::{BASE_IPS, Rfc3095Fields, UdpFields, Upper, upper};

/// Fields in the tail, according to the context.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    /// context(UDP Checksum) is not zero.
    pub(super) udp_checksum: bool,
    /// context(CFP) is set, or the packet is a CCE packet.
    pub(super) coverage: bool,
    /// Number of octets of AH data of the outermost and the second header.
    pub(super) icv: [usize; BASE_IPS],
}

/// `general format`, from the IP-ID of the outer IPv4 header on.
#[inline]
pub(super) fn tail<'p, C: Coder<'p>>(c: &mut C, x: &mut Rfc3095Fields<'p>, has: &Tail) -> Step {
    for i in 0..x.base_ips() {
        let is_random = x.ips[i].is_random();
        random_ip_id(c, is_random, &mut x.ips[i].header.id)?;
        if has.icv[i] > 0 {
            c.slice("AH data", has.icv[i], &mut x.extra[i].icv)?;
        }
    }
    match upper(x.profile) {
        Upper::Udp if has.udp_checksum => udp_checksum(c, &mut x.udp.checksum),
        Upper::Udp | Upper::Esp => Ok(()),
        Upper::None | Upper::UdpLite => ip_and_udp_lite_tail(c, x, has),
    }
}

/// `IP-ID` of an IPv4 header if it is random.
#[inline]
pub(super) fn random_ip_id<'p, C: Coder<'p>>(c: &mut C, is_random: bool, id: &mut u16) -> Step {
    if is_random { c.uint("IP-ID", 16, id) } else { Ok(()) }
}

/// The end of a compressed header of profiles 0x0004, 0x0007 and 0x0008: dynamic chains of the IP headers beyond the
/// second, Checksum Coverage, UDP-Lite checksum. RFC 3843, section 3.2; RFC 4019, section 5.3.1.
fn ip_and_udp_lite_tail<'p, C: Coder<'p>>(c: &mut C, x: &mut Rfc3095Fields<'p>, has: &Tail) -> Step {
    for i in BASE_IPS..x.ip_count {
        ip_dynamic(c, x, i)?;
    }
    if upper(x.profile) == Upper::UdpLite {
        udp_lite(c, &mut x.udp, has.coverage)?;
    }
    Ok(())
}

/// The fields of UDP-Lite.
#[inline]
pub(super) fn udp_lite<'p, C: Coder<'p>>(c: &mut C, udp: &mut UdpFields, has_coverage: bool) -> Step {
    if has_coverage {
        coverage(c, &mut udp.coverage)?;
    }
    c.uint("UDP-Lite Checksum", 16, &mut udp.checksum)
}

/// `UDP-Lite Checksum Coverage`. RFC 4019, section 5.3.1.
#[inline]
pub(super) fn coverage<'p, C: Coder<'p>>(c: &mut C, coverage: &mut u16) -> Step {
    c.uint("UDP-Lite Checksum Coverage", 16, coverage)
}

/// `UDP Checksum`: the last field of a compressed header of profiles 0x0001 and 0x0002.
#[inline]
pub(super) fn udp_checksum<'p, C: Coder<'p>>(c: &mut C, checksum: &mut u16) -> Step {
    c.uint("UDP Checksum", 16, checksum)
}
