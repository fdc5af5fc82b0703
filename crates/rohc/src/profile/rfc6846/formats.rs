//! The base headers of compressed packets. RFC 6846, section 8.2, `co_baseheader`.

use thinair_wire::coder::{Coder, Refusal, Step};

use super::TcpFields;
use super::encodings::{
    Counter, rsf_index_enc, static_or_irreg, variable_length_32_enc, variable_length_32_flag, zeros,
};
use super::options::list_tcp_options;
use super::state::{Behavior, IpState, TcpState};
use crate::field::ip::IpHeader;
use crate::id::Format;

/// Needs of a packet that not every format meets, a bit each.
pub(super) mod needs {
    pub(in super::super) const SEQ: u8 = 1;
    pub(in super::super) const ACK: u8 = 1 << 1;
    pub(in super::super) const WINDOW: u8 = 1 << 2;
    /// The sequence number, if it is carried, unscaled.
    pub(in super::super) const UNSCALED_SEQ: u8 = 1 << 3;
    pub(in super::super) const UNSCALED_ACK: u8 = 1 << 4;
    pub(super) const UNSCALED: u8 = UNSCALED_SEQ | UNSCALED_ACK;
    /// List, RSF flags, TTL and use of ECN; and with all other fields.
    pub(in super::super) const EXTENDED: u8 = 1 << 5;
    pub(in super::super) const COMMON: u8 = 1 << 6;
}

/// Formats for an IP-ID that does not count (or for none), formats for one that counts, and the needs that they meet: the
/// cheapest first.
const FORMATS: [(Format, Format, u8); 9] = [
    (Format::Rnd4, Format::Seq4, needs::ACK | needs::UNSCALED_SEQ),
    (Format::Rnd2, Format::Seq2, needs::SEQ | needs::UNSCALED_ACK),
    (Format::Rnd3, Format::Seq3, needs::ACK | needs::UNSCALED),
    (Format::Rnd1, Format::Seq1, needs::SEQ | needs::UNSCALED),
    (Format::Rnd6, Format::Seq6, needs::SEQ | needs::ACK | needs::UNSCALED_ACK),
    (Format::Rnd5, Format::Seq5, needs::SEQ | needs::ACK | needs::UNSCALED),
    (Format::Rnd7, Format::Seq7, needs::ACK | needs::WINDOW | needs::UNSCALED),
    (Format::Rnd8, Format::Seq8, needs::SEQ | needs::ACK | needs::UNSCALED | needs::EXTENDED),
    (Format::CoCommon, Format::CoCommon, u8::MAX),
];

/// Returns the formats of one behavior.
const fn column(counts: bool) -> [(Format, u8); 9] {
    let (mut column, mut i) = ([(Format::CoCommon, u8::MAX); 9], 0);
    while i < FORMATS.len() {
        let (random, sequential, met) = FORMATS[i];
        column[i] = (if counts { sequential } else { random }, met);
        i += 1;
    }
    column
}

/// Returns the formats of a flow, and the needs that they meet.
#[inline]
pub(super) fn formats(state: &TcpState) -> &'static [(Format, u8)] {
    if state.inner().behavior.is_sequential() { &const { column(true) } } else { &const { column(false) } }
}

/// True if the format has 7 bits of CRC.
#[inline]
pub(super) fn has_crc7(format: Format) -> bool {
    matches!(format, Format::Rnd8 | Format::Seq8 | Format::CoCommon)
}

/// Codes the base header of a format.
#[inline(always)]
pub(super) fn base<'p, C: Coder<'p>>(
    format: Format,
    c: &mut C,
    state: &mut TcpState,
    x: &mut TcpFields,
) -> Step {
    match format {
        Format::Rnd1 => rnd_1(c, state, x),
        Format::Rnd2 => rnd_2(c, state, x),
        Format::Rnd3 => rnd_3(c, state, x),
        Format::Rnd4 => rnd_4(c, state, x),
        Format::Rnd5 => rnd_5(c, state, x),
        Format::Rnd6 => rnd_6(c, state, x),
        Format::Rnd7 => rnd_7(c, state, x),
        Format::Rnd8 => rnd_8(c, state, x),
        Format::Seq1 => seq_1(c, state, x),
        Format::Seq2 => seq_2(c, state, x),
        Format::Seq3 => seq_3(c, state, x),
        Format::Seq4 => seq_4(c, state, x),
        Format::Seq5 => seq_5(c, state, x),
        Format::Seq6 => seq_6(c, state, x),
        Format::Seq7 => seq_7(c, state, x),
        Format::Seq8 => seq_8(c, state, x),
        Format::CoCommon => co_common(c, state, x),
        _ => Err(Refusal::NotThis),
    }
}

