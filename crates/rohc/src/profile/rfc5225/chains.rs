//! Items of the static, dynamic and irregular chains. RFC 5225, sections 6.5 and 6.8.2.4.

use thinair_wire::coder::{Coder, Step};
use thinair_wire::header::protocol;

use super::encodings::{fl_enc, lsb_7_or_31, near, refuse, sdvl_or, zeros};
use super::formats::Fields;
use super::headers::{
    CSRC, GRE_CHECKSUM, GRE_IPV4, GRE_IPV6, GRE_KEY, GRE_SEQUENCE, Headers, Item, Kind, MINE_SOURCE, gre_key,
    gre_sequence, upper,
};
use super::state::{Behavior, CSRCS, State, TS_STRIDE, coverage};
use crate::id::ProfileId;

/// Octets of a header, unchanged.
fn octets<'p, C: Coder<'p>>(
    c: &mut C,
    name: &'static str,
    h: &mut [u8],
    at: core::ops::Range<usize>,
) -> Step {
    let Some(octets) = h.get_mut(at) else { return refuse() };
    octets.iter_mut().try_for_each(|octet| c.uint(name, 8, octet))
}

/// 16 bits of a header.
#[inline]
fn word<'p, C: Coder<'p>>(c: &mut C, name: &'static str, h: &mut [u8], at: usize) -> Step {
    let Some(octets) = h.get_mut(at..).and_then(<[u8]>::first_chunk_mut) else { return refuse() };
    let mut word = u16::from_be_bytes(*octets);
    c.uint(name, 16, &mut word)?;
    *octets = word.to_be_bytes();
    Ok(())
}

/// One bit of an octet of a header.
pub(super) fn bit<'p, C: Coder<'p>>(
    c: &mut C,
    name: &'static str,
    h: &mut [u8],
    at: usize,
    mask: u8,
) -> Step<bool> {
    let Some(octet) = h.get_mut(at) else { return refuse() };
    let is_set = c.flag(name, &mut (*octet & mask != 0))?;
    *octet = if is_set { *octet | mask } else { *octet & !mask };
    Ok(is_set)
}

/// The TOS field, or the Traffic Class.
pub(super) fn tos_tc<'p, C: Coder<'p>>(c: &mut C, kind: Kind, h: &mut [u8]) -> Step {
    if kind == Kind::V4 {
        return octets(c, "tos_tc", h, 1..2);
    }
    let [a, b, ..] = h else { return refuse() };
    let mut class = *a << 4 | *b >> 4;
    c.uint("tos_tc", 8, &mut class)?;
    (*a, *b) = (*a & 0xF0 | class >> 4, *b & 0x0F | class << 4);
    Ok(())
}

/// The TTL, or the Hop Limit.
pub(super) fn ttl_hopl<'p, C: Coder<'p>>(c: &mut C, kind: Kind, h: &mut [u8]) -> Step {
    let at = if kind == Kind::V4 { 8 } else { 7 };
    octets(c, "ttl_hopl", h, at..at + 1)
}

/// The static chain.
pub(super) fn static_chain<'p, C: Coder<'p>>(c: &mut C, state: &mut State) -> Step {
    let headers = &mut state.headers;
    let (mut at, mut next, mut is_ended) = (0, None, false);
    loop {
        let kind = match next {
            None => None,
            Some(protocol::IPV4 | protocol::IPV6) if !is_ended => None,
            Some(protocol) => match Kind::between(protocol) {
                Some(Kind::Gre) if is_ended => break,
                Some(kind) => Some(kind),
                None => break,
            },
        };
        match kind {
            // The version is that of the flag: some senders name the other one.
            None => is_ended = ip_static(c, headers, at)?,
            Some(kind) => between_static(c, kind, headers, at)?,
        }
        let Some(item) = headers.items().get(at) else { return refuse() };
        next = Some(item.kind.next(headers.of(*item)));
        at += 1;
    }
    c.require(is_ended)?;
    for kind in upper(state.profile) {
        upper_static(c, *kind, headers, at)?;
        at += 1;
    }
    Ok(())
}

