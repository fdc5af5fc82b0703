//! The TCP header in the chains. RFC 6846, section 8.2, `tcp`.

use thinair_wire::coder::{Coder, Step};

use super::encodings::{Counter, rsf_index_enc, static_or_irreg, zero_or_irreg, zeros};
use super::options::{ListEncoding, list_tcp_options};
use super::state::TcpState;

/// `tcp_static`.
pub(super) fn tcp_static<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState) -> Step {
    c.uint("src_port", 16, &mut state.source_port)?;
    c.uint("dst_port", 16, &mut state.destination_port)
}

/// `tcp_dynamic`.
pub(super) fn tcp_dynamic<'p, C: Coder<'p>>(
    c: &mut C,
    state: &mut TcpState,
    sent: &mut ListEncoding,
    has_stride: &mut bool,
) -> Step {
    c.flag("ecn_used", &mut state.ecn_used)?;
    let ack_stride_flag = c.flag("ack_stride_flag", has_stride)?;
    let ack_zero = c.flag("ack_zero", &mut (state.ack == 0))?;
    let urp_zero = c.flag("urp_zero", &mut (state.urg_ptr == 0))?;
    c.uint("tcp_res_flags", 4, &mut state.reserved)?;
    c.uint("tcp_ecn_flags", 2, &mut state.ecn)?;
    c.flag("urg_flag", &mut state.urg_flag)?;
    c.flag("ack_flag", &mut state.ack_flag)?;
    c.flag("psh_flag", &mut state.psh_flag)?;
    c.uint("rsf_flags", 3, &mut state.rsf)?;
    c.uint("msn", 16, &mut state.msn)?;
    c.uint("seq_number", 32, &mut state.seq)?;
    zero_or_irreg(c, "ack_number", ack_zero, 32, &mut state.ack)?;
    c.uint("window", 16, &mut state.window)?;
    c.uint("checksum", 16, &mut state.checksum)?;
    zero_or_irreg(c, "urg_ptr", urp_zero, 16, &mut state.urg_ptr)?;
    static_or_irreg(c, "ack_stride", ack_stride_flag, 16, &mut state.ack_stride)?;
    list_tcp_options(c, &mut state.options, sent, state.ack)
}

/// Parts of the TCP header in a replicate chain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Replicate {
    pub(super) window: bool,
    pub(super) list: bool,
    /// 0: that of the base; 1: 8 bits; 2: all bits.
    pub(super) source_port: u8,
    pub(super) destination_port: u8,
    pub(super) ack_stride: bool,
    pub(super) ack: bool,
    pub(super) urg_ptr: bool,
}

/// `port_replicate`.
pub(super) fn port_replicate<'p, C: Coder<'p>>(
    c: &mut C,
    name: &'static str,
    flags: u8,
    port: &mut u16,
) -> Step {
    match flags {
        0b00 => Ok(()),
        0b01 => {
            // The writer has checked that 8 bits are enough.
            let mut counter = Counter::between(*port, Some((*port, *port)));
            counter.lsb(c, name, 8, 64)?;
            *port = counter.value;
            Ok(())
        }
        _ => c.uint(name, 16, port),
    }
}

/// `tcp_replicate`. Fields that are not sent are those of the base context.
pub(super) fn tcp_replicate<'p, C: Coder<'p>>(
    c: &mut C,
    state: &mut TcpState,
    x: &mut Replicate,
    sent: &mut ListEncoding,
) -> Step {
    zeros(c, "reserved", 1)?;
    c.flag("window_presence", &mut x.window)?;
    c.flag("list_present", &mut x.list)?;
    c.uint("src_port_presence", 2, &mut x.source_port)?;
    c.require(x.source_port < 0b11)?;
    c.uint("dst_port_presence", 2, &mut x.destination_port)?;
    c.require(x.destination_port < 0b11)?;
    c.flag("ack_stride_flag", &mut x.ack_stride)?;
    c.flag("ack_presence", &mut x.ack)?;
    c.flag("urp_presence", &mut x.urg_ptr)?;
    c.flag("urg_flag", &mut state.urg_flag)?;
    c.flag("ack_flag", &mut state.ack_flag)?;
    c.flag("psh_flag", &mut state.psh_flag)?;
    rsf_index_enc(c, &mut state.rsf)?;
    c.flag("ecn_used", &mut state.ecn_used)?;
    c.uint("msn", 16, &mut state.msn)?;
    c.uint("seq_number", 32, &mut state.seq)?;
    port_replicate(c, "src_port", x.source_port, &mut state.source_port)?;
    port_replicate(c, "dst_port", x.destination_port, &mut state.destination_port)?;
    static_or_irreg(c, "window", x.window, 16, &mut state.window)?;
    static_or_irreg(c, "urg_point", x.urg_ptr, 16, &mut state.urg_ptr)?;
    static_or_irreg(c, "ack_number", x.ack, 32, &mut state.ack)?;
    if state.ecn_used {
        zeros(c, "ecn_padding", 2)?;
        c.uint("tcp_res_flags", 4, &mut state.reserved)?;
        c.uint("tcp_ecn_flags", 2, &mut state.ecn)?;
    }
    c.uint("checksum", 16, &mut state.checksum)?;
    static_or_irreg(c, "ack_stride", x.ack_stride, 16, &mut state.ack_stride)?;
    if x.list { list_tcp_options(c, &mut state.options, sent, state.ack) } else { Ok(()) }
}

/// `tcp_irregular`.
#[inline(always)]
pub(super) fn tcp_irregular<'p, C: Coder<'p>>(c: &mut C, state: &mut TcpState) -> Step {
    if state.ecn_used {
        let ip = state.inner_mut();
        let mut ip_ecn = ip.header.tos & 0b11;
        c.uint("ip_ecn_flags", 2, &mut ip_ecn)?;
        ip.header.tos = ip.header.tos & !0b11 | ip_ecn;
        c.uint("tcp_res_flags", 4, &mut state.reserved)?;
        c.uint("tcp_ecn_flags", 2, &mut state.ecn)?;
    }
    c.uint("checksum", 16, &mut state.checksum)
}
