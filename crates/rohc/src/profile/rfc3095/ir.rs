//! IR and IR-DYN packets and their chains. RFC 3095, section 5.7.7; RFC 3843, sections 3.1 to 3.3.

use thinair_wire::coder::{Coder, Refusal, Step};
use thinair_wire::header::protocol;

use super::list::{CompressedList, ListKind, compressed_list};
use super::rtp::{rtp_dynamic, rtp_static};
use super::{BASE_IPS, IpFields, IpVersion, Rfc3095Fields, Upper, has_rtp, most_ips, upper};

/// `IR`: static chain, dynamic chain if D, CRC-8. RFC 3095, section 5.7.7.1. Returns D.
pub(super) fn ir<'p, C: Coder<'p>>(c: &mut C, x: &mut Rfc3095Fields<'p>, dynamic: bool) -> Step<bool> {
    c.discriminator(7, 0b111_1110)?;
    let dynamic = c.flag("D", &mut { dynamic })?;
    profile(c, x)?;
    c.crc("CRC", 8)?;
    static_chain(c, x)?;
    if dynamic {
        dynamic_chain(c, x)?;
    }
    Ok(dynamic)
}

/// `IR-DYN`: dynamic chain, CRC-8. RFC 3095, section 5.7.7.2.
pub(super) fn ir_dyn<'p, C: Coder<'p>>(c: &mut C, x: &mut Rfc3095Fields<'p>) -> Step {
    c.discriminator(8, 0b1111_1000)?;
    profile(c, x)?;
    c.crc("CRC", 8)?;
    dynamic_chain(c, x)
}

fn profile<'p, C: Coder<'p>>(c: &mut C, x: &Rfc3095Fields<'p>) -> Step {
    let expected = x.profile.low_octet();
    let mut profile = expected;
    c.uint("Profile", 8, &mut profile)?;
    c.require(profile == expected)
}

fn static_chain<'p, C: Coder<'p>>(c: &mut C, x: &mut Rfc3095Fields<'p>) -> Step {
    let mut i = 0;
    loop {
        let ip = &mut x.ips[i];
        ip_static(c, ip)?;
        i += 1;
        let goes_on = matches!(ip.header.protocol, protocol::IPV4 | protocol::IPV6) && !ip.terminates;
        if !goes_on {
            break;
        }
        // The peer may send a chain of more headers than are kept, but it is not supported here.
        if i == most_ips(x.profile) {
            return Err(Refusal::Malformed);
        }
    }
    x.ip_count = i;
    let last = x.ips[i - 1];
    let next = match upper(x.profile) {
        Upper::None => last.header.protocol,
        Upper::Udp => protocol::UDP,
        Upper::UdpLite => protocol::UDP_LITE,
        Upper::Esp => protocol::ESP,
    };
    // RFC 3095, section 5.7.7.2: the chain "MUST end with the static [...] part of a UDP header"; RFC 3843's
    // termination is that of profile 0x0004.
    c.require(last.header.protocol == next && (!last.terminates || upper(x.profile) == Upper::None))?;
    match upper(x.profile) {
        Upper::None => {}
        Upper::Udp | Upper::UdpLite => {
            c.uint("Source Port", 16, &mut x.udp.source_port)?;
            c.uint("Destination Port", 16, &mut x.udp.destination_port)?;
        }
        Upper::Esp => c.uint("SPI", 32, &mut x.spi)?,
    }
    if has_rtp(x.profile) {
        rtp_static(c, x)?;
    }
    Ok(())
}

fn dynamic_chain<'p, C: Coder<'p>>(c: &mut C, x: &mut Rfc3095Fields<'p>) -> Step {
    for i in 0..x.ip_count {
        ip_dynamic(c, x, i)?;
    }
    match upper(x.profile) {
        Upper::None => {}
        Upper::Udp => c.uint("Checksum", 16, &mut x.udp.checksum)?,
        Upper::UdpLite => {
            c.uint("Checksum Coverage", 16, &mut x.udp.coverage)?;
            c.uint("Checksum", 16, &mut x.udp.checksum)?;
        }
        Upper::Esp => return c.uint("Sequence Number", 32, &mut x.sn),
    }
    if has_rtp(x.profile) {
        return rtp_dynamic(c, x);
    }
    c.uint("SN", 16, &mut x.sn)
}

/// Static part of an IPv4 or IPv6 header. RFC 3095, sections 5.7.7.3 and 5.7.7.4. The high bit of the version
/// ends the chain (RFC 3843, section 3.1).
pub(super) fn ip_static<'p, C: Coder<'p>>(c: &mut C, ip: &mut IpFields) -> Step {
    let mut version = match ip.header.version {
        IpVersion::V4 => 4_u8,
        IpVersion::V6 => 6,
    };
    c.flag("terminates", &mut ip.terminates)?;
    c.uint("Version", 3, &mut version)?;
    c.require(version == 4 || version == 6)?;
    if version == 6 {
        ip.header.version = IpVersion::V6;
        c.uint("Flow Label", 20, &mut ip.header.flow_label)?;
        c.uint("Next Header", 8, &mut ip.header.protocol)?;
        c.octets("Source Address", &mut ip.header.source)?;
        c.octets("Destination Address", &mut ip.header.destination)
    } else {
        ip.header.version = IpVersion::V4;
        c.reserved(4)?;
        c.uint("Protocol", 8, &mut ip.header.protocol)?;
        ipv4_address(c, "Source Address", &mut ip.header.source)?;
        ipv4_address(c, "Destination Address", &mut ip.header.destination)
    }
}

fn ipv4_address<'p, C: Coder<'p>>(c: &mut C, name: &'static str, address: &mut [u8; 16]) -> Step {
    let mut octets = [address[0], address[1], address[2], address[3]];
    c.octets(name, &mut octets)?;
    address[..4].copy_from_slice(&octets);
    Ok(())
}

/// Dynamic part of the `i`-th IP header. RFC 3095, sections 5.7.7.3 and 5.7.7.4; SID from RFC 3843, section
/// 3.3, which is zero where a profile does not define it.
pub(super) fn ip_dynamic<'p, C: Coder<'p>>(c: &mut C, x: &mut Rfc3095Fields<'p>, i: usize) -> Step {
    let ip = &mut x.ips[i];
    c.uint("Type of Service", 8, &mut ip.header.tos)?;
    c.uint("Time to Live", 8, &mut ip.header.ttl)?;
    if ip.header.version == IpVersion::V4 {
        c.uint("Identification", 16, &mut ip.header.id)?;
        c.flag("DF", &mut ip.header.df)?;
        c.flag("RND", &mut ip.rnd)?;
        c.flag("NBO", &mut ip.nbo)?;
        c.flag("SID", &mut ip.sid)?;
        c.reserved(4)?;
    }
    match x.extra.get_mut(i).filter(|_| i < BASE_IPS) {
        Some(extra) => compressed_list(c, extra.list.get_or_insert_default(), ListKind::ExtensionHeader),
        None => {
            // Headers beyond the second are kept without extension headers.
            let mut list = CompressedList::default();
            compressed_list(c, &mut list, ListKind::ExtensionHeader)?;
            c.require(list.is_empty())
        }
    }
}
