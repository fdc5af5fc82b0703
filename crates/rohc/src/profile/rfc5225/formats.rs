//! The base headers of compressed packets, and `IR`. RFC 5225, sections 6.8.1 and 6.8.2.

use thinair_wire::coder::{Coder, Refusal, Step};

use super::chains::{bit, dynamic_chain, innermost, list_csrc, payload_type, static_chain};
use super::encodings::{Counter, SnWidths, quarter, refuse, sdvl_lsb, sdvl_or, sdvl_sn_lsb, zeros};
use super::headers::{Item, Kind};
use super::state::{Behavior, State, coverage};
use crate::id::{Format, ProfileId};

/// Headers with a sequence number of their own in front of the transport header: AH and GRE.
pub(super) const NUMBERS: usize = 2;

/// Encoding of the RTP timestamp in a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stamp {
    /// Not sent: it follows from the MSN.
    #[default]
    Inferred,
    Scaled,
    Unscaled,
}

/// Fields that only `co_common` carries: its indicators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Indicators {
    pub(super) flags1: bool,
    pub(super) flags2: bool,
    pub(super) ttl: bool,
    pub(super) tos: bool,
    pub(super) pt: bool,
    pub(super) list: bool,
    pub(super) ts_stride: bool,
    pub(super) time_stride: bool,
}

/// Fields of a base header that are no fields of the headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    pub(super) msn: Counter,
    /// Least bits of MSN. (Writing only.)
    pub(super) least_bits: u32,
    pub(super) ip_id_offset: Counter<u16>,
    /// The packet has the whole IP-ID. At a reader, the innermost header then has it.
    pub(super) has_whole_id: bool,
    pub(super) timestamp: Counter,
    pub(super) ts_scaled: Counter,
    /// Encoding of the timestamp: the one that was read, or the shortest one possible.
    pub(super) stamp: Stamp,
    /// `outer_ip_indicator`.
    pub(super) outer_ip: bool,
    pub(super) indicators: Indicators,
    pub(super) numbers: [Counter; NUMBERS],
    pub(super) crc3: u8,
    pub(super) crc7: u8,
    pub(super) control_crc3: u8,
}

impl Fields {
    /// Fields that are to be read behind the last packet.
    pub(super) fn read(last: &State) -> Self {
        let timestamp = last.timestamp();
        Self {
            msn: Counter::read(last.msn),
            least_bits: 0,
            ip_id_offset: Counter::read(last.ip_id_offset),
            has_whole_id: false,
            timestamp: Counter::read(timestamp),
            ts_scaled: Counter::read(timestamp.checked_div(last.ts_stride).unwrap_or(0)),
            stamp: Stamp::Inferred,
            outer_ip: false,
            indicators: Indicators::default(),
            numbers: [Counter::read(0); NUMBERS],
            crc3: 0,
            crc7: 0,
            control_crc3: 0,
        }
    }
}

/// Formats of profiles without RTP, cheapest first.
const FORMATS: [Format; 5] =
    [Format::Pt0Crc3, Format::Pt0Crc7, Format::Pt1SeqId, Format::Pt2SeqId, Format::CoCommon];

/// Formats of profiles with RTP, cheapest first; of those of one length the ones with the stronger CRC, then those that suit late packets
/// better: the bits of a timestamp reach at least 7 packets back, however many the ratio allows.
const RTP_FORMATS: [Format; 10] = [
    Format::Pt0Crc3,
    Format::Pt0Crc7,
    Format::Pt1Rnd,
    Format::Pt1SeqTs,
    Format::Pt1SeqId,
    Format::Pt2Rnd,
    Format::Pt2SeqId,
    Format::Pt2SeqTs,
    Format::Pt2SeqBoth,
    Format::CoCommon,
];

/// The formats of a profile, cheapest first.
#[inline]
pub(super) fn formats(state: &State) -> &'static [Format] {
    if state.has_rtp() { &RTP_FORMATS } else { &FORMATS }
}

/// True if the format has a CRC of 7 bits or more.
#[inline]
pub(super) fn is_strong(format: Format) -> bool {
    !matches!(format, Format::Pt0Crc3 | Format::Pt1Rnd | Format::Pt1SeqId | Format::Pt1SeqTs)
}

/// True if the format carries control fields, which a CRC of their own covers.
#[inline]
pub(super) fn has_control_crc(format: Format) -> bool {
    matches!(format, Format::CoCommon | Format::CoRepair)
}