/// Pushes a header of so many octets that is to be read as the one with that index, and lends the header with that index.
fn header<'h, 'p, C: Coder<'p>>(
    headers: &'h mut Headers,
    at: usize,
    kind: Kind,
    len: usize,
) -> Step<&'h mut [u8]> {
    if C::READS && headers.push(kind, [0; 40].get(..len).unwrap_or_default()).is_none() {
        return refuse();
    }
    lend(headers, at)
}

/// The octets of a header.
fn lend(headers: &mut Headers, at: usize) -> Step<&mut [u8]> {
    let Some(item) = headers.items().get(at).copied() else { return refuse() };
    headers.octets.get_mut(item.range()).map_or_else(refuse, Ok)
}

/// Extends the last header that was read to the length in its fields, and lends it.
fn resized<'h, 'p, C: Coder<'p>>(headers: &'h mut Headers, at: usize, kind: Kind) -> Step<&'h mut [u8]> {
    if C::READS {
        let start = headers.items().get(at).map_or(0, |item| usize::from(item.at));
        let len = headers.octets.get(start..).and_then(|h| kind.len(h));
        if len.and_then(|len| headers.resize_last(len)).is_none() {
            return refuse();
        }
    }
    lend(headers, at)
}

/// `ipv4_static` and `ipv6_static`. Returns `innermost_ip`.
pub(super) fn ip_static<'p, C: Coder<'p>>(c: &mut C, headers: &mut Headers, at: usize) -> Step<bool> {
    let is_v6 = headers.items().get(at).is_some_and(|item| item.kind == Kind::V6);
    let mut is_innermost = at == headers.inner_index();
    if c.flag("version_flag", &mut { is_v6 })? {
        let h = header::<C>(headers, at, Kind::V6, 40)?;
        c.flag("innermost_ip", &mut is_innermost)?;
        zeros(c, "reserved", 1)?;
        let [_, a, b, d, ..] = h else { return refuse() };
        let mut flow_label = u32::from_be_bytes([0, *a & 0x0F, *b, *d]);
        fl_enc(c, &mut flow_label)?;
        let [_, e, f, g] = flow_label.to_be_bytes();
        (*a, *b, *d) = (*a & 0xF0 | e & 0x0F, f, g);
        octets(c, "next_header", h, 6..7)?;
        octets(c, "src_addr", h, 8..24)?;
        octets(c, "dst_addr", h, 24..40)?;
    } else {
        let h = header::<C>(headers, at, Kind::V4, 20)?;
        c.flag("innermost_ip", &mut is_innermost)?;
        zeros(c, "reserved", 6)?;
        octets(c, "protocol", h, 9..10)?;
        octets(c, "src_addr", h, 12..16)?;
        octets(c, "dst_addr", h, 16..20)?;
    }
    if C::READS && is_innermost {
        headers.end_ips();
    }
    Ok(is_innermost)
}

/// `dest_opt_static`, `hop_opt_static`, `rout_opt_static`, `ah_static`, `gre_static` and `mine_static`.
pub(super) fn between_static<'p, C: Coder<'p>>(
    c: &mut C,
    kind: Kind,
    headers: &mut Headers,
    at: usize,
) -> Step {
    let h = header::<C>(headers, at, kind, 8)?;
    match kind {
        Kind::Gre => {
            let mut is_v6 = h.get(2..4) == Some(&GRE_IPV6);
            c.flag("protocol", &mut is_v6)?;
            bit(c, "c_flag", h, 0, GRE_CHECKSUM)?;
            let has_key = bit(c, "k_flag", h, 0, GRE_KEY)?;
            bit(c, "s_flag", h, 0, GRE_SEQUENCE)?;
            zeros(c, "padding", 4)?;
            let h = resized::<C>(headers, at, kind)?;
            h[2..4].copy_from_slice(if is_v6 { &GRE_IPV6 } else { &GRE_IPV4 });
            let key = gre_key(h);
            octets(c, "key", h, key..key + if has_key { 4 } else { 0 })
        }
        Kind::Mine => {
            octets(c, "next_header", h, 0..1)?;
            let has_source = bit(c, "s_bit", h, 1, MINE_SOURCE)?;
            let Some(flags) = h.get_mut(1) else { return refuse() };
            let mut res_bits = *flags & !MINE_SOURCE;
            c.uint("res_bits", 7, &mut res_bits)?;
            *flags = *flags & MINE_SOURCE | res_bits;
            octets(c, "orig_dest", h, 4..8)?;
            let h = resized::<C>(headers, at, kind)?;
            octets(c, "orig_src", h, 8..if has_source { 12 } else { 8 })
        }
        _ => {
            octets(c, "next_header", h, 0..1)?;
            octets(c, "length", h, 1..2)?;
            if kind == Kind::Ah {
                octets(c, "spi", h, 4..8)?;
            }
            let h = resized::<C>(headers, at, kind)?;
            if kind == Kind::Routing { octets(c, "value", h, 2..h.len()) } else { Ok(()) }
        }
    }
}