/// `msn`, `psh_flag` and `header_crc`, with which most formats end.
#[inline(always)]
fn tail<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    x.msn.lsb(c, "msn", 4, 4)?;
    c.flag("psh_flag", &mut state.psh_flag)?;
    c.uint("header_crc", 3, &mut x.crc3)
}

/// `co_common`: all fields that can change in a context, each if it is present; CRC-7.
fn co_common<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.discriminator(7, 0b111_1101)?;
    c.flag("ttl_hopl_outer_flag", &mut x.outer_ttl)?;
    c.flag("ack_flag", &mut state.ack_flag)?;
    c.flag("psh_flag", &mut state.psh_flag)?;
    rsf_index_enc(c, &mut state.rsf)?;
    x.msn.lsb(c, "msn", 4, 4)?;
    let mut seq_indicator = variable_length_32_flag(&x.seq);
    c.uint("seq_indicator", 2, &mut seq_indicator)?;
    let mut ack_indicator = variable_length_32_flag(&x.ack);
    c.uint("ack_indicator", 2, &mut ack_indicator)?;
    c.flag("ack_stride_indicator", &mut x.full.ack_stride)?;
    let window_indicator = c.flag("window_indicator", &mut !x.window.is_static())?;
    let ip_id_indicator = c.flag("ip_id_indicator", &mut !x.ip_id_offset.fits(8, 3))?;
    c.flag("urg_ptr_present", &mut x.full.urg_ptr)?;
    zeros(c, "reserved", 1)?;
    c.flag("ecn_used", &mut state.ecn_used)?;
    c.flag("dscp_present", &mut x.full.dscp)?;
    c.flag("ttl_hopl_present", &mut x.full.ttl)?;
    c.flag("list_present", &mut x.full.list)?;
    let IpState { header: IpHeader { mut df, .. }, mut behavior, .. } = *state.inner();
    c.uint("ip_id_behavior_innermost", 2, &mut behavior)?;
    c.flag("urg_flag", &mut state.urg_flag)?;
    c.flag("df", &mut df)?;
    if !state.inner().is_v6() {
        (state.inner_mut().header.df, state.inner_mut().behavior) = (df, behavior);
    }
    c.uint("header_crc", 7, &mut x.crc7)?;
    variable_length_32_enc(c, "seq_number", seq_indicator, &mut x.seq)?;
    variable_length_32_enc(c, "ack_number", ack_indicator, &mut x.ack)?;
    static_or_irreg(c, "ack_stride", x.full.ack_stride, 16, &mut state.ack_stride)?;
    if window_indicator {
        x.window.irregular(c, "window", 16)?;
    }
    if behavior.is_sequential() {
        c.require(!state.inner().is_v6())?;
        optional_ip_id_lsb(c, ip_id_indicator, state.inner_mut(), x)?;
    }
    static_or_irreg(c, "urg_ptr", x.full.urg_ptr, 16, &mut state.urg_ptr)?;
    if x.full.dscp {
        let tos = &mut state.inner_mut().header.tos;
        let mut dscp = *tos >> 2;
        c.uint("dscp", 6, &mut dscp)?;
        *tos = dscp << 2 | *tos & 0b11;
        zeros(c, "padding", 2)?;
    }
    if x.full.ttl {
        x.ttl.irregular(c, "ttl_hopl", 8)?;
    }
    options(c, state, x)
}

/// `optional_ip_id_lsb`: 8 bits of the offset, or the full IP-ID.
pub(super) fn optional_ip_id_lsb<'p, C: Coder<'p>>(
    c: &mut C,
    indicator: bool,
    ip: &mut IpState,
    x: &mut TcpFields,
) -> Step {
    if indicator {
        x.has_whole_ip_id = true;
        return c.uint("ip_id", 16, &mut ip.header.id);
    }
    x.ip_id_offset.lsb(c, "ip_id", 8, 3)
}