/// The base header of a format.
#[inline(always)]
pub(super) fn base<'p, C: Coder<'p>>(format: Format, c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    match format {
        Format::Pt0Crc3 => pt_0_crc3(c, state, x),
        Format::Pt0Crc7 => pt_0_crc7(c, state, x),
        Format::Pt1Rnd => pt_1_rnd(c, state, x),
        Format::Pt1SeqId if state.has_rtp() => pt_1_seq_id_rtp(c, state, x),
        Format::Pt1SeqId => pt_1_seq_id(c, state, x),
        Format::Pt1SeqTs => pt_1_seq_ts(c, state, x),
        Format::Pt2Rnd => pt_2_rnd(c, state, x),
        Format::Pt2SeqId if state.has_rtp() => pt_2_seq_id_rtp(c, state, x),
        Format::Pt2SeqId => pt_2_seq_id(c, state, x),
        Format::Pt2SeqTs => pt_2_seq_ts(c, state, x),
        Format::Pt2SeqBoth => pt_2_seq_both(c, state, x),
        Format::CoCommon if state.has_rtp() => co_common_rtp(c, state, x),
        Format::CoCommon => co_common(c, state, x),
        _ => Err(Refusal::NotThis),
    }
}

/// `msn_lsb(k)`.
#[inline(always)]
fn msn<'p, C: Coder<'p>>(c: &mut C, state: &State, x: &mut Fields, k: u32) -> Step {
    if !C::READS {
        c.enforce(k >= x.least_bits)?;
    }
    let name = if state.profile == ProfileId::EspV2 { "sequence_number" } else { "msn" };
    x.msn.lsb(c, name, k, state.reorder_ratio.p(k))
}

/// `inferred_sequential_ip_id`.
#[inline(always)]
fn infer_id<'p, C: Coder<'p>>(c: &mut C, state: &State, x: &Fields) -> Step {
    if C::READS {
        Ok(())
    } else {
        c.enforce(!state.is_sequential() || !x.has_whole_id && x.ip_id_offset.is_static())
    }
}

/// `ip_id_lsb(behavior, k)`.
#[inline(always)]
fn ip_id<'p, C: Coder<'p>>(c: &mut C, x: &mut Fields, k: u32) -> Step {
    if !C::READS {
        c.enforce(!x.has_whole_id)?;
    }
    x.ip_id_offset.lsb(c, "ip_id", k, quarter(k))
}

/// `inferred_scaled_field`, with a marker that is not set.
#[inline(always)]
fn infer_ts<'p, C: Coder<'p>>(c: &mut C, state: &State, x: &Fields) -> Step {
    if C::READS || !state.has_rtp() {
        return Ok(());
    }
    c.enforce(x.stamp == Stamp::Inferred && !marker_of(state))
}

/// The marker of the RTP header.
fn marker_of(state: &State) -> bool {
    state
        .headers
        .upper(Kind::Rtp)
        .is_some_and(|rtp| state.headers.of(rtp).get(1).is_some_and(|octet| octet & 0x80 != 0))
}

/// `scaled_ts_lsb(time_stride, k)`.
#[inline(always)]
fn ts_scaled<'p, C: Coder<'p>>(c: &mut C, state: &State, x: &mut Fields, k: u32) -> Step {
    c.enforce(state.ts_stride != 0)?;
    if C::READS {
        x.stamp = Stamp::Scaled;
    } else {
        c.enforce(x.stamp != Stamp::Unscaled)?;
    }
    x.ts_scaled.lsb(c, "ts_scaled", k, ts_p(state, k))
}

/// The offset of `k` bits of a scaled timestamp.
pub(super) fn ts_p(state: &State, k: u32) -> u32 {
    if state.time_stride != 0 { (1 << k) / 2 - 1 } else { quarter(k) }
}

/// A bit of the RTP header.
fn rtp_bit<'p, C: Coder<'p>>(c: &mut C, name: &'static str, state: &mut State, at: usize, mask: u8) -> Step {
    let h = rtp(state)?;
    bit(c, name, h, at, mask)?;
    Ok(())
}

/// The RTP header.
fn rtp(state: &mut State) -> Step<&mut [u8]> {
    let Some(item) = state.headers.upper(Kind::Rtp) else { return refuse() };
    state.headers.octets.get_mut(item.range()).map_or_else(refuse, Ok)
}

#[inline(always)]
fn marker<'p, C: Coder<'p>>(c: &mut C, state: &mut State) -> Step {
    rtp_bit(c, "marker", state, 1, 0x80)
}

