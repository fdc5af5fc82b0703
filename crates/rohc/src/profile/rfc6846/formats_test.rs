//! Tests of the formats against the formal notation of RFC 6846. [`BLOCKS`] has every COMPRESSED block of it, with
//! names, widths and offsets. If `THINAIR_VECTORS` has the RFC, the table is compared with its text.

use std::println;
use std::string::String;
use std::vec::Vec;

use thinair_wire::coder::{Coder, Describer, FormatField, Step, Writer};
use thinair_wire::header::protocol;

use super::encodings::{
    Counter, fl_enc, lsb_7_or_31, rsf_index_enc, sack_pure_lsb, static_or_irreg, ts_lsb,
    variable_length_32_enc, zero_or_irreg,
};
use super::formats::{base, optional_ip_id_lsb};
use super::header::{Replicate, port_replicate, tcp_dynamic, tcp_irregular, tcp_replicate, tcp_static};
use super::options::{index, irregular_item, list_item};
use super::state::{Behavior, IpState, TcpState};
use super::{TcpFields, ip};
use crate::field::ip::{IpHeader, IpVersion};
use crate::id::Format;
use crate::profile::notation::{agree, blocks_of};

/// IP version of a method.
fn version(method: &str) -> IpVersion {
    if method == "ipv6" { IpVersion::V6 } else { IpVersion::V4 }
}