/// `tcp_list_presence_enc`.
fn options<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    if !x.full.list {
        return Ok(());
    }
    // A scaled one never occurs together with a list.
    let ack = x.ack.value;
    list_tcp_options(c, &mut state.options, &mut x.options, ack)
}

/// `rnd_1`: sequence number, CRC-3.
fn rnd_1<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.discriminator(6, 0b10_1110)?;
    x.seq.lsb(c, "seq_number", 18, 65_535)?;
    tail(c, state, x)
}

/// `rnd_2`: scaled sequence number, CRC-3.
fn rnd_2<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.enforce(x.may_scale_seq)?;
    c.discriminator(4, 0b1100)?;
    seq_scaled(c, x)?;
    tail(c, state, x)
}

/// `rnd_3`: acknowledgment number, CRC-3.
fn rnd_3<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.discriminator(1, 0b0)?;
    x.ack.lsb(c, "ack_number", 15, 8_191)?;
    tail(c, state, x)
}

/// `rnd_4`: scaled acknowledgment number, CRC-3.
fn rnd_4<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.enforce(x.may_scale_ack)?;
    c.discriminator(4, 0b1101)?;
    ack_scaled(c, x)?;
    tail(c, state, x)
}

/// `rnd_5`: acknowledgment and sequence number, CRC-3.
fn rnd_5<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.discriminator(3, 0b100)?;
    c.flag("psh_flag", &mut state.psh_flag)?;
    x.msn.lsb(c, "msn", 4, 4)?;
    c.uint("header_crc", 3, &mut x.crc3)?;
    x.seq.lsb(c, "seq_number", 14, 8_191)?;
    x.ack.lsb(c, "ack_number", 15, 8_191)
}

/// `rnd_6`: acknowledgment number and scaled sequence number, CRC-3.
fn rnd_6<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.enforce(x.may_scale_seq)?;
    c.discriminator(4, 0b1010)?;
    c.uint("header_crc", 3, &mut x.crc3)?;
    c.flag("psh_flag", &mut state.psh_flag)?;
    x.ack.lsb(c, "ack_number", 16, 16_383)?;
    x.msn.lsb(c, "msn", 4, 4)?;
    seq_scaled(c, x)
}

/// `rnd_7`: acknowledgment number and window, CRC-3.
fn rnd_7<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.discriminator(6, 0b10_1111)?;
    x.ack.lsb(c, "ack_number", 18, 65_535)?;
    x.window.irregular(c, "window", 16)?;
    tail(c, state, x)
}

/// `rnd_8`: RSF flags, TTL, use of ECN, sequence and acknowledgment number, options; CRC-7.
fn rnd_8<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.discriminator(5, 0b1_0110)?;
    rsf_index_enc(c, &mut state.rsf)?;
    c.flag("list_present", &mut x.full.list)?;
    c.uint("header_crc", 7, &mut x.crc7)?;
    x.msn.lsb(c, "msn", 4, 4)?;
    c.flag("psh_flag", &mut state.psh_flag)?;
    x.ttl.lsb(c, "ttl_hopl", 3, 3)?;
    c.flag("ecn_used", &mut state.ecn_used)?;
    x.seq.lsb(c, "seq_number", 16, 65_535)?;
    x.ack.lsb(c, "ack_number", 16, 16_383)?;
    options(c, state, x)
}

/// `seq_1`: sequence number, CRC-3.
fn seq_1<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.discriminator(4, 0b1010)?;
    x.ip_id_offset.lsb(c, "ip_id", 4, 3)?;
    x.seq.lsb(c, "seq_number", 16, 32_767)?;
    tail(c, state, x)
}

/// `seq_2`: scaled sequence number, CRC-3.
fn seq_2<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.enforce(x.may_scale_seq)?;
    c.discriminator(5, 0b1_1010)?;
    x.ip_id_offset.lsb(c, "ip_id", 7, 3)?;
    seq_scaled(c, x)?;
    tail(c, state, x)
}