#[inline(always)]
fn crc3<'p, C: Coder<'p>>(c: &mut C, x: &mut Fields) -> Step {
    c.uint("header_crc", 3, &mut x.crc3)
}

#[inline(always)]
fn crc7<'p, C: Coder<'p>>(c: &mut C, x: &mut Fields) -> Step {
    c.uint("header_crc", 7, &mut x.crc7)
}

/// `pt_0_crc3`: MSN, CRC-3.
#[inline(always)]
fn pt_0_crc3<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    infer_ts(c, state, x)?;
    infer_id(c, state, x)?;
    c.discriminator(1, 0b0)?;
    msn(c, state, x, 4)?;
    crc3(c, x)
}

/// `pt_0_crc7`: MSN, CRC-7.
fn pt_0_crc7<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    infer_ts(c, state, x)?;
    infer_id(c, state, x)?;
    if state.has_rtp() {
        c.discriminator(4, 0b1000)?;
        msn(c, state, x, 5)?;
    } else {
        c.discriminator(3, 0b100)?;
        msn(c, state, x, 6)?;
    }
    crc7(c, x)
}

/// `pt_1_seq_id` without RTP: IP-ID, MSN, CRC-3 (the text of section 6.8.2.1 has a CRC-7).
fn pt_1_seq_id<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    c.enforce(state.is_sequential())?;
    c.discriminator(3, 0b101)?;
    crc3(c, x)?;
    msn(c, state, x, 6)?;
    ip_id(c, x, 4)
}

/// `pt_2_seq_id` without RTP: IP-ID, MSN, CRC-7.
fn pt_2_seq_id<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    c.enforce(state.is_sequential())?;
    c.discriminator(3, 0b110)?;
    ip_id(c, x, 6)?;
    crc7(c, x)?;
    msn(c, state, x, 8)
}

/// `pt_1_rnd`: marker, MSN, timestamp, CRC-3.
fn pt_1_rnd<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    c.enforce(!state.is_sequential())?;
    pt_1_ts(c, state, x)
}

/// `pt_1_seq_ts`: marker, MSN, timestamp, CRC-3.
fn pt_1_seq_ts<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    c.enforce(state.is_sequential())?;
    infer_id(c, state, x)?;
    pt_1_ts(c, state, x)
}

fn pt_1_ts<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    c.discriminator(3, 0b101)?;
    marker(c, state)?;
    msn(c, state, x, 4)?;
    ts_scaled(c, state, x, 5)?;
    crc3(c, x)
}

/// `pt_1_seq_id` with RTP: IP-ID, MSN, CRC-3.
fn pt_1_seq_id_rtp<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    c.enforce(state.is_sequential())?;
    infer_ts(c, state, x)?;
    c.discriminator(4, 0b1001)?;
    ip_id(c, x, 4)?;
    msn(c, state, x, 5)?;
    crc3(c, x)
}

/// `pt_2_rnd`: MSN, timestamp, marker, CRC-7.
fn pt_2_rnd<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    c.enforce(!state.is_sequential())?;
    c.discriminator(3, 0b110)?;
    msn(c, state, x, 7)?;
    ts_scaled(c, state, x, 6)?;
    marker(c, state)?;
    crc7(c, x)
}

/// `pt_2_seq_id` with RTP: MSN, IP-ID, CRC-7.
fn pt_2_seq_id_rtp<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    c.enforce(state.is_sequential())?;
    infer_ts(c, state, x)?;
    c.discriminator(5, 0b1_1000)?;
    msn(c, state, x, 7)?;
    ip_id(c, x, 5)?;
    crc7(c, x)
}

/// `pt_2_seq_both`: MSN, IP-ID, timestamp, marker, CRC-7.
fn pt_2_seq_both<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    c.enforce(state.is_sequential())?;
    c.discriminator(5, 0b1_1001)?;
    msn(c, state, x, 7)?;
    ip_id(c, x, 5)?;
    crc7(c, x)?;
    ts_scaled(c, state, x, 7)?;
    marker(c, state)
}

/// `pt_2_seq_ts`: MSN, timestamp, marker, CRC-7.
fn pt_2_seq_ts<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    c.enforce(state.is_sequential())?;
    infer_id(c, state, x)?;
    c.discriminator(4, 0b1101)?;
    msn(c, state, x, 7)?;
    ts_scaled(c, state, x, 5)?;
    marker(c, state)?;
    crc7(c, x)
}

/// True if the whole IP-ID is sent. (Writing only.)
fn says_whole_id(state: &State, x: &Fields) -> bool {
    state.is_sequential() && (x.has_whole_id || !x.ip_id_offset.fits(8, quarter(8)))
}