/// `udp_static`, `udp_lite_static`, `rtp_static` and `esp_static`.
pub(super) fn upper_static<'p, C: Coder<'p>>(
    c: &mut C,
    kind: Kind,
    headers: &mut Headers,
    at: usize,
) -> Step {
    let h = header::<C>(headers, at, kind, if kind == Kind::Rtp { 12 } else { 8 })?;
    match kind {
        Kind::Rtp => octets(c, "ssrc", h, 8..12),
        Kind::Esp => octets(c, "spi", h, 0..4),
        _ => {
            word(c, "src_port", h, 0)?;
            word(c, "dst_port", h, 2)
        }
    }
}

/// The dynamic chain.
pub(super) fn dynamic_chain<'p, C: Coder<'p>>(c: &mut C, state: &mut State) -> Step {
    let mut ip = 0;
    // Only the list of the last item grows, and nothing follows it.
    for at in 0..state.headers.items().len() {
        let Some(item) = state.headers.items().get(at).copied() else { return refuse() };
        if item.kind.is_ip() {
            ip_dynamic(c, state, at, ip)?;
            ip += 1;
        } else {
            dynamic(c, state, item)?;
        }
    }
    state.ip_id_offset = state.offset_of_id();
    Ok(())
}

/// The MSN, with 16 bits.
fn whole_msn<'p, C: Coder<'p>>(c: &mut C, state: &mut State) -> Step {
    let mut low = state.msn as u16;
    c.uint("msn", 16, &mut low)?;
    state.msn = near(state.msn, low);
    Ok(())
}

/// `reorder_ratio`.
fn reorder_ratio<'p, C: Coder<'p>>(c: &mut C, state: &mut State) -> Step {
    c.uint("reorder_ratio", 2, &mut state.reorder_ratio)
}

/// The dynamic items of IPv4 and IPv6: `endpoint`, `regular` and `outer`.
pub(super) fn ip_dynamic<'p, C: Coder<'p>>(c: &mut C, state: &mut State, at: usize, ip: usize) -> Step {
    let Some(item) = state.headers.items().get(at).copied() else { return refuse() };
    let is_innermost = at == state.headers.inner_index();
    let is_endpoint = is_innermost && state.profile == ProfileId::IpV2;
    if item.kind == Kind::V6 {
        let Some(h) = state.headers.octets.get_mut(item.range()) else { return refuse() };
        tos_tc(c, item.kind, h)?;
        ttl_hopl(c, item.kind, h)?;
        if is_endpoint {
            zeros(c, "reserved", 6)?;
            reorder_ratio(c, state)?;
            whole_msn(c, state)?;
        }
        return Ok(());
    }
    if is_endpoint {
        zeros(c, "reserved", 3)?;
        reorder_ratio(c, state)?;
    } else {
        zeros(c, "reserved", 5)?;
    }
    let Some(h) = state.headers.octets.get_mut(item.range()) else { return refuse() };
    let Some(behavior) = state.behaviors.get_mut(ip) else { return refuse() };
    bit(c, "df", h, 6, 0x40)?;
    let name = if is_innermost { "ip_id_behavior_innermost" } else { "ip_id_behavior_outer" };
    c.uint(name, 2, behavior)?;
    if C::READS {
        // RFC 5225, section 6.3.3.
        c.require(is_innermost || !behavior.is_sequential())?;
    }
    tos_tc(c, item.kind, h)?;
    ttl_hopl(c, item.kind, h)?;
    ip_id_enc_dyn(c, *behavior, h)?;
    if is_endpoint { whole_msn(c, state) } else { Ok(()) }
}