/// `seq_3`: acknowledgment number, CRC-3.
fn seq_3<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.discriminator(4, 0b1001)?;
    x.ip_id_offset.lsb(c, "ip_id", 4, 3)?;
    x.ack.lsb(c, "ack_number", 16, 16_383)?;
    tail(c, state, x)
}

/// `seq_4`: scaled acknowledgment number, CRC-3.
fn seq_4<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.enforce(x.may_scale_ack)?;
    c.discriminator(1, 0b0)?;
    ack_scaled(c, x)?;
    x.ip_id_offset.lsb(c, "ip_id", 3, 1)?;
    tail(c, state, x)
}

/// `seq_5`: acknowledgment and sequence number, CRC-3.
fn seq_5<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.discriminator(4, 0b1000)?;
    x.ip_id_offset.lsb(c, "ip_id", 4, 3)?;
    x.ack.lsb(c, "ack_number", 16, 16_383)?;
    x.seq.lsb(c, "seq_number", 16, 32_767)?;
    tail(c, state, x)
}

/// `seq_6`: acknowledgment number and scaled sequence number, CRC-3.
fn seq_6<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.enforce(x.may_scale_seq)?;
    c.discriminator(5, 0b1_1011)?;
    seq_scaled(c, x)?;
    x.ip_id_offset.lsb(c, "ip_id", 7, 3)?;
    x.ack.lsb(c, "ack_number", 16, 16_383)?;
    tail(c, state, x)
}

/// `seq_7`: acknowledgment number and window, CRC-3.
fn seq_7<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.discriminator(4, 0b1100)?;
    x.window.lsb(c, "window", 15, 16_383)?;
    x.ip_id_offset.lsb(c, "ip_id", 5, 3)?;
    x.ack.lsb(c, "ack_number", 16, 32_767)?;
    tail(c, state, x)
}

/// `seq_8`: RSF flags, TTL, use of ECN, sequence and acknowledgment number, options; CRC-7.
fn seq_8<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState, x: &mut TcpFields) -> Step {
    c.discriminator(4, 0b1011)?;
    x.ip_id_offset.lsb(c, "ip_id", 4, 3)?;
    c.flag("list_present", &mut x.full.list)?;
    c.uint("header_crc", 7, &mut x.crc7)?;
    x.msn.lsb(c, "msn", 4, 4)?;
    c.flag("psh_flag", &mut state.psh_flag)?;
    x.ttl.lsb(c, "ttl_hopl", 3, 3)?;
    c.flag("ecn_used", &mut state.ecn_used)?;
    x.ack.lsb(c, "ack_number", 15, 8_191)?;
    rsf_index_enc(c, &mut state.rsf)?;
    x.seq.lsb(c, "seq_number", 14, 8_191)?;
    options(c, state, x)
}

#[inline(always)]
fn seq_scaled<'p, C: Coder<'p>>(c: &mut C, x: &mut TcpFields) -> Step {
    x.seq_scaled.lsb(c, "seq_number_scaled", 4, 7)
}

#[inline(always)]
fn ack_scaled<'p, C: Coder<'p>>(c: &mut C, x: &mut TcpFields) -> Step {
    x.ack_scaled.lsb(c, "ack_number_scaled", 4, 3)
}

/// Length of `co_common` without its list, in octets.
pub(super) fn co_common_len(state: &TcpState, x: &TcpFields) -> usize {
    let number = |counter: &Counter| [0, 1, 2, 4][usize::from(variable_length_32_flag(counter) & 3)];
    let ip_id = match (state.inner().behavior, x.ip_id_offset.fits(8, 3)) {
        (Behavior::Random | Behavior::Constant, _) => 0,
        (Behavior::Sequential | Behavior::Swapped, true) => 1,
        (Behavior::Sequential | Behavior::Swapped, false) => 2,
    };
    let flag = |is: bool, octets: usize| if is { octets } else { 0 };
    5 + number(&x.seq)
        + number(&x.ack)
        + flag(x.full.ack_stride, 2)
        + flag(!x.window.is_static(), 2)
        + ip_id
        + flag(x.full.urg_ptr, 2)
        + flag(x.full.dscp, 1)
        + flag(x.full.ttl, 1)
}