/// `ip_id_sequential_variable(behavior, indicator)`.
pub(super) fn ip_id_sequential_variable<'p, C: Coder<'p>>(
    c: &mut C,
    state: &mut State,
    x: &mut Fields,
    indicator: bool,
) -> Step {
    if !state.is_sequential() {
        return Ok(());
    }
    if !indicator {
        return ip_id(c, x, 8);
    }
    x.has_whole_id = true;
    let inner = state.headers.inner();
    let mut id = state.headers.word(inner, 4);
    c.uint("ip_id", 16, &mut id)?;
    state.headers.set(inner, 4, id.to_be_bytes());
    Ok(())
}

/// `df` and `ip_id_behavior_innermost` of the flags; `dont_fragment(version)`.
fn df_and_behavior<'p, C: Coder<'p>>(c: &mut C, state: &mut State) -> Step {
    let (inner, is_v6) = (state.headers.inner(), state.is_v6());
    if is_v6 {
        zeros(c, "df", 1)?;
    } else {
        let Some(h) = state.headers.octets.get_mut(inner.range()) else { return refuse() };
        bit(c, "df", h, 6, 0x40)?;
    }
    c.uint("ip_id_behavior_innermost", 2, state.inner_behavior_mut())?;
    c.require(!is_v6 || state.inner_behavior() == Behavior::Random)
}

/// `coverage_behavior` of the flags.
fn coverage_behavior<'p, C: Coder<'p>>(c: &mut C, state: &mut State) -> Step {
    c.uint("coverage_behavior", 2, &mut state.coverage_behavior)?;
    c.require(state.coverage_behavior <= coverage::IRREGULAR)
}

/// `co_common` without RTP: anything that can change while a context lasts, CRC-7.
fn co_common<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    c.discriminator(8, 0b1111_1010)?;
    let ip_id_indicator = c.flag("ip_id_indicator", &mut says_whole_id(state, x))?;
    crc7(c, x)?;
    c.flag("flags_indicator", &mut x.indicators.flags1)?;
    c.flag("ttl_hopl_indicator", &mut x.indicators.ttl)?;
    c.flag("tos_tc_indicator", &mut x.indicators.tos)?;
    c.uint("reorder_ratio", 2, &mut state.reorder_ratio)?;
    c.uint("control_crc3", 3, &mut x.control_crc3)?;
    if x.indicators.flags1 {
        if state.has_lite() {
            zeros(c, "reserved", 2)?;
        }
        c.flag("outer_ip_indicator", &mut x.outer_ip)?;
        df_and_behavior(c, state)?;
        if state.has_lite() { coverage_behavior(c, state) } else { zeros(c, "reserved", 4) }?;
    }
    innermost(c, state, x.indicators.tos, x.indicators.ttl)?;
    if state.has_own_msn() {
        let widths = SnWidths { whole: state.msn_bits(), ratio: state.reorder_ratio, least: x.least_bits };
        sdvl_sn_lsb(c, "sequence_number", widths, &mut x.msn)?;
    } else {
        msn(c, state, x, 8)?;
    }
    ip_id_sequential_variable(c, state, x, ip_id_indicator)
}

