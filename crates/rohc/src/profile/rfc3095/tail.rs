//! What follows base header and extension in every compressed header: fields that are sent as they are, in
//! the order of the uncompressed header. RFC 3095, section 5.7; RFC 3843, section 3.6.

use thinair_wire::coder::{Coder, Step};

use super::coap_2015::{self, coap_dynamic};
use super::ir::ip_dynamic;
use super::{BASE_IPS, Fields, UdpFields, Version};
use crate::profile::ProfileId;

/// What the context says is in the tail.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    /// context(UDP Checksum) is not zero.
    pub(super) udp_checksum: bool,
    /// Octets of AH data of the outermost and the second header.
    pub(super) icv: [usize; BASE_IPS],
}

/// `general format`, from the IP-ID of the outer IPv4 header on.
#[inline]
pub(super) fn tail<'p, C: Coder<'p>>(c: &mut C, x: &mut Fields<'p>, has: &Tail) -> Step {
    for i in 0..x.base_ips() {
        if x.ips[i].version == Version::V4 && x.ips[i].rnd {
            c.uint("IP-ID", 16, &mut x.ips[i].id)?;
        }
        if has.icv[i] > 0 {
            c.slice("AH data", has.icv[i], &mut x.extra[i].icv)?;
        }
    }
    if x.profile == ProfileId::Udp {
        if has.udp_checksum {
            udp_checksum(c, &mut x.udp.checksum)?;
        }
    } else if let Some(coap) = &mut x.coap {
        coap_tail(c, &mut x.udp, coap, has)?;
    } else {
        for i in BASE_IPS..x.ip_count {
            ip_dynamic(c, x, i)?;
        }
    }
    Ok(())
}

/// The end of a compressed header of profile 0x0080: the UDP checksum, and CoAP.
#[cold]
fn coap_tail<'p, C: Coder<'p>>(
    c: &mut C,
    udp: &mut UdpFields,
    coap: &mut coap_2015::Header<'p>,
    has: &Tail,
) -> Step {
    if has.udp_checksum {
        udp_checksum(c, &mut udp.checksum)?;
    }
    coap_dynamic(c, coap)
}

/// `UDP Checksum`: the last field of a compressed header of profile 0x0002. In profile 0x0080 CoAP follows.
#[inline]
pub(super) fn udp_checksum<'p, C: Coder<'p>>(c: &mut C, checksum: &mut u16) -> Step {
    c.uint("UDP Checksum", 16, checksum)
}
