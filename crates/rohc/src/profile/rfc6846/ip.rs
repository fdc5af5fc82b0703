//! IPv4 and IPv6 headers, and extension headers, in the chains. RFC 6846, sections 6.2 and 8.2.

use thinair_wire::coder::{Coder, Step};
use thinair_wire::header::extension::{AH_FIXED, Extensions, is_extension, octets_of};
use thinair_wire::header::protocol;

use super::encodings::{Counter, fl_enc, lsb_7_or_31, refuse, static_or_irreg, zeros};
use super::state::{Behavior, EXTENSIONS, IpState, MAX_IP, TcpState};
use crate::field::ip::IpVersion;

/// `ipv4_static`, `ipv6_static`.
fn ip_static<'p, C: Coder<'p>>(c: &mut C, ip: &mut IpState) -> Step {
    if c.flag("version_flag", &mut ip.is_v6())? {
        ip.header.version = IpVersion::V6;
        return ipv6_static(c, ip);
    }
    ip.header.version = IpVersion::V4;
    ipv4_static(c, ip)
}

/// Protocol and addresses of IPv4, behind the version flag. RFC 6846, section 8.2, `ipv4_static`.
pub(super) fn ipv4_static<'p, C: Coder<'p>>(c: &mut C, ip: &mut IpState) -> Step {
    zeros(c, "reserved", 7)?;
    c.uint("protocol", 8, &mut ip.header.protocol)?;
    ipv4_address(c, "src_addr", &mut ip.header.source)?;
    ipv4_address(c, "dst_addr", &mut ip.header.destination)
}

fn ipv4_address<'p, C: Coder<'p>>(c: &mut C, name: &'static str, address: &mut [u8; 16]) -> Step {
    let mut four = [0; 4];
    four.copy_from_slice(&address[..4]);
    c.octets(name, &mut four)?;
    *address = [0; 16];
    address[..4].copy_from_slice(&four);
    Ok(())
}

/// Flow Label, Next Header and addresses of IPv6, behind the version flag. RFC 6846, section 8.2, `ipv6_static`.
pub(super) fn ipv6_static<'p, C: Coder<'p>>(c: &mut C, ip: &mut IpState) -> Step {
    zeros(c, "reserved", 2)?;
    fl_enc(c, &mut ip.header.flow_label)?;
    c.uint("next_header", 8, &mut ip.header.protocol)?;
    c.octets("src_addr", &mut ip.header.source)?;
    c.octets("dst_addr", &mut ip.header.destination)
}

/// DSCP and ECN, as one octet.
#[inline(always)]
fn tos<'p, C: Coder<'p>>(c: &mut C, tos: &mut u8) -> Step {
    let (mut dscp, mut ecn) = (*tos >> 2, *tos & 0b11);
    c.uint("dscp", 6, &mut dscp)?;
    c.uint("ip_ecn_flags", 2, &mut ecn)?;
    *tos = dscp << 2 | ecn;
    Ok(())
}

/// `ipv4_innermost_dynamic` and `ipv4_outer_dynamic`, which have one layout.
pub(super) fn ipv4_dynamic<'p, C: Coder<'p>>(c: &mut C, ip: &mut IpState) -> Step {
    zeros(c, "reserved", 5)?;
    c.flag("df", &mut ip.header.df)?;
    c.uint("ip_id_behavior", 2, &mut ip.behavior)?;
    tos(c, &mut ip.header.tos)?;
    c.uint("ttl_hopl", 8, &mut ip.header.ttl)?;
    ip_id_enc_dyn(c, ip)
}

/// `ip_id_enc_dyn`: the full IP-ID, unless it is always zero.
pub(super) fn ip_id_enc_dyn<'p, C: Coder<'p>>(c: &mut C, ip: &mut IpState) -> Step {
    if ip.behavior == Behavior::Constant {
        ip.header.id = 0;
        return Ok(());
    }
    c.uint("ip_id", 16, &mut ip.header.id)
}

/// `ipv6_dynamic`.
pub(super) fn ipv6_dynamic<'p, C: Coder<'p>>(c: &mut C, ip: &mut IpState) -> Step {
    tos(c, &mut ip.header.tos)?;
    c.uint("ttl_hopl", 8, &mut ip.header.ttl)
}

/// `ipv4_innermost_replicate` and `ipv4_outer_replicate`. Fields that are not sent are those of the base context.
pub(super) fn ipv4_replicate<'p, C: Coder<'p>>(c: &mut C, ip: &mut IpState, ttl: &mut bool) -> Step {
    zeros(c, "reserved", 4)?;
    c.uint("ip_id_behavior", 2, &mut ip.behavior)?;
    c.flag("ttl_flag", ttl)?;
    c.flag("df", &mut ip.header.df)?;
    tos(c, &mut ip.header.tos)?;
    ip_id_enc_dyn(c, ip)?;
    static_or_irreg(c, "ttl_hopl", *ttl, 8, &mut ip.header.ttl)
}