/// `co_common` with RTP: anything that can change while a context lasts, CRC-7.
fn co_common_rtp<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    c.discriminator(8, 0b1111_1010)?;
    marker(c, state)?;
    crc7(c, x)?;
    c.flag("flags1_indicator", &mut x.indicators.flags1)?;
    c.flag("flags2_indicator", &mut x.indicators.flags2)?;
    let may_scale = state.ts_stride != 0 && !x.indicators.ts_stride && x.stamp != Stamp::Unscaled;
    let tsc_indicator = c.flag("tsc_indicator", &mut { may_scale })?;
    c.flag("tss_indicator", &mut x.indicators.ts_stride)?;
    let ip_id_indicator = c.flag("ip_id_indicator", &mut says_whole_id(state, x))?;
    c.uint("control_crc3", 3, &mut x.control_crc3)?;
    if x.indicators.flags1 {
        c.flag("outer_ip_indicator", &mut x.outer_ip)?;
        c.flag("ttl_hopl_indicator", &mut x.indicators.ttl)?;
        c.flag("tos_tc_indicator", &mut x.indicators.tos)?;
        df_and_behavior(c, state)?;
        c.uint("reorder_ratio", 2, &mut state.reorder_ratio)?;
    }
    if x.indicators.flags2 {
        if state.has_lite() {
            zeros(c, "reserved", 1)?;
        }
        c.flag("list_indicator", &mut x.indicators.list)?;
        c.flag("pt_indicator", &mut x.indicators.pt)?;
        c.flag("tis_indicator", &mut x.indicators.time_stride)?;
        rtp_bit(c, "pad_bit", state, 0, 0x20)?;
        rtp_bit(c, "extension", state, 0, 0x10)?;
        if state.has_lite() { coverage_behavior(c, state) } else { zeros(c, "reserved", 3) }?;
    }
    innermost(c, state, x.indicators.tos, x.indicators.ttl)?;
    if x.indicators.pt {
        zeros(c, "reserved", 1)?;
        payload_type(c, rtp(state)?)?;
    }
    let widths = SnWidths { whole: 16, ratio: state.reorder_ratio, least: x.least_bits };
    sdvl_sn_lsb(c, "sequence_number", widths, &mut x.msn)?;
    ip_id_sequential_variable(c, state, x, ip_id_indicator)?;
    match (tsc_indicator, x.indicators.ts_stride) {
        (true, true) => c.require(false)?,
        (true, false) => {
            c.enforce(state.ts_stride != 0)?;
            x.stamp = Stamp::Scaled;
            let timed = state.time_stride != 0;
            let p = |k: u32| if timed { (1 << k) / 2 - 1 } else { quarter(k) };
            sdvl_lsb(c, "ts_scaled", &mut x.ts_scaled, p)?;
        }
        (false, _) => {
            x.stamp = Stamp::Unscaled;
            sdvl_lsb(c, "timestamp", &mut x.timestamp, quarter)?;
        }
    }
    sdvl_or(c, "ts_stride", x.indicators.ts_stride, None, &mut state.ts_stride)?;
    sdvl_or(c, "time_stride", x.indicators.time_stride, None, &mut state.time_stride)?;
    if !x.indicators.list {
        return Ok(());
    }
    let Some(item) = state.headers.upper(Kind::Rtp) else { return refuse() };
    list_csrc(c, state, item, false)
}

/// `co_repair`: the dynamic chain, CRC-7. RFC 5225, section 6.8.2.2.
pub(super) fn co_repair<'p, C: Coder<'p>>(c: &mut C, state: &mut State, x: &mut Fields) -> Step {
    c.discriminator(8, 0b1111_1011)?;
    zeros(c, "r1", 1)?;
    crc7(c, x)?;
    zeros(c, "r2", 5)?;
    c.uint("control_crc3", 3, &mut x.control_crc3)?;
    dynamic_chain(c, state)
}

/// `IR`: profile, CRC-8, static and dynamic chain. RFC 5225, section 6.8.1.
pub(super) fn ir<'p, C: Coder<'p>>(c: &mut C, state: &mut State) -> Step {
    c.discriminator(8, 0b1111_1101)?;
    c.discriminator(8, u32::from(state.profile.low_octet()))?;
    c.crc("CRC", 8)?;
    static_chain(c, state)?;
    dynamic_chain(c, state)
}

/// Sets the numbers of the headers by a base header that was read, the last packet, and an MSN.
pub(super) fn resolve(next: &mut State, last: &State, x: &Fields, msn: u32) {
    next.msn = msn;
    if let Some(esp) = next.headers.upper(Kind::Esp) {
        next.headers.set(esp, 4, msn.to_be_bytes());
    }
    if let Some(rtp) = next.headers.upper(Kind::Rtp) {
        resolve_rtp(next, last, x, rtp);
    }
    if !next.is_v6() {
        if next.is_sequential() && !x.has_whole_id {
            next.set_id(x.ip_id_offset.value);
        }
        next.ip_id_offset = next.offset_of_id();
    }
}

fn resolve_rtp(next: &mut State, last: &State, x: &Fields, rtp: Item) {
    next.headers.set(rtp, 2, (next.msn as u16).to_be_bytes());
    let timestamp = match x.stamp {
        // "delta_msn", with its sign: the packet may be late.
        Stamp::Inferred => {
            let delta = i32::from(next.msn.wrapping_sub(last.msn) as i16);
            last.timestamp().wrapping_add_signed(delta.wrapping_mul(last.ts_stride as i32))
        }
        Stamp::Scaled => x.ts_scaled.value.wrapping_mul(last.ts_stride).wrapping_add(last.ts_offset()),
        Stamp::Unscaled => x.timestamp.value,
    };
    next.headers.set(rtp, 4, timestamp.to_be_bytes());
}