/// `ip_id_enc_dyn`.
pub(super) fn ip_id_enc_dyn<'p, C: Coder<'p>>(c: &mut C, behavior: Behavior, h: &mut [u8]) -> Step {
    if behavior == Behavior::Constant { zero_id(h) } else { word(c, "ip_id", h, 4) }
}

/// `ip_id_enc_irreg`.
#[inline]
pub(super) fn ip_id_enc_irreg<'p, C: Coder<'p>>(c: &mut C, behavior: Behavior, h: &mut [u8]) -> Step {
    match behavior {
        Behavior::Random => word(c, "ip_id", h, 4),
        Behavior::Constant => zero_id(h),
        Behavior::Sequential | Behavior::Swapped => Ok(()),
    }
}

fn zero_id(h: &mut [u8]) -> Step {
    let Some(id) = h.get_mut(4..6) else { return refuse() };
    id.fill(0);
    Ok(())
}

/// The dynamic items of all but IP headers.
pub(super) fn dynamic<'p, C: Coder<'p>>(c: &mut C, state: &mut State, item: Item) -> Step {
    let profile = state.profile;
    let Some(h) = state.headers.octets.get_mut(item.range()) else { return refuse() };
    match item.kind {
        Kind::HopByHop | Kind::Destination => octets(c, "value", h, 2..h.len()),
        Kind::Ah => {
            octets(c, "sequence_number", h, 8..12)?;
            octets(c, "icv", h, 12..h.len())
        }
        Kind::Gre => {
            gre_checksum(c, h)?;
            let (at, is_there) = (gre_sequence(h), h[0] & GRE_SEQUENCE != 0);
            octets(c, "sequence_number", h, at..at + if is_there { 4 } else { 0 })
        }
        Kind::Udp => {
            word(c, "checksum", h, 6)?;
            state.checksum_used = h.get(6..8) != Some(&[0, 0]);
            if profile == ProfileId::RtpV2 {
                return Ok(());
            }
            whole_msn(c, state)?;
            zeros(c, "reserved", 6)?;
            reorder_ratio(c, state)
        }
        Kind::UdpLite => {
            let is_endpoint = profile == ProfileId::UdpLiteV2;
            if is_endpoint {
                zeros(c, "reserved", 4)?;
            }
            c.uint("coverage_behavior", 2, &mut state.coverage_behavior)?;
            c.require(state.coverage_behavior <= coverage::IRREGULAR)?;
            if is_endpoint {
                c.uint("reorder_ratio", 2, &mut state.reorder_ratio)?;
            } else {
                zeros(c, "reserved", 6)?;
            }
            // Erratum 3248: nothing where it is inferred.
            if state.coverage_behavior != coverage::INFERRED {
                word(c, "checksum_coverage", h, 4)?;
            }
            word(c, "checksum", h, 6)?;
            if is_endpoint { whole_msn(c, state) } else { Ok(()) }
        }
        Kind::Rtp => rtp_dynamic(c, state, item),
        Kind::Esp => {
            octets(c, "sequence_number", h, 4..8)?;
            state.msn = state.headers.long(item, 4);
            zeros(c, "reserved", 6)?;
            reorder_ratio(c, state)
        }
        Kind::V4 | Kind::V6 | Kind::Routing | Kind::Mine => Ok(()),
    }
}

/// `optional_checksum` of GRE.
fn gre_checksum<'p, C: Coder<'p>>(c: &mut C, h: &mut [u8]) -> Step {
    if h[0] & GRE_CHECKSUM != 0 { word(c, "checksum_and_res", h, 4) } else { Ok(()) }
}