/// `ipv6_replicate`.
pub(super) fn ipv6_replicate<'p, C: Coder<'p>>(c: &mut C, ip: &mut IpState) -> Step {
    tos(c, &mut ip.header.tos)?;
    zeros(c, "reserved", 3)?;
    fl_enc(c, &mut ip.header.flow_label)
}

/// `ip_id_enc_irreg`: the IP-ID if it is random.
#[inline(always)]
pub(super) fn ip_id_enc_irreg<'p, C: Coder<'p>>(c: &mut C, ip: &mut IpState) -> Step {
    match ip.behavior {
        Behavior::Random if !ip.is_v6() => c.uint("ip_id", 16, &mut ip.header.id),
        Behavior::Constant => {
            ip.header.id = 0;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// `ipv4_outer_without_ttl_irregular`, `ipv4_outer_with_ttl_irregular`, and their counterparts for IPv6.
pub(super) fn outer_irregular<'p, C: Coder<'p>>(
    c: &mut C,
    ip: &mut IpState,
    ecn_used: bool,
    ttl: bool,
) -> Step {
    ip_id_enc_irreg(c, ip)?;
    if ecn_used {
        tos(c, &mut ip.header.tos)?;
    }
    static_or_irreg(c, "ttl_hopl", ttl, 8, &mut ip.header.ttl)
}

/// The static chain, up to the TCP header.
pub(super) fn static_chain<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState) -> Step {
    let mut at = 0;
    let mut count = 0;
    loop {
        let Some(ip) = state.ips.get_mut(count) else { return refuse() };
        ip_static(c, ip)?;
        let before = at;
        let mut next = ip.header.protocol;
        while is_extension(next) {
            extension_static(c, next, &mut state.extensions, at)?;
            let Some(&[after, length]) = state.extensions.get(at..at + 2) else { return refuse() };
            at += octets_of(next, length);
            if at > EXTENSIONS {
                return refuse();
            }
            next = after;
        }
        ip.extensions = (at - before) as u8;
        count += 1;
        match next {
            protocol::IPV4 | protocol::IPV6 if count < MAX_IP => {}
            protocol::TCP => break,
            // A Describer reads no protocol.
            _ => {
                c.require(false)?;
                break;
            }
        }
    }
    state.ip_count = count as u8;
    Ok(())
}

/// Static chain of an extension header: all fields except those that may change.
pub(super) fn extension_static<'p, C: Coder<'p>>(
    c: &mut C,
    kind: u8,
    octets: &mut [u8; EXTENSIONS],
    at: usize,
) -> Step {
    let Some(header) = octets.get_mut(at..) else { return refuse() };
    let [next, length, behind @ ..] = header else { return refuse() };
    c.uint("next_header", 8, next)?;
    c.uint("length", 8, length)?;
    match kind {
        protocol::ROUTING => {
            let len = octets_of(kind, *length) - 2;
            let Some(value) = behind.get_mut(..len) else { return refuse() };
            value.iter_mut().try_for_each(|octet| c.uint("value", 8, octet))
        }
        protocol::AH => {
            // Behind the reserved bits, which are in the dynamic chain.
            c.require(octets_of(kind, *length) >= AH_FIXED)?;
            let Some(spi) = behind.get_mut(2..6) else { return refuse() };
            spi.iter_mut().try_for_each(|octet| c.uint("spi", 8, octet))
        }
        _ => Ok(()),
    }
}

/// The dynamic chain, up to the TCP header.
pub(super) fn dynamic_chain<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState) -> Step {
    let mut at = 0;
    for ip in state.ips.iter_mut().take(usize::from(state.ip_count)) {
        if ip.is_v6() {
            ipv6_dynamic(c, ip)?
        } else {
            ipv4_dynamic(c, ip)?
        };
        let end = at + usize::from(ip.extensions);
        let Some(octets) = state.extensions.get_mut(at..end) else { return refuse() };
        each_extension(ip.header.protocol, octets, |kind, header| {
            let value = match kind {
                protocol::ROUTING => &mut [],
                // Reserved bits; then, behind the SPI, the sequence number and the ICV.
                protocol::AH => {
                    let Some((fixed, changing)) = header.split_at_mut_checked(8) else { return refuse() };
                    fixed[2..4].iter_mut().try_for_each(|octet| c.uint("res_bits", 8, octet))?;
                    changing
                }
                _ => header.get_mut(2..).unwrap_or_default(),
            };
            value.iter_mut().enumerate().try_for_each(|(i, octet)| c.uint(changing(kind, i), 8, octet))
        })?;
        at = end;
    }
    Ok(())
}

/// The irregular chain, up to the TCP header. `before` has the references of fields that are sent in part.
pub(super) fn irregular_chain<'p, C: Coder<'p>>(
    c: &mut C,
    state: &mut TcpState,
    ttl: bool,
    mut ah: impl FnMut(u32) -> Counter,
) -> Step {
    if state.ip_count == 1 && state.ips[0].extensions == 0 {
        return ip_id_enc_irreg(c, &mut state.ips[0]);
    }
    let (mut at, ecn_used) = (0, state.ecn_used);
    let innermost = usize::from(state.ip_count).saturating_sub(1);
    for (i, ip) in state.ips.iter_mut().enumerate().take(innermost + 1) {
        if i == innermost {
            ip_id_enc_irreg(c, ip)?
        } else {
            outer_irregular(c, ip, ecn_used, ttl)?
        };
        if ip.extensions == 0 {
            continue;
        }
        let end = at + usize::from(ip.extensions);
        let Some(octets) = state.extensions.get_mut(at..end) else { return refuse() };
        each_extension(ip.header.protocol, octets, |kind, header| {
            if kind == protocol::AH { ah_irregular(c, header, &mut ah) } else { Ok(()) }
        })?;
        at = end;
    }
    Ok(())
}

/// `ah_irregular`: the sequence number and the ICV.
fn ah_irregular<'p, C: Coder<'p>>(
    c: &mut C,
    header: &mut [u8],
    counter: &mut impl FnMut(u32) -> Counter,
) -> Step {
    let Some((number, icv)) = header.get_mut(8..).and_then(|behind| behind.split_first_chunk_mut::<4>())
    else {
        return refuse();
    };
    let mut value = counter(u32::from_be_bytes(*number));
    lsb_7_or_31(c, "sequence_number", &mut value)?;
    *number = value.value.to_be_bytes();
    icv.iter_mut().try_for_each(|octet| c.uint("icv", 8, octet))
}

/// Passes the extension headers behind one IP header to `with`, each with its type.
fn each_extension(first: u8, octets: &mut [u8], mut with: impl FnMut(u8, &mut [u8]) -> Step) -> Step {
    let (mut kind, mut at) = (first, 0);
    while at < octets.len() {
        let Some(&[next, length]) = octets.get(at..at + 2) else { return refuse() };
        let end = at + octets_of(kind, length);
        let Some(header) = octets.get_mut(at..end) else { return refuse() };
        with(kind, header)?;
        (kind, at) = (next, end);
    }
    Ok(())
}

/// True if the extension headers are of equal types and lengths, and equal in the octets that the chains of compressed
/// packets do not carry.
pub(super) fn same_extensions(first: u8, a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && Extensions::new(first, a).zip(Extensions::new(first, b)).all(|((kind, a), (other, b))| {
            let kept = if kind == protocol::AH { 8 } else { a.len() };
            kind == other && a.len() == b.len() && a.get(..kept) == b.get(..kept)
        })
}

/// The formats of extension headers whose names end in `_0_replicate` and `_1_replicate`. A header keeps its length,
/// since the compressor here uses IR packets for other lengths.
pub(super) fn extension_replicate<'p, C: Coder<'p>>(c: &mut C, first: u8, octets: &mut [u8]) -> Step {
    each_extension(first, octets, |kind, header| {
        let is_new = c.flag("discriminator", &mut false)?;
        zeros(c, "discriminator", 7)?;
        let Some((length, behind)) = header.get_mut(1..).and_then(<[u8]>::split_first_mut) else {
            return refuse();
        };
        if is_new {
            let mut other = *length;
            c.uint("length", 8, &mut other)?;
            if other != *length {
                return refuse();
            }
        }
        let value = match (kind, is_new) {
            (protocol::AH, false) => behind.get_mut(6..).unwrap_or_default(),
            (_, true) => behind,
            (_, false) => &mut [],
        };
        if kind == protocol::AH && is_new {
            // Reserved bits and SPI come first.
            let Some((fixed, changing_octets)) = value.split_at_mut_checked(6) else { return refuse() };
            let (res_bits, spi) = fixed.split_at_mut(2);
            res_bits.iter_mut().try_for_each(|octet| c.uint("res_bits", 8, octet))?;
            spi.iter_mut().try_for_each(|octet| c.uint("spi", 8, octet))?;
            return changing_octets
                .iter_mut()
                .enumerate()
                .try_for_each(|(i, o)| c.uint(changing(kind, i), 8, o));
        }
        value.iter_mut().enumerate().try_for_each(|(i, octet)| c.uint(changing(kind, i), 8, octet))
    })
}

/// Name of an octet that may change.
fn changing(kind: u8, at: usize) -> &'static str {
    match (kind, at) {
        (protocol::AH, 0..4) => "sequence_number",
        (protocol::AH, _) => "icv",
        _ => "value",
    }
}