/// Method and name of each block, and its fields: a pattern or `name:width`, several widths of a field separated by
/// commas, and `~p` behind the field of an `lsb(k, p)`. `?` stands for a width that is not given. Section 8.2.
#[rustfmt::skip]
const BLOCKS: [(&str, &str); 154] = [
    ("static_or_irreg.irreg_enc", "field:width"),
    ("static_or_irreg.static_enc", "field:0"),
    ("zero_or_irreg.non_zero", "field:width"),
    ("zero_or_irreg.zero", "field:0"),
    ("variable_length_32_enc.not_present", "field:0"),
    ("variable_length_32_enc.lsb_8_bit", "field:8~63"),
    ("variable_length_32_enc.lsb_16_bit", "field:16~16383"),
    ("variable_length_32_enc.irreg_32_bit", "field:32"),
    ("optional32.present", "item:32"),
    ("optional32.not_present", "item:0"),
    ("lsb_7_or_31.lsb_7", "0 item:7~8"),
    ("lsb_7_or_31.lsb_31", "1 item:31~256"),
    ("opt_lsb_7_or_31.present", "item:8,32"),
    ("opt_lsb_7_or_31.not_present", "item:0"),
    ("crc3.", "crc_value:3"),
    ("crc7.", "crc_value:7"),
    ("one_bit_choice.zero", "field:1"),
    ("one_bit_choice.nonzero", "field:1"),
    ("field_scaling.no_scaling", ""),
    ("field_scaling.scaling_used", ""),
    ("ip_dest_opt.dest_opt_static", "next_header:8 length:8"),
    ("ip_dest_opt.dest_opt_dynamic", "value:length.UVALUE*64+48"),
    ("ip_dest_opt.dest_opt_0_replicate", "00000000"),
    ("ip_dest_opt.dest_opt_1_replicate", "10000000 length:8 value:length.UVALUE*64+48"),
    ("ip_dest_opt.dest_opt_irregular", ""),
    ("ip_hop_opt.hop_opt_static", "next_header:8 length:8"),
    ("ip_hop_opt.hop_opt_dynamic", "value:length.UVALUE*64+48"),
    ("ip_hop_opt.hop_opt_0_replicate", "00000000"),
    ("ip_hop_opt.hop_opt_1_replicate", "10000000 length:8 value:length.UVALUE*64+48"),
    ("ip_hop_opt.hop_opt_irregular", ""),
    ("ip_rout_opt.rout_opt_static", "next_header:8 length:8 value:length.UVALUE*64+48"),
    ("ip_rout_opt.rout_opt_dynamic", ""),
    ("ip_rout_opt.rout_opt_0_replicate", "00000000"),
    ("ip_rout_opt.rout_opt_0_replicate", "10000000 length:8 value:length.UVALUE*64+48"),
    ("ip_rout_opt.rout_opt_irregular", ""),
    ("optional_checksum.cs_present", "value:16 reserved1:0"),
    ("optional_checksum.not_present", "value:0 reserved1:0"),
    ("gre_proto.ether_v4", "discriminator:1 protocol:0"),
    ("gre_proto.ether_v6", "discriminator:1 protocol:0"),
    ("gre.gre_static", "protocol:1 c_flag:1 k_flag:1 s_flag:1 padding:4 key:0,32"),
    ("gre.gre_dynamic", "checksum_and_res:0,16 sequence_number:0,32"),
    ("gre.gre_0_replicate", "00000000 checksum_and_res:0,16 sequence_number:0,8,32"),
    ("gre.gre_1_replicate", "10000 c_flag:1 k_flag:1 s_flag:1 checksum_and_res:0,16 key:0,32 sequence_number:0,32"),
    ("gre.gre_irregular", "checksum_and_res:0,16 sequence_number:0,8,32"),
    ("mine.mine_static", "next_header:8 s_bit:1 res_bits:7 orig_dest:32 orig_src:0,32"),
    ("mine.mine_dynamic", ""),
    ("mine.mine_0_replicate", "00000000"),
    ("mine.mine_1_replicate", "10000000 s_bit:1 res_bits:7 orig_dest:32 orig_src:0,32"),
    ("mine.mine_irregular", ""),
    ("ah.ah_static", "next_header:8 length:8 spi:32"),
    ("ah.ah_dynamic", "res_bits:16 sequence_number:32 icv:length.UVALUE*32-32"),
    ("ah.ah_0_replicate", "00000000 sequence_number:32 icv:length.UVALUE*32-32"),
    ("ah.ah_1_replicate", "10000000 length:8 res_bits:16 spi:32 sequence_number:32 icv:length.UVALUE*32-32"),
    ("ah.ah_irregular", "sequence_number:8,32 icv:length.UVALUE*32-32"),
    ("fl_enc.fl_zero", "0 flow_label:0 0000"),
    ("fl_enc.fl_non_zero", "1 flow_label:20"),
    ("ipv6.ipv6_static", "1 00 flow_label:5,21 next_header:8 src_addr:128 dst_addr:128"),
    ("ipv6.ipv6_dynamic", "dscp:6 ip_ecn_flags:2 ttl_hopl:8"),
    ("ipv6.ipv6_replicate", "dscp:6 ip_ecn_flags:2 000 flow_label:5,21"),
    ("ipv6.ipv6_outer_without_ttl_irregular", "dscp:0,6 ip_ecn_flags:0,2"),
    ("ipv6.ipv6_outer_with_ttl_irregular", "dscp:0,6 ip_ecn_flags:0,2 ttl_hopl:8"),
    ("ipv6.ipv6_innermost_irregular", ""),
    ("ip_id_enc_dyn.ip_id_seq", "ip_id:16"),
    ("ip_id_enc_dyn.ip_id_random", "ip_id:16"),
    ("ip_id_enc_dyn.ip_id_zero", "ip_id:0"),
    ("ip_id_enc_irreg.ip_id_seq", ""),
    ("ip_id_enc_irreg.ip_id_seq_swapped", ""),
    ("ip_id_enc_irreg.ip_id_rand", "ip_id:16"),
    ("ip_id_enc_irreg.ip_id_zero", "ip_id:0"),
    ("ipv4.ipv4_static", "0 0000000 protocol:8 src_addr:32 dst_addr:32"),
    ("ipv4.ipv4_innermost_dynamic", "00000 df:1 ip_id_behavior_innermost:2 dscp:6 ip_ecn_flags:2 ttl_hopl:8 ip_id:0,16"),
    ("ipv4.ipv4_outer_dynamic", "00000 df:1 ip_id_behavior_outer:2 dscp:6 ip_ecn_flags:2 ttl_hopl:8 ip_id:0,16"),
    ("ipv4.ipv4_innermost_replicate", "0000 ip_id_behavior_innermost:2 ttl_flag:1 df:1 dscp:6 ip_ecn_flags:2 ip_id:0,16 ttl_hopl:0,8"),
    ("ipv4.ipv4_outer_replicate", "0000 ip_id_behavior_outer:2 ttl_flag:1 df:1 dscp:6 ip_ecn_flags:2 ip_id:0,16 ttl_hopl:0,8"),
    ("ipv4.ipv4_outer_without_ttl_irregular", "ip_id:0,16 dscp:0,6 ip_ecn_flags:0,2"),
    ("ipv4.ipv4_outer_with_ttl_irregular", "ip_id:0,16 dscp:0,6 ip_ecn_flags:0,2 ttl_hopl:8"),
    ("ipv4.ipv4_innermost_irregular", "ip_id:0,16"),
    ("tcp_opt_eol.eol_list_item", "pad_len:8"),
    ("tcp_opt_eol.eol_irregular", "pad_len:?"),
    ("tcp_opt_nop.nop_list_item", ""),
    ("tcp_opt_nop.nop_irregular", ""),
    ("tcp_opt_mss.mss_list_item", "mss:16"),
    ("tcp_opt_mss.mss_irregular", "mss:?"),
    ("tcp_opt_wscale.wscale_list_item", "wscale:8"),
    ("tcp_opt_wscale.wscale_irregular", "wscale:?"),
    ("ts_lsb.tsval_7", "0 tsval:7~-1"),
    ("ts_lsb.tsval_14", "10 tsval:14~-1"),
    ("ts_lsb.tsval_21", "110 tsval:21~0x00040000"),
    ("ts_lsb.tsval_29", "111 tsval:29~0x04000000"),
    ("tcp_opt_ts.tsopt_list_item", "tsval:32 tsecho:32"),
    ("tcp_opt_ts.tsopt_irregular", "tsval:8,16,24,32 tsecho:8,16,24,32"),
    ("sack_pure_lsb.lsb_15", "0 sack_field:15"),
    ("sack_pure_lsb.lsb_22", "10 sack_field:22"),
    ("sack_pure_lsb.lsb_29", "110 sack_field:29"),
    ("sack_pure_lsb.full_offset", "11111111 sack_field:32"),
    ("sack_block.", "block_start:16,24,32,40 block_end:16,24,32,40"),
    ("tcp_opt_sack.sack1_list_item", "00000001 block_1:?"),
    ("tcp_opt_sack.sack2_list_item", "00000010 block_1:? block_2:?"),
    ("tcp_opt_sack.sack3_list_item", "00000011 block_1:? block_2:? block_3:?"),
    ("tcp_opt_sack.sack4_list_item", "00000100 block_1:? block_2:? block_3:? block_4:?"),
    ("tcp_opt_sack.sack_unchanged_irregular", "00000000 block_1:? block_2:? block_3:? block_4:?"),
    ("tcp_opt_sack.sack1_irregular", "00000001 block_1:?"),
    ("tcp_opt_sack.sack2_irregular", "00000010 block_1:? block_2:?"),
    ("tcp_opt_sack.sack3_irregular", "00000011 block_1:? block_2:? block_3:?"),
    ("tcp_opt_sack.sack4_irregular", "00000100 block_1:? block_2:? block_3:? block_4:?"),
    ("tcp_opt_sack_permitted.sack_permitted_list_item", ""),
    ("tcp_opt_sack_permitted.sack_permitted_irregular", ""),
    ("tcp_opt_generic.generic_list_item", "type:8 option_static:1 length_lsb:7 contents:length_lsb.UVALUE*8-16"),
    ("tcp_opt_generic.generic_static_irregular", ""),
    ("tcp_opt_generic.generic_stable_irregular", "11111111"),
    ("tcp_opt_generic.generic_full_irregular", "00000000 contents:length_lsb.UVALUE*8-16"),
    ("tcp_list_presence_enc.list_not_present", "tcp_options:0"),
    ("tcp_list_presence_enc.list_present", "tcp_options:VARIABLE"),
    ("port_replicate.port_static_enc", "port:0"),
    ("port_replicate.port_lsb8", "port:8~64"),
    ("port_replicate.port_irr_enc", "port:16"),
    ("tcp_irreg_ip_ecn.ecn_present", "ip_ecn_flags:2"),
    ("tcp_irreg_ip_ecn.ecn_not_present", "ip_ecn_flags:0"),
    ("rsf_index_enc.none", "00 rsf_flag:?"),
    ("rsf_index_enc.rst_only", "01 rsf_flag:?"),
    ("rsf_index_enc.syn_only", "10 rsf_flag:?"),
    ("rsf_index_enc.fin_only", "11 rsf_flag:?"),
    ("optional_2bit_padding.used", "padding:2"),
    ("optional_2bit_padding.unused", "padding:?"),
    ("tcp.tcp_static", "src_port:16 dst_port:16"),
    ("tcp.tcp_dynamic", "ecn_used:1 ack_stride_flag:1 ack_zero:1 urp_zero:1 tcp_res_flags:4 tcp_ecn_flags:2 urg_flag:1 ack_flag:1 psh_flag:1 rsf_flags:3 msn:16 seq_number:32 ack_number:0,32 window:16 checksum:16 urg_ptr:0,16 ack_stride:0,16 options:VARIABLE"),
    ("tcp.tcp_replicate", "0 window_presence:1 list_present:1 src_port_presence:2 dst_port_presence:2 ack_stride_flag:1 ack_presence:1 urp_presence:1 urg_flag:1 ack_flag:1 psh_flag:1 rsf_flags:2 ecn_used:1 msn:16 seq_number:32 src_port:0,8,16 dst_port:0,8,16 window:0,16 urg_point:0,16 ack_number:0,32 ecn_padding:0,2 tcp_res_flags:0,4 tcp_ecn_flags:0,2 checksum:16 ack_stride:0,16 options:VARIABLE"),
    ("tcp.tcp_irregular", "ip_ecn_flags:0,2 tcp_res_flags:0,4 tcp_ecn_flags:0,2 checksum:16"),
    ("dscp_enc.static_enc", "dscp:0"),
    ("dscp_enc.irreg", "dscp:6 padding:2"),
    ("ip_id_lsb.nbo", "ip_id_offset:k~p"),
    ("ip_id_lsb.non_nbo", "ip_id_offset:k~p"),
    ("optional_ip_id_lsb.short", "ip_id:8~3"),
    ("optional_ip_id_lsb.long", "ip_id:16"),
    ("optional_ip_id_lsb.not_present", ""),
    ("dont_fragment.v4", "df:1"),
    ("dont_fragment.v6", "df:1"),
    ("co_baseheader.co_common", "1111101 ttl_hopl_outer_flag:1 ack_flag:1 psh_flag:1 rsf_flags:2 msn:4~4 seq_indicator:2 ack_indicator:2 ack_stride_indicator:1 window_indicator:1 ip_id_indicator:1 urg_ptr_present:1 reserved:1 ecn_used:1 dscp_present:1 ttl_hopl_present:1 list_present:1 ip_id_behavior_innermost:2 urg_flag:1 df:1 header_crc:7 seq_number:0,8,16,32 ack_number:0,8,16,32 ack_stride:0,16 window:0,16 ip_id:0,8,16 urg_ptr:0,16 dscp:0,8 ttl_hopl:0,8 options:VARIABLE"),
    ("co_baseheader.rnd_1", "101110 seq_number:18~65535 msn:4~4 psh_flag:1 header_crc:3"),
    ("co_baseheader.rnd_2", "1100 seq_number_scaled:4~7 msn:4~4 psh_flag:1 header_crc:3"),
    ("co_baseheader.rnd_3", "0 ack_number:15~8191 msn:4~4 psh_flag:1 header_crc:3"),
    ("co_baseheader.rnd_4", "1101 ack_number_scaled:4~3 msn:4~4 psh_flag:1 header_crc:3"),
    ("co_baseheader.rnd_5", "100 psh_flag:1 msn:4~4 header_crc:3 seq_number:14~8191 ack_number:15~8191"),
    ("co_baseheader.rnd_6", "1010 header_crc:3 psh_flag:1 ack_number:16~16383 msn:4~4 seq_number_scaled:4~7"),
    ("co_baseheader.rnd_7", "101111 ack_number:18~65535 window:16 msn:4~4 psh_flag:1 header_crc:3"),
    ("co_baseheader.rnd_8", "10110 rsf_flags:2 list_present:1 header_crc:7 msn:4~4 psh_flag:1 ttl_hopl:3~3 ecn_used:1 seq_number:16~65535 ack_number:16~16383 options:VARIABLE"),
    ("co_baseheader.seq_1", "1010 ip_id:4~3 seq_number:16~32767 msn:4~4 psh_flag:1 header_crc:3"),
    ("co_baseheader.seq_2", "11010 ip_id:7~3 seq_number_scaled:4~7 msn:4~4 psh_flag:1 header_crc:3"),
    ("co_baseheader.seq_3", "1001 ip_id:4~3 ack_number:16~16383 msn:4~4 psh_flag:1 header_crc:3"),
    ("co_baseheader.seq_4", "0 ack_number_scaled:4~3 ip_id:3~1 msn:4~4 psh_flag:1 header_crc:3"),
    ("co_baseheader.seq_5", "1000 ip_id:4~3 ack_number:16~16383 seq_number:16~32767 msn:4~4 psh_flag:1 header_crc:3"),
    ("co_baseheader.seq_6", "11011 seq_number_scaled:4~7 ip_id:7~3 ack_number:16~16383 msn:4~4 psh_flag:1 header_crc:3"),
    ("co_baseheader.seq_7", "1100 window:15~16383 ip_id:5~3 ack_number:16~32767 msn:4~4 psh_flag:1 header_crc:3"),
    ("co_baseheader.seq_8", "1011 ip_id:4~3 list_present:1 header_crc:7 msn:4~4 psh_flag:1 ttl_hopl:3~3 ecn_used:1 ack_number:15~8191 rsf_flags:2 seq_number:14~8191 options:VARIABLE"),
];