/// `rtp_dynamic`.
fn rtp_dynamic<'p, C: Coder<'p>>(c: &mut C, state: &mut State, item: Item) -> Step {
    zeros(c, "reserved", 1)?;
    reorder_ratio(c, state)?;
    let mut has_list = usize::from(item.len) > 12;
    c.flag("list_present", &mut has_list)?;
    let mut tss_indicator = state.ts_stride != TS_STRIDE;
    c.flag("tss_indicator", &mut tss_indicator)?;
    let mut tis_indicator = state.time_stride != 0;
    c.flag("tis_indicator", &mut tis_indicator)?;
    let Some(h) = state.headers.octets.get_mut(item.range()) else { return refuse() };
    bit(c, "pad_bit", h, 0, 0x20)?;
    bit(c, "extension", h, 0, 0x10)?;
    bit(c, "marker", h, 1, 0x80)?;
    payload_type(c, h)?;
    word(c, "sequence_number", h, 2)?;
    octets(c, "timestamp", h, 4..8)?;
    state.msn = near(state.msn, state.headers.word(item, 2));
    sdvl_or(c, "ts_stride", tss_indicator, Some(TS_STRIDE), &mut state.ts_stride)?;
    sdvl_or(c, "time_stride", tis_indicator, Some(0), &mut state.time_stride)?;
    if has_list {
        return list_csrc(c, state, item, true);
    }
    if C::READS { set_cc(state, item, 0) } else { Ok(()) }
}

/// `payload_type`, 7 bits.
pub(super) fn payload_type<'p, C: Coder<'p>>(c: &mut C, h: &mut [u8]) -> Step {
    let Some(octet) = h.get_mut(1) else { return refuse() };
    let mut payload_type = *octet & 0x7F;
    c.uint("payload_type", 7, &mut payload_type)?;
    *octet = *octet & 0x80 | payload_type;
    Ok(())
}

/// Sets the number of CSRC identifiers of an RTP header, the last of all headers.
fn set_cc(state: &mut State, item: Item, count: usize) -> Step {
    let Some(first) = state.headers.octets.get_mut(usize::from(item.at)) else { return refuse() };
    *first = *first & 0xF0 | count as u8;
    state.headers.resize_last(12 + count * CSRC).map_or_else(refuse, Ok)
}

/// `list_csrc`. RFC 5225, section 6.6.13. `is_whole`: every item is there, as in a dynamic chain; else those that are not known.
pub(super) fn list_csrc<'p, C: Coder<'p>>(c: &mut C, state: &mut State, item: Item, is_whole: bool) -> Step {
    let mut m = ((item.len - 12) / CSRC as u8) & 0xF;
    let count = usize::from(m);
    let mut indices = [0_u8; CSRCS];
    let mut present = [true; CSRCS];
    if !C::READS {
        for (i, index) in indices.iter_mut().enumerate().take(count) {
            let csrc = csrc_of(state, item, i);
            let Some(found) = state.csrcs.iter().position(|known| *known == csrc) else { return refuse() };
            *index = found as u8;
            present[i] = is_whole || state.known >> found & 1 == 0;
        }
    }
    zeros(c, "reserved", 3)?;
    let is_wide = c.flag("PS", &mut indices.iter().any(|index| *index > 7))?;
    c.uint("m", 4, &mut m)?;
    let count = usize::from(m);
    for (index, present) in indices.iter_mut().zip(&mut present).take(count) {
        c.flag("X", present)?;
        if C::READS {
            c.require(*present || !is_whole)?;
        }
        if is_wide {
            zeros(c, "reserved", 3)?;
        }
        c.uint("index", if is_wide { 4 } else { 3 }, index)?;
    }
    if !is_wide && count % 2 == 1 {
        zeros(c, "padding", 4)?;
    }
    if C::READS {
        set_cc(state, item, count)?;
    }
    for (i, (index, present)) in indices.iter().zip(present).enumerate().take(count) {
        let at = usize::from(*index) % CSRCS;
        if present {
            let mut csrc = state.csrcs[at];
            c.octets("item", &mut csrc)?;
            state.csrcs[at] = csrc;
            if C::READS {
                state.known |= 1 << at;
            }
        }
        if C::READS {
            // An item that is not known: the packet cannot be restored.
            c.require(state.known >> at & 1 == 1)?;
            state.headers.set(item, 12 + i * CSRC, state.csrcs[at]);
        }
    }
    Ok(())
}

/// A CSRC identifier of an RTP header.
pub(super) fn csrc_of(state: &State, item: Item, i: usize) -> [u8; 4] {
    state.headers.long(item, 12 + i * CSRC).to_be_bytes()
}