/// Reason a block has no function of its own to be compared with.
fn is_absent(block: &str) -> Option<&'static str> {
    let (method, _) = block.split_once('.')?;
    match method {
        "gre" | "gre_proto" | "optional_checksum" | "optional32" | "opt_lsb_7_or_31" => {
            Some("GRE headers go by another profile")
        }
        "mine" => Some("minimal encapsulation goes by another profile"),
        "crc3" | "crc7" | "field_scaling" | "one_bit_choice" => Some("it is a rule for values, not a layout"),
        "tcp_list_presence_enc"
        | "tcp_irreg_ip_ecn"
        | "optional_2bit_padding"
        | "dscp_enc"
        | "ip_id_lsb"
        | "dont_fragment" => Some("it is seen where it is used"),
        "sack_block" => Some("it is seen where it is used"),
        "optional_ip_id_lsb" if block.ends_with("not_present") => Some("it is seen where it is used"),
        _ => None,
    }
}

type Room = Describer<128>;

/// Returns the fields that our function for a block lists, for each of some choices of its flags.
fn ours(block: &str, notation: &str) -> Vec<Vec<FormatField>> {
    let (method, name) = block.split_once('.').unwrap();
    let seen = |choices: u32, run: &dyn Fn(&mut Room) -> Step| {
        let mut describer = Describer::new(choices);
        run(&mut describer).ok();
        describer.fields().to_vec()
    };
    let each = |choices: &[u32], run: &dyn Fn(&mut Room) -> Step| -> Vec<Vec<FormatField>> {
        choices.iter().map(|choices| seen(*choices, run)).collect()
    };
    let counter = || Counter::read(0_u32);
    let mut state = TcpState { ip_count: 1, ..TcpState::EMPTY };
    let option = |index: u8, is_list: bool, generic: &[u8], changed: bool, blocks: u8| {
        let mut state = TcpState { ip_count: 1, ..TcpState::EMPTY };
        state.options.read(generic).unwrap();
        (state.options.blocks, state.options.statics) = (blocks, 0);
        each(&[0, u32::MAX], &|c| {
            let (mut options, mut sent) = (state.options, TcpFields::read(&state).options);
            sent.changed = if changed { u16::MAX } else { 0 };
            let code = if is_list { list_item } else { irregular_item };
            code(c, index, &mut options, &mut sent, 0)
        })
    };
    let chain = |kind: u8, run: &dyn Fn(&mut Room, &mut TcpState) -> Step| {
        let mut state = TcpState { ip_count: 1, ..TcpState::EMPTY };
        let header = [6, if kind == protocol::AH { 4 } else { 1 }];
        state.extensions[..2].copy_from_slice(&header);
        (state.ips[0].header.protocol, state.ips[0].extensions) =
            (kind, if kind == protocol::AH { 24 } else { 16 });
        state.ips[0].header.version = IpVersion::V6;
        each(&[0, u32::MAX], &|c| run(c, &mut { state }))
    };
    let kind = match method {
        "ip_dest_opt" => protocol::DESTINATION,
        "ip_hop_opt" => protocol::HOP_BY_HOP,
        "ip_rout_opt" => protocol::ROUTING,
        _ => protocol::AH,
    };
    let format = Format::ALL.into_iter().find(|format| format.name() == name);
    let behavior = match name {
        "ip_id_random" | "ip_id_rand" => Behavior::Random,
        "ip_id_zero" => Behavior::Constant,
        "ip_id_seq_swapped" => Behavior::Swapped,
        _ => Behavior::Sequential,
    };
    match (method, name) {
        ("ip_id_enc_dyn", _) => {
            each(&[0], &|c| ip::ip_id_enc_dyn(c, &mut IpState { behavior, ..IpState::EMPTY }))
        }
        ("ip_id_enc_irreg", _) => {
            each(&[0], &|c| ip::ip_id_enc_irreg(c, &mut IpState { behavior, ..IpState::EMPTY }))
        }
        ("optional_ip_id_lsb", _) => {
            let x = || TcpFields::read(&state);
            each(&[0], &|c| optional_ip_id_lsb(c, name == "long", &mut { IpState::EMPTY }, &mut x()))
        }
        ("port_replicate", _) => {
            let flags = ["port_static_enc", "port_lsb8", "port_irr_enc"].iter().position(|n| *n == name);
            each(&[0], &|c| port_replicate(c, "port", flags.unwrap() as u8, &mut 0))
        }
        ("static_or_irreg", _) => {
            each(&[0], &|c| static_or_irreg(c, "field", name == "irreg_enc", 16, &mut 0_u16))
        }
        ("zero_or_irreg", _) => each(&[0], &|c| zero_or_irreg(c, "field", name == "zero", 16, &mut 0_u16)),
        ("variable_length_32_enc", _) => {
            let flag =
                ["not_present", "lsb_8_bit", "lsb_16_bit", "irreg_32_bit"].iter().position(|n| *n == name);
            each(&[0], &|c| variable_length_32_enc(c, "field", flag.unwrap() as u8, &mut counter()))
        }
        ("lsb_7_or_31", _) => {
            each(&[u32::from(name == "lsb_31")], &|c| lsb_7_or_31(c, "item", &mut counter()))
        }
        ("fl_enc", _) => each(&[u32::from(name == "fl_non_zero")], &|c| fl_enc(c, &mut 0)),
        ("ip_dest_opt" | "ip_hop_opt" | "ip_rout_opt" | "ah", _) if name.ends_with("_static") => {
            chain(kind, &|c, state| ip::extension_static(c, kind, &mut state.extensions, 0))
        }
        ("ip_dest_opt" | "ip_hop_opt" | "ip_rout_opt" | "ah", _) if name.ends_with("_dynamic") => {
            // Behind the three fields of `ipv6_dynamic`.
            let all = chain(kind, &|c, state| ip::dynamic_chain(c, state));
            all.into_iter().map(|fields| fields[3..].to_vec()).collect()
        }
        ("ip_dest_opt" | "ip_hop_opt" | "ip_rout_opt" | "ah", _) if name.ends_with("_irregular") => {
            chain(kind, &|c, state| ip::irregular_chain(c, state, false, Counter::read))
        }
        ("ip_dest_opt" | "ip_hop_opt" | "ip_rout_opt" | "ah", _) => {
            let all = chain(kind, &|c, state| {
                let first = state.ips[0].header.protocol;
                let len = usize::from(state.ips[0].extensions);
                ip::extension_replicate(c, first, &mut state.extensions[..len])
            });
            // Both octets of a routing header have the name of the first one.
            let is_new = notation.starts_with('1');
            all.into_iter().skip(usize::from(is_new)).take(1).collect()
        }
        ("ipv6", "ipv6_static") => each(&[0, 1], &|c| {
            c.uint("version_flag", 1, &mut 1_u8)?;
            ip::ipv6_static(c, &mut { IpState::EMPTY })
        }),
        ("ipv4", "ipv4_static") => each(&[0], &|c| {
            c.uint("version_flag", 1, &mut 0_u8)?;
            ip::ipv4_static(c, &mut { IpState::EMPTY })
        }),
        ("ipv6", "ipv6_dynamic") => each(&[0], &|c| ip::ipv6_dynamic(c, &mut { IpState::EMPTY })),
        ("ipv6", "ipv6_replicate") => each(&[0, 1], &|c| ip::ipv6_replicate(c, &mut { IpState::EMPTY })),
        ("ipv4", "ipv4_innermost_dynamic" | "ipv4_outer_dynamic") => {
            let of =
                |behavior| seen(0, &|c| ip::ipv4_dynamic(c, &mut IpState { behavior, ..IpState::EMPTY }));
            [Behavior::Random, Behavior::Constant, Behavior::Sequential].map(of).to_vec()
        }
        ("ipv4", "ipv4_innermost_replicate" | "ipv4_outer_replicate") => each(&[0, 1, 3], &|c| {
            let mut ip = IpState { behavior: Behavior::Random, ..IpState::EMPTY };
            ip::ipv4_replicate(c, &mut ip, &mut false)
        }),
        ("ipv4" | "ipv6", "ipv4_innermost_irregular" | "ipv6_innermost_irregular") => {
            state.ips[0].header.version = version(method);
            each(&[0], &|c| ip::irregular_chain(c, &mut { state }, false, Counter::read))
        }
        ("ipv4" | "ipv6", _) => {
            let ttl = name.contains("_with_ttl_");
            let of = |ecn_used| {
                let header = IpHeader { version: version(method), ..IpHeader::EMPTY };
                let ip = IpState { header, ..IpState::EMPTY };
                seen(0, &|c| ip::outer_irregular(c, &mut { ip }, ecn_used, ttl))
            };
            [false, true].map(of).to_vec()
        }
        ("tcp_opt_eol", _) => option(index::EOL, name.ends_with("_list_item"), &[], false, 0),
        ("tcp_opt_nop", _) => option(index::NOP, name.ends_with("_list_item"), &[], false, 0),
        ("tcp_opt_mss", _) => option(index::MSS, name.ends_with("_list_item"), &[], false, 0),
        ("tcp_opt_wscale", _) => option(index::WINDOW_SCALE, name.ends_with("_list_item"), &[], false, 0),
        ("tcp_opt_ts", _) => option(index::TIMESTAMP, name.ends_with("_list_item"), &[], false, 0),
        ("tcp_opt_sack_permitted", _) => {
            option(index::SACK_PERMITTED, name.ends_with("_list_item"), &[], false, 0)
        }
        ("tcp_opt_sack", _) => {
            let blocks = name.as_bytes()[4].saturating_sub(b'0');
            let is_unchanged = name.contains("unchanged");
            option(
                index::SACK,
                name.ends_with("_list_item"),
                &[],
                !is_unchanged,
                if is_unchanged { 0 } else { blocks },
            )
        }
        ("tcp_opt_generic", "generic_static_irregular") => {
            state.options.statics = u16::MAX;
            each(&[0], &|c| {
                let mut sent = TcpFields::read(&state).options;
                irregular_item(c, index::GENERIC, &mut { state.options }, &mut sent, 0)
            })
        }
        ("tcp_opt_generic", _) => {
            let is_list = name.ends_with("_list_item");
            option(index::GENERIC, is_list, &[34, 4, 1, 2], name.contains("full"), 0)
        }
        ("ts_lsb", _) => {
            let choices = ["tsval_7", "tsval_14", "tsval_21", "tsval_29"].iter().position(|n| *n == name);
            each(&[[0b000, 0b001, 0b011, 0b111][choices.unwrap()]], &|c| ts_lsb(c, "tsval", &mut counter()))
        }
        ("sack_pure_lsb", _) => {
            let choices = ["lsb_15", "lsb_22", "lsb_29", "full_offset"].iter().position(|n| *n == name);
            let choices = [0b000, 0b001, 0b011, 0b111][choices.unwrap()];
            each(&[choices], &|c| sack_pure_lsb(c, "sack_field", 0, &mut 0))
        }
        ("rsf_index_enc", _) => each(&[0], &|c| rsf_index_enc(c, &mut 0)),
        ("tcp", "tcp_static") => each(&[0], &|c| tcp_static(c, &mut { state })),
        ("tcp", "tcp_dynamic") => each(&[0, u32::MAX, 0b1010, 0b0110], &|c| {
            let mut sent = TcpFields::read(&state).options;
            tcp_dynamic(c, &mut { state }, &mut sent, &mut false)
        }),
        ("tcp", "tcp_replicate") => {
            let of = |choices: u32, ports: u8| {
                seen(choices, &|c| {
                    let mut sent = TcpFields::read(&state).options;
                    let mut x =
                        Replicate { source_port: ports, destination_port: ports, ..Replicate::default() };
                    tcp_replicate(c, &mut { state }, &mut x, &mut sent)
                })
            };
            [of(0, 0), of(u32::MAX, 1), of(0x55, 2), of(0xAA, 1)].to_vec()
        }
        ("tcp", _) => {
            let of = |ecn_used| {
                let mut state = state;
                state.ecn_used = ecn_used;
                seen(0, &|c| tcp_irregular(c, &mut { state }))
            };
            [false, true].map(of).to_vec()
        }
        ("co_baseheader", _) => {
            let sequential = name.starts_with("seq");
            let of = |choices, behavior| {
                seen(choices, &|c| {
                    let (mut state, mut x) = (state, TcpFields::read(&state));
                    state.inner_mut().behavior = behavior;
                    base(format.unwrap(), c, &mut state, &mut x)
                })
            };
            let of = |choices| of(choices, if sequential { Behavior::Sequential } else { Behavior::Random });
            let mut all: Vec<_> = [0, u32::MAX, 0x5555, 0xAAAA].map(of).to_vec();
            if name == "co_common" {
                all.extend([0, u32::MAX].map(|choices| {
                    seen(choices, &|c| {
                        let (mut state, mut x) = (state, TcpFields::read(&state));
                        state.inner_mut().behavior = Behavior::Sequential;
                        base(Format::CoCommon, c, &mut state, &mut x)
                    })
                }));
            }
            all
        }
        _ => panic!("{block} is neither described nor absent"),
    }
}