/// The irregular chain.
#[inline]
pub(super) fn irregular_chain<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    let (mut ip, mut number) = (0, 0);
    for at in 0..state.headers.items().len() {
        let Some(item) = state.headers.items().get(at).copied() else { return refuse() };
        match item.kind {
            Kind::V4 | Kind::V6 => {
                ip_irregular(c, state, at, ip, x.outer_ip)?;
                ip += 1;
            }
            Kind::Ah | Kind::Gre => {
                let Some(h) = state.headers.octets.get_mut(item.range()) else { return refuse() };
                number += usize::from(with_number(c, item.kind, h, x, number)?);
            }
            Kind::Udp | Kind::UdpLite => transport_irregular(c, state, item)?,
            Kind::HopByHop | Kind::Routing | Kind::Destination | Kind::Mine | Kind::Rtp | Kind::Esp => {}
        }
    }
    Ok(())
}

/// The irregular items of IPv4 and IPv6.
pub(super) fn ip_irregular<'p, C: Coder<'p>>(
    c: &mut C,
    state: &mut State,
    at: usize,
    ip: usize,
    outer_ip: bool,
) -> Step {
    let Some(item) = state.headers.items().get(at).copied() else { return refuse() };
    let is_innermost = at == state.headers.inner_index();
    let Some(h) = state.headers.octets.get_mut(item.range()) else { return refuse() };
    if item.kind == Kind::V4 {
        ip_id_enc_irreg(c, state.behaviors.get(ip).copied().unwrap_or_default(), h)?;
    }
    if outer_ip && !is_innermost {
        tos_tc(c, item.kind, h)?;
        ttl_hopl(c, item.kind, h)?;
    }
    Ok(())
}

/// `ah_irregular` and `gre_irregular`. Returns true if the header has a sequence number, the one with that place among all.
pub(super) fn with_number<'p, C: Coder<'p>>(
    c: &mut C,
    kind: Kind,
    h: &mut [u8],
    x: &mut Fields,
    place: usize,
) -> Step<bool> {
    let at = if kind == Kind::Ah { 8 } else { gre_sequence(h) };
    if kind == Kind::Gre {
        gre_checksum(c, h)?;
        if h[0] & GRE_SEQUENCE == 0 {
            return Ok(false);
        }
    }
    let Some(octets) = h.get_mut(at..).and_then(<[u8]>::first_chunk_mut) else { return refuse() };
    let Some(number) = x.numbers.get_mut(place) else { return refuse() };
    if C::READS {
        *number = super::encodings::Counter::read(u32::from_be_bytes(*octets));
    }
    lsb_7_or_31(c, "sequence_number", number)?;
    *octets = number.value.to_be_bytes();
    if kind == Kind::Ah {
        self::octets(c, "icv", h, 12..h.len())?;
    }
    Ok(true)
}

/// `udp_zero_checksum_irregular`, `udp_with_checksum_irregular` and `udp_lite_irregular`.
#[inline]
pub(super) fn transport_irregular<'p, C: Coder<'p>>(c: &mut C, state: &mut State, item: Item) -> Step {
    let Some(h) = state.headers.octets.get_mut(item.range()) else { return refuse() };
    if item.kind == Kind::UdpLite {
        if state.coverage_behavior == coverage::IRREGULAR {
            word(c, "checksum_coverage", h, 4)?;
        }
        return word(c, "checksum", h, 6);
    }
    if state.checksum_used {
        return word(c, "checksum", h, 6);
    }
    let Some(checksum) = h.get_mut(6..8) else { return refuse() };
    checksum.fill(0);
    Ok(())
}

/// `static_or_irreg` of the TOS field and of the TTL of the innermost IP header.
pub(super) fn innermost<'p, C: Coder<'p>>(c: &mut C, state: &mut State, tos: bool, ttl: bool) -> Step {
    let item = state.headers.inner();
    let Some(h) = state.headers.octets.get_mut(item.range()) else { return refuse() };
    if tos {
        tos_tc(c, item.kind, h)?;
    }
    if ttl { ttl_hopl(c, item.kind, h) } else { Ok(()) }
}