#[test]
fn every_block_of_the_notation_is_described_or_has_a_reason() {
    let (mut checked, mut named, mut reasons) = (0, 0, std::collections::BTreeMap::<_, usize>::new());
    for (block, notation) in BLOCKS {
        named += usize::from(!block.ends_with('.'));
        if let Some(reason) = is_absent(block) {
            *reasons.entry(reason).or_default() += usize::from(!block.ends_with('.'));
            continue;
        }
        checked += 1;
        let tokens: Vec<_> = notation.split_whitespace().collect();
        for fields in ours(block, notation) {
            assert!(agree(&tokens, &fields), "{block}: {notation}\nis not {fields:?}");
        }
    }
    println!("{checked} of {named} named blocks are held against functions; not: {reasons:?}");
    assert_eq!((checked, named, checked + reasons.values().sum::<usize>()), (CHECKED, 151, 151));
}

/// Each `lsb(k, p)` of the compressed formats encodes the values from `p` below the reference on, and no others.
#[test]
fn offsets_are_those_of_the_notation() {
    let mut probed = 0;
    for (block, notation) in BLOCKS.iter().filter(|(block, _)| block.starts_with("co_baseheader.")) {
        let name = block.split_once('.').unwrap().1;
        let format = Format::ALL.into_iter().find(|format| format.name() == name).unwrap();
        for token in notation.split_whitespace().filter(|token| token.contains('~')) {
            let (field, rest) = token.split_once(':').unwrap();
            let (k, p) = rest.split_once('~').unwrap();
            let (k, p): (u32, u32) = (k.parse().unwrap(), p.parse().unwrap());
            let last = (1_u32 << k) - 1 - p.min((1 << k) - 1);
            let fits = |ahead: u32| writes(format, field, ahead);
            assert!(fits(0_u32.wrapping_sub(p)) && fits(last), "{block} {field} {p}");
            assert!(!fits(0_u32.wrapping_sub(p + 1)) && !fits(last + 1), "{block} {field} {p}");
            probed += 1;
        }
    }
    assert_eq!(probed, PROBED);
}

/// True if a format can encode a field that is `ahead` of its reference.
fn writes(format: Format, field: &str, ahead: u32) -> bool {
    let state = TcpState { ip_count: 1, ..TcpState::EMPTY };
    let mut x = TcpFields::read(&state);
    let (reference, wide) = (0x8000_u32, 0x8000_0000_u32);
    let still = Counter::between(reference as u16, Some((reference as u16, reference as u16)));
    (x.msn, x.window, x.ip_id_offset) = (still, still, still);
    let still = Counter::between(wide, Some((wide, wide)));
    (x.seq, x.ack, x.seq_scaled, x.ack_scaled) = (still, still, still, still);
    x.ttl = Counter::between(100_u8, Some((100, 100)));
    let long = Counter::between(wide.wrapping_add(ahead), Some((wide, wide)));
    let short =
        Counter::between(reference.wrapping_add(ahead) as u16, Some((reference as u16, reference as u16)));
    match field {
        "seq_number" => x.seq = long,
        "ack_number" => x.ack = long,
        "seq_number_scaled" => x.seq_scaled = long,
        "ack_number_scaled" => x.ack_scaled = long,
        "msn" => x.msn = short,
        "window" => x.window = short,
        "ip_id" => x.ip_id_offset = short,
        "ttl_hopl" => x.ttl = Counter::between(100_u8.wrapping_add(ahead as u8), Some((100, 100))),
        _ => panic!("{field}"),
    }
    let mut out = [0; 32];
    base(format, &mut Writer::new(&mut out, 0), &mut { state }, &mut x).is_ok()
}

#[test]
fn the_table_is_that_of_the_rfc() {
    let Some(shared) = std::env::var_os("THINAIR_VECTORS") else {
        println!("skipped: THINAIR_VECTORS is not set (the notation of RFC 6846)");
        return;
    };
    let text = std::fs::read(std::path::Path::new(&shared).join("rfc/rfc6846.txt")).unwrap();
    let found = blocks_of(&String::from_utf8_lossy(&text), "8.2.  Formal Definition");
    assert_eq!(found.len(), BLOCKS.len());
    for ((block, notation), (found, fields)) in BLOCKS.iter().zip(&found) {
        assert_eq!((*block, *notation), (found.as_str(), fields.as_str()));
    }
}

/// Blocks that have a function, and fields whose offset is probed.
const CHECKED: usize = 116;
const PROBED: usize = 50;
